/** Conversations and their accounts (2A.8 #5, C22, C30, rulings 7 and 8; field-cases B009 to B011, B146). */
import { assert, assertEquals } from "@std/assert";
import * as outcomes from "../support/outcomes.ts";
import { account, Driver, HOUR_MS, inOrder, MINUTE_MS, perAccount } from "../support/pool_driver.ts";

const OK = () => outcomes.success();

function holder(driver: Driver, session = "s"): string | null {
  return driver.pool.lookupBinding([session], driver.nowMs);
}

Deno.test("a session stays on its account while that one is healthy, whatever the rotation does (P39)", () => {
  const driver = new Driver(["a", "b", "c"]);
  const first = driver.session("s", OK).served!.account;
  for (let turn = 0; turn < 300; turn++) {
    if (turn % 3 === 0) driver.run(OK);
    assertEquals(driver.session("s", OK).served!.account, first);
    driver.advance(MINUTE_MS);
  }
});

Deno.test("new sessions turn the rotation: twenty over two accounts are ten and ten (B011)", () => {
  const driver = new Driver(["a", "b"]);
  const served = Array.from({ length: 20 }, (_, at) => driver.session(`s${at}`, OK).served!.account);
  assertEquals(served.filter((id) => id === "a").length, 10);
  const keyless = Array.from({ length: 20 }, () => driver.run(OK).served!.account);
  assertEquals(keyless.filter((id) => id === "a").length, 10);
  assertEquals(driver.affinity.count(), 20);
});

Deno.test("a thousand concurrent sessions over ten accounts are within ten percent of even", () => {
  const driver = new Driver(Array.from({ length: 10 }, (_, at) => `a${at}`));
  const counts = new Map<string, number>();
  for (let at = 0; at < 1_000; at++) {
    const launch = driver.launch(driver.begin({ session: `s${at}` }));
    counts.set(launch.account, (counts.get(launch.account) ?? 0) + 1);
  }
  for (const count of counts.values()) assert(count >= 90 && count <= 110, `${[...counts.values()]}`);
});

Deno.test("fill-first binds every new session to the first account that may serve", () => {
  const driver = new Driver(["a", "b"], { routing: { strategy: "fill-first", sessionTtlMs: HOUR_MS } });
  const served = Array.from({ length: 5 }, (_, at) => driver.session(`s${at}`, OK).served!.account);
  assertEquals(served, ["a", "a", "a", "a", "a"]);
});

Deno.test("failover moves the binding inside the same request, and it stays (B009)", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  const limited = driver.session(
    "s",
    perAccount({ a: [outcomes.limitedUntil(driver.nowMs + HOUR_MS)], b: [outcomes.success()] }),
  );
  assertEquals(limited.launches.map((launch) => launch.account), ["a", "b"]);
  assertEquals([limited.record.notes, limited.record.movedTo], [["bound_moved"], "b"]);
  assertEquals(driver.session("s", OK).launches.map((launch) => launch.account), ["b"]);
  driver.advance(HOUR_MS - MINUTE_MS);
  driver.session("s", OK);
  driver.advance(2 * MINUTE_MS);
  assertEquals(driver.session("s", OK).served!.account, "b");
});

Deno.test("a request nobody answers notes once that its conversation moved, and to whom last", () => {
  const driver = new Driver(["a", "b", "c"]);
  driver.session("s", OK);
  const failed = driver.session("s", () => outcomes.limitedUntil(driver.nowMs + HOUR_MS));
  assertEquals(failed.launches.map((launch) => launch.account), ["a", "b", "c"]);
  assertEquals([failed.answer?.status, failed.record.notes], [429, ["bound_moved"]]);
  assertEquals([failed.record.movedTo, holder(driver)], ["c", "c"]);
});

Deno.test("one blip moves a session at most once: no to and fro (B010)", () => {
  const driver = new Driver(["a", "b", "c"]);
  driver.session("s", OK);
  const script = perAccount({
    a: [outcomes.unavailable(), outcomes.success()],
    b: [outcomes.success()],
    c: [outcomes.success()],
  });
  const served: string[] = [];
  for (let turn = 0; turn < 10; turn++) {
    served.push(driver.session("s", script).served!.account);
    driver.advance(3_000);
  }
  assertEquals(new Set(served).size, 1);
});

