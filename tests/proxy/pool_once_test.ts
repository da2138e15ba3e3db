/** Requests that may be sent once: one launch, and the upstream's own answer where there is one (row 52). */
import { assertEquals } from "@std/assert";
import type { Outcome } from "../../lib/core/outcome.ts";
import * as outcomes from "../support/outcomes.ts";
import { account, Driver, inOrder } from "../support/pool_driver.ts";

const ONCE = { replay: "once" } as const;

const endings: readonly { name: string; outcome: Outcome; relayed: boolean; status: number | null }[] = [
  { name: "503", outcome: outcomes.unavailable(), relayed: true, status: null },
  { name: "429", outcome: outcomes.limitedUntil(Number.MAX_SAFE_INTEGER), relayed: true, status: null },
  { name: "400", outcome: outcomes.requestFault(), relayed: true, status: null },
  { name: "401", outcome: outcomes.unauthorized(), relayed: true, status: null },
  { name: "403", outcome: outcomes.credentialDead(), relayed: true, status: null },
  { name: "404 of the model", outcome: outcomes.modelUnsupported(), relayed: true, status: null },
  { name: "an edge block", outcome: outcomes.edgeBlock(), relayed: true, status: null },
  {
    name: "sealed state: never sent twice",
    outcome: outcomes.requestFault("foreign_state"),
    relayed: true,
    status: null,
  },
  { name: "a limit of this machine", outcome: outcomes.localLimit(), relayed: true, status: null },
  {
    name: "a request its provider's protocol cannot carry",
    outcome: outcomes.uncarried(),
    relayed: true,
    status: null,
  },
  { name: "no response", outcome: outcomes.noResponse(), relayed: false, status: 502 },
  {
    name: "a dead pooled connection: never sent twice",
    outcome: outcomes.noResponse({ pooled: true }),
    relayed: false,
    status: 502,
  },
  {
    name: "a body cut short",
    outcome: outcomes.transient("body_reset", { status: 200 }),
    relayed: false,
    status: 502,
  },
  {
    name: "a page that is no answer",
    outcome: outcomes.transient("malformed", { status: 200 }),
    relayed: false,
    status: 502,
  },
  {
    name: "silence",
    outcome: outcomes.transient("first_byte_timeout", { status: null, origin: "local" }),
    relayed: false,
    status: 502,
  },
  { name: "an incomplete stream", outcome: outcomes.incomplete(), relayed: false, status: 408 },
  {
    name: "a refresh that failed before the send",
    outcome: outcomes.refreshFailed(),
    relayed: false,
    status: 502,
  },
];
for (const c of endings) {
  Deno.test(`a once-only request is ${c.relayed ? "relayed" : `answered ${c.status}`} after ${c.name} (P13)`, () => {
    const driver = new Driver(["a", "b"]);
    const result = driver.run(inOrder(c.outcome), { ...ONCE, recoveryAttempts: 2 });
    assertEquals(result.launches.map(({ cause, fresh }) => [cause, fresh]), [["first", true]]);
    assertEquals([result.relayed !== null, result.answer?.status ?? null], [c.relayed, c.status]);
    assertEquals([driver.repairs, result.waits, driver.store.ledgers.size], [0, [], 0]);
  });
}

Deno.test("a once-only request books its result on account and provider like any other", () => {
  const driver = new Driver(["a"]);
  driver.run(inOrder(outcomes.unavailable()), ONCE);
  driver.advance(5_000);
  driver.run(inOrder(outcomes.unavailable()), ONCE);
  const [a] = driver.pool.describeAccounts(driver.nowMs);
  assertEquals([a!.state, a!.health.ladder!.strikes], ["cooling", 2]);
  assertEquals(driver.pool.describeProviders(driver.nowMs)[0]!.cooldown!.level, 0);
});

Deno.test("with nobody to serve, a once-only request is refused at once, without a wait", () => {
  const driver = new Driver(["a"]);
  driver.run(inOrder(outcomes.limitedUntil(driver.nowMs + 5_000)), ONCE);
  const result = driver.run(inOrder(), ONCE);
  assertEquals([result.answer?.status, result.answer?.undispatched, result.waits], [429, true, []]);
});

Deno.test("a 401 rests the account in memory until the refresh it starts has decided (ruling 19)", () => {
  const driver = new Driver(["a"]);
  driver.run(inOrder(outcomes.unauthorized()), ONCE);
  const state = () => driver.pool.describeAccounts(driver.nowMs)[0]!;
  assertEquals([state().block?.source, state().persisted], ["credential_invalid", false]);
  driver.pool.refreshed("a", "a-2", driver.nowMs);
  assertEquals(state().state, "healthy");
  driver.run(inOrder(outcomes.unauthorized()), ONCE);
  driver.pool.backgroundRefreshFailed("a", outcomes.refreshFailed(), driver.nowMs);
  assertEquals([state().state, state().block?.source], ["cooling", "refresh"]);
  driver.advance(60_000);
  driver.pool.backgroundRefreshFailed("a", outcomes.refreshDead(), driver.nowMs);
  assertEquals([state().block?.source, state().persisted], ["invalid_grant", true]);
  driver.pool.refreshed("a", "a-3", driver.nowMs);
  assertEquals(state().state, "healthy");
});

Deno.test("a 401 of an account that cannot refresh is final at once", () => {
  const driver = new Driver([account("a", { refreshable: false })]);
  driver.run(inOrder(outcomes.unauthorized()), ONCE);
  const [a] = driver.pool.describeAccounts(driver.nowMs);
  assertEquals([a!.block?.source, a!.persisted], ["unauthorized", true]);
});
