import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { startSimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import {
  created,
  hangUp,
  hold,
  json,
  ok,
  raw,
  reset,
  silence,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import type { AnswerBody, Upstream, UpstreamRequest } from "../../lib/ports.ts";
import { FakeClock, settle } from "../support/fake_clock.ts";
import { rawServer } from "../support/rude_sockets.ts";
import { answerOf, requestTo, send, testUpstream, textOf } from "../support/upstream_request.ts";

const BYTES = new TextEncoder().encode('{"model":"m1"}');

function streamOf(...chunks: Uint8Array<ArrayBuffer>[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

// ---------------------------------------------------------------- one send is one send (ruling 15)

const sends: { name: string; make: () => Partial<UpstreamRequest>; pooled: boolean }[] = [
  { name: "GET", make: () => ({ method: "GET", body: null }), pooled: true },
  { name: "HEAD", make: () => ({ method: "HEAD", body: null }), pooled: true },
  { name: "DELETE without body", make: () => ({ method: "DELETE", body: null }), pooled: true },
  { name: "POST without body", make: () => ({ body: null }), pooled: true },
  { name: "POST with an empty body", make: () => ({ body: new Uint8Array() }), pooled: true },
  { name: "POST with bytes", make: () => ({ body: BYTES }), pooled: true },
  { name: "PUT with bytes", make: () => ({ method: "PUT", body: BYTES }), pooled: true },
  { name: "DELETE with bytes", make: () => ({ method: "DELETE", body: BYTES }), pooled: true },
  { name: "POST with bytes, fresh", make: () => ({ body: BYTES, fresh: true }), pooled: false },
  { name: "POST with a stream", make: () => ({ body: streamOf(BYTES) }), pooled: true },
  {
    name: "POST with a stream of known length",
    make: () => ({ body: streamOf(BYTES), bodyLength: BYTES.length }),
    pooled: true,
  },
];
for (const c of sends) {
  for (const [ending, reply] of [["closes", hangUp()], ["resets", reset()]] as const) {
    Deno.test(`send() puts one request on the wire when a kept-alive upstream reads it and ${ending}: ${c.name}`, async () => {
      const clock = new FakeClock();
      await using provider = await startSimulatedProvider({ clock });
      using upstream = testUpstream(clock);
      // The first answer leaves a connection in the pool; the second request is read and dropped.
      provider.anyone.script(json({ n: 1 }), reply).otherwise(json({ repeated: true }));
      await textOf(await send(upstream, requestTo(provider.url)));
      const result = await send(upstream, requestTo(provider.url, c.make()));
      assertEquals(result, {
        ok: false,
        evidence: { kind: "transport", cause: "reset_before_head", pooled: c.pooled },
      });
      assertEquals(provider.hits.length, 2);
      assertEquals(provider.hits[1]!.connection === provider.hits[0]!.connection, c.pooled);
      assertEquals(clock.pendingCount, 0);
    });
  }
}

Deno.test("send() does not blame the pool when no connection can be in it yet", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  provider.anyone.script(reset());
  assertEquals(await send(upstream, requestTo(provider.url)), {
    ok: false,
    evidence: { kind: "transport", cause: "reset_before_head", pooled: false },
  });
});

Deno.test("send() shares connections between requests, unless they are fresh", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  provider.anyone.otherwise(ok("A"));
  for (const fresh of [false, false, true, false, true]) {
    await textOf(await send(upstream, requestTo(provider.url, { fresh })));
  }
  assertEquals(provider.hits.map((hit) => hit.connection), [1, 1, 2, 1, 3]);
});

// ---------------------------------------------------------------- what goes out

const bodies: {
  name: string;
  make: () => Partial<UpstreamRequest>;
  length: string | null;
  chunked: boolean;
}[] = [
  { name: "bytes", make: () => ({ body: BYTES }), length: "14", chunked: false },
  { name: "no body on POST", make: () => ({ body: null }), length: "0", chunked: false },
  { name: "an empty body", make: () => ({ body: new Uint8Array() }), length: "0", chunked: false },
  { name: "no body on GET", make: () => ({ method: "GET", body: null }), length: null, chunked: false },
  { name: "a stream", make: () => ({ body: streamOf(BYTES) }), length: null, chunked: true },
  {
    name: "a stream of known length",
    make: () => ({ body: streamOf(BYTES.slice(0, 5), BYTES.slice(5)), bodyLength: 14 }),
    length: "14",
    chunked: false,
  },
  { name: "an empty stream", make: () => ({ body: streamOf(), bodyLength: 0 }), length: "0", chunked: false },
];
for (const c of bodies) {
  Deno.test(`send() keeps the body and frames it honestly: ${c.name}`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    using upstream = testUpstream(clock);
    provider.anyone.script(json({}));
    await textOf(await send(upstream, requestTo(provider.url, c.make())));
    const hit = provider.hits[0]!;
    assertEquals(hit.headers.get("content-length"), c.length);
    assertEquals(hit.headers.has("transfer-encoding"), c.chunked);
    assertEquals(hit.text(), c.length === "14" || c.chunked ? '{"model":"m1"}' : "");
  });
}

Deno.test("send() asks only for codings it can undo, whatever the caller's headers say", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  provider.anyone.otherwise(json({}));
  const headers = new Headers({ "accept-encoding": "zstd, foo", "x-kept": "1" });
  await textOf(await send(upstream, requestTo(provider.url, { headers })));
  assertEquals(provider.hits[0]!.headers.get("accept-encoding"), "gzip,br");
  assertEquals(provider.hits[0]!.headers.get("x-kept"), "1");
  assertEquals(headers.get("accept-encoding"), "zstd, foo");
});

