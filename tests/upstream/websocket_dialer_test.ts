import { assertEquals, assertStringIncludes } from "@std/assert";
import type { Socket } from "node:net";
import type { Evidence } from "../../lib/core/evidence.ts";
import { type SimulatedProvider, startSimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import {
  accept,
  bytes,
  close,
  completed,
  created,
  deaf,
  encoded,
  failure,
  fin,
  gate,
  hangUp,
  hold,
  ok,
  ping,
  raw,
  receive,
  type Reply,
  reset,
  rst,
  silence,
  stream,
  text,
} from "../../lib/demo/simulated_replies.ts";
import type { DialRequest, DialResult, UpstreamSocket } from "../../lib/ports.ts";
import { NO_PROXY_ENVIRONMENT } from "../../lib/upstream/egress_proxy.ts";
import { createDialer } from "../../lib/upstream/websocket_dialer.ts";
import { FakeClock, settle } from "../support/fake_clock.ts";
import { eventually } from "../support/eventually.ts";
import { blackHole, deadPort, rawServer, TEST_CA, tlsServer } from "../support/rude_sockets.ts";

const KEY_A = "SENT-tok-A";

function dialRequest(url: string, changes: Partial<DialRequest> = {}): DialRequest {
  return {
    url,
    headers: new Headers({ authorization: `Bearer ${KEY_A}` }),
    protocols: [],
    connectTimeoutMs: 15_000,
    handshakeTimeoutMs: 30_000,
    maxPayloadBytes: 16_777_216,
    attempt: "req_test:1",
    ...changes,
  };
}

function dial(url: string, changes: Partial<DialRequest> = {}, clock = new FakeClock()): Promise<DialResult> {
  const dialer = createDialer({
    clock,
    proxyUrl: "direct",
    environment: NO_PROXY_ENVIRONMENT,
    caCerts: [TEST_CA],
  });
  return dialer.dial(dialRequest(url, changes), new AbortController().signal);
}

async function open(
  provider: SimulatedProvider,
  changes: Partial<DialRequest> = {},
): Promise<UpstreamSocket> {
  const result = await dial(`${provider.url}/v1/responses`, changes);
  if (!result.ok) throw new Error(`Dial failed: ${JSON.stringify(result)}`);
  return result.socket;
}

/** Everything a socket says, as lines; `closed` resolves with the last. */
function record(socket: UpstreamSocket) {
  const lines: string[] = [];
  const closed = Promise.withResolvers<string>();
  socket.listen({
    frame: (data) => lines.push(typeof data === "string" ? `text ${data}` : `binary ${data.length}`),
    ping: (data) => lines.push(`ping ${new TextDecoder().decode(data)}`),
    pong: (data) => lines.push(`pong ${new TextDecoder().decode(data)}`),
    drain: () => lines.push("drain"),
    close: (code, reason, clean) => {
      lines.push(`close ${code} ${reason} ${clean}`);
      closed.resolve(lines.at(-1)!);
    },
  });
  return {
    lines,
    closed: closed.promise,
    types: () => lines.map((line) => /"type":"([a-z._]+)"/.exec(line)?.[1] ?? line),
  };
}

// ---------------------------------------------------------------- the handshake

Deno.test("dial() opens a socket with the headers of the 101, and sends ours but not its own twice", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).websocket.script(
    accept([close(1000)], { headers: { "x-codex-turn-state": "ts-A1", "x-models-etag": "e1" } }),
  );
  const headers = new Headers({
    authorization: `Bearer ${KEY_A}`,
    "openai-beta": "responses_websockets=2026-02-06",
    "sec-websocket-key": "bad",
    "sec-websocket-version": "1",
    connection: "close",
    upgrade: "other",
  });
  const socket = await open(provider, { headers });
  assertEquals(socket.headers.get("x-codex-turn-state"), "ts-A1");
  assertEquals(socket.headers.get("x-models-etag"), "e1");
  assertEquals(await record(socket).closed, "close 1000  true");
  const seen = provider.hits[0]!.headers;
  assertEquals(seen.get("openai-beta"), "responses_websockets=2026-02-06");
  assertEquals([seen.get("sec-websocket-version"), seen.get("upgrade")], ["13", "websocket"]);
  assertStringIncludes(seen.get("sec-websocket-extensions")!, "permessage-deflate");
});

Deno.test("dial() negotiates a subprotocol", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).websocket.script(accept([close(1000)], { protocol: "realtime" }));
  const socket = await open(provider, { protocols: ["openai-beta", "realtime"] });
  assertEquals(socket.protocol, "realtime");
  await record(socket).closed;
});

