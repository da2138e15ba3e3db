/**
 * How long to stay away: the ladders of accounts and providers, and the spreading of waiters.
 *
 * Recovery has its own back-off in `sse_recovery.ts`.
 */
import { hashUnit } from "./prng.ts";

/** Longest step of any ladder and longest inline wait (state-machine-facts 2C.1). */
export const LONGEST_STEP_MS = 60_000;
const FIRST_STEP_MS = 2_000;
const JITTER_MS = 2_000;

/** Each waiter for the same account widens the interval its successors are spread over by this much. */
export const PACE_STEP_MS = 50;
/** Widest interval waiters are spread over: a "small interval" even for thousands. */
export const PACE_LIMIT_MS = 5_000;

/**
 * Length of one step: `2 s * 2^level` plus up to 2 s, the sum never above the cap.
 *
 * @param level  0 for the first failure.
 * @param capMs  longest step allowed, ms (see `accountLadderCapMs`).
 * Source: state-machine-facts 3.4, design ruling 3.
 */
export function ladderMs(seed: number, id: string, level: number, capMs: number): number {
  const step = FIRST_STEP_MS * 2 ** Math.min(level, 10);
  return Math.min(capMs, step + Math.floor(hashUnit(seed, id, level) * JITTER_MS));
}

/** The account ladder never passes the longest round wait, so that later rounds stay reachable (ruling 3). */
export function accountLadderCapMs(maxRetryIntervalMs: number): number {
  return maxRetryIntervalMs > 0 ? Math.min(LONGEST_STEP_MS, maxRetryIntervalMs) : LONGEST_STEP_MS;
}

/** Longest wait between two rounds; 0 = there is no further round (C10). */
export function longestWaitMs(maxRetryIntervalMs: number): number {
  return Math.max(0, Math.min(LONGEST_STEP_MS, maxRetryIntervalMs));
}

/**
 * How much later than the first possible moment this waiter wakes, so that a crowd does not wake in one tick.
 *
 * @param ahead  how many requests already wait for the same account; nobody ahead = no delay.
 * @param roomMs  what is left until the longest allowed wait; the result never passes it.
 */
export function paceMs(seed: number, request: string, ahead: number, roomMs: number): number {
  const spread = Math.max(0, Math.min(PACE_STEP_MS * ahead, PACE_LIMIT_MS, roomMs));
  return Math.floor(hashUnit(seed, "pace", request) * spread);
}
