/** Answers that end in two places, or nowhere: no byte of one may become part of the next. */
import { assert, assertEquals } from "@std/assert";
import type { Socket } from "node:net";
import { HEAD_LIMIT_BYTES } from "../../lib/upstream/http_head.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { rawServer } from "../support/rude_sockets.ts";
import { requestTo, send, testUpstream } from "../support/upstream_request.ts";

/** Answers every request with the same bytes, in one write, and tells what came of two requests in a row. */
async function askTwice(answer: string, method = "POST"): Promise<{ told: string[]; connections: number }> {
  let connections = 0;
  await using server = await rawServer((socket) => {
    connections++;
    socket.on("data", () => socket.write(answer, "latin1"));
  });
  using upstream = testUpstream(new FakeClock());
  const told: string[] = [];
  for (let turn = 0; turn < 2; turn++) {
    const result = await send(upstream, requestTo(`http://127.0.0.1:${server.port}/`, { method }));
    if (!result.ok) {
      const { evidence } = result;
      told.push(evidence.kind === "transport" ? evidence.cause : evidence.kind);
      continue;
    }
    const { status, body } = result.response;
    let text = "";
    try {
      for await (const piece of body ?? []) text += new TextDecoder("latin1").decode(piece);
      told.push(`${status} ${text}`);
    } catch (error) {
      const evidence = upstream.bodyFailure(error);
      told.push(`${status} ${text} then ${evidence.kind}`);
    }
  }
  return { told, connections };
}

const H = "HTTP/1.1 200 OK\r\n";
const NEXT = "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nsmuggled";

const cases: { name: string; answer: string; want: string; reused?: boolean; method?: string }[] = [
  { name: "a sound answer", answer: `${H}content-length: 2\r\n\r\nok`, want: "200 ok", reused: true },
  {
    name: "padded chunk sizes",
    answer: `${H}transfer-encoding: chunked\r\n\r\n00000002\r\nok\r\n00000000\r\n\r\n`,
    want: "200 ok",
    reused: true,
  },
  {
    name: "two lengths",
    answer: `${H}content-length: 2\r\ncontent-length: 99\r\n\r\nok${NEXT}`,
    want: "malformed",
  },
  { name: "two lengths in a line", answer: `${H}content-length: 2, 3\r\n\r\nok${NEXT}`, want: "malformed" },
  {
    name: "a length and chunks: the chunks count, and nothing after them is believed",
    answer: `${H}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    want: "200 ok",
  },
  { name: "xchunked", answer: `${H}transfer-encoding: xchunked\r\n\r\n2\r\nok`, want: "malformed" },
  {
    name: "a blank before the colon of the coding",
    answer: `${H}transfer-encoding : chunked\r\n\r\n2\r\nok`,
    want: "malformed",
  },
  { name: "a folded length", answer: `${H}content-length:\r\n 2\r\n\r\nok`, want: "malformed" },
  { name: "a CR alone", answer: `${H}x: y\rcontent-length: 0\r\n\r\nok`, want: "malformed" },
  { name: "a NUL", answer: `${H}x: y\0\r\n\r\nok`, want: "malformed" },
  {
    name: "another answer behind the body",
    answer: `${H}content-length: 2\r\n\r\nok${NEXT}`,
    want: "200 ok",
  },
  {
    name: "another answer behind the chunks",
    answer: `${H}transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n${NEXT}`,
    want: "200 ok",
  },
  {
    name: "another answer in a trailer's place",
    answer: `${H}transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n${NEXT}`,
    want: "200 ok",
  },
  { name: "a body behind 204", answer: `HTTP/1.1 204 No Content\r\n\r\n${NEXT}`, want: "204 " },
  { name: "a body behind 304", answer: `HTTP/1.1 304 Not\r\ncontent-length: 2\r\n\r\nok`, want: "304 " },
  { name: "a body for HEAD", answer: `${H}content-length: 2\r\n\r\nok`, want: "200 ", method: "HEAD" },
  {
    name: "a negative chunk",
    answer: `${H}transfer-encoding: chunked\r\n\r\n-2\r\nok\r\n0\r\n\r\n`,
    want: "200  then malformed",
  },
  {
    name: "a chunk of 4 GiB",
    answer: `${H}transfer-encoding: chunked\r\n\r\n100000000\r\nok`,
    want: "200  then malformed",
  },
  {
    name: "a chunk longer than its size",
    answer: `${H}transfer-encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n`,
    want: "200 o then malformed",
  },
  {
    name: "interim answers before it",
    answer: `HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 E\r\nlink: x\r\n\r\n${H}content-length: 2\r\n\r\nok`,
    want: "200 ok",
    reused: true,
  },
  {
    name: "a 101 nobody asked for",
    answer: "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
    want: "malformed",
  },
  {
    name: "more interim answers than a head may be long",
    answer: "HTTP/1.1 100 Continue\r\n\r\n".repeat(8_000),
    want: "malformed",
  },
  { name: "a head without end", answer: `${H}x: ${"y".repeat(HEAD_LIMIT_BYTES)}`, want: "malformed" },
  { name: "headers without end", answer: H + "x: y\r\n".repeat(HEAD_LIMIT_BYTES / 5), want: "malformed" },
  { name: "a status without end", answer: `HTTP/1.1 200 ${"O".repeat(HEAD_LIMIT_BYTES)}`, want: "malformed" },
  { name: "HTTP/0.9", answer: "ok", want: "malformed" },
  {
    name: "a redirect is an answer like any other",
    answer: "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    want: "302 ",
    reused: true,
  },
];
for (const { name, answer, want, reused = false, method } of cases) {
  Deno.test(`an upstream's answer cannot reach into the next: ${name}`, async () => {
    assertEquals(await askTwice(answer, method), { told: [want, want], connections: reused ? 1 : 2 });
  });
}

Deno.test("interim answers that go on for ever are read once each, and end at a bound", async () => {
  const interim = "HTTP/1.1 100 Continue\r\n\r\n";
  let sent = 0;
  await using server = await rawServer((socket: Socket) => {
    const more = () => {
      if (socket.destroyed) return;
      sent++;
      socket.write(interim);
      setImmediate(more);
    };
    socket.once("data", more);
  });
  using upstream = testUpstream(new FakeClock());
  const result = await send(upstream, requestTo(`http://127.0.0.1:${server.port}/`));
  assert(!result.ok && result.evidence.kind === "malformed");
  assert(sent * interim.length < 8 * HEAD_LIMIT_BYTES, `${sent}`);
});
