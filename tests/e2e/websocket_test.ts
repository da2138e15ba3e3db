/** WebSockets through the whole proxy: the handshake's way over the accounts, and what is told when none is left. */
import { assert, assertEquals } from "@std/assert";
import {
  accept,
  errorFrame,
  failure,
  hangUp,
  ok,
  raw,
  receive,
  silence,
} from "../../lib/demo/simulated_replies.ts";
import { HANDSHAKE } from "../support/bare_listener.ts";
import { LONG_HEADER } from "../support/long_input.ts";
import { exchange } from "../support/raw_client.ts";
import { openRigSocket, refusedRigSocket, tryRigSocket } from "../support/rig_sockets.ts";
import { CLIENT_KEY, startRig } from "../support/rig.ts";

const limited = (seconds: number) =>
  failure(429, { type: "usage_limit_reached", headers: { "retry-after": String(seconds) } });

Deno.test("a turn over a WebSocket: frames both ways, usage counted, one decision when it closes", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.script(ok("hello"));
  await using client = await openRigSocket(rig);
  client.create({ model: "gpt-5.5", reasoning: { effort: "low" } });
  assertEquals((await client.until("response.completed")).at(-2), "response.output_item.done");
  client.create({ previous_response_id: "resp_sim" });
  await client.until("response.completed");
  assertEquals((await client.close(1000, "bye")).code, 1000);
  await rig.eventually(() => rig.app.decisions.latest(1)[0]?.status === 101);
  const hit = rig.provider.hits.find(({ lane }) => lane === "websocket")!;
  await hit.left;
  assertEquals(hit.signals, ["close 1000 bye"]);
  assertEquals(hit.frames.length, 2);
  const decision = await rig.lastDecision();
  assertEquals([decision.route, decision.code, decision.attempts.length], ["responses_ws", null, 1]);
  assertEquals(decision.attempts[0]!.outcome, "success");
  const { events } = await (await rig.admin("usage/events")).json();
  const counted = events.map((
    row: Record<string, unknown>,
  ) => [row.model, row.effort, row.requests, row.input_tokens]);
  assertEquals(counted.sort(), [["gpt-5.5", "low", 1, 10], ["m1", null, 1, 10]]);
});

Deno.test("B085 a 429 on the upgrade: the next account's 101 reaches the client", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").websocket.script(limited(60));
  rig.account("B").websocket.script(ok("B"));
  await using client = await openRigSocket(rig);
  client.create();
  await client.until("response.completed");
  assertEquals([rig.hits("A"), rig.hits("B")], [1, 1]);
});

Deno.test("B085 both accounts limited: HTTP 429 on the upgrade with the earlier time, in Codex's form", async () => {
  await using rig = await startRig({ accounts: ["A", "B"], config: { "request-retry": 0 } });
  rig.account("A").websocket.script(limited(60));
  rig.account("B").websocket.script(limited(30));
  const refused = await refusedRigSocket(rig);
  assertEquals([refused.status, refused.headers.get("retry-after")], [429, "30"]);
  const { error } = JSON.parse(refused.body);
  assertEquals([error.type, error.code, Number.isInteger(error.resets_at)], [
    "usage_limit_reached",
    "rate_limited",
    true,
  ]);
  assert(refused.headers.get("x-request-id")?.startsWith("req_"));
  const again = await refusedRigSocket(rig);
  assertEquals(again.status, 429);
  assert(JSON.parse(again.body).error.message.includes("no upstream attempt"));
  assertEquals([rig.hits("A"), rig.hits("B")], [1, 1]);
});

Deno.test("B085 a 401 on the upgrade: one refresh, then the 101 of the same account", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.script(failure(401, { code: "token_expired" }));
  rig.provider.account("SENT-ref-A").tokens.script({
    kind: "dynamic",
    make: () => raw(200, JSON.stringify({ access_token: "SENT-tok-A2", expires_in: 3600 })),
  });
  rig.provider.account("SENT-tok-A2").websocket.script(ok("A2"));
  await using client = await openRigSocket(rig);
  client.create();
  await client.until("response.completed");
  assertEquals(rig.provider.hits.map(({ lane }) => lane), ["websocket", "tokens", "websocket"]);
});

