/**
 * Reads the pool for one request: which account may be launched now, and which gates its launch has to lease.
 *
 * Changes nothing. Gates are asked in the order of state-machine-facts 3.3.
 */
import type { BlockKind } from "../core/decision.ts";
import type { Target } from "../core/domain.ts";
import { creditsProbeDue, recheckDue, strongestBlock } from "../core/eligibility.ts";
import { readNetworkGate } from "../core/network_pause.ts";
import { type AccountSlot, findSlot, isSelectable } from "../core/pool.ts";
import { hash32 } from "../core/prng.ts";
import { type Gate, readProviderGate, STRIKES_TO_COOL } from "../core/provider_health.ts";
import type { Launch } from "../core/retry_plan.ts";
import { pickAccount } from "../core/selector.ts";
import type { PoolContext } from "./pool_context.ts";
import type { LaunchState, PlanProvider, PlanRoute, RequestPlan } from "./request_plan.ts";

/** An account that may be launched now, and which gates the launch has to lease. */
export interface Choice {
  readonly slot: AccountSlot;
  readonly route: PlanRoute;
  readonly network: boolean;
  readonly provider: boolean;
  readonly trial: Launch["trial"];
  /** Where the rotation goes on after this pick; -1 leaves it alone (bound accounts do not turn it). */
  readonly cursor: number;
}

/** The next account of this request, or `null` when none may be launched now. */
export function pickNext(context: PoolContext, plan: RequestPlan, nowMs: number): Choice | null {
  const gate = readNetworkGate(context.records.network, nowMs);
  if (gate.state === "closed" || gate.state === "leased") return null;
  const network = gate.state === "half_open";
  return pickBound(plan, network, nowMs) ??
    pickRotating(context, plan, network, nowMs) ??
    pickTrial(context, plan, network, nowMs);
}

/** Whether this very account could be launched for the plan now, as a slot of its own. */
export function pickThis(
  context: PoolContext,
  plan: RequestPlan,
  slot: AccountSlot,
  nowMs: number,
): Choice | null {
  const gate = readNetworkGate(context.records.network, nowMs);
  if (gate.state === "closed" || gate.state === "leased" || plan.tried.has(slot)) return null;
  for (const route of plan.routes) {
    if (route.fallback || !holds(route.provider, slot) || plan.leftThisRound.has(route.provider.slot)) {
      continue;
    }
    const pick = admit(route, slot, gate.state === "half_open", nowMs);
    if (pick !== null) return pick;
  }
  return null;
}

/** Whether the same route may be launched again (repair, recovery, repeat): all gates hold for it too (P3). */
export function pickAgain(context: PoolContext, state: LaunchState, nowMs: number): Choice | null {
  const { slot, route } = state;
  const network = readNetworkGate(context.records.network, nowMs);
  if (network.state === "closed" || network.state === "leased") return null;
  const pick = admit(route, slot, network.state === "half_open", nowMs);
  if (pick !== null) return pick;
  if (state.launch.trial === "none" || slot.removed || slot.trial !== null) return null;
  const block = strongestBlock(slot.health, slot.account.enabled, route.target.model, nowMs);
  if (block !== (state.launch.trial === "credits" ? "credits" : "deadline")) return null;
  const gate = readProviderGate(route.provider.slot.health, nowMs);
  if (!passes(gate)) return null;
  return {
    slot,
    route,
    network: network.state === "half_open",
    provider: gate.state === "half_open",
    trial: state.launch.trial,
    cursor: -1,
  };
}

/** The account among those the request may ask before any fallback, or `null`. */
export function ordinarySlot(plan: RequestPlan, account: string): AccountSlot | null {
  for (const { fallback, provider } of plan.routes) {
    const slot = fallback ? null : findSlot(provider.accounts, account);
    if (slot !== null) return slot;
  }
  return null;
}

function pickBound(plan: RequestPlan, network: boolean, nowMs: number): Choice | null {
  if (plan.holder === null) return null;
  const slot = ordinarySlot(plan, plan.holder);
  if (slot === null || plan.tried.has(slot)) return null;
  for (const route of plan.routes) {
    // A fallback serves when nothing else does, bound or not (C34).
    if (route.fallback || !holds(route.provider, slot)) continue;
    if (plan.leftThisRound.has(route.provider.slot)) continue;
    const pick = admit(route, slot, network, nowMs);
    if (pick !== null) return pick;
  }
  return null;
}

function pickRotating(
  context: PoolContext,
  plan: RequestPlan,
  network: boolean,
  nowMs: number,
): Choice | null {
  for (let pass = 0; pass <= 2; pass++) {
    for (const route of plan.routes) {
      if (passOf(plan, route) !== pass || plan.leftThisRound.has(route.provider.slot)) continue;
      const pick = pickFromProvider(context, plan, route, network, nowMs);
      if (pick !== null) return pick;
    }
  }
  return null;
}

