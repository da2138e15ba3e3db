/** A process that starts on a clock set back: what the last one wrote lies in the future (3.6, ruling 1, P31). */
import { assertEquals } from "@std/assert";
import type { DurableChange, ProviderCooldown, QuotaReading } from "../../lib/core/records.ts";
import * as outcomes from "../support/outcomes.ts";
import { Driver, HOUR_MS, inOrder, MINUTE_MS, START_MS } from "../support/pool_driver.ts";

const DAY_MS = 24 * HOUR_MS;
const ONE_ROUND = { policy: { requestRetry: 0, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 } };
const OK = () => outcomes.success();

const PAGE: QuotaReading = {
  observedAtMs: START_MS,
  source: "usage_page",
  windows: [],
  limitReached: false,
  servesBeyondWindows: false,
  creditsAvailable: true,
  plan: null,
};

/** Starts on a clock a day behind the one these rows were written by. */
function startedOn(...changes: readonly DurableChange[]): Driver {
  const driver = new Driver(["a"], ONE_ROUND);
  driver.store.apply(changes, driver.nowMs);
  driver.nowMs -= DAY_MS;
  driver.restart();
  return driver;
}

function cooldown(given: Partial<ProviderCooldown>): DurableChange {
  return {
    kind: "put_provider_cooldown",
    provider: "codex",
    cooldown: {
      untilMs: START_MS + MINUTE_MS,
      reason: "overloaded",
      openedAtMs: START_MS,
      openedBy: "req_0:1",
      generation: 1,
      level: 5,
      explicit: false,
      ...given,
    },
  };
}

Deno.test("a test of credits that a page read back makes due is due on disk too (P31)", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  driver.run(inOrder(outcomes.noCredits()));
  driver.advance(MINUTE_MS);
  driver.pool.observeQuota("a", { ...PAGE, observedAtMs: driver.nowMs }, driver.nowMs);
  driver.nowMs -= 20_000;
  driver.restart();
  const inMemory = driver.pool.describeAccounts(driver.nowMs)[0]!.health.credits;
  assertEquals(driver.store.load().credits[0]!.block, inMemory);
  assertEquals(driver.run(OK).launches.map(({ trial }) => trial), ["credits"]);
});

Deno.test("the hourly test of credits is never more than an hour away, and its success counts", () => {
  const driver = startedOn({
    kind: "put_credits",
    account: "a",
    block: { openedAtMs: START_MS, code: "no_credits", probeAtMs: START_MS + HOUR_MS },
  });
  assertEquals(driver.store.load().credits[0]!.block.probeAtMs - driver.nowMs, HOUR_MS);
  driver.advance(HOUR_MS);
  assertEquals(driver.run(OK).launches.map(({ trial }) => trial), ["credits"]);
  assertEquals(driver.pool.describeAccounts(driver.nowMs)[0]!.state, "healthy");
});

Deno.test("a page older than the last refusal stays refuted when the clock is set back", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  driver.advance(HOUR_MS);
  driver.run(inOrder(outcomes.noCredits()));
  driver.advance(MINUTE_MS);
  driver.pool.observeQuota("a", { ...PAGE, observedAtMs: driver.nowMs }, driver.nowMs);
  driver.nowMs -= 20_000;
  const old = { ...PAGE, observedAtMs: START_MS + 2 * MINUTE_MS };
  driver.store.apply([{ kind: "put_reading", account: "a", reading: old }], driver.nowMs);
  driver.restart();
  assertEquals(driver.run(inOrder()).launches.length, 0);
});

Deno.test("a deadline the upstream stated is kept in full, and was written now at the latest", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  const untilMs = driver.nowMs + HOUR_MS;
  driver.run(inOrder(outcomes.limitedUntil(untilMs)));
  driver.nowMs -= DAY_MS;
  driver.restart();
  const { deadline } = driver.store.load().deadlines[0]!;
  assertEquals([deadline.untilMs, deadline.writtenAtMs, deadline.launchedAtMs], [
    untilMs,
    driver.nowMs,
    driver.nowMs,
  ]);
  assertEquals(driver.run(inOrder()).answer!.retryAtMs, untilMs);
});

const cooldowns = [
  { name: "of our ladder lasts at most a minute from now", given: {}, wantMs: MINUTE_MS },
  {
    name: "that was stated is kept in full",
    given: { explicit: true, untilMs: START_MS + HOUR_MS },
    wantMs: DAY_MS + HOUR_MS,
  },
];
for (const { name, given, wantMs } of cooldowns) {
  Deno.test(`a provider's cooldown ${name}`, () => {
    const driver = startedOn(cooldown(given));
    const view = driver.pool.describeProviders(driver.nowMs)[0]!.cooldown!;
    assertEquals(view.untilMs - driver.nowMs, wantMs);
    const { cooldown: onDisk } = driver.store.load().providerCooldowns[0]!;
    assertEquals([onDisk.untilMs, onDisk.openedAtMs], [view.untilMs, driver.nowMs]);
  });
}

Deno.test("a network pause lasts at most a minute from now, on disk as in memory", () => {
  const evidence = ["p", "q"].map((provider) => ({
    provider,
    attempt: `req_${provider}:1`,
    observedAtMs: START_MS,
  }));
  const driver = startedOn({
    kind: "put_network",
    network: {
      evidence: [],
      lastSuccessAtMs: 0,
      generation: 1,
      pause: { openedAtMs: START_MS, untilMs: START_MS + MINUTE_MS, evidence, generation: 1 },
    },
  });
  const view = driver.pool.describeNetwork(driver.nowMs)!;
  assertEquals([view.untilMs - driver.nowMs, view.openedAtMs], [MINUTE_MS, driver.nowMs]);
  assertEquals(driver.store.load().network!.pause!.untilMs, view.untilMs);
});

Deno.test("a success of a clock set back since vetoes a pause for a minute, and its evidence counts as long", () => {
  const driver = startedOn({
    kind: "put_network",
    network: {
      evidence: [{ provider: "q", attempt: "req_0:1", observedAtMs: START_MS }],
      lastSuccessAtMs: START_MS,
      generation: 0,
      pause: null,
    },
  });
  driver.run(inOrder(outcomes.noResponse()));
  assertEquals(driver.pool.describeNetwork(driver.nowMs), null);
  const { evidence, lastSuccessAtMs } = driver.store.load().network!;
  assertEquals([lastSuccessAtMs, evidence[0]!.observedAtMs], [driver.nowMs, driver.nowMs]);
});

Deno.test("a ledger left open may be resumed for an hour from now at most", () => {
  const row = {
    request: "req_9",
    idempotency: "k",
    counter: 1,
    charged: [],
    maxLaunches: 8,
    openedAtMs: START_MS,
    closed: false,
  };
  const driver = startedOn({ kind: "put_ledger", row });
  assertEquals(driver.store.load().openLedgers[0]!.openedAtMs, driver.nowMs);
});
