/**
 * Which binding of a request's aliases counts, and when it is worth renewing (state-machine-facts 2A.8, #5).
 */
import type { AccountId } from "./domain.ts";

/** One binding as a store gives it. */
export interface Binding {
  readonly session: string;
  readonly account: AccountId;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** The oldest unexpired binding wins; of two equally old ones the smaller digest. `null` when none is live. */
export function winningBinding(rows: readonly (Binding | null)[], nowMs: number): Binding | null {
  let winner: Binding | null = null;
  for (const row of rows) {
    if (row === null || row.expiresAtMs <= nowMs) continue;
    if (
      winner === null || row.createdAtMs < winner.createdAtMs ||
      (row.createdAtMs === winner.createdAtMs && row.session < winner.session)
    ) winner = row;
  }
  return winner;
}

/** Renewed only once half of its life is over, so that a busy session does not write on each turn. */
export function needsRenewal(row: Binding, ttlMs: number, nowMs: number): boolean {
  return row.expiresAtMs - nowMs <= ttlMs / 2;
}
