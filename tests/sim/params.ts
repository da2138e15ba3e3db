/** Everything one run depends on, drawn from its seed alone and printed when the run fails. */
import type { Account, AccountId, RetryPolicy, Target } from "../../lib/core/domain.ts";
import { hash32, hashUnit } from "../../lib/core/prng.ts";
import type { RecoveryPolicy } from "../../lib/core/sse_recovery.ts";
import type { RingConfig } from "../../lib/proxy/pool_runtime.ts";
import { Dice } from "./dice.ts";

export type StoreKind = "memory" | "sqlite";

/** How often things go wrong: mean gaps in ms, 0 = never in this run. */
export interface Faults {
  readonly accountGapMs: number;
  readonly providerGapMs: number;
  readonly outageGapMs: number;
  readonly tokenGapMs: number;
  readonly crashGapMs: number;
  readonly storeFaultShare: number;
  readonly pageGapMs: number;
  readonly operatorGapMs: number;
  readonly accountFileGapMs: number;
  readonly reloadGapMs: number;
  readonly clockJumpGapMs: number;
  /** Longest span a fault lasts, ms. */
  readonly longestMs: number;
}

/** Shares of the requests that have some property. */
export interface Mix {
  readonly once: number;
  readonly pinned: number;
  readonly idempotent: number;
  readonly streaming: number;
  readonly upgrade: number;
  readonly session: number;
  readonly cancelled: number;
  readonly pooled: number;
}

