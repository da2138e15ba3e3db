/** Waits, and giving up: never longer than allowed, never without need, never while somebody could serve (P12, P36). */
import type { Step } from "../../../lib/core/retry_plan.ts";
import type { Oracle } from "../oracle/oracle.ts";
import type { RequestOracle } from "../oracle/request_oracle.ts";
import { must, violate } from "../violation.ts";
import { findRecheckObjection, openCandidates } from "./admission.ts";

export function requireWaitAllowed(
  oracle: Oracle,
  request: RequestOracle,
  step: Extract<Step, { kind: "wait" }>,
  nowMs: number,
): void {
  must(request.phase === "open" && !request.isAnswered, "P7", () => `${request.spec.id} waits after its end`);
  must(step.untilMs > nowMs, "P12", () => `${request.spec.id} waits until a moment that is over`);
  if (step.reason === "recovery_backoff") {
    const first = request.launches[0]!;
    const endsAtMs = first.launchedAtMs + oracle.settings.recovery.maxRetryWindowMs;
    must(step.untilMs <= endsAtMs, "P5", () => `${request.spec.id} backs off beyond its recovery window`);
    return;
  }
  must(
    request.isReplayable || request.launches.length === 0,
    "P13",
    () => `${request.spec.id} waits to be sent again`,
  );
  const limitMs = Math.min(60_000, request.loosest.maxRetryIntervalMs);
  const startedAtMs = request.wait?.startedAtMs ?? nowMs;
  must(
    step.untilMs <= startedAtMs + limitMs,
    "P12",
    () => `${request.spec.id} waits ${step.untilMs - startedAtMs} ms, allowed are ${limitMs}`,
  );
  must(
    request.round < request.loosest.requestRetry,
    "P5",
    () => `${request.spec.id} waits for a round it has not`,
  );
}

/** P36 at every step: no account that may be launched is passed over for a wait or an answer. */
export function requireNobodyPassedOver(
  oracle: Oracle,
  request: RequestOracle,
  word: string,
  nowMs: number,
): void {
  if (!mayLaunchSlot(oracle, request)) return;
  for (const { account, route } of openCandidates(oracle, request, nowMs)) {
    // The request itself keeps away from a wall it met, also when others find it open again meanwhile.
    if ((request.retryAtMs.get(route.provider)?.toMs ?? 0) > nowMs) continue;
    violate("P36", `${request.spec.id} is told to ${word}, but ${account.id} may serve`);
  }
}

/** C10, 2A.4 step 8: an answer is given only when no further round could begin in time. */
export function requireNoRoundLeft(
  oracle: Oracle,
  request: RequestOracle,
  round: number,
  nowMs: number,
): void {
  if (!request.isReplayable || request.counter >= request.bound) return;
  if (round >= oracle.settings.policy.requestRetry || oracle.longestWaitMs === 0) return;
  const nearest = nearestReady(oracle, request, nowMs);
  must(
    nearest === null || nearest.atMs - nowMs > oracle.longestWaitMs,
    "P36",
    () =>
      `${request.spec.id} gives up in round ${round}, but ${nearest!.account} is ready in ${
        nearest!.atMs - nowMs
      } ms`,
  );
}

function mayLaunchSlot(oracle: Oracle, request: RequestOracle): boolean {
  if (request.counter >= request.bound) return false;
  if (!request.isReplayable && request.launches.length > 0) return false;
  const { maxRetryCredentials } = oracle.settings.policy;
  return maxRetryCredentials === 0 || request.slots.size < maxRetryCredentials;
}

/**
 * The latest moment at which the first account may certainly be tried; null when no clock brings one back. Whether
 * somebody else's probe opens a gate in time is a guess, on which nobody has to wait twice.
 */
function nearestReady(
  oracle: Oracle,
  request: RequestOracle,
  nowMs: number,
): { readonly account: string; readonly atMs: number } | null {
  let best: { account: string; atMs: number } | null = null;
  const { pause, lease } = oracle.network;
  if (lease !== null) return null;
  for (const route of request.routes) {
    const { provider, target } = route;
    if (provider.lease !== null) continue;
    const gateMs = Math.max(
      pause?.untilMs ?? 0,
      provider.cooldown?.untilMs ?? 0,
      request.retryAtMs.get(provider)?.toMs ?? 0,
    );
    for (const account of request.snapshot.get(provider) ?? []) {
      if (account.isRemoved) continue;
      const block = account.block(target.model, nowMs);
      if (block !== null && block.untilMs === null) continue;
      const atMs = Math.max(nowMs, gateMs, account.readyAtMs(target.model, nowMs));
      if (best === null || atMs < best.atMs) best = { account: account.id, atMs };
    }
  }
  return best;
}

/** Whether a recheck could still go out: then an answer is not yet the last word of ruling 1. */
export function mayRecheck(oracle: Oracle, request: RequestOracle, nowMs: number): boolean {
  return request.routes.some(({ provider, target }) =>
    (request.snapshot.get(provider) ?? []).some((account) =>
      findRecheckObjection(oracle, account, target.model, nowMs) === null
    )
  );
}
