/** Rounds and waits over real sockets: three budgets, waits that a leaving client ends, nothing after commit. */
import { assert, assertEquals } from "@std/assert";
import { failure, hangUp, ok, silence } from "../../lib/demo/simulated_replies.ts";
import { eventually } from "../support/eventually.ts";
import { LONG_INPUT, VERY_LONG_INPUT } from "../support/long_input.ts";
import { CLIENT_KEY, startRig } from "../support/rig.ts";

const OVERLOADED = failure(503, { code: "server_is_overloaded" });

Deno.test("request-retry 3 means exactly four rounds", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(OVERLOADED);
  const answer = await rig.responses();
  assertEquals([answer.status, (await answer.json()).error.code], [502, "upstream_unavailable"]);
  assertEquals(rig.hits("A"), 4);
  assertEquals((await rig.lastDecision()).rounds, 4);
});

Deno.test("max-retry-credentials 1 with request-retry 1: one account a round, two hits in all (B043)", async () => {
  await using rig = await startRig({
    accounts: ["A", "B", "C"],
    config: { "max-retry-credentials": 1, "request-retry": 1 },
  });
  for (const name of ["A", "B", "C"]) rig.account(name).otherwise(OVERLOADED);
  await (await rig.responses()).body?.cancel();
  assertEquals(rig.hits("A") + rig.hits("B") + rig.hits("C"), 2);
});

Deno.test("max-retry-interval 0: no further round, whatever is near", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { "max-retry-interval": 0 } });
  rig.account("A").otherwise(OVERLOADED);
  assertEquals((await (await rig.responses()).json()).error.code, "upstream_unavailable");
  assertEquals(rig.hits("A"), 1);
});

Deno.test("a near deadline is waited out, a far one is told at once", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(
    failure(429, { type: "usage_limit_reached", headers: { "retry-after": "10" } }),
    ok("A"),
    failure(429, { type: "usage_limit_reached", headers: { "retry-after": "31" } }),
  );
  assertEquals((await (await rig.responses()).json()).status, "completed");
  const far = await rig.responses();
  assertEquals([far.status, far.headers.get("retry-after")], [429, "31"]);
  await far.body?.cancel();
});

Deno.test("a client that leaves during a wait causes no further call and cools nobody", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(failure(429, { type: "usage_limit_reached", headers: { "retry-after": "20" } }))
    .otherwise(ok("A"));
  const abort = new AbortController();
  const call = fetch(`${rig.app.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${CLIENT_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m1", input: LONG_INPUT }),
    signal: abort.signal,
  });
  const gone = call.then(() => "answered", () => "gone");
  await rig.until(rig.provider.hitCount(1));
  await rig.clock.advance(1_000);
  abort.abort();
  assertEquals(await rig.until(gone), "gone");
  // The clock stands still: the wait must not run out before the leaving is noticed.
  await eventually(() => rig.app.decisions.latest(1).length > 0);
  assertEquals((await rig.lastDecision()).status, 0);
  await rig.clock.advance(60_000);
  assertEquals(rig.hits("A"), 1);
  const state = (await (await rig.admin("accounts")).json()).accounts[0];
  assertEquals([state.state, state.reason], ["healthy", null]);
});

Deno.test("a client that leaves before the head ends the upstream call and cools nobody", async () => {
  await using rig = await startRig({ accounts: ["A"] });

  rig.account("A").script(silence()).otherwise(ok("A"));
  const abort = new AbortController();
  const call = fetch(`${rig.app.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${CLIENT_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m1", input: VERY_LONG_INPUT, stream: true }),
    signal: abort.signal,
  }).then(() => "answered", () => "gone");
  await rig.until(rig.provider.hitCount(1));
  await rig.clock.advance(200);
  abort.abort();
  assertEquals(await rig.until(call), "gone");
  await rig.until(rig.provider.hits[0]!.left);
  assertEquals((await (await rig.responses()).json()).status, "completed");
  assert(rig.app.decisions.latest(2).some(({ status }) => status === 0));
});

Deno.test("a pooled connection that dies unanswered is repeated once, unpooled, and blames nobody", async () => {
  await using rig = await startRig({ accounts: ["A"] });

  rig.account("A").script(ok("A"), hangUp(), ok("A"));
  await (await rig.responses()).text();
  const answer = await rig.responses();
  assertEquals((await answer.json()).status, "completed");
  assertEquals((await rig.lastDecision()).attempts.map(({ cause }) => cause), ["first", "unpooled_repeat"]);
  assertEquals(rig.hits("A"), 3);
});
