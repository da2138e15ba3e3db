/**
 * Reads the pool for one request that cannot launch now: when somebody may serve, and what speaks against each.
 *
 * Changes nothing; waits, final answers and records are made of what it sees.
 */
import type { BlockKind, CandidateRecord } from "../core/decision.ts";
import type { ModelId, Target } from "../core/domain.ts";
import {
  accountReadyAtMs,
  classOfBlock,
  classOfOutcome,
  describeBlock,
  liveInferred,
  strongestBlock,
} from "../core/eligibility.ts";
import type { FinalMember } from "../core/final_error.ts";
import { readNetworkGate } from "../core/network_pause.ts";
import type { AccountSlot, ProviderSlot } from "../core/pool.ts";
import { type Gate, readProviderGate } from "../core/provider_health.ts";
import type { Deadline } from "../core/records.ts";
import { passes } from "./pool_choice.ts";
import type { PoolContext } from "./pool_context.ts";
import type { PlanProvider, RequestPlan } from "./request_plan.ts";

/** How often a request looks whether a probe of somebody else has opened the gate. */
export const PROBE_POLL_MS = 250;

/** The account that may serve first, and when. `probed`: a probe of somebody else decides, maybe sooner. */
export interface Readiness {
  readonly readyAtMs: number;
  readonly slot: AccountSlot;
  readonly probed: boolean;
}

/**
 * When the first account may serve, for the wait between rounds; `null` when no clock will bring one back.
 *
 * A request that waited for a probe in vain leaves what probes decide out: others may still be ready in time.
 */
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
    if (probed && plan.probeHangs) continue;
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
        isRate: isRateLimit(plan, slot, block, target.model, nowMs),
      };
    }
  }
}

/** A deadline does not keep what kind of limit stated it: only an answer to this very request tells. */
function isRateLimit(
  plan: RequestPlan,
  slot: AccountSlot,
  block: BlockKind | null,
  model: ModelId | null,
  nowMs: number,
): boolean {
  const { health } = slot;
  const told = plan.outcomes.get(slot);
  const toldRate = told?.kind === "limited" && told.shape === "rate";
  switch (block) {
    case null:
      return toldRate;
    case "deadline":
      return toldRate && isOfRequest(plan, health.deadline);
    case "model_deadline":
      return toldRate && isOfRequest(plan, health.modelDeadlines.get(model!));
    case "inferred":
      return liveInferred(health, model, nowMs)?.shape === "rate";
    default:
      return false;
  }
}

function isOfRequest(plan: RequestPlan, deadline: Deadline | null | undefined): boolean {
  return plan.record.attempts.some(({ id }) => id === deadline?.attempt);
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
