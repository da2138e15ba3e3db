/** What might cost more in a larger pool, with more conversations, or after more requests. */
import type { DecisionRecord } from "../../lib/core/decision.ts";
import { DecisionLog, KEPT_DECISIONS } from "../../lib/proxy/decision_log.ts";
import { SqliteAffinityStore } from "../../lib/store/affinity_store.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { limitedUntil, success } from "../support/outcomes.ts";
import { account, Driver, HOUR_MS } from "../support/pool_driver.ts";
import type { Subject } from "./growth_measure.ts";

export const ACCOUNT_COUNTS = [1, 100, 10_000];
export const BINDING_COUNTS = [1_000, 100_000, 1_000_000];
/** A million bindings take longer to make than all else takes to measure. */
export const QUICK_BINDING_COUNTS = [1_000, 10_000, 100_000];
const NOW_MS = 1_800_000_000_000;
/** Sessions that are in use at the same time. */
const IN_USE = 1_000;
/** Decisions in a log that counts as almost empty. */
const FEW = 100;
/** A step that shares no factor with the counts reaches every session before it meets one again. */
const STRIDE = 7_919;

/** The most that the largest may cost: as a multiple of the smallest, or in µs. */
export type Allowed = { readonly ratio: number } | { readonly micros: number };

export interface Group {
  readonly name: string;
  readonly subjects: readonly Subject[];
  readonly allowed: Allowed;
}

/** @param open  takes what must be closed at the end. */
export function* groups(open: DisposableStack, bindingCounts: readonly number[]): Generator<Group> {
  yield {
    name: "a request from begin to finish, healthy accounts",
    subjects: ACCOUNT_COUNTS.map((count) => ({ size: accounts(count), once: serving(poolOf(count)) })),
    // Eight accounts are compared however many there are; among 10,000 those eight are in no cache of the processor.
    allowed: { ratio: 2 },
  };
  yield {
    name: "a request, all accounts but one limited",
    subjects: ACCOUNT_COUNTS.map((count) => ({
      size: accounts(count),
      once: serving(limited(poolOf(count), count - 1)),
    })),
    // Each account is looked at: 50 ns for one.
    allowed: { micros: 500 },
  };
  yield {
    name: "a final error, all accounts limited",
    subjects: ACCOUNT_COUNTS.map((count) => ({
      size: accounts(count),
      once: refusing(limited(poolOf(count), count)),
    })),
    // Four looks at each account, and 200 of them written down.
    allowed: { micros: 5_000 },
  };
  const stores = bindingCounts.map((count) => ({ count, store: filled(count, open) }));
  yield* affinityGroups(stores);
  yield {
    name: "keeping a decision",
    subjects: [
      { size: "almost none kept", once: keeping(0) },
      { size: `${KEPT_DECISIONS.toLocaleString("en-GB")} kept`, once: keeping(KEPT_DECISIONS) },
    ],
    allowed: { ratio: 1.5 },
  };
}

function* affinityGroups(
  stores: readonly { readonly count: number; readonly store: SqliteAffinityStore }[],
): Generator<Group> {
  const group = (
    name: string,
    allowed: Allowed,
    make: (store: SqliteAffinityStore, count: number) => () => void,
  ): Group => ({
    name,
    subjects: stores.map(({ count, store }) => ({
      size: `${count.toLocaleString("en-GB")} bindings`,
      once: make(store, count),
    })),
    allowed,
  });
  yield group("looking up a session in use", { ratio: 1.5 }, (store) => {
    for (let session = 0; session < IN_USE; session++) store.get(sessionOf(session));
    let at = 0;
    return () => void store.get(sessionOf(at = (at + STRIDE) % IN_USE));
  });
  yield group("looking up a session nobody bound", { ratio: 2 }, (store) => {
    let at = 0;
    return () => void store.get(`x${sessionOf(at++)}`);
  });
  // What is in no cache is read from disk; that may cost as much as sending a request does.
  yield group("looking up any session", { micros: 100 }, (store, count) => {
    let at = 0;
    return () => void store.get(sessionOf(at = (at + STRIDE) % count));
  });
  // It goes to a leaf of its own; a large table's has to be read first, a small table's is in memory.
  yield group("claiming a session", { ratio: 3 }, (store, count) => {
    let fresh = count;
    return () => bind(store, fresh++);
  });
}

