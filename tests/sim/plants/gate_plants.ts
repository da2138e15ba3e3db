/** Plants at the gates: probes, leases, the network pause and its evidence. */
import type { Outcome } from "../../../lib/core/outcome.ts";
import type { Launch, Step } from "../../../lib/core/retry_plan.ts";
import type { PoolStore } from "../../../lib/ports.ts";
import { PoolRuntime, type RequestPlan } from "../../../lib/proxy/pool_runtime.ts";
import type { Plant } from "./plant.ts";

/** Gives the lease back as soon as it is taken, so that the next launch takes it too. */
class ProbesTwice extends PoolRuntime {
  override next(plan: RequestPlan, nowMs: number): Step {
    const step = super.next(plan, nowMs);
    const provider = plan.current?.route.provider.slot;
    if (step.kind === "launch" && step.launch.probe === "provider" && provider !== undefined) {
      provider.health = { ...provider.health, probe: null };
    }
    return step;
  }
}

class NeverSettlesLeases extends PoolRuntime {
  override settle(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): void {
    const provider = plan.current?.route.provider.slot;
    const probe = provider?.health.probe ?? null;
    super.settle(plan, launch, outcome, nowMs);
    if (provider === undefined || provider.health.cooldown === null || probe?.attempt !== launch.attempt) {
      return;
    }
    provider.health = { ...provider.health, probe };
  }
}

/** A restart forgets the last success; what is written stays right, so that only an opening pause gives it away. */
function forgetsVeto(store: PoolStore): PoolStore {
  let lastSuccessAtMs = 0;
  return {
    load: () => {
      const state = store.load();
      lastSuccessAtMs = state.network?.lastSuccessAtMs ?? 0;
      return state.network === null ? state : { ...state, network: { ...state.network, lastSuccessAtMs: 0 } };
    },
    apply: (changes, nowMs) =>
      store.apply(
        changes.map((change) => {
          if (change.kind !== "put_network") return change;
          lastSuccessAtMs = Math.max(lastSuccessAtMs, change.network.lastSuccessAtMs);
          return { ...change, network: { ...change.network, lastSuccessAtMs } };
        }),
        nowMs,
      ),
    prune: (nowMs) => store.prune(nowMs),
  };
}

class BelievesProviderText extends PoolRuntime {
  override settle(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): void {
    const isReport = outcome.kind === "transient" && outcome.cause === "provider_reported";
    super.settle(
      plan,
      launch,
      isReport
        ? {
          kind: "no_response",
          row: 28,
          scope: "network",
          origin: "local",
          status: null,
          code: "refused",
          cause: "refused",
          recoverable: outcome.recoverable,
          pooled: false,
        }
        : outcome,
      nowMs,
    );
  }
}

/** The pause ends when its probe is sent, not when it is answered. */
class PausesWithoutProbe extends PoolRuntime {
  override next(plan: RequestPlan, nowMs: number): Step {
    const step = super.next(plan, nowMs);
    if (step.kind === "launch" && step.launch.probe === "network") {
      super.progress(plan, step.launch, "head", nowMs);
    }
    return step;
  }
}

export const GATE_PLANTS: readonly Plant[] = [
  {
    name: "two-probes",
    breaks: "lets a second launch test a provider while the first still does",
    caughtBy: ["P1", "P20"],
    runtime: ProbesTwice,
  },
  {
    name: "lease-never-settled",
    breaks: "keeps a probe's lease when the probe has failed",
    caughtBy: ["P35"],
    runtime: NeverSettlesLeases,
  },
  {
    name: "veto-ignored",
    breaks: "opens a pause after a restart although a success is less than a minute old",
    caughtBy: ["P16"],
    store: forgetsVeto,
  },
  {
    name: "provider-text-as-outage",
    breaks: "takes a provider's words about a network for outage evidence",
    caughtBy: ["P16", "P31"],
    runtime: BelievesProviderText,
  },
  {
    name: "pause-without-probe",
    breaks: "ends the pause before its probe was answered",
    caughtBy: ["P2"],
    runtime: PausesWithoutProbe,
  },
];
