/** Parks, override, recheck and credits over whole requests (2B, rulings 1 and 20; B002, B003, B015, B124). */
import { assert, assertEquals } from "@std/assert";
import type { QuotaReading } from "../../lib/core/records.ts";
import * as outcomes from "../support/outcomes.ts";
import { Driver, HOUR_MS, inOrder, MINUTE_MS, perAccount } from "../support/pool_driver.ts";

const OK = () => outcomes.success();
const ONE_ROUND = { policy: { requestRetry: 0, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 } };
const RECHECK = { ...ONE_ROUND, quota: { maxParkMs: 30 * MINUTE_MS, recheck: true } };

function page(driver: Driver, usedPercent: number, given: Partial<QuotaReading> = {}): QuotaReading {
  return {
    observedAtMs: driver.nowMs,
    source: "usage_page",
    windows: [{ name: "7d", usedPercent, resetAtMs: driver.nowMs + 4 * 24 * HOUR_MS, modelFamily: null }],
    limitReached: null,
    servesBeyondWindows: false,
    creditsAvailable: null,
    plan: null,
    ...given,
  };
}

function observe(driver: Driver, usedPercent: number, given: Partial<QuotaReading> = {}): void {
  driver.pool.observeQuota("a", page(driver, usedPercent, given), driver.nowMs);
}

/** A page read every minute, always spent. */
function poll(driver: Driver, minutes: number): void {
  for (let at = 0; at < minutes; at++) {
    driver.advance(MINUTE_MS);
    observe(driver, 100);
  }
}

Deno.test("the longer of an account's park and its family's park is what a client is told", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  const window = (modelFamily: string | null, resetMs: number) => ({
    name: modelFamily ?? "weekly",
    usedPercent: 100,
    resetAtMs: driver.nowMs + resetMs,
    modelFamily,
  });
  observe(driver, 100, { windows: [window(null, 5 * MINUTE_MS), window("m1", 20 * MINUTE_MS)] });
  const told = driver.run(inOrder()).answer!.retryAtMs!;
  assertEquals(told - driver.nowMs, 20 * MINUTE_MS);
  driver.advance(20 * MINUTE_MS);
  assertEquals(driver.run(inOrder(outcomes.success())).served?.account, "a");
});

Deno.test("B002: a spent page blocks 30 minutes at most, real service silences it, a real 429 stands alone", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  observe(driver, 100);
  const now = driver.run(inOrder());
  assertEquals([now.answer?.status, now.answer?.undispatched], [429, true]);
  assertEquals(now.answer!.retryAtMs! - driver.nowMs, 30 * MINUTE_MS);
  assertEquals(now.record.candidates[0]!.block?.source, "usage_page");
  poll(driver, 29);
  const late = driver.run(inOrder());
  assertEquals(late.answer!.retryAtMs! - driver.nowMs, MINUTE_MS);
  driver.advance(MINUTE_MS + 1_000);
  assertEquals(driver.run(OK).launches.length, 1);
  poll(driver, 15);
  assertEquals(driver.run(OK).launches.length, 1);
  driver.run(inOrder(outcomes.limitedSomehow("quota")));
  poll(driver, 4);
  assertEquals(driver.run(inOrder()).answer?.status, 429);
  poll(driver, 1);
  assertEquals(driver.run(OK).launches.length, 1);
});

Deno.test("scrape storm: never blocked longer than 30 minutes, then never again while success slides the override", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  const begunMs = driver.nowMs;
  let firstMs: number | null = null;
  for (let minute = 0; minute < 120; minute++) {
    observe(driver, 100);
    const result = driver.run(OK);
    if (result.served !== null) firstMs ??= driver.nowMs;
    if (firstMs !== null) assert(result.served !== null, `blocked again in minute ${minute}`);
    driver.advance(MINUTE_MS);
  }
  assertEquals(firstMs! - begunMs, 30 * MINUTE_MS);
});

Deno.test("park then 429: a trial refused without a time rests 300 s, override and park gone", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  observe(driver, 100);
  driver.advance(30 * MINUTE_MS);
  const trial = driver.run(inOrder(outcomes.limitedSomehow("quota")));
  assertEquals(trial.answer!.retryAtMs! - driver.nowMs, 300_000);
  observe(driver, 100);
  const { health } = driver.pool.describeAccounts(driver.nowMs)[0]!;
  assertEquals([health.park, health.overrideUntilMs, health.probeOwed], [null, 0, true]);
});

