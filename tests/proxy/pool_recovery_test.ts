/** Recovery's budget inside the machine (2D, C24, C28, rows 33 to 44, P21, P40). */
import { assert, assertEquals } from "@std/assert";
import * as outcomes from "../support/outcomes.ts";
import { Driver, type Ending, HOUR_MS, inOrder, perAccount } from "../support/pool_driver.ts";

const ON = { recoveryAttempts: 2 };
const failure = outcomes.transient("stream_failure", { row: 36, recoverable: true });

function ladders(driver: Driver) {
  return driver.pool.describeAccounts(driver.nowMs).map((view) => view.health.ladder?.strikes ?? 0);
}

Deno.test("recovery win: the same route again after a short back-off, and the loser leaves no trace (P21)", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(inOrder(failure, outcomes.success()), ON);
  assertEquals(result.launches.map(({ account, cause }) => [account, cause]), [["a", "first"], [
    "a",
    "recovery",
  ]]);
  assert(result.atMs[1]! <= 250);
  assertEquals([ladders(driver), driver.pool.describeProviders(driver.nowMs)[0]!.strikes], [[0, 0], 0]);
  assertEquals(driver.store.ledgers.get(result.record.requestId)!.charged, [result.launches[0]!.attempt]);
});

Deno.test("exhaustion books the last outcome once and goes on to the next account, budget spent", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(perAccount({ a: [failure], b: [failure, outcomes.success()] }), ON);
  assertEquals(result.launches.slice(0, 4).map(({ account, cause }) => [account, cause]), [
    ["a", "first"],
    ["a", "recovery"],
    ["a", "recovery"],
    ["b", "failover"],
  ]);
  assertEquals(result.launches.filter((launch) => launch.cause === "recovery").length, 2);
});

Deno.test("recovery off: the first failure is booked and the next account asked (P40)", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(inOrder(failure, outcomes.success()));
  assertEquals(result.launches.map((launch) => launch.account), ["a", "b"]);
  assertEquals(ladders(driver), [1, 0]);
});

const never = [
  { name: "429", outcome: outcomes.limitedUntil(Number.MAX_SAFE_INTEGER) },
  { name: "403", outcome: outcomes.credentialDead() },
  { name: "a failure judged not recoverable", outcome: outcomes.unavailable() },
];
for (const c of never) {
  Deno.test(`recovery never: ${c.name} goes to the next account (row 37)`, () => {
    const driver = new Driver(["a", "b"]);
    const result = driver.run(inOrder(c.outcome, outcomes.success()), ON);
    assertEquals(result.launches.map(({ account, cause }) => [account, cause]), [["a", "first"], [
      "b",
      "failover",
    ]]);
  });
}

Deno.test("a 401 inside recovery is one repair within the same budget", () => {
  const driver = new Driver(["a"]);
  const result = driver.run(inOrder(failure, outcomes.unauthorized(), failure, outcomes.success()), ON);
  assertEquals(result.launches.map((launch) => launch.cause), ["first", "recovery", "repair", "recovery"]);
});

Deno.test("incomplete twice: 408, nobody rests, the other account is not asked", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(() => outcomes.incomplete(), { recoveryAttempts: 1 });
  assertEquals([result.answer?.status, result.answer?.code], [408, "stream_incomplete"]);
  assertEquals(result.launches.map((launch) => launch.account), ["a", "a"]);
  assertEquals(ladders(driver), [0, 0]);
});

Deno.test("incomplete without recovery: 408 at once (row 40)", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(inOrder(outcomes.incomplete()));
  assertEquals([result.answer?.status, result.launches.length], [408, 1]);
});

Deno.test("no relaunch starts after the window, which counts from the request's first launch", () => {
  const driver = new Driver(["a", "b"]);
  const late: Ending = { outcome: failure, afterMs: 20_001 };
  const result = driver.run(inOrder(late, outcomes.success()), ON);
  assertEquals(result.launches.map((launch) => launch.account), ["a", "b"]);
});

Deno.test("a stated minimum within the window is kept, beyond it there is no recovery (row 26)", () => {
  const driver = new Driver(["a", "b"]);
  const near = outcomes.unavailable({ recoverable: true, notBeforeMs: driver.nowMs + 3_000 });
  const kept = driver.run(inOrder(near, outcomes.success()), ON);
  assertEquals([kept.launches[1]!.cause, kept.atMs[1]], ["recovery", 3_000]);
  const far = outcomes.unavailable({ recoverable: true, notBeforeMs: driver.nowMs + HOUR_MS });
  const left = driver.run(inOrder(far, outcomes.success()), ON);
  assertEquals(left.launches.map((launch) => launch.cause), ["first", "failover"]);
});

Deno.test("an attempt that probes is never recovered (C28)", () => {
  const driver = new Driver(["a"]);
  driver.run(() => outcomes.unavailable());
  driver.advance(60_000);
  const plan = driver.begin(ON);
  const launch = driver.launch(plan);
  assertEquals(launch.probe, "provider");
  driver.settle(plan, launch, failure);
  const step = driver.next(plan);
  assertEquals(step.kind === "wait" && step.reason, "cooldown");
});

Deno.test("a route closed during the back-off is not launched again; the failure then counts (P3)", () => {
  const driver = new Driver(["a", "b"]);
  const plan = driver.begin(ON);
  const other = driver.begin({ pinned: true, bound: "a" });
  const launches = [driver.launch(plan), driver.launch(other)];
  driver.settle(plan, launches[0]!, failure);
  driver.settle(other, launches[1]!, outcomes.limitedUntil(driver.nowMs + HOUR_MS));
  driver.advance(1_000);
  assertEquals(driver.launch(plan).account, "b");
  assertEquals(ladders(driver), [1, 0]);
});

Deno.test("an incomplete stream whose route closed during the back-off is told as 408", () => {
  const driver = new Driver(["a", "b"]);
  const plan = driver.begin(ON);
  driver.settle(plan, driver.launch(plan), outcomes.incomplete());
  driver.pool.setEnabled("a", false, driver.nowMs);
  driver.advance(1_000);
  const step = driver.next(plan);
  assertEquals(step.kind === "answer" && step.answer.status, 408);
});

Deno.test("no response inside recovery is evidence only once it counts", () => {
  const driver = new Driver(["a"]);
  const plan = driver.begin(ON);
  driver.settle(plan, driver.launch(plan), outcomes.noResponse({ recoverable: true }));
  assertEquals(driver.store.kinds, []);
  driver.advance(1_000);
  driver.settle(plan, driver.launch(plan), outcomes.success());
  assertEquals(ladders(driver), [0]);
});

Deno.test("cancel during a back-off sends nothing more and blames nobody", () => {
  const driver = new Driver(["a"]);
  const plan = driver.begin(ON);
  driver.settle(plan, driver.launch(plan), failure);
  driver.pool.cancel(plan, driver.nowMs);
  driver.advance(5_000);
  assertEquals([driver.next(plan).kind, ladders(driver)], ["stop", [0]]);
});

Deno.test("recovery keeps its session: repair and recovery never rebind (C22)", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", () => outcomes.success());
  driver.session("s", inOrder(failure, outcomes.success()), ON);
  assertEquals(driver.pool.lookupBinding(["s"], driver.nowMs), "a");
});
