/**
 * Books what finished attempts prove: on the account, its provider, the network, and the leases they held.
 *
 * One call each for the decision table's columns (state-machine-facts 4); nothing here decides what comes next.
 */
import { applyOutcome, blockCredential, endDeadline, type JudgedAttempt } from "../core/account_health.ts";
import { accountLadderCapMs, ladderMs, LONGEST_STEP_MS } from "../core/backoff.ts";
import { isModelKey } from "../core/domain.ts";
import type { Outcome } from "../core/outcome.ts";
import { endPause, noteNoResponse, noteSuccess, settleNetworkProbe } from "../core/network_pause.ts";
import type { AccountSlot, ProviderSlot } from "../core/pool.ts";
import {
  applyStrike,
  closeProviderGate,
  forgetStrikes,
  openCooldown,
  readStrike,
  settleProviderProbe,
  shouldCool,
} from "../core/provider_health.ts";
import type { AccountHealth } from "../core/records.ts";
import { withdrawOutageBlock } from "../core/transient_ladder.ts";
import type { PoolContext } from "./pool_context.ts";
import type { LaunchState, RequestPlan } from "./request_plan.ts";

/** Ends the leases this attempt holds, as its outcome says (3.4). Anybody else's outcome changes none. */
export function settleLeases(
  context: PoolContext,
  state: LaunchState,
  outcome: Outcome,
  nowMs: number,
): void {
  const { records, seed } = context;
  const { attempt } = state.launch;
  const provider = state.route.provider.slot;
  if (state.slot.trial === attempt) state.slot.trial = null;
  records.setNetwork(settleNetworkProbe(records.network, attempt, outcome, nowMs));
  if (provider.health.probe?.attempt === attempt) {
    records.setProvider(
      provider,
      settleProviderProbe(provider.health, provider.id, attempt, outcome, seed, nowMs),
    );
  }
}

/** A complete response head came: the network works (C26). */
export function noteHead(context: PoolContext, state: LaunchState): void {
  context.records.setNetwork(endPause(context.records.network, state.launch.attempt));
}

/** Real output came: the provider's gate opens (C26). */
export function noteOutput(context: PoolContext, state: LaunchState): void {
  const provider = state.route.provider.slot;
  context.records.setProvider(provider, closeProviderGate(provider.health, state.launch.attempt));
}

/** Books an outcome in full. Call it after `settleLeases`, with what that left. */
export function bookOutcome(
  context: PoolContext,
  plan: RequestPlan,
  state: LaunchState,
  outcome: Outcome,
  heldLease: boolean,
  nowMs: number,
): void {
  switch (outcome.kind) {
    case "success":
      bookSuccess(context, state, outcome, nowMs);
      return;
    case "no_response":
      bookNoResponse(context, plan, state, outcome, heldLease, nowMs);
      return;
    default:
      bookHealth(context, state, outcome, nowMs);
      bookStrike(context, plan, state, outcome, heldLease, nowMs);
  }
}

/** A 401 that nobody will repair within this request: on a once-only request it rests in memory (row 52). */
export function bookUnrepaired(context: PoolContext, state: LaunchState, code: string, nowMs: number): void {
  const { slot } = state;
  context.records.setHealth(
    slot,
    blockCredential(
      slot.health,
      "credential_invalid",
      code,
      judged(state),
      slot.account.fingerprint,
      nowMs,
    ),
    nowMs,
  );
}

/** Opens the cooldowns that are due on providers this request struck and is leaving (C6). */
export function leaveProvider(
  context: PoolContext,
  plan: RequestPlan,
  provider: ProviderSlot,
  nowMs: number,
): void {
  if ((plan.strikes.get(provider) ?? 0) === 0 || !shouldCool(provider.health, nowMs)) return;
  const openedBy = plan.record.attempts.findLast((attempt) => attempt.provider === provider.id)?.id ?? "";
  context.records.setProvider(
    provider,
    openCooldown(provider.health, provider.id, openedBy, context.seed, nowMs),
  );
  plan.record.notes.push("provider_cooled");
}

