/**
 * Which account a conversation belongs to while one of its requests is served (C22, rulings 7 and 8).
 *
 * A binding moves when its account is a bad place to come back to, not when the request merely went round it.
 */
import type { AccountId } from "../core/domain.ts";
import type { Outcome } from "../core/outcome.ts";
import type { AccountSlot } from "../core/pool.ts";
import { type Choice, isModelExcluded, ordinaryBlocks, ordinarySlot, pickThis } from "./pool_choice.ts";
import type { PoolContext } from "./pool_context.ts";
import type { LaunchState, RequestPlan } from "./request_plan.ts";

/** Binds or moves the conversation to the chosen account; the loser of a race adopts the winner. */
export function placeSession(context: PoolContext, plan: RequestPlan, choice: Choice, nowMs: number): Choice {
  const { bindings } = context;
  const { sessions, holder } = plan;
  const chosen = choice.slot.account.id;
  if (sessions.length === 0) return choice;
  if (holder === chosen) {
    if (!plan.bindingKept) bindings.keep(sessions, chosen, nowMs);
    plan.bindingKept = true;
    return choice;
  }
  // A fallback helps out once; the conversation stays a member's (C34).
  if (choice.route.fallback) return choice;
  if (holder === null) {
    plan.holder = bindings.bind(sessions, chosen, nowMs);
    plan.bindingKept = true;
  } else if (mayMove(context, plan, holder, nowMs)) {
    move(context, plan, holder, chosen, nowMs);
  } else return choice;
  return plan.holder === chosen ? choice : adopt(context, plan, choice, nowMs);
}

/** The replacement answered: now the conversation may follow (ruling 7). */
export function moveWithHead(
  context: PoolContext,
  plan: RequestPlan,
  state: LaunchState,
  nowMs: number,
): void {
  const { holder } = plan;
  const account = state.slot.account.id;
  if (holder === null || plan.unheard !== holder || holder === account || state.route.fallback) return;
  // Gone meanwhile: its answer still counts, but no later turn could come back to it (2A.3).
  if (state.slot.removed) return;
  plan.unheard = null;
  move(context, plan, holder, account, nowMs);
}

/**
 * True when the history this request carries may hold state sealed for another account: it went to two accounts,
 * its conversation moved, or it may have moved before this process began (ruling 8).
 */
export function isAfterFailover(context: PoolContext, plan: RequestPlan, slot: AccountSlot): boolean {
  if (plan.record.attempts.some((attempt) => attempt.account !== slot.account.id)) return true;
  if (plan.spec.bound !== null && plan.spec.bound !== slot.account.id) return true;
  return plan.sessions.some((session) => {
    if (context.bindings.hasMoved(session)) return true;
    const createdAtMs = context.bindings.createdAtMs(session);
    return createdAtMs !== null && createdAtMs < context.startedAtMs;
  });
}

function adopt(context: PoolContext, plan: RequestPlan, choice: Choice, nowMs: number): Choice {
  const holder = plan.holder!;
  const winner = ordinarySlot(plan, holder);
  const adopted = winner === null ? null : pickThis(context, plan, winner, nowMs);
  if (adopted !== null) return adopted;
  if (mayMove(context, plan, holder, nowMs)) move(context, plan, holder, choice.slot.account.id, nowMs);
  return choice;
}

/** Whether what keeps the conversation from its account is a reason to leave it for good, before anybody answers. */
function mayMove(context: PoolContext, plan: RequestPlan, holder: AccountId, nowMs: number): boolean {
  plan.unheard = null;
  const slot = ordinarySlot(plan, holder);
  // Not one this request would ask first: another provider's model of the same conversation is wanted.
  if (slot === null) return !context.records.accounts.has(holder);
  if (slot.removed) return true;
  if (isModelExcluded(plan, slot, nowMs)) return false;
  const own = plan.outcomes.get(slot);
  const isUnheard = own === undefined ? isOutOfReach(context, plan, slot, nowMs) : saysNothing(own);
  if (isUnheard) plan.unheard = holder;
  return !isUnheard;
}

/** Nothing was heard, or a wall in front of everybody was: no reason to lose a warm cache (ruling 7). */
function saysNothing(outcome: Outcome): boolean {
  return outcome.kind === "no_response" || outcome.kind === "edge_block" ||
    (outcome.kind === "transient" && outcome.cause === "egress_proxy");
}

/** The same, as other requests met it. What the account said of itself, a limit for instance, counts for more. */
function isOutOfReach(context: PoolContext, plan: RequestPlan, slot: AccountSlot, nowMs: number): boolean {
  const gate = context.records.provider(slot.account.provider).health.cooldown?.reason;
  const isGated = gate === "network" || gate === "edge_block";
  const { ladder } = slot.health;
  const isUnheard = ladder?.reason === "no_response" || ladder?.reason === "egress_proxy";
  return ordinaryBlocks(plan, slot, nowMs).every((block) => {
    if (block === "model_excluded") return true;
    return block === "ladder" ? isUnheard || isGated : block === null && isGated;
  });
}

function move(
  context: PoolContext,
  plan: RequestPlan,
  from: AccountId,
  to: AccountId,
  nowMs: number,
): void {
  plan.holder = context.bindings.move(plan.sessions, from, to, nowMs);
  if (plan.holder === from) return;
  const { record } = plan;
  // Every account that fails hands the conversation on; where it ends up is what counts.
  if (record.movedTo === null) record.notes.push("bound_moved");
  record.movedTo = plan.holder;
}
