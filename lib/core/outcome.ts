/**
 * The judged result of one attempt. `classify.ts` makes it; nobody downstream looks at a status again.
 *
 * `row` is the row of the merged decision table (state-machine-facts 4), kept for records and tests.
 */

export type OutcomeScope = "none" | "request" | "model" | "account" | "provider" | "network";
export type OutcomeOrigin = "upstream" | "local" | "client";

interface OutcomeBase {
  readonly row: number;
  readonly scope: OutcomeScope;
  readonly origin: OutcomeOrigin;
  /** Upstream status, or the status an in-stream failure maps to; null for transport failures. */
  readonly status: number | null;
  /** Safe words of ours: `[a-z0-9_]`, at most 64 characters. Never upstream text. */
  readonly code: string;
}

/** Which statement a recovery time was read from; the later valid one wins (C18). */
export type TimeSource = "retry_after" | "body" | "headers" | "message";

export interface StatedTime {
  readonly untilMs: number;
  readonly source: TimeSource;
}

export type Outcome =
  | (OutcomeBase & { readonly kind: "success" })
  /** The request itself is at fault: every account would answer the same. Stops all, blames nobody. */
  | (OutcomeBase & {
    readonly kind: "request_fault";
    /** `foreign_state`: encrypted content of another account; stripped once after a failover (ruling 8). */
    readonly state: "none" | "foreign_state" | "previous_response";
  })
  /** First 401 or its like: one refresh may repair it. Final when the account cannot be refreshed or was already repaired. */
  | (OutcomeBase & { readonly kind: "unauthorized" })
  /** The credential is refused for good (suspended, organisation not allowed); no repair. */
  | (OutcomeBase & { readonly kind: "credential_dead" })
  /** Refused for an hour, in memory (`deactivated_workspace`, ruling 20). */
  | (OutcomeBase & { readonly kind: "account_pause"; readonly untilMs: number })
  | (OutcomeBase & { readonly kind: "credits" })
  | (OutcomeBase & { readonly kind: "model_unsupported" })
  /** A limit of the account, or of one model of it when the upstream names a model limiter. */
  | (OutcomeBase & {
    readonly kind: "limited";
    readonly shape: "rate" | "quota";
    readonly limiter: "account" | "model";
    /** Stated by the upstream: a deadline. Null: inferred, 60 s (rate) or 300 s (quota). */
    readonly stated: StatedTime | null;
    /** True where the 429 speaks of the provider's capacity (row 24): a strike goes with the deadline. */
    readonly strike?: boolean;
  })
  /** A passing failure: ladder for the account, a strike for the provider. */
  | (OutcomeBase & {
    readonly kind: "transient";
    readonly cause:
      | "status"
      | "overloaded"
      | "throttle"
      | "stream_failure"
      | "malformed"
      | "first_byte_timeout"
      | "idle_timeout"
      | "body_reset"
      | "provider_reported"
      | "refresh"
      | "egress_proxy";
    /** Provider minimum stated with it; the ladder block lasts at least that long. */
    readonly notBeforeMs: number | null;
    /** Whether stream recovery may relaunch it (state-machine-facts 2D.2), once `notBeforeMs` fits its window. */
    readonly recoverable: boolean;
    /** False for a throttle with no blame on the provider and for refresh failures (another host). */
    readonly strike: boolean;
  })
  /** Causal outage evidence: nothing of a response head arrived. */
  | (OutcomeBase & {
    readonly kind: "no_response";
    readonly cause: string;
    readonly recoverable: boolean;
    /** A pooled idle connection died: may be repeated once on the same account, unpooled (ruling 15). */
    readonly pooled: boolean;
  })
  /** This machine is at a limit of its own: nothing was sent, nobody is to blame, no account would fare better. */
  | (OutcomeBase & { readonly kind: "local_limit" })
  /** A block or challenge page in front of the provider: one strike, no account cooled, the round leaves the provider (ruling 4). */
  | (OutcomeBase & { readonly kind: "edge_block" })
  /** A clean end without terminal: request-scoped 408, retried by recovery only. */
  | (OutcomeBase & { readonly kind: "incomplete" })
  | (OutcomeBase & { readonly kind: "refresh_dead"; readonly reason: "invalid_grant" | "credential_invalid" })
  | (OutcomeBase & { readonly kind: "cancelled" });

export type OutcomeKind = Outcome["kind"];
