/** One provider: the named scenarios of state-machine-facts 6.4 and the budgets of 3.5, told step by step. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { cancelled, credentialDead, limitedSomehow, limitedUntil } from "../support/outcomes.ts";
import { noResponse, refreshDead, refreshFailed, requestFault, success } from "../support/outcomes.ts";
import { transient, unauthorized, unavailable } from "../support/outcomes.ts";
import { account, Driver, inOrder, perAccount } from "../support/pool_driver.ts";

function policy(requestRetry: number, maxRetryCredentials: number, maxRetryIntervalMs: number) {
  return { policy: { requestRetry, maxRetryCredentials, maxRetryIntervalMs } };
}

Deno.test("single auth, one 503: launched at 0 and at 2..4 s, then served; no provider cooldown", () => {
  const driver = new Driver(["a"]);
  const result = driver.run(inOrder(unavailable(), success()));
  assertEquals(result.status, 200);
  assertEquals(result.launches.map((launch) => launch.cause), ["first", "round"]);
  assertEquals(result.atMs[0], 0);
  assert(result.atMs[1]! >= 2_000 && result.atMs[1]! < 4_000, `relaunched at ${result.atMs[1]}`);
  assertEquals(driver.pool.describeProviders(driver.nowMs)[0]!.cooldown, null);
});

Deno.test("single auth, dead: four launches, the provider cools at the second, later ones hold its lease; 502", () => {
  const driver = new Driver(["a"]);
  const result = driver.run(() => unavailable());
  assertEquals(result.launches.map((launch) => launch.probe), ["none", "none", "provider", "provider"]);
  assertEquals(result.answer?.code, "upstream_unavailable");
  const gaps = result.waits.map((wait) => wait.untilMs - wait.fromMs);
  assertEquals(gaps.length, 3);
  for (const [at, base] of [2_000, 4_000, 8_000].entries()) {
    assert(gaps[at]! >= base && gaps[at]! < base + 2_000, `wait ${at} took ${gaps[at]}`);
  }
});

Deno.test("three auths 503, 503, ok: the third answers and no strike is left", () => {
  const driver = new Driver(["a", "b", "c"]);
  const result = driver.run(inOrder(unavailable(), unavailable(), success()));
  assertEquals(result.launches.map((launch) => launch.account), ["a", "b", "c"]);
  assertEquals(driver.pool.describeProviders(driver.nowMs)[0]!.strikes, 0);
});

Deno.test("near deadline: waits ten seconds for the only account, then serves", () => {
  const driver = new Driver(["a"]);
  const result = driver.run(inOrder(limitedUntil(driver.nowMs + 10_000), success()));
  assertEquals(result.atMs, [0, 10_000]);
  assertEquals(result.status, 200);
});

Deno.test("far deadline and restart: nothing is sent, and the rest of the time is told", () => {
  const driver = new Driver(["a"]);
  driver.run(inOrder(limitedUntil(driver.nowMs + 7_200_000)));
  driver.advance(1_000);
  driver.restart();
  const result = driver.run(inOrder());
  assertEquals(result.launches, []);
  assertEquals([result.answer?.status, result.answer?.undispatched], [429, true]);
  assertEquals(result.answer!.retryAtMs! - driver.nowMs, 7_199_000);
  assertEquals(result.record.candidates.map(({ account, block }) => [account, block?.kind]), [[
    "a",
    "deadline",
  ]]);
});

Deno.test("401 pair: refreshed and tried again on the same account, refused again, the next one serves", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(perAccount({ a: [unauthorized(), unauthorized()], b: [success()] }));
  assertEquals(result.launches.map(({ account, cause }) => [account, cause]), [
    ["a", "first"],
    ["a", "repair"],
    ["b", "failover"],
  ]);
  assertEquals(driver.repairs, 1);
  const [a] = driver.pool.describeAccounts(driver.nowMs);
  assertEquals([a!.block?.source, a!.persisted], ["unauthorized", true]);
  driver.restart([account("a", { fingerprint: "a-2" }), account("b")]);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.state, "unavailable");
  driver.restart([account("a", { fingerprint: "a-3" }), account("b")]);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.state, "healthy");
});

Deno.test("stale 401: a token changed meanwhile is simply used", () => {
  const driver = new Driver(["a"]);
  driver.repair = () => ({ kind: "fresh_token", fingerprint: "a-9" });
  const result = driver.run(inOrder(unauthorized(), success()));
  assertEquals(result.launches.map((launch) => launch.cause), ["first", "repair"]);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.state, "healthy");
});

Deno.test("an account without a refresh token is refused at its first 401 (ruling 19)", () => {
  const driver = new Driver([account("a", { refreshable: false })]);
  const result = driver.run(inOrder(unauthorized()));
  assertEquals([driver.repairs, result.answer?.code], [0, "auth_unavailable"]);
});

const refreshes = [
  { name: "a dead grant is marked on disk", outcome: refreshDead(), state: "unavailable", persisted: true },
  {
    name: "another terminal failure is marked in memory",
    outcome: refreshDead("credential_invalid"),
    state: "unavailable",
    persisted: false,
  },
  { name: "a passing failure rests a moment", outcome: refreshFailed(), state: "cooling", persisted: false },
] as const;
for (const c of refreshes) {
  Deno.test(`repaired() with a failure goes on to the next account: ${c.name}`, () => {
    const driver = new Driver(["a", "b"]);
    driver.repair = () => ({ kind: "failed", outcome: c.outcome });
    const result = driver.run(perAccount({ a: [unauthorized()], b: [success()] }));
    assertEquals(result.served?.account, "b");
    const [a] = driver.pool.describeAccounts(driver.nowMs);
    assertEquals([a!.state, a!.persisted], [c.state, c.persisted]);
    assertEquals(driver.pool.describeProviders(driver.nowMs)[0]!.strikes, 0);
  });
}

Deno.test("an account is repaired once in a request, over all its rounds", () => {
  const driver = new Driver(["a"], policy(3, 0, 30_000));
  const result = driver.run(inOrder(unauthorized(), unavailable(), unauthorized()));
  assertEquals([driver.repairs, result.answer?.code], [1, "auth_unavailable"]);
});

Deno.test("next() goes through distinct accounts in a round, and four rounds mean exactly four", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(() => limitedUntil(driver.nowMs + 1_000));
  const rounds = [0, 1, 2, 3].map((round) =>
    result.launches.filter((launch) => launch.round === round).map((launch) => launch.account).sort()
  );
  assertEquals(rounds, [["a", "b"], ["a", "b"], ["a", "b"], ["a", "b"]]);
  assertEquals(result.record.rounds, 4);
});

Deno.test("max-retry-credentials: one account a round, two rounds, two hits in all (B043)", () => {
  const driver = new Driver(["a", "b"], policy(1, 1, 30_000));
  const result = driver.run(() => transient("throttle", { strike: false }));
  assertEquals(result.launches.map(({ account, round }) => [account, round]), [["a", 0], ["b", 1]]);
});

Deno.test("an account nobody tried for want of slots is taken in the next round at once", () => {
  const driver = new Driver(["a", "b"], policy(3, 1, 30_000));
  const result = driver.run(perAccount({ a: [unavailable()], b: [success()] }));
  assertEquals([result.served?.account, result.atMs, result.waits], ["b", [0, 0], []]);
});

const waits = [
  { name: "exactly as long as allowed", aheadMs: 30_000, intervalMs: 30_000, launches: 2 },
  { name: "a millisecond longer", aheadMs: 30_001, intervalMs: 30_000, launches: 1 },
  { name: "a minute, whatever the interval", aheadMs: 60_000, intervalMs: 600_000, launches: 2 },
  { name: "more than a minute", aheadMs: 60_001, intervalMs: 600_000, launches: 1 },
  { name: "an interval of 0 allows no further round", aheadMs: 1, intervalMs: 0, launches: 1 },
] as const;
for (const c of waits) {
  Deno.test(`next() launches ${c.launches} times for a deadline ${c.name} ahead (C10)`, () => {
    const driver = new Driver(["a"], policy(1, 0, c.intervalMs));
    const result = driver.run(inOrder(limitedUntil(driver.nowMs + c.aheadMs), success()));
    assertEquals(result.launches.length, c.launches);
  });
}

Deno.test("next() waits for nobody when no clock brings anybody back", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(() => credentialDead());
  assertEquals([result.waits, result.answer?.rule], [[], "all_dead"]);
});

Deno.test("next() repeats its wait until the time has come, and its answer for ever", () => {
  const driver = new Driver(["a"], policy(1, 0, 30_000));
  const plan = driver.begin();
  driver.settle(plan, driver.launch(plan), limitedUntil(driver.nowMs + 5_000));
  const first = driver.next(plan);
  driver.advance(4_999);
  assertEquals(driver.next(plan), first);
  driver.advance(1);
  driver.settle(plan, driver.launch(plan), unavailable());
  const answer = driver.next(plan);
  assertEquals([answer.kind, driver.next(plan)], ["answer", answer]);
});

Deno.test("next() spreads a dozen waiters of one account, none later than allowed (B014)", () => {
  const driver = new Driver(["a"]);
  const plans = Array.from({ length: 12 }, () => driver.begin());
  const launches = plans.map((plan) => driver.launch(plan));
  for (const [at, plan] of plans.entries()) driver.settle(plan, launches[at]!, limitedSomehow("rate"));
  driver.pool.resetAccount("a", driver.nowMs);
  const burst = plans.map((plan) => driver.launch(plan));
  for (const [at, plan] of plans.entries()) {
    driver.settle(plan, burst[at]!, transient("throttle", { strike: false }));
  }
  const wakes = plans.map((plan) => {
    const step = driver.next(plan);
    if (step.kind !== "wait") throw new Error(`Expected a wait, got ${step.kind}`);
    return step.untilMs - driver.nowMs;
  });
  assert(wakes.every((ms) => ms >= 2_000 && ms <= 30_000));
  assert(Math.max(...wakes) - Math.min(...wakes) > 20);
});

Deno.test("next() lets a woken waiter sleep on when the first to wake closed the account again", () => {
  const driver = new Driver(["a"], policy(1, 0, 30_000));
  const first = driver.begin();
  const second = driver.begin();
  const launches = [driver.launch(first), driver.launch(second)];
  driver.settle(first, launches[0]!, limitedUntil(driver.nowMs + 5_000));
  driver.settle(second, launches[1]!, limitedUntil(driver.nowMs + 5_000));
  driver.next(first);
  driver.next(second);
  driver.advance(6_000);
  driver.settle(first, driver.launch(first), limitedUntil(driver.nowMs + 10_000));
  const step = driver.next(second);
  assertEquals(step.kind, "wait");
  driver.advance(11_000);
  driver.settle(second, driver.launch(second), success());
  const record = driver.pool.finish(second, 200, null, driver.nowMs);
  assertEquals([record.rounds, record.waits.length], [2, 1]);
});

Deno.test("next() refuses to decide while a launch is out: that would be two at once", () => {
  const driver = new Driver(["a"]);
  const plan = driver.begin();
  driver.launch(plan);
  assertThrows(() => driver.next(plan), Error, "not settled");
});

Deno.test("commit() ends all launching; a failure after it is booked and nothing more (P7, row 34)", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(
    inOrder({ outcome: transient("body_reset"), head: true, semantic: true, commit: true }),
  );
  assertEquals([result.launches.length, result.answer, result.relayed], [1, null, null]);
  const [a] = driver.pool.describeAccounts(driver.nowMs);
  assertEquals([a!.state, driver.pool.describeProviders(driver.nowMs)[0]!.strikes], ["cooling", 1]);
});

Deno.test("a 401 after commit marks nobody: the next request repairs it", () => {
  const driver = new Driver(["a"]);
  driver.run(inOrder({ outcome: unauthorized(), commit: true }));
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.state, "healthy");
});

Deno.test("cancel() frees everything and blames nobody, during an attempt and during a wait (P11)", () => {
  const driver = new Driver(["a"]);
  const flying = driver.begin();
  const launch = driver.launch(flying);
  driver.pool.cancel(flying, driver.nowMs);
  driver.settle(flying, launch, unavailable());
  assertEquals(driver.next(flying), { kind: "stop" });
  assertEquals(
    driver.pool.finish(flying, 0, null, driver.nowMs).attempts[0]!.outcome,
    "cancelled:client_cancelled",
  );
  const waiting = driver.begin();
  driver.settle(waiting, driver.launch(waiting), limitedUntil(driver.nowMs + 9_000));
  assertEquals(driver.next(waiting).kind, "wait");
  driver.pool.cancel(waiting, driver.nowMs);
  assertEquals(driver.next(waiting), { kind: "stop" });
  driver.pool.finish(waiting, 0, null, driver.nowMs);
  const [a] = driver.pool.describeAccounts(driver.nowMs);
  assertEquals([a!.inFlight, a!.health.ladder], [0, null]);
});

Deno.test("settle() with a cancelled outcome stops the request like cancel()", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(inOrder(cancelled()));
  assertEquals([result.launches.length, result.answer], [1, null]);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.state, "healthy");
});

Deno.test("settle() ignores late, repeated and foreign attempts", () => {
  const driver = new Driver(["a", "b"]);
  const plan = driver.begin();
  const first = driver.launch(plan);
  driver.settle(plan, first, unavailable());
  const second = driver.launch(plan);
  driver.settle(plan, first, credentialDead());
  driver.settle(plan, { ...second, attempt: "req_9:1" }, credentialDead());
  driver.settle(plan, second, success());
  driver.settle(plan, second, credentialDead());
  driver.pool.finish(plan, 200, null, driver.nowMs);
  driver.settle(plan, second, credentialDead());
  const states = driver.pool.describeAccounts(driver.nowMs).map((view) => view.state);
  assertEquals(states, ["cooling", "healthy"]);
});

Deno.test("finish() closes a request with a launch still out, and gives the same record twice", () => {
  const driver = new Driver(["a"]);
  const plan = driver.begin();
  driver.launch(plan);
  const record = driver.pool.finish(plan, 499, "gone", driver.nowMs);
  assertEquals(driver.pool.finish(plan, 200, null, driver.nowMs + 5), record);
  assertEquals([record.status, record.code, record.endedAtMs], [499, "gone", driver.nowMs]);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.inFlight, 0);
});

Deno.test("a dead pooled connection is repeated once, unpooled, and blames nobody (ruling 15)", () => {
  const driver = new Driver(["a", "b"]);
  const pooled = noResponse({ pooled: true });
  const result = driver.run(inOrder(pooled, success()));
  assertEquals(result.launches.map(({ account, cause, fresh }) => [account, cause, fresh]), [
    ["a", "first", false],
    ["a", "unpooled_repeat", true],
  ]);
  assertEquals(driver.store.ledgers.get(result.record.requestId)!.charged, [result.launches[0]!.attempt]);
  const [a] = driver.pool.describeAccounts(driver.nowMs);
  assertEquals([a!.health.ladder, driver.pool.describeProviders(driver.nowMs)[0]!.strikes], [null, 0]);
});

Deno.test("a repeat that dies too is an ordinary failure, and no second repeat follows", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(
    perAccount({ a: [noResponse({ pooled: true }), noResponse({ pooled: true })], b: [success()] }),
  );
  assertEquals(result.launches.map(({ account, cause }) => [account, cause]), [
    ["a", "first"],
    ["a", "unpooled_repeat"],
    ["b", "failover"],
  ]);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.state, "cooling");
});

Deno.test("a relaunch on the same account meets the gates too: a deadline of another request ends the slot (P3)", () => {
  const driver = new Driver(["a", "b"]);
  const mine = driver.begin();
  const other = driver.begin({ pinned: true, bound: "a" });
  const launch = driver.launch(mine);
  assertEquals(launch.account, "a");
  const theirs = driver.launch(other);
  driver.settle(mine, launch, unauthorized());
  driver.settle(other, theirs, limitedUntil(driver.nowMs + 60_000));
  const step = driver.next(mine);
  assertEquals(step.kind, "repair");
  driver.pool.repaired(mine, launch, { kind: "fresh_token", fingerprint: "a-2" }, driver.nowMs);
  assertEquals(driver.launch(mine).account, "b");
});

Deno.test("an account removed during a request leaves it; one added later does not join", () => {
  const driver = new Driver(["a", "b"]);
  const plan = driver.begin();
  driver.settle(plan, driver.launch(plan), unavailable());
  driver.pool.reconcile([account("a"), account("c")], driver.nowMs);
  const step = driver.next(plan);
  assertEquals(step.kind, "wait");
  driver.pool.reconcile([account("c")], driver.nowMs);
  driver.advance(10_000);
  const answer = driver.next(plan);
  assertEquals(answer.kind === "answer" && answer.answer.rule, "no_accounts");
});

Deno.test("a request fault is relayed at once and blames nobody, example 41 (P14)", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(perAccount({ a: [unavailable()], b: [requestFault()] }));
  assertEquals(result.relayed?.account, "b");
  assertEquals(result.launches.length, 2);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[1]!.health.ladder, null);
});

Deno.test("only a probe or a once-only launch avoids pooled connections", () => {
  const driver = new Driver(["a"]);
  const dead = driver.run(() => unavailable());
  assertEquals(dead.launches.map((launch) => launch.fresh), [false, false, true, true]);
});
