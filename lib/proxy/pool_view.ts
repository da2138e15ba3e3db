/** What management, the status page and `why` may see of the pool. Looks only; ids, times and safe words. */
import type { Block, CandidateRecord } from "../core/decision.ts";
import type { Account, ProviderId, Target } from "../core/domain.ts";
import { accountReadyAtMs, contradictsDeadline, describeBlock, strongestBlock } from "../core/eligibility.ts";
import { readNetworkGate } from "../core/network_pause.ts";
import { type AccountSlot, newProviderSlot, type ProviderSlot, readCircuit } from "../core/pool.ts";
import { readProviderGate } from "../core/provider_health.ts";
import type {
  AccountHealth,
  CooldownReason,
  NetworkEvidence,
  ProbeLease,
  QuotaReading,
} from "../core/records.ts";
import { listCandidates } from "./pool_outlook.ts";
import type { PoolContext } from "./pool_context.ts";

export interface AccountView {
  readonly account: Account;
  readonly state: "healthy" | "cooling" | "parked" | "unavailable" | "disabled";
  readonly block: Block | null;
  /** True when the block survives a restart. */
  readonly persisted: boolean;
  readonly excludedModels: readonly string[];
  readonly overrideUntilMs: number | null;
  readonly inFlight: number;
  readonly lastSuccessAtMs: number | null;
  readonly reading: QuotaReading | null;
  /** A newer page shows headroom although the deadline runs; only a recheck or an operator ends it. */
  readonly deadlineContradicted: boolean;
  readonly health: AccountHealth;
}

export interface ProviderView {
  readonly id: ProviderId;
  readonly circuit: { readonly state: "open"; readonly reason: "auth" | "credits" } | null;
  /** Kept when its time is over, half-open, until a probe proves that traffic flows. */
  readonly cooldown: {
    readonly untilMs: number;
    readonly reason: CooldownReason;
    readonly derived: boolean;
    readonly level: number;
  } | null;
  readonly probe: { readonly state: "idle" | "leased"; readonly lease: ProbeLease | null };
  readonly strikes: number;
  /** First moment anything of this provider may be tried; null while it is open, has no clock, or may be tried now. */
  readonly nextRetryAtMs: number | null;
}

export interface NetworkView {
  readonly openedAtMs: number;
  readonly untilMs: number;
  readonly providers: readonly ProviderId[];
  readonly evidence: readonly NetworkEvidence[];
  readonly probe: ProbeLease | null;
}

export function describeAccounts(context: PoolContext, nowMs: number): AccountView[] {
  return [...context.records.accounts.values()]
    .map((slot) => describeAccount(slot, nowMs))
    .sort((a, b) => a.account.id < b.account.id ? -1 : 1);
}

export function describeProviders(context: PoolContext, nowMs: number): ProviderView[] {
  return [...context.records.providers.values()].map((slot) => describeSlot(context, slot, nowMs))
    .sort((a, b) => a.id < b.id ? -1 : 1);
}

/** One provider, also where nothing of it was ever asked and no account of it is there. */
export function describeProvider(context: PoolContext, id: ProviderId, nowMs: number): ProviderView {
  return describeSlot(context, context.records.providers.get(id) ?? newProviderSlot(id), nowMs);
}

function describeSlot(context: PoolContext, slot: ProviderSlot, nowMs: number): ProviderView {
  const { health } = slot;
  const circuit = readCircuit(slot);
  return {
    id: slot.id,
    circuit: circuit === null ? null : { state: "open", reason: circuit.reason },
    cooldown: health.cooldown === null ? null : {
      untilMs: health.cooldown.untilMs,
      reason: health.cooldown.reason,
      derived: health.derived,
      level: health.cooldown.level,
    },
    probe: { state: health.probe === null ? "idle" : "leased", lease: health.probe },
    strikes: health.strikes,
    nextRetryAtMs: circuit === null ? nextRetry(context, slot, nowMs) : null,
  };
}

export function describeNetwork(context: PoolContext): NetworkView | null {
  const { pause, probe } = context.records.network;
  if (pause === null) return null;
  const providers = [...new Set(pause.evidence.map((row) => row.provider))].sort();
  return { openedAtMs: pause.openedAtMs, untilMs: pause.untilMs, providers, evidence: pause.evidence, probe };
}