export function judged(state: LaunchState): JudgedAttempt {
  const { model } = state.route.target;
  return {
    account: state.slot.account.id,
    attempt: state.launch.attempt,
    // A made-up name must not become a key, whatever it is made of.
    model: model !== null && isModelKey(model) ? model : null,
    launchedAtMs: state.launch.launchedAtMs,
    fingerprint: state.fingerprint,
  };
}

/** The account's column, and that of the accounts which share its limits. */
export function bookHealth(context: PoolContext, state: LaunchState, outcome: Outcome, nowMs: number): void {
  bookOn(context, state, state.slot, outcome, nowMs);
  if (outcome.kind !== "limited" && outcome.kind !== "credits") return;
  const group = state.slot.limitGroup;
  if (group === null) return;
  for (const other of state.route.provider.slot.accounts) {
    if (other !== state.slot && other.limitGroup === group) bookOn(context, state, other, outcome, nowMs);
  }
}

function bookOn(
  context: PoolContext,
  state: LaunchState,
  slot: AccountSlot,
  outcome: Outcome,
  nowMs: number,
): void {
  context.records.setHealth(slot, healthAfter(context, state, slot, outcome, nowMs), nowMs);
}

/** @param slot  the launch's own account, or one that shares its limits. */
function healthAfter(
  context: PoolContext,
  state: LaunchState,
  slot: AccountSlot,
  outcome: Outcome,
  nowMs: number,
): AccountHealth {
  const { fingerprint } = slot.account;
  const policy = {
    seed: context.seed,
    capMs: accountLadderCapMs(context.settings.policy.maxRetryIntervalMs),
  };
  const attempt = slot === state.slot
    ? judged(state)
    : { ...judged(state), account: slot.account.id, fingerprint };
  return applyOutcome(slot.health, outcome, attempt, fingerprint, policy, nowMs);
}

function bookSuccess(
  context: PoolContext,
  state: LaunchState,
  outcome: Outcome,
  nowMs: number,
): void {
  const { records } = context;
  const provider = state.route.provider.slot;
  const after = healthAfter(context, state, state.slot, outcome, nowMs);
  records.setHealth(
    state.slot,
    state.launch.trial === "recheck" ? endDeadline(after) : after,
    nowMs,
  );
  records.setProvider(provider, forgetStrikes(provider.health));
  records.setNetwork(noteSuccess(records.network, nowMs));
}

/**
 * Rows 28 to 31. While a pause exists the failure is nobody's (C14, G4); when this one opens it, the blocks that
 * led there are withdrawn and this attempt leaves none.
 */
function bookNoResponse(
  context: PoolContext,
  plan: RequestPlan,
  state: LaunchState,
  outcome: Outcome,
  heldLease: boolean,
  nowMs: number,
): void {
  const { records } = context;
  if (records.network.pause !== null) return;
  const provider = state.route.provider.slot;
  const noted = noteNoResponse(records.network, provider.id, state.launch.attempt, nowMs);
  records.setNetwork(noted);
  if (noted.pause === null) {
    bookHealth(context, state, outcome, nowMs);
    bookStrike(context, plan, state, outcome, heldLease, nowMs);
    return;
  }
  plan.record.notes.push("network_paused");
  const attempts = new Set(noted.pause.evidence.map((row) => row.attempt));
  for (const slot of records.accounts.values()) {
    records.setHealth(slot, withdrawOutageBlock(slot.health, attempts, nowMs), nowMs);
  }
}

function bookStrike(
  context: PoolContext,
  plan: RequestPlan,
  state: LaunchState,
  outcome: Outcome,
  heldLease: boolean,
  nowMs: number,
): void {
  const strike = readStrike(outcome);
  if (strike === null) return;
  const provider = state.route.provider.slot;
  plan.strike(provider);
  if (outcome.kind === "edge_block") {
    // Nobody rests for it, so the request itself has to: walking on or coming straight back meets the same wall.
    plan.leftThisRound.add(provider);
    const level = plan.strikes.get(provider)! - 1;
    plan.retryAtMs.set(provider, nowMs + ladderMs(context.seed, provider.id, level, LONGEST_STEP_MS));
  }
  // A probe's own failure was booked with its lease.
  if (!heldLease) {
    context.records.setProvider(provider, applyStrike(provider.health, strike, state.launch.attempt));
  }
}
