/** Recovery for every client protocol on every kind of provider, streaming and not: one clean answer (issue 8, item 5). */
import { assert, assertEquals } from "@std/assert";
import {
  chatDelta,
  chatRole,
  created,
  delta,
  error,
  event,
  failed,
  failure,
  messageStart,
  ok,
  type Question,
  raw,
  type Reply,
  rst,
  type Step,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { decisionOf, isIdle, recoveryNotes, recoveryOn } from "../support/recovery_rig.ts";
import { type Rig, startRig } from "../support/rig.ts";

const CLIENTS = [
  { name: "Responses", path: "/v1/responses", body: { input: "hi" }, start: /"type":"response\.created"/g },
  {
    name: "Chat",
    path: "/v1/chat/completions",
    body: { messages: [{ role: "user", content: "hi" }] },
    start: /"role":"assistant"/g,
  },
  {
    name: "Messages",
    path: "/v1/messages",
    body: { max_tokens: 64, messages: [{ role: "user", content: "hi" }] },
    start: /"type":"message_start"/g,
  },
] as const;

const PROVIDERS = [
  { kind: "codex", model: "codex/gpt-5.5", token: "SENT-tok-A" },
  { kind: "anthropic", model: "claude/claude-opus-4-8", token: "SENT-tok-C1" },
  { kind: "openai", model: "lab/qwen3", token: "SENT-tok-L1" },
  { kind: "zai", model: "zai/glm-5.2", token: "SENT-tok-Z1" },
] as const;

async function startKindsRig(): Promise<Rig> {
  const rig = await startRig({ accounts: ["A"] });
  const url = rig.provider.url;
  await rig.stop();
  const key = (id: string, token: string) => ({ id, "api-key": `SENT-tok-${token}` });
  rig.reconfigure(recoveryOn({}, {
    providers: [
      { id: "claude", kind: "anthropic", "base-url": url, accounts: [key("c1", "C1")] },
      { id: "zai", kind: "zai", "base-url": url, plan: "coding", accounts: [key("z1", "Z1")] },
      {
        id: "lab",
        kind: "openai",
        "base-url": `${url}/v1`,
        models: ["qwen3"],
        accounts: [key("l1", "L1")],
      },
    ],
  }));
  await rig.start();
  return rig;
}

/** A reply in the protocol of the call: its first events, then whatever ends them. */
function broken(end: "rst" | "failure"): Reply {
  return {
    kind: "dynamic",
    make: ({ path, json }: Question): Reply => {
      if (json?.["stream"] !== true) {
        return end === "rst"
          ? raw(200, '{"id":"lost","outp', { "content-type": "application/json" })
          : failure(502);
      }
      if (path.endsWith("/messages")) return stream([...LOST_MESSAGES, end === "rst" ? rst() : OVERLOADED]);
      if (path.endsWith("/chat/completions")) {
        return stream([chatRole(), chatDelta("lost"), end === "rst" ? rst() : CHAT_ERROR]);
      }
      return stream([created("resp_lost"), delta("lost"), end === "rst" ? rst() : failed("server_error")]);
    },
  };
}

const LOST_MESSAGES: readonly Step[] = [
  messageStart(),
  named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  named("content_block_delta", { index: 0, delta: { type: "text_delta", text: "lost" } }),
];
const OVERLOADED = named("error", { error: { type: "overloaded_error", message: "Overloaded" } });
const CHAT_ERROR = event(null, { error: { message: "boom", type: "server_error", code: "server_error" } });

function named(type: string, fields: Record<string, unknown>): Step {
  return event(type, { type, ...fields });
}

for (const client of CLIENTS) {
  for (const provider of PROVIDERS) {
    Deno.test(`recovery: a ${client.name} client on ${provider.kind} gets one clean answer through two losing attempts`, async (t) => {
      await using rig = await startKindsRig();
      const account = rig.provider.account(provider.token);
      const ask = (wantsStream: boolean) =>
        rig.call(client.path, {
          ...client.body,
          model: provider.model,
          ...(wantsStream ? { stream: true } : {}),
        });
      await t.step("streaming", async () => {
        account.script(broken("rst"), broken("failure"), ok("won"));
        const answer = await ask(true);
        const text = await rig.until(answer.text());
        assertEquals(answer.status, 200, text);
        assert(text.includes("won") && !text.includes("lost") && !/"error":\{/.test(text), text);
        assertEquals(text.match(client.start)?.length, 1, text);
        assertEquals(recoveryNotes(await decisionOf(rig, 1)), ["recovered"]);
      });
      await t.step("one document", async () => {
        account.script(broken("rst"), broken("failure"), ok("won"));
        const answer = await ask(false);
        const text = await rig.until(answer.text());
        assertEquals([answer.status, answer.headers.get("content-type")], [200, "application/json"], text);
        assert(text.includes("won") && !text.includes("lost"), text);
        JSON.parse(text);
        assertEquals(recoveryNotes(await decisionOf(rig, 2)), ["recovered"]);
      });
      await t.step("spent: an error in the client's own form, and no byte of a stream", async () => {
        account.otherwise(broken("failure"));
        const answer = await ask(true);
        const text = await rig.until(answer.text(), 30_000);
        assertEquals([answer.status, answer.headers.get("content-type")], [502, "application/json"], text);
        const body = JSON.parse(text);
        assertEquals(
          client.name === "Messages" ? body.type : typeof body.error.code,
          client.name === "Messages" ? "error" : "string",
        );
        assertEquals(recoveryNotes(await decisionOf(rig, 3)), ["recovery_exhausted"]);
      });
      await rig.eventually(() => isIdle(rig));
    });
  }
}

Deno.test("recovery, same protocol on both sides: the bytes are the winner's own", async (t) => {
  const cases = [
    { client: CLIENTS[0], provider: PROVIDERS[0] },
    { client: CLIENTS[1], provider: PROVIDERS[2] },
    { client: CLIENTS[2], provider: PROVIDERS[1] },
    { client: CLIENTS[2], provider: PROVIDERS[3] },
  ];
  for (const { client, provider } of cases) {
    await t.step(`${client.name} on ${provider.kind}`, async () => {
      await using rig = await startKindsRig();
      const ask = async () => {
        const body = { ...client.body, model: provider.model, stream: true };
        return await (await rig.call(client.path, body)).text();
      };
      const account = rig.provider.account(provider.token);
      account.script(ok("won"));
      const plain = await ask();
      account.script(broken("rst"), broken("failure")).otherwise(ok("won"));
      for (let turn = 0; turn < 2; turn++) assertEquals(await ask(), plain);
    });
  }
});

Deno.test("a bare error event is no end a withheld client sees; a spent one is told in its own words", async () => {
  await using rig = await startRig({
    accounts: ["A"],
    config: recoveryOn({ attempts: 1 }, { "request-retry": 0 }),
  });
  rig.account("A").script(
    stream([created("resp_lost"), error("server_is_overloaded")]),
    stream([created("resp_lost"), error("invalid_prompt")]),
  );
  // The second failure is the request's own: released as it came, in the one form Codex acts on.
  const text = await (await rig.responses({ stream: true })).text();
  assert(text.trimEnd().split("\n\n").at(-1)!.startsWith("event: response.failed"), text);
  assertEquals(text.match(/response\.created"/g)?.length, 1);
});
