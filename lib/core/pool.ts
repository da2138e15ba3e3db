/**
 * The pool as the machine holds it: one slot an account, one a provider.
 *
 * Slots are the only mutable things of the core. `proxy/pool_runtime.ts` alone writes to them; everybody else
 * reads. Copying ten thousand accounts for each decision would cost more than deciding.
 */
import { HEALTHY } from "./account_health.ts";
import type { Account, AccountId, AttemptId, ModelId, ProviderId } from "./domain.ts";
import { accountReadyAtMs, strongestBlock } from "./eligibility.ts";
import { HEALTHY_PROVIDER } from "./provider_health.ts";
import type { AccountHealth, ProviderHealth } from "./records.ts";

export interface AccountSlot {
  account: Account;
  health: AccountHealth;
  /** `certainlyBlockedUntilMs` of the health above, kept beside it for the scan. */
  blockedUntilMs: number;
  inFlight: number;
  /** Requests sleeping until this account may serve. */
  waiting: number;
  /** The one attempt testing a block of this account (credits, recheck), or null. */
  trial: AttemptId | null;
  /** No longer configured: leaves every request that still knows it. */
  removed: boolean;
  /** Accounts of one provider with the same word share their limits and their credit: keys of one organisation. */
  limitGroup: string | null;
}

export interface ProviderSlot {
  readonly id: ProviderId;
  health: ProviderHealth;
  /** Sorted by id; replaced as a whole, so that a request's snapshot stays what it was. */
  accounts: readonly AccountSlot[];
  /** Where the rotation goes on. */
  cursor: number;
  /** Every account dead: kept to notice the moment it changes, for the audit. */
  circuitOpen: boolean;
}

export function newAccountSlot(account: Account): AccountSlot {
  return {
    account,
    health: HEALTHY,
    blockedUntilMs: account.enabled ? 0 : Number.POSITIVE_INFINITY,
    inFlight: 0,
    waiting: 0,
    trial: null,
    removed: false,
    limitGroup: null,
  };
}

export function newProviderSlot(id: ProviderId): ProviderSlot {
  return { id, health: HEALTHY_PROVIDER, accounts: [], cursor: 0, circuitOpen: false };
}

/** Why every account of a provider is dead (C7, C8), or `null` while one may still serve some day. */
export function readCircuit(provider: ProviderSlot): { readonly reason: "auth" | "credits" } | null {
  let dead = 0;
  let credits = 0;
  for (const { account, health } of provider.accounts) {
    if (!account.enabled) continue;
    if (health.credential !== null) dead++;
    else if (health.credits !== null) credits++;
    else return null;
  }
  if (dead + credits === 0) return null;
  return { reason: credits > 0 ? "credits" : "auth" };
}

/**
 * The moment the first account comes back when all that may serve are blocked by quota (C4), else `null`.
 *
 * Ladders do not count: they are the provider's strikes already. Neither do limits of one model.
 */
export function readQuotaClosure(
  provider: ProviderSlot,
  nowMs: number,
): { readonly untilMs: number; readonly reason: "rate_limited" | "usage_window_exhausted" } | null {
  let untilMs = Number.POSITIVE_INFINITY;
  let reason: "rate_limited" | "usage_window_exhausted" = "rate_limited";
  for (const { account, health } of provider.accounts) {
    if (health === HEALTHY && account.enabled) return null;
    const block = strongestBlock(health, account.enabled, null, nowMs);
    switch (block) {
      case "disabled":
      case "credential":
      case "credits":
        continue;
      case "deadline":
      case "park":
        reason = "usage_window_exhausted";
        break;
      case "inferred":
        if (health.inferred?.shape === "quota") reason = "usage_window_exhausted";
        break;
      default:
        return null;
    }
    untilMs = Math.min(untilMs, accountReadyAtMs(health, null, nowMs));
  }
  return Number.isFinite(untilMs) ? { untilMs, reason } : null;
}

/** Finds an account's place in a snapshot sorted by id. */
export function findSlot(accounts: readonly AccountSlot[], id: AccountId): AccountSlot | null {
  let low = 0;
  let high = accounts.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const slot = accounts[middle]!;
    if (slot.account.id === id) return slot;
    if (slot.account.id < id) low = middle + 1;
    else high = middle - 1;
  }
  return null;
}

/** True when nothing of the account itself speaks against selecting it now. */
export function isSelectable(slot: AccountSlot, model: ModelId | null, nowMs: number): boolean {
  if (slot.removed || slot.blockedUntilMs > nowMs) return false;
  return slot.health === HEALTHY || strongestBlock(slot.health, true, model, nowMs) === null;
}