const LIMIT = {
  code: "usage_limit_reached",
  headers: { "retry-after": "60" },
  extra: { resets_in_seconds: 60 },
};
const refusals: { name: string; reply: Reply; status: number; body: string; header?: [string, string] }[] = [
  {
    name: "429 with its body and Retry-After",
    reply: failure(429, LIMIT),
    status: 429,
    body: '"resets_in_seconds":60',
    header: ["retry-after", "60"],
  },
  { name: "401", reply: failure(401, { code: "token_expired" }), status: 401, body: "token_expired" },
  {
    name: "403 block page",
    reply: raw(403, "<title>Attention Required! | Cloudflare</title>"),
    status: 403,
    body: "Cloudflare",
  },
  { name: "426 use HTTP", reply: raw(426, ""), status: 426, body: "" },
  { name: "503", reply: failure(503), status: 503, body: "simulated 503" },
  { name: "a portal's 200", reply: raw(200, "<html>Sign in to Wi-Fi</html>"), status: 200, body: "Sign in" },
  {
    name: "a portal's 302, not followed",
    reply: raw(302, "", { location: "http://127.0.0.1:1/" }),
    status: 302,
    body: "",
  },
  {
    name: "a packed body",
    reply: encoded(failure(429, LIMIT), "gzip"),
    status: 429,
    body: '"resets_in_seconds":60',
  },
  {
    name: "a zstd body",
    reply: encoded(failure(429, LIMIT), "zstd"),
    status: 429,
    body: '"resets_in_seconds":60',
  },
  { name: "an undecodable body", reply: encoded(raw(429, "plain"), null, "foo"), status: 429, body: "" },
  {
    name: "a body that is cut",
    reply: { ...stream([text("partial"), rst()]), status: 500 },
    status: 500,
    body: "partial",
  },
];
for (const c of refusals) {
  Deno.test(`dial() gives a refused handshake as an ordinary answer: ${c.name}`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    provider.account(KEY_A).websocket.script(c.reply);
    const result = await dial(`${provider.url}/v1/responses`, {}, clock);
    if (result.ok || result.status === null) throw new Error(`Expected a refusal: ${JSON.stringify(result)}`);
    assertEquals(result.status, c.status);
    assertStringIncludes(new TextDecoder().decode(result.body), c.body);
    if (c.header !== undefined) assertEquals(result.headers.get(c.header[0]), c.header[1]);
    assertEquals(result.headers.has("content-encoding"), false);
    assertEquals(clock.pendingCount, 0);
    assertEquals(provider.hits.length, 1);
  });
}

for (const size of [65_535, 65_536, 65_537, 5_000_000]) {
  Deno.test(`dial() reads at most 64 KiB of a refusal: ${size} bytes`, async () => {
    await using provider = await startSimulatedProvider({ clock: new FakeClock() });
    provider.account(KEY_A).websocket.script(raw(500, "x".repeat(size)));
    const result = await dial(`${provider.url}/v1/responses`);
    if (result.ok || result.status === null) throw new Error("Expected a refusal");
    assertEquals(result.body.length, Math.min(size, 65_536));
  });
}

// ---------------------------------------------------------------- no handshake at all

function transport(cause: string): Evidence {
  return { kind: "transport", cause, pooled: false } as Evidence;
}

async function failed(result: Promise<DialResult>): Promise<Evidence> {
  const settled = await result;
  if (settled.ok || settled.status !== null) throw new Error("Expected a failure without an answer");
  return settled.evidence;
}

const lost: { name: string; reply: Reply; want: Evidence }[] = [
  { name: "closed before the head", reply: hangUp(), want: transport("reset_before_head") },
  { name: "reset before the head", reply: reset(), want: transport("reset_before_head") },
  { name: "reset inside the head", reply: reset("HTTP/1.1 101 Swi"), want: transport("reset_before_head") },
  {
    name: "another protocol",
    reply: reset("SSH-2.0-x\r\n\r\n"),
    want: { kind: "malformed", detail: "bad_response_head" },
  },
  {
    name: "a 101 with the wrong key",
    reply: reset(
      "HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: x\r\n\r\n",
    ),
    want: { kind: "malformed", detail: "bad_upgrade" },
  },
];
for (const c of lost) {
  Deno.test(`dial() says why no handshake came about: ${c.name}`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    provider.account(KEY_A).websocket.script(c.reply);
    assertEquals(await failed(dial(`${provider.url}/v1/responses`, {}, clock)), c.want);
    assertEquals(clock.pendingCount, 0);
  });
}

