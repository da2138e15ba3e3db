/** What belongs to one account is never shown to another (ruling 8), over HTTP as over WebSockets. */
import { assert, assertEquals } from "@std/assert";
import { completed, created, delta, failure, ok, stream } from "../../lib/demo/simulated_replies.ts";
import { type Rig, startRig } from "../support/rig.ts";

const limit = (seconds: number) =>
  failure(429, { type: "usage_limit_reached", headers: { "retry-after": `${seconds}` } });
const sessionHeaders = { "session-id": "S" };
const turn = (rig: Rig, fields: Record<string, unknown>, headers: Record<string, string> = sessionHeaders) =>
  rig.responses({ stream: true, ...fields }, { headers });

Deno.test("B095 a request that builds on an answer of a resting account gets that account's time, not another account", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(stream([created("resp_a1"), delta("one"), completed("resp_a1")]), limit(600));
  await (await turn(rig, {})).text();
  const second = await turn(rig, { previous_response_id: "resp_a1", input: [] });
  assertEquals([second.status, second.headers.get("retry-after")], [429, "600"]);
  assertEquals((await second.json()).error.type, "usage_limit_reached");
  const again = await turn(rig, { previous_response_id: "resp_a1", input: [] });
  assertEquals([again.status, rig.hits("A"), rig.hits("B")], [429, 2, 0]);
  await again.body?.cancel();
  assertEquals((await rig.accountState("B")).state, "healthy");
  rig.account("B").script(ok("B"));
  const whole = await turn(rig, { input: [{ role: "user", content: "everything" }] });
  assertEquals(whole.status, 200);
  assert((await whole.text()).includes('"B"'));
});

Deno.test("B094 turn state comes back to its account over HTTP, verbatim; on a change of account it is left out", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  const state = { "x-codex-turn-state": "ts-A1" };
  rig.account("A").script(ok("A", state), ok("A"), ok("A"), limit(600));
  rig.account("B").otherwise(ok("B"));
  const first = await turn(rig, {}, {});
  assertEquals(first.headers.get("x-codex-turn-state"), "ts-A1");
  await first.text();
  const other = await turn(rig, {}, {});
  assertEquals(other.headers.get("x-codex-turn-state"), null, "none is invented");
  await other.text();
  rig.provider.hits.length = 0;
  for (let count = 0; count < 3; count++) await (await turn(rig, {}, state)).text();
  assertEquals(rig.provider.hits.map((hit) => [hit.credential, hit.headers.get("x-codex-turn-state")]), [
    ["SENT-tok-A", "ts-A1"],
    ["SENT-tok-A", "ts-A1"],
    ["SENT-tok-A", "ts-A1"],
    ["SENT-tok-B", null],
  ]);
});

Deno.test("B094 a turn state of another key, or of nobody, brings nobody anywhere and is not passed on", async () => {
  await using rig = await startRig({
    accounts: ["A", "B"],
    config: { "api-keys": ["SENT-key-client-1", "SENT-key-client-2"] },
  });
  rig.account("A").script(ok("A", { "x-codex-turn-state": "ts-A1" })).otherwise(ok("A"));
  rig.account("B").otherwise(ok("B"));
  await (await turn(rig, {}, {})).text();
  rig.provider.hits.length = 0;
  for (let count = 0; count < 4; count++) {
    const headers = { authorization: "Bearer SENT-key-client-2", "x-codex-turn-state": "ts-A1" };
    await (await turn(rig, {}, headers)).text();
  }
  assertEquals(rig.provider.hits.map((hit) => hit.headers.get("x-codex-turn-state")), [
    null,
    null,
    null,
    null,
  ]);
  assertEquals(new Set(rig.provider.hits.map(({ credential }) => credential)).size, 2);
});

Deno.test("sealed reasoning that the next account cannot open is taken out once, and blames nobody", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(ok("A"), limit(600));
  rig.account("B").script(failure(400, { code: "invalid_encrypted_content" }), ok("B"));
  await (await turn(rig, {})).text();
  const input = [
    { type: "message", role: "user", content: "hi" },
    { type: "reasoning", summary: [], encrypted_content: "SENT-sealed-by-A" },
    { type: "message", role: "user", content: "go on" },
  ];
  const answer = await turn(rig, { input });
  assertEquals([answer.status, (await answer.text()).includes('"B"')], [200, true]);
  const bodies = rig.provider.hitsOf("SENT-tok-B").map((hit) => (hit.json().input as unknown[]).length);
  assertEquals(bodies, [3, 2]);
  assertEquals((await rig.accountState("B")).state, "healthy");
});
