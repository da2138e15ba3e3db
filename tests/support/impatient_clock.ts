/** Real time, except that whoever sleeps wakes up at once and finds that the time has passed. */
import type { Clock, Scheduled } from "../../lib/ports.ts";
import { createClock } from "../../lib/runtime/clock.ts";

export class ImpatientClock implements Clock {
  readonly #real = createClock();
  #aheadMs = 0;
  readonly slept: number[] = [];

  now(): number {
    return this.#real.now() + this.#aheadMs;
  }

  schedule(atMs: number, callback: () => void): Scheduled {
    return this.#real.schedule(atMs - this.#aheadMs, callback);
  }

  sleepUntil(untilMs: number, signal: AbortSignal | null): Promise<boolean> {
    const ms = Math.max(0, untilMs - this.now());
    this.slept.push(ms);
    this.#aheadMs += ms;
    return Promise.resolve(signal?.aborted !== true);
  }
}
