/**
 * The next step of a request that has not ended: finish the slot, take another account, wait, or answer.
 *
 * The order of gates is state-machine-facts 3.3; the budgets are 3.5.
 */
import { longestWaitMs } from "../core/backoff.ts";
import { resolveFinalError } from "../core/final_error.ts";
import { isLedgerFull } from "../core/ledger.ts";
import type { ProviderSlot } from "../core/pool.ts";
import type { Step } from "../core/retry_plan.ts";
import { bookOutcome, leaveProvider } from "./pool_booking.ts";
import { type Choice, pickAgain, pickNext } from "./pool_choice.ts";
import type { PoolContext } from "./pool_context.ts";
import { launch } from "./pool_launch.ts";
import { clearestTarget, finalMembers, listCandidates, nearestReady } from "./pool_outlook.ts";
import { placeSession } from "./pool_sessions.ts";
import { noteBlocked, noteExhausted, tellIncomplete } from "./pool_verdicts.ts";
import { startWait } from "./pool_waits.ts";
import type { Pending, RequestPlan } from "./request_plan.ts";

/** Blocks recorded with one decision; more would fill memory with a big pool's refusals. */
export const CANDIDATE_RECORD_LIMIT = 200;

/** What the slot still owes; `null` when the next account may be looked for. */
export function continueSlot(context: PoolContext, plan: RequestPlan, nowMs: number): Step | null {
  const { pending } = plan;
  if (pending === null) return null;
  const { state } = pending;
  if (pending.kind === "repair") {
    return { kind: "repair", account: state.slot.account.id, launch: state.launch };
  }
  if (pending.kind === "recovery" && nowMs < pending.startAtMs) {
    return { kind: "wait", untilMs: pending.startAtMs, reason: "recovery_backoff" };
  }
  plan.pending = null;
  const inTime = pending.kind !== "recovery" || nowMs <= pending.budget.windowEndsAtMs;
  const mayLaunch = inTime && !isLedgerFull(plan.ledger);
  const choice = mayLaunch ? pickAgain(context, state, nowMs) : null;
  if (choice === null) return giveUpSlot(context, plan, pending, mayLaunch, nowMs);
  if (pending.kind !== "recovery") return launch(context, plan, choice, pending.cause, nowMs);
  plan.recovery = pending.budget;
  plan.recovering = choice.slot;
  return launch(context, plan, choice, "recovery", nowMs);
}

/** Takes the next account of this round, of a further one, waits for it, or says the last word. */
export function nextSlot(context: PoolContext, plan: RequestPlan, nowMs: number): Step {
  const { policy } = context.settings;
  // Each turn of the loop opens a round, of which there are at most 1 + R.
  for (;;) {
    if (isLedgerFull(plan.ledger) || (!plan.isReplayable && plan.launchCount > 0)) break;
    const spent = policy.maxRetryCredentials > 0 && plan.slotsUsed >= policy.maxRetryCredentials;
    const choice = spent ? null : pickNext(context, plan, nowMs);
    leaveProviders(context, plan, choice, spent, nowMs);
    if (choice !== null) return launchSlot(context, plan, choice, nowMs);
    if (!plan.isReplayable || plan.round >= policy.requestRetry) break;
    const limitMs = longestWaitMs(policy.maxRetryIntervalMs);
    const ready = limitMs > 0 ? nearestReady(context, plan, nowMs) : null;
    if (ready === null || ready.readyAtMs - nowMs > limitMs) break;
    if (ready.readyAtMs > nowMs) return startWait(context, plan, ready, limitMs, nowMs);
    plan.openRound();
  }
  plan.verdict = finalAnswer(context, plan, nowMs);
  return plan.verdict;
}

/** The deterministic aggregate over the accounts of this request (section 5). */
export function finalAnswer(context: PoolContext, plan: RequestPlan, nowMs: number): Step {
  const answer = resolveFinalError(finalMembers(context, plan, nowMs), {
    nowMs,
    maxRetryIntervalMs: context.settings.policy.maxRetryIntervalMs,
    undispatched: plan.launchCount === 0,
  });
  plan.record.rule = answer.rule;
  recordCandidates(context, plan, nowMs);
  return { kind: "answer", answer };
}

/** Writes down what spoke against each account, once, where somebody will ask. */
export function recordCandidates(context: PoolContext, plan: RequestPlan, nowMs: number): void {
  const { candidates } = plan.record;
  if (candidates.length > 0) return;
  candidates.push(...listCandidates(
    context,
    plan.providers,
    (provider, slot) => clearestTarget(plan.providers.find((entry) => entry.slot === provider)!, slot, nowMs),
    CANDIDATE_RECORD_LIMIT,
    nowMs,
  ));
  if (plan.accountCount > CANDIDATE_RECORD_LIMIT) plan.record.notes.push("candidates_cut");
}

function launchSlot(context: PoolContext, plan: RequestPlan, choice: Choice, nowMs: number): Step {
  const placed = placeSession(context, plan, choice, nowMs);
  const cause = plan.launchCount === 0
    ? "first"
    : plan.slotsUsed === 0 && plan.round > 0
    ? "round"
    : "failover";
  plan.slotsUsed++;
  plan.recovering = null;
  plan.tried.add(placed.slot);
  if (placed === choice && choice.cursor >= 0) choice.route.provider.slot.cursor = choice.cursor;
  return launch(context, plan, placed, cause, nowMs);
}

/** The same route will not be launched again after all, so what it ended with counts. */
function giveUpSlot(
  context: PoolContext,
  plan: RequestPlan,
  pending: Exclude<Pending, { kind: "repair" }>,
  blocked: boolean,
  nowMs: number,
): Step | null {
  const { state } = pending;
  if (pending.kind === "recovery") {
    if (blocked) noteBlocked(plan);
    else noteExhausted(plan);
    if (pending.outcome.kind === "incomplete") tellIncomplete(plan);
    else bookOutcome(context, plan, state, pending.outcome, false, nowMs);
  } else if (pending.cause === "strip_state") plan.verdict = { kind: "relay", launch: state.launch };
  return plan.verdict;
}

/** Providers this request struck and now leaves open their cooldown (C6). */
function leaveProviders(
  context: PoolContext,
  plan: RequestPlan,
  choice: Choice | null,
  spent: boolean,
  nowMs: number,
): void {
  for (const provider of plan.strikes.keys()) {
    if (choice?.route.provider.slot === provider) continue;
    // Out of slots is not out of accounts: the next round goes on inside the provider.
    const goesOn = choice === null && spent && plan.round < context.settings.policy.requestRetry &&
      hasUntried(plan, provider, nowMs);
    if (!goesOn) leaveProvider(context, plan, provider, nowMs);
  }
}

function hasUntried(plan: RequestPlan, provider: ProviderSlot, nowMs: number): boolean {
  const entry = plan.providers.find(({ slot }) => slot === provider);
  return entry?.accounts.some((slot) => slot.blockedUntilMs <= nowMs && !plan.tried.has(slot)) ?? false;
}