Deno.test("B085 an error frame with status 429 after the upgrade: passed on, not replayed, and the account rests", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  const error = {
    type: "usage_limit_reached",
    message: "The usage limit has been reached",
    resets_in_seconds: 3600,
  };
  rig.account("A").websocket.script(accept([errorFrame(429, { error })]));
  rig.account("B").websocket.otherwise(ok("B"));
  await using client = await openRigSocket(rig);
  const frame = await client.json();
  assertEquals([frame.type, frame.status], ["error", 429]);
  await rig.eventually(async () => (await rig.accountState("A")).state === "cooling");
  assertEquals((await rig.accountState("A")).persisted, true);
  await using next = await openRigSocket(rig);
  next.create();
  await next.until("response.completed");
  assertEquals([rig.hits("A"), rig.hits("B")], [1, 1]);
});

const rows = [
  { name: "a connection that dies", first: hangUp() },
  { name: "503", first: failure(503) },
  {
    name: "a block page",
    first: raw(403, "<title>Just a moment...</title>", { "content-type": "text/html" }),
    again: true,
  },
  { name: "a captive portal's page", first: raw(200, "<html>Sign in</html>") },
  { name: "a captive portal's redirect", first: raw(302, "", { location: "http://127.0.0.1:1/" }) },
];
for (const { name, first, again = false } of rows) {
  Deno.test(`a handshake that fails (${name}) is made again elsewhere while the client waits`, async () => {
    await using rig = await startRig({ accounts: ["A", "B"], checkScript: false });
    rig.account("A").websocket.script(first).otherwise(ok("A"));
    rig.account("B").websocket.otherwise(ok("B"));
    await using client = await openRigSocket(rig);
    client.create();
    await client.until("response.completed");
    // A wall before everybody is met once a round (ruling 4).
    assertEquals(rig.hits("A") + rig.hits("B"), 2, String(again));
  });
}

Deno.test("all handshakes fail in passing: the client waits out the cooldown and is upgraded then", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.script(failure(503), ok("A"));
  await using client = await openRigSocket(rig);
  client.create();
  await client.until("response.completed");
  assertEquals(rig.hits("A"), 2);
});

Deno.test("a client that leaves while its upstream is dialled takes the dialling with it, and blames nobody", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").websocket.script(silence());
  const leave = new AbortController();
  const opening = tryRigSocket(rig, { headers: LONG_HEADER, signal: leave.signal });
  await rig.until(rig.provider.hitCount(1));
  leave.abort();
  assertEquals((await opening).ok, false);
  await rig.until(rig.provider.hits[0]!.left);
  await rig.eventually(() => rig.app.decisions.latest(1)[0]?.status === 0);
  assertEquals([rig.hits("A"), rig.hits("B")], [1, 0]);
  assertEquals((await rig.accountState("A")).state, "healthy");
});

Deno.test("426 on the upgrade reaches the client as it is: the upstream wants HTTP", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").websocket.script(
    raw(426, '{"error":{"message":"use HTTP"}}', { "content-type": "application/json" }),
  );
  const refused = await refusedRigSocket(rig);
  assertEquals([refused.status, JSON.parse(refused.body).error.message], [426, "use HTTP"]);
  assertEquals(rig.hits("B"), 0);
});

for (
  const [name, value] of [["sec-websocket-version", "8"], ["connection", "keep-alive"], [
    "sec-websocket-key",
    "",
  ]]
) {
  Deno.test(`an upgrade that is no WebSocket handshake (${name}) is refused without a call`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    const status = await rawHandshake(rig.app.url, { [name!]: value! });
    assertEquals(status, 400);
    assertEquals(rig.provider.hits.length, 0);
  });
}

Deno.test("a handshake that is no GET is refused in our words, without a call", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const { answers } = await exchange(
    rig.app.server.port,
    `POST /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${CLIENT_KEY}\r\n${HANDSHAKE}\r\n`,
  );
  assertEquals(answers.map(({ status, body }) => [status, JSON.parse(body).error.code]), [[
    400,
    "invalid_request",
  ]]);
  assertEquals(rig.provider.hits.length, 0);
});

Deno.test("a wrong key, an unknown path: refused before anything is dialled", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const wrong = await refusedRigSocket(rig, { headers: { authorization: "Bearer SENT-other" } });
  assertEquals([wrong.status, JSON.parse(wrong.body).error.code], [401, "invalid_api_key"]);
  assertEquals((await refusedRigSocket(rig, { path: "/v1/chat/completions" })).status, 404);
  assertEquals(rig.provider.hits.length, 0);
});

