/**
 * A clock that moves when told. Callbacks run in the order of their times, then of their scheduling.
 */
import { setImmediate } from "node:timers";
import type { Clock, Scheduled } from "../../lib/ports.ts";
import { sleepOn } from "../../lib/runtime/clock.ts";

/** 2027-01-15T08:00:00Z: late enough that no fixture's time lies after it by accident. */
export const FAKE_START_MS = 1_800_000_000_000;

interface Entry {
  readonly atMs: number;
  readonly order: number;
  readonly callback: () => void;
}

export class FakeClock implements Clock {
  #nowMs: number;
  #order = 0;
  readonly #entries = new Set<Entry>();

  constructor(startMs: number = FAKE_START_MS) {
    this.#nowMs = startMs;
  }

  /** How many callbacks wait: 0 at the end of a test means that nothing was left behind. */
  get pendingCount(): number {
    return this.#entries.size;
  }

  /** How many of them are due from `fromMs` to `toMs` from now: a wait that has begun shows by when it ends. */
  pendingWithin(fromMs: number, toMs: number): number {
    return [...this.#entries].filter(({ atMs }) => {
      const aheadMs = atMs - this.#nowMs;
      return aheadMs >= fromMs && aheadMs <= toMs;
    }).length;
  }

  now(): number {
    return this.#nowMs;
  }

  schedule(atMs: number, callback: () => void): Scheduled {
    if (Number.isNaN(atMs)) throw new RangeError("Cannot schedule a callback: the time is not a number");
    const entry: Entry = { atMs, order: this.#order++, callback };
    this.#entries.add(entry);
    return { cancel: () => void this.#entries.delete(entry) };
  }

  sleepUntil(untilMs: number, signal: AbortSignal | null): Promise<boolean> {
    return sleepOn(this, untilMs, signal);
  }

  /** Moves on by `ms`, stopping at every wake-up on the way and letting what it woke up finish. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await settle();
    for (let entry = this.#next(endMs); entry !== null; entry = this.#next(endMs)) {
      this.#fire(entry);
      await settle();
    }
    this.#nowMs = Math.max(this.#nowMs, endMs);
    await settle();
  }

  /**
   * Jumps from wake-up to wake-up until the promise settles.
   *
   * @throws RangeError when nothing is left to wake up, or `limitMs` of fake time are over.
   */
  async runUntil<T>(promise: Promise<T>, limitMs = 3_600_000): Promise<T> {
    let settled = false;
    const mark = () => void (settled = true);
    promise.then(mark, mark);
    const endMs = this.#nowMs + limitMs;
    for (let idleCount = 0; !settled;) {
      await settle();
      if (settled) break;
      const entry = this.#next(endMs);
      if (entry !== null) {
        idleCount = 0;
        this.#fire(entry);
        continue;
      }
      // Real files and sockets may still be at work; they get a second of real turns before we call it stuck.
      if (++idleCount > 200) {
        throw new RangeError(`Cannot run on: nothing wakes up within ${limitMs} ms of fake time`);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return await promise;
  }

  /** The wall clock is moved (also back); nothing fires by itself. */
  jump(ms: number): void {
    this.#nowMs += ms;
  }

  #next(endMs: number): Entry | null {
    let next: Entry | null = null;
    for (const entry of this.#entries) {
      if (entry.atMs > endMs) continue;
      if (
        next === null || entry.atMs < next.atMs || (entry.atMs === next.atMs && entry.order < next.order)
      ) next = entry;
    }
    return next;
  }

  #fire(entry: Entry): void {
    this.#entries.delete(entry);
    this.#nowMs = Math.max(this.#nowMs, entry.atMs);
    entry.callback();
  }
}

/** Lets everything that is ready run: promise reactions, and what they start in turn. Does not wait for I/O. */
export async function settle(turns = 3): Promise<void> {
  // A timer of 0 ms takes more than one; a turn of the event loop takes microseconds.
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
