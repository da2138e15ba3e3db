/** One simulated process after another over the same disk: started, refereed, crashed, started again. */
import { StoreFailure } from "../../../lib/ports.ts";
import type { Account } from "../../../lib/core/domain.ts";
import type { LedgerRow } from "../../../lib/core/records.ts";
import { PoolRuntime } from "../../../lib/proxy/pool_runtime.ts";
import { Oracle, type OracleSettings } from "../oracle/oracle.ts";
import type { Pool } from "../pool.ts";
import type { SimParams } from "../params.ts";
import type { Plant } from "../plants/plant.ts";
import { History } from "../referee/history.ts";
import { Referee } from "../referee/referee.ts";
import { type Disk, makeDisk } from "../stores/disk.ts";
import { MirrorStore } from "../stores/mirror_store.ts";
import { WatchedAffinityStore } from "../stores/watched_affinity.ts";
import { must } from "../violation.ts";

const SWEPT_BINDINGS = 100;

export class Process implements Disposable {
  readonly #params: SimParams;
  readonly #plant: Plant | null;
  readonly #disk: Disk;
  readonly history = new History();
  settings: OracleSettings;
  pools: SimParams["pools"];
  mirror: MirrorStore | null = null;
  #affinity: WatchedAffinityStore | null = null;
  #pool: Pool | null = null;
  /** Which process this is; what belongs to an earlier one is dead. */
  epoch = 0;

  constructor(params: SimParams, plant: Plant | null) {
    this.#params = params;
    this.#plant = plant;
    this.#disk = makeDisk(params.store);
    const { policy, quota, routing, recovery, pools } = params;
    this.settings = { policy, quota, routing, recovery };
    this.pools = pools;
  }

  /** Fails the test of a caller that talks to a dead process. */
  get pool(): Pool {
    if (this.#pool === null) throw new Error("Cannot call the pool: the process is down");
    return this.#pool;
  }

  get isUp(): boolean {
    return this.#pool !== null;
  }

  /** @throws StoreFailure when the disk fails while starting. */
  start(accounts: readonly Account[], nowMs: number): void {
    const stores = this.#disk.open();
    const mirror = new MirrorStore(this.#plant?.disk?.(stores.pool) ?? stores.pool, this.mirror);
    this.mirror = mirror;
    const affinity = new WatchedAffinityStore(stores.affinity);
    this.#affinity = affinity;
    const seed = this.#plant?.machineSeed?.(this.#params.machineSeed, accounts) ?? this.#params.machineSeed;
    const deps = {
      store: this.#plant?.store?.(mirror) ?? mirror,
      affinity,
      seed,
      pools: this.pools,
      ...this.settings,
    };
    const runtime = this.#plant?.runtime === undefined
      ? new PoolRuntime(deps)
      : new this.#plant.runtime(deps);
    const referee = new Referee(runtime, new Oracle(this.settings), mirror, affinity, this.history);
    this.epoch++;
    this.history.restarted();
    this.#requirePoisonRefused(mirror, nowMs);
    referee.restore(nowMs);
    referee.reconcile(accounts, nowMs);
    this.#pool = referee;
  }

  /** The process is gone, in the middle of whatever it did. */
  crash(): void {
    this.#pool = null;
  }

  /** The next write fails: nothing of it is kept, or all of it, and the process ends either way. */
  breakDisk(fault: "before" | "after" | "binding"): void {
    if (fault === "binding") this.#affinity!.isBroken = true;
    else this.mirror!.fault = fault;
  }

  mendDisk(): void {
    this.mirror!.fault = "none";
    this.#affinity!.isBroken = false;
  }

  /** Drops what nobody needs any more. */
  sweep(nowMs: number): void {
    this.mirror!.prune(nowMs);
    this.#affinity!.flush();
    this.#affinity!.dropExpired(nowMs, SWEPT_BINDINGS);
  }

  [Symbol.dispose](): void {
    this.#disk[Symbol.dispose]();
  }

  /** P30: a disk with one row that cannot be true starts no process. */
  #requirePoisonRefused(mirror: MirrorStore, nowMs: number): void {
    const row = [...mirror.ledgers.values()].find(({ closed, charged }) => !closed && charged.length > 0);
    if (row === undefined) return;
    const poisons: LedgerRow[] = [
      { ...row, charged: [...row.charged, row.charged[0]!], maxLaunches: row.maxLaunches + 9 },
      { ...row, counter: row.counter - row.counter - 1 },
      { ...row, charged: [`${row.request}:${row.counter + 1}`] },
      { ...row, charged: ["somebody:1"] },
    ];
    for (const poison of poisons) {
      const store = {
        load: () => ({ ...mirror.load(), openLedgers: [poison] }),
        apply: () => {},
        prune: () => {},
      };
      const { settings, pools } = this;
      const runtime = new PoolRuntime({ ...settings, pools, store, affinity: NO_BINDINGS, seed: 1 });
      must(
        throwsStoreFailure(() => runtime.restore(nowMs)),
        "P30",
        () => `a ledger reading ${JSON.stringify(poison)} starts`,
      );
    }
  }
}

function throwsStoreFailure(body: () => void): boolean {
  try {
    body();
    return false;
  } catch (error) {
    if (error instanceof StoreFailure) return true;
    throw error;
  }
}

const NO_BINDINGS = {
  get: () => null,
  bind: <T>(row: T) => row,
  compareAndSet: () => {
    throw new Error("Cannot move a binding: there are none");
  },
  renew: () => {},
  accounts: () => [],
  dropAccount: () => {},
  dropExpired: () => 0,
  count: () => 0,
  flush: () => {},
};
