/** What stands against a launch now (state-machine-facts 3.3, steps 3 and 4): used for launches, and for their absence. */
import type { AccountOracle } from "../oracle/account_oracle.ts";
import type { Oracle } from "../oracle/oracle.ts";
import { saysSpent } from "../oracle/quota_rules.ts";
import type { RequestOracle, RouteOracle } from "../oracle/request_oracle.ts";

const HALF_HOUR_MS = 30 * 60_000;

export interface Objection {
  /** The invariant a launch would break. */
  readonly id: string;
  readonly reason: string;
}

/** @returns null when the account may be launched on this route, whatever the request did before. */
export function findObjection(
  oracle: Oracle,
  account: AccountOracle,
  route: RouteOracle,
  nowMs: number,
): Objection | null {
  if (account.isRemoved) return { id: "P3", reason: "is removed" };
  const block = account.block(route.target.model, nowMs);
  if (block !== null) return { id: "P3", reason: `is blocked by ${block.kind}` };
  return findGateObjection(oracle, route, nowMs);
}

export function findGateObjection(oracle: Oracle, route: RouteOracle, nowMs: number): Objection | null {
  switch (oracle.network.gate(nowMs)) {
    case "closed":
      return { id: "P2", reason: "is behind the network pause" };
    case "leased":
      return { id: "P1", reason: "is behind somebody else's network probe" };
  }
  switch (route.provider.gate(nowMs)) {
    case "closed":
      return { id: "P3", reason: "is behind its provider's cooldown" };
    case "leased":
      return { id: "P1", reason: "is behind somebody else's provider probe" };
  }
  return null;
}

/** Routes and accounts on which the request could be launched now as a new slot of its round. */
export function* openCandidates(
  oracle: Oracle,
  request: RequestOracle,
  nowMs: number,
): Generator<{ readonly account: AccountOracle; readonly route: RouteOracle }> {
  for (const route of request.routes) {
    if (request.left.has(route.provider)) continue;
    for (const account of request.snapshot.get(route.provider) ?? []) {
      if (request.slots.has(account) || findObjection(oracle, account, route, nowMs) !== null) continue;
      yield { account, route };
    }
  }
}

/** Ruling 1: whether a deadline may be tested by this launch. */
export function findRecheckObjection(
  oracle: Oracle,
  account: AccountOracle,
  model: string | null,
  nowMs: number,
): string | null {
  if (!oracle.settings.quota.recheck) return "rechecks are off";
  if (!account.isBlockedByDeadlineAlone(model, nowMs)) return "more than a deadline blocks it";
  const { reading } = account.park;
  if (reading === null || saysSpent(reading) !== false) return "no page shows headroom";
  if (reading.observedAtMs <= account.deadline!.writtenAtMs) return "the page is older than the deadline";
  const isSpaced = account.recheckedAtMs === 0 || account.recheckedAtMs + HALF_HOUR_MS <= nowMs;
  return isSpaced ? null : "it was rechecked within half an hour";
}
