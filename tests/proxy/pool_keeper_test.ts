/** Start-up, hot reload and operators (2A.3, 3.6, C7, C35). */
import { assertEquals } from "@std/assert";
import * as outcomes from "../support/outcomes.ts";
import { account, Driver, HOUR_MS, inOrder, perAccount } from "../support/pool_driver.ts";

const OK = () => outcomes.success();
const ONE_ROUND = { policy: { requestRetry: 0, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 } };

function states(driver: Driver): string[] {
  return driver.pool.describeAccounts(driver.nowMs).map((view) => `${view.account.id} ${view.state}`);
}

Deno.test("reconcile() tells what came, changed and went, and nothing when nothing did", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.pool.reconcile([account("b", { fingerprint: "b-2" }), account("c")], driver.nowMs);
  assertEquals(result, { added: ["c"], updated: ["b"], removed: ["a"] });
  const again = driver.pool.reconcile([account("c"), account("b", { fingerprint: "b-2" })], driver.nowMs);
  assertEquals(again, { added: [], updated: [], removed: [] });
});

Deno.test("reconcile() with new material ends credential marks and exclusions, never a live deadline", () => {
  const driver = new Driver(["a", "b", "c"], ONE_ROUND);
  driver.run(perAccount({
    a: [outcomes.credentialDead()],
    b: [outcomes.modelUnsupported()],
    c: [outcomes.limitedUntil(driver.nowMs + HOUR_MS)],
  }));
  driver.pool.reconcile(["a", "b", "c"].map((id) => account(id, { fingerprint: `${id}-2` })), driver.nowMs);
  assertEquals(states(driver), ["a healthy", "b healthy", "c cooling"]);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[1]!.excludedModels, []);
  driver.restart(["a", "b", "c"].map((id) => account(id, { fingerprint: `${id}-2` })));
  assertEquals(states(driver), ["a healthy", "b healthy", "c cooling"]);
});

Deno.test("reconcile() forgets a removed account: the same id later starts clean", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  driver.run(perAccount({ a: [outcomes.limitedUntil(driver.nowMs + HOUR_MS)], b: [outcomes.success()] }));
  driver.pool.setEnabled("a", false, driver.nowMs);
  driver.pool.reconcile([account("b")], driver.nowMs);
  driver.pool.reconcile([account("a"), account("b")], driver.nowMs);
  assertEquals(states(driver), ["a healthy", "b healthy"]);
  driver.restart();
  assertEquals(states(driver), ["a healthy", "b healthy"]);
});

Deno.test("a late answer of a removed account writes nothing that its next life would meet (2A.3)", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  const plan = driver.begin({ pinned: true, bound: "a" });
  const launch = driver.launch(plan);
  driver.pool.reconcile([account("b")], driver.nowMs);
  driver.settle(plan, launch, outcomes.limitedUntil(driver.nowMs + HOUR_MS));
  driver.pool.reconcile([account("a"), account("b")], driver.nowMs);
  driver.restart();
  assertEquals(states(driver), ["a healthy", "b healthy"]);
});

Deno.test("an id that moves to another provider is switched on again: it is another account (2A.3)", () => {
  const driver = new Driver(["a", "b"]);
  driver.pool.setEnabled("a", false, driver.nowMs);
  driver.pool.reconcile([account("a", { provider: "q" }), account("b")], driver.nowMs);
  assertEquals(states(driver), ["a healthy", "b healthy"]);
});

Deno.test("reconcile() moves an id to another provider as a removal and an addition", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.pool.reconcile([account("a", { provider: "q" }), account("b")], driver.nowMs);
  assertEquals([result.added, result.removed], [["a"], ["a"]]);
  assertEquals(driver.run(OK, { targets: [{ provider: "q", model: "m" }] }).served!.account, "a");
  assertEquals([1, 2].map(() => driver.run(OK).served!.account), ["b", "b"]);
});

Deno.test("reconcile() ignores the order of the configuration", () => {
  const forward = new Driver(["a", "b", "c"]);
  const backward = new Driver(["c", "b", "a"]);
  for (let at = 0; at < 5; at++) {
    assertEquals(forward.run(OK).served!.account, backward.run(OK).served!.account);
  }
});

Deno.test("restore() drops rows of accounts that are gone, once the accounts are known", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  driver.run(() => outcomes.limitedUntil(driver.nowMs + HOUR_MS));
  driver.restart([account("b")]);
  assertEquals(driver.store.load().deadlines.map((row) => row.account), ["b"]);
});

Deno.test("restore() forgets the switch of an account that is gone: the same id later is switched on, for good", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  driver.run(perAccount({ a: [outcomes.limitedUntil(driver.nowMs + HOUR_MS)], b: [outcomes.success()] }));
  driver.pool.setEnabled("a", false, driver.nowMs);
  driver.restart([account("b")]);
  driver.pool.reconcile([account("a"), account("b")], driver.nowMs);
  assertEquals(states(driver), ["a healthy", "b healthy"]);
  driver.restart([account("a"), account("b")]);
  assertEquals(states(driver), ["a healthy", "b healthy"]);
});

Deno.test("restore() forgets the switch of an account that is gone and had nothing else to forget", () => {
  const driver = new Driver(["a", "b"]);
  driver.pool.setEnabled("a", false, driver.nowMs);
  driver.restart([account("b")]);
  assertEquals(driver.store.load().disabled, []);
});

Deno.test("restore() drops a credential mark of other material, and times that are over", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  driver.run(
    perAccount({ a: [outcomes.credentialDead()], b: [outcomes.limitedUntil(driver.nowMs + 60_000)] }),
  );
  driver.advance(60_000);
  driver.restart([account("a", { fingerprint: "a-2" }), account("b")]);
  assertEquals(states(driver), ["a healthy", "b healthy"]);
  const { credentials, deadlines } = driver.store.load();
  assertEquals([credentials, deadlines], [[], []]);
});

