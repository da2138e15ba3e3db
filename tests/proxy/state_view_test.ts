/** What management and the status page are told of providers: only what holds at the moment asked (design.md 7). */
import { assertEquals } from "@std/assert";
import type { ProviderKind, Target } from "../../lib/core/domain.ts";
import type { Launch } from "../../lib/core/retry_plan.ts";
import { isoTime } from "../../lib/proxy/decision_view.ts";
import { StateView } from "../../lib/proxy/state_view.ts";
import * as outcomes from "../support/outcomes.ts";
import { account, Driver, inOrder, MINUTE_MS } from "../support/pool_driver.ts";

const P: Target = { provider: "p", model: "m" };
const Q: Target = { provider: "q", model: "m" };
const ONE_ROUND = { policy: { requestRetry: 0, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 } };
const KINDS: readonly { id: string; kind: ProviderKind }[] = [
  { id: "codex", kind: "codex" },
  { id: "p", kind: "openai" },
  { id: "q", kind: "anthropic" },
];

interface Told {
  readonly id: string;
  readonly kind: string;
  readonly circuit: { readonly state: string; readonly reason: string; readonly words: string } | null;
  readonly cooldown: { readonly until: string; readonly reason: string; readonly words: string } | null;
  readonly probe: ToldProbe;
  readonly next_retry_at: string | null;
}

interface ToldProbe {
  readonly state: string;
  readonly request_id: string | null;
  readonly attempt: string | null;
  readonly since: string | null;
  readonly lease_until: string | null;
}

const IDLE: ToldProbe = { state: "idle", request_id: null, attempt: null, since: null, lease_until: null };

function leasedTo(launch: Launch, request: string): ToldProbe {
  return {
    state: "leased",
    request_id: request,
    attempt: launch.attempt,
    since: isoTime(launch.launchedAtMs),
    lease_until: isoTime(launch.leaseUntilMs),
  };
}

function twoProviders(): Driver {
  return new Driver([account("p1", { provider: "p" }), account("q1", { provider: "q" })], ONE_ROUND);
}

function view(driver: Driver, providers = KINDS): Record<string, unknown> {
  const state = new StateView({
    pool: driver.pool,
    details: () => null,
    isEmailOf: () => false,
    providers: () => providers,
  });
  return state.gates(driver.nowMs);
}

function gates(driver: Driver, providers = KINDS): Told[] {
  return view(driver, providers)["providers"] as Told[];
}

function told(driver: Driver, id: string): Told {
  return gates(driver).find((one) => one.id === id)!;
}

/** The last millisecond of P's cooldown is next. */
function cooling(): Driver {
  const driver = twoProviders();
  for (let turn = 0; turn < 2; turn++) {
    driver.run(inOrder(outcomes.unavailable()), { targets: [P] });
    if (turn === 0) driver.advance(5_000);
  }
  driver.advance(driver.pool.describeProviders(driver.nowMs)[0]!.cooldown!.untilMs - driver.nowMs - 1);
  return driver;
}

Deno.test("gates() lists a cooldown to its last millisecond, then the half-open circuit it leaves", () => {
  const driver = cooling();
  const before = told(driver, "p");
  assertEquals([before.circuit, before.cooldown?.reason, before.cooldown?.until], [
    null,
    "overloaded",
    isoTime(driver.nowMs + 1),
  ]);
  driver.advance(1);
  const over = told(driver, "p");
  assertEquals(over.cooldown, null);
  assertEquals(over.circuit, {
    state: "half_open",
    reason: "overloaded",
    words: "The next request tests it",
  });
});

