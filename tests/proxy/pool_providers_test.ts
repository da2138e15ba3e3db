/** Several providers: cooldowns, probes, closures, circuits, fallbacks and rings (2C, 3.4, C4 to C8, C34). */
import { assert, assertEquals } from "@std/assert";
import type { Target } from "../../lib/core/domain.ts";
import * as outcomes from "../support/outcomes.ts";
import { account, Driver, HOUR_MS, inOrder, MINUTE_MS, perAccount } from "../support/pool_driver.ts";

const P: Target = { provider: "p", model: "m" };
const Q: Target = { provider: "q", model: "m" };
const BOTH = { targets: [P, Q] };

function onP(id: string) {
  return account(id, { provider: "p" });
}

function onQ(id: string) {
  return account(id, { provider: "q" });
}

function view(driver: Driver, id: string) {
  return driver.pool.describeProviders(driver.nowMs).find((provider) => provider.id === id)!;
}

/** P with one account and a cooldown that is over: the next launch there is the probe. */
function halfOpen(...more: ReturnType<typeof account>[]): Driver {
  const driver = new Driver([onP("p1"), ...more]);
  driver.run(() => outcomes.unavailable(), { targets: [P] });
  driver.advance(view(driver, "p").nextRetryAtMs! - driver.nowMs);
  return driver;
}

Deno.test("two providers: P fails twice and cools, Q answers", () => {
  const driver = new Driver([onP("p1"), onP("p2"), onP("p3"), onQ("q1")]);
  const result = driver.run(
    perAccount({ p1: [outcomes.unavailable()], p2: [outcomes.unavailable()], q1: [outcomes.success()] }),
    BOTH,
  );
  assertEquals(result.launches.map((launch) => launch.account), ["p1", "p2", "q1"]);
  const { cooldown, nextRetryAtMs } = view(driver, "p");
  assertEquals([cooldown!.reason, cooldown!.derived], ["overloaded", false]);
  assertEquals(nextRetryAtMs, cooldown!.untilMs);
});

Deno.test("one failure excludes no provider: the next account of the same one is asked first (C5)", () => {
  const driver = new Driver([onP("p1"), onP("p2"), onQ("q1")]);
  const result = driver.run(perAccount({ p1: [outcomes.unavailable()], p2: [outcomes.success()] }), BOTH);
  assertEquals([result.served?.account, view(driver, "p").cooldown], ["p2", null]);
});

Deno.test("one strike that stated more than a minute cools the provider, in full and over a restart", () => {
  const driver = new Driver([onP("p1"), onQ("q1")]);
  const stated = driver.nowMs + 2 * HOUR_MS;
  driver.run(
    perAccount({ p1: [outcomes.unavailable({ notBeforeMs: stated })], q1: [outcomes.success()] }),
    BOTH,
  );
  assertEquals(view(driver, "p").cooldown!.untilMs, stated);
  driver.advance(MINUTE_MS);
  driver.restart();
  const result = driver.run(perAccount({ q1: [outcomes.success()] }), BOTH);
  assertEquals([result.served?.account, view(driver, "p").cooldown!.untilMs], ["q1", stated]);
});

Deno.test("a short computed cooldown is gone after a restart (C16)", () => {
  const driver = new Driver([onP("p1"), onQ("q1")]);
  driver.run(() => outcomes.unavailable(), { targets: [P] });
  driver.restart();
  assertEquals(view(driver, "p")?.cooldown ?? null, null);
});

Deno.test("expiry: exactly one launch probes, others go elsewhere, its success opens the gate", () => {
  const driver = halfOpen(onQ("q1"));
  const probe = driver.begin(BOTH);
  const launch = driver.launch(probe);
  assertEquals([launch.account, launch.probe, launch.fresh], ["p1", "provider", true]);
  assertEquals(launch.leaseUntilMs! - driver.nowMs, 123_000);
  const other = driver.begin(BOTH);
  assertEquals(driver.launch(other).account, "q1");
  driver.settle(probe, launch, outcomes.success());
  assertEquals(view(driver, "p").cooldown, null);
  assertEquals(driver.launch(driver.begin({ targets: [P] })).probe, "none");
});

Deno.test("progress() opens the gate at the first output, not at the head (C26)", () => {
  const driver = halfOpen();
  const probe = driver.begin({ targets: [P] });
  const launch = driver.launch(probe);
  driver.pool.progress(probe, launch, "head", driver.nowMs);
  assertEquals(view(driver, "p").probe.state, "leased");
  driver.pool.progress(probe, launch, "semantic", driver.nowMs);
  assertEquals([view(driver, "p").cooldown, view(driver, "p").strikes], [null, 0]);
});

