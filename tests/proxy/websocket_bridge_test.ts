/** The bridge on a clock that moves when told: who is pinged, held back, given up, and with which words. */
import { assert, assertEquals } from "@std/assert";
import {
  type BridgeEnd,
  CLIENT_QUEUE_BYTES,
  type FrameWatch,
  PING_MS,
  WebSocketBridge,
} from "../../lib/proxy/websocket_bridge.ts";
import { CLIENT_HIGH_BYTES } from "../../lib/proxy/socket_flow.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { FakeClient, FakeUpstream } from "../support/socket_legs.ts";

function join(options: { readonly opened?: boolean; readonly busy?: boolean } = {}) {
  const clock = new FakeClock();
  const client = new FakeClient();
  const upstream = new FakeUpstream();
  const abort = new AbortController();
  const ends: BridgeEnd[] = [];
  const seen: string[] = [];
  let closed = 0;
  const frames: FrameWatch & { isBusy: boolean } = {
    isBusy: options.busy ?? false,
    fromClient: (text) =>
      text.startsWith("answer:") ? { kind: "answer", text: text.slice(7) } : { kind: "forward", text },
    fromUpstream: (text) => seen.push(text) > 0 && text.startsWith("error:"),
  };
  const bridge = new WebSocketBridge({
    clock,
    client,
    upstream,
    frames,
    hide: (text) => text.replaceAll("secret", "***"),
    signal: abort.signal,
    onEnd: (end) => ends.push(end),
    onClosed: () => closed++,
  });
  if (options.opened ?? true) client.opens();
  return { clock, client, upstream, abort, ends, seen, frames, bridge, closedCount: () => closed };
}

Deno.test("WebSocketBridge hides secrets in ends and errors, and touches nothing else", () => {
  const { client, upstream } = join();
  upstream.says("a secret");
  upstream.says("error: a secret");
  assertEquals(client.sent, ["a secret", "error: a ***"]);
});

Deno.test("WebSocketBridge passes text and bytes both ways, in order, and shows text to its watcher", () => {
  const { client, upstream, seen } = join();
  client.says("one");
  client.says(new Uint8Array([1, 2]).buffer);
  upstream.says("two");
  upstream.says(new Uint8Array([3]));
  assertEquals(upstream.sent, ["one", new Uint8Array([1, 2])]);
  assertEquals(client.sent, ["two", new Uint8Array([3])]);
  assertEquals(seen, ["two"]);
});

Deno.test("WebSocketBridge sends a frame its watcher answers to the client, not upstream", () => {
  const { client, upstream } = join();
  client.says("answer:no");
  assertEquals([client.sent, upstream.sent], [["no"], []]);
});

Deno.test("WebSocketBridge listens to the upstream only when the client is open", () => {
  const { client, upstream } = join({ opened: false });
  assertEquals(upstream.handlers, null);
  client.opens();
  assert(upstream.handlers !== null);
});

const clientCloses = [
  { name: "1000", code: 1000, reason: "bye", want: "close 1000 bye" },
  { name: "going away", code: 1001, reason: "", want: "close 1001" },
  { name: "without a code", code: 1005, reason: "", want: "close 1005" },
  { name: "an application's code", code: 4001, reason: "x", want: "close 4001 x" },
];
for (const { name, code, reason, want } of clientCloses) {
  Deno.test(`WebSocketBridge passes the client's close on: ${name}`, async () => {
    const { client, upstream, ends, clock, closedCount } = join();
    client.leaves(code, reason);
    assertEquals([upstream.acts, ends, closedCount()], [[want], [{ by: "client" }], 1]);
    await clock.advance(2_000);
    assertEquals(upstream.acts, [want, "terminate"], "an upstream that does not answer is dropped");
    assertEquals([client.closes, clock.pendingCount], [[], 0]);
  });
}

Deno.test("WebSocketBridge frees the upstream at once when the client vanishes, and once only", async () => {
  const { client, upstream, ends, clock } = join();
  client.vanishes();
  assertEquals([upstream.acts, ends], [["close 1001"], [{ by: "client" }]]);
  await clock.advance(60_000);
  assertEquals(upstream.acts, ["close 1001", "terminate"]);
});

Deno.test("WebSocketBridge drops an upstream whose client never saw the upgrade", async () => {
  const { upstream, ends, clock, closedCount } = join({ opened: false });
  await clock.advance(9_999);
  assertEquals(ends, []);
  await clock.advance(1);
  assertEquals([ends, closedCount()], [[{ by: "client" }], 1]);
  assertEquals(upstream.acts, ["close 1001"]);
});

