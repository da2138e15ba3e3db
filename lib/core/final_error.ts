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
  /** True where the limit is known to be one of pace, not a spent quota. */
  readonly isRate?: boolean;
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
  /** What a 429 is about: `rate` only where every limit that counts is known to be one. Null without a 429. */
  readonly limit: "rate" | "quota" | null;
  /** True when no upstream attempt was made at all: worded differently (design.md 6). */
  readonly undispatched: boolean;
}

export interface FinalContext {
  readonly nowMs: number;
  /** `max-retry-interval`: how far a stated deadline may lie to count as near-term (ruling 6); 0 = none does. */
  readonly maxRetryIntervalMs: number;
  readonly undispatched: boolean;
}

/**
 * The aggregate over all accounts of a request, one member each.
 *
 * Only minima and counts are taken, so neither order nor repetition of equal members matters.
 * Source: state-machine-facts 5.1, rules 1 to 6; rulings 6.
 */
export function resolveFinalError(members: Iterable<FinalMember>, context: FinalContext): FinalAnswer {
  const seen = count(members, context);
  const answer = (
    status: FinalAnswer["status"],
    code: FinalCode,
    rule: FinalAnswer["rule"],
    retryAtMs: number | null,
    nextRetryAtMs: number | null,
  ): FinalAnswer => ({
    status,
    code,
    rule,
    retryAtMs,
    nextRetryAtMs,
    limit: status !== 429 ? null : seen.quotas === 0 ? "rate" : "quota",
    undispatched: context.undispatched,
  });

  if (seen.total === 0) return answer(503, "auth_unavailable", "no_accounts", null, null);
  if (seen.excluded === seen.total) return answer(404, "model_not_found", "all_excluded", null, null);
  if (seen.excluded + seen.dead === seen.total) {
    return answer(503, "auth_unavailable", "all_dead", null, null);
  }
  const next = seen.earliestMs;
  if (seen.limited > 0 && seen.transient === 0) {
    return answer(429, "rate_limited", "all_quota", seen.earliestLimitMs, next);
  }
  if (seen.limited > 0) {
    return seen.earliestNearMs === null
      ? answer(502, "upstream_unavailable", "mixed", null, next)
      : answer(429, "rate_limited", "mixed_near_deadline", seen.earliestNearMs, next);
  }
  return answer(502, "upstream_unavailable", "transient", null, next);
}

/** An answer cut off without its terminal: the request's own end, nobody's fault (rows 40 and 42 of section 5.2). */
export function incompleteAnswer(): FinalAnswer {
  return {
    status: 408,
    code: "stream_incomplete",
    retryAtMs: null,
    nextRetryAtMs: null,
    rule: "incomplete",
    limit: null,
    undispatched: false,
  };
}

/**
 * `Retry-After` in whole seconds: rounded up, never below 1 (RFC 9110 section 10.2.3 allows 0, clients spin on it).
 */
export function retryAfterSeconds(retryAtMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((retryAtMs - nowMs) / 1000));
}

interface Seen {
  total: number;
  excluded: number;
  dead: number;
  limited: number;
  /** Of the limited ones, those not known to be a rate. */
  quotas: number;
  transient: number;
  /** Smallest ready among members that may serve again. */
  earliestMs: number | null;
  earliestLimitMs: number | null;
  /** Smallest ready among clear near-term deadlines. */
  earliestNearMs: number | null;
}

function count(members: Iterable<FinalMember>, context: FinalContext): Seen {
  const seen: Seen = {
    total: 0,
    excluded: 0,
    dead: 0,
    limited: 0,
    quotas: 0,
    transient: 0,
    earliestMs: null,
    earliestLimitMs: null,
    earliestNearMs: null,
  };
  const nearUntilMs = context.maxRetryIntervalMs > 0
    ? context.nowMs + context.maxRetryIntervalMs
    : Number.NEGATIVE_INFINITY;
  for (const member of members) {
    seen.total++;
    // A time already over counts as now.
    const readyAtMs = Math.max(member.readyAtMs, context.nowMs);
    switch (member.class) {
      case "excluded":
        seen.excluded++;
        continue;
      case "disabled":
      case "credential":
      case "credits":
        seen.dead++;
        continue;
      case "quota":
        seen.limited++;
        if (member.isRate !== true) seen.quotas++;
        seen.earliestLimitMs = earlier(seen.earliestLimitMs, readyAtMs);
        if (readyAtMs <= nearUntilMs) seen.earliestNearMs = earlier(seen.earliestNearMs, readyAtMs);
        break;
      case "inferred":
        seen.limited++;
        if (member.isRate !== true) seen.quotas++;
        seen.earliestLimitMs = earlier(seen.earliestLimitMs, readyAtMs);
        break;
      case "transient":
        seen.transient++;
        break;
      case "idle":
        break;
      default: {
        const missing: never = member.class;
        throw new Error(`Cannot classify ${missing}`);
      }
    }
    seen.earliestMs = earlier(seen.earliestMs, readyAtMs);
  }
  return seen;
}

function earlier(a: number | null, b: number): number {
  return a === null ? b : Math.min(a, b);
}
