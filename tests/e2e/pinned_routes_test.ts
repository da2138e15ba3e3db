/** Routes with a memory or a shape of their own: files, calls, hosted MCP, account pages with an account's own token. */
import { assert, assertEquals } from "@std/assert";
import {
  accept,
  close,
  delay,
  event,
  failure,
  gate,
  json,
  ok,
  raw,
  receive,
  stream,
  text,
} from "../../lib/demo/simulated_replies.ts";
import { VERY_LONG_INPUT } from "../support/long_input.ts";
import { openRigSocket, refusedRigSocket } from "../support/rig_sockets.ts";
import { type Rig, startRig, tokenOf } from "../support/rig.ts";

const made = (id: string) => json({ file_id: id, upload_url: "https://blob.test/x" });
const uploaded = (rig: Rig, id: string) => rig.call(`/backend-api/files/${id}/uploaded`, {});
const sentTo = (rig: Rig) => rig.provider.hits.map(({ credential }) => credential);
const [A, B] = [tokenOf("A"), tokenOf("B")];

Deno.test("a file is finished on the account that made it, whoever's turn it is, also after a restart", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(made("file-a")).otherwise(json({ status: "success" }));
  rig.account("B").script(made("file-b")).otherwise(json({ status: "success" }));
  for (const want of ["file-a", "file-b"]) {
    const answer = await rig.call("/files", { file_name: "x", file_size: 1, use_case: "codex" });
    assertEquals(await answer.json(), { file_id: want, upload_url: "https://blob.test/x" });
  }
  for (const id of ["file-b", "file-b", "file-a", "file-a", "file-b"]) {
    assertEquals((await (await uploaded(rig, id)).json()).status, "success");
  }
  assertEquals(sentTo(rig), [A, B, B, B, A, A, B]);
  await rig.restart();
  rig.provider.hits.length = 0;
  await (await uploaded(rig, "file-b")).text();
  await (await uploaded(rig, "file-a")).text();
  assertEquals(sentTo(rig), [B, A]);
  assertEquals(rig.provider.hits[0]!.path, "/backend-api/files/file-b/uploaded");
});

Deno.test("an id nobody knows goes to any account; one too old as well", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(made("file-a")).otherwise(failure(404, { message: "no such file" }));
  rig.account("B").otherwise(failure(404, { message: "no such file" }));
  await (await rig.call("/files", {})).text();
  const unknown = await uploaded(rig, "file-x");
  assertEquals([unknown.status, (await unknown.json()).error.message], [404, "no such file"]);
  assertEquals((await (await uploaded(rig, "file-x")).json()).error.message, "no such file");
  assertEquals(new Set(sentTo(rig).slice(1)), new Set([A, B]));
  rig.provider.hits.length = 0;
  await rig.pass(86_400_001);
  for (let call = 0; call < 2; call++) await (await uploaded(rig, "file-a")).text();
  assertEquals(new Set(sentTo(rig)), new Set([A, B]));
});

Deno.test("a file whose account rests is not asked of another: the client hears when", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  const limit = failure(429, { type: "usage_limit_reached", headers: { "retry-after": "600" } });
  rig.account("A").script(made("file-a"), limit);
  rig.account("B").otherwise(ok("B"));
  await (await rig.call("/files", {})).text();
  while (rig.hits("A") < 2) await (await rig.responses()).text();
  assertEquals((await rig.accountState("A")).state, "cooling");
  rig.provider.hits.length = 0;
  const answer = await uploaded(rig, "file-a");
  assertEquals([answer.status, rig.provider.hits.length], [429, 0]);
  assert(Number(answer.headers.get("retry-after")) > 590);
  await answer.body?.cancel();
});

const answers = [
  { name: "an answer without an id", reply: json({ ok: true }), status: 200 },
  { name: "an answer that is no JSON", reply: raw(200, "created"), status: 200 },
  { name: "an answer larger than any such answer", reply: raw(200, "x".repeat(200_000)), status: 200 },
  { name: "no content", reply: raw(204, ""), status: 204 },
];
for (const { name, reply, status } of answers) {
  Deno.test(`a new file's answer passes as it is: ${name}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").script(reply);
    const answer = await rig.call("/files", {});
    const want = reply.kind === "answer"
      ? [...reply.steps].map((step) => step.kind === "bytes" ? step.bytes.length : 0)[0]!
      : 0;
    assertEquals([answer.status, (await answer.bytes()).length], [status, want]);
  });
}

// ---------------------------------------------------------------- realtime calls

for (
  const location of ["/v1/realtime/calls/rtc_1", "https://chatgpt.test/x/calls/calls/rtc_1?a=b", "rtc_1"]
) {
  Deno.test(`a call's sideband joins on the account that opened it: ${location}`, async () => {
    await using rig = await startRig({ accounts: ["A", "B"] });
    rig.account("A").script(raw(201, "v=0 answer", { "content-type": "application/sdp", location }));
    rig.account("A").websocket.otherwise(accept([receive(), close(1000)]));
    const offer = "v=0 offer";
    const answer = await rig.call("/v1/realtime/calls", null, {
      body: offer,
      headers: { "content-type": "application/sdp" },
    });
    assertEquals([answer.status, answer.headers.get("location"), await answer.text()], [
      201,
      location,
      "v=0 answer",
    ]);
    assertEquals([rig.provider.hits[0]!.text(), rig.provider.hits[0]!.headers.get("content-type")], [
      offer,
      "application/sdp",
    ]);
    for (let join = 0; join < 3; join++) {
      await using client = await openRigSocket(rig, { path: "/v1/realtime?call_id=rtc_1" });
      client.send("bye");
      assertEquals((await client.closed).code, 1000);
    }
    assertEquals(sentTo(rig), [A, A, A, A]);
    assertEquals(rig.provider.hits[1]!.path, "/backend-api/codex/realtime?call_id=rtc_1");
  });
}