const upstreamCloses = [
  { name: "1000", code: 1000, reason: "done", clean: true, want: "1000 done" },
  { name: "too big, by its own close frame", code: 1009, reason: "", clean: true, want: "1009" },
  { name: "without a code", code: 1005, reason: "", clean: true, want: "none" },
  { name: "a code no frame may carry", code: 1015, reason: "", clean: true, want: "1011" },
  { name: "a broken connection", code: 1006, reason: "", clean: false, want: "1011" },
  { name: "a broken protocol", code: 1002, reason: "x", clean: false, want: "1011" },
];
for (const { name, code, reason, clean, want } of upstreamCloses) {
  Deno.test(`WebSocketBridge passes the upstream's close on: ${name}`, async () => {
    const { client, upstream, ends, clock, closedCount } = join();
    upstream.leaves(code, reason, clean);
    assertEquals([client.closes, ends], [[want], [{ by: "upstream", clean }]]);
    assertEquals(closedCount(), 0, "the client has not answered yet");
    client.says("too late");
    assertEquals(upstream.sent, [], "nothing is written into the closed socket");
    client.leaves(code, reason);
    assertEquals([closedCount(), upstream.acts], [1, []]);
    assertEquals(clock.pendingCount, 0);
    await clock.advance(0);
  });
}

Deno.test("WebSocketBridge does not wait for ever for a client that does not answer a close", async () => {
  const { upstream, clock, closedCount } = join();
  upstream.leaves(1000);
  await clock.advance(1_999);
  assertEquals(closedCount(), 0);
  await clock.advance(1);
  assertEquals([closedCount(), clock.pendingCount], [1, 0]);
});

// ---------------------------------------------------------------- who is still there

Deno.test("B091 WebSocketBridge pings a silent upstream within 30 s, again and again", async () => {
  const { upstream, clock, ends } = join();
  assert(PING_MS <= 30_000);
  for (let count = 1; count <= 6; count++) {
    await clock.advance(PING_MS);
    assertEquals(upstream.acts.length, count);
    upstream.handlers!.pong(new Uint8Array());
  }
  assertEquals(ends, []);
});

Deno.test("B092 an upstream that answers no ping is given up within two periods: 1011, and its connection dropped", async () => {
  const { client, upstream, clock, ends } = join();
  client.says("a turn");
  await clock.advance(2 * PING_MS - 1);
  assertEquals(ends, []);
  await clock.advance(1);
  assertEquals(ends, [{ by: "proxy", why: "upstream_silent" }]);
  assertEquals(upstream.acts, ["ping", "terminate"]);
  assertEquals(client.closes, ["1011 The upstream does not answer"]);
});

for (const sign of ["frame", "ping", "pong", "drain"] as const) {
  Deno.test(`WebSocketBridge takes a ${sign} of the upstream for a sign of life`, async () => {
    const { upstream, clock, ends } = join();
    for (let turn = 0; turn < 5; turn++) {
      await clock.advance(PING_MS);
      if (sign === "frame") upstream.says("x");
      else if (sign === "drain") upstream.handlers!.drain();
      else upstream.handlers![sign](new Uint8Array());
    }
    assertEquals(ends, []);
  });
}

Deno.test("B099 an upstream that slowly takes a large message is alive while bytes leave", async () => {
  const { client, upstream, clock, ends } = join();
  upstream.keeps = true;
  client.says("x".repeat(12_582_912));
  for (let turn = 0; turn < 6; turn++) {
    await clock.advance(PING_MS);
    upstream.bufferedAmount -= 2_000_000;
  }
  assertEquals(ends, []);
  await clock.advance(2 * PING_MS);
  assertEquals(ends, [{ by: "proxy", why: "upstream_silent" }], "and given up when they stop");
});

// ---------------------------------------------------------------- slow sides

Deno.test("WebSocketBridge holds the upstream back while the client is slow, and lets it go on", async () => {
  const { client, upstream, clock } = join();
  client.keeps = true;
  upstream.says("x".repeat(CLIENT_HIGH_BYTES));
  assertEquals(upstream.acts, []);
  upstream.says("y");
  assertEquals(upstream.acts, ["pause"]);
  await clock.advance(1_000);
  assertEquals(upstream.acts, ["pause"]);
  client.bufferedAmount = 262_144;
  await clock.advance(25);
  assertEquals([upstream.acts, clock.pendingCount], [["pause", "resume"], 1]);
});

