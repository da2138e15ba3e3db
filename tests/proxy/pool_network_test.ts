/** Knowing when it is our own network (2C.4, C14, G2, G4), over whole requests. */
import { assertEquals } from "@std/assert";
import type { Target } from "../../lib/core/domain.ts";
import * as outcomes from "../support/outcomes.ts";
import { account, Driver, inOrder, MINUTE_MS } from "../support/pool_driver.ts";

const P: Target = { provider: "p", model: "m" };
const Q: Target = { provider: "q", model: "m" };
const ONE_ROUND = { policy: { requestRetry: 0, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 } };

function twoProviders(): Driver {
  return new Driver([account("p1", { provider: "p" }), account("q1", { provider: "q" })], ONE_ROUND);
}

function unreachable(driver: Driver, target: Target): void {
  driver.run(inOrder(outcomes.noResponse()), { targets: [target] });
}

/** Both providers unreachable a minute apart: paused since `driver.nowMs`. */
function paused(): Driver {
  const driver = twoProviders();
  unreachable(driver, P);
  driver.advance(MINUTE_MS);
  unreachable(driver, Q);
  return driver;
}

Deno.test("outage: paused from the second provider's failure, blocks withdrawn, at its end one launch", () => {
  const driver = paused();
  assertEquals(driver.pool.describeNetwork(driver.nowMs)!.untilMs - driver.nowMs, MINUTE_MS);
  assertEquals(driver.pool.describeNetwork(driver.nowMs)!.providers, ["p", "q"]);
  assertEquals(driver.pool.describeAccounts(driver.nowMs).map((view) => view.health.ladder), [null, null]);
  const refused = driver.run(inOrder(), { targets: [P, Q] });
  assertEquals([refused.answer?.status, refused.record.candidates[0]!.block?.kind], [502, "network_pause"]);
  driver.advance(MINUTE_MS - 1);
  assertEquals(driver.next(driver.begin({ targets: [P] })).kind, "answer");
  driver.advance(1);
  const probe = driver.begin({ targets: [P] });
  const launch = driver.launch(probe);
  assertEquals([launch.probe, launch.fresh], ["network", true]);
  assertEquals(driver.next(driver.begin({ targets: [Q] })).kind, "answer");
  driver.pool.progress(probe, launch, "head", driver.nowMs);
  assertEquals(driver.launch(driver.begin({ targets: [Q] })).probe, "none");
});

Deno.test("outage, late: 61 seconds apart is no outage", () => {
  const driver = twoProviders();
  unreachable(driver, P);
  driver.advance(61_000);
  unreachable(driver, Q);
  assertEquals(driver.pool.describeNetwork(driver.nowMs), null);
});

Deno.test("veto: a success between forbids the pause until it is more than a minute old", () => {
  const driver = twoProviders();
  const begunMs = driver.nowMs;
  unreachable(driver, P);
  driver.advance(30_000);
  driver.run(inOrder(outcomes.success()), { targets: [P] });
  driver.advance(10_000);
  unreachable(driver, Q);
  assertEquals(driver.pool.describeNetwork(driver.nowMs), null);
  driver.advance(51_000);
  unreachable(driver, P);
  assertEquals(driver.pool.describeNetwork(driver.nowMs)!.openedAtMs - begunMs, 91_000);
});

Deno.test("one provider alone never pauses, nor do its words or its silence (P16)", () => {
  const driver = twoProviders();
  const endings = [
    outcomes.transient("provider_reported"),
    outcomes.transient("first_byte_timeout"),
    outcomes.unavailable(),
    outcomes.edgeBlock(),
  ];
  for (const ending of endings) {
    driver.run(inOrder(outcomes.noResponse()), { targets: [P] });
    driver.run(inOrder(ending), { targets: [Q] });
    driver.pool.resetAccount("p1", driver.nowMs);
    driver.pool.resetAccount("q1", driver.nowMs);
  }
  assertEquals(driver.pool.describeNetwork(driver.nowMs), null);
});

Deno.test("probe cancel: the network probe's client leaves, the next request becomes the probe", () => {
  const driver = paused();
  driver.advance(MINUTE_MS);
  const gone = driver.begin({ targets: [P] });
  driver.launch(gone);
  driver.pool.cancel(gone, driver.nowMs);
  assertEquals(driver.launch(driver.begin({ targets: [Q] })).probe, "network");
});

