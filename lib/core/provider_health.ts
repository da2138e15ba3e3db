/**
 * The health of one provider: strikes, the cooldown they open, and the one probe that tests it.
 *
 * A cooldown whose time is over is half-open: it stays until a real request, leased for it, says otherwise.
 * Circuits (every account dead) are derived from the accounts and hold no record here (C7, C8).
 */
import { ladderMs, LONGEST_STEP_MS } from "./backoff.ts";
import { type AttemptId, clampTimeMs, type ProviderId } from "./domain.ts";
import type { Outcome } from "./outcome.ts";
import type { CooldownReason, ProviderCooldown, ProviderHealth } from "./records.ts";

/** Strikes that open a cooldown when a request leaves the provider (C6). */
export const STRIKES_TO_COOL = 2;
/** A probe's first-byte limit (ruling 12). */
export const PROBE_LIMIT_MS = 120_000;
/** What a watchdog leaves the attempt to end by itself. */
export const LEASE_GRACE_MS = 3_000;
/** Cooldowns at least this long are durable, as are explicit ones (C16). */
export const DURABLE_COOLDOWN_MS = 60_000;

export const HEALTHY_PROVIDER: ProviderHealth = {
  strikes: 0,
  strikeReason: "overloaded",
  notBeforeMs: 0,
  cooldown: null,
  derived: false,
  probe: null,
  generation: 0,
};

/** What the gate says to a launch that wants through. */
export type Gate =
  | { readonly state: "open" }
  | { readonly state: "closed"; readonly untilMs: number }
  /** Over, untested: the launch must lease it. */
  | { readonly state: "half_open" }
  | { readonly state: "leased"; readonly untilMs: number };

const OPEN: Gate = { state: "open" };
const HALF_OPEN: Gate = { state: "half_open" };

export function readProviderGate(health: ProviderHealth, nowMs: number): Gate {
  if (health.cooldown === null) return OPEN;
  if (health.probe !== null) return { state: "leased", untilMs: health.probe.leaseUntilMs };
  if (health.cooldown.untilMs > nowMs) return { state: "closed", untilMs: health.cooldown.untilMs };
  return HALF_OPEN;
}

/** When a lease begun now runs out, ms: the attempt's own limit, at most 120 s, and a little grace. */
export function leaseUntilMs(attemptTimeoutMs: number, nowMs: number): number {
  const limitMs = attemptTimeoutMs > 0 ? Math.min(attemptTimeoutMs, PROBE_LIMIT_MS) : PROBE_LIMIT_MS;
  return nowMs + limitMs + LEASE_GRACE_MS;
}

/** What an outcome counts against the provider: a reason and a stated minimum, or nothing. */
export function readStrike(outcome: Outcome): { reason: CooldownReason; notBeforeMs: number } | null {
  switch (outcome.kind) {
    case "transient":
      return outcome.strike
        ? { reason: "overloaded", notBeforeMs: clampTimeMs(outcome.notBeforeMs ?? 0) }
        : null;
    case "no_response":
      return { reason: "network", notBeforeMs: 0 };
    case "edge_block":
      return { reason: "edge_block", notBeforeMs: 0 };
    case "limited":
      // Capacity with a stated time: a deadline for the account and a strike for its provider (row 24).
      return outcome.strike === true
        ? { reason: "overloaded", notBeforeMs: clampTimeMs(outcome.stated?.untilMs ?? 0) }
        : null;
    default:
      return null;
  }
}

/**
 * Books one strike. While a cooldown exists a strike is a late one, of an attempt launched before: it may move
 * the end of a cooldown nobody is probing, and only to a stated minimum (G3).
 */
export function applyStrike(
  health: ProviderHealth,
  strike: { readonly reason: CooldownReason; readonly notBeforeMs: number },
  attempt: AttemptId,
): ProviderHealth {
  if (health.cooldown !== null) {
    if (health.probe !== null || strike.notBeforeMs <= health.cooldown.untilMs) return health;
    return {
      ...health,
      derived: false,
      cooldown: { ...health.cooldown, untilMs: strike.notBeforeMs, openedBy: attempt, explicit: true },
    };
  }
  return {
    ...health,
    strikes: health.strikes + 1,
    strikeReason: strike.reason,
    notBeforeMs: Math.max(health.notBeforeMs, strike.notBeforeMs),
  };
}

/** True when leaving this provider now opens its cooldown: two strikes, or one that stated more than a minute. */
export function shouldCool(health: ProviderHealth, nowMs: number): boolean {
  if (health.cooldown !== null) return false;
  return health.strikes >= STRIKES_TO_COOL ||
    (health.strikes > 0 && health.notBeforeMs - nowMs > LONGEST_STEP_MS);
}

export function openCooldown(
  health: ProviderHealth,
  provider: ProviderId,
  openedBy: AttemptId,
  seed: number,
  nowMs: number,
): ProviderHealth {
  const stepped = nowMs + ladderMs(seed, provider, 0, LONGEST_STEP_MS);
  const generation = health.generation + 1;
  return {
    ...health,
    derived: false,
    generation,
    cooldown: {
      untilMs: Math.max(stepped, health.notBeforeMs),
      reason: health.strikeReason,
      openedAtMs: nowMs,
      openedBy,
      generation,
      level: 0,
      explicit: health.notBeforeMs > stepped,
    },
  };
}

