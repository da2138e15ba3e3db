/** Conversations over real sockets: evenly spread, never moved without need, each tenant apart, foreign state kept home. */
import { assert, assertEquals } from "@std/assert";
import { failure, json, ok, tokens } from "../../lib/demo/simulated_replies.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";

const TEN = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"];

async function whoServes(
  rig: Rig,
  headers: Record<string, string>,
  fields: Record<string, unknown> = {},
): Promise<string> {
  const answer = await rig.responses(fields, { headers });
  const body = await answer.json();
  return answer.status === 200 ? body.output[0].content[0].text : `${answer.status} ${body.error.code}`;
}

Deno.test("1,000 sessions over 10 accounts are within 10 % of even, and stay where they are", async () => {
  await using rig = await startRig({ accounts: TEN, config: { logging: { level: "warn", format: "json" } } });
  for (const name of TEN) rig.account(name).otherwise(ok(name));
  const homes = new Map<string, string>();
  for (let batch = 0; batch < 50; batch++) {
    await Promise.all(Array.from({ length: 20 }, async (_, index) => {
      const session = `s${batch * 20 + index}`;
      homes.set(session, await whoServes(rig, { "session-id": session }));
    }));
  }
  for (const name of TEN) {
    const count = [...homes.values()].filter((home) => home === name).length;
    assert(count >= 90 && count <= 110, `${name}: ${count}`);
  }
  for (let index = 0; index < 1_000; index += 50) {
    assertEquals(await whoServes(rig, { "session-id": `s${index}` }), homes.get(`s${index}`)!);
  }
});

Deno.test("every signal of a conversation finds its account; conflicting spellings are no signal", async () => {
  await using rig = await startRig({ accounts: ["A", "B", "C"] });
  for (const name of ["A", "B", "C"]) rig.account(name).otherwise(ok(name));
  const signals: [Record<string, string>, Record<string, unknown>][] = [
    [{ "session-id": "x" }, {}],
    [{ session_id: "y" }, {}],
    [{ "x-session-id": "z" }, {}],
    [{ "x-session-affinity": "w" }, {}],
    [{}, { prompt_cache_key: "k" }],
    [{}, { session_id: "body" }],
    [{}, { conversation: { id: "conv" } }],
    [{}, { conversation: "plain" }],
    [{}, { conversation_id: "old" }],
    [{ "x-claude-code-session-id": "cc" }, {}],
    [{}, { metadata: { user_id: "user_1_account__session_7c1d" } }],
    [{}, { metadata: { user_id: JSON.stringify({ device_id: "d", session_id: "s-7" }) } }],
  ];
  for (const [headers, fields] of signals) {
    const home = await whoServes(rig, headers, fields);
    await whoServes(rig, {});
    for (let turn = 0; turn < 2; turn++) {
      assertEquals(await whoServes(rig, headers, fields), home, JSON.stringify([headers, fields]));
    }
  }
  const seen = new Set<string>();
  for (let turn = 0; turn < 3; turn++) seen.add(await whoServes(rig, { "session-id": "a", session_id: "b" }));
  assertEquals(seen.size, 3);
});

Deno.test("the same session of two tenants is two conversations", async () => {
  await using rig = await startRig({
    accounts: ["A", "B"],
    config: { "api-keys": [CLIENT_KEY, "SENT-key-client-2"] },
  });
  for (const name of ["A", "B"]) rig.account(name).otherwise(ok(name));
  const first = await whoServes(rig, { "session-id": "s" });
  const second = await whoServes(rig, { "session-id": "s", authorization: "Bearer SENT-key-client-2" });
  assert(first !== second);
  assertEquals(await whoServes(rig, { "session-id": "s" }), first);
});

Deno.test("turn state brings a request back to the account that made it, and never reaches another (B094)", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  for (const name of ["A", "B"]) {
    rig.account(name).otherwise(ok(name, { "x-codex-turn-state": `ts-${name}` }));
  }
  const first = await rig.responses({}, {});
  const home = (await first.json()).output[0].content[0].text;
  const state = first.headers.get("x-codex-turn-state")!;
  assertEquals(state, `ts-${home}`);
  for (let turn = 0; turn < 3; turn++) {
    assertEquals(await whoServes(rig, { "x-codex-turn-state": state }), home);
  }
  assertEquals(rig.provider.hits.at(-1)!.headers.get("x-codex-turn-state"), state);
  rig.account(home).otherwise(
    failure(429, { type: "usage_limit_reached", headers: { "retry-after": "3600" } }),
  );
  const other = await whoServes(rig, { "x-codex-turn-state": state });
  assert(other !== home);
  assertEquals(rig.provider.hits.at(-1)!.headers.get("x-codex-turn-state"), null);
});

