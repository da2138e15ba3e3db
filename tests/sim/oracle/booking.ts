/** How a finished attempt is booked on account, provider and network: the order and the exceptions of section 4. */
import type { AttemptId } from "../../../lib/core/domain.ts";
import type { Outcome } from "../../../lib/core/outcome.ts";
import type { AccountOracle } from "./account_oracle.ts";
import { bookAccount, type Trial } from "./account_rules.ts";
import type { Oracle } from "./oracle.ts";
import { strikeOf } from "./provider_oracle.ts";
import type { OpenLaunch, RequestOracle } from "./request_oracle.ts";

const LADDER_CAP_MS = 60_000;

/** Leases end first, and say by what. @returns whether the provider's probe was this attempt. */
export function settleLeases(oracle: Oracle, open: OpenLaunch, outcome: Outcome, nowMs: number): boolean {
  const { attempt } = open.launch;
  const held = open.provider.lease?.attempt === attempt;
  if (open.account.trial === attempt) open.account.trial = null;
  oracle.network.settle(attempt, outcome, nowMs);
  open.provider.settle(attempt, outcome, nowMs);
  return held;
}

export function bookOutcome(
  oracle: Oracle,
  request: RequestOracle,
  open: OpenLaunch,
  outcome: Outcome,
  heldLease: boolean,
  nowMs: number,
): void {
  const { account, provider, launch } = open;
  if (outcome.kind === "success") {
    bookAccountOnly(oracle, open, outcome, nowMs);
    if (launch.trial === "recheck") account.deadline = null;
    provider.success();
    oracle.network.success(nowMs);
    return;
  }
  if (outcome.kind === "no_response") {
    // While a pause exists it is nobody's failure (C14, G4).
    if (oracle.network.pause !== null) return;
    const outage = oracle.network.noResponse(provider.id, launch.attempt, nowMs);
    if (outage !== null) {
      withdraw(oracle, outage, nowMs);
      return;
    }
  }
  bookAccountOnly(oracle, open, outcome, nowMs);
  if (strikeOf(outcome) === null) return;
  const strikes = (request.strikes.get(provider) ?? 0) + 1;
  request.strikes.set(provider, strikes);
  if (outcome.kind === "edge_block") {
    request.left.add(provider);
    const stepMs = Math.min(LADDER_CAP_MS, 2_000 * 2 ** (strikes - 1));
    request.retryAtMs.set(provider, {
      fromMs: nowMs + stepMs,
      toMs: nowMs + Math.min(LADDER_CAP_MS, stepMs + 2_000),
    });
  }
  if (!heldLease) provider.strike(outcome);
}

/** The account's column, and that of those which share its limits. */
export function bookAccountOnly(oracle: Oracle, open: OpenLaunch, outcome: Outcome, nowMs: number): void {
  const { account, provider } = open;
  bookOne(oracle, open, account, outcome, nowMs);
  if (account.limitGroup === null || (outcome.kind !== "limited" && outcome.kind !== "credits")) return;
  for (const other of provider.accounts) {
    if (other !== account && other.limitGroup === account.limitGroup) {
      bookOne(oracle, open, other, outcome, nowMs);
    }
  }
}

/** What is new about an account may leave its provider with nobody that has quota (C4). */
function bookOne(
  oracle: Oracle,
  open: OpenLaunch,
  account: AccountOracle,
  outcome: Outcome,
  nowMs: number,
): void {
  const { provider } = open;
  const ladderBefore = account.ladder;
  const trial = account === open.account
    ? trialOf(open)
    : { ...trialOf(open), fingerprint: account.account.fingerprint };
  bookAccount(account, outcome, trial, oracle.ladderCapMs, nowMs);
  const isNews = outcome.kind === "limited" || account.ladder !== ladderBefore;
  // One that was removed is no longer among those whose quota counts.
  if (!isNews || account.isRemoved || provider.cooldown !== null || !isOutOfQuota(account, nowMs)) return;
  provider.closeForQuota("usage_window_exhausted", nowMs);
}

function isOutOfQuota(account: AccountOracle, nowMs: number): boolean {
  const kind = account.block(null, nowMs)?.kind;
  return kind === "deadline" || kind === "park" || kind === "inferred";
}

export function trialOf({ launch, fingerprint }: OpenLaunch): Trial {
  return { attempt: launch.attempt, model: launch.model, launchedAtMs: launch.launchedAtMs, fingerprint };
}

/** The pause opened: what led there was the outage's, not the accounts' (C14). */
function withdraw(oracle: Oracle, attempts: ReadonlySet<AttemptId>, nowMs: number): void {
  for (const account of oracle.accounts.values()) {
    const { ladder } = account;
    if (ladder?.reason !== "no_response" || ladder.attempt === null || !attempts.has(ladder.attempt)) {
      continue;
    }
    account.version++;
    account.ladder = ladder.strikes > 1
      ? { ...ladder, strikes: ladder.strikes - 1, untilMs: Math.min(ladder.untilMs, nowMs), bounds: null }
      : null;
  }
}