/**
 * Stands for accounts that are all blocked by quota until then (C4). Never replaces a cooldown of strikes; one that
 * was derived before ends earlier when what blocks an account does.
 */
export function openDerivedCooldown(
  health: ProviderHealth,
  untilMs: number,
  reason: "rate_limited" | "usage_window_exhausted",
  openedBy: AttemptId,
  nowMs: number,
): ProviderHealth {
  const { cooldown, derived, probe } = health;
  if (cooldown !== null) {
    const endsEarlier = derived && probe === null && untilMs < cooldown.untilMs;
    return endsEarlier ? { ...health, cooldown: { ...cooldown, untilMs, reason } } : health;
  }
  const generation = health.generation + 1;
  return {
    ...health,
    derived: true,
    generation,
    cooldown: { untilMs, reason, openedAtMs: nowMs, openedBy, generation, level: 0, explicit: false },
  };
}

/** An account came back by other means than time: what was derived no longer holds. A leased gate is left to its probe. */
export function dropDerivedCooldown(health: ProviderHealth): ProviderHealth {
  if (!health.derived || health.probe !== null) return health;
  return { ...health, cooldown: null, derived: false };
}

export function leaseProviderProbe(
  health: ProviderHealth,
  attempt: AttemptId,
  untilMs: number,
  nowMs: number,
): ProviderHealth {
  const generation = health.generation + 1;
  return {
    ...health,
    generation,
    probe: { attempt, leasedAtMs: nowMs, leaseUntilMs: untilMs, generation },
  };
}

/** What an outcome proves about the gate its attempt was testing (state-machine-facts 3.4). */
export type ProbeVerdict = "answered" | "failed" | "unknown";

export function judgeProviderProbe(outcome: Outcome): ProbeVerdict {
  switch (outcome.kind) {
    case "request_fault":
      // A request we could not word for this provider was never sent.
      return outcome.origin === "local" ? "unknown" : "answered";
    case "success":
    case "unauthorized":
    case "credential_dead":
    case "account_pause":
    case "credits":
    case "model_unsupported":
      return "answered";
    case "limited":
      return outcome.strike === true ? "failed" : "answered";
    case "no_response":
    case "edge_block":
      return "failed";
    case "transient":
      if (outcome.cause === "refresh" || outcome.cause === "egress_proxy") return "unknown";
      return outcome.strike ? "failed" : "answered";
    case "incomplete":
    case "refresh_dead":
    case "local_limit":
    case "cancelled":
      return "unknown";
    default: {
      const missing: never = outcome;
      throw new Error(`Cannot judge outcome ${JSON.stringify(missing)}`);
    }
  }
}

/** Settles the lease, if this attempt holds it; results of anybody else change nothing (P20). */
export function settleProviderProbe(
  health: ProviderHealth,
  provider: ProviderId,
  attempt: AttemptId,
  outcome: Outcome,
  seed: number,
  nowMs: number,
): ProviderHealth {
  if (health.probe?.attempt !== attempt || health.cooldown === null) return health;
  switch (judgeProviderProbe(outcome)) {
    case "answered":
      return closeProviderGate(health, attempt);
    case "unknown":
      return { ...health, probe: null };
    case "failed": {
      const strike = readStrike(outcome);
      const level = health.cooldown.level + 1;
      const stepped = nowMs + ladderMs(seed, provider, level, LONGEST_STEP_MS);
      const statedMs = strike?.notBeforeMs ?? 0;
      return {
        ...health,
        derived: false,
        probe: null,
        strikes: health.strikes + 1,
        strikeReason: strike?.reason ?? health.strikeReason,
        cooldown: {
          ...health.cooldown,
          untilMs: Math.max(stepped, statedMs),
          reason: strike?.reason ?? health.cooldown.reason,
          openedBy: attempt,
          level,
          explicit: statedMs > stepped,
        },
      };
    }
  }
}

/** The probe's owner saw real output (C26): traffic flows, strikes and level start anew. */
export function closeProviderGate(health: ProviderHealth, attempt: AttemptId): ProviderHealth {
  if (health.probe?.attempt !== attempt) return health;
  return { ...HEALTHY_PROVIDER, generation: health.generation };
}

/** Any success: consecutive failures end. A cooldown is its probe's business. */
export function forgetStrikes(health: ProviderHealth): ProviderHealth {
  if (health.strikes === 0 && health.notBeforeMs === 0) return health;
  return { ...health, strikes: 0, notBeforeMs: 0 };
}

export function isDurableCooldown(cooldown: ProviderCooldown, derived: boolean): boolean {
  if (derived) return false;
  return cooldown.explicit || cooldown.untilMs - cooldown.openedAtMs >= DURABLE_COOLDOWN_MS;
}
