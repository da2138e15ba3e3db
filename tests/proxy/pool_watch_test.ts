import { assertEquals } from "@std/assert";
import { account, Driver, HOUR_MS, inOrder } from "../support/pool_driver.ts";
import { limitedUntil, success } from "../support/outcomes.ts";

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

Deno.test("Two watches of one pool do not take changes from each other", () => {
  const driver = new Driver(["A"]);
  const [one, other] = [driver.pool.watch(), driver.pool.watch()];
  one.look(driver.nowMs);
  other.look(driver.nowMs);
  driver.run(inOrder(success()));
  assertEquals(idsOf(one.look(driver.nowMs).accounts), ["A"]);
  assertEquals(idsOf(other.look(driver.nowMs).accounts), ["A"]);
});
