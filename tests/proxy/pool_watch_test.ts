import { assertEquals } from "@std/assert";
import { account, Driver, HOUR_MS, inOrder, START_MS } from "../support/pool_driver.ts";
import type { Outcome } from "../../lib/core/outcome.ts";
import { limitedUntil, noResponse, success, unavailable } from "../support/outcomes.ts";

const idsOf = (views: readonly { readonly account: { readonly id: string } }[]) =>
  views.map((view) => view.account.id);

Deno.test("PoolWatch.look() tells everything once, then nothing until something changes", () => {
  const driver = new Driver(["A", "B"]);
  const watch = driver.pool.watch();
  const first = watch.look(driver.nowMs);
  assertEquals([idsOf(first.accounts), first.removed, first.gates], [["A", "B"], [], true]);
  assertEquals(watch.look(driver.nowMs), { accounts: [], removed: [], gates: false });
});

Deno.test("PoolWatch.look() tells of load, of a limit, and of the limit's end by time alone", () => {
  const driver = new Driver(["A", "B"]);
  const watch = driver.pool.watch();
  watch.look(driver.nowMs);
  const plan = driver.begin();
  const launch = driver.launch(plan);
  const loaded = watch.look(driver.nowMs).accounts;
  assertEquals(loaded.map((view) => [view.account.id, view.inFlight]), [[launch.account, 1]]);
  driver.settle(plan, launch, limitedUntil(driver.nowMs + HOUR_MS));
  const limited = watch.look(driver.nowMs).accounts;
  assertEquals(limited.map((view) => [view.account.id, view.state, view.inFlight]), [[
    launch.account,
    "cooling",
    0,
  ]]);
  driver.pool.cancel(plan, driver.nowMs);
  assertEquals(watch.look(driver.nowMs + HOUR_MS - 1).accounts, []);
  const over = watch.look(driver.nowMs + HOUR_MS).accounts;
  assertEquals(over.map((view) => [view.account.id, view.state]), [[launch.account, "healthy"]]);
  assertEquals(watch.look(driver.nowMs + HOUR_MS).accounts, []);
});

Deno.test("PoolWatch.look() tells of switches, of accounts that come and go, and of gates", () => {
  const driver = new Driver(["A", "B"]);
  const watch = driver.pool.watch();
  watch.look(driver.nowMs);
  driver.pool.setEnabled("A", false, driver.nowMs);
  assertEquals(idsOf(watch.look(driver.nowMs).accounts), ["A"]);
  driver.pool.reconcile([account("B"), account("C")], driver.nowMs);
  const swapped = watch.look(driver.nowMs);
  assertEquals([idsOf(swapped.accounts), swapped.removed], [["C"], ["A"]]);
  const limit = limitedUntil(driver.nowMs + HOUR_MS);
  driver.run(inOrder(limit, limit));
  const closed = watch.look(driver.nowMs);
  assertEquals([idsOf(closed.accounts).toSorted(), closed.gates], [["B", "C"], true]);
});

const ends: readonly { name: string; fates: Readonly<Record<string, Outcome>> }[] = [
  { name: "a provider's rest", fates: { p: unavailable({ notBeforeMs: START_MS + HOUR_MS }) } },
  { name: "the network's pause", fates: { p: noResponse(), q: noResponse() } },
];
for (const { name, fates } of ends) {
  Deno.test(`PoolWatch.look() tells that ${name} is over by time alone, once`, () => {
    const driver = new Driver([account("p1", { provider: "p" }), account("q1", { provider: "q" })], {
      policy: { requestRetry: 0, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 },
    });
    const watch = driver.pool.watch();
    for (const [provider, outcome] of Object.entries(fates)) {
      driver.run(inOrder(outcome), { targets: [{ provider, model: "m" }] });
    }
    const untilMs = driver.pool.describeNetwork(driver.nowMs)?.untilMs ??
      driver.pool.describeProvider("p", driver.nowMs).cooldown!.untilMs;
    const look = (atMs: number): boolean => watch.look(atMs).gates;
    assertEquals([driver.nowMs, untilMs - 1, untilMs, untilMs].map(look), [true, false, true, false]);
  });
}

Deno.test("PoolWatch.look() tells when a request begins to test the network, and when it is done", () => {
  const driver = new Driver([account("p1", { provider: "p" }), account("q1", { provider: "q" })], {
    policy: { requestRetry: 0, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 },
  });
  const targets = ["p", "q"].map((provider) => ({ provider, model: "m" }));
  for (const target of targets) driver.run(inOrder(noResponse()), { targets: [target] });
  driver.advance(60_000);
  const watch = driver.pool.watch();
  const look = (): boolean => watch.look(driver.nowMs).gates;
  look();
  assertEquals(look(), false);
  const probe = driver.begin({ targets });
  const launch = driver.launch(probe);
  assertEquals([look(), look()], [true, false]);
  driver.pool.cancel(probe, driver.nowMs);
  assertEquals([launch.probe, look(), look()], ["network", true, false]);
});

Deno.test("Two watches of one pool do not take changes from each other", () => {
  const driver = new Driver(["A"]);
  const [one, other] = [driver.pool.watch(), driver.pool.watch()];
  one.look(driver.nowMs);
  other.look(driver.nowMs);
  driver.run(inOrder(success()));
  assertEquals(idsOf(one.look(driver.nowMs).accounts), ["A"]);
  assertEquals(idsOf(other.look(driver.nowMs).accounts), ["A"]);
});
