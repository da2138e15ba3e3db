/** Whether one launch was allowed: gates, blocks, budgets, order (P1 to P5, P7, P11, P13, P26 to P28). */
import { parseAttemptId } from "../../../lib/core/domain.ts";
import type { Launch } from "../../../lib/core/retry_plan.ts";
import type { AccountOracle } from "../oracle/account_oracle.ts";
import type { Oracle } from "../oracle/oracle.ts";
import type { RequestOracle, RouteOracle } from "../oracle/request_oracle.ts";
import { must, violate } from "../violation.ts";
import { findGateObjection, findObjection, findRecheckObjection, openCandidates } from "./admission.ts";

const PROBE_LIMIT_MS = 120_000;
const GRACE_MS = 3_000;
/** Launches that stay on their slot's account. */
const SAME_SLOT: ReadonlySet<Launch["cause"]> = new Set([
  "repair",
  "recovery",
  "unpooled_repeat",
  "strip_state",
]);

export function requireLaunchAllowed(
  oracle: Oracle,
  request: RequestOracle,
  launch: Launch,
  nowMs: number,
): RouteOracle {
  const where = `${launch.attempt} (${launch.cause}) on ${launch.account}`;
  must(request.phase !== "committed", "P7", () => `${where} after the client's first byte`);
  must(request.phase === "open", "P11", () => `${where} after the request was ${request.phase}`);
  must(!request.isAnswered, "P14", () => `${where} after the last word`);
  must(
    request.isReplayable || request.launches.length === 0,
    "P13",
    () => `${where} of a request that is sent once`,
  );
  must(launch.launchedAtMs === nowMs, "P33", () => `${where} says it was launched at ${launch.launchedAtMs}`);
  const account = request.find(launch.account);
  if (account === null) violate("P3", `${where}, which the request does not know`);
  requireSlot(request, launch, account, where);
  requireBudgets(request, launch, where);
  const route = findRoute(request, launch, account, where);
  requireAdmitted(oracle, request, launch, account, route, nowMs, where);
  requireLease(oracle, request, launch, route, nowMs, where);
  return route;
}

function requireSlot(request: RequestOracle, launch: Launch, account: AccountOracle, where: string): void {
  must(launch.round >= request.round, "P5", () => `${where} goes back to round ${launch.round}`);
  if (SAME_SLOT.has(launch.cause)) {
    must(
      request.last?.account === account,
      "P4",
      () => `${where} leaves its slot on ${request.last?.account.id}`,
    );
    must(launch.round === request.round, "P4", () => `${where} opens a round`);
    return;
  }
  const isSlot = launch.round === request.round && request.slots.has(account);
  must(!isSlot, "P4", () => `${where} is a slot for the second time in round ${launch.round}`);
}

function requireBudgets(request: RequestOracle, launch: Launch, where: string): void {
  const { requestRetry, maxRetryCredentials } = request.loosest;
  must(launch.round <= requestRetry, "P5", () => `${where} in round ${launch.round} of ${requestRetry}`);
  const slots = launch.round === request.round ? request.slots.size : 0;
  must(
    SAME_SLOT.has(launch.cause) || maxRetryCredentials === 0 || slots < maxRetryCredentials,
    "P5",
    () => `${where} is slot ${slots + 1} of ${maxRetryCredentials}`,
  );
  must(launch.counter <= request.bound, "P5", () => `${where} is one of ${request.bound} launches at most`);
  if (launch.cause === "recovery") {
    must(request.recoveries < request.spec.recoveryAttempts, "P5", () => `${where} is one recovery too many`);
  }
  if (launch.cause === "strip_state") must(!request.stripped, "P5", () => `${where} strips twice`);
  const parsed = parseAttemptId(launch.attempt);
  must(parsed?.counter === launch.counter, "P26", () => `${where} has counter ${launch.counter}`);
}

function findRoute(
  request: RequestOracle,
  launch: Launch,
  account: AccountOracle,
  where: string,
): RouteOracle {
  const routes = request.routes.filter((route) =>
    route.provider.id === launch.provider && route.target.model === launch.model
  );
  const route = routes.find(({ fallback }) => !fallback) ?? routes[0];
  if (route === undefined) {
    violate("P3", `${where} for ${launch.provider}/${launch.model}, which nobody asked for`);
  }
  must(
    account.account.provider === launch.provider || account.isRemoved,
    "P3",
    () => `${where} at ${launch.provider}`,
  );
  return route;
}