/** 0: ordinary; 1: struck twice by this request, after everybody else (C6); 2: fallbacks (C34). */
function passOf(plan: RequestPlan, route: PlanRoute): number {
  if (route.fallback) return 2;
  return (plan.strikes.get(route.provider.slot) ?? 0) >= STRIKES_TO_COOL ? 1 : 0;
}

function pickFromProvider(
  context: PoolContext,
  plan: RequestPlan,
  route: PlanRoute,
  network: boolean,
  nowMs: number,
): Choice | null {
  const { slot: provider, accounts } = route.provider;
  const gate = readProviderGate(provider.health, nowMs);
  if (!passes(gate) || accounts.length === 0) return null;
  const sticky = stickyStart(plan, route, nowMs);
  const at = pickAccount({
    accounts,
    start: sticky ?? provider.cursor % accounts.length,
    strategy: context.settings.routing.strategy,
    model: route.target.model,
    tried: plan.tried,
    probing: network || gate.state === "half_open",
    // A test that may fail is for requests that can go elsewhere.
    creditsTrial: plan.isReplayable,
    nowMs,
  });
  if (at < 0) return null;
  const slot = accounts[at]!;
  return {
    slot,
    route,
    network,
    provider: gate.state === "half_open" && !network,
    trial: slot.health.credits === null ? "none" : "credits",
    cursor: sticky === null ? at + 1 : -1,
  };
}

/**
 * A conversation that is routed around its account without being moved (a model exclusion, another provider's
 * model) starts at a place of its own, so that all its turns meet the same replacement and its warm cache.
 */
function stickyStart(plan: RequestPlan, route: PlanRoute, nowMs: number): number | null {
  const [session] = plan.sessions;
  if (session === undefined || plan.holder === null) return null;
  const holder = ordinarySlot(plan, plan.holder);
  if (holder !== null && !isModelExcluded(plan, holder, nowMs)) return null;
  return hash32(session) % route.provider.accounts.length;
}

/** True when the only thing against this account is what it was asked for, on every route but fallbacks. */
export function isModelExcluded(plan: RequestPlan, slot: AccountSlot, nowMs: number): boolean {
  const blocks = ordinaryBlocks(plan, slot, nowMs);
  return blocks.length > 0 && blocks.every((block) => block === "model_excluded");
}

/** The strongest block of the account, for each route but fallbacks it may be asked on. */
export function ordinaryBlocks(plan: RequestPlan, slot: AccountSlot, nowMs: number): (BlockKind | null)[] {
  return plan.routes
    .filter((route) => !route.fallback && holds(route.provider, slot))
    .map(({ target }) => strongestBlock(slot.health, slot.account.enabled, target.model, nowMs));
}

/** Last of all: accounts whose own block is to be tested when nobody else can serve (rulings 1 and 20). */
function pickTrial(context: PoolContext, plan: RequestPlan, network: boolean, nowMs: number): Choice | null {
  for (const route of plan.routes) {
    const gate = readProviderGate(route.provider.slot.health, nowMs);
    // A closure derived from quota is the very thing a recheck contradicts, and says nothing of credits.
    const derived = route.provider.slot.health.derived && gate.state === "closed";
    if (!(passes(gate) || derived) || plan.leftThisRound.has(route.provider.slot)) continue;
    for (const slot of route.provider.accounts) {
      const trial = trialOf(context, slot, route.target, nowMs);
      if (trial === "none" || plan.tried.has(slot)) continue;
      return { slot, route, network, provider: gate.state === "half_open" && !network, trial, cursor: -1 };
    }
  }
  return null;
}

function trialOf(
  context: PoolContext,
  slot: AccountSlot,
  target: Target,
  nowMs: number,
): Launch["trial"] {
  if (slot.removed || !slot.account.enabled || slot.trial !== null) return "none";
  if (creditsProbeDue(slot.health, target.model, nowMs)) return "credits";
  return context.settings.quota.recheck && recheckDue(slot.health, target.model, nowMs) ? "recheck" : "none";
}

function admit(route: PlanRoute, slot: AccountSlot, network: boolean, nowMs: number): Choice | null {
  const gate = readProviderGate(route.provider.slot.health, nowMs);
  if (!passes(gate) || !isSelectable(slot, route.target.model, nowMs)) return null;
  return {
    slot,
    route,
    network,
    provider: gate.state === "half_open" && !network,
    trial: "none",
    cursor: -1,
  };
}

function holds(provider: PlanProvider, slot: AccountSlot): boolean {
  return slot.account.provider === provider.slot.id && findSlot(provider.accounts, slot.account.id) === slot;
}

/** True when a launch may go through, as a probe or not. */
export function passes(gate: Gate): boolean {
  return gate.state === "open" || gate.state === "half_open";
}
