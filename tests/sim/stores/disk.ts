/** The disk that survives a crash of the simulated process: SQLite on a memory file system, or maps. */
import type { AffinityStore, PoolStore } from "../../../lib/ports.ts";
import { SqliteAffinityStore } from "../../../lib/store/affinity_store.ts";
import { type Database, openDatabase } from "../../../lib/store/database.ts";
import { SqlitePoolStore } from "../../../lib/store/pool_store.ts";
import { MemoryAffinityStore, MemoryPoolStore } from "../../support/memory_store.ts";
import type { StoreKind } from "../params.ts";

export interface OpenStores {
  readonly pool: PoolStore;
  readonly affinity: AffinityStore;
}

export interface Disk extends Disposable {
  /** What a new process finds. What the old one had not written is gone. */
  open(): OpenStores;
}

export function makeDisk(kind: StoreKind): Disk {
  return kind === "memory" ? new MemoryDisk() : new SqliteDisk();
}

class MemoryDisk implements Disk {
  readonly #stores = { pool: new MemoryPoolStore(), affinity: new MemoryAffinityStore() };

  open(): OpenStores {
    return this.#stores;
  }

  [Symbol.dispose](): void {}
}

class SqliteDisk implements Disk {
  readonly #folder = Deno.makeTempDirSync({ ...memoryFolder(), prefix: "holdfast-sim-" });
  #database: Database | null = null;

  open(): OpenStores {
    this.#database?.close();
    this.#database = openDatabase(`${this.#folder}/sim.db`);
    return { pool: new SqlitePoolStore(this.#database), affinity: new SqliteAffinityStore(this.#database) };
  }

  [Symbol.dispose](): void {
    this.#database?.close();
    Deno.removeSync(this.#folder, { recursive: true });
  }
}

/** Waiting for a real platter would make up most of a run. */
function memoryFolder(): { readonly dir?: string } {
  try {
    return Deno.statSync("/dev/shm").isDirectory ? { dir: "/dev/shm" } : {};
  } catch {
    return {};
  }
}
