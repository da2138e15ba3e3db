/**
 * What this process did, as numbers for Prometheus: counted when requests end, and read when somebody scrapes.
 *
 * Labels come from sets that are known beforehand (routes, providers, outcomes, reasons) or are bounded by the
 * configuration (accounts). Model names, which clients choose, and codes of upstreams are none of them.
 */
import type { DecisionRecord } from "../core/decision.ts";
import type { DurableChange } from "../core/records.ts";
import type { PoolStore, RefreshCall, RefreshResult, TokenIssuer, UsageKey } from "../ports.ts";
import type { TokenUsage } from "../protocol/stream_dialect.ts";
import { MetricsRegistry } from "./metrics_registry.ts";

/** From an answer out of memory to a long reasoning stream, seconds. */
const REQUEST_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800];
const ATTEMPTS = [0, 1, 2, 3, 5, 8, 13];

/** Codes of our own answers; anything else is what an upstream said of a request that was at fault itself. */
const OWN_CODES: ReadonlySet<string> = new Set([
  "model_not_found",
  "rate_limited",
  "auth_unavailable",
  "upstream_unavailable",
  "stream_incomplete",
]);

export class Metrics {
  readonly registry = new MetricsRegistry();
  readonly #requests = this.registry.counter(
    "holdfast_requests_total",
    "Requests that ended, by route and result",
    ["route", "result"],
  );
  readonly #requestSeconds = this.registry.histogram(
    "holdfast_request_duration_seconds",
    "From the request's arrival to its end, waits and streaming included",
    ["route"],
    REQUEST_SECONDS,
  );
  readonly #requestAttempts = this.registry.histogram(
    "holdfast_request_attempts",
    "Attempts a request took",
    [],
    ATTEMPTS,
  );
  readonly #attempts = this.registry.counter(
    "holdfast_attempts_total",
    "Sends to upstreams, by why they were made and how they ended",
    ["provider", "cause", "outcome"],
  );
  readonly #attemptSeconds = this.registry.histogram(
    "holdfast_attempt_duration_seconds",
    "From the launch of an attempt to its end, streaming included",
    ["provider"],
    REQUEST_SECONDS,
  );
  readonly #failovers = this.registry.counter(
    "holdfast_failovers_total",
    "Attempts on another account after one had failed",
    ["provider"],
  );
  readonly #rounds = this.registry.counter("holdfast_rounds_total", "Passes over the eligible accounts");
  readonly #waits = this.registry.counter(
    "holdfast_waits_total",
    "Waits for an account to come back",
    ["reason"],
  );
  readonly #waitSeconds = this.registry.counter(
    "holdfast_wait_seconds_total",
    "Time requests waited for an account to come back",
    ["reason"],
  );
  readonly #moved = this.registry.counter(
    "holdfast_bindings_moved_total",
    "Conversations that went to another account",
  );
  readonly #refreshes = this.registry.counter(
    "holdfast_refreshes_total",
    "Token refreshes, by issuer and result",
    ["issuer", "result"],
  );
  readonly #blocks = this.registry.counter(
    "holdfast_blocks_recorded_total",
    "Durable blocks of accounts and providers, by kind and reason",
    ["kind", "reason"],
  );
  readonly #tokens = this.registry.counter(
    "holdfast_tokens_total",
    "Tokens that upstreams reported, by provider and kind",
    ["provider", "kind"],
  );

  /** A request that is over; its record is complete. */
  observe(record: DecisionRecord): void {
    const endedAtMs = record.endedAtMs ?? record.atMs;
    this.#requests.inc([record.route, resultOf(record)]);
    this.#requestSeconds.observe((endedAtMs - record.atMs) / 1_000, [record.route]);
    this.#requestAttempts.observe(record.attempts.length);
    this.#rounds.inc([], record.rounds);
    for (const attempt of record.attempts) {
      const outcome = attempt.outcome?.split(":", 1)[0] ?? "unknown";
      this.#attempts.inc([attempt.provider, attempt.cause, outcome]);
      this.#attemptSeconds.observe(((attempt.endedAtMs ?? endedAtMs) - attempt.startedAtMs) / 1_000, [
        attempt.provider,
      ]);
      if (attempt.cause === "failover") this.#failovers.inc([attempt.provider]);
    }
    for (const { fromMs, untilMs, reason } of record.waits) {
      this.#waits.inc([reason]);
      this.#waitSeconds.inc([reason], Math.max(0, untilMs - fromMs) / 1_000);
    }
    if (record.notes.includes("bound_moved")) this.#moved.inc();
  }

  countTokens({ provider }: Pick<UsageKey, "provider">, usage: TokenUsage | null): void {
    if (usage === null) return;
    this.#tokens.inc([provider, "input"], usage.inputTokens);
    this.#tokens.inc([provider, "cached_input"], usage.cachedTokens);
    this.#tokens.inc([provider, "output"], usage.outputTokens);
    this.#tokens.inc([provider, "reasoning"], usage.reasoningTokens);
  }

  /** The same issuer, counted. */
  meterIssuer(issuer: TokenIssuer): TokenIssuer {
    return {
      refresh: async (call: RefreshCall, signal: AbortSignal): Promise<RefreshResult> => {
        const result = await issuer.refresh(call, signal);
        this.#refreshes.inc([call.kind, result.kind]);
        return result;
      },
    };
  }

  /** The same store, counted: what is written down about accounts and providers are their blocks. */
  meterStore(store: PoolStore): PoolStore {
    return {
      load: () => store.load(),
      prune: (nowMs) => store.prune(nowMs),
      apply: (changes, nowMs) => {
        store.apply(changes, nowMs);
        for (const change of changes) this.#countBlock(change);
      },
    };
  }

  #countBlock(change: DurableChange): void {
    switch (change.kind) {
      case "put_deadline":
        return this.#blocks.inc([
          change.model === null ? "deadline" : "model_deadline",
          change.deadline.source,
        ]);
      case "put_credential":
        return this.#blocks.inc(["credential", change.block.kind]);
      case "put_credits":
        return this.#blocks.inc(["credits", "no_credits"]);
      case "put_provider_cooldown":
        return this.#blocks.inc(["provider_cooldown", change.cooldown.reason]);
      case "put_network":
        if (change.network.pause !== null) this.#blocks.inc(["network_pause", "no_response"]);
        return;
    }
  }
}

/** How a request ended, in one of few words; what upstreams said of it is not among them. */
export function resultOf(record: DecisionRecord): string {
  if (record.status === 0) return "cancelled";
  if (record.code === null) return "success";
  return OWN_CODES.has(record.code) ? record.code : "relayed";
}
