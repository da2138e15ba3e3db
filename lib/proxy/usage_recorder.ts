/**
 * Counts tokens per tenant, model and effort, and writes them in batches: a request itself writes nothing.
 */
import { isModelKey } from "../core/domain.ts";
import type { AccountStore, Clock, Scheduled, UsageCount, UsageKey } from "../ports.ts";
import type { TokenUsage } from "../protocol/stream_dialect.ts";

export const USAGE_BUCKET_MS = 600_000;
const FLUSH_MS = 2_000;
/** Efforts are words; anything longer was made up. */
const EFFORT_LIMIT_CHARACTERS = 64;

/** Counts tokens apart from whose they are, also while usage is not kept. */
export interface TokenCounter {
  countTokens(key: UsageKey, usage: TokenUsage | null): void;
}

export class UsageRecorder {
  readonly #store: AccountStore;
  readonly #clock: Clock;
  readonly #enabled: () => boolean;
  readonly #onStoreError: (error: unknown) => void;
  readonly #metrics: TokenCounter | null;
  readonly #waiting = new Map<string, { key: UsageKey; atMs: number; count: UsageCount }>();
  #flush: Scheduled | null = null;

  constructor(
    store: AccountStore,
    clock: Clock,
    enabled: () => boolean,
    onStoreError: (error: unknown) => void,
    metrics: TokenCounter | null = null,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#enabled = enabled;
    this.#onStoreError = onStoreError;
    this.#metrics = metrics;
  }

  add(asked: UsageKey, usage: TokenUsage | null, failed: boolean, nowMs: number): void {
    this.#metrics?.countTokens(asked, usage);
    if (!this.#enabled()) return;
    const key = asRow(asked);
    const bucketMs = nowMs - nowMs % USAGE_BUCKET_MS;
    const id = `${bucketMs}\0${key.tenant}\0${key.keyHint}\0${key.provider}\0${key.model}\0${key.effort}`;
    const before = this.#waiting.get(id)?.count ?? NOTHING;
    this.#waiting.set(id, {
      key,
      atMs: bucketMs,
      count: {
        requests: before.requests + 1,
        failures: before.failures + (failed ? 1 : 0),
        inputTokens: before.inputTokens + (usage?.inputTokens ?? 0),
        cachedTokens: before.cachedTokens + (usage?.cachedTokens ?? 0),
        outputTokens: before.outputTokens + (usage?.outputTokens ?? 0),
        reasoningTokens: before.reasoningTokens + (usage?.reasoningTokens ?? 0),
      },
    });
    this.#flush ??= this.#clock.schedule(nowMs + FLUSH_MS, () => this.flush());
  }

  /** Writes what is waiting; also at shutdown and before usage is read. */
  flush(): void {
    this.#flush?.cancel();
    this.#flush = null;
    if (this.#waiting.size === 0) return;
    const rows = [...this.#waiting.values()];
    this.#waiting.clear();
    try {
      this.#store.addUsage(rows);
    } catch (error) {
      this.#onStoreError(error);
    }
  }
}

/** Model and effort are the client's own words: what cannot be a row's key is counted without a name. */
function asRow(key: UsageKey): UsageKey {
  const isEffort = isModelKey(key.effort) && key.effort.length <= EFFORT_LIMIT_CHARACTERS;
  return { ...key, model: isModelKey(key.model) ? key.model : "", effort: isEffort ? key.effort : "" };
}

const NOTHING: UsageCount = {
  requests: 0,
  failures: 0,
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
};
