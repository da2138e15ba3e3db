/** What a crash may cost: charges before launches, resumed budgets, writes that fail (2C.5, P23 to P31). */
import { assertEquals, assertThrows } from "@std/assert";
import { StoreFailure } from "../../lib/ports.ts";
import * as outcomes from "../support/outcomes.ts";
import { account, Driver, HOUR_MS, inOrder } from "../support/pool_driver.ts";

const OK = () => outcomes.success();

Deno.test("the first launch of a request writes nothing durable, a served one only the veto", () => {
  const driver = new Driver(["a"]);
  const plan = driver.begin({ idempotency: "key" });
  const launch = driver.launch(plan);
  assertEquals(driver.store.kinds, []);
  driver.settle(plan, launch, outcomes.success());
  driver.pool.finish(plan, 200, null, driver.nowMs);
  assertEquals(driver.store.kinds, ["put_network"]);
});

Deno.test("the failed attempt is charged in the write that precedes its replacement (P26)", () => {
  const driver = new Driver(["a", "b"]);
  const plan = driver.begin();
  const first = driver.launch(plan);
  driver.settle(plan, first, outcomes.unavailable());
  const second = driver.launch(plan);
  const row = driver.store.ledgers.get(plan.spec.id)!;
  assertEquals([row.charged, row.counter, row.closed], [[first.attempt], second.counter, false]);
  driver.settle(plan, second, outcomes.success());
  driver.pool.finish(plan, 200, null, driver.nowMs);
  assertEquals(driver.store.ledgers.get(plan.spec.id)!.closed, true);
});

Deno.test("ledger crash: no relaunch after it, and the same key sees the spent charges (P27)", () => {
  const driver = new Driver(["a", "b"]);
  const plan = driver.begin({ id: "req_old", idempotency: "key" });
  driver.settle(plan, driver.launch(plan), outcomes.unavailable());
  driver.launch(plan);
  driver.restart();
  assertEquals(driver.store.ledgers.get("req_old")!.closed, false);
  const again = driver.begin({ idempotency: "key" });
  const launch = driver.launch(again);
  assertEquals(launch.attempt, "req_old:3");
  assertEquals(driver.store.ledgers.get("req_old")!.charged, ["req_old:1", "req_old:2"]);
  assertEquals(again.record.notes, ["ledger_resumed"]);
  driver.settle(again, launch, outcomes.success());
  driver.pool.finish(again, 200, null, driver.nowMs);
  assertEquals(driver.store.ledgers.get("req_old")!.closed, true);
  assertEquals(driver.run(OK, { idempotency: "key" }).launches[0]!.counter, 1);
});

Deno.test("a key of another request, or after an hour, resumes nothing", () => {
  const driver = new Driver(["a", "b"]);
  const plan = driver.begin({ id: "req_old", idempotency: "key" });
  driver.settle(plan, driver.launch(plan), outcomes.unavailable());
  driver.launch(plan);
  driver.restart();
  assertEquals(driver.run(OK, { idempotency: "other" }).launches[0]!.counter, 1);
  driver.advance(HOUR_MS);
  assertEquals(driver.run(OK, { idempotency: "key" }).launches[0]!.counter, 1);
  assertEquals(driver.store.ledgers.get("req_old")!.closed, true);
});

Deno.test("a ledger without a key is closed by the next start, without refund", () => {
  const driver = new Driver(["a", "b"]);
  const plan = driver.begin();
  driver.settle(plan, driver.launch(plan), outcomes.unavailable());
  driver.launch(plan);
  driver.restart();
  const row = driver.store.ledgers.get(plan.spec.id)!;
  assertEquals([row.closed, row.charged.length], [true, 1]);
});

Deno.test("a full ledger launches nothing more, even with an account at hand", () => {
  const driver = new Driver(["a", "b"], {
    policy: { requestRetry: 0, maxRetryCredentials: 1, maxRetryIntervalMs: 30_000 },
  });
  const plan = driver.begin({ id: "req_old", idempotency: "key" });
  const first = driver.launch(plan);
  driver.settle(plan, first, outcomes.unauthorized());
  driver.pool.repaired(plan, first, { kind: "fresh_token", fingerprint: "a-2" }, driver.nowMs);
  driver.launch(plan);
  driver.restart([account("a", { fingerprint: "a-2" }), account("b")]);
  // Bound 1 + 2: two were launched, one is left.
  const resumed = driver.begin({ idempotency: "key" });
  driver.settle(resumed, driver.launch(resumed), outcomes.unauthorized());
  const repair = driver.next(resumed);
  if (repair.kind !== "repair") throw new Error(`Expected a repair, got ${repair.kind}`);
  driver.pool.repaired(resumed, repair.launch, { kind: "fresh_token", fingerprint: "a-3" }, driver.nowMs);
  assertEquals(driver.next(resumed).kind, "answer");
});

