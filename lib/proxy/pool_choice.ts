/**
 * Reads the pool for one request: which account may be launched now, when one may be, and what is left to say.
 *
 * Changes nothing. Gates are asked in the order of state-machine-facts 3.3.
 */
import type { CandidateRecord } from "../core/decision.ts";
import type { Target } from "../core/domain.ts";
import {
  accountReadyAtMs,
  classOfBlock,
  classOfOutcome,
  creditsProbeDue,
  describeBlock,
  recheckDue,
  strongestBlock,
} from "../core/eligibility.ts";
import type { FinalMember } from "../core/final_error.ts";
import { readNetworkGate } from "../core/network_pause.ts";
import type { AccountSlot, ProviderSlot } from "../core/pool.ts";
import { findSlot, isSelectable } from "../core/pool.ts";
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

/** How often a request looks whether a probe of somebody else has opened the gate. */
export const PROBE_POLL_MS = 250;

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

/** The account that may serve first, and when. `probed`: a probe of somebody else decides, maybe sooner. */
export interface Readiness {
  readonly readyAtMs: number;
  readonly slot: AccountSlot;
  readonly probed: boolean;
}

/** When the first account may serve, for the wait between rounds; `null` when no clock will bring one back. */
export function nearestReady(
  context: PoolContext,
  plan: RequestPlan,
  nowMs: number,
): Readiness | null {
  const network = readNetworkGate(context.records.network, nowMs);
  let best: Readiness | null = null;
  for (const provider of plan.providers) {
    const gate = readProviderGate(provider.slot.health, nowMs);
    // A lease ends when its probe says so, long before its watchdog: worth looking again soon.
    const probed = network.state === "leased" || gate.state === "leased";
    const gateMs = Math.max(
      closedUntilMs(network, nowMs),
      closedUntilMs(gate, nowMs),
      probed ? nowMs + PROBE_POLL_MS : 0,
      plan.retryAtMs.get(provider.slot) ?? 0,
    );
    for (const slot of provider.accounts) {
      const readyAtMs = servesAtMs(provider, slot, nowMs);
      if (readyAtMs === null) continue;
      const atMs = Math.max(readyAtMs, gateMs);
      if (best === null || atMs < best.readyAtMs) best = { readyAtMs: atMs, slot, probed };
    }
  }
  return best;
}

/** One member an account, for the final answer. */
export function* finalMembers(
  context: PoolContext,
  plan: RequestPlan,
  nowMs: number,
): Generator<FinalMember> {
  const network = readNetworkGate(context.records.network, nowMs);
  for (const provider of plan.providers) {
    const gate = readProviderGate(provider.slot.health, nowMs);
    const gated = !passes(network) || !passes(gate);
    const gateMs = Math.max(gateEndMs(network, nowMs), gateEndMs(gate, nowMs));
    for (const slot of provider.accounts) {
      if (slot.removed) continue;
      const target = clearestTarget(provider, slot, nowMs);
      const block = strongestBlock(slot.health, slot.account.enabled, target.model, nowMs);
      const readyAtMs = Math.max(accountReadyAtMs(slot.health, target.model, nowMs), gateMs);
      yield {
        class: block !== null
          ? classOfBlock(block)
          : gated
          ? "transient"
          : classOfOutcome(plan.outcomes.get(slot) ?? null),
        readyAtMs,
      };
    }
  }
}

/** Every account of the providers with what blocks it, for records and `why`; at most `limit` of them. */
export function listCandidates(
  context: PoolContext,
  providers: Iterable<{ readonly slot: ProviderSlot; readonly accounts: readonly AccountSlot[] }>,
  targetOf: (provider: ProviderSlot, slot: AccountSlot) => Target,
  limit: number,
  nowMs: number,
): CandidateRecord[] {
  const list: CandidateRecord[] = [];
  const network = context.records.network;
  const networkGate = readNetworkGate(network, nowMs);
  for (const { slot: provider, accounts } of providers) {
    const gate = readProviderGate(provider.health, nowMs);
    for (const slot of accounts) {
      if (slot.removed) continue;
      if (list.length >= limit) return list;
      const target = targetOf(provider, slot);
      const own = describeBlock(slot.health, slot.account.enabled, target.model, nowMs);
      list.push({
        account: slot.account.id,
        block: own ??
          describeGate(networkGate, "network", network.pause?.openedAtMs ?? null, "no_response") ??
          describeGate(
            gate,
            "provider",
            provider.health.cooldown?.openedAtMs ?? null,
            provider.health.cooldown?.reason ?? "",
          ),
      });
    }
  }
  return list;
}

