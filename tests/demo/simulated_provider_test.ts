import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from "node:zlib";
import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";
import { startSimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import {
  chatDelta,
  completed,
  created,
  delay,
  delta,
  dripping,
  encoded,
  type Encoding,
  failed,
  failure,
  fin,
  gate,
  hangUp,
  json,
  numbered,
  ok,
  raw,
  type Reply,
  reset,
  rst,
  silence,
  stream,
  tokens,
  usage,
} from "../../lib/demo/simulated_replies.ts";
import { FakeClock } from "../support/fake_clock.ts";

const KEY_A = "SENT-tok-A";

interface Call {
  readonly path?: string;
  readonly method?: string;
  readonly key?: string;
  readonly body?: unknown;
}

async function call(url: string, { path = "/v1/responses", method = "POST", key = KEY_A, body }: Call = {}) {
  using client = Deno.createHttpClient({ poolMaxIdlePerHost: 0 });
  const response = await fetch(url + path, {
    method,
    client,
    headers: { authorization: `Bearer ${key}` },
    ...(method === "POST" ? { body: JSON.stringify(body ?? { model: "m1", stream: true }) } : {}),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** What comes back over one raw connection, to the byte. */
async function rawExchange(port: number, request: string): Promise<string> {
  const socket: Socket = connect(port, "127.0.0.1");
  const chunks: Uint8Array[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on("data", (chunk: Uint8Array) => chunks.push(chunk));
  socket.on("error", () => {});
  socket.on("close", () => resolve());
  socket.write(request);
  await promise;
  return Buffer.concat(chunks).toString("latin1");
}

const protocolCases = [
  { name: "Responses stream", path: "/responses", body: { stream: true }, want: '"delta":"hello"' },
  { name: "Responses object", path: "/responses", body: {}, want: '"text":"hello"' },
  { name: "chat stream", path: "/v1/chat/completions", body: { stream: true }, want: "data: [DONE]\n\n" },
  { name: "chat object", path: "/v1/chat/completions", body: {}, want: '"content":"hello"' },
  { name: "Claude stream", path: "/v1/messages?beta=true", body: { stream: true }, want: "message_stop" },
  { name: "Claude object", path: "/v1/messages", body: {}, want: '"type":"text","text":"hello"' },
  { name: "compaction", path: "/responses/compact", body: {}, want: '"object":"response.compaction"' },
  { name: "images", path: "/images/generations", body: {}, want: `"b64_json":"${btoa("hello")}"` },
  { name: "anything else", path: "/alpha/search", body: {}, want: '"text":"hello"' },
];
for (const c of protocolCases) {
  Deno.test(`ok() answers in the protocol of the call: ${c.name}`, async () => {
    await using provider = await startSimulatedProvider({ clock: new FakeClock() });
    provider.account(KEY_A).script(ok("hello"));
    const answer = await call(provider.url, c);
    assertEquals(answer.status, 200);
    assertStringIncludes(answer.text, c.want);
    provider.assertDone();
  });
}

Deno.test("SimulatedProvider plays an account's replies in order, then its default", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).script(failure(429), ok("first")).otherwise(ok("again"));
  const statuses = [];
  for (let turn = 0; turn < 4; turn++) statuses.push((await call(provider.url)).status);
  assertEquals(statuses, [429, 200, 200, 200]);
  assertEquals(provider.hitsOf(KEY_A).length, 4);
  provider.assertDone();
});

Deno.test("SimulatedProvider.assertDone() fails when a scripted reply was not used", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).script(ok("one"), ok("two"));
  await call(provider.url);
  assertThrows(() => provider.assertDone(), Error, `${KEY_A}: 1 scripted answers not used`);
});

Deno.test("SimulatedProvider answers 599 and remembers it when nobody scripted the call", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).otherwise(ok("A"));
  assertEquals((await call(provider.url, { key: "SENT-tok-B" })).status, 599);
  assertThrows(
    () => provider.assertDone(),
    Error,
    "nobody scripted answers POST /v1/responses for SENT-tok-B",
  );
});