Deno.test("the override ends half an hour after the last success, and an earlier page shows through again", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  driver.run(OK);
  driver.advance(20 * MINUTE_MS);
  observe(driver, 100);
  driver.advance(10 * MINUTE_MS - 1);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.state, "healthy");
  driver.advance(1);
  assertEquals(driver.run(inOrder()).answer!.retryAtMs! - driver.nowMs, 20 * MINUTE_MS);
});

Deno.test("a page takes the account out of rotation only while others serve", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  observe(driver, 100);
  assertEquals([1, 2, 3].map(() => driver.run(OK).served!.account), ["b", "b", "b"]);
});

Deno.test("a notice in a running stream parks for the next request and cuts nothing (row 39, B070)", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  const plan = driver.begin();
  const launch = driver.launch(plan);
  observe(driver, 40, { limitReached: true, source: "stream_event" });
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.state, "parked");
  driver.settle(plan, launch, outcomes.success());
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.state, "healthy");
  // The closure that stood for the parked account fell with the park.
  assertEquals(driver.run(OK).launches.map(({ probe }) => probe), ["none"]);
});

const restarts = [
  { name: "fresh: anchored at its own time", ageMs: 10 * MINUTE_MS, wantMs: 20 * MINUTE_MS },
  { name: "two hours old: over already (B124)", ageMs: 120 * MINUTE_MS, wantMs: null },
] as const;
for (const c of restarts) {
  Deno.test(`a page read back after a restart is ${c.name}`, () => {
    const driver = new Driver(["a"], ONE_ROUND);
    observe(driver, 100);
    driver.advance(c.ageMs);
    driver.restart();
    const { health } = driver.pool.describeAccounts(driver.nowMs)[0]!;
    assertEquals(health.park === null ? null : health.park.untilMs - driver.nowMs, c.wantMs);
  });
}

Deno.test("pages never touch a deadline: not spent, not fresh, not after a restart (P19)", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  const untilMs = driver.nowMs + 5 * HOUR_MS;
  driver.run(inOrder(outcomes.limitedUntil(untilMs)));
  for (const usedPercent of [3, 100, 3]) {
    driver.advance(MINUTE_MS);
    observe(driver, usedPercent);
    assertEquals(driver.run(inOrder()).answer!.retryAtMs, untilMs);
  }
  driver.restart();
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.deadlineContradicted, true);
  assertEquals(driver.run(inOrder()).answer!.retryAtMs, untilMs);
});

Deno.test("B003, by hand: a reset ends the deadline at once, on disk too, with an audit line", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  driver.run(inOrder(outcomes.limitedUntil(driver.nowMs + 561_600_000)));
  driver.advance(10 * MINUTE_MS);
  assertEquals(driver.pool.resetAccount("a", driver.nowMs), true);
  assertEquals(driver.run(OK).status, 200);
  driver.restart();
  assertEquals(driver.run(OK).status, 200);
  assertEquals(driver.store.audits.map(({ action, subject }) => [action, subject]), [[
    "time_blocks_cleared",
    "a",
  ]]);
});

Deno.test("B003, by recheck: newer news lets one probe out; its success ends the deadline, on disk too", () => {
  const driver = new Driver(["a"], RECHECK);
  driver.run(inOrder(outcomes.limitedUntil(driver.nowMs + 561_600_000)));
  driver.advance(10 * MINUTE_MS);
  assertEquals(driver.run(inOrder()).status, 429);
  observe(driver, 3);
  const result = driver.run(OK);
  assertEquals(result.launches.map(({ probe, trial, fresh }) => [probe, trial, fresh]), [[
    "recheck",
    "recheck",
    true,
  ]]);
  driver.restart();
  assertEquals(driver.run(OK).launches.map(({ probe }) => probe), ["none"]);
});