Deno.test("a call whose account rests is refused at the handshake, with the time", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(
    raw(201, "sdp", { location: "/rtc_1" }),
    failure(429, { type: "usage_limit_reached", headers: { "retry-after": "600" } }),
  );
  rig.account("B").otherwise(ok("B"));
  await (await rig.call("/v1/realtime/calls", {})).text();
  while (rig.hits("A") < 2) await (await rig.responses()).text();
  const refused = await refusedRigSocket(rig, { path: "/v1/realtime?call_id=rtc_1" });
  assertEquals(refused.status, 429);
  assert(Number(refused.headers.get("retry-after")) > 590);
});

Deno.test("a realtime conversation passes frames of any kind, and counts what its answers used", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const done = {
    type: "response.done",
    response: { status: "completed", usage: { input_tokens: 9, output_tokens: 4 } },
  };
  rig.account("A").websocket.script(
    accept([receive(), event(null, '{"type":"session.created"}'), event(null, done), receive()]),
  );
  await using client = await openRigSocket(rig, { path: "/v1/realtime" });
  client.send({ type: "response.create", model: "whatever" });
  assertEquals([(await client.json()).type, (await client.json()).type], [
    "session.created",
    "response.done",
  ]);
  client.send(new Uint8Array([1]));
  const { events } = await (await rig.admin("usage/events")).json();
  assertEquals([events[0].input_tokens, events[0].output_tokens], [9, 4]);
});

// ---------------------------------------------------------------- hosted MCP and account pages

Deno.test("hosted MCP streams JSON-RPC as it comes: nothing is held, renamed or read", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const more = Promise.withResolvers<void>();
  const first =
    'event: message\nid: 7\ndata: {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"limit"}}\n\n';
  rig.account("A").script(
    stream([text(first), gate(more.promise), text(": end")], { "mcp-session-id": "sess-1" }),
  );
  const answer = await rig.call("/backend-api/ps/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call" }, {
    headers: { accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18" },
  });
  assertEquals([answer.headers.get("content-type"), answer.headers.get("mcp-session-id")], [
    "text/event-stream",
    "sess-1",
  ]);
  const reader = answer.body!.getReader();
  assertEquals(new TextDecoder().decode((await reader.read()).value), first);
  more.resolve();
  assertEquals(new TextDecoder().decode((await reader.read()).value), ": end");
  assertEquals((await reader.read()).done, true);
  assertEquals(rig.provider.hits[0]!.headers.get("mcp-protocol-version"), "2025-06-18");
  assertEquals((await rig.accountState("A")).state, "healthy");
});

Deno.test("a client that leaves an MCP stream takes the upstream's with it", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(stream([text("data: {}\n\n"), delay(600_000)]));
  const leave = new AbortController();
  const body = new Blob([JSON.stringify({ params: VERY_LONG_INPUT })]).stream();
  const answer = await rig.call("/backend-api/wham/apps", null, { body, signal: leave.signal });
  await answer.body!.getReader().read();
  leave.abort();
  await rig.until(rig.provider.hits[0]!.left);
});

Deno.test("an account's own token opens the file and account pages, and nothing else", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").usage.otherwise(ok("x"));
  rig.account("A").otherwise(made("file-a"));
  const headers = { authorization: `Bearer ${A}` };
  const usage = await rig.call("/backend-api/wham/usage", null, { method: "GET", body: null, headers });
  const file = await rig.call("/backend-api/files", {}, { headers });
  const model = await rig.responses({}, { headers });
  assertEquals([usage.status, file.status, model.status], [200, 200, 401]);
  for (const answer of [usage, file, model]) await answer.body?.cancel();
});

Deno.test("a nudge that sends an e-mail is sent once, whatever becomes of it", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(failure(500));
  const answer = await rig.call("/backend-api/wham/accounts/send_add_credits_nudge_email", {
    credit_type: "credits",
  });
  assertEquals([answer.status, rig.provider.hits.length], [500, 1]);
  await answer.body?.cancel();
});

Deno.test("HEAD on an account page has the status and no body", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").usage.script(failure(503));
  rig.account("B").usage.script(ok("x"));
  const answer = await rig.call("/backend-api/wham/usage", null, { method: "HEAD", body: null });
  assertEquals([answer.status, await answer.text()], [200, ""]);
  assertEquals(rig.provider.hits.map(({ method }) => method), ["HEAD", "HEAD"]);
});
