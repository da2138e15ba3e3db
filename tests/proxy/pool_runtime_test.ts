/** The named scenarios of state-machine-facts 6.4 that one provider can play, told step by step. */
import { assert, assertEquals } from "@std/assert";
import { Driver, inOrder, perAccount } from "../support/pool_driver.ts";
import { limitedUntil, requestFault, success, unavailable } from "../support/outcomes.ts";

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
  assertEquals(result.answer?.status, 429);
  assertEquals(result.answer?.undispatched, true);
  assertEquals(result.answer!.retryAtMs! - driver.nowMs, 7_199_000);
});

Deno.test("a request fault is relayed at once, example 41", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(perAccount({ a: [unavailable()], b: [requestFault()] }));
  assertEquals(result.relayed?.account, "b");
  assertEquals(result.launches.length, 2);
});