Deno.test("a recheck answered 429 renews the deadline, and the next one is half an hour away", () => {
  const driver = new Driver(["a"], RECHECK);
  driver.run(inOrder(outcomes.limitedUntil(driver.nowMs + 10 * HOUR_MS)));
  driver.advance(MINUTE_MS);
  observe(driver, 3);
  const renewedMs = driver.nowMs + 12 * HOUR_MS;
  assertEquals(driver.run(inOrder(outcomes.limitedUntil(renewedMs))).answer!.retryAtMs, renewedMs);
  driver.advance(30 * MINUTE_MS - 1);
  observe(driver, 3);
  assertEquals(driver.run(inOrder()).launches.length, 0);
  driver.advance(1);
  assertEquals(driver.run(OK).launches.length, 1);
});

Deno.test("a deadline that a recheck shortens keeps its provider closed no longer than itself", () => {
  const driver = new Driver(["a"], RECHECK);
  driver.run(inOrder(outcomes.limitedUntil(driver.nowMs + 36 * HOUR_MS)));
  driver.advance(10 * MINUTE_MS);
  observe(driver, 3);
  const shorterMs = driver.nowMs + 8 * MINUTE_MS;
  assertEquals(driver.run(inOrder(outcomes.limitedUntil(shorterMs))).answer!.retryAtMs, shorterMs);
  driver.advance(8 * MINUTE_MS);
  const { status, launches } = driver.run(OK);
  assertEquals([status, launches.length], [200, 1]);
});

Deno.test("one of several deadlines that grows shorter opens their provider when it ends", () => {
  const driver = new Driver(["a", "b"], RECHECK);
  driver.run(() => outcomes.limitedUntil(driver.nowMs + 36 * HOUR_MS));
  driver.advance(10 * MINUTE_MS);
  observe(driver, 3);
  const shorterMs = driver.nowMs + 8 * MINUTE_MS;
  assertEquals(driver.run(inOrder(outcomes.limitedUntil(shorterMs))).answer!.retryAtMs, shorterMs);
  driver.advance(8 * MINUTE_MS);
  const { served } = driver.run(OK);
  assertEquals(served?.account, "a");
});

Deno.test("one recheck at a time, and none while anybody else can serve", () => {
  const driver = new Driver(["a", "b"], RECHECK);
  driver.run(perAccount({ a: [outcomes.limitedUntil(driver.nowMs + HOUR_MS)], b: [outcomes.success()] }));
  driver.advance(MINUTE_MS);
  observe(driver, 3);
  assertEquals(driver.run(OK).served!.account, "b");
  driver.pool.setEnabled("b", false, driver.nowMs);
  const first = driver.begin();
  assertEquals(driver.launch(first).trial, "recheck");
  assertEquals(driver.next(driver.begin()).kind, "answer");
  driver.pool.cancel(first, driver.nowMs);
  assertEquals(driver.next(driver.begin()).kind, "answer");
});

Deno.test("without credits: dead without a clock, over a restart, until an operator's word (C8)", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  assertEquals(driver.run(inOrder(outcomes.noCredits())).answer?.code, "auth_unavailable");
  driver.restart();
  assertEquals(driver.run(inOrder()).answer?.code, "auth_unavailable");
  driver.pool.reconcile([{ ...driver.accounts[0]!, fingerprint: "new" }], driver.nowMs);
  assertEquals(driver.run(inOrder()).answer?.code, "auth_unavailable");
  assertEquals(driver.pool.toppedUp("a", driver.nowMs), true);
  assertEquals(driver.run(OK).status, 200);
  driver.restart();
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.state, "healthy");
});

Deno.test("without credits: one real request an hour tests it, and fails over when it is still so (ruling 20)", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  const script = perAccount({ a: [outcomes.noCredits()], b: [outcomes.success()] });
  driver.run(script);
  driver.advance(HOUR_MS - 1);
  assertEquals([1, 2, 3].map(() => driver.run(script).launches.length), [1, 1, 1]);
  driver.advance(1);
  const tests = [1, 2, 3, 4].flatMap(() => driver.run(script).launches).filter(({ trial }) =>
    trial === "credits"
  );
  assertEquals(tests.map(({ account, probe }) => [account, probe]), [["a", "credits"]]);
  driver.advance(HOUR_MS);
  driver.run(OK);
  driver.run(OK);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.state, "healthy");
});

