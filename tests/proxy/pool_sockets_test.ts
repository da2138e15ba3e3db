/** An upgraded connection in the pool's books: turns are booked one by one, its end is nobody's fault (rows 48, 49). */
import { assertEquals } from "@std/assert";
import type { Outcome } from "../../lib/core/outcome.ts";
import type { Launch } from "../../lib/core/retry_plan.ts";
import type { RequestPlan } from "../../lib/proxy/pool_runtime.ts";
import * as outcomes from "../support/outcomes.ts";
import { account, Driver, HOUR_MS, inOrder, MINUTE_MS } from "../support/pool_driver.ts";

const HANDSHAKE = {
  route: "responses_ws",
  model: null,
  targets: [{ provider: "codex", model: null }],
} as const;

/** A socket whose handshake has just succeeded. */
function open(driver: Driver): { plan: RequestPlan; launch: Launch } {
  const plan = driver.begin(HANDSHAKE);
  const launch = driver.launch(plan);
  driver.pool.progress(plan, launch, "head", driver.nowMs);
  driver.pool.progress(plan, launch, "semantic", driver.nowMs);
  driver.pool.commit(plan, launch, driver.nowMs);
  return { plan, launch };
}

function endTurn(
  driver: Driver,
  { plan, launch }: ReturnType<typeof open>,
  outcome: Outcome,
  given: { startedAtMs?: number; model?: string | null } = {},
): void {
  const { startedAtMs = driver.nowMs, model = "m1" } = given;
  driver.pool.turnEnded(plan, launch, { outcome, startedAtMs, model }, driver.nowMs);
}

const view = (driver: Driver, id = "a") =>
  driver.pool.describeAccounts(driver.nowMs).find((entry) => entry.account.id === id)!;

Deno.test("turnEnded() rests the account until the time a turn was told, while the socket goes on", () => {
  const driver = new Driver(["a"]);
  const socket = open(driver);
  endTurn(driver, socket, outcomes.limitedUntil(driver.nowMs + HOUR_MS));
  assertEquals([view(driver).state, view(driver).inFlight], ["cooling", 1]);
  assertEquals(driver.run(inOrder()).answer?.code, "rate_limited");
});

Deno.test("turnEnded() of a good turn ends what was booked before the turn began, not what came since", () => {
  const driver = new Driver(["a"]);
  const socket = open(driver);
  endTurn(driver, socket, outcomes.unavailable());
  assertEquals(view(driver).state, "cooling");
  const startedAtMs = driver.nowMs;
  driver.advance(1);
  endTurn(driver, socket, outcomes.success(), { startedAtMs });
  assertEquals(view(driver).state, "cooling", "asked before the failure was written");
  endTurn(driver, socket, outcomes.success());
  assertEquals(view(driver).state, "healthy");
});

Deno.test("turnEnded() excludes the model the turn named, and no other", () => {
  const driver = new Driver(["a"]);
  const socket = open(driver);
  endTurn(driver, socket, outcomes.modelUnsupported(), { model: "m2" });
  assertEquals(driver.run(inOrder(outcomes.success())).status, 200);
  const asked = driver.run(inOrder(), { model: "m2", targets: [{ provider: "codex", model: "m2" }] });
  assertEquals(asked.answer?.code, "model_not_found");
});

Deno.test("turnEnded() with a 401 leaves the repair to the next request", () => {
  const driver = new Driver(["a"]);
  const socket = open(driver);
  endTurn(driver, socket, outcomes.unauthorized());
  assertEquals(view(driver).state, "healthy");
  const fixed = new Driver([account("a", { refreshable: false })]);
  endTurn(fixed, open(fixed), outcomes.unauthorized());
  assertEquals(view(fixed).state, "unavailable");
});

Deno.test("turnEnded() strikes the provider as a request of its own would, turn by turn", () => {
  const driver = new Driver(["a"]);
  const socket = open(driver);
  endTurn(driver, socket, outcomes.unavailable());
  assertEquals(driver.pool.describeProviders(driver.nowMs)[0]!.cooldown, null);
  driver.advance(1);
  endTurn(driver, socket, outcomes.unavailable());
  assertEquals(driver.pool.describeProviders(driver.nowMs)[0]!.cooldown === null, false);
});

Deno.test("a socket that tests a block ends the test with its first turn, and later turns end no deadline", () => {
  const driver = new Driver(["a"]);
  driver.run(inOrder(outcomes.noCredits()));
  driver.advance(HOUR_MS);
  const socket = open(driver);
  assertEquals(socket.launch.trial, "credits");
  endTurn(driver, socket, outcomes.success());
  assertEquals(view(driver).state, "healthy");
  driver.advance(1);
  endTurn(driver, socket, outcomes.limitedUntil(driver.nowMs + HOUR_MS));
  driver.advance(1);
  endTurn(driver, socket, outcomes.success());
  assertEquals(view(driver).state, "cooling", "a stated time is kept in full");
});

Deno.test("a test that no turn answered is given back, unused", () => {
  const driver = new Driver(["a"]);
  driver.run(inOrder(outcomes.noCredits()));
  driver.advance(HOUR_MS);
  const socket = open(driver);
  assertEquals(driver.next(driver.begin(HANDSHAKE)).kind, "answer", "one test at a time");
  endTurn(driver, socket, outcomes.cancelled());
  assertEquals(view(driver).state, "unavailable");
  driver.advance(HOUR_MS);
  assertEquals(driver.launch(driver.begin(HANDSHAKE)).trial, "credits");
});

Deno.test("an open socket holds no gate: the provider's probe ends with the 101", () => {
  const driver = new Driver(["a"]);
  driver.run(
    inOrder(outcomes.unavailable(), outcomes.unavailable(), outcomes.unavailable(), outcomes.unavailable()),
  );
  driver.advance(10 * MINUTE_MS);
  const socket = open(driver);
  assertEquals(socket.launch.probe, "provider");
  assertEquals(driver.run(inOrder(outcomes.success())).status, 200);
});

Deno.test("socketClosed() changes no account, gives everything back, and only once", () => {
  const driver = new Driver(["a"]);
  const socket = open(driver);
  for (let count = 0; count < 2; count++) {
    driver.pool.socketClosed(socket.plan, socket.launch, outcomes.incomplete(), driver.nowMs);
  }
  assertEquals([view(driver).state, view(driver).inFlight], ["healthy", 0]);
  endTurn(driver, socket, outcomes.limitedUntil(driver.nowMs + HOUR_MS));
  assertEquals(view(driver).state, "healthy", "a turn of a closed socket is too late");
  const record = driver.pool.finish(socket.plan, 101, null, driver.nowMs);
  assertEquals([record.attempts.length, record.attempts[0]!.outcome], [1, "incomplete:stream_incomplete"]);
});

Deno.test("a turn before the upgrade is none", () => {
  const driver = new Driver(["a"]);
  const plan = driver.begin(HANDSHAKE);
  const launch = driver.launch(plan);
  endTurn(driver, { plan, launch }, outcomes.limitedUntil(driver.nowMs + HOUR_MS));
  assertEquals(view(driver).state, "healthy");
});
