/** The time limits of `send`: connecting, a host that went, the first byte (rulings 12, 16). */
import { assert, assertEquals } from "@std/assert";
import { startSimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import { created, gate, silence, stream } from "../../lib/demo/simulated_replies.ts";
import { eventually } from "../support/eventually.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { blackHole, FadingHost, rawServer } from "../support/rude_sockets.ts";
import { requestTo, send, testUpstream, textOf } from "../support/upstream_request.ts";

const CANNOT_CONNECT = {
  ok: false,
  evidence: { kind: "transport", cause: "connect_timeout", pooled: false },
} as const;

Deno.test("send() ends in connect_timeout when nothing answers the connection", async () => {
  const clock = new FakeClock();
  using hole = await blackHole();
  using upstream = testUpstream(clock);
  const pending = send(upstream, requestTo(`http://127.0.0.1:${hole.port}/`));
  await clock.advance(14_999);
  assertEquals(clock.pendingCount, 1);
  await clock.advance(1);
  assertEquals(await pending, {
    ok: false,
    evidence: { kind: "transport", cause: "connect_timeout", pooled: false },
  });
  assertEquals(clock.pendingCount, 0);
});

Deno.test("send() ends in connect_timeout when a TLS handshake hangs", async () => {
  const clock = new FakeClock();
  const connected = Promise.withResolvers<void>();
  await using server = await rawServer(() => connected.resolve());
  using upstream = testUpstream(clock);
  const pending = send(upstream, requestTo(`https://localhost:${server.port}/`));
  await connected.promise;
  await clock.advance(15_000);
  assertEquals(await pending, {
    ok: false,
    evidence: { kind: "transport", cause: "connect_timeout", pooled: false },
  });
  assertEquals(clock.pendingCount, 0);
});

Deno.test("send() waits beyond the connect limit while its host can be reached, up to the first-byte limit", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  provider.anyone.script(silence());
  const pending = send(upstream, requestTo(provider.url, { firstByteTimeoutMs: 60_000 }));
  await provider.hitCount(1);
  await clock.advance(15_000);
  await eventually(() => clock.pendingCount === 1);
  await clock.advance(44_999);
  assertEquals(clock.pendingCount, 1);
  await clock.advance(1);
  assertEquals(await pending, {
    ok: false,
    evidence: { kind: "transport", cause: "first_byte_timeout", pooled: false },
  });
  assertEquals(clock.pendingCount, 0);
  assertEquals(provider.hits.length, 1);
  await provider.hits[0]!.left;
});

Deno.test("send() gives up a connection that lives on while its host refuses new ones: connect_timeout, not the pool's fault", async () => {
  const clock = new FakeClock();
  await using host = await FadingHost.start();
  using upstream = testUpstream(clock);
  await textOf(await send(upstream, requestTo(host.url)));
  host.refuse();
  const pending = send(upstream, requestTo(host.url));
  await clock.advance(14_999);
  assertEquals(clock.pendingCount, 2);
  await clock.advance(1);
  assertEquals(await pending, CANNOT_CONNECT);
  assertEquals(clock.pendingCount, 0);
});

Deno.test("send() gives up a connection when its host swallows new ones for as long as connecting may take", async () => {
  const clock = new FakeClock();
  await using host = await FadingHost.start();
  using upstream = testUpstream(clock);
  await textOf(await send(upstream, requestTo(host.url)));
  await host.swallow();
  const pending = send(upstream, requestTo(host.url));
  await clock.advance(29_999);
  assertEquals(clock.pendingCount, 2);
  await clock.advance(1);
  assertEquals(await pending, CANNOT_CONNECT);
  assertEquals(clock.pendingCount, 0);
});

Deno.test("send() takes no idle connection of a host that could not be reached: the next request connects anew", async () => {
  const clock = new FakeClock();
  await using host = await FadingHost.start();
  using upstream = testUpstream(clock);
  const first = await Promise.all([1, 2].map(() => send(upstream, requestTo(host.url))));
  for (const answer of first) await textOf(answer);
  host.refuse();
  const pending = send(upstream, requestTo(host.url));
  await clock.advance(15_000);
  assertEquals(await pending, CANNOT_CONNECT);
  assertEquals(await send(upstream, requestTo(host.url)), {
    ok: false,
    evidence: { kind: "transport", cause: "refused", pooled: false },
  });
});

Deno.test("send() leaves nothing behind when the client goes while its host is being looked for", async () => {
  const clock = new FakeClock();
  await using host = await FadingHost.start();
  using upstream = testUpstream(clock);
  await textOf(await send(upstream, requestTo(host.url)));
  await host.swallow();
  const controller = new AbortController();
  const pending = upstream.send(requestTo(host.url), controller.signal);
  await clock.advance(20_000);
  controller.abort();
  assertEquals(await pending, { ok: false, evidence: { kind: "client_cancelled" } });
  await eventually(() => clock.pendingCount === 0);
});

Deno.test("send() gives up a connection through a proxy when the proxy cannot be reached any more: egress_proxy", async () => {
  const clock = new FakeClock();
  await using proxy = await FadingHost.start();
  using upstream = testUpstream(clock, { proxyUrl: proxy.url });
  await textOf(await send(upstream, requestTo("http://upstream.invalid/")));
  proxy.refuse();
  const pending = send(upstream, requestTo("http://upstream.invalid/"));
  await clock.advance(15_000);
  assertEquals(await pending, {
    ok: false,
    evidence: { kind: "transport", cause: "egress_proxy", pooled: false },
  });
});

Deno.test("send() ends in first_byte_timeout when that limit is the shorter one", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  provider.anyone.script(silence());
  const pending = send(upstream, requestTo(provider.url, { firstByteTimeoutMs: 2_000 }));
  await provider.hitCount(1);
  await clock.advance(2_000);
  const result = await pending;
  assertEquals(result.ok || result.evidence, {
    kind: "transport",
    cause: "first_byte_timeout",
    pooled: false,
  });
});

Deno.test("send() has no first-byte limit when it is 0, and none of its limits outlives the head", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  const body = Promise.withResolvers<void>();
  provider.anyone.script(stream([created(), gate(body.promise)]));
  const result = await send(upstream, requestTo(provider.url, { firstByteTimeoutMs: 0 }));
  assertEquals(clock.pendingCount, 0);
  await clock.advance(86_400_000);
  body.resolve();
  assert((await textOf(result)).includes("response.created"));
});
for (const length of [null, 6]) {
  Deno.test(`send() waits for a client that sends its body slowly, and not for an upstream that has it: ${length}`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    provider.anyone.script(silence());
    using upstream = testUpstream(clock);
    let give!: (piece: string | null) => void;
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start(controller) {
        give = (piece) =>
          piece === null ? controller.close() : controller.enqueue(new TextEncoder().encode(piece));
      },
    });
    let over = false;
    const changes = { body, bodyLength: length, firstByteTimeoutMs: 2_000 };
    const pending = send(upstream, requestTo(provider.url, changes)).finally(() => over = true);
    for (const piece of ["ab", "cd", "ef", null]) {
      await realTurns();
      await clock.advance(10_000);
      assertEquals(over, false, `before ${piece}`);
      give(piece);
    }
    await provider.hitCount(1);
    await realTurns();
    await clock.advance(1_999);
    assertEquals(over, false);
    await clock.advance(1);
    assertEquals(await pending, {
      ok: false,
      evidence: { kind: "transport", cause: "first_byte_timeout", pooled: false },
    });
  });
}

/** Lets real sockets and streams do what is due. */
function realTurns(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}
