/**
 * The Nth write fails, for N = 1, 2, 3 … until none does. After each, a new process finds exactly what the old one
 * had acknowledged: nothing less, and no half of the change that failed.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { StoreFailure } from "../../lib/ports.ts";
import { SqliteAccountStore } from "../../lib/store/account_store.ts";
import { SqliteAffinityStore } from "../../lib/store/affinity_store.ts";
import { type Database, openDatabase } from "../../lib/store/database.ts";
import { SqlitePoolStore } from "../../lib/store/pool_store.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { ledger, NOW_MS, putDeadline } from "./pool_records.ts";

const HOUR_MS = 3_600_000;

interface Stores {
  readonly pool: SqlitePoolStore;
  readonly affinity: SqliteAffinityStore;
  readonly accounts: SqliteAccountStore;
}

const USER = {
  id: "u1",
  name: "n",
  enabled: true,
  keyHash: "SENT-hash",
  keyHint: "h",
  createdAtMs: 1,
  keyCreatedAtMs: 1,
};
const COUNT = {
  requests: 1,
  failures: 0,
  inputTokens: 1,
  cachedTokens: 0,
  outputTokens: 1,
  reasoningTokens: 0,
};
const USAGE = { tenant: "t", keyHint: "h", provider: "p", model: "m", effort: "" };

/** A life of a process; each step is acknowledged when it returns. */
const STEPS: readonly ((stores: Stores) => void)[] = [
  ({ pool }) => pool.apply([putDeadline("a"), { kind: "set_enabled", account: "b", enabled: false }], NOW_MS),
  ({ pool }) =>
    pool.apply([putDeadline("a", { untilMs: NOW_MS + 1 }), { kind: "put_ledger", row: ledger() }], NOW_MS),
  ({ pool }) => pool.apply([{ kind: "put_ring_cursor", pool: "p", cursor: 1 }], NOW_MS),
  ({ affinity }) =>
    affinity.bind({ session: "s", account: "a", createdAtMs: NOW_MS, expiresAtMs: NOW_MS + 1 }),
  ({ affinity }) =>
    affinity.bind({ session: "t", account: "a", createdAtMs: NOW_MS, expiresAtMs: NOW_MS + 2 }),
  ({ affinity }) => affinity.compareAndSet("s", "a", "b", NOW_MS, NOW_MS + HOUR_MS),
  ({ affinity }) => affinity.renew("s", NOW_MS + 2 * HOUR_MS),
  ({ affinity }) => affinity.flush(),
  ({ accounts }) => accounts.createUser(USER),
  ({ accounts }) => accounts.updateUser({ ...USER, enabled: false }),
  ({ accounts }) =>
    accounts.addUsage([{ key: USAGE, atMs: 0, count: COUNT }, { key: USAGE, atMs: NOW_MS, count: COUNT }]),
  ({ accounts }) => accounts.saveFirstRunKeyHash("SENT-hash"),
  ({ accounts }) => accounts.pin("file", "a", NOW_MS),
  ({ pool }) =>
    pool.apply([{ kind: "put_ledger", row: ledger({ closed: true }) }, {
      kind: "forget_account",
      account: "b",
    }], NOW_MS),
  ({ affinity }) => affinity.dropAccount("a"),
  ({ affinity }) => affinity.dropExpired(NOW_MS + 2, 10),
  ({ accounts }) => accounts.dropUsageBefore(NOW_MS, 10),
  ({ accounts }) => accounts.dropExpiredPins(NOW_MS, 10),
];

/** Several small transactions: a part of it may be kept, and doing it again completes it. */
function prune({ pool }: Stores): void {
  pool.prune(NOW_MS + 25 * HOUR_MS);
}

function storesOn(database: Database): Stores {
  return {
    pool: new SqlitePoolStore(database),
    affinity: new SqliteAffinityStore(database),
    accounts: new SqliteAccountStore(database),
  };
}

