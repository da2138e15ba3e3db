/**
 * Which one thing a client is told when nothing served it (state-machine-facts 5).
 *
 * A pure function over an unordered multiset: every order of accounts gives the same answer.
 */

/** Class of one account at the end, strongest first. */
export type FinalClass =
  | "excluded"
  | "disabled"
  | "credential"
  | "credits"
  | "quota"
  | "inferred"
  | "transient"
  | "idle";

export interface FinalMember {
  readonly class: FinalClass;
  /** Latest end over all live time blocks of the account, its provider and the pause; `nowMs` when none is live. */
  readonly readyAtMs: number;
}

export type FinalCode =
  | "model_not_found"
  | "auth_unavailable"
  | "rate_limited"
  | "upstream_unavailable"
  | "stream_incomplete";

export interface FinalAnswer {
  readonly status: 404 | 503 | 429 | 502 | 408;
  readonly code: FinalCode;
  /** Only with 429 and a known time. */
  readonly retryAtMs: number | null;
  /** Finite next moment at which anything may be tried, also on 502; null when unknown. */
  readonly nextRetryAtMs: number | null;
  readonly rule:
    | "no_accounts"
    | "all_excluded"
    | "all_dead"
    | "all_quota"
    | "mixed_near_deadline"
    | "mixed"
    | "transient"
    | "incomplete";
  /** True when no upstream attempt was made at all: worded differently (design.md 6). */
  readonly undispatched: boolean;
}
