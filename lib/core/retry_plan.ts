/**
 * The seam between deciding and doing: what one request asks of the pool, and what the pool answers.
 *
 * The shell (`proxy/request_runner.ts`) and the simulation (`tests/sim`) drive the same loop:
 *
 *     plan = pool.begin(spec, now)
 *     loop: step = pool.next(plan, now)
 *           launch -> send it, then pool.settle(plan, launch, outcome, now)
 *           repair -> refresh the token, then pool.repaired(plan, step, result, now)
 *           wait   -> sleep until step.untilMs (cancellable), then next again
 *           answer, relay, stop -> done
 */
import type { AccountId, AttemptId, ModelId, ProviderId, RequestId, Target } from "./domain.ts";
import type { DecisionRecord } from "./decision.ts";
import type { FinalAnswer } from "./final_error.ts";
import type { Outcome } from "./outcome.ts";

/** What a request wants, read once from the client's call. */
export interface RequestSpec {
  readonly id: RequestId;
  /** Route name of the route table, for records. */
  readonly route: string;
  readonly tenant: string;
  /** The client's model name, for records; null where the route names none. */
  readonly model: ModelId | null;
  /** Ring order, already resolved from pool, alias or provider. One entry for most requests. */
  readonly targets: readonly Target[];
  /** Pool fallbacks: the last candidates (C34). */
  readonly fallbacks: readonly Target[];
  /** `replayable`: may be sent again; `once`: exactly one launch. From `replay.ts`. */
  readonly replay: "replayable" | "once";
  /** Bound account of the session, looked up before the plan begins; null = no binding or no signal. */
  readonly bound: AccountId | null;
  /** The session digest to bind or rebind; null = no signal, no pin. */
  readonly session: string | null;
  /** Further digests of the same conversation: they are bound and moved together with `session` (2A.8). */
  readonly aliases?: readonly string[];
  /** True when the request may only go to `bound` (file pins, `previous_response_id`; ruling 8). */
  readonly pinned: boolean;
  /** Recovery relaunches allowed to this request (0 = off). */
  readonly recoveryAttempts: number;
  /** What the request's record says from the start. */
  readonly notes?: readonly string[];
  readonly idempotency: string | null;
  /** First-byte limit of an attempt in ms; probe leases derive from it (ruling 12). */
  readonly attemptTimeoutMs: number;
}

/** One send. */
export interface Launch {
  readonly attempt: AttemptId;
  readonly counter: number;
  readonly account: AccountId;
  readonly provider: ProviderId;
  readonly model: ModelId | null;
  readonly round: number;
  /** Why this launch exists. `unpooled_repeat`: ruling 15; `strip_state`: ruling 8, foreign reasoning removed. */
  readonly cause: "first" | "failover" | "round" | "repair" | "recovery" | "unpooled_repeat" | "strip_state";
  readonly probe: "none" | "provider" | "network" | "recheck" | "credits";
  /** The block of the account this launch tests. Equals `probe` unless it tests a provider or the network as well. */
  readonly trial: "none" | "recheck" | "credits";
  /** Send on a fresh connection, never a pooled one (once-only routes, probes, unpooled repeats). */
  readonly fresh: boolean;
  readonly launchedAtMs: number;
  /**
   * Watchdog of a probe: abort the attempt then. Ends with the lease: a network probe's at the first head, any
   * other's at the first semantic event. Null for ordinary launches.
   */
  readonly leaseUntilMs: number | null;
}

export type Step =
  | { readonly kind: "launch"; readonly launch: Launch }
  | { readonly kind: "repair"; readonly account: AccountId; readonly launch: Launch }
  /** `paced` waits end at slightly different moments for different requests (seeded), never later than allowed. */
  | {
    readonly kind: "wait";
    readonly untilMs: number;
    readonly reason: "cooldown" | "recovery_backoff" | "probe";
  }
  /** Our own answer: the deterministic aggregate. */
  | { readonly kind: "answer"; readonly answer: FinalAnswer }
  /** Pass that launch's upstream answer through (request-scoped, or once-only with an upstream response). */
  | { readonly kind: "relay"; readonly launch: Launch }
  /** Client gone or already committed: nothing may follow. */
  | { readonly kind: "stop" };

export type RepairResult =
  /** The account has a token other than the one that failed (refreshed now, or meanwhile by somebody else). */
  | { readonly kind: "fresh_token"; readonly fingerprint: string }
  | { readonly kind: "failed"; readonly outcome: Outcome };

/** What a finished request leaves for the records. */
export interface RequestTrace {
  readonly decision: DecisionRecord;
}