Deno.test("dial() tells refused connections, unknown names and unreadable URLs", async () => {
  assertEquals(await failed(dial(`ws://127.0.0.1:${deadPort()}/`)), transport("refused"));
  assertEquals(await failed(dial("wss://nothing.invalid/")), transport("dns"));
  assertEquals(await failed(dial("not a url")), transport("refused"));
  assertEquals(await failed(dial("ftp://127.0.0.1/")), transport("refused"));
});

const tlsCases: { name: string; papers: "localhost" | "other_name"; host: string; want: string }[] = [
  { name: "the wrong name", papers: "other_name", host: "localhost", want: "tls_certificate" },
  { name: "the right name, then a close", papers: "localhost", host: "localhost", want: "reset_before_head" },
];
for (const c of tlsCases) {
  Deno.test(`dial() checks certificates: ${c.name}`, async () => {
    await using server = await tlsServer(c.papers, (socket) => socket.once("data", () => socket.end()));
    assertEquals(await failed(dial(`wss://${c.host}:${server.port}/`)), transport(c.want));
  });
}

Deno.test("dial() tells a certificate nobody vouches for", async () => {
  await using server = await tlsServer("localhost");
  const dialer = createDialer({
    clock: new FakeClock(),
    proxyUrl: "direct",
    environment: NO_PROXY_ENVIRONMENT,
  });
  const signal = new AbortController().signal;
  const result = dialer.dial(dialRequest(`wss://localhost:${server.port}/`), signal);
  assertEquals(await failed(result), transport("tls_certificate"));
});

const handshakes: { name: string; serve: (socket: Socket) => void }[] = [
  { name: "plain HTTP", serve: (socket) => socket.write("HTTP/1.1 400 Bad\r\n\r\n") },
  { name: "a close", serve: (socket) => socket.once("data", () => socket.end()) },
  { name: "a reset", serve: (socket) => socket.once("data", () => socket.resetAndDestroy()) },
];
for (const c of handshakes) {
  Deno.test(`dial() tells a failed TLS handshake: ${c.name}`, async () => {
    await using server = await rawServer(c.serve);
    assertEquals(await failed(dial(`wss://localhost:${server.port}/`)), transport("tls"));
  });
}

Deno.test("dial() ends in connect_timeout when nothing answers the connection", async () => {
  const clock = new FakeClock();
  using hole = await blackHole();
  const pending = dial(`ws://127.0.0.1:${hole.port}/`, {}, clock);
  await clock.advance(14_999);
  assertEquals(clock.pendingCount, 1);
  await clock.advance(1);
  assertEquals(await failed(pending), transport("connect_timeout"));
  assertEquals(clock.pendingCount, 0);
});

Deno.test("dial() ends in first_byte_timeout when the handshake is never answered", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  provider.account(KEY_A).websocket.script(silence());
  const pending = dial(`${provider.url}/v1/responses`, {}, clock);
  await provider.hitCount(1);
  await clock.advance(30_000);
  assertEquals(await failed(pending), transport("first_byte_timeout"));
  await provider.hits[0]!.left;
  assertEquals(clock.pendingCount, 0);
});

const cancels = [
  { name: "before it begins", when: "before" },
  { name: "while it waits for the answer", when: "waiting" },
] as const;
for (const c of cancels) {
  Deno.test(`dial() gives client_cancelled and drops the connection when aborted ${c.name}`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    if (c.when === "waiting") provider.account(KEY_A).websocket.script(silence());
    const dialer = createDialer({ clock, proxyUrl: "direct", environment: NO_PROXY_ENVIRONMENT });
    const controller = new AbortController();
    if (c.when === "before") controller.abort();
    const pending = dialer.dial(dialRequest(`${provider.url}/v1/responses`), controller.signal);
    if (c.when === "waiting") {
      await provider.hitCount(1);
      controller.abort();
    }
    assertEquals(await failed(pending), { kind: "client_cancelled" });
    await eventually(() => provider.openConnections === 0);
    provider.assertDone();
    assertEquals(clock.pendingCount, 0);
  });
}

// ---------------------------------------------------------------- the open socket