Deno.test("a probe without an answer pauses for another minute and rests nobody (3.4)", () => {
  const driver = paused();
  driver.advance(MINUTE_MS);
  const plan = driver.begin({ targets: [P] });
  driver.settle(plan, driver.launch(plan), outcomes.noResponse());
  assertEquals(driver.pool.describeNetwork(driver.nowMs)!.untilMs - driver.nowMs, MINUTE_MS);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.health.ladder, null);
  assertEquals(driver.pool.describeNetwork(driver.nowMs)!.probe, null);
});

Deno.test("a probe answered by a refusal ends the pause; the refusal counts for itself (G2)", () => {
  const driver = paused();
  driver.advance(MINUTE_MS);
  driver.run(inOrder(outcomes.limitedUntil(driver.nowMs + MINUTE_MS)), { targets: [P] });
  assertEquals(driver.pool.describeNetwork(driver.nowMs), null);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.block?.kind, "deadline");
});

Deno.test("attempts launched before the pause that fail during it change nothing (G4)", () => {
  const driver = twoProviders();
  const late = driver.begin({ targets: [P] });
  const lateLaunch = driver.launch(late);
  unreachable(driver, P);
  unreachable(driver, Q);
  driver.advance(MINUTE_MS);
  const probe = driver.begin({ targets: [Q] });
  const launch = driver.launch(probe);
  driver.settle(late, lateLaunch, outcomes.noResponse());
  assertEquals(late.record.notes, []);
  assertEquals(driver.pool.describeNetwork(driver.nowMs)!.probe?.attempt, launch.attempt);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.health.ladder, null);
});

Deno.test("the network probe outranks a half-open provider, whose own gate stays as it was (3.3 step 6)", () => {
  const driver = twoProviders();
  driver.run(inOrder(outcomes.unavailable()), { targets: [P] });
  driver.advance(5_000);
  driver.run(inOrder(outcomes.unavailable()), { targets: [P] });
  driver.advance(10_000);
  unreachable(driver, Q);
  driver.run(inOrder(outcomes.noResponse()), { targets: [P] });
  assertEquals(driver.pool.describeNetwork(driver.nowMs) !== null, true);
  driver.advance(MINUTE_MS);
  const probe = driver.begin({ targets: [P] });
  const launch = driver.launch(probe);
  assertEquals(launch.probe, "network");
  const p = () => driver.pool.describeProviders(driver.nowMs)[0]!;
  assertEquals([p().cooldown !== null, p().probe.state], [true, "idle"]);
  driver.settle(probe, launch, outcomes.success());
  assertEquals([p().cooldown !== null, driver.pool.describeNetwork(driver.nowMs)], [true, null]);
  assertEquals(driver.launch(driver.begin({ targets: [P] })).probe, "provider");
});

Deno.test("a pause survives a restart, and its probe is idle again (P29)", () => {
  const driver = paused();
  driver.advance(MINUTE_MS);
  driver.launch(driver.begin({ targets: [P] }));
  driver.restart();
  assertEquals(driver.pool.describeNetwork(driver.nowMs)!.probe, null);
  assertEquals(driver.launch(driver.begin({ targets: [P] })).probe, "network");
});

Deno.test("the veto survives a restart", () => {
  const driver = twoProviders();
  driver.run(inOrder(outcomes.success()), { targets: [P] });
  driver.advance(30_000);
  driver.restart();
  unreachable(driver, P);
  unreachable(driver, Q);
  assertEquals(driver.pool.describeNetwork(driver.nowMs), null);
});

Deno.test("a round waits for a pause that ends within its limit", () => {
  const driver = new Driver([account("p1", { provider: "p" }), account("q1", { provider: "q" })]);
  const probing = driver.begin({ targets: [P] });
  driver.settle(probing, driver.launch(probing), outcomes.noResponse());
  const other = driver.begin({ targets: [Q] });
  driver.settle(other, driver.launch(other), outcomes.noResponse());
  assertEquals(driver.next(other).kind, "answer");
  driver.advance(31_000);
  const late = driver.begin({ targets: [P] });
  const step = driver.next(late);
  assertEquals(step.kind === "wait" && step.untilMs - driver.nowMs, 29_000);
});