Deno.test("setEnabled() takes an account out and back, over a reload and a restart", () => {
  const driver = new Driver(["a", "b"]);
  assertEquals(driver.pool.setEnabled("a", false, driver.nowMs), true);
  assertEquals([1, 2].map(() => driver.run(OK).served!.account), ["b", "b"]);
  driver.pool.reconcile([account("a", { fingerprint: "a-2" }), account("b")], driver.nowMs);
  assertEquals(states(driver), ["a disabled", "b healthy"]);
  driver.restart();
  assertEquals(states(driver), ["a disabled", "b healthy"]);
  driver.pool.setEnabled("a", true, driver.nowMs);
  driver.restart();
  assertEquals(states(driver), ["a healthy", "b healthy"]);
});

Deno.test("resetAccount() clears time blocks and the provider's cooldown, never credentials or exclusions (C35)", () => {
  const driver = new Driver(["a"]);
  driver.run(() => outcomes.unavailable());
  assertEquals(driver.pool.describeProviders(driver.nowMs)[0]!.cooldown !== null, true);
  driver.pool.resetAccount("a", driver.nowMs);
  assertEquals([states(driver), driver.pool.describeProviders(driver.nowMs)[0]!.cooldown], [
    ["a healthy"],
    null,
  ]);
  driver.run(inOrder(outcomes.modelUnsupported()));
  driver.pool.resetAccount("a", driver.nowMs);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.excludedModels, ["m1"]);
  driver.run(inOrder(outcomes.credentialDead()), { targets: [{ provider: "codex", model: "m2" }] });
  driver.pool.resetAccount("a", driver.nowMs);
  assertEquals(states(driver), ["a unavailable"]);
});

Deno.test("operators are told when an account is unknown", () => {
  const driver = new Driver(["a"]);
  const { pool, nowMs } = driver;
  assertEquals(
    [pool.setEnabled("x", true, nowMs), pool.resetAccount("x", nowMs), pool.toppedUp("x", nowMs)],
    [false, false, false],
  );
  pool.refreshed("x", "f", nowMs);
  pool.backgroundRefreshFailed("x", outcomes.refreshDead(), nowMs);
  assertEquals(driver.store.kinds, []);
});

Deno.test("explain() says of every account of the targets what speaks against it", () => {
  const driver = new Driver(["a", "b", account("q1", { provider: "q" })], ONE_ROUND);
  driver.run(
    perAccount({ a: [outcomes.modelUnsupported()], b: [outcomes.limitedUntil(driver.nowMs + 9_000)] }),
  );
  const rows = driver.pool.explain(
    [{ provider: "codex", model: "m1" }, { provider: "q", model: "n" }],
    driver.nowMs,
  );
  assertEquals(rows.map(({ account, block }) => [account, block?.kind ?? null, block?.source ?? null]), [
    ["a", "model_excluded", "model_unsupported"],
    ["b", "deadline", "retry_after"],
    ["q1", null, null],
  ]);
});

Deno.test("nextWakeMs() is the next moment at which something runs out", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  assertEquals(driver.pool.nextWakeMs(driver.nowMs), null);
  driver.run(perAccount({
    a: [outcomes.limitedUntil(driver.nowMs + 50_000)],
    b: [outcomes.limitedUntil(driver.nowMs + 20_000)],
  }));
  assertEquals(driver.pool.nextWakeMs(driver.nowMs)! - driver.nowMs, 20_000);
  driver.advance(20_000);
  assertEquals(driver.pool.nextWakeMs(driver.nowMs)! - driver.nowMs, 30_000);
});

Deno.test("describeAccounts() counts requests in flight and gives them back (B164)", () => {
  const driver = new Driver(["a"]);
  const plans = Array.from({ length: 50 }, () => driver.begin());
  const launches = plans.map((plan) => driver.launch(plan));
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.inFlight, 50);
  plans.forEach((plan, at) => {
    if (at % 3 === 0) driver.pool.cancel(plan, driver.nowMs);
    else if (at % 3 === 1) driver.settle(plan, launches[at]!, outcomes.unavailable());
    driver.pool.finish(plan, 0, null, driver.nowMs);
  });
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.inFlight, 0);
});

Deno.test("the same seed and the same calls give the same steps (P33)", () => {
  const play = () => {
    const driver = new Driver(["a", "b", "c"]);
    const endings = [outcomes.unavailable(), outcomes.limitedSomehow("rate"), outcomes.noResponse()];
    let at = 0;
    return [1, 2, 3].map(() => {
      const result = driver.run(() => endings[at++ % 3]!);
      return [result.atMs, result.launches.map((launch) => launch.account), result.answer];
    });
  };
  assertEquals(play(), play());
});

Deno.test("a decision names at most two hundred blocked accounts, and says that it was cut", () => {
  const driver = new Driver(
    Array.from({ length: 300 }, (_, at) => `a${String(at).padStart(3, "0")}`),
    ONE_ROUND,
  );
  const untilMs = driver.nowMs + HOUR_MS;
  driver.run(() => outcomes.limitedUntil(untilMs));
  const { record } = driver.run(inOrder());
  assertEquals([record.candidates.length, record.notes], [200, ["candidates_cut"]]);
});

Deno.test("a model name too long for a key excludes nothing and still ends the request", () => {
  const driver = new Driver(["a"]);
  const targets = [{ provider: "codex", model: "m".repeat(129) }];
  const result = driver.run(() => outcomes.modelUnsupported(), { targets });
  assertEquals(result.answer?.status, 404);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.excludedModels, []);
});