Deno.test("SimulatedProvider keeps the lanes apart, and falls back to anyone's script", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.anyone.usage.otherwise(usage({ usedPercent: 3 }));
  provider.account(KEY_A).script(ok("A")).models.script(json({ data: [] }));
  provider.account("SENT-rt-A").tokens.script(tokens({ access_token: "SENT-new" }));
  assertStringIncludes(
    (await call(provider.url, { path: "/wham/usage", method: "GET" })).text,
    '"used_percent":3',
  );
  assertEquals(
    (await call(provider.url, { path: "/models?client_version=1", method: "GET" })).text,
    '{"data":[]}',
  );
  const refresh = { path: "/oauth/token", body: { refresh_token: "SENT-rt-A" } };
  assertEquals((await call(provider.url, refresh)).text, '{"access_token":"SENT-new"}');
  assertEquals((await call(provider.url)).status, 200);
  assertEquals(provider.hits.map((hit) => hit.lane), ["usage", "models", "tokens", "answers"]);
  provider.assertDone();
});

Deno.test("SimulatedProvider reads a form-encoded refresh token", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account("SENT-rt-B").tokens.script(tokens({}));
  const response = await fetch(`${provider.url}/oauth/token`, {
    method: "POST",
    body: new URLSearchParams({ refresh_token: "SENT-rt-B", grant_type: "refresh_token" }),
    headers: { connection: "close" },
  });
  assertEquals(await response.text(), "{}");
});

Deno.test("SimulatedProvider logs time, path, headers, raw body and credential of a call", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  provider.account(KEY_A).script(json({}));
  clock.jump(1_234);
  await call(provider.url, { path: "/v1/x?y=1", body: { a: "ü" } });
  const hit = provider.hits[0]!;
  assertEquals(hit.atMs, clock.now());
  assertEquals([hit.method, hit.path, hit.credential], ["POST", "/v1/x?y=1", KEY_A]);
  assertEquals(hit.headers.get("authorization"), `Bearer ${KEY_A}`);
  assertEquals(hit.text(), '{"a":"ü"}');
  assertEquals(hit.body.length, new TextEncoder().encode('{"a":"ü"}').length);
});

Deno.test("SimulatedProvider reads chunked bodies and several requests of one connection", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.anyone.script(json({ n: 1 }), json({ n: 2 }), hangUp());
  const got = await rawExchange(
    provider.port,
    "POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" +
      "POST /b HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi" + "GET /c HTTP/1.1\r\n\r\n",
  );
  assertEquals(provider.hits.map((hit) => [hit.path, hit.text(), hit.connection]), [
    ["/a", "abcde", 1],
    ["/b", "hi", 1],
    ["/c", "", 1],
  ]);
  assertStringIncludes(got, '{"n":2}');
  provider.assertDone();
});

Deno.test("SimulatedProvider keeps a body of many pieces whole", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).script(json({}));
  const body = "x".repeat(5_000_000);
  await call(provider.url, { body });
  assertEquals(provider.hits[0]!.body.length, body.length + 2);
});

const endings: { name: string; reply: Reply; wantHead: boolean; want: string }[] = [
  { name: "closes without a head", reply: hangUp(), wantHead: false, want: "" },
  { name: "resets without a head", reply: reset(), wantHead: false, want: "" },
  { name: "cuts the stream", reply: stream([created(), fin()]), wantHead: true, want: "response.created" },
  {
    name: "sends raw bytes until the close",
    reply: { ...raw(200, "raw"), framing: "close" },
    wantHead: true,
    want: "raw",
  },
];
for (const c of endings) {
  Deno.test(`SimulatedProvider ${c.name}`, async () => {
    await using provider = await startSimulatedProvider({ clock: new FakeClock() });
    provider.anyone.script(c.reply);
    const got = await rawExchange(provider.port, "GET /x HTTP/1.1\r\n\r\n");
    assertEquals(got.startsWith("HTTP/1.1 200"), c.wantHead);
    assertStringIncludes(got, c.want);
    assertEquals(got.includes("\r\n0\r\n\r\n"), false);
  });
}