Deno.test("a turn state shown with another key brings nobody anywhere, and is not passed on (B094)", async () => {
  await using rig = await startRig({
    accounts: ["A", "B"],
    config: { "api-keys": ["SENT-key-client-1", "SENT-key-client-2"] },
  });
  rig.account("A").script(ok("A", { "x-codex-turn-state": "ts-A1" })).otherwise(ok("A"));
  rig.account("B").otherwise(ok("B"));
  await (await rig.responses({ stream: true })).text();
  rig.provider.hits.length = 0;
  for (let count = 0; count < 4; count++) {
    const headers = { authorization: "Bearer SENT-key-client-2", "x-codex-turn-state": "ts-A1" };
    await (await rig.responses({ stream: true }, { headers })).text();
  }
  assertEquals(rig.provider.hits.map((hit) => hit.headers.get("x-codex-turn-state")), [
    null,
    null,
    null,
    null,
  ]);
  assertEquals(new Set(rig.provider.hits.map(({ credential }) => credential)).size, 2);
});

Deno.test("previous_response_id never travels to another account (B095)", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  for (const name of ["A", "B"]) rig.account(name).otherwise(ok(name));
  const home = await whoServes(rig, { "session-id": "s" });
  rig.account(home).otherwise(
    failure(429, { type: "usage_limit_reached", headers: { "retry-after": "600" } }),
  );
  const refused = await rig.responses({ previous_response_id: "resp_a1" }, {
    headers: { "session-id": "s" },
  });
  assertEquals([refused.status, refused.headers.get("retry-after")], [429, "600"]);
  await refused.body?.cancel();
  for (const hit of rig.provider.hits) {
    if (hit.text().includes("resp_a1")) assertEquals(hit.credential, `SENT-tok-${home}`);
  }
  assert((await whoServes(rig, { "session-id": "s" })) !== home);
});

Deno.test("foreign encrypted reasoning is stripped once after a failover, and nobody is blamed (ruling 8)", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  for (const name of ["A", "B"]) rig.account(name).otherwise(ok(name));
  const home = await whoServes(rig, { "session-id": "s" });
  const other = home === "A" ? "B" : "A";
  rig.account(home).otherwise(
    failure(429, { type: "usage_limit_reached", headers: { "retry-after": "600" } }),
  );
  rig.account(other).script(
    failure(400, {
      code: "invalid_encrypted_content",
      message: "The encrypted content could not be verified.",
    }),
  );
  const input = [
    { type: "message", role: "user", content: [{ type: "input_text", text: "hi" }] },
    { type: "reasoning", id: "rs_1", encrypted_content: "sealed", summary: [] },
    { type: "message", role: "user", content: [{ type: "input_text", text: "go on" }] },
  ];
  assertEquals(await whoServes(rig, { "session-id": "s" }, { input }), other);
  const sent = rig.provider.hits.at(-1)!.json()["input"] as { type: string }[];
  assertEquals(sent.map(({ type }) => type), ["message", "message"]);
  assertEquals((await rig.accountState(other))["state"], "healthy");
});

Deno.test("200 concurrent requests with an expired token make one refresh call", async () => {
  await using rig = await startRig({
    accounts: ["A"],
    credential: { expired: "2020-01-01T00:00:00Z" },
    config: { logging: { level: "warn", format: "json" } },
  });
  rig.provider.account("SENT-ref-A").tokens.script(
    tokens({ access_token: "SENT-tok-A2", refresh_token: "SENT-ref2-A", expires_in: 3600 }),
  );
  rig.provider.account("SENT-tok-A2").otherwise(json({ object: "response.compaction", output: [] }));
  const answers = await Promise.all(
    Array.from({ length: 200 }, () => rig.call("/v1/responses/compact", { model: "m1" })),
  );
  for (const answer of answers) {
    assertEquals(answer.status, 200);
    await answer.body?.cancel();
  }
  assertEquals(rig.provider.hitsOf("SENT-ref-A", "tokens").length, 1);
});

Deno.test("accounts added, replaced, renamed, half-written and removed while requests run are followed, and no request is lost", async () => {
  await using rig = await startRig({ accounts: ["A"], checkScript: false });
  for (const name of ["A", "B", "A2"]) rig.account(name).otherwise(ok(name));
  const names = async (): Promise<string[]> =>
    (await (await rig.admin("accounts")).json()).accounts.map(({ id }: { id: string }) => id).sort();
  rig.writeAccount("B");
  await rig.eventually(async () => (await names()).length === 2);
  Deno.renameSync(`${rig.authDir}/A.json`, `${rig.authDir}/renamed.json`);
  Deno.writeTextFileSync(`${rig.authDir}/half.json`, '{"type":"codex","access_tok');
  for (let turn = 0; turn < 10; turn++) {
    const served = await whoServes(rig, {});
    assert(["A", "B"].includes(served), served);
  }
  assertEquals((await names()).length, 2);
  Deno.removeSync(`${rig.authDir}/B.json`);
  await rig.eventually(async () => (await names()).length === 1);
  for (let turn = 0; turn < 3; turn++) assertEquals(await whoServes(rig, {}), "A");
  rig.writeAccount("renamed", {
    ...JSON.parse(Deno.readTextFileSync(`${rig.authDir}/renamed.json`)),
    access_token: "SENT-tok-A2",
    last_refresh: "2026-09-01T00:00:00Z",
  });
  await rig.eventually(async () => await whoServes(rig, {}) === "A2");
  assertEquals((await names()).length, 1);
});