Deno.test("sticky herd: twenty requests of one session whose account cools end on one binding", () => {
  const driver = new Driver(["a", "b", "c", "d"]);
  driver.session("s", OK);
  const plans = Array.from({ length: 20 }, () => driver.begin({ session: "s", bound: "a" }));
  const launches = plans.map((plan) => driver.launch(plan));
  assertEquals(new Set(launches.map((launch) => launch.account)), new Set(["a"]));
  const untilMs = driver.nowMs + HOUR_MS;
  plans.forEach((plan, at) => driver.settle(plan, launches[at]!, outcomes.limitedUntil(untilMs)));
  const second = plans.map((plan) => driver.launch(plan).account);
  assertEquals(new Set(second).size, 1);
  assertEquals(holder(driver), second[0]!);
  const moved = plans.filter((plan) => plan.record.notes.includes("bound_moved"));
  assertEquals(moved.length, 20);
});

Deno.test("many sessions failing over at once spread over the other accounts by work in flight", () => {
  const driver = new Driver(["a", "b", "c", "d"]);
  const plans = Array.from({ length: 30 }, (_, at) => {
    driver.affinity.bind({
      session: `s${at}`,
      account: "a",
      createdAtMs: driver.nowMs,
      expiresAtMs: driver.nowMs + HOUR_MS,
    });
    return driver.begin({ session: `s${at}`, bound: "a" });
  });
  const launches = plans.map((plan) => driver.launch(plan));
  const untilMs = driver.nowMs + HOUR_MS;
  plans.forEach((plan, at) => driver.settle(plan, launches[at]!, outcomes.limitedUntil(untilMs)));
  const counts = new Map<string, number>();
  for (const plan of plans) {
    const { account } = driver.launch(plan);
    counts.set(account, (counts.get(account) ?? 0) + 1);
  }
  assertEquals([...counts.keys()].sort(), ["b", "c", "d"]);
  for (const count of counts.values()) assertEquals(count, 10);
});

Deno.test("the loser of a first binding adopts the winner's account", () => {
  const driver = new Driver(["a", "b"]);
  driver.affinity.beforeWrite = () => {
    driver.affinity.bind({
      session: "s",
      account: "b",
      createdAtMs: driver.nowMs,
      expiresAtMs: driver.nowMs + HOUR_MS,
    });
  };
  const launch = driver.launch(driver.begin({ session: "s" }));
  assertEquals([launch.account, holder(driver)], ["b", "b"]);
});

Deno.test("the loser of a move makes its own when the winner cannot serve it (C22)", () => {
  const driver = new Driver(["a", "b", "c"]);
  driver.session("s", OK);
  const plan = driver.begin({ session: "s", bound: "a" });
  driver.settle(plan, driver.launch(plan), outcomes.limitedUntil(driver.nowMs + HOUR_MS));
  driver.pool.setEnabled("c", false, driver.nowMs);
  driver.affinity.beforeWrite = () => {
    driver.affinity.compareAndSet("s", "a", "c", driver.nowMs, driver.nowMs + HOUR_MS);
  };
  assertEquals([driver.launch(plan).account, holder(driver)], ["b", "b"]);
});

Deno.test("after no response the binding moves only with the replacement's head (ruling 7)", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  const plan = driver.begin({ session: "s", bound: "a" });
  driver.settle(plan, driver.launch(plan), outcomes.noResponse());
  const launch = driver.launch(plan);
  assertEquals([launch.account, holder(driver)], ["b", "a"]);
  driver.pool.progress(plan, launch, "head", driver.nowMs);
  assertEquals(holder(driver), "b");
});

Deno.test("an outage moves no session: afterwards it is served where it was (B146)", () => {
  const driver = new Driver(["a", "b"], {
    policy: { requestRetry: 3, maxRetryCredentials: 0, maxRetryIntervalMs: 2_000 },
  });
  driver.session("s", OK);
  for (let turn = 0; turn < 6; turn++) {
    driver.session("s", () => outcomes.noResponse());
    driver.advance(2_000);
  }
  assertEquals(holder(driver), "a");
  driver.advance(MINUTE_MS);
  const after = driver.session("s", OK);
  assertEquals([after.served?.account, after.launches.length], ["a", 1]);
});

Deno.test("a dead egress proxy moves no session either: it is in front of everybody (B152)", () => {
  const driver = new Driver(["a", "b"]);
  const down = outcomes.transient("egress_proxy", { origin: "local", status: null, strike: false });
  driver.session("s", OK);
  driver.session("s", () => down);
  assertEquals(holder(driver), "a");
  driver.advance(MINUTE_MS);
  driver.run(inOrder(down), { pinned: true, bound: "a", replay: "once" });
  assertEquals(driver.launch(driver.begin({ session: "s", bound: "a" })).account, "b");
  assertEquals(holder(driver), "a");
});

