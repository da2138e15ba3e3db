/** How the end of an attempt is taken into the oracle: booked now, made good on the same route, or nobody's fault. */
import type { Outcome } from "../../../lib/core/outcome.ts";
import { event, framed, type PoolEvent } from "../checks/pool_event.ts";
import { bookCredential } from "../oracle/account_rules.ts";
import { bookOutcome, trialOf } from "../oracle/booking.ts";
import type { Oracle } from "../oracle/oracle.ts";
import type { OpenLaunch, RequestOracle } from "../oracle/request_oracle.ts";
import { must } from "../violation.ts";

/**
 * Takes the end of an attempt of an open or committed request.
 *
 * @param recovers  the pool means to send it again on the same route.
 * @returns the event under which the pool is then compared.
 */
export function takeEnd(
  oracle: Oracle,
  request: RequestOracle,
  open: OpenLaunch,
  outcome: Outcome,
  heldLease: boolean,
  recovers: boolean,
  nowMs: number,
): PoolEvent {
  const name = `${open.launch.attempt} ended: ${outcome.kind}`;
  if (outcome.kind === "cancelled") {
    if (request.phase === "open") request.phase = "cancelled";
    return framed(name, "P11");
  }
  request.outcomes.set(open.account, outcome);
  const { refreshable } = open.account.account;
  const book = () => bookOutcome(oracle, request, open, outcome, heldLease, nowMs);
  if (request.phase === "committed") {
    // A first 401 stays pending; the next request repairs it.
    if (outcome.kind !== "unauthorized" || !refreshable) book();
    return event(name);
  }
  if (outcome.kind === "success") {
    request.isServed = true;
    book();
    return event(name);
  }
  if (outcome.kind === "request_fault") return framed(name, "P14");
  if (!request.isReplayable) {
    takeOnceOnly(request, open, outcome, book, nowMs);
    return event(name);
  }
  if (outcome.kind === "no_response" && outcome.pooled && !request.repeated.has(open.account)) {
    request.repeated.add(open.account);
    return framed(name, "P21");
  }
  if (outcome.kind === "unauthorized" && refreshable && !request.repaired.has(open.account)) {
    request.repaired.add(open.account);
    request.repair = open;
    return framed(name, "P15");
  }
  if (recovers) {
    requireRecoverable(request, open, outcome);
    request.deferred = { open, outcome };
    return framed(name, "P21");
  }
  if (outcome.kind === "incomplete") return framed(name, "P21");
  book();
  return event(name);
}

/** Row 52: one launch; what it proves is booked, and a 401 that could be repaired rests in memory. */
function takeOnceOnly(
  request: RequestOracle,
  open: OpenLaunch,
  outcome: Outcome,
  book: () => void,
  nowMs: number,
): void {
  must(
    request.launches.length <= 1,
    "P13",
    () => `${request.spec.id} was sent ${request.launches.length} times`,
  );
  if (outcome.kind === "incomplete") return;
  if (outcome.kind === "unauthorized" && open.account.account.refreshable) {
    bookCredential(open.account, "credential_invalid", trialOf(open), nowMs);
  } else book();
}

function requireRecoverable(request: RequestOracle, open: OpenLaunch, outcome: Outcome): void {
  const { launch } = open;
  const mayRecover = outcome.kind === "incomplete" ||
    ((outcome.kind === "transient" || outcome.kind === "no_response") && outcome.recoverable);
  must(!request.isRecoveryEnded, "P21", () => `${launch.attempt} is recovered, but is withheld no longer`);
  must(mayRecover, "P21", () => `${launch.attempt} is recovered from ${outcome.kind}`);
  must(
    launch.probe === "none" && launch.trial === "none",
    "P1",
    () => `${launch.attempt} is recovered, but holds a probe`,
  );
  must(
    request.recoveries < request.spec.recoveryAttempts,
    "P5",
    () => `${launch.attempt} is recovered once too often`,
  );
}
