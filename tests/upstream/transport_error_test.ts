import { assertEquals, assertRejects } from "@std/assert";
import type { Socket } from "node:net";
import type { Evidence, TransportCause } from "../../lib/core/evidence.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { deadPort, rawServer, tlsServer } from "../support/rude_sockets.ts";
import { answerOf, requestTo, send, testUpstream } from "../support/upstream_request.ts";

function transport(cause: TransportCause): Evidence {
  return { kind: "transport", cause, pooled: false };
}

const BAD_HEAD: Evidence = { kind: "malformed", detail: "bad_response_head" };

async function evidenceOf(url: string, caCerts?: readonly string[]): Promise<Evidence> {
  using upstream = testUpstream(new FakeClock(), caCerts === undefined ? {} : { caCerts });
  const result = await send(upstream, requestTo(url));
  if (result.ok) throw new Error(`Expected a failure, got ${result.response.status}`);
  return result.evidence;
}

Deno.test("readSendFailure() tells a refused connection", async () => {
  assertEquals(await evidenceOf(`http://127.0.0.1:${deadPort()}/`), transport("refused"));
  assertEquals(await evidenceOf(`https://127.0.0.1:${deadPort()}/`), transport("refused"));
});

Deno.test("readSendFailure() tells a name that does not resolve", async () => {
  assertEquals(await evidenceOf("http://nothing.invalid/"), transport("dns"));
  assertEquals(await evidenceOf("https://nothing.invalid/"), transport("dns"));
});

Deno.test("readSendFailure() tells a certificate nobody vouches for", async () => {
  await using server = await tlsServer("localhost");
  assertEquals(await evidenceOf(`https://localhost:${server.port}/`, []), transport("tls_certificate"));
});

Deno.test("readSendFailure() tells a certificate for another name", async () => {
  await using server = await tlsServer("other_name");
  assertEquals(await evidenceOf(`https://localhost:${server.port}/`), transport("tls_certificate"));
});

Deno.test("a TLS upstream with the right certificate answers", async () => {
  await using server = await tlsServer("localhost", (socket) => {
    socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
  });
  using upstream = testUpstream(new FakeClock());
  const result = await send(upstream, requestTo(`https://localhost:${server.port}/`));
  assertEquals(await new Response(answerOf(result).body).text(), "ok");
});

const handshakes: { name: string; serve: (socket: Socket) => void }[] = [
  { name: "plain HTTP where TLS was expected", serve: (socket) => socket.write("HTTP/1.1 400 Bad\r\n\r\n") },
  { name: "a close inside the handshake", serve: (socket) => socket.once("data", () => socket.end()) },
  {
    name: "a reset inside the handshake",
    serve: (socket) => socket.once("data", () => socket.resetAndDestroy()),
  },
];
for (const c of handshakes) {
  Deno.test(`readSendFailure() tells a failed handshake: ${c.name}`, async () => {
    await using server = await rawServer(c.serve);
    assertEquals(await evidenceOf(`https://localhost:${server.port}/`), transport("tls"));
  });
}

const heads: { name: string; head: string; reset: boolean; want: Evidence }[] = [
  { name: "closed before the head", head: "", reset: false, want: transport("reset_before_head") },
  { name: "reset before the head", head: "", reset: true, want: transport("reset_before_head") },
  {
    name: "closed inside the head",
    head: "HTTP/1.1 200 OK\r\ncont",
    reset: false,
    want: transport("reset_before_head"),
  },
  {
    name: "reset inside the head",
    head: "HTTP/1.1 200 OK\r\ncont",
    reset: true,
    want: transport("reset_before_head"),
  },
  { name: "another protocol", head: "SSH-2.0-OpenSSH_9\r\n\r\n", reset: false, want: BAD_HEAD },
  {
    name: "a header that is none",
    head: "HTTP/1.1 200 OK\r\nno header\r\n\r\n",
    reset: false,
    want: BAD_HEAD,
  },
  {
    name: "a head without end",
    head: `HTTP/1.1 200 OK\r\nx: ${"y".repeat(600_000)}`,
    reset: false,
    want: BAD_HEAD,
  },
];
for (const c of heads) {
  Deno.test(`readSendFailure() judges what came of the head: ${c.name}`, async () => {
    await using server = await rawServer((socket) => {
      socket.once("data", () => {
        const end = () => c.reset ? socket.resetAndDestroy() : socket.end();
        if (c.head === "") end();
        else socket.write(c.head, end);
      });
    });
    assertEquals(await evidenceOf(`http://127.0.0.1:${server.port}/`), c.want);
  });
}

Deno.test("readSendFailure() calls plain text from a TLS port a bad head", async () => {
  await using server = await tlsServer("localhost");
  assertEquals(await evidenceOf(`http://localhost:${server.port}/`), BAD_HEAD);
});

const UNDECODABLE: Evidence = { kind: "malformed", detail: "undecodable_body" };
const bodies: { name: string; answer: string; reset?: boolean; want: Evidence }[] = [
  {
    name: "closed inside a counted body",
    answer: "content-length: 9\r\n\r\nabc",
    want: transport("reset_in_body"),
  },
  {
    name: "reset inside a counted body",
    answer: "content-length: 9\r\n\r\nabc",
    reset: true,
    want: transport("reset_in_body"),
  },
  {
    name: "closed inside a chunked body",
    answer: "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
    want: transport("reset_in_body"),
  },
  {
    name: "reset inside a chunked body",
    answer: "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
    reset: true,
    want: transport("reset_in_body"),
  },
  {
    name: "closed inside an event stream",
    answer: "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n3\r\n:a\n\r\n",
    want: transport("reset_in_body"),
  },
  {
    name: "plain text said to be br",
    answer: "content-encoding: br\r\n\r\nplain text, long enough",
    want: UNDECODABLE,
  },
  {
    name: "an event stream said to be br",
    answer: "content-type: text/event-stream\r\ncontent-encoding: br\r\n\r\ndata: {}\n\n",
    want: UNDECODABLE,
  },
  {
    name: "chunks that are none",
    answer: "transfer-encoding: chunked\r\n\r\n3\r\nabcdef\r\n",
    want: { kind: "malformed", detail: "bad_body_framing" },
  },
];
for (const c of bodies) {
  Deno.test(`readBodyFailure() judges a broken body: ${c.name}`, async () => {
    const headRead = Promise.withResolvers<void>();
    await using server = await rawServer((socket) => {
      socket.once("data", () => {
        socket.write(`HTTP/1.1 200 OK\r\n${c.answer}`);
        headRead.promise.then(() => c.reset === true ? socket.resetAndDestroy() : socket.end());
      });
    });
    using upstream = testUpstream(new FakeClock());
    const result = await send(upstream, requestTo(`http://127.0.0.1:${server.port}/`));
    headRead.resolve();
    const error = await assertRejects(() => new Response(answerOf(result).body).text());
    assertEquals(upstream.bodyFailure(error), c.want);
  });
}
