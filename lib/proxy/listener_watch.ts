/**
 * Notices that a listener accepts nobody any more.
 *
 * The runtime gives up accepting for good when it fails once, for want of descriptors above all, and tells nobody
 * (Deno 2.9.6). While connections come, they are the proof; in a silence we knock ourselves.
 */
import type { Clock, Scheduled } from "../ports.ts";

export interface ListenerWatchOptions {
  readonly clock: Clock;
  /** How many connections were accepted so far. */
  readonly accepted: () => number;
  /** Opens a connection to the listener; rejects when there is none, or no descriptor for it. */
  readonly knock: () => Promise<{ close(): void }>;
  /** Called for every look that finds it deaf. */
  readonly deaf: () => void;
}

/** In this silence a client may wait in vain. */
export const LOOK_MS = 2_000;
/** For our own connection to be accepted. */
export const ANSWER_MS = 1_000;
const LOOKS = 20;

export class ListenerWatch {
  readonly #options: ListenerWatchOptions;
  #seen = 0;
  #scheduled: Scheduled;
  #isOver = false;

  constructor(options: ListenerWatchOptions) {
    this.#options = options;
    this.#scheduled = this.#schedule();
  }

  stop(): void {
    this.#isOver = true;
    this.#scheduled.cancel();
  }

  #schedule(): Scheduled {
    const { clock } = this.#options;
    return clock.schedule(clock.now() + LOOK_MS, () => void this.#look());
  }

  async #look(): Promise<void> {
    const { accepted, deaf } = this.#options;
    if (accepted() === this.#seen && !await this.#isHeard() && !this.#isOver) deaf();
    this.#seen = accepted();
    if (!this.#isOver) this.#scheduled = this.#schedule();
  }

  async #isHeard(): Promise<boolean> {
    const { accepted, clock, knock } = this.#options;
    const before = accepted();
    let connection: { close(): void };
    try {
      connection = await knock();
    } catch {
      return false;
    }
    try {
      // Counted, not timed: in a process that stood still nothing could be accepted either.
      for (let look = 0; look < LOOKS && accepted() === before && !this.#isOver; look++) {
        await clock.sleepUntil(clock.now() + ANSWER_MS / LOOKS, null);
      }
      return accepted() !== before;
    } finally {
      connection.close();
    }
  }
}
