/**
 * A request's way into recovery, and out of it before its budget is spent (state-machine-facts 2D.2, rows 43 and 44).
 */
import type { RecoveryConfig } from "../config_types.ts";
import type { ClientProtocol } from "../core/domain.ts";
import type { RequestSpec } from "../core/retry_plan.ts";
import type { ProxyDeps } from "./deps.ts";
import type { RequestPlan } from "./pool_runtime.ts";
import { type FailedOpen, failedOpenNote, type RecoverySlot, type RecoverySlots } from "./recovery_slots.ts";

/** Takes a slot for a request that may be recovered. @returns the spec to begin it with; the slot, or null. */
export function enterRecovery(
  slots: RecoverySlots,
  config: RecoveryConfig,
  spec: RequestSpec,
  protocol: ClientProtocol,
): { readonly spec: RequestSpec; readonly slot: RecoverySlot | null } {
  if (config.attempts === 0 || spec.replay !== "replayable" || protocol === "raw") {
    return { spec, slot: null };
  }
  const slot = slots.tryAcquire(config.maxConcurrent);
  return slot === null
    ? { spec: { ...spec, notes: [failedOpenNote("no_slot")] }, slot }
    : { spec: { ...spec, recoveryAttempts: config.attempts }, slot };
}

interface Withholding {
  readonly plan: RequestPlan;
  readonly slot: RecoverySlot | null;
}

/**
 * @returns the slot under which this attempt's answer is withheld; null for one that streams.
 *
 * A probe's answer is withheld like any other (field case B037): that it is never made again (C28) is the pool's part.
 */
export function withholdingSlot({ slot }: Withholding): RecoverySlot | null {
  return slot !== null && slot.live ? slot : null;
}

/** From here on the request is served like any other. The slot is given back by whoever delivers what was held. */
export function failOpen(deps: ProxyDeps, { plan }: Withholding, why: FailedOpen): void {
  deps.pool.endRecovery(plan, failedOpenNote(why));
}
