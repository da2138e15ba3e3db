/** What happened, line by line: enough to tell a failure's story, and a fingerprint to compare whole runs. */
import { hash32 } from "../../lib/core/prng.ts";

/** Lines a failure shows. */
export const SHOWN_LINES = 40;

export class Journal {
  readonly #startMs: number;
  readonly #keepAll: boolean;
  readonly #lines: string[] = [];
  #fingerprint = 0;
  #count = 0;

  /** @param keepAll  keeps every line, for a replay that prints the whole story. */
  constructor(startMs: number, keepAll: boolean) {
    this.#startMs = startMs;
    this.#keepAll = keepAll;
  }

  write(nowMs: number, text: string): void {
    const line = `+${((nowMs - this.#startMs) / 1000).toFixed(3)}s ${text}`;
    this.#fingerprint = hash32(this.#fingerprint, line);
    this.#count++;
    this.#lines.push(line);
    if (!this.#keepAll && this.#lines.length >= 4 * SHOWN_LINES) {
      this.#lines.splice(0, this.#lines.length - SHOWN_LINES);
    }
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  get tail(): readonly string[] {
    return this.#lines.slice(-SHOWN_LINES);
  }

  /** Equal for equal runs. */
  get fingerprint(): string {
    return `${this.#count}:${this.#fingerprint}`;
  }
}