Deno.test("B099 an upstream held back is heard for a moment every few seconds, so that its pings are answered", async () => {
  const { client, upstream, clock, ends } = join();
  client.keeps = true;
  upstream.says("x".repeat(CLIENT_HIGH_BYTES + 1));
  await clock.advance(5_000);
  assertEquals(upstream.acts, ["pause", "resume"]);
  upstream.says("one frame that was waiting");
  assertEquals(upstream.acts, ["pause", "resume", "pause"]);
  await clock.advance(5_000);
  assertEquals(upstream.acts.slice(3), ["resume"]);
  await clock.advance(25);
  assertEquals(upstream.acts.slice(3), ["resume", "pause"], "also when nothing came");
  assertEquals(ends, []);
});

Deno.test("B158 a client that takes nothing is given up: the upstream is freed, the client told 1013", async () => {
  const { client, upstream, clock, ends } = join();
  client.keeps = true;
  for (let frame = 0; frame < 2_000; frame++) upstream.says("x".repeat(1_000));
  await clock.advance(59_000);
  assertEquals(ends, []);
  await clock.advance(2_000);
  assertEquals(ends, [{ by: "proxy", why: "client_stalled" }]);
  assertEquals(client.closes, ["1013 The client does not read"]);
  assertEquals(upstream.acts.at(-1), "close 1001");
  assertEquals(client.bufferedAmount < CLIENT_HIGH_BYTES * 2.5, true);
});

Deno.test("WebSocketBridge waits for a slow client that takes frames, and longer for one large frame", async () => {
  const { client, upstream, clock, ends } = join();
  client.keeps = true;
  upstream.says("x".repeat(16_000_000));
  await clock.advance(1_000_000);
  assertEquals(ends, [], "16 MB at 16 KB a second");
  client.bufferedAmount = 0;
  await clock.advance(25);
  for (let frame = 0; frame < 100; frame++) upstream.says("x".repeat(50_000));
  for (let turn = 0; turn < 50; turn++) {
    await clock.advance(50_000);
    client.bufferedAmount -= 50_000;
  }
  assertEquals(ends, []);
});

Deno.test("WebSocketBridge closes a client that sends faster than the upstream takes with 1013", () => {
  const { client, upstream, ends } = join();
  upstream.keeps = true;
  for (let frame = 0; frame < 32; frame++) client.says("x".repeat(1_048_576));
  assertEquals(ends, []);
  client.says("y");
  assertEquals(ends, [{ by: "proxy", why: "client_too_fast" }]);
  assertEquals(client.closes, ["1013 The upstream takes frames more slowly than they come"]);
});

for (const extra of [-1, 0, 1]) {
  Deno.test(`WebSocketBridge ${extra > 0 ? "refuses" : "takes"} a message of the limit ${extra < 0 ? "" : "+"}${extra}`, () => {
    const { client, upstream, ends } = join();
    client.says("x".repeat(CLIENT_QUEUE_BYTES + extra));
    assertEquals(upstream.sent.length, extra > 0 ? 0 : 1);
    assertEquals(ends, extra > 0 ? [{ by: "proxy", why: "message_too_big" }] : []);
    assertEquals(client.closes, extra > 0 ? ["1009 The message is too large"] : []);
  });
}

// ---------------------------------------------------------------- stopping

Deno.test("WebSocketBridge ends both sides with 1001 when the process ends", () => {
  const { client, upstream, abort, ends } = join({ busy: true });
  abort.abort();
  assertEquals(ends, [{ by: "proxy", why: "shutting_down" }]);
  assertEquals([client.closes, upstream.acts], [["1001 The proxy is shutting down"], ["close 1001"]]);
});

Deno.test("drain() closes an idle socket at once, a busy one after its turn", () => {
  const idle = join();
  idle.bridge.drain();
  assertEquals(idle.client.closes, ["1001 The proxy is shutting down"]);

  const busy = join({ busy: true });
  busy.bridge.drain();
  busy.upstream.says("delta");
  assertEquals(busy.client.closes, []);
  busy.frames.isBusy = false;
  busy.upstream.says("terminal");
  assertEquals(busy.client.sent, ["delta", "terminal"]);
  assertEquals(busy.client.closes, ["1001 The proxy is shutting down"]);
});

Deno.test("drain() closes a socket that opens later", () => {
  const { bridge, client } = join({ opened: false });
  bridge.drain();
  assertEquals(client.closes, []);
  client.opens();
  assertEquals(client.closes, ["1001 The proxy is shutting down"]);
});
