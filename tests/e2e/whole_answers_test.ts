/** Answers that are one document: cut, silent, and no document after all. */
import { assertEquals } from "@std/assert";
import {
  type Answer,
  completed,
  created,
  delta,
  hold,
  itemDone,
  json,
  ok,
  raw,
  stream,
  text,
} from "../../lib/demo/simulated_replies.ts";
import { startRig } from "../support/rig.ts";

const JSON_TYPE = { "content-type": "application/json" };
/** More than is read whole before it is passed on. */
const LARGE = `{"output":"${"x".repeat(9_000_000)}`;

/** A document that begins and never ends. */
function stalled(beginning: string): Answer {
  return { ...raw(200, "", JSON_TYPE), steps: [text(beginning), hold()], framing: "chunked" };
}

for (const path of ["/v1/responses/compact", "/v1/alpha/search", "/v1/images/generations"]) {
  Deno.test(`a document of ${path} that falls silent beyond idle-seconds: the next account serves`, async () => {
    await using rig = await startRig({ accounts: ["A", "B"], config: { timeouts: { "idle-seconds": 20 } } });
    rig.account("A").script(stalled(`{"output":`));
    rig.account("B").script(json({ output: [] }));
    const answer = await rig.call(path, { model: "m1", prompt: "x", input: [] });
    assertEquals([answer.status, await answer.json()], [200, { output: [] }]);
    assertEquals([rig.hits("A"), rig.hits("B")], [1, 1]);
    await rig.until(rig.provider.hits[0]!.left);
    assertEquals((await rig.accountState("A"))["in_flight"], 0);
  });
}

Deno.test("a large document that falls silent beyond idle-seconds after its beginning was passed on breaks", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { timeouts: { "idle-seconds": 20 } } });
  rig.account("A").script(stalled(LARGE));
  const answer = await rig.call("/v1/responses/compact", { model: "m1", input: [] });
  assertEquals(await rig.until(answer.text().then(() => "whole", () => "broken")), "broken");
  await rig.until(rig.provider.hits[0]!.left);
  assertEquals((await rig.accountState("A"))["in_flight"], 0);
});

Deno.test("a slow document is waited for as long as something comes", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { timeouts: { "idle-seconds": 20 } } });
  const slow: Answer = { ...json({ output: "x".repeat(40) }), pieces: { bytes: 1, everyMs: 10 } };
  rig.account("A").script(slow);
  const answer = await rig.call("/v1/responses/compact", { model: "m1", input: [] });
  assertEquals([answer.status, (await answer.json()).output.length], [200, 40]);
});

Deno.test("a stream gathered into a document is let go soon after its terminal, also when its upstream never ends it", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(stream([created(), delta("x"), itemDone("x"), completed(), hold()]));
  const answer = await rig.responses({});
  assertEquals([answer.status, (await answer.json()).status], [200, "completed"]);
  await rig.until(rig.provider.hits[0]!.left);
});

const CHAT = { model: "claude/m", messages: [{ role: "user", content: "hi" }] };
for (
  const body of [`{"content":[nonsense]}`, `{"content":[{"type":"text","text":"\\q"}]}`, `{"usage":{"a":1x}}`]
) {
  Deno.test(`${body} where a translated answer should be was no answer: the next account serves`, async () => {
    const probe = await startRig({ accounts: [] });
    const url = probe.provider.url;
    await probe.stop();
    await using rig = probe;
    const accounts = ["C1", "C2"].map((name) => ({ id: name, "api-key": `SENT-tok-${name}` }));
    rig.reconfigure({ providers: [{ id: "claude", kind: "anthropic", "base-url": url, accounts }] });
    await rig.start();
    rig.account("C1").script(raw(200, body, JSON_TYPE));
    rig.account("C2").script(ok("hello"));
    const answer = await rig.call("/v1/chat/completions", CHAT);
    assertEquals([answer.status, (await answer.json()).choices[0].message.content], [200, "hello"]);
    assertEquals((await rig.readLog()).includes(`"fatal"`), false);
  });
}
