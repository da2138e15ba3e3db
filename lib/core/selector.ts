/**
 * Picks one account among those of a provider.
 *
 * Rotation decides, and among the next few the one with the least work: concurrent failovers spread, and a
 * quiet pool turns strictly in order. Configuration order never matters; accounts are sorted by id.
 */
import { HEALTHY } from "./account_health.ts";
import type { ModelId } from "./domain.ts";
import { creditsProbeDue, strongestBlock } from "./eligibility.ts";
import type { AccountSlot } from "./pool.ts";

export type Strategy = "round-robin" | "fill-first";

/** Eligible accounts compared at most; more would cost time and change little. */
export const COMPARED_LIMIT = 8;

export interface PickQuestion {
  readonly accounts: readonly AccountSlot[];
  /** Index the rotation starts at. */
  readonly start: number;
  readonly strategy: Strategy;
  readonly model: ModelId | null;
  readonly tried: ReadonlySet<AccountSlot>;
  /** True when the launch will test the provider's gate: the account with the fewest strikes goes (3.3 step 5). */
  readonly probing: boolean;
  /** True when an account whose hourly credits test is due may be chosen (ruling 20). */
  readonly creditsTrial: boolean;
  readonly nowMs: number;
}

/** @returns the index of the chosen account, or -1 when none is eligible. */
export function pickAccount(question: PickQuestion): number {
  const { accounts, tried, nowMs, model } = question;
  const count = accounts.length;
  const first = question.strategy === "fill-first" ? 0 : question.start;
  let best = -1;
  let compared = 0;
  for (let step = 0; step < count; step++) {
    let at = first + step;
    if (at >= count) at -= count;
    const slot = accounts[at]!;
    if (slot.blockedUntilMs > nowMs || slot.removed) continue;
    if (slot.health !== HEALTHY && !isOpen(slot, model, question.creditsTrial, nowMs)) continue;
    if (tried.size > 0 && tried.has(slot)) continue;
    if (best < 0 || isBetter(slot, accounts[best]!, question)) best = at;
    // The first of the order is the answer of fill-first, unless a probe looks for the least struck one.
    if (question.strategy === "fill-first" && !question.probing) break;
    if (++compared >= COMPARED_LIMIT) break;
  }
  return best;
}

function isOpen(slot: AccountSlot, model: ModelId | null, creditsTrial: boolean, nowMs: number): boolean {
  const block = strongestBlock(slot.health, true, model, nowMs);
  if (block === null) return true;
  return block === "credits" && creditsTrial && slot.trial === null &&
    creditsProbeDue(slot.health, model, nowMs);
}

function isBetter(slot: AccountSlot, best: AccountSlot, question: PickQuestion): boolean {
  if (question.probing) {
    const strikes = slot.health.ladder?.strikes ?? 0;
    const bestStrikes = best.health.ladder?.strikes ?? 0;
    if (strikes !== bestStrikes) return strikes < bestStrikes;
    // A test of credits inside a test of the gate would tell little about either.
    if ((slot.health.credits === null) !== (best.health.credits === null)) {
      return slot.health.credits === null;
    }
  }
  return question.strategy === "round-robin" && slot.inFlight < best.inFlight;
}