Deno.test("a request meets a leased gate: it waits in short stretches, and goes as soon as the gate opens", () => {
  const driver = halfOpen();
  const probe = driver.begin({ targets: [P] });
  const launch = driver.launch(probe);
  const waiting = driver.begin({ targets: [P] });
  const begunMs = driver.nowMs;
  for (let stretch = 0; stretch < 20; stretch++) {
    const step = driver.next(waiting);
    if (step.kind !== "wait") throw new Error(`Expected a wait, got ${step.kind}`);
    assertEquals(step.reason, "probe");
    assert(step.untilMs - driver.nowMs <= 500);
    driver.advance(step.untilMs - driver.nowMs);
  }
  driver.pool.progress(probe, launch, "semantic", driver.nowMs);
  assertEquals(driver.launch(waiting).probe, "none");
  assertEquals(waiting.record.waits.map((wait) => wait.fromMs), [begunMs]);
});

Deno.test("a request waits for somebody's probe once, no longer than a round may wait, and is then told 502", () => {
  const driver = halfOpen();
  const probe = driver.begin({ targets: [P] });
  driver.launch(probe);
  const result = driver.run(inOrder(), { targets: [P] });
  assertEquals([result.answer?.status, result.waits.length], [502, 1]);
  const waitedMs = result.waits[0]!.untilMs - result.waits[0]!.fromMs;
  assert(waitedMs > 29_000 && waitedMs <= 30_000, `waited ${waitedMs}`);
});

Deno.test("after a probe waited for in vain, a request goes on to an account that is ready in time", () => {
  const driver = halfOpen(onQ("q1"));
  const probe = driver.begin({ targets: [P] });
  driver.launch(probe);
  const readyAtMs = driver.nowMs + 45_000;
  driver.run(inOrder(outcomes.limitedUntil(readyAtMs)), { targets: [Q] });
  const result = driver.run(perAccount({ q1: [outcomes.success()] }), BOTH);
  assertEquals([result.served?.account, driver.nowMs], ["q1", readyAtMs]);
});

Deno.test("probe 401: the cooldown is removed and the account goes to repair", () => {
  const driver = halfOpen();
  const plan = driver.begin({ targets: [P] });
  driver.settle(plan, driver.launch(plan), outcomes.unauthorized());
  assertEquals(view(driver, "p").cooldown, null);
  assertEquals(driver.next(plan).kind, "repair");
});

Deno.test("probe cancelled: the gate is half-open and idle again, and the next launch probes (B018)", () => {
  const driver = halfOpen();
  const gone = driver.begin({ targets: [P] });
  const lost = driver.launch(gone);
  driver.pool.cancel(gone, driver.nowMs);
  const next = driver.begin({ targets: [P] });
  const launch = driver.launch(next);
  assertEquals(launch.probe, "provider");
  // The first probe's late answer is nobody's any more.
  driver.settle(gone, lost, outcomes.unavailable());
  assertEquals(view(driver, "p").probe.lease?.attempt, launch.attempt);
  driver.settle(next, launch, outcomes.success());
  assertEquals(view(driver, "p").cooldown, null);
});

Deno.test("a probe that fails cools longer, and its own strike is counted once", () => {
  const driver = halfOpen();
  const before = view(driver, "p");
  const plan = driver.begin({ targets: [P] });
  driver.settle(plan, driver.launch(plan), outcomes.unavailable());
  const after = view(driver, "p");
  assertEquals([after.cooldown!.level, after.strikes], [before.cooldown!.level + 1, before.strikes + 1]);
  assertEquals(after.probe.state, "idle");
});

Deno.test("late failure: an attempt of before the cooldown leaves lease and end alone (G3)", () => {
  const driver = new Driver([onP("p1"), onP("p2")]);
  const late = driver.begin({ targets: [P], pinned: true, bound: "p2" });
  const lateLaunch = driver.launch(late);
  driver.run(() => outcomes.unavailable(), { targets: [P], pinned: true, bound: "p1" });
  driver.advance(view(driver, "p").cooldown!.untilMs - driver.nowMs);
  const probe = driver.begin({ targets: [P] });
  const launch = driver.launch(probe);
  const { cooldown, probe: lease } = view(driver, "p");
  driver.settle(late, lateLaunch, outcomes.unavailable({ notBeforeMs: driver.nowMs + HOUR_MS }));
  assertEquals([view(driver, "p").cooldown, view(driver, "p").probe], [cooldown, lease]);
  driver.settle(probe, launch, outcomes.success());
  assertEquals(view(driver, "p").cooldown, null);
});