Deno.test("gates() says that one request tests a half-open provider, until when, and when it is closed", () => {
  const driver = cooling();
  driver.advance(MINUTE_MS);
  const probe = driver.begin({ targets: [P] });
  const launch = driver.launch(probe);
  const leased = told(driver, "p");
  const until = isoTime(launch.leaseUntilMs!);
  assertEquals([leased.circuit?.state, leased.circuit?.words], ["half_open", "One request is testing it"]);
  assertEquals([leased.cooldown, leased.probe, leased.next_retry_at], [
    null,
    leasedTo(launch, probe.spec.id),
    until,
  ]);
  driver.advance(launch.leaseUntilMs! - driver.nowMs);
  assertEquals(told(driver, "p").next_retry_at, null, "a lease that is over has no time to tell");
  driver.settle(probe, launch, outcomes.success());
  assertEquals([told(driver, "p").circuit, told(driver, "p").cooldown], [null, null]);
});

Deno.test("gates() calls a provider open whose accounts are dead, also when its cooldown is over", () => {
  const driver = cooling();
  driver.advance(MINUTE_MS);
  const probe = driver.begin({ targets: [P] });
  driver.settle(probe, driver.launch(probe), outcomes.credentialDead());
  const dead = told(driver, "p");
  assertEquals([dead.circuit?.state, dead.circuit?.reason, dead.next_retry_at], ["open", "auth", null]);
});

Deno.test("gates() gives the end of the network's pause as next moment of every provider that could serve", () => {
  const driver = twoProviders();
  driver.run(inOrder(outcomes.noResponse()), { targets: [P] });
  driver.run(inOrder(outcomes.noResponse()), { targets: [Q] });
  const untilMs = driver.nowMs + MINUTE_MS;
  const next = () => gates(driver).map(({ next_retry_at }) => next_retry_at);
  assertEquals(next(), [null, isoTime(untilMs), isoTime(untilMs)]);
  driver.advance(MINUTE_MS);
  assertEquals(next(), [null, null, null], "the next request may test the network now");
  const launch = driver.launch(driver.begin({ targets: [P] }));
  assertEquals(next(), [null, isoTime(launch.leaseUntilMs!), isoTime(launch.leaseUntilMs!)]);
});

Deno.test("gates() tells which request tests the network, from when and until when at most", () => {
  const driver = twoProviders();
  const pause = () =>
    view(driver)["network_pause"] as { readonly until: string; readonly probe: ToldProbe } | null;
  for (const target of [P, Q]) driver.run(inOrder(outcomes.noResponse()), { targets: [target] });
  assertEquals(pause()?.probe, IDLE);
  driver.advance(MINUTE_MS);
  assertEquals(pause()?.probe, IDLE, "over, and nobody tests it yet");
  const probe = driver.begin({ targets: [P] });
  const launch = driver.launch(probe);
  driver.advance(5_000);
  assertEquals(pause()?.probe, leasedTo(launch, probe.spec.id));
  assertEquals(gates(driver).map((one) => one.probe), [IDLE, IDLE, IDLE], "no provider's own gate is tested");
  driver.settle(probe, launch, outcomes.noResponse());
  assertEquals([pause()?.probe, pause()?.until], [IDLE, isoTime(driver.nowMs + MINUTE_MS)]);
});

Deno.test("gates() gives a next moment without a cooldown where only the accounts rest", () => {
  const driver = twoProviders();
  driver.run(inOrder(outcomes.unavailable()), { targets: [P] });
  const [ladder] = driver.pool.describeAccounts(driver.nowMs).map(({ health }) => health.ladder);
  const resting = told(driver, "p");
  assertEquals([resting.circuit, resting.cooldown, resting.next_retry_at], [
    null,
    null,
    isoTime(ladder!.untilMs),
  ]);
});

Deno.test("gates() lists every configured provider before its first use, and none that is not configured", () => {
  const driver = twoProviders();
  assertEquals(gates(driver).map(({ id, kind }) => [id, kind]), [
    ["codex", "codex"],
    ["p", "openai"],
    ["q", "anthropic"],
  ]);
  const codex = gates(driver)[0]!;
  assertEquals([codex.circuit, codex.cooldown, codex.next_retry_at], [null, null, null]);
  assertEquals(gates(driver, KINDS.slice(0, 2)).map(({ id }) => id), ["codex", "p"]);
});