Deno.test("B094 the 101's turn state and etag reach the client; nothing is invented; the key stays here", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const headers = {
    "x-codex-turn-state": "ts-A1",
    "x-models-etag": "e1",
    "set-cookie": "__cf_bm=SENT-cookie",
  };
  rig.account("A").websocket.script(
    accept([receive()], { headers, protocol: "realtime" }),
    accept([receive()]),
  );
  await using client = await openRigSocket(rig, {
    protocols: ["realtime", "openai-insecure-api-key.SENT-browser-key"],
    headers: { "session-id": "s1", "openai-beta": "responses=experimental", cookie: "SENT-cookie" },
  });
  assertEquals(client.headers.get("x-codex-turn-state"), "ts-A1");
  assertEquals([client.headers.get("x-models-etag"), client.protocol], ["e1", "realtime"]);
  assertEquals([client.headers.get("openai-model"), client.headers.get("set-cookie")], [null, null]);
  await using plain = await openRigSocket(rig);
  assertEquals(plain.headers.get("x-codex-turn-state"), null);
  const sent = rig.provider.hits[0]!.headers;
  assertEquals([sent.get("session-id"), sent.get("chatgpt-account-id")], ["s1", "acct-A"]);
  assertEquals(sent.get("openai-beta"), "responses_websockets=2026-02-06");
  assertEquals(sent.get("sec-websocket-protocol"), "realtime");
  assert(![...sent].some(([, value]) => /SENT-(key|browser|cookie)/.test(value)));
});

Deno.test("B094 a reconnect with the turn state goes to its account; where that rests, the state stays behind", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  const headers = { "x-codex-turn-state": "ts-A1" };
  rig.account("A").websocket.script(
    accept([receive()], { headers }),
    accept([receive()]),
    accept([receive()]),
    limited(3_600),
  );
  rig.account("B").websocket.otherwise(accept([receive()]));
  const connect = async (sent: Record<string, string>) => {
    rig.provider.hits.length = 0;
    await (await openRigSocket(rig, { headers: sent })).close();
    return rig.provider.hits.map((hit) => [hit.credential, hit.headers.get("x-codex-turn-state")]);
  };
  assertEquals(await connect({}), [["SENT-tok-A", null]]);
  assertEquals(await connect({}), [["SENT-tok-B", null]]);
  assertEquals(await connect(headers), [["SENT-tok-A", "ts-A1"]]);
  assertEquals(await connect(headers), [["SENT-tok-A", "ts-A1"]], "as often as it comes");
  assertEquals(await connect(headers), [["SENT-tok-A", "ts-A1"], ["SENT-tok-B", null]]);
  assertEquals(await connect(headers), [["SENT-tok-B", null]], "while A rests");
});

Deno.test("a proxy that leads to itself notices it over WebSockets as well (B142)", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const config = rig.config();
  await rig.app.reload({
    ...config,
    codexBaseUrl: `${rig.app.url}/v1`,
    apiKeys: [CLIENT_KEY, "SENT-tok-A"],
    retry: { ...config.retry, requestRetry: 0 },
  });
  const refused = await refusedRigSocket(rig);
  assertEquals(refused.status, 502);
  const log = await rig.readLog();
  assert(log.includes("loop_detected"), log);
  assertEquals(rig.provider.hits.length, 0);
});

/** A handshake with some header wrong, on a bare connection. @returns the status. */
async function rawHandshake(url: string, wrong: Record<string, string>): Promise<number> {
  const { hostname, port } = new URL(url);
  const headers: Record<string, string> = {
    host: `${hostname}:${port}`,
    authorization: `Bearer ${CLIENT_KEY}`,
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    ...wrong,
  };
  const head = Object.entries(headers).filter(([, value]) => value !== "")
    .map(([name, value]) => `${name}: ${value}\r\n`).join("");
  using connection = await Deno.connect({ hostname, port: Number(port) });
  await connection.write(new TextEncoder().encode(`GET /v1/responses HTTP/1.1\r\n${head}\r\n`));
  const bytes = new Uint8Array(1_024);
  const count = await connection.read(bytes) ?? 0;
  return Number(new TextDecoder().decode(bytes.subarray(0, count)).split(" ")[1]);
}