Deno.test("UpstreamSocket carries text, binary, pings and closes in order", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).websocket.script(
    accept([
      receive(),
      created(),
      bytes(new Uint8Array([0, 255])),
      ping("p1"),
      completed(),
      close(4001, "bye"),
    ]),
  );
  const socket = await open(provider);
  const log = record(socket);
  socket.send("hello");
  assertEquals(await log.closed, "close 4001 bye true");
  assertEquals(log.types().filter((line) => line !== "drain"), [
    "response.created",
    "binary 2",
    "ping p1",
    "response.completed",
    "close 4001 bye true",
  ]);
  assertEquals(provider.hits[0]!.frames, ["hello"]);
  assertEquals(provider.hits[0]!.signals[0], "pong p1");
});

Deno.test("UpstreamSocket keeps frames that come with the 101, and those before anybody listens", async () => {
  for (let run = 0; run < 20; run++) {
    await using server = await rawServer((socket) => {
      socket.once("data", async (head: Uint8Array) => {
        const key = /sec-websocket-key: (\S+)/i.exec(new TextDecoder().decode(head))![1]!;
        const digest = await crypto.subtle.digest(
          "SHA-1",
          new TextEncoder().encode(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`),
        );
        const answer = "HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n" +
          `sec-websocket-accept: ${btoa(String.fromCharCode(...new Uint8Array(digest)))}\r\n\r\n`;
        // One segment: head, "one", "two", close 1000.
        const frames = [0x81, 3, 0x6f, 0x6e, 0x65, 0x81, 3, 0x74, 0x77, 0x6f, 0x88, 2, 0x03, 0xe8];
        socket.write(new Uint8Array([...new TextEncoder().encode(answer), ...frames]));
      });
    });
    const result = await dial(`ws://127.0.0.1:${server.port}/`);
    if (!result.ok) throw new Error(JSON.stringify(result));
    // Nobody listens for a while.
    await settle();
    const log = record(result.socket);
    await log.closed;
    assertEquals(log.lines, ["text one", "text two", "close 1000  true"]);
  }
});

const breaks: { name: string; reply: Reply; want: string }[] = [
  { name: "a reset", reply: accept([created(), rst()]), want: "close 1006  false" },
  { name: "an end without close frame", reply: accept([created(), fin()]), want: "close 1006  false" },
  {
    name: "a close with a reason",
    reply: accept([close(1011, "overloaded")]),
    want: "close 1011 overloaded true",
  },
];
for (const c of breaks) {
  Deno.test(`UpstreamSocket reports ${c.name} once, as its close`, async () => {
    await using provider = await startSimulatedProvider({ clock: new FakeClock() });
    provider.account(KEY_A).websocket.script(c.reply);
    const log = record(await open(provider));
    assertEquals(await log.closed, c.want);
    assertEquals(log.lines.filter((line) => line.startsWith("close")).length, 1);
  });
}

for (const size of [1_023, 1_024, 1_025]) {
  Deno.test(`UpstreamSocket closes with 1009 above its payload limit of 1024 bytes: ${size}`, async () => {
    await using provider = await startSimulatedProvider({ clock: new FakeClock() });
    provider.account(KEY_A).websocket.script(accept([bytes(new Uint8Array(size)), receive(), close(1000)]));
    const socket = await open(provider, { maxPayloadBytes: 1_024 });
    const log = record(socket);
    socket.send("go on");
    assertEquals(await log.closed, size > 1_024 ? "close 1009  false" : "close 1000  true");
  });
}

/** Text that deflate cannot shorten much, so that it is really on its way for a while. */
function stubbornText(length: number): string {
  const random = crypto.getRandomValues(new Uint8Array(49_152));
  return btoa(String.fromCharCode(...random)).repeat(Math.ceil(length / 65_536)).slice(0, length);
}

for (const size of [131_071, 131_072, 131_073, 3_000_000]) {
  Deno.test(`UpstreamSocket sends a message of ${size} bytes whole, and what follows behind it`, async () => {
    await using provider = await startSimulatedProvider({ clock: new FakeClock() });
    provider.account(KEY_A).websocket.script(accept([receive(), receive(), receive(), close(1000)]));
    const socket = await open(provider);
    const log = record(socket);
    const message = stubbornText(size);
    socket.send(message);
    socket.send("behind it");
    socket.send(new Uint8Array(3));
    assertEquals(socket.bufferedAmount > 0, true);
    assertEquals(await log.closed, "close 1000  true");
    assertEquals(log.lines.includes("drain"), true);
    const { frames } = provider.hits[0]!;
    assertEquals(frames.map((frame) => frame.length), [size, "behind it".length, 3]);
    assertEquals(frames[0] === message, true);
  });
}

Deno.test("UpstreamSocket answers a ping while a large message is on its way, not after it (B099)", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).websocket.script(accept([ping("now"), receive(), close(1000)]));
  const socket = await open(provider);
  const hit = provider.hits[0]!;
  socket.send(stubbornText(16_000_000));
  const log = record(socket);
  await eventually(() => hit.signals.length > 0);
  assertEquals(hit.signals, ["pong now"]);
  assertEquals(hit.frames, []);
  assertEquals(await log.closed, "close 1000  true");
  assertEquals(hit.frames[0]!.length, 16_000_000);
});

Deno.test("UpstreamSocket shows what a peer that stopped reading leaves unsent, and drains when it reads again", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).websocket.script(accept([deaf(), hold()]));
  const socket = await open(provider);
  const log = record(socket);
  const chunk = crypto.getRandomValues(new Uint8Array(65_536));
  for (let sent = 0; sent < 400; sent++) socket.send(chunk);
  await eventually(() => socket.bufferedAmount > 0);
  const stuck = socket.bufferedAmount;
  assertEquals(stuck > 1_000_000, true);
  socket.terminate();
  assertEquals(await log.closed, "close 1006  false");
});

Deno.test("UpstreamSocket.pause() holds frames back without losing one, resume() lets them come", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  const go = Promise.withResolvers<void>();
  const frames = Array.from({ length: 200 }, (_, index) => text(`${index} ${"x".repeat(2_000)}`));
  provider.account(KEY_A).websocket.script(accept([gate(go.promise), ...frames, close(1000)]));
  const socket = await open(provider);
  const log = record(socket);
  socket.pause();
  go.resolve();
  await settle(20);
  const before = log.lines.length;
  assertEquals(before < 200, true);
  socket.resume();
  await log.closed;
  assertEquals(log.lines.length, 201);
});

const closes = [
  { name: "a code and a reason", code: 1011, reason: "upstream gone", want: "close 1011 upstream gone" },
  { name: "no status", code: 1005, reason: "", want: "close 1005 " },
  { name: "a code that may not be sent", code: 1006, reason: "lost", want: "close 1005 " },
  { name: "an application code", code: 4999, reason: "é".repeat(100), want: `close 4999 ${"é".repeat(61)}` },
];
for (const c of closes) {
  Deno.test(`UpstreamSocket.close() says what may be said: ${c.name}`, async () => {
    await using provider = await startSimulatedProvider({ clock: new FakeClock() });
    provider.account(KEY_A).websocket.script(accept([created(), hold()]));
    const socket = await open(provider);
    const log = record(socket);
    socket.close(c.code, c.reason);
    socket.close(1000, "only the first counts");
    await log.closed;
    await provider.hits[0]!.left;
    assertEquals(provider.hits[0]!.signals, [c.want]);
  });
}

Deno.test("UpstreamSocket.close() waits for a large message on its way, and nothing is sent behind it", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).websocket.script(accept([hold()]));
  const socket = await open(provider);
  const log = record(socket);
  socket.send(new Uint8Array(1_000_000));
  socket.close(1000, "done");
  socket.send("too late");
  assertEquals(await log.closed, "close 1000 done true");
  assertEquals(provider.hits[0]!.frames.map((frame) => frame.length), [1_000_000]);
});

Deno.test("UpstreamSocket.close() works on a socket nobody listened to", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).websocket.script(accept([created(), created(), hold()]));
  const socket = await open(provider);
  socket.close(1001, "going away");
  await provider.hits[0]!.left;
  assertEquals(provider.hits[0]!.signals, ["close 1001 going away"]);
});

Deno.test("UpstreamSocket passes pings on and hears the pong", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).websocket.script(accept([receive(), close(1000)]));
  const socket = await open(provider);
  const log = record(socket);
  socket.ping(new TextEncoder().encode("are you there"));
  await eventually(() => log.lines.length > 0);
  assertEquals(log.lines, ["pong are you there"]);
  socket.send("x");
  await log.closed;
});

Deno.test("ok() on a WebSocket answers every turn until the client leaves", async () => {
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.account(KEY_A).websocket.script(ok("A"));
  const socket = await open(provider);
  const log = record(socket);
  for (let turn = 1; turn <= 2; turn++) {
    socket.send('{"type":"response.create"}');
    await eventually(() => log.types().filter((type) => type === "response.completed").length === turn);
  }
  socket.close(1000, "");
  await log.closed;
});