function accounts(count: number): string {
  return count === 1 ? "1 account" : `${count.toLocaleString("en-GB")} accounts`;
}

function idOf(at: number): string {
  return `account-${String(at).padStart(5, "0")}`;
}

function sessionOf(at: number): string {
  // As digests come: without an order.
  return (Math.imul(at, 0x9e3779b1) >>> 0).toString(16).padStart(8, "0").repeat(8);
}

function poolOf(count: number): Driver {
  return new Driver(Array.from({ length: count }, (_, at) => account(idOf(at))));
}

function limited(driver: Driver, count: number): Driver {
  for (let at = 0; at < count; at++) {
    const plan = driver.begin({ pinned: true, bound: idOf(at) });
    driver.settle(plan, driver.launch(plan), limitedUntil(driver.nowMs + HOUR_MS));
    driver.pool.finish(plan, 429, null, driver.nowMs);
  }
  return driver;
}

function serving(driver: Driver): () => void {
  return () => {
    const plan = driver.begin();
    driver.settle(plan, driver.launch(plan), success());
    driver.pool.finish(plan, 200, null, driver.nowMs);
  };
}

function refusing(driver: Driver): () => void {
  return () => {
    const plan = driver.begin();
    const step = driver.next(plan);
    if (step.kind !== "answer") throw new Error(`Expected an answer, got ${JSON.stringify(step)}`);
    driver.pool.finish(plan, step.answer.status, step.answer.code, driver.nowMs);
  };
}

function filled(count: number, open: DisposableStack): SqliteAffinityStore {
  const folder = Deno.makeTempDirSync({ prefix: "holdfast-bench-" });
  const database = openDatabase(`${folder}/store.db`);
  open.defer(() => {
    database.close();
    Deno.removeSync(folder, { recursive: true });
  });
  database.write("normal", "fill", (connection) => {
    for (let at = 0; at < 10_000; at++) {
      connection.run("INSERT INTO bound_account (account) VALUES (?)", idOf(at));
    }
    for (let at = 0; at < count; at++) {
      connection.run(
        "INSERT INTO binding VALUES (?, ?, ?, ?)",
        sessionOf(at),
        1 + at % 10_000,
        NOW_MS,
        NOW_MS + HOUR_MS,
      );
    }
  });
  return new SqliteAffinityStore(database);
}

function bind(store: SqliteAffinityStore, at: number): void {
  store.bind({
    session: sessionOf(at),
    account: idOf(1),
    createdAtMs: NOW_MS,
    expiresAtMs: NOW_MS + HOUR_MS,
  });
}

/** @param kept  decisions the log holds already; with none it is replaced before many have come. */
function keeping(kept: number): () => void {
  let log = new DecisionLog();
  for (let number = 0; number < kept; number++) log.add(decision(number));
  let number = 0;
  // The collector has as many living decisions to care for either way.
  const others: DecisionLog[] = [];
  return () => {
    if (kept === 0 && number % FEW === 0) {
      log = new DecisionLog();
      others[number / FEW % (KEPT_DECISIONS / FEW)] = log;
    }
    log.add(decision(number++));
  };
}

function decision(number: number): DecisionRecord {
  return {
    requestId: `req_${number}`,
    atMs: NOW_MS,
    route: "responses",
    model: "m1",
    tenant: "t",
    status: 200,
    code: null,
    rule: null,
    rounds: 1,
    endedAtMs: NOW_MS,
    waits: [],
    candidates: [],
    attempts: [],
    notes: [],
    movedTo: null,
  };
}
