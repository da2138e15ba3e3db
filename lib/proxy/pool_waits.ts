/** Waits between rounds: how long, in which stretches, and who is counted as waiting for whom. */
import { paceMs } from "../core/backoff.ts";
import { hashUnit } from "../core/prng.ts";
import type { Step } from "../core/retry_plan.ts";
import { nearestReady, PROBE_POLL_MS, type Readiness } from "./pool_outlook.ts";
import type { PoolContext } from "./pool_context.ts";
import type { RequestPlan } from "./request_plan.ts";

/** Begins a wait for the account that is ready first; it never lasts longer than `limitMs` (C10). */
export function startWait(
  context: PoolContext,
  plan: RequestPlan,
  ready: Readiness,
  limitMs: number,
  nowMs: number,
): Step {
  const capAtMs = nowMs + limitMs;
  plan.wait = {
    startedAtMs: nowMs,
    capAtMs,
    untilMs: wakeMs(context, plan, ready, capAtMs),
    reason: ready.probed ? "probe" : "cooldown",
    slot: ready.slot,
  };
  ready.slot.waiting++;
  return waitStep(plan);
}

/** A wait under way: sleep on, sleep another stretch, or open the next round (`null`). */
export function continueWait(context: PoolContext, plan: RequestPlan, nowMs: number): Step | null {
  const { wait } = plan;
  if (wait === null) return null;
  if (nowMs < wait.untilMs) return waitStep(plan);
  const ready = nearestReady(context, plan, nowMs);
  if (ready !== null && ready.readyAtMs > nowMs && ready.readyAtMs <= wait.capAtMs) {
    // Somebody who woke earlier found it closed again: still the same wait, within the same limit.
    plan.wait = {
      ...wait,
      untilMs: wakeMs(context, plan, ready, wait.capAtMs),
      reason: ready.probed ? "probe" : "cooldown",
    };
    return waitStep(plan);
  }
  // Still out after the longest wait there is: the probe hangs, and a second wait would not pay.
  if (ready?.probed) plan.probeHangs = true;
  endWait(plan, nowMs);
  plan.openRound();
  return null;
}

export function endWait(plan: RequestPlan, nowMs: number): void {
  const { wait } = plan;
  if (wait === null) return;
  plan.wait = null;
  wait.slot.waiting--;
  plan.record.waits.push({ fromMs: wait.startedAtMs, untilMs: nowMs, reason: wait.reason });
}

function waitStep(plan: RequestPlan): Step {
  const { untilMs, reason } = plan.wait!;
  return { kind: "wait", untilMs, reason };
}

function wakeMs(context: PoolContext, plan: RequestPlan, ready: Readiness, capAtMs: number): number {
  const request = plan.spec.id;
  if (ready.probed) {
    const spreadMs = Math.floor(hashUnit(context.seed, "poll", request) * PROBE_POLL_MS);
    return Math.min(ready.readyAtMs + spreadMs, capAtMs);
  }
  return ready.readyAtMs + paceMs(context.seed, request, ready.slot.waiting, capAtMs - ready.readyAtMs);
}
