/**
 * Does a lookup cost more when more sessions are bound? `deno bench -A tests/bench/affinity_store_bench.ts`
 *
 * Each group asks stores of 1,000, 100,000 and 1,000,000 bindings the same; the smallest is the baseline.
 */
import { SqliteAffinityStore } from "../../lib/store/affinity_store.ts";
import { openDatabase } from "../../lib/store/database.ts";

const SIZES = [1_000, 100_000, 1_000_000];
const ACCOUNT_COUNT = 10_000;
const NOW_MS = 1_800_000_000_000;
const TTL_MS = 3_600_000;

/** 64 characters, like the digests that name sessions; in rising order, so that filling is quick. */
function sessionOf(number: number): string {
  return number.toString(16).padStart(8, "0").repeat(8);
}

function filled(size: number): SqliteAffinityStore {
  const folder = Deno.makeTempDirSync({ prefix: "holdfast-bench-" });
  const database = openDatabase(`${folder}/store.db`);
  database.write("normal", "fill", (connection) => {
    for (let i = 0; i < ACCOUNT_COUNT; i++) {
      connection.run("INSERT INTO bound_account (account) VALUES (?)", `account-${i}`);
    }
    for (let i = 0; i < size; i++) {
      connection.run(
        "INSERT INTO binding VALUES (?, ?, ?, ?)",
        sessionOf(i),
        1 + i % ACCOUNT_COUNT,
        NOW_MS,
        NOW_MS + TTL_MS,
      );
    }
  });
  globalThis.addEventListener("unload", () => {
    database.close();
    Deno.removeSync(folder, { recursive: true });
  });
  return new SqliteAffinityStore(database);
}

for (const size of SIZES) {
  const store = filled(size);
  const baseline = size === SIZES[0];
  const suffix = `${size} bindings`;
  // A step that shares no factor with the sizes reaches every session before it meets one again.
  let at = 0;
  const next = (among: number) => sessionOf(at = (at + 7_919) % among);
  let fresh = size;

  Deno.bench(`a session in use, ${suffix}`, { group: "in use", baseline }, () => {
    store.get(next(Math.min(size, 1_000)));
  });
  Deno.bench(`any session, ${suffix}`, { group: "any", baseline }, () => {
    store.get(next(size));
  });
  Deno.bench(`a session nobody bound, ${suffix}`, { group: "unknown", baseline }, () => {
    store.get(`x${sessionOf(at++)}`);
  });
  Deno.bench(`the first bind of a session, ${suffix}`, { group: "bind", baseline }, () => {
    const session = sessionOf(fresh++);
    store.bind({ session, account: "account-1", createdAtMs: NOW_MS, expiresAtMs: NOW_MS + TTL_MS });
  });
}