Deno.test("a later request of the session goes round an unheard account without moving, until a head comes", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  driver.run(inOrder(outcomes.noResponse()), { pinned: true, bound: "a", replay: "once" });
  const plan = driver.begin({ session: "s", bound: "a" });
  const launch = driver.launch(plan);
  assertEquals([launch.account, holder(driver)], ["b", "a"]);
  driver.settle(plan, launch, outcomes.success());
  assertEquals(holder(driver), "b");
});

Deno.test("a limit of the account itself moves its session at once, also while it is out of reach", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  // Two at a time on the account: one is lost, the other learns of the limit.
  const [lost, limited] = [1, 2].map(() => driver.begin({ pinned: true, bound: "a", replay: "once" }));
  const launches = [driver.launch(lost!), driver.launch(limited!)];
  driver.settle(lost!, launches[0]!, outcomes.noResponse());
  driver.settle(limited!, launches[1]!, outcomes.limitedUntil(driver.nowMs + HOUR_MS));
  const launch = driver.launch(driver.begin({ session: "s", bound: "a" }));
  assertEquals([launch.account, holder(driver)], ["b", "b"]);
});

Deno.test("a send lost on a pooled connection that cannot be repeated moves the session with a head only", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  const plan = driver.begin({ session: "s", bound: "a" });
  const lost = driver.launch(plan);
  driver.run(inOrder(outcomes.unavailable()), { pinned: true, bound: "a", replay: "once" });
  driver.settle(plan, lost, outcomes.noResponse({ pooled: true }));
  const launch = driver.launch(plan);
  assertEquals([launch.account, launch.cause, holder(driver)], ["b", "failover", "a"]);
  driver.settle(plan, launch, outcomes.success());
  assertEquals(holder(driver), "b");
});

Deno.test("a head takes the session from the account that was out of reach, not from the one it moved to", () => {
  const driver = new Driver(["a", "b", "c"]);
  driver.session("s", OK);
  const plan = driver.begin({ session: "s", bound: "a" });
  driver.settle(plan, driver.launch(plan), outcomes.noResponse());
  driver.settle(plan, driver.launch(plan), outcomes.unavailable());
  // Meanwhile the account is removed, and another request of the session goes to a new one.
  driver.pool.reconcile([account("b"), account("c"), account("d")], driver.nowMs);
  driver.affinity.bind({
    session: "s",
    account: "d",
    createdAtMs: driver.nowMs,
    expiresAtMs: driver.nowMs + HOUR_MS,
  });
  const launch = driver.launch(plan);
  driver.pool.progress(plan, launch, "head", driver.nowMs);
  assertEquals([launch.account, holder(driver)], ["c", "d"]);
});

Deno.test("a session does not follow the head of an account that was removed meanwhile (2A.3)", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  const plan = driver.begin({ session: "s", bound: "a" });
  driver.settle(plan, driver.launch(plan), outcomes.noResponse());
  const launch = driver.launch(plan);
  driver.pool.reconcile([account("a")], driver.nowMs);
  driver.settle(plan, launch, outcomes.success());
  assertEquals([launch.account, holder(driver)], ["b", "a"]);
});

Deno.test("a session of an account that was removed while the process was down is free, and stays so when it returns", () => {
  const driver = new Driver(["a", "b"]);
  driver.affinity.bind({
    session: "s",
    account: "a",
    createdAtMs: driver.nowMs,
    expiresAtMs: driver.nowMs + HOUR_MS,
  });
  driver.restart([account("b")]);
  assertEquals(holder(driver), null);
  driver.restart([account("a"), account("b")]);
  assertEquals(holder(driver), null);
});

Deno.test("a model exclusion moves no session, whatever else the account offers as a fallback (C34)", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK, { targets: [{ provider: "codex", model: "m2" }] });
  driver.run(inOrder(outcomes.modelUnsupported()), { pinned: true, bound: "a", replay: "once" });
  const result = driver.session("s", OK, { fallbacks: [{ provider: "codex", model: "m2" }] });
  assertEquals([result.served?.account, holder(driver)], ["b", "a"]);
});

