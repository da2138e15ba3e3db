/** What a client is told whose request the end of the process ends: never nothing, and never that it left by itself. */
import { assert, assertEquals } from "@std/assert";
import { created, delta, failure, hold, silence, stream } from "../../lib/demo/simulated_replies.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";

const unanswered = [
  { name: "the upstream says nothing", reply: silence(), fields: {} },
  { name: "the stream has no output yet", reply: stream([created("r"), hold()]), fields: { stream: true } },
  { name: "the answer is still gathered", reply: stream([created("r"), delta("Hel"), hold()]), fields: {} },
] as const;
for (const { name, reply, fields } of unanswered) {
  Deno.test(`stop() answers 503 when its grace is over and ${name}, and nobody rests for it`, async () => {
    await using rig = await startRig({ accounts: ["A"], checkScript: false });
    rig.account("A").otherwise(reply);
    const call = rig.responses(fields);
    await rig.eventually(() => rig.hits("A") === 1);
    const { app } = rig;
    await rig.stop();
    const response = await call;
    const body = await response.json();
    assertEquals([response.status, body.error.code], [503, "shutting_down"]);
    const record = app.decisions.latest(1)[0]!;
    assertEquals([record.status, record.code], [503, "shutting_down"]);
    await rig.start();
    assertEquals((await rig.accountState("A"))["state"], "healthy");
  });
}

Deno.test("stop() answers 503 when its grace is over and a round waits", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(failure(429, { headers: { "retry-after": "20" } }));
  const call = rig.responses();
  await rig.eventually(() => rig.hits("A") === 1);
  await rig.stop();
  const response = await call;
  assertEquals([response.status, (await response.json()).error.code], [503, "shutting_down"]);
});

const streamed = [
  { path: "/v1/responses", fields: { input: "hi" }, want: '"type":"response.failed"' },
  {
    path: "/v1/chat/completions",
    fields: { messages: [{ role: "user", content: "hi" }] },
    want: '{"error":',
  },
  {
    path: "/v1/messages",
    fields: { max_tokens: 9, messages: [{ role: "user", content: "hi" }] },
    want: "event: error",
  },
] as const;
for (const { path, fields, want } of streamed) {
  Deno.test(`stop() ends a stream of ${path} with a failure in its own words when its grace is over`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").script(stream([created("r"), delta("Hel"), hold()]));
    const response = await rig.call(path, { model: "m1", stream: true, ...fields });
    const { app } = rig;
    const [text] = await Promise.all([readUntilEnd(rig, response), rig.stop()]);
    assert(text.includes("Hel") && text.includes(want) && text.includes("The proxy is shutting down"), text);
    const record = app.decisions.latest(1)[0]!;
    assertEquals([record.status, record.code], [200, "shutting_down"]);
  });
}

function readUntilEnd(rig: Rig, response: Response): Promise<string> {
  return rig.until(response.text());
}

Deno.test("a client that did not read its stream until we stopped has not left", async () => {
  await using rig = await startRig({ accounts: ["A"], checkScript: false });
  // More than the sockets of both ends hold.
  rig.account("A").otherwise(stream([created("r"), ...Array(400).fill(delta("x".repeat(100_000))), hold()]));
  using client = await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(rig.app.url).port) });
  const body = JSON.stringify({ model: "m1", stream: true, input: "hi" });
  await client.write(
    new TextEncoder().encode(
      `POST /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${CLIENT_KEY}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    ),
  );
  await rig.eventually(() => rig.hits("A") === 1);
  const { app } = rig;
  await new Promise((resolve) => setTimeout(resolve, 300));
  await rig.stop();
  const record = app.decisions.latest(1)[0]!;
  assertEquals(record.code, "shutting_down");
});
