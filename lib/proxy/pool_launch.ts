/**
 * One launch: its id is minted, the failure it follows is paid for, its leases are taken, all before it is sent.
 */
import type { AttemptRecord } from "../core/decision.ts";
import { charge, mintAttempt } from "../core/ledger.ts";
import { leaseNetworkProbe } from "../core/network_pause.ts";
import type { Outcome } from "../core/outcome.ts";
import { leaseProviderProbe, leaseUntilMs } from "../core/provider_health.ts";
import type { Launch, Step } from "../core/retry_plan.ts";
import { openRecovery } from "../core/sse_recovery.ts";
import type { Choice } from "./pool_choice.ts";
import type { PoolContext } from "./pool_context.ts";
import type { RequestPlan } from "./request_plan.ts";

/** Records the launch and returns it; what is durable of it is flushed before anybody sees the step. */
export function launch(
  context: PoolContext,
  plan: RequestPlan,
  choice: Choice,
  cause: Launch["cause"],
  nowMs: number,
): Step {
  const { slot, route } = choice;
  const minted = mintAttempt(plan.ledger);
  plan.ledger = minted.ledger;
  chargeFailure(context, plan);
  const leased = choice.network || choice.provider || choice.trial !== "none";
  const untilMs = leased ? leaseUntilMs(plan.spec.attemptTimeoutMs, nowMs) : null;
  takeLeases(context, choice, minted.attempt, untilMs, nowMs);
  const made: Launch = {
    attempt: minted.attempt,
    counter: plan.ledger.counter,
    account: slot.account.id,
    provider: route.provider.slot.id,
    model: route.target.model,
    round: plan.round,
    cause,
    probe: choice.network ? "network" : choice.provider ? "provider" : choice.trial,
    trial: choice.trial,
    fresh: !plan.isReplayable || leased || cause === "unpooled_repeat",
    launchedAtMs: nowMs,
    leaseUntilMs: untilMs,
  };
  slot.inFlight++;
  plan.launchCount++;
  if (plan.recovery === null && plan.spec.recoveryAttempts > 0) {
    plan.recovery = openRecovery(plan.spec.recoveryAttempts, nowMs, context.settings.recovery);
  }
  plan.current = { launch: made, slot, route, fingerprint: slot.account.fingerprint };
  plan.record.attempts.push(openRecord(made));
  return { kind: "launch", launch: made };
}

/** Completes the record of an attempt. */
export function closeRecord(plan: RequestPlan, made: Launch, outcome: Outcome, nowMs: number): void {
  const record = plan.record.attempts.findLast((attempt) => attempt.id === made.attempt);
  if (record === undefined) return;
  record.endedAtMs = nowMs;
  record.outcome = outcome.code === "" || outcome.code === outcome.kind
    ? outcome.kind
    : `${outcome.kind}:${outcome.code}`;
  record.status = outcome.status;
  record.row = outcome.row;
}

/** The first launch is free and writes nothing; every other one charges the attempt it follows (2C.5). */
function chargeFailure(context: PoolContext, plan: RequestPlan): void {
  const failed = plan.uncharged;
  if (failed === null) return;
  plan.uncharged = null;
  const charged = charge(plan.ledger, failed);
  if (!charged.ok) throw new Error(`Cannot charge ${failed}: ${charged.reason}`);
  plan.ledger = charged.ledger;
  plan.ledgerWritten = true;
  context.records.push({ kind: "put_ledger", row: plan.ledger });
}

/** The network's probe outranks the provider's, whose gate then stays half-open and idle (3.3 step 6). */
function takeLeases(
  context: PoolContext,
  choice: Choice,
  attempt: string,
  untilMs: number | null,
  nowMs: number,
): void {
  if (untilMs === null) return;
  const { records } = context;
  const { slot } = choice;
  const provider = choice.route.provider.slot;
  if (choice.network) {
    records.setNetwork(leaseNetworkProbe(records.network, attempt, untilMs, nowMs));
  } else if (choice.provider) {
    records.setProvider(provider, leaseProviderProbe(provider.health, attempt, untilMs, nowMs));
  }
  if (choice.trial === "none") return;
  slot.trial = attempt;
  if (choice.trial === "recheck") {
    records.setHealth(slot, { ...slot.health, recheckedAtMs: nowMs }, nowMs);
  }
}

function openRecord(made: Launch): AttemptRecord {
  return {
    id: made.attempt,
    account: made.account,
    provider: made.provider,
    model: made.model,
    round: made.round,
    cause: made.cause,
    probe: made.probe,
    startedAtMs: made.launchedAtMs,
    endedAtMs: null,
    outcome: null,
    status: null,
    row: null,
  };
}