Deno.test("rst() resets in the middle of the body", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  const sent = Promise.withResolvers<void>();
  provider.account(KEY_A).script(stream([created(), gate(sent.promise), rst()]));
  using client = Deno.createHttpClient({ poolMaxIdlePerHost: 0 });
  const init = { method: "POST", client, headers: { authorization: `Bearer ${KEY_A}` } };
  const response = await fetch(provider.url, init);
  const reader = response.body!.getReader();
  await reader.read();
  sent.resolve();
  await assertRejects(() => reader.read(), TypeError);
});

Deno.test("silence() never answers, and the log says when the peer gave up", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  provider.anyone.script(silence());
  const controller = new AbortController();
  const pending = fetch(provider.url, { signal: controller.signal }).catch((error) => error.name);
  await provider.hitCount(1);
  const hit = provider.hits[0]!;
  assertEquals(hit.leftAtMs, null);
  clock.jump(700);
  controller.abort();
  assertEquals(await pending, "AbortError");
  await hit.left;
  assertEquals(hit.leftAtMs, clock.now());
});

Deno.test("delay() waits on the given clock", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  provider.account(KEY_A).script(stream([created(), delay(5_000), delta("late"), completed()]));
  const pending = call(provider.url);
  assertStringIncludes((await clock.runUntil(pending)).text, "late");
  assertEquals(clock.pendingCount, 0);
});

const encodings: { encoding: Encoding; undo: (bytes: Uint8Array) => Uint8Array }[] = [
  { encoding: "gzip", undo: gunzipSync },
  { encoding: "br", undo: brotliDecompressSync },
  { encoding: "zstd", undo: zstdDecompressSync },
  { encoding: "deflate", undo: inflateSync },
  { encoding: "gzip, br", undo: (bytes) => gunzipSync(brotliDecompressSync(bytes)) },
];
for (const { encoding, undo } of encodings) {
  Deno.test(`encoded() packs the body and says so: ${encoding}`, async () => {
    await using provider = await startSimulatedProvider({ clock: new FakeClock() });
    // The label is another word, so that nothing on the way unpacks it.
    provider.anyone.script(encoded(ok("packed"), encoding, "x-test"));
    const response = await fetch(`${provider.url}/responses`, {
      method: "POST",
      body: "{}",
      headers: { connection: "close" },
    });
    assertEquals(response.headers.get("content-encoding"), "x-test");
    const plain = new TextDecoder().decode(undo(new Uint8Array(await response.arrayBuffer())));
    assertStringIncludes(plain, "packed");
  });
}

Deno.test("dripping() sends the same bytes in pieces", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).script(dripping(stream([chatDelta("héllo"), failed("x")]), 1), ok("A"));
  assertStringIncludes((await call(provider.url)).text, "héllo");
  assertStringIncludes((await call(provider.url)).text, '"A"');
});

Deno.test("numbered() counts its chunks up without holding them", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).script(stream(numbered({ chunks: 300, everyMs: 0 })));
  const { text } = await call(provider.url);
  const seen = [...text.matchAll(/"delta":"#(\d+) "/g)].map((match) => Number(match[1]));
  assertEquals(seen, Array.from({ length: 300 }, (_, index) => index + 1));
});

Deno.test("SimulatedProvider.close() ends held connections and their pauses", async () => {
  const clock = new FakeClock();
  const provider = await startSimulatedProvider({ clock });
  provider.anyone.otherwise(stream([created(), delay(60_000)]));
  const response = await fetch(provider.url, { headers: { connection: "close" } });
  const reader = response.body!.getReader();
  await reader.read();
  await provider.close();
  await assertRejects(() => reader.read(), TypeError);
  assertEquals(provider.openConnections, 0);
  assertEquals(clock.pendingCount, 0);
});