Deno.test("a fallback's account of which nothing is heard keeps its conversation (C34)", () => {
  const driver = new Driver(["a", account("q1", { provider: "q" })]);
  const q = { provider: "q", model: "n" };
  driver.session("s", OK, { targets: [q] });
  const script = perAccount({
    a: [outcomes.unavailable(), outcomes.success()],
    q1: [outcomes.noResponse()],
  });
  const result = driver.session("s", script, { fallbacks: [q] });
  assertEquals(result.launches.map((launch) => launch.account), ["a", "q1", "a"]);
  assertEquals(holder(driver), "q1");
});

Deno.test("a model exclusion is gone round without moving, each turn to the same replacement (ruling 7)", () => {
  const driver = new Driver(["a", "b", "c", "d"]);
  driver.session("s", OK);
  const excluded = (account: string) => account === "a" ? outcomes.modelUnsupported() : outcomes.success();
  const first = driver.session("s", (launch) => excluded(launch.account));
  assertEquals([first.launches[0]!.account, first.launches.length], ["a", 2]);
  const served = new Set<string>([first.served!.account]);
  for (let turn = 0; turn < 8; turn++) {
    driver.run(OK);
    served.add(driver.session("s", OK).served!.account);
  }
  assertEquals([served.size, holder(driver)], [1, "a"]);
  const other = driver.session("s", OK, { targets: [{ provider: "codex", model: "m2" }] });
  assertEquals(other.served!.account, "a");
});

Deno.test("a request for another provider's model leaves the conversation where it is", () => {
  const driver = new Driver(["a", account("q1", { provider: "q" }), account("q2", { provider: "q" })]);
  driver.session("s", OK);
  const targets = [{ provider: "q", model: "n" }];
  const served = new Set([1, 2, 3, 4].map(() => driver.session("s", OK, { targets }).served!.account));
  assertEquals([served.size, holder(driver)], [1, "a"]);
});

Deno.test("a fallback serves without taking the conversation", () => {
  const driver = new Driver(["a", account("q1", { provider: "q" })]);
  driver.session("s", OK);
  const spec = { fallbacks: [{ provider: "q", model: "n" }] };
  const result = driver.session(
    "s",
    perAccount({ a: [outcomes.limitedUntil(driver.nowMs + MINUTE_MS)], q1: [outcomes.success()] }),
    spec,
  );
  assertEquals([result.served?.account, holder(driver)], ["q1", "a"]);
  driver.advance(MINUTE_MS);
  assertEquals(driver.session("s", OK, spec).served!.account, "a");
});

Deno.test("a conversation of the fallback's own account still asks the ring first (C34)", () => {
  const driver = new Driver(["a", account("q1", { provider: "q" })]);
  const q = { provider: "q", model: "n" };
  driver.session("s", OK, { targets: [q] });
  const served = driver.session("s", OK, { fallbacks: [q] }).served!.account;
  assertEquals([served, holder(driver)], ["a", "q1"]);
});

Deno.test("the provider's gate counts as the account being away: the conversation moves (C30)", () => {
  const driver = new Driver([account("p1", { provider: "p" }), account("q1", { provider: "q" })]);
  const targets = [{ provider: "p", model: "m" }, { provider: "q", model: "m" }];
  driver.session("s", OK, { targets });
  driver.run(inOrder(outcomes.unavailable({ notBeforeMs: driver.nowMs + HOUR_MS })), {
    targets: [targets[0]!],
  });
  driver.pool.resetAccount("q1", driver.nowMs);
  const moved = driver.session("s", OK, { targets });
  assertEquals([moved.served?.account, holder(driver)], ["q1", "q1"]);
});

Deno.test("aliases of one request are bound and moved together, and any of them finds the account", () => {
  const driver = new Driver(["a", "b"]);
  driver.run(OK, { session: "s", aliases: ["t", "u"] });
  assertEquals(["s", "t", "u"].map((alias) => holder(driver, alias)), ["a", "a", "a"]);
  const script = perAccount({ a: [outcomes.limitedUntil(driver.nowMs + HOUR_MS)], b: [outcomes.success()] });
  driver.run(script, { session: "s", aliases: ["t", "u"], bound: "a" });
  assertEquals(["s", "t", "u"].map((alias) => holder(driver, alias)), ["b", "b", "b"]);
  driver.run(OK, { session: "new", aliases: ["s"], bound: "b" });
  assertEquals(holder(driver, "new"), "b");
});

