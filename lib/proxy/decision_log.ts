/**
 * The last decisions, for management and the status page. Costs the same at none and at a thousand kept.
 */
import type { DecisionRecord } from "../core/decision.ts";

export const KEPT_DECISIONS = 1_000;

export class DecisionLog {
  readonly #ring: (DecisionRecord | undefined)[] = new Array(KEPT_DECISIONS);
  readonly #listeners = new Set<(record: DecisionRecord) => void>();
  #next = 0;

  add(record: DecisionRecord): void {
    this.#ring[this.#next % KEPT_DECISIONS] = record;
    this.#next++;
    for (const listener of this.#listeners) listener(record);
  }

  /** Newest first, at most `limit`. */
  latest(limit: number): DecisionRecord[] {
    const found: DecisionRecord[] = [];
    const count = Math.min(limit, this.#next, KEPT_DECISIONS);
    for (let back = 1; back <= count; back++) found.push(this.#ring[(this.#next - back) % KEPT_DECISIONS]!);
    return found;
  }

  find(requestId: string): DecisionRecord | null {
    return this.latest(KEPT_DECISIONS).find((record) => record.requestId === requestId) ?? null;
  }

  /** @returns a function that ends the subscription. */
  subscribe(listener: (record: DecisionRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