/** Every row of every table. */
function rowsOf(database: Database): Record<string, unknown[]> {
  return database.read("look", (connection) => {
    const tables = connection.all("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
    return Object.fromEntries(
      tables.map(({ name }) => [name, connection.all(`SELECT * FROM "${name}"`).map((row) => ({ ...row }))]),
    );
  });
}

/** What the tables hold after 0, 1, 2 … steps of a life without faults. */
function wantedRows(): Record<string, unknown[]>[] {
  using database = openDatabase(":memory:");
  const stores = storesOn(database);
  const wanted = [rowsOf(database)];
  for (const step of STEPS) {
    step(stores);
    wanted.push(rowsOf(database));
  }
  prune(stores);
  wanted.push(rowsOf(database));
  return wanted;
}

const faults: readonly { name: string; error: () => Error; says: string }[] = [
  {
    name: "the disk is full",
    error: () => sqliteError(13, "database or disk is full"),
    says: "the disk is full",
  },
  {
    name: "an input/output error",
    error: () => sqliteError(778, "disk I/O error"),
    says: "input/output error",
  },
  {
    name: "the file became read-only",
    error: () => sqliteError(8, "attempt to write a readonly database"),
    says: "read-only",
  },
  {
    name: "another program holds the lock",
    error: () => sqliteError(5, "database is locked"),
    says: "locked",
  },
  {
    name: "damage is found",
    error: () => sqliteError(11, "database disk image is malformed"),
    says: "damaged",
  },
];

function sqliteError(errcode: number, message: string): Error {
  return Object.assign(new Error(message), { code: "ERR_SQLITE_ERROR", errcode });
}

for (const fault of faults) {
  Deno.test(`a restart finds exactly what was acknowledged, whichever write fails: ${fault.name}`, () => {
    const wanted = wantedRows();
    let failing = 1;
    while (!liveUntilFault(failing, fault, wanted)) failing++;
    assertEquals(failing > 60, true, `only ${failing - 1} writes`);
  });
}

/** @returns true when the life ended without the fault */
function liveUntilFault(
  failing: number,
  fault: { readonly error: () => Error; readonly says: string },
  wanted: readonly Record<string, unknown[]>[],
): boolean {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  let writes = 0;
  const beforeWrite = () => {
    if (++writes === failing) throw fault.error();
  };
  const acknowledged = live(path, beforeWrite, fault.says);
  // What the next process finds.
  using database = openDatabase(path);
  const isPruned = acknowledged === null || acknowledged === STEPS.length;
  if (isPruned) prune(storesOn(database));
  assertEquals(rowsOf(database), isPruned ? wanted.at(-1) : wanted[acknowledged], `write ${failing} failed`);
  return acknowledged === null;
}

/** @returns how many steps were acknowledged before the fault, null when there was none */
function live(path: string, beforeWrite: () => void, says: string): number | null {
  const isFault = (error: unknown) => error instanceof StoreFailure && error.message.includes(says);
  let database: Database;
  try {
    database = openDatabase(path, { beforeWrite });
  } catch (error) {
    assertEquals(isFault(error), true, `${error}`);
    return 0;
  }
  using _database = database;
  const stores = storesOn(database);
  for (const [index, step] of [...STEPS, prune].entries()) {
    try {
      step(stores);
    } catch (error) {
      assertEquals(isFault(error), true, `${error}`);
      requireDead(stores);
      return index;
    }
  }
  return null;
}

/** No going on in memory: the disk works again, and still nothing is taken. */
function requireDead(stores: Stores): void {
  assertThrows(() => stores.pool.apply([putDeadline("late")], NOW_MS), StoreFailure);
  assertThrows(() => stores.pool.load(), StoreFailure);
  assertThrows(() => stores.accounts.pin("late", "a", NOW_MS), StoreFailure);
  assertThrows(() => stores.affinity.get("never seen"), StoreFailure);
}