Deno.test("a success of somebody else does not open the gate (2C.4)", () => {
  const driver = new Driver([onP("p1"), onP("p2")]);
  const slow = driver.begin({ targets: [P], pinned: true, bound: "p2" });
  const slowLaunch = driver.launch(slow);
  driver.run(() => outcomes.unavailable(), { targets: [P], pinned: true, bound: "p1" });
  driver.settle(slow, slowLaunch, outcomes.success());
  assertEquals(view(driver, "p").cooldown !== null, true);
});

Deno.test("a dead provider costs at most two launches a minute once its ladder is at the top (P42)", () => {
  const driver = new Driver([onP("p1"), onP("p2"), onP("p3")]);
  const atMs: number[] = [];
  for (let at = 0; at < 200; at++) {
    driver.run((_launch, nowMs) => {
      atMs.push(nowMs);
      return outcomes.unavailable();
    }, { targets: [P] });
    driver.advance(2_000);
  }
  const steady = atMs.filter((ms) => ms > driver.nowMs - 10 * MINUTE_MS);
  assert(steady.length <= 20, `${steady.length} launches in ten minutes`);
  assert(steady.length >= 8, "and it is still tested");
});

Deno.test("an edge block: one strike, nobody rests, the round leaves the provider (ruling 4)", () => {
  const driver = new Driver([onP("p1"), onP("p2"), onQ("q1")]);
  const result = driver.run(perAccount({ p1: [outcomes.edgeBlock()], q1: [outcomes.success()] }), BOTH);
  assertEquals(result.launches.map((launch) => launch.account), ["p1", "q1"]);
  assertEquals(driver.pool.describeAccounts(driver.nowMs).map((a) => a.state), [
    "healthy",
    "healthy",
    "healthy",
  ]);
  assertEquals([view(driver, "p").strikes, view(driver, "p").cooldown], [1, null]);
});

Deno.test("an edge block everywhere: the request does not come straight back to the same wall", () => {
  const driver = new Driver([onP("p1"), onP("p2")]);
  const result = driver.run(() => outcomes.edgeBlock(), { targets: [P] });
  assertEquals(result.answer?.status, 502);
  assert(result.atMs[1]! >= 2_000, `again after ${result.atMs[1]}`);
  assertEquals(view(driver, "p").cooldown?.reason, "edge_block");
});

Deno.test("quota closure: with all accounts out, the first one back is tested by one launch (C4)", () => {
  const driver = new Driver([onP("p1"), onP("p2"), onP("p3")]);
  const begunMs = driver.nowMs;
  driver.run(
    perAccount({
      p1: [outcomes.limitedUntil(begunMs + 100_000)],
      p2: [outcomes.limitedUntil(begunMs + 200_000)],
      p3: [outcomes.limitedUntil(begunMs + 150_000)],
    }),
    { targets: [P] },
  );
  const { cooldown } = view(driver, "p");
  assertEquals([cooldown!.derived, cooldown!.untilMs - begunMs], [true, 100_000]);
  driver.advance(100_000);
  assertEquals(driver.launch(driver.begin({ targets: [P] })).probe, "provider");
  assertEquals(driver.next(driver.begin({ targets: [P] })).kind, "wait");
  assertEquals(driver.store.kinds.includes("put_provider_cooldown"), false);
});

Deno.test("quota closure falls when an account comes back by other means than time", () => {
  const means: readonly ((driver: Driver) => void)[] = [
    (driver) => driver.pool.resetAccount("p1", driver.nowMs),
    (driver) => driver.pool.reconcile([onP("p1"), onP("p2")], driver.nowMs),
    (driver) => {
      driver.pool.setEnabled("p1", false, driver.nowMs);
      driver.pool.reconcile([onP("p1"), onP("p2")], driver.nowMs);
    },
  ];
  for (const mean of means) {
    const driver = new Driver([onP("p1")]);
    driver.run(() => outcomes.limitedUntil(driver.nowMs + HOUR_MS), { targets: [P] });
    assertEquals(view(driver, "p").cooldown?.derived, true);
    mean(driver);
    assertEquals(view(driver, "p").cooldown, null);
    assertEquals(driver.launch(driver.begin({ targets: [P] })).probe, "none");
  }
});

Deno.test("quota closure is told again after a restart, from the accounts' own rows", () => {
  const driver = new Driver([onP("p1")]);
  driver.run(() => outcomes.limitedUntil(driver.nowMs + HOUR_MS), { targets: [P] });
  driver.restart();
  assertEquals(view(driver, "p").cooldown?.derived, true);
  driver.advance(HOUR_MS);
  assertEquals(driver.launch(driver.begin({ targets: [P] })).probe, "provider");
});

