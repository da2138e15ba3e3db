/** Plants in what is written, bound and drawn: the disk, the bindings, chance. */
import { hash32 } from "../../../lib/core/prng.ts";
import type { DurableChange } from "../../../lib/core/records.ts";
import type { Step } from "../../../lib/core/retry_plan.ts";
import type { AffinityStore, PoolStore } from "../../../lib/ports.ts";
import { type PoolDeps, PoolRuntime, type RequestPlan } from "../../../lib/proxy/pool_runtime.ts";
import type { Plant } from "./plant.ts";

/** A disk that acknowledges deadlines and keeps none. */
function losesDeadlines(store: PoolStore): PoolStore {
  return {
    load: () => store.load(),
    apply: (changes, nowMs) => store.apply(changes.filter(({ kind }) => kind !== "put_deadline"), nowMs),
    prune: (nowMs) => store.prune(nowMs),
  };
}

/** Writes ledgers with the next change, which is after the launch they pay for. */
function chargesLate(store: PoolStore): PoolStore {
  let held: DurableChange[] = [];
  return {
    load: () => store.load(),
    apply: (changes, nowMs) => {
      const written = [...held, ...changes.filter(({ kind }) => kind !== "put_ledger")];
      held = changes.filter(({ kind }) => kind === "put_ledger");
      store.apply(written, nowMs);
    },
    prune: (nowMs) => store.prune(nowMs),
  };
}

class RebindsOnRepair extends PoolRuntime {
  readonly #affinity: AffinityStore;

  constructor(deps: PoolDeps) {
    super(deps);
    this.#affinity = deps.affinity;
  }

  override next(plan: RequestPlan, nowMs: number): Step {
    const step = super.next(plan, nowMs);
    const { session } = plan.spec;
    if (step.kind !== "launch" || step.launch.cause !== "repair" || session === null) return step;
    const holder = this.#affinity.get(session)?.account;
    const other = plan.providers.flatMap(({ accounts }) => accounts).find(({ account }) =>
      account.id !== holder
    );
    if (holder === undefined || other === undefined) return step;
    this.#affinity.compareAndSet(session, holder, other.account.id, nowMs, nowMs + 3_600_000);
    return step;
  }
}

export const STATE_PLANTS: readonly Plant[] = [
  {
    name: "forget-persistence",
    breaks: "loses deadlines over a restart",
    caughtBy: ["P23"],
    disk: losesDeadlines,
  },
  {
    name: "charge-after-launch",
    breaks: "pays for a launch only after it went out",
    caughtBy: ["P26", "P28"],
    store: chargesLate,
  },
  {
    name: "rebind-on-repair",
    breaks: "moves a session because its account's token was refreshed",
    caughtBy: ["P39"],
    runtime: RebindsOnRepair,
  },
  {
    name: "jitter-from-order",
    breaks: "draws jitter from the order of the configuration",
    caughtBy: ["P32"],
    machineSeed: (seed, accounts) => hash32(seed, ...accounts.map(({ id }) => id)),
  },
];