Deno.test("a ledger spent before the crash sends nothing at all after it", () => {
  const driver = new Driver(["a", "b"], {
    policy: { requestRetry: 0, maxRetryCredentials: 1, maxRetryIntervalMs: 30_000 },
  });
  const plan = driver.begin({ idempotency: "key" });
  const first = driver.launch(plan);
  driver.settle(plan, first, outcomes.unauthorized());
  driver.pool.repaired(plan, first, { kind: "fresh_token", fingerprint: "a-2" }, driver.nowMs);
  driver.settle(plan, driver.launch(plan), outcomes.noResponse({ pooled: true }));
  assertEquals(driver.launch(plan).counter, 3);
  driver.restart();
  const resumed = driver.run(inOrder(), { idempotency: "key" });
  assertEquals([resumed.launches, resumed.answer?.status], [[], 502]);
});

const poisons = [
  { name: "charged twice", charged: ["req_1:1", "req_1:1"] },
  { name: "an attempt never minted", charged: ["req_1:7"] },
  { name: "an attempt of another request", charged: ["req_2:1"] },
  { name: "no attempt id", charged: ["x"] },
] as const;
for (const c of poisons) {
  Deno.test(`restore() refuses a poisoned ledger and launches nothing: ${c.name} (P30)`, () => {
    const driver = new Driver(["a"]);
    driver.store.ledgers.set("req_1", {
      request: "req_1",
      idempotency: null,
      counter: 2,
      charged: c.charged,
      maxLaunches: 9,
      openedAtMs: driver.nowMs,
      closed: false,
    });
    assertThrows(() => driver.restart(), StoreFailure, "req_1");
  });
}

Deno.test("a write that fails launches nothing, and what had to be written is not forgotten (P28)", () => {
  const driver = new Driver(["a", "b"]);
  const plan = driver.begin();
  driver.settle(plan, driver.launch(plan), outcomes.unavailable());
  driver.store.failWriteIn = 1;
  assertThrows(() => driver.next(plan), StoreFailure, "disk is full");
  driver.restart();
  assertEquals(driver.store.ledgers.size, 0);
});

Deno.test("fault N: whichever write fails, a new process holds every deadline that was acknowledged (P23)", () => {
  for (let failing = 1;; failing++) {
    const driver = new Driver(["a", "b", "c"]);
    const acknowledged = new Map<string, number>();
    driver.store.failWriteIn = failing;
    let failed = false;
    for (let at = 0; at < 6 && !failed; at++) {
      try {
        const plan = driver.begin();
        const step = driver.next(plan);
        if (step.kind !== "launch") break;
        const untilMs = driver.nowMs + HOUR_MS + at;
        driver.settle(plan, step.launch, outcomes.limitedUntil(untilMs));
        acknowledged.set(step.launch.account, untilMs);
        driver.pool.finish(plan, 429, null, driver.nowMs);
      } catch (error) {
        if (!(error instanceof StoreFailure)) throw error;
        failed = true;
      }
    }
    driver.restart();
    for (const view of driver.pool.describeAccounts(driver.nowMs)) {
      const untilMs = acknowledged.get(view.account.id);
      if (untilMs !== undefined) assertEquals(view.health.deadline?.untilMs, untilMs);
    }
    if (!failed) {
      assertEquals([failing > 1, acknowledged.size], [true, 3]);
      break;
    }
  }
});

Deno.test("what a restart keeps and what it forgets is the same whichever way it was set (B123, P24)", () => {
  const cases = [
    { outcome: outcomes.unavailable(), kept: false },
    { outcome: outcomes.noResponse(), kept: false },
    { outcome: outcomes.limitedSomehow("rate"), kept: false },
    { outcome: outcomes.limitedSomehow("quota"), kept: false },
    { outcome: outcomes.modelUnsupported(), kept: false },
    { outcome: outcomes.limitedUntil(Number.MAX_SAFE_INTEGER), kept: true },
    { outcome: outcomes.credentialDead(), kept: true },
    { outcome: outcomes.refreshDead(), kept: true },
    { outcome: outcomes.refreshDead("credential_invalid"), kept: false },
    { outcome: outcomes.noCredits(), kept: true },
  ];
  for (const commit of [false, true]) {
    for (const { outcome, kept } of cases) {
      const driver = new Driver(["a"], {
        policy: { requestRetry: 0, maxRetryCredentials: 0, maxRetryIntervalMs: 0 },
      });
      driver.run(inOrder({ outcome, commit }));
      driver.restart();
      const blocked = driver.run(OK).served === null;
      assertEquals(blocked, kept, `${outcome.kind}, commit ${commit}`);
    }
  }
});
