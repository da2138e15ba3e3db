/**
 * The budget of stream recovery: how many relaunches, until when they may start, how long to back off.
 *
 * Buffering and releasing belong to the relay; this file only counts (state-machine-facts 2D).
 */
import { hashUnit } from "./prng.ts";
import type { Outcome } from "./outcome.ts";

/** A hard limit for every configuration (state-machine-facts 2D.1). */
export const RECOVERY_ATTEMPT_LIMIT = 10;

export interface RecoveryPolicy {
  /** A relaunch may start until this long after the request's first launch. */
  readonly maxRetryWindowMs: number;
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
}

export const DEFAULT_RECOVERY: RecoveryPolicy = {
  maxRetryWindowMs: 20_000,
  initialBackoffMs: 250,
  maxBackoffMs: 2_000,
};

/** Belongs to the client's request and travels with it over accounts. */
export interface RecoveryBudget {
  readonly attemptsLeft: number;
  readonly used: number;
  readonly windowEndsAtMs: number;
}

export function openRecovery(attempts: number, startedAtMs: number, policy: RecoveryPolicy): RecoveryBudget {
  return {
    attemptsLeft: Math.min(attempts, RECOVERY_ATTEMPT_LIMIT),
    used: 0,
    windowEndsAtMs: startedAtMs + policy.maxRetryWindowMs,
  };
}

/** True for failures that another attempt on the same route may mend: never quota, credentials or request faults. */
export function isRecoverable(outcome: Outcome): boolean {
  if (outcome.kind === "incomplete") return true;
  return (outcome.kind === "transient" || outcome.kind === "no_response") && outcome.recoverable;
}

/** True when recovery would have taken this failure on, had its attempts and its window not been spent. */
export function meetsSpentBudget(budget: RecoveryBudget, outcome: Outcome): boolean {
  return isRecoverable(outcome) && statedMinimumMs(outcome) <= budget.windowEndsAtMs;
}

/**
 * When the next relaunch may start: full jitter under a doubling ceiling, never before a stated minimum.
 *
 * @returns `null` when the budget or the window is spent; a start exactly at the window's end still counts.
 */
export function planRecovery(
  budget: RecoveryBudget,
  outcome: Outcome,
  request: string,
  seed: number,
  nowMs: number,
  policy: RecoveryPolicy,
): { readonly startAtMs: number; readonly budget: RecoveryBudget } | null {
  if (budget.attemptsLeft <= 0 || nowMs > budget.windowEndsAtMs || !isRecoverable(outcome)) return null;
  const ceiling = Math.min(policy.maxBackoffMs, policy.initialBackoffMs * 2 ** budget.used);
  const jittered = nowMs + Math.floor(hashUnit(seed, "recovery", request, budget.used) * (ceiling + 1));
  const startAtMs = Math.max(jittered, statedMinimumMs(outcome));
  if (startAtMs > budget.windowEndsAtMs) return null;
  return {
    startAtMs,
    budget: { ...budget, attemptsLeft: budget.attemptsLeft - 1, used: budget.used + 1 },
  };
}

/** 0 where the upstream stated none. */
function statedMinimumMs(outcome: Outcome): number {
  return outcome.kind === "transient" ? outcome.notBeforeMs ?? 0 : 0;
}