/** The target under which an account of a snapshot is closest to serving; ties go to the first. */
export function clearestTarget(provider: PlanProvider, slot: AccountSlot, nowMs: number): Target {
  const [only] = provider.targets;
  if (provider.targets.length === 1) return only!;
  let best = only!;
  let bestRank = Number.POSITIVE_INFINITY;
  for (const target of provider.targets) {
    const block = strongestBlock(slot.health, slot.account.enabled, target.model, nowMs);
    const rank = block === "model_excluded"
      ? Number.MAX_VALUE
      : accountReadyAtMs(slot.health, target.model, nowMs);
    if (rank < bestRank) {
      best = target;
      bestRank = rank;
    }
  }
  return best;
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

/** True when the only thing against this account is what it was asked for, on every route it has. */
export function isModelExcluded(plan: RequestPlan, slot: AccountSlot, nowMs: number): boolean {
  const routes = plan.routes.filter((route) => holds(route.provider, slot));
  return routes.length > 0 &&
    routes.every((route) =>
      strongestBlock(slot.health, slot.account.enabled, route.target.model, nowMs) === "model_excluded"
    );
}

/** Last of all: accounts whose own block is to be tested when nobody else can serve (rulings 1 and 20). */
function pickTrial(context: PoolContext, plan: RequestPlan, network: boolean, nowMs: number): Choice | null {
  for (const route of plan.routes) {
    const gate = readProviderGate(route.provider.slot.health, nowMs);
    // A closure derived from quota is the very thing a recheck contradicts.
    const derived = route.provider.slot.health.derived && gate.state === "closed";
    if (!(passes(gate) || derived) || plan.leftThisRound.has(route.provider.slot)) continue;
    for (const slot of route.provider.accounts) {
      const trial = trialOf(context, slot, route.target, nowMs);
      if (trial === "none" || plan.tried.has(slot)) continue;
      if (derived && trial !== "recheck") continue;
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

/** When the account itself may serve; `null` when only an event can bring it back. */
function servesAtMs(provider: PlanProvider, slot: AccountSlot, nowMs: number): number | null {
  if (slot.removed) return null;
  const target = clearestTarget(provider, slot, nowMs);
  const block = strongestBlock(slot.health, slot.account.enabled, target.model, nowMs);
  switch (block) {
    case "model_excluded":
    case "disabled":
    case "credential":
    case "credits":
      return null;
    default:
      return accountReadyAtMs(slot.health, target.model, nowMs);
  }
}

function passes(gate: Gate): boolean {
  return gate.state === "open" || gate.state === "half_open";
}

function closedUntilMs(gate: Gate, nowMs: number): number {
  return gate.state === "closed" ? gate.untilMs : nowMs;
}

/** A lease that is over and not settled has no time to tell (2C.4). */
function gateEndMs(gate: Gate, nowMs: number): number {
  return gate.state === "closed" || gate.state === "leased" ? Math.max(gate.untilMs, nowMs) : nowMs;
}

function describeGate(
  gate: Gate,
  owner: "provider" | "network",
  observedAtMs: number | null,
  source: string,
): CandidateRecord["block"] {
  if (gate.state === "closed") {
    return {
      kind: owner === "provider" ? "provider_cooldown" : "network_pause",
      untilMs: gate.untilMs,
      source,
      observedAtMs,
    };
  }
  if (gate.state === "leased") {
    return {
      kind: owner === "provider" ? "provider_probe" : "network_probe",
      untilMs: gate.untilMs,
      source,
      observedAtMs,
    };
  }
  return null;
}