for (const size of [65_535, 65_536, 65_537, 1_000_000]) {
  Deno.test(`send() sends ${size} bytes whole, and again: a retry finds them unharmed`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    using upstream = testUpstream(clock);
    provider.anyone.otherwise(json({}));
    const body = new Uint8Array(size).map((_, at) => at % 251);
    for (let turn = 0; turn < 2; turn++) {
      await textOf(await send(upstream, requestTo(provider.url, { body })));
    }
    assertEquals(provider.hits.map((hit) => hit.headers.get("content-length")), [String(size), String(size)]);
    assertEquals(provider.hits.every((hit) => hit.body.every((byte, at) => byte === at % 251)), true);
  });
}

const brokenSources = [
  { name: "it breaks", chunks: 1, breaks: true, length: null },
  { name: "it breaks, its length known", chunks: 1, breaks: true, length: 14 },
  { name: "it ends before its length", chunks: 1, breaks: false, length: 14 },
];
for (const c of brokenSources) {
  Deno.test(`send() blames the client for a streamed body when ${c.name}`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    using upstream = testUpstream(clock);
    provider.anyone.otherwise(json({}));
    let given = 0;
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull(controller) {
        if (given++ < c.chunks) controller.enqueue(new Uint8Array(7));
        else if (c.breaks) controller.error(new Error("client went away"));
        else controller.close();
      },
    });
    const result = await send(upstream, requestTo(provider.url, { body, bodyLength: c.length }));
    assertEquals(result, { ok: false, evidence: { kind: "client_cancelled" } });
    assertEquals(provider.hits.length, 0);
  });
}

// ---------------------------------------------------------------- what comes back

Deno.test("send() gives head and body of an answer, whatever its status", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  for (const status of [200, 201, 400, 429, 500, 599]) {
    provider.anyone.script(raw(status, "body", { "x-upstream": "yes" }));
    const result = await send(upstream, requestTo(provider.url));
    assertEquals(answerOf(result).status, status);
    assertEquals(answerOf(result).headers.get("x-upstream"), "yes");
    assertEquals(answerOf(result).contentLength, 4);
    assertEquals(await textOf(result), "body");
  }
});

Deno.test("send() never follows a redirect", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  await using portal = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  provider.anyone.script(raw(302, "<html>Sign in to Wi-Fi</html>", { location: portal.url }));
  const result = await send(upstream, requestTo(provider.url));
  assertEquals(answerOf(result).status, 302);
  assertEquals(answerOf(result).headers.get("location"), portal.url);
  assertEquals(await textOf(result), "<html>Sign in to Wi-Fi</html>");
  assertEquals(portal.hits.length, 0);
});

const bodiless = [
  { name: "204", reply: raw(204, ""), method: "POST" },
  { name: "304", reply: raw(304, ""), method: "GET" },
  { name: "HEAD", reply: raw(200, "unseen"), method: "HEAD" },
];
for (const c of bodiless) {
  Deno.test(`send() reads an answer without a body: ${c.name}`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    using upstream = testUpstream(clock);
    provider.anyone.script(c.reply);
    const body = c.method === "POST" ? BYTES : null;
    const result = await send(upstream, requestTo(provider.url, { method: c.method, body }));
    assertEquals(await textOf(result), "");
  });
}