Deno.test("a circuit opens with the last dead account, is written down, and closes with new material (C7)", () => {
  const driver = new Driver([onP("p1"), onP("p2")]);
  driver.run(perAccount({ p1: [outcomes.credentialDead()], p2: [outcomes.noCredits()] }), { targets: [P] });
  assertEquals([view(driver, "p").circuit?.reason, view(driver, "p").nextRetryAtMs], ["credits", null]);
  driver.pool.refreshed("p1", "p1-2", driver.nowMs);
  assertEquals(view(driver, "p").circuit, null);
  assertEquals(driver.store.audits.map(({ action, subject }) => [action, subject]), [
    ["circuit_opened", "p"],
    ["circuit_closed", "p"],
  ]);
});

Deno.test("an auth failure fails over to other providers (C31)", () => {
  const driver = new Driver([onP("p1"), onQ("q1")]);
  const result = driver.run(perAccount({ p1: [outcomes.credentialDead()], q1: [outcomes.success()] }), BOTH);
  assertEquals(result.served?.account, "q1");
});

Deno.test("a fallback serves only when the ring has nobody left, and meets the same gates (C34)", () => {
  const driver = new Driver([onP("p1"), onP("p2"), onQ("q1")]);
  const spec = { targets: [P], fallbacks: [Q] };
  const first = driver.run(
    perAccount({ p1: [outcomes.unavailable()], p2: [outcomes.unavailable()], q1: [outcomes.success()] }),
    spec,
  );
  assertEquals(first.launches.map((launch) => launch.account), ["p1", "p2", "q1"]);
  driver.pool.setEnabled("q1", false, driver.nowMs);
  const plan = driver.begin(spec);
  assertEquals(driver.next(plan).kind, "wait");
});

Deno.test("an exclusion is of one provider and model: the same account serves another model of the ring", () => {
  const driver = new Driver([onP("p1")]);
  const spec = { targets: [{ provider: "p", model: "m" }, { provider: "p", model: "n" }] };
  const first = driver.run(inOrder(outcomes.modelUnsupported(), outcomes.success()), spec);
  assertEquals(first.launches.map(({ model, round }) => [model, round]), [["m", 0], ["n", 1]]);
  assertEquals(driver.run(inOrder(outcomes.success()), spec).launches[0]!.model, "n");
});

const RING = {
  name: "frontier",
  members: [{ ...P, weight: 2 }, { ...Q, weight: 1 }],
  fallback: [{ provider: "r", model: "m" }],
};

Deno.test("rotate() turns the ring by weight, gives the fallback, and knows no other name", () => {
  const driver = new Driver([onP("p1"), onQ("q1")], { pools: [RING] });
  const firsts = Array.from({ length: 6 }, () => driver.pool.rotate("frontier")!.targets[0]!.provider);
  assertEquals(firsts.join(""), "pqppqp");
  assertEquals(driver.pool.rotate("frontier")!.fallbacks, RING.fallback);
  assertEquals(driver.pool.rotate("nobody"), null);
});

Deno.test("rotate() goes on after a restart where it was last written, along with other changes", () => {
  const driver = new Driver([onP("p1"), onQ("q1")], { pools: [RING] });
  driver.pool.rotate("frontier");
  assertEquals(driver.store.kinds, []);
  driver.pool.setEnabled("q1", true, driver.nowMs);
  driver.run(() => outcomes.limitedUntil(driver.nowMs + 60_001), { targets: [P] });
  driver.restart();
  assertEquals(driver.pool.rotate("frontier")!.targets[0]!.provider, "q");
});

Deno.test("rotate() writes its cursor alone only once in 64 turns", () => {
  const driver = new Driver([onP("p1"), onQ("q1")], { pools: [RING] });
  for (let at = 0; at < 130; at++) {
    const { targets } = driver.pool.rotate("frontier")!;
    driver.run(inOrder(outcomes.success()), { targets });
    driver.advance(1);
  }
  const alone = driver.store.log.filter(({ changes }) =>
    changes.every(({ kind }) => kind === "put_ring_cursor")
  );
  assert(alone.length <= 2, `${alone.length} writes`);
});

Deno.test("reconfigure() replaces rings and policy for the next step", () => {
  const driver = new Driver([onP("p1")], { pools: [RING] });
  driver.pool.reconfigure({
    pools: [{ ...RING, name: "new" }],
    policy: { requestRetry: 0, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 },
  });
  assertEquals([driver.pool.rotate("frontier"), driver.pool.rotate("new") !== null], [null, true]);
  assertEquals(driver.run(inOrder(outcomes.unavailable()), { targets: [P] }).launches.length, 1);
});
