/** When this machine is at its own limit: said at once, nobody cools, nothing is concluded about anybody. */
import { assertEquals } from "@std/assert";
import * as outcomes from "../support/outcomes.ts";
import { account, Driver, inOrder, MINUTE_MS } from "../support/pool_driver.ts";

const TWO_PROVIDERS = {
  targets: [{ provider: "p", model: "m1" }, { provider: "q", model: "m1" }],
} as const;

Deno.test("a limit of this machine ends the request after one launch, and leaves every account as it was", () => {
  const driver = new Driver(["a", "b"]);
  const result = driver.run(inOrder(outcomes.localLimit()));
  assertEquals([result.launches.length, result.relayed?.attempt], [1, result.launches[0]!.attempt]);
  assertEquals(
    driver.pool.describeAccounts(driver.nowMs).map(({ state, inFlight }) => [state, inFlight]),
    [["healthy", 0], ["healthy", 0]],
  );
  assertEquals(driver.run(inOrder(outcomes.success())).status, 200);
});

Deno.test("limits of this machine never count as an outage of two providers, nor as strikes", () => {
  const driver = new Driver([account("a", { provider: "p" }), account("b", { provider: "q" })]);
  for (let turn = 0; turn < 6; turn++) {
    const first = turn % 2 === 0 ? TWO_PROVIDERS.targets : TWO_PROVIDERS.targets.toReversed();
    driver.run(inOrder(outcomes.localLimit()), { targets: first });
  }
  assertEquals(driver.pool.describeNetwork(driver.nowMs), null);
  assertEquals(driver.pool.describeProviders(driver.nowMs).map(({ cooldown }) => cooldown), [null, null]);
});

Deno.test("a network probe that this machine could not send proves nothing: the next request is the probe", () => {
  const driver = new Driver([account("a", { provider: "p" }), account("b", { provider: "q" })], {
    policy: { requestRetry: 0, maxRetryCredentials: 0, maxRetryIntervalMs: 0 },
  });
  driver.run(inOrder(outcomes.noResponse(), outcomes.noResponse()), TWO_PROVIDERS);
  const pause = driver.pool.describeNetwork(driver.nowMs);
  driver.advance(MINUTE_MS);
  const unsent = driver.run(inOrder(outcomes.localLimit()), TWO_PROVIDERS);
  assertEquals(unsent.launches.map(({ probe }) => probe), ["network"]);
  assertEquals(driver.pool.describeNetwork(driver.nowMs), pause);
  const sent = driver.run(inOrder(outcomes.success()), TWO_PROVIDERS);
  assertEquals(sent.launches.map(({ probe }) => probe), ["network"]);
  assertEquals(driver.pool.describeNetwork(driver.nowMs), null);
});