for (const status of [101, 600, 999]) {
  Deno.test(`send() calls a final status of ${status} malformed`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    using upstream = testUpstream(clock);
    provider.anyone.script(raw(status, ""));
    assertEquals(await send(upstream, requestTo(provider.url)), {
      ok: false,
      evidence: { kind: "malformed", detail: "unexpected_status" },
    });
  });
}

// ---------------------------------------------------------------- cancelling

Deno.test("send() gives client_cancelled and sends nothing when the signal is aborted already", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  const result = await upstream.send(requestTo(provider.url), AbortSignal.abort());
  assertEquals(result, { ok: false, evidence: { kind: "client_cancelled" } });
  assertEquals(provider.hits.length, 0);
  assertEquals(clock.pendingCount, 0);
});

Deno.test("send() gives client_cancelled and drops the connection when the signal aborts before the head", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  provider.anyone.script(silence());
  const controller = new AbortController();
  const pending = upstream.send(requestTo(provider.url), controller.signal);
  await provider.hitCount(1);
  controller.abort(new TypeError("any reason"));
  assertEquals(await pending, { ok: false, evidence: { kind: "client_cancelled" } });
  await provider.hits[0]!.left;
  assertEquals(clock.pendingCount, 0);
});

Deno.test("an aborted signal ends the body too, as client_cancelled", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  provider.anyone.script(stream([created(), hold()]));
  const controller = new AbortController();
  const result = await upstream.send(requestTo(provider.url), controller.signal);
  const body = answerOf(result).body!;
  await body.read();
  controller.abort();
  const error = await assertRejects(() => body.read());
  assertEquals(upstream.bodyFailure(error), { kind: "client_cancelled" });
  await provider.hits[0]!.left;
});

Deno.test("an aborted signal ends the body also when nobody but the reader is left to hold the answer", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  provider.anyone.otherwise(stream([created(), hold()]));
  const bodies: AnswerBody[] = [];
  const controller = new AbortController();
  for (let count = 0; count < 8; count++) bodies.push(await openBody(upstream, provider.url, controller));
  makeGarbage();
  const pending = bodies.map((body) => assertRejects(() => body.read()));
  await settle();
  controller.abort();
  for (const error of await Promise.all(pending)) {
    assertEquals(upstream.bodyFailure(error), { kind: "client_cancelled" });
  }
  await Promise.all(provider.hits.map(({ left }) => left));
});

/** Reads the first chunk, and lets go of everything but the body. */
async function openBody(
  upstream: Upstream,
  url: string,
  controller: AbortController,
): Promise<AnswerBody> {
  const { body } = answerOf(await upstream.send(requestTo(url), controller.signal));
  await body!.read();
  return body!;
}

/** Enough of it that the collector comes by, more than once. */
function makeGarbage(): void {
  for (let round = 0; round < 400; round++) new Uint8Array(1_048_576).fill(round);
}

for (const contentType of ["text/event-stream", "application/json"]) {
  Deno.test(`cancelling the body drops the upstream connection, read or not: ${contentType}`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    using upstream = testUpstream(clock);
    provider.anyone.otherwise(stream([created(), hold()], { "content-type": contentType }));
    for (const readFirst of [true, false]) {
      const result = await send(upstream, requestTo(provider.url));
      const body = answerOf(result).body!;
      if (readFirst) await body.read();
      body.cancel();
      assertEquals(await body.read(), null);
      await provider.hits.at(-1)!.left;
    }
  });
}

Deno.test("send() never throws, not even for a URL nobody can read", async () => {
  using upstream = testUpstream(new FakeClock());
  for (const url of ["not a url", "http://127.0.0.1:1/", "ftp://127.0.0.1/"]) {
    const result = await send(upstream, requestTo(url));
    assertEquals(result.ok || result.evidence.kind, "transport", url);
  }
});

Deno.test("createUpstream() refuses a proxy it cannot read, without repeating it", () => {
  const error = assertThrows(
    () => testUpstream(new FakeClock(), { proxyUrl: "ftp://user:SENT-pass@proxy" }),
    SyntaxError,
  );
  assertEquals(error.message, "Cannot parse proxy-url: expected an http, https or socks5 URL");
});

Deno.test("send() passes over interim answers", async () => {
  const clock = new FakeClock();
  await using server = await rawServer((socket) => {
    socket.once("data", () => {
      socket.write("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n");
      socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
  });
  using upstream = testUpstream(clock);
  assertEquals(await textOf(await send(upstream, requestTo(`http://127.0.0.1:${server.port}/`))), "ok");
});
