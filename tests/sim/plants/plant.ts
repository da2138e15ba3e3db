/** A rule broken on purpose, outside of the library: the simulation is worth what it finds of these. */
import type { Account } from "../../../lib/core/domain.ts";
import type { PoolStore } from "../../../lib/ports.ts";
import type { PoolRuntime } from "../../../lib/proxy/pool_runtime.ts";

export interface Plant {
  /** As given to `--plant`. */
  readonly name: string;
  /** What it does wrong, in a sentence. */
  readonly breaks: string;
  /** Invariants whose violation counts as having found it. */
  readonly caughtBy: readonly string[];
  readonly runtime?: typeof PoolRuntime;
  /** Between the pool and what it believes to be written. */
  readonly store?: (store: PoolStore) => PoolStore;
  /** Between what was acknowledged and the disk. */
  readonly disk?: (store: PoolStore) => PoolStore;
  readonly machineSeed?: (seed: number, accounts: readonly Account[]) => number;
}
