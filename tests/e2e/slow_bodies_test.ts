/** Clients that send their bodies slowly: given up with 408 below a least pace, and no account pays for it. */
import { assert, assertEquals } from "@std/assert";
import { ok } from "../../lib/demo/simulated_replies.ts";
import { HEADERS, message, POST } from "../support/hardening.ts";
import { RawClient } from "../support/raw_client.ts";
import { type Rig, startRig } from "../support/rig.ts";

const GRACE = { timeouts: { "request-body-seconds": 2 } };
const BODY = JSON.stringify({ model: "m1", input: "x".repeat(60_000) });

async function open(rig: Rig, lines: readonly string[]): Promise<RawClient> {
  const client = await RawClient.open(rig.app.server.port);
  await client.send(message(lines));
  return client;
}

const routes = [
  { path: "/v1/responses", type: "server_error" },
  { path: "/v1/chat/completions", type: "server_error" },
  { path: "/v1/messages", type: "timeout_error" },
  { path: "/files", type: "server_error" },
] as const;
for (const { path, type } of routes) {
  for (const framing of ["content-length: 100", "transfer-encoding: chunked"]) {
    Deno.test(`a body of ${path} that stops coming is 408: ${framing}`, async () => {
      await using rig = await startRig({ accounts: ["A"], config: GRACE });
      using client = await open(rig, [`POST ${path} HTTP/1.1`, ...HEADERS, framing]);
      await client.send(framing.includes("chunked") ? '5\r\n{"mod\r\n' : '{"mod');
      const [answer] = await rig.until(client.answers(1));
      // The runtime says so of any request that was not read to its end.
      assertEquals([answer!.status, answer!.headers.get("connection")], [408, "close"]);
      const { error } = JSON.parse(answer!.body);
      assertEquals([error.code, error.type], ["request_timeout", type]);
      assertEquals(rig.provider.hits.length, 0);
    });
  }
}

Deno.test("a body in single bytes is given up, although something always comes", async () => {
  await using rig = await startRig({ accounts: ["A"], config: GRACE });
  using client = await open(rig, [POST, ...HEADERS, "transfer-encoding: chunked"]);
  let answered = false;
  const answers = client.answers(1, 10_000).finally(() => answered = true);
  let bytes = 0;
  for (; !answered && bytes < 200; bytes++) {
    await client.send("1\r\nx\r\n").catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 5));
    await rig.clock.advance(100);
  }
  assertEquals((await answers)[0]!.status, 408);
  assert(bytes >= 20 && bytes < 60, `${bytes} bytes, a tenth of a second each`);
});

Deno.test("a slow but steady body passes, however long it takes", async () => {
  await using rig = await startRig({ accounts: ["A"], config: GRACE });
  rig.account("A").otherwise(ok("A"));
  for (const chunked of [false, true]) {
    const framing = chunked ? "transfer-encoding: chunked" : `content-length: ${BODY.length}`;
    using client = await open(rig, [POST, ...HEADERS, framing]);
    // 10,000 bytes a second: above the least pace, and three times the grace in all.
    for (let at = 0; at < BODY.length; at += 10_000) {
      const piece = BODY.slice(at, at + 10_000);
      await client.send(chunked ? `${piece.length.toString(16)}\r\n${piece}\r\n` : piece);
      await new Promise((resolve) => setTimeout(resolve, 10));
      await rig.clock.advance(1_000);
    }
    if (chunked) await client.send("0\r\n\r\n");
    assertEquals((await rig.until(client.answers(1)))[0]!.status, 200);
  }
  assertEquals(rig.hits("A"), 2);
});

Deno.test("a streamed body that stops coming is 408 as well, ends its upstream call and blames nobody", async () => {
  await using rig = await startRig({ accounts: ["A"], config: GRACE });
  using client = await open(rig, [
    "POST /v1/images/edits HTTP/1.1",
    ...HEADERS.filter((line) => !line.startsWith("content-type")),
    "content-type: multipart/form-data; boundary=b",
    "transfer-encoding: chunked",
  ]);
  await client.send("5\r\n--b\r\n\r\n");
  await rig.eventually(() => rig.provider.openConnections === 1);
  const [answer] = await rig.until(client.answers(1));
  assertEquals([answer!.status, JSON.parse(answer!.body).error.code], [408, "request_timeout"]);
  await rig.eventually(() => rig.provider.openConnections === 0);
  assertEquals(rig.provider.hits.length, 0);
  const { state, in_flight } = await rig.accountState("A");
  assertEquals([state, in_flight], ["healthy", 0]);
  assertEquals((await rig.lastDecision()).code, "request_timeout");
});

Deno.test("a login that is never sent whole is let go", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  using client = await open(rig, [
    "POST /status/login HTTP/1.1",
    "host: localhost",
    "origin: http://localhost",
    "content-type: application/x-www-form-urlencoded",
    "content-length: 50",
  ]);
  await client.send("key=");
  assertEquals((await rig.until(client.answers(1)))[0]!.status, 413);
});