function requireAdmitted(
  oracle: Oracle,
  request: RequestOracle,
  launch: Launch,
  account: AccountOracle,
  route: RouteOracle,
  nowMs: number,
  where: string,
): void {
  if (launch.trial !== "none") {
    requireTrial(oracle, request, launch, account, route, nowMs, where);
    return;
  }
  const objection = findObjection(oracle, account, route, nowMs);
  if (objection !== null) violate(objection.id, `${where} ${objection.reason}`);
  if (SAME_SLOT.has(launch.cause)) return;
  const left = launch.round === request.round && request.left.has(route.provider);
  must(!left, "TABLE", () => `${where} walks on through a provider that showed a wall`);
  if (!route.fallback) return;
  // C34: a fallback is for when nothing else is left.
  for (const candidate of openCandidates(oracle, request, nowMs)) {
    if (candidate.route.fallback) continue;
    violate("TABLE", `${where} is a fallback although ${candidate.account.id} may serve`);
  }
}

/** One attempt tests a block of the account itself, when its own rule says so (rulings 1 and 20). */
function requireTrial(
  oracle: Oracle,
  request: RequestOracle,
  launch: Launch,
  account: AccountOracle,
  route: RouteOracle,
  nowMs: number,
  where: string,
): void {
  must(!account.isRemoved && account.account.enabled, "P3", () => `${where} is no account to test`);
  must(account.trial === null, "P1", () => `${where} while ${account.trial} tests the same account`);
  if (launch.trial === "credits") {
    must(
      account.isCreditsTrialDue(launch.model, nowMs) || SAME_SLOT.has(launch.cause),
      "P3",
      () => `${where} tests credits that are not due`,
    );
    const objection = findGateObjection(oracle, route, nowMs);
    // What stands for accounts without quota says nothing of one without credits.
    const isForQuota = objection?.id === "P3" && route.provider.cooldown!.derived;
    if (objection !== null && !isForQuota) violate(objection.id, `${where} ${objection.reason}`);
    return;
  }
  if (!SAME_SLOT.has(launch.cause)) {
    const objection = findRecheckObjection(oracle, account, launch.model, nowMs);
    must(objection === null, "P3", () => `${where} rechecks, but ${objection}`);
    for (const candidate of openCandidates(oracle, request, nowMs)) {
      violate("P3", `${where} rechecks although ${candidate.account.id} may serve`);
    }
  }
  const gate = route.provider.gate(nowMs);
  must(gate !== "leased", "P1", () => `${where} is behind somebody else's provider probe`);
  must(
    gate !== "closed" || route.provider.cooldown!.derived,
    "P3",
    () => `${where} is behind a cooldown of strikes`,
  );
}

/** P1, P2, P35: a gate that is over is leased by exactly the launch that goes through it, for a bounded time. */
function requireLease(
  oracle: Oracle,
  request: RequestOracle,
  launch: Launch,
  route: RouteOracle,
  nowMs: number,
  where: string,
): void {
  const network = oracle.network.gate(nowMs) === "probe";
  const provider = !network && route.provider.gate(nowMs) === "probe";
  must(
    (launch.probe === "network") === network,
    "P2",
    () => `${where} is ${network ? "no" : "a"} network probe`,
  );
  must(
    (launch.probe === "provider") === provider,
    "P1",
    () => `${where} is ${provider ? "no" : "a"} provider probe`,
  );
  const isProbe = network || provider || launch.trial !== "none";
  const timeoutMs = request.spec.attemptTimeoutMs;
  const limitMs = timeoutMs > 0 ? Math.min(timeoutMs, PROBE_LIMIT_MS) : PROBE_LIMIT_MS;
  const untilMs = isProbe ? nowMs + limitMs + GRACE_MS : null;
  must(
    launch.leaseUntilMs === untilMs,
    "P35",
    () => `${where} is leased until ${launch.leaseUntilMs}, not ${untilMs}`,
  );
  must(
    launch.fresh || (request.isReplayable && !isProbe),
    "P13",
    () => `${where} may go out on a pooled connection`,
  );
}
