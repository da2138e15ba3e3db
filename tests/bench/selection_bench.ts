/**
 * What deciding costs, from begin to finish: `deno bench -A tests/bench/selection_bench.ts`
 *
 * Each group serves one request by pools of different sizes; the smallest is the baseline. Bindings are in the
 * real store, so a bound turn includes its look-ups.
 */
import { openDatabase } from "../../lib/store/database.ts";
import { SqliteAffinityStore } from "../../lib/store/affinity_store.ts";
import { limitedUntil, success } from "../support/outcomes.ts";
import { account, Driver, HOUR_MS } from "../support/pool_driver.ts";

const BINDING_COUNTS = [1_000, 100_000];

function idOf(at: number): string {
  return `account-${String(at).padStart(5, "0")}`;
}

function poolOf(accountCount: number, bindingCount = 0): Driver {
  const accounts = Array.from({ length: accountCount }, (_, at) => account(idOf(at)));
  const affinity = new SqliteAffinityStore(openDatabase(":memory:"));
  const driver = new Driver(accounts, { affinity });
  for (let at = 0; at < bindingCount; at++) {
    affinity.bind({
      session: sessionOf(at),
      account: idOf(at % accountCount),
      createdAtMs: driver.nowMs,
      expiresAtMs: driver.nowMs + HOUR_MS,
    });
  }
  return driver;
}

function sessionOf(at: number): string {
  return at.toString(16).padStart(8, "0").repeat(8);
}

function serve(driver: Driver, session: string | null): void {
  const bound = session === null ? null : driver.pool.lookupBinding([session], driver.nowMs);
  const plan = driver.begin({ session, bound });
  driver.settle(plan, driver.launch(plan), success());
  driver.pool.finish(plan, 200, null, driver.nowMs);
}

for (const count of [10, 10_000]) {
  const driver = poolOf(count);
  Deno.bench(`a request, ${count} healthy accounts`, { group: "accounts", baseline: count === 10 }, () => {
    serve(driver, null);
  });
}

for (const count of BINDING_COUNTS) {
  const driver = poolOf(10_000, count);
  let at = 0;
  Deno.bench(
    `a bound turn, 10,000 accounts, ${count} bindings`,
    { group: "bindings", baseline: count === BINDING_COUNTS[0] },
    () => serve(driver, sessionOf(at++ % count)),
  );
}

for (const blocked of [0, 9_990]) {
  const driver = poolOf(10_000);
  for (let at = 0; at < blocked; at++) {
    const plan = driver.begin({ pinned: true, bound: idOf(at) });
    driver.settle(plan, driver.launch(plan), limitedUntil(driver.nowMs + HOUR_MS));
    driver.pool.finish(plan, 429, null, driver.nowMs);
  }
  Deno.bench(
    `a request, ${blocked} of 10,000 accounts blocked`,
    { group: "blocked", baseline: blocked === 0 },
    () => serve(driver, null),
  );
}
