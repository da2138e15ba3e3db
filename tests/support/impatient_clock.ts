/** Time that only sleeping moves: who sleeps wakes up at once and finds it passed. Limits still end in real time. */
import type { Clock, Scheduled } from "../../lib/ports.ts";
import { createClock } from "../../lib/runtime/clock.ts";

export class ImpatientClock implements Clock {
  readonly #real = createClock();
  #nowMs = this.#real.now();
  readonly slept: number[] = [];

  now(): number {
    return this.#nowMs;
  }

  schedule(atMs: number, callback: () => void): Scheduled {
    return this.#real.schedule(this.#real.now() + atMs - this.#nowMs, callback);
  }

  sleepUntil(untilMs: number, signal: AbortSignal | null): Promise<boolean> {
    const ms = Math.max(0, untilMs - this.#nowMs);
    this.slept.push(ms);
    this.#nowMs += ms;
    return Promise.resolve(signal?.aborted !== true);
  }
}
