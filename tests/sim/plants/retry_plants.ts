/** Plants in the retry layers: rounds, waits, repairs, commits, the last word. */
import type { Outcome } from "../../../lib/core/outcome.ts";
import type { Launch, RequestSpec, Step } from "../../../lib/core/retry_plan.ts";
import { PoolRuntime, type RequestPlan } from "../../../lib/proxy/pool_runtime.ts";
import type { Plant } from "./plant.ts";

const HOUR_MS = 3_600_000;

/** Decides as if an hour had passed, so that no short block holds. */
class IgnoresCooldowns extends PoolRuntime {
  override next(plan: RequestPlan, nowMs: number): Step {
    const step = super.next(plan, nowMs + HOUR_MS);
    if (step.kind !== "launch") return step;
    const { leaseUntilMs } = step.launch;
    const launch: Launch = {
      ...step.launch,
      launchedAtMs: nowMs,
      leaseUntilMs: leaseUntilMs === null ? null : leaseUntilMs - HOUR_MS,
    };
    return { kind: "launch", launch };
  }
}

class RetriesAfterCommit extends PoolRuntime {
  override commit(): void {}
}

class LetsLastErrorWin extends PoolRuntime {
  override next(plan: RequestPlan, nowMs: number): Step {
    const step = super.next(plan, nowMs);
    const last = [...plan.outcomes.values()].at(-1);
    if (step.kind !== "answer" || last === undefined || step.answer.rule === "incomplete") return step;
    const isLimit = last.kind === "limited";
    return {
      kind: "answer",
      answer: {
        ...step.answer,
        status: isLimit ? 429 : 502,
        code: isLimit ? "rate_limited" : "upstream_unavailable",
        retryAtMs: isLimit ? last.stated?.untilMs ?? nowMs + 60_000 : null,
      },
    };
  }
}

class ReusesAccounts extends PoolRuntime {
  override next(plan: RequestPlan, nowMs: number): Step {
    plan.tried.clear();
    return super.next(plan, nowMs);
  }
}

class WaitsTooLong extends PoolRuntime {
  override next(plan: RequestPlan, nowMs: number): Step {
    const step = super.next(plan, nowMs);
    return step.kind === "wait" && step.reason === "cooldown"
      ? { ...step, untilMs: step.untilMs + 61_000 }
      : step;
  }
}

class RepairsTwice extends PoolRuntime {
  override settle(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): void {
    plan.repaired.clear();
    super.settle(plan, launch, outcome, nowMs);
  }
}

class SendsOnceTwice extends PoolRuntime {
  override begin(spec: RequestSpec, nowMs: number): RequestPlan {
    return super.begin({ ...spec, replay: "replayable" }, nowMs);
  }
}

class CoolsOnCancel extends PoolRuntime {
  override cancel(plan: RequestPlan, nowMs: number): void {
    const launch = plan.current?.launch;
    const gone: Outcome = {
      kind: "transient",
      row: 25,
      scope: "provider",
      origin: "local",
      status: null,
      code: "client_gone",
      cause: "status",
      notBeforeMs: null,
      recoverable: false,
      strike: true,
    };
    if (launch !== undefined) super.settle(plan, launch, gone, nowMs);
    super.cancel(plan, nowMs);
  }
}

export const RETRY_PLANTS: readonly Plant[] = [
  {
    name: "ignore-cooldowns",
    breaks: "launches on accounts and providers whose cooldown still runs",
    caughtBy: ["P2", "P3", "P12"],
    runtime: IgnoresCooldowns,
  },
  {
    name: "retry-after-commit",
    breaks: "sends again although the client has seen a byte",
    caughtBy: ["P7", "TABLE"],
    runtime: RetriesAfterCommit,
  },
  {
    name: "last-error-wins",
    breaks: "tells the client whatever the last account said",
    caughtBy: ["P32", "P34"],
    runtime: LetsLastErrorWin,
  },
  {
    name: "reuse-account",
    breaks: "takes an account for a second slot of the same round",
    caughtBy: ["P4"],
    runtime: ReusesAccounts,
  },
  {
    name: "wait-too-long",
    breaks: "waits a minute longer than allowed",
    caughtBy: ["P12"],
    runtime: WaitsTooLong,
  },
  {
    name: "repair-twice",
    breaks: "refreshes again after the second 401 of one account",
    caughtBy: ["P5", "P25"],
    runtime: RepairsTwice,
  },
  {
    name: "once-sent-twice",
    breaks: "treats what is sent once as replayable",
    caughtBy: ["P13"],
    runtime: SendsOnceTwice,
  },
  {
    name: "cancel-cools",
    breaks: "blames the account when the client leaves",
    caughtBy: ["P11"],
    runtime: CoolsOnCancel,
  },
];
