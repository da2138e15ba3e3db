/**
 * How slowly a client may send its body: a time for whatever the network does, and from then on a least pace.
 *
 * Not a limit on silence alone, which one byte now and then would satisfy for ever. Only the time in which we wait for
 * the client counts: an upstream that takes its time is no fault of the client's.
 */
import type { Clock, Scheduled } from "../ports.ts";

/** A bad mobile connection is faster. */
export const LEAST_BYTES_PER_SECOND = 8_192;
/** How late a slow body may be noticed. */
const SWEEP_MS = 500;

/** The client sends too slowly. */
export const TOO_SLOW = Symbol("too slow");
export type TooSlow = typeof TOO_SLOW;

interface Waiting {
  readonly dueAtMs: () => number;
  readonly giveUp: () => void;
}

/**
 * Looks after all bodies under way at once: nearly every one is there before anybody looks, and a timer for each
 * would cost more than reading it.
 */
export class BodyWatch {
  readonly clock: Clock;
  readonly #waiting = new Set<Waiting>();
  #sweep: Scheduled | null = null;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Gives up once it is due, which may move meanwhile; whatever it comes to then is nobody's. */
  wait<T>(part: Promise<T>, dueAtMs: () => number): Promise<T | TooSlow> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { dueAtMs, giveUp: () => resolve(TOO_SLOW) };
      this.#waiting.add(waiting);
      this.#sweep ??= this.#schedule();
      part.then((value) => {
        this.#waiting.delete(waiting);
        resolve(value);
      }, (error) => {
        this.#waiting.delete(waiting);
        reject(error);
      });
    });
  }

  close(): void {
    this.#sweep?.cancel();
    this.#sweep = null;
    this.#waiting.clear();
  }

  #schedule(): Scheduled {
    return this.clock.schedule(this.clock.now() + SWEEP_MS, () => this.#run());
  }

  #run(): void {
    const nowMs = this.clock.now();
    for (const waiting of this.#waiting) {
      if (nowMs < waiting.dueAtMs()) continue;
      this.#waiting.delete(waiting);
      waiting.giveUp();
    }
    this.#sweep = this.#waiting.size > 0 ? this.#schedule() : null;
  }
}

/** The pace of one body. */
export class BodyPace {
  readonly #watch: BodyWatch;
  /** 0 = no limit. */
  readonly #graceMs: number;
  #waitedMs = 0;
  #bytes = 0;

  constructor(watch: BodyWatch, graceMs: number) {
    this.#watch = watch;
    this.#graceMs = graceMs;
  }

  /** Waits for the next part of a body, or for all of it; what came is told to `count`, also in the meantime. */
  async wait<T>(part: Promise<T>): Promise<T | TooSlow> {
    if (this.#graceMs === 0) return await part;
    const { clock } = this.#watch;
    const beganMs = clock.now();
    const leftMs = this.#graceMs - this.#waitedMs;
    const got = await this.#watch.wait(part, () => beganMs + leftMs + earnedMs(this.#bytes));
    this.#waitedMs += clock.now() - beganMs;
    return got;
  }

  count(bytes: number): void {
    this.#bytes += bytes;
  }
}

function earnedMs(bytes: number): number {
  return bytes / LEAST_BYTES_PER_SECOND * 1_000;
}
