/** Plants in parks, overrides and deadlines. */
import type { AccountId } from "../../../lib/core/domain.ts";
import type { Outcome } from "../../../lib/core/outcome.ts";
import type { AccountSlot } from "../../../lib/core/pool.ts";
import type { QuotaReading } from "../../../lib/core/records.ts";
import type { Launch, RequestSpec } from "../../../lib/core/retry_plan.ts";
import { PoolRuntime, type RequestPlan } from "../../../lib/proxy/pool_runtime.ts";
import type { Plant } from "./plant.ts";

/** Knows the slots of the accounts that requests were begun with. */
class KnowsSlots extends PoolRuntime {
  readonly #slots = new Map<AccountId, AccountSlot>();

  override begin(spec: RequestSpec, nowMs: number): RequestPlan {
    const plan = super.begin(spec, nowMs);
    for (const { accounts } of plan.providers) {
      for (const slot of accounts) this.#slots.set(slot.account.id, slot);
    }
    return plan;
  }

  protected slot(account: AccountId): AccountSlot | undefined {
    return this.#slots.get(account);
  }
}

class ReanchorsParks extends KnowsSlots {
  override observeQuota(account: AccountId, reading: QuotaReading, nowMs: number): void {
    const slot = this.slot(account);
    if (slot !== undefined) slot.health = { ...slot.health, park: null, probeOwed: false };
    super.observeQuota(account, reading, nowMs);
  }
}

class LetsPagesMoveDeadlines extends KnowsSlots {
  override observeQuota(account: AccountId, reading: QuotaReading, nowMs: number): void {
    const slot = this.slot(account);
    const resetAtMs = reading.windows.find((window) => window.resetAtMs !== null)?.resetAtMs;
    if (slot !== undefined && slot.health.deadline !== null && typeof resetAtMs === "number") {
      slot.health = { ...slot.health, deadline: { ...slot.health.deadline, untilMs: resetAtMs } };
    }
    super.observeQuota(account, reading, nowMs);
  }
}

class KeepsOverrideOver429 extends PoolRuntime {
  override settle(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): void {
    const slot = plan.current?.slot;
    const overrideUntilMs = slot?.health.overrideUntilMs ?? 0;
    super.settle(plan, launch, outcome, nowMs);
    if (slot !== undefined && outcome.kind === "limited") slot.health = { ...slot.health, overrideUntilMs };
  }
}

export const QUOTA_PLANTS: readonly Plant[] = [
  {
    name: "re-anchor-parks",
    breaks: "moves a park's end with every page",
    caughtBy: ["P18"],
    runtime: ReanchorsParks,
  },
  {
    name: "scrape-moves-deadline",
    breaks: "believes a page about a deadline the upstream stated",
    caughtBy: ["P19"],
    runtime: LetsPagesMoveDeadlines,
  },
  {
    name: "override-survives-429",
    breaks: "goes on silencing parks after a genuine 429",
    caughtBy: ["P41"],
    runtime: KeepsOverrideOver429,
  },
];