/** Every account a request for these targets could use, with what speaks against it now. */
export function explainTargets(
  context: PoolContext,
  targets: readonly Target[],
  nowMs: number,
): CandidateRecord[] {
  return targets.flatMap((target) => {
    const slot = context.records.provider(target.provider);
    return listCandidates(
      context,
      [{ slot, accounts: slot.accounts }],
      () => target,
      Number.POSITIVE_INFINITY,
      nowMs,
    );
  });
}

/** The next moment at which some time block, gate or lease runs out; `null` when nothing is timed. */
export function nextChangeMs(context: PoolContext, nowMs: number): number | null {
  const { records } = context;
  let next = Number.POSITIVE_INFINITY;
  const consider = (atMs: number | null | undefined) => {
    if (atMs !== null && atMs !== undefined && atMs > nowMs && atMs < next) next = atMs;
  };
  consider(records.network.pause?.untilMs);
  consider(records.network.probe?.leaseUntilMs);
  for (const { health } of records.providers.values()) {
    consider(health.cooldown?.untilMs);
    consider(health.probe?.leaseUntilMs);
  }
  for (const { health } of records.accounts.values()) {
    consider(health.deadline?.untilMs);
    consider(health.inferred?.untilMs);
    consider(health.ladder?.untilMs);
    consider(health.park?.untilMs);
    consider(health.credits?.probeAtMs);
    consider(health.overrideUntilMs);
    for (const deadline of health.modelDeadlines.values()) consider(deadline.untilMs);
    for (const inferred of health.modelInferred.values()) consider(inferred.untilMs);
    for (const park of health.modelParks.values()) consider(park.untilMs);
  }
  return Number.isFinite(next) ? next : null;
}

export function describeAccount(slot: AccountSlot, nowMs: number): AccountView {
  const { account, health } = slot;
  const block = describeBlock(health, account.enabled, null, nowMs);
  return {
    account,
    state: stateOf(block),
    block,
    persisted: block !== null && isPersisted(block, health),
    excludedModels: [...health.exclusions.keys()],
    overrideUntilMs: health.overrideUntilMs > nowMs ? health.overrideUntilMs : null,
    inFlight: slot.inFlight,
    lastSuccessAtMs: health.lastSuccessAtMs === 0 ? null : health.lastSuccessAtMs,
    reading: health.reading,
    deadlineContradicted: contradictsDeadline(health, nowMs),
    health,
  };
}

function stateOf(block: Block | null): AccountView["state"] {
  switch (block?.kind) {
    case undefined:
      return "healthy";
    case "disabled":
      return "disabled";
    case "credential":
    case "credits":
      return "unavailable";
    case "park":
      return "parked";
    default:
      return "cooling";
  }
}

function isPersisted(block: Block, health: AccountHealth): boolean {
  if (block.kind === "credential") return health.credential?.kind !== "credential_invalid";
  return block.kind === "deadline" || block.kind === "credits" || block.kind === "disabled";
}

/**
 * The latest of the network's gate, the provider's and the first account; `null` when a launch would go through now,
 * or nothing is timed. A lease that is over and not settled has no time to tell (2C.4).
 */
function nextRetry(context: PoolContext, provider: ProviderSlot, nowMs: number): number | null {
  let first = Number.POSITIVE_INFINITY;
  for (const { account, health } of provider.accounts) {
    const kind = strongestBlock(health, account.enabled, null, nowMs);
    if (kind === "disabled" || kind === "credential" || kind === "credits") continue;
    first = Math.min(first, accountReadyAtMs(health, null, nowMs));
  }
  if (!Number.isFinite(first)) return null;
  let atMs = first;
  for (
    const gate of [readNetworkGate(context.records.network, nowMs), readProviderGate(provider.health, nowMs)]
  ) {
    if (gate.state === "closed" || gate.state === "leased") atMs = Math.max(atMs, gate.untilMs);
  }
  return atMs > nowMs ? atMs : null;
}
