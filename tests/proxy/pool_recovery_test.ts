/** Recovery's budget inside the machine (2D, C24, C28, rows 33 to 44, P21, P40). */
import { assert, assertEquals } from "@std/assert";
import type { Outcome } from "../../lib/core/outcome.ts";
import * as outcomes from "../support/outcomes.ts";
import { Driver, type Ending, HOUR_MS, inOrder, perAccount, START_MS } from "../support/pool_driver.ts";

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

Deno.test("a route closed during the back-off spends nothing: recovery is blocked, not exhausted", () => {
  const driver = new Driver(["a", "b"]);
  const plan = driver.begin({ recoveryAttempts: 1 });
  const other = driver.begin({ pinned: true, bound: "a" });
  const launches = [driver.launch(plan), driver.launch(other)];
  driver.settle(plan, launches[0]!, failure);
  driver.settle(other, launches[1]!, outcomes.transient("stream_failure"));
  driver.advance(1_000);
  const next = driver.launch(plan);
  driver.settle(plan, next, failure);
  driver.advance(1_000);
  const again = driver.launch(plan);
  assertEquals([next, again].map(({ account, cause }) => [account, cause]), [["b", "failover"], [
    "b",
    "recovery",
  ]]);
  driver.settle(plan, again, outcomes.success());
  const { notes } = driver.pool.finish(plan, 200, null, driver.nowMs);
  assertEquals(notes.filter((note) => note.startsWith("recover")), ["recovery_blocked", "recovered"]);
});

Deno.test("a request that waits for its blocked route and is served in a further round was not recovered", () => {
  const driver = new Driver(["a"]);
  const plan = driver.begin(ON);
  const other = driver.begin({ pinned: true, bound: "a" });
  const launches = [driver.launch(plan), driver.launch(other)];
  driver.settle(plan, launches[0]!, failure);
  driver.settle(other, launches[1]!, outcomes.transient("stream_failure"));
  driver.advance(1_000);
  const step = driver.next(plan);
  assertEquals(step.kind === "wait" && step.reason, "cooldown");
  driver.nowMs = step.kind === "wait" ? step.untilMs : 0;
  const again = driver.launch(plan);
  assertEquals(again.cause, "round");
  driver.settle(plan, again, outcomes.success());
  const { notes } = driver.pool.finish(plan, 200, null, driver.nowMs);
  assertEquals(notes.filter((note) => note.startsWith("recover")), ["recovery_blocked"]);
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

const noted: readonly {
  name: string;
  script: readonly (Outcome | Ending)[];
  notes: readonly string[];
}[] = [
  { name: "nothing, where nothing failed", script: [outcomes.success()], notes: [] },
  { name: "recovered, after one relaunch", script: [failure, outcomes.success()], notes: ["recovered"] },
  {
    name: "recovered, when the relaunch was repaired in between",
    script: [failure, outcomes.unauthorized(), outcomes.success()],
    notes: ["recovered"],
  },
  {
    name: "recovery_exhausted once, when the attempts are spent and another account serves",
    script: [failure, failure, failure, outcomes.success()],
    notes: ["recovery_exhausted"],
  },
  {
    name: "recovery_exhausted once, when the next account meets the spent budget too",
    script: [failure, failure, failure, failure, outcomes.success()],
    notes: ["recovery_exhausted"],
  },
  {
    name: "recovery_exhausted, when incomplete streams are all there is",
    script: [outcomes.incomplete(), outcomes.incomplete(), outcomes.incomplete()],
    notes: ["recovery_exhausted"],
  },
  {
    name: "recovery_exhausted, when the window is over before the first relaunch",
    script: [{ outcome: failure, afterMs: 20_001 }, outcomes.success()],
    notes: ["recovery_exhausted"],
  },
  {
    name: "nothing, when the upstream's own minimum lies past the window (row 26)",
    script: [
      outcomes.unavailable({ recoverable: true, notBeforeMs: START_MS + HOUR_MS }),
      outcomes.success(),
    ],
    notes: [],
  },
  {
    name: "nothing, when the relaunch meets a 429 and another account serves",
    script: [failure, outcomes.limitedUntil(Number.MAX_SAFE_INTEGER), outcomes.success()],
    notes: [],
  },
];
for (const c of noted) {
  Deno.test(`the record says ${c.name}`, () => {
    const driver = new Driver(["a", "b", "c"]);
    const { record } = driver.run(inOrder(...c.script), ON);
    assertEquals(record.notes.filter((note) => note.startsWith("recover")), c.notes);
  });
}

Deno.test("endRecovery(): the next failure is booked and the next account asked, budget or not (row 43)", () => {
  const driver = new Driver(["a", "b"]);
  const plan = driver.begin(ON);
  const launch = driver.launch(plan);
  driver.pool.endRecovery(plan, "failed_open:overflow");
  driver.settle(plan, launch, failure);
  assertEquals([driver.launch(plan).account, ladders(driver)], ["b", [1, 0]]);
  const record = driver.pool.finish(plan, 200, null, driver.nowMs);
  assertEquals(record.notes.filter((note) => note !== "provider_cooled"), ["failed_open:overflow"]);
});

Deno.test("the window counts from the first launch: an attempt it finds running goes on (2D.2)", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(
    inOrder({ outcome: failure, afterMs: 19_000 }, { outcome: outcomes.success(), afterMs: 60_000 }),
    ON,
  );
  assertEquals(result.launches.map(({ account, cause }) => [account, cause]), [["a", "first"], [
    "a",
    "recovery",
  ]]);
});

Deno.test("a back-off that ends exactly at the window's end is launched, one millisecond later is not", () => {
  const driver = new Driver(["a", "b"]);
  for (const [lateMs, want] of [[0, "recovery"], [1, "failover"]] as const) {
    const plan = driver.begin(ON);
    const first = driver.launch(plan);
    const endsAtMs = driver.nowMs + 20_000;
    driver.settle(plan, first, outcomes.unavailable({ recoverable: true, notBeforeMs: endsAtMs }));
    assertEquals(driver.next(plan), { kind: "wait", untilMs: endsAtMs, reason: "recovery_backoff" });
    driver.nowMs = endsAtMs + lateMs;
    const launch = driver.launch(plan);
    assertEquals(launch.cause, want);
    driver.settle(plan, launch, outcomes.success());
    driver.advance(HOUR_MS);
  }
});

Deno.test("a reload of window and back-off holds from the next failure on", () => {
  const driver = new Driver(["a", "b"]);
  const plan = driver.begin(ON);
  driver.settle(plan, driver.launch(plan), failure);
  driver.advance(250);
  driver.pool.reconfigure({
    recovery: { maxRetryWindowMs: 20_000, initialBackoffMs: 8_000, maxBackoffMs: 8_000 },
  });
  const waits = new Set<number>();
  for (let at = 0; at < 20; at++) {
    const other = driver.begin(ON);
    const launch = driver.launch(other);
    driver.settle(other, launch, failure);
    const step = driver.next(other);
    if (step.kind === "wait") waits.add(step.untilMs - driver.nowMs);
    driver.pool.cancel(other, driver.nowMs);
  }
  assert(Math.max(...waits) > 2_000, [...waits].join(" "));
  assertEquals(driver.launch(plan).cause, "recovery");
});