Deno.test("without credits: the hourly test is made although everybody else is out of quota for days (ruling 20)", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  const spentUntilMs = driver.nowMs + 96 * HOUR_MS;
  driver.run(perAccount({ a: [outcomes.noCredits()], b: [outcomes.limitedUntil(spentUntilMs)] }));
  driver.advance(HOUR_MS - 1);
  assertEquals(driver.run(OK).launches.length, 0);
  driver.advance(1);
  const test = driver.run(() => outcomes.noCredits());
  assertEquals([test.launches.map(({ account, trial }) => [account, trial]), test.answer?.retryAtMs], [
    [["a", "credits"]],
    spentUntilMs,
  ]);
  assertEquals(driver.run(OK).launches.length, 0);
  driver.advance(HOUR_MS);
  assertEquals([1, 2].map(() => driver.run(OK).served?.account), ["a", "a"]);
});

Deno.test("a once-only request tests missing credits only when nobody else can serve", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  driver.run(perAccount({ a: [outcomes.noCredits()], b: [outcomes.success()] }));
  driver.advance(HOUR_MS);
  const once = { replay: "once" } as const;
  assertEquals([1, 2, 3].map(() => driver.run(OK, once).launches[0]!.trial), ["none", "none", "none"]);
  driver.pool.setEnabled("b", false, driver.nowMs);
  assertEquals(driver.run(OK, once).launches[0]!.trial, "credits");
});

Deno.test("a page that shows credits brings the test forward", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  driver.run(inOrder(outcomes.noCredits()));
  driver.advance(MINUTE_MS);
  observe(driver, 10, { creditsAvailable: true });
  assertEquals(driver.run(OK).launches.map(({ trial }) => trial), ["credits"]);
});

Deno.test("a page older than the last refusal for credits brings no test forward (ruling 20)", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  driver.run(inOrder(outcomes.noCredits()));
  driver.advance(MINUTE_MS);
  const observedAtMs = driver.nowMs;
  driver.advance(HOUR_MS);
  driver.run(inOrder(outcomes.noCredits()));
  observe(driver, 10, { creditsAvailable: true, observedAtMs });
  assertEquals(driver.run(inOrder()).launches, []);
  driver.restart();
  assertEquals(driver.run(inOrder()).launches, []);
  driver.advance(HOUR_MS);
  assertEquals(driver.run(OK).launches.map(({ trial }) => trial), ["credits"]);
});

Deno.test("a paused workspace rests an hour in memory, and is forgotten by a restart", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  driver.run(inOrder(outcomes.workspacePaused(driver.nowMs + HOUR_MS)));
  assertEquals(driver.run(inOrder()).answer?.status, 502);
  driver.restart();
  assertEquals(driver.run(OK).status, 200);
});

Deno.test("a limit on one model leaves the others alone, and is kept on disk when stated (B005)", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  const untilMs = driver.nowMs + HOUR_MS;
  assertEquals(driver.run(inOrder(outcomes.limitedUntil(untilMs, "model"))).answer!.retryAtMs, untilMs);
  driver.restart();
  const refused = driver.run(inOrder());
  assertEquals([refused.answer!.retryAtMs, refused.record.candidates[0]!.block?.kind], [
    untilMs,
    "model_deadline",
  ]);
  assertEquals(driver.run(OK, { targets: [{ provider: "codex", model: "m2" }] }).status, 200);
});

Deno.test("a deadline in the past never blocks, whatever was stored (B015)", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  driver.run(() => outcomes.limitedUntil(driver.nowMs + 60_000));
  driver.advance(25 * HOUR_MS);
  driver.restart();
  assertEquals(driver.run(OK).status, 200);
  assertEquals(driver.pool.describeAccounts(driver.nowMs).map((view) => view.state), ["healthy", "healthy"]);
});

Deno.test("unchanged pages are written once a minute at most, news at once", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  for (let second = 0; second < 120; second++) {
    observe(driver, 40);
    driver.advance(1_000);
  }
  assertEquals(driver.store.kinds.filter((kind) => kind === "put_reading").length, 2);
  observe(driver, 100);
  assertEquals(driver.store.kinds.filter((kind) => kind === "put_reading").length, 3);
});
