/**
 * What an ended attempt leads to: the same route again, another account, or the last word.
 *
 * Asked in the order of "must never" before "may"; health is booked once it is clear that the outcome counts.
 */
import { incompleteAnswer } from "../core/final_error.ts";
import type { Outcome } from "../core/outcome.ts";
import { meetsSpentBudget, planRecovery } from "../core/sse_recovery.ts";
import { bookOutcome, bookUnrepaired } from "./pool_booking.ts";
import type { PoolContext } from "./pool_context.ts";
import { isAfterFailover } from "./pool_sessions.ts";
import { BLOCKED_NOTE, EXHAUSTED_NOTE, RECOVERED_NOTE } from "./recovery_slots.ts";
import type { LaunchState, RequestPlan } from "./request_plan.ts";

/** Judges an outcome the client has seen nothing of. */
export function judgeUncommitted(
  context: PoolContext,
  plan: RequestPlan,
  state: LaunchState,
  outcome: Outcome,
  heldLease: boolean,
  nowMs: number,
): void {
  const { slot, launch } = state;
  if (outcome.kind === "success") {
    bookOutcome(context, plan, state, outcome, heldLease, nowMs);
    plan.verdict = { kind: "stop" };
    return;
  }
  if (outcome.kind === "local_limit") {
    // Whoever is asked next meets the same limit; trying on would only make it last.
    plan.verdict = { kind: "relay", launch };
    return;
  }
  if (!plan.isReplayable) {
    judgeOnce(context, plan, state, outcome, heldLease, nowMs);
    return;
  }
  if (outcome.kind === "request_fault") {
    const sealed = outcome.state === "foreign_state" && !plan.stripped;
    if (sealed && isAfterFailover(context, plan, slot)) {
      plan.stripped = true;
      plan.pending = { kind: "again", state, cause: "strip_state" };
    } else plan.verdict = { kind: "relay", launch };
    return;
  }
  if (outcome.kind === "no_response" && outcome.pooled && !plan.repeated.has(slot)) {
    plan.repeated.add(slot);
    plan.pending = { kind: "again", state, cause: "unpooled_repeat" };
    return;
  }
  if (outcome.kind === "unauthorized" && slot.account.refreshable && !plan.repaired.has(slot)) {
    plan.repaired.add(slot);
    plan.pending = { kind: "repair", state };
    return;
  }
  if (startRecovery(context, plan, state, outcome, nowMs)) return;
  if (outcome.kind === "incomplete") tellIncomplete(plan);
  else bookOutcome(context, plan, state, outcome, heldLease, nowMs);
}

/** Rows 34, 38, 41, 49: health only. A first 401 stays pending; the next request repairs it. */
export function judgeCommitted(
  context: PoolContext,
  plan: RequestPlan,
  state: LaunchState,
  outcome: Outcome,
  heldLease: boolean,
  nowMs: number,
): void {
  if (outcome.kind === "unauthorized" && state.slot.account.refreshable) return;
  bookOutcome(context, plan, state, outcome, heldLease, nowMs);
}

/** Row 40: nobody's fault, and no other account's business. */
export function tellIncomplete(plan: RequestPlan): void {
  const answer = incompleteAnswer();
  plan.record.rule = answer.rule;
  plan.verdict = { kind: "answer", answer };
}

/** Row 52: one launch, and the upstream's own answer is the answer where there is one. */
function judgeOnce(
  context: PoolContext,
  plan: RequestPlan,
  state: LaunchState,
  outcome: Outcome,
  heldLease: boolean,
  nowMs: number,
): void {
  if (outcome.kind === "incomplete") {
    tellIncomplete(plan);
    return;
  }
  if (outcome.kind === "unauthorized" && state.slot.account.refreshable) {
    bookUnrepaired(context, state, outcome.code, nowMs);
  } else if (outcome.kind !== "request_fault") {
    bookOutcome(context, plan, state, outcome, heldLease, nowMs);
  }
  if (hasUpstreamAnswer(outcome)) plan.verdict = { kind: "relay", launch: state.launch };
}

/** Plans a silent relaunch of the same route. An attempt that tests something is never recovered (C28). */
function startRecovery(
  context: PoolContext,
  plan: RequestPlan,
  state: LaunchState,
  outcome: Outcome,
  nowMs: number,
): boolean {
  const { seed, settings } = context;
  if (plan.recovery === null || plan.recoveryEnded || state.launch.probe !== "none") return false;
  const planned = planRecovery(plan.recovery, outcome, plan.spec.id, seed, nowMs, settings.recovery);
  if (planned === null) {
    if (meetsSpentBudget(plan.recovery, outcome)) noteExhausted(plan);
    return false;
  }
  plan.pending = { kind: "recovery", state, outcome, ...planned };
  if (planned.startAtMs > nowMs) {
    plan.record.waits.push({ fromMs: nowMs, untilMs: planned.startAtMs, reason: "recovery_backoff" });
  }
  return true;
}

/** A success that followed a silent relaunch: on the same account, whatever else was tried there in between. */
export function noteRecovered(plan: RequestPlan, state: LaunchState): void {
  if (plan.recovering === state.slot) plan.record.notes.push(RECOVERED_NOTE);
}

export function noteExhausted(plan: RequestPlan): void {
  noteOnce(plan, EXHAUSTED_NOTE);
}

/** A relaunch was due and its route closed: whoever serves the request now, recovery did not, nor is it spent. */
export function noteBlocked(plan: RequestPlan): void {
  noteOnce(plan, BLOCKED_NOTE);
}

/** Once a request: further accounts may meet the same. */
function noteOnce(plan: RequestPlan, note: string): void {
  const { notes } = plan.record;
  if (!notes.includes(note)) notes.push(note);
}

/** True when there is an answer of the upstream to pass through: a status, and a body that ended by itself. */
function hasUpstreamAnswer(outcome: Outcome): boolean {
  // Of the upstream's or of ours: a request fault always comes with its answer.
  if (outcome.kind === "request_fault") return true;
  if (outcome.origin !== "upstream" || outcome.status === null) return false;
  if (outcome.kind !== "transient") return true;
  return outcome.cause !== "body_reset" && outcome.cause !== "idle_timeout" &&
    outcome.cause !== "malformed" && outcome.cause !== "first_byte_timeout";
}