export interface SimParams {
  readonly seed: number;
  readonly store: StoreKind;
  readonly machineSeed: number;
  readonly providers: readonly string[];
  readonly accounts: readonly Account[];
  readonly models: readonly string[];
  /** Share of the accounts that are keys of one of two organisations. */
  readonly organisationShare: number;
  readonly policy: RetryPolicy;
  readonly quota: { readonly maxParkMs: number; readonly recheck: boolean };
  readonly routing: { readonly strategy: "round-robin" | "fill-first"; readonly sessionTtlMs: number };
  readonly recoveryAttempts: number;
  readonly recovery: RecoveryPolicy;
  readonly pools: readonly RingConfig[];
  readonly tenants: number;
  readonly sessions: number;
  readonly requests: number;
  readonly meanGapMs: number;
  readonly attemptTimeoutMs: number;
  /** Some restarts find an earlier time than the one before them. */
  readonly setsClockBack: boolean;
  readonly mix: Mix;
  readonly faults: Faults;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

export function drawParams(seed: number, store: StoreKind): SimParams {
  const dice = new Dice(seed, "params");
  const providers = ["codex", "claude", "zai", "lab"].slice(
    0,
    dice.weighted([[4, 1], [3, 2], [2, 3], [1, 4]]),
  );
  const models = ["gpt-5.5", "opus-4-8", "glm-5.2"].slice(0, dice.int(1, 3));
  const recoveryAttempts = dice.chance(0.4) ? dice.int(1, 3) : 0;
  return {
    seed,
    store,
    machineSeed: dice.int(0, 1_000_000),
    providers,
    accounts: drawAccounts(dice, providers),
    models,
    organisationShare: dice.pick([0, 0, 0.5, 0.9]),
    policy: drawPolicy(dice),
    quota: { maxParkMs: dice.pick([1, 5, 30]) * MINUTE_MS, recheck: dice.chance(0.25) },
    routing: {
      strategy: dice.chance(0.75) ? "round-robin" : "fill-first",
      sessionTtlMs: dice.pick([2 * MINUTE_MS, 10 * MINUTE_MS, 60 * MINUTE_MS]),
    },
    recoveryAttempts,
    recovery: {
      maxRetryWindowMs: dice.pick([2, 20, 60]) * SECOND_MS,
      initialBackoffMs: dice.pick([50, 250]),
      maxBackoffMs: dice.pick([500, 2_000]),
    },
    pools: drawPools(dice, providers, models),
    tenants: dice.int(1, 3),
    sessions: dice.int(1, 6),
    requests: dice.int(30, 120),
    meanGapMs: dice.span(80, 30_000),
    attemptTimeoutMs: dice.pick([0, 5 * SECOND_MS, 60 * SECOND_MS, 600 * SECOND_MS]),
    setsClockBack: dice.chance(0.15),
    mix: drawMix(dice),
    faults: drawFaults(dice),
  };
}

/** The organisation an account's limits belong to; null = its own. */
export function organisationOf({ seed, organisationShare }: SimParams, account: AccountId): string | null {
  if (hashUnit(seed, "organised", account) >= organisationShare) return null;
  return `org-${hash32(seed, "organisation", account) % 2}`;
}

function drawAccounts(dice: Dice, providers: readonly string[]): Account[] {
  const count = Math.max(
    dice.chance(0.1) ? 1 : providers.length,
    dice.weighted([[3, 1], [3, 2], [3, dice.int(3, 5)], [1, dice.int(6, 12)]]),
  );
  const accounts: Account[] = [];
  for (let at = 0; at < count; at++) {
    const provider = at < providers.length ? providers[at]! : dice.pick(providers);
    const id = `${provider}-${dice.int(10, 99)}${at}`;
    accounts.push({ id, provider, fingerprint: `${id}.1`, enabled: true, refreshable: dice.chance(0.75) });
  }
  return accounts;
}

export function drawPolicy(dice: Dice): RetryPolicy {
  return {
    requestRetry: dice.weighted([[1, 0], [1, 1], [1, 2], [4, 3], [1, 5]]),
    maxRetryCredentials: dice.weighted([[4, 0], [1, 1], [1, 2], [1, 3]]),
    maxRetryIntervalMs: dice.weighted([[1, 0], [2, 5 * SECOND_MS], [5, 30 * SECOND_MS], [1, 60 * SECOND_MS], [
      1,
      300 * SECOND_MS,
    ]]),
  };
}

/** Rings over some of the providers; a member may come twice with different models. */
export function drawPools(dice: Dice, providers: readonly string[], models: readonly string[]): RingConfig[] {
  const pools: RingConfig[] = [];
  for (let at = dice.int(0, 2); at > 0; at--) {
    const target = (): Target => ({ provider: dice.pick(providers), model: dice.pick(models) });
    const members = Array.from({ length: dice.int(1, 4) }, () => ({ ...target(), weight: dice.int(1, 4) }));
    pools.push({ name: `pool-${at}`, members, fallback: dice.chance(0.4) ? [target()] : [] });
  }
  return pools;
}

function drawMix(dice: Dice): Mix {
  return {
    once: dice.pick([0, 0.1, 0.3]),
    pinned: dice.pick([0, 0.05, 0.2]),
    idempotent: dice.pick([0, 0.3, 0.8]),
    streaming: dice.pick([0.2, 0.6, 0.9]),
    upgrade: dice.pick([0, 0.1]),
    session: dice.pick([0.2, 0.6, 0.9]),
    cancelled: dice.pick([0, 0.05, 0.25]),
    pooled: dice.pick([0, 0.3]),
  };
}

/** Each fault is off in some runs, so that no two always come together. */
function drawFaults(dice: Dice): Faults {
  const sometimes = (share: number, fromMs: number, toMs: number) =>
    dice.chance(share) ? dice.span(fromMs, toMs) : 0;
  return {
    accountGapMs: sometimes(0.85, 2 * SECOND_MS, 5 * MINUTE_MS),
    providerGapMs: sometimes(0.6, 5 * SECOND_MS, 10 * MINUTE_MS),
    outageGapMs: sometimes(0.4, 30 * SECOND_MS, 20 * MINUTE_MS),
    tokenGapMs: sometimes(0.4, 30 * SECOND_MS, 10 * MINUTE_MS),
    crashGapMs: sometimes(0.4, 10 * SECOND_MS, 15 * MINUTE_MS),
    storeFaultShare: dice.chance(0.2) ? 0.3 : 0,
    pageGapMs: sometimes(0.6, 1 * SECOND_MS, 5 * MINUTE_MS),
    operatorGapMs: sometimes(0.4, 10 * SECOND_MS, 10 * MINUTE_MS),
    accountFileGapMs: sometimes(0.4, 10 * SECOND_MS, 10 * MINUTE_MS),
    reloadGapMs: sometimes(0.3, 20 * SECOND_MS, 10 * MINUTE_MS),
    clockJumpGapMs: sometimes(0.2, 1 * MINUTE_MS, 10 * MINUTE_MS),
    longestMs: dice.span(20 * SECOND_MS, 30 * MINUTE_MS),
  };
}