Deno.test("a binding is renewed once half its life is over, not on every turn", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  for (let minute = 0; minute < 29; minute++) {
    driver.advance(MINUTE_MS);
    driver.session("s", OK);
  }
  assertEquals(driver.affinity.writes.filter((write) => write.startsWith("renew")), []);
  driver.advance(MINUTE_MS);
  driver.session("s", OK);
  assertEquals(driver.affinity.writes.filter((write) => write.startsWith("renew")), ["renew s"]);
  driver.advance(HOUR_MS);
  assertEquals(holder(driver), null);
});

Deno.test("a removed account loses its conversations; a disabled one keeps them until they are used", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  driver.pool.setEnabled("a", false, driver.nowMs);
  assertEquals(holder(driver), "a");
  driver.pool.setEnabled("a", true, driver.nowMs);
  assertEquals(driver.session("s", OK).served!.account, "a");
  driver.pool.reconcile([account("b")], driver.nowMs);
  assertEquals(holder(driver), null);
});

Deno.test("bindings survive a restart", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  driver.restart();
  driver.run(OK);
  assertEquals(driver.session("s", OK).served!.account, "a");
});

Deno.test("a pinned request goes nowhere else: it waits for its account, or is told how long (ruling 8)", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  const near = driver.session(
    "s",
    perAccount({ a: [outcomes.limitedUntil(driver.nowMs + 5_000), outcomes.success()] }),
    {
      pinned: true,
    },
  );
  assertEquals(near.launches.map((launch) => launch.account), ["a", "a"]);
  const far = driver.session("s", perAccount({ a: [outcomes.limitedUntil(driver.nowMs + 600_000)] }), {
    pinned: true,
  });
  assertEquals([far.answer?.status, far.answer!.retryAtMs! - driver.nowMs], [429, 600_000]);
  assertEquals(driver.run(inOrder(), { pinned: true, bound: null }).answer?.rule, "no_accounts");
});

const sealed = outcomes.requestFault("foreign_state");

Deno.test("sealed state of another account is stripped once, on the new account, blaming nobody (ruling 8)", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  const result = driver.session(
    "s",
    perAccount({ a: [outcomes.limitedUntil(driver.nowMs + HOUR_MS)], b: [sealed, outcomes.success()] }),
  );
  assertEquals(result.launches.map(({ account, cause }) => [account, cause]), [
    ["a", "first"],
    ["b", "failover"],
    ["b", "strip_state"],
  ]);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[1]!.state, "healthy");
  const next = driver.session("s", perAccount({ b: [sealed, outcomes.success()] }));
  assertEquals(next.launches.map((launch) => launch.cause), ["first", "strip_state"]);
});

Deno.test("sealed state refused again after stripping is the client's to know", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  const result = driver.session(
    "s",
    perAccount({ a: [outcomes.limitedUntil(driver.nowMs + HOUR_MS)], b: [sealed, sealed] }),
  );
  assertEquals([result.relayed?.cause, result.launches.length], ["strip_state", 3]);
});

Deno.test("without a failover a refused state is the client's own", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  assertEquals(driver.session("s", inOrder(sealed)).relayed?.cause, "first");
  assertEquals(driver.run(inOrder(sealed)).relayed?.cause, "first");
});

Deno.test("a conversation older than the process may have moved before: its state is stripped once", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  driver.advance(1_000);
  driver.restart();
  const result = driver.session("s", inOrder(sealed, outcomes.success()));
  assertEquals(result.launches.map((launch) => launch.cause), ["first", "strip_state"]);
});

Deno.test("a turn state brings a request back to its maker; the conversation stays where it moved (ruling 8)", () => {
  const driver = new Driver(["a", "b"]);
  driver.session("s", OK);
  const { nowMs } = driver;
  driver.affinity.bind({ session: "ts-1", account: "a", createdAtMs: nowMs, expiresAtMs: nowMs + HOUR_MS });
  const limited = perAccount({
    a: [outcomes.limitedUntil(driver.nowMs + MINUTE_MS)],
    b: [outcomes.success()],
  });
  driver.session("s", limited);
  assertEquals([holder(driver), holder(driver, "ts-1")], ["b", "a"]);
  driver.advance(MINUTE_MS);
  assertEquals(driver.run(OK, { session: "s", bound: "a" }).served!.account, "a");
  assertEquals(holder(driver), "b");
  driver.pool.setEnabled("a", false, driver.nowMs);
  assertEquals(driver.run(OK, { session: "s", bound: "a" }).served!.account, "b");
});
