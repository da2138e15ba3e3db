/**
 * Notices clients that leave before they were answered.
 *
 * Listening to `request.signal` costs more than most requests do altogether, so it is done only for those still
 * unanswered after a moment; an abort that happened before is delivered on attaching. Once an answer streams,
 * the stream's own `cancel` tells.
 */
import type { Clock, Scheduled } from "../ports.ts";

const SWEEP_MS = 40;

export interface WatchedRequest {
  readonly request: Request;
  readonly abort: AbortController;
  readonly sinceMs: number;
}

export class CancelWatch {
  readonly #clock: Clock;
  readonly #waiting = new Set<WatchedRequest>();
  #sweep: Scheduled | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(watched: WatchedRequest): void {
    this.#waiting.add(watched);
    this.#sweep ??= this.#clock.schedule(this.#clock.now() + SWEEP_MS, () => this.#run());
  }

  /** The request was answered, or is over; nothing is attached any more. */
  remove(watched: WatchedRequest): void {
    this.#waiting.delete(watched);
  }

  close(): void {
    this.#sweep?.cancel();
    this.#sweep = null;
    this.#waiting.clear();
  }

  #run(): void {
    this.#sweep = null;
    const nowMs = this.#clock.now();
    for (const watched of this.#waiting) {
      if (nowMs - watched.sinceMs < SWEEP_MS) continue;
      this.#waiting.delete(watched);
      const signal = watched.request.signal;
      if (signal.aborted) watched.abort.abort();
      else signal.addEventListener("abort", () => watched.abort.abort(), { once: true });
    }
    if (this.#waiting.size > 0) {
      this.#sweep = this.#clock.schedule(nowMs + SWEEP_MS, () => this.#run());
    }
  }
}
