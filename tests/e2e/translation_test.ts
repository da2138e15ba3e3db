/** Any client protocol on any provider, over real sockets: chat and messages on Codex, all three on key hosts. */
import { assert, assertEquals } from "@std/assert";
import {
  chatDelta,
  chatDone,
  chatFinish,
  chatRole,
  created,
  delta,
  failed,
  failure,
  ok,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { type Rig, startRig } from "../support/rig.ts";

const CHAT = { model: "m1", messages: [{ role: "user", content: "hi" }] };
const MSG = { model: "m1", max_tokens: 64, messages: [{ role: "user", content: "hi" }] };

function events(text: string): { event: string | null; data: string }[] {
  return text.trimEnd().split("\n\n").map((frame) => ({
    event: /^event: (.*)$/m.exec(frame)?.[1] ?? null,
    data: /^data: (.*)$/m.exec(frame)?.[1] ?? "",
  }));
}

/** Providers of each key kind on the rig's simulated host, with two accounts each. */
async function startKeyRig(): Promise<Rig> {
  const probe = await startRig({ accounts: [] });
  const url = probe.provider.url;
  await probe.stop();
  const config = {
    providers: [
      {
        id: "claude",
        kind: "anthropic",
        "base-url": url,
        accounts: [{ id: "c1", "api-key": "SENT-tok-C1" }, { id: "c2", "api-key": "SENT-tok-C2" }],
      },
      {
        id: "zai",
        kind: "zai",
        "base-url": url,
        plan: "coding",
        accounts: [{ id: "z1", "api-key": "SENT-tok-Z1" }],
      },
      {
        id: "lab",
        kind: "openai",
        "base-url": `${url}/v1`,
        models: ["qwen3"],
        accounts: [{ id: "l1", "api-key": "SENT-tok-L1" }],
      },
    ],
    models: [{ alias: "fast", provider: "lab", model: "qwen3" }],
  };
  probe.reconfigure(config);
  await probe.start();
  return probe;
}

Deno.test("a chat client on Codex: plain and streaming, with usage, through a failover", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(failure(429, { type: "usage_limit_reached", headers: { "retry-after": "3600" } }));
  rig.account("B").otherwise(ok("hello"));
  const plain = await rig.call("/v1/chat/completions", CHAT);
  assertEquals(plain.status, 200);
  const json = await plain.json();
  assertEquals([json.object, json.model, json.choices[0].message.content, json.choices[0].finish_reason], [
    "chat.completion",
    "m1",
    "hello",
    "stop",
  ]);
  assert(json.usage.total_tokens > 0);
  const sent = rig.provider.hits.at(-1)!.json();
  assertEquals([sent["stream"], sent["store"], typeof sent["instructions"]], [true, false, "string"]);

  const streamed = await rig.call("/v1/chat/completions", {
    ...CHAT,
    stream: true,
    stream_options: { include_usage: true },
  });
  const frames = events(await streamed.text());
  assertEquals(frames.at(-1)!.data, "[DONE]");
  const chunks = frames.slice(0, -1).map(({ data }) => JSON.parse(data));
  assertEquals(
    chunks.flatMap(({ choices }) =>
      choices.map((choice: { delta: { content?: string } }) => choice.delta.content ?? "")
    ).join(""),
    "hello",
  );
  assert(chunks.some(({ usage }) => usage?.prompt_tokens > 0));
});

Deno.test("a messages client on Codex: plain and streaming, one message_start, one message_stop", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(stream([created(), failed("server_error")])).otherwise(ok("hello"));
  rig.account("B").otherwise(ok("hello"));
  const streamed = await rig.call("/v1/messages?beta=true", { ...MSG, stream: true });
  assertEquals(streamed.status, 200);
  const frames = events(await streamed.text());
  assertEquals(frames.filter(({ event }) => event === "message_start").length, 1);
  assertEquals(frames.at(-1)!.event, "message_stop");
  const plain = await (await rig.call("/v1/messages", MSG)).json();
  assertEquals([plain.type, plain.role, plain.content[0].text, plain.stop_reason], [
    "message",
    "assistant",
    "hello",
    "end_turn",
  ]);
});

Deno.test("what cannot be carried is a 400 that names the part, and nothing is sent (B119)", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const answer = await rig.call("/v1/messages", {
    ...MSG,
    messages: [{ role: "user", content: [{ type: "zz_new", x: 1 }] }],
  });
  assertEquals(answer.status, 400);
  const body = await answer.json();
  assertEquals(body.type, "error");
  assert(body.error.message.includes("zz_new"), body.error.message);
  assertEquals(rig.hits("A"), 0);
});

Deno.test("a field of the wrong type is a 400 in the client's protocol, nothing is sent and nobody is held responsible", async (t) => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("hello"));
  for (
    const [path, body, words] of [
      ["/v1/chat/completions", { model: "m1" }, "messages: must be a list"],
      ["/v1/chat/completions", { ...CHAT, messages: "hi" }, "messages: must be a list"],
      [
        "/v1/chat/completions",
        { ...CHAT, messages: [{ role: "user", content: 5 }] },
        "messages[0].content: must be a text or a list",
      ],
      ["/v1/chat/completions", { ...CHAT, tools: { a: 1 } }, "tools: must be a list"],
      ["/v1/chat/completions", { ...CHAT, stream: "yes" }, "stream: must be true or false"],
      [
        "/v1/messages",
        { ...MSG, messages: [{ role: "user" }] },
        "messages[0].content: must be a text or a list",
      ],
      ["/v1/messages", { ...MSG, system: 5 }, "system: must be a text or a list"],
      ["/v1/messages", { ...MSG, stream: 1 }, "stream: must be true or false"],
    ] as const
  ) {
    await t.step(`${path} ${words}`, async () => {
      const answer = await rig.call(path, body);
      const { type, error } = await answer.json();
      assertEquals(
        [answer.status, type, error.type, error.message],
        [
          400,
          path === "/v1/messages" ? "error" : undefined,
          "invalid_request_error",
          `Cannot carry ${words}`,
        ],
      );
      assertEquals(rig.hits("A"), 0);
    });
  }
  const answer = await rig.call("/v1/chat/completions", CHAT);
  assertEquals([answer.status, rig.hits("A")], [200, 1]);
  await answer.body?.cancel();
});

Deno.test("a field of the wrong type passes untouched where nothing is translated", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("hello"));
  const odd = { input: "hi", tools: { a: 1 }, instructions: 5 };
  await (await rig.responses(odd)).text();
  const sent = rig.provider.hits.at(-1)!.json();
  assertEquals([sent["tools"], sent["instructions"]], [odd.tools, odd.instructions]);
});

Deno.test("fields the Codex backend refuses are left out, others go along (B116)", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("hello"));
  const fields = {
    temperature: 1,
    top_p: 0.5,
    max_output_tokens: 10,
    metadata: { a: "b" },
    truncation: "auto",
    user: "u",
    prompt_cache_retention: "24h",
    store: true,
    zz: 1,
    client_metadata: { k: "v" },
  };
  await (await rig.responses(fields)).text();
  const sent = rig.provider.hits.at(-1)!.json();
  for (
    const gone of [
      "temperature",
      "top_p",
      "max_output_tokens",
      "metadata",
      "truncation",
      "user",
      "prompt_cache_retention",
    ]
  ) {
    assertEquals([gone, sent[gone]], [gone, undefined]);
  }
  assertEquals([sent["store"], sent["zz"], sent["client_metadata"]], [false, 1, { k: "v" }]);
});

Deno.test("a quota failure inside the stream is a 429 in the client's own protocol (B044)", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 0 } });
  rig.account("A").script(
    stream([created(), failed("rate_limit_exceeded", "Rate limit reached. Please try again in 11s.")]),
  );
  const answer = await rig.call("/v1/chat/completions", { ...CHAT, stream: true });
  assertEquals([answer.status, answer.headers.get("retry-after")], [429, "11"]);
  assertEquals((await answer.json()).error.code, "rate_limited");
});

Deno.test("a failure after the first output is told in the client's own protocol, with no [DONE] posing as success (B024)", async (t) => {
  for (
    const [path, body, check] of [
      ["/v1/chat/completions", CHAT, (text: string) => text.includes('"error"') && !text.includes("[DONE]")],
      [
        "/v1/messages",
        MSG,
        (text: string) => text.includes("event: error") && !text.includes("message_stop"),
      ],
    ] as const
  ) {
    await t.step(path, async () => {
      await using rig = await startRig({ accounts: ["A", "B"] });
      rig.account("A").script(stream([created(), delta("Hel"), delta("lo"), failed("server_error")]));
      const answer = await rig.call(path, { ...body, stream: true });
      const text = await answer.text();
      assert(text.includes("Hel") && text.includes("lo") && check(text), text);
      assertEquals(rig.hits("B"), 0);
    });
  }
});

Deno.test("all three protocols on an anthropic provider, through a 529", async (t) => {
  for (
    const [path, body, read] of [
      ["/v1/messages", MSG, (json: Any) => json.content[0].text],
      ["/v1/chat/completions", CHAT, (json: Any) => json.choices[0].message.content],
      ["/v1/responses", { model: "m1", input: "hi" }, (json: Any) => json.output.at(-1).content[0].text],
    ] as const
  ) {
    await t.step(path, async () => {
      await using rig = await startKeyRig();
      rig.provider.account("SENT-tok-C1").script(
        failure(529, { type: "overloaded_error", message: "Overloaded" }),
      ).otherwise(ok("hello"));
      rig.provider.account("SENT-tok-C2").script(
        failure(529, { type: "overloaded_error", message: "Overloaded" }),
      ).otherwise(ok("hello"));
      const answer = await rig.call(path, { ...body, model: "claude/claude-opus-4-8" });
      const json = await answer.json();
      assertEquals([answer.status, read(json)], [200, "hello"]);
      const sent = rig.provider.hits.at(-1)!;
      assertEquals([
        sent.path.split("?")[0],
        sent.json()["model"],
        sent.headers.get("x-api-key")?.slice(0, 9),
      ], ["/v1/messages", "claude-opus-4-8", "SENT-tok-"]);
    });
  }
});

// deno-lint-ignore no-explicit-any
type Any = any;

Deno.test("all three protocols on an OpenAI-compatible host, plain and streaming, by alias", async (t) => {
  const turn = stream([chatRole(), chatDelta("hel"), chatDelta("lo"), chatFinish(), chatDone()]);
  for (
    const [path, body, done] of [
      ["/v1/chat/completions", CHAT, "[DONE]"],
      ["/v1/responses", { input: "hi" }, "response.completed"],
      ["/v1/messages", MSG, "message_stop"],
    ] as const
  ) {
    await t.step(path, async () => {
      await using rig = await startKeyRig();
      rig.provider.account("SENT-tok-L1").script(turn, ok("hello"));
      const streamed = await rig.call(path, { ...body, model: "fast", stream: true });
      const text = await streamed.text();
      assert(text.includes(done) && text.includes("hel"), text);
      const plain = await rig.call(path, { ...body, model: "fast" });
      assertEquals(plain.status, 200);
      assert((await plain.text()).includes("hello"));
      assertEquals(rig.provider.hits.at(-1)!.json()["model"], "qwen3");
    });
  }
});

Deno.test("a z.ai key serves messages clients on its Anthropic style and chat clients on its OpenAI style", async () => {
  await using rig = await startKeyRig();
  rig.provider.account("SENT-tok-Z1").otherwise(ok("hello"));
  await (await rig.call("/v1/messages", { ...MSG, model: "zai/glm-5.2" })).text();
  assertEquals(rig.provider.hits.at(-1)!.path.split("?")[0], "/api/anthropic/v1/messages");
  await (await rig.call("/v1/chat/completions", { ...CHAT, model: "zai/glm-5.2" })).text();
  assertEquals(rig.provider.hits.at(-1)!.path, "/api/coding/paas/v4/chat/completions");
});

Deno.test("z.ai: a spent window dressed as 429 with a reset in UTC+8 is a deadline; a missing balance is no clock", async () => {
  await using rig = await startKeyRig();
  const resetAtMs = rig.clock.now() + 2 * 3_600_000;
  const inUtc8 = new Date(resetAtMs + 8 * 3_600_000).toISOString().slice(0, 19).replace("T", " ");
  rig.provider.account("SENT-tok-Z1").script(
    failure(429, {
      code: "1308",
      message: `Usage limit reached for 5 hour. Your limit will reset at ${inUtc8}`,
    }),
  );
  const limited = await rig.call("/v1/chat/completions", { ...CHAT, model: "zai/glm-5.2" });
  const seconds = Number(limited.headers.get("retry-after"));
  assert(limited.status === 429 && seconds > 7_100 && seconds <= 7_200, `${limited.status} ${seconds}`);
  await limited.body?.cancel();
});

Deno.test("count_tokens goes to an anthropic provider, and is 404 where none counts", async () => {
  await using rig = await startKeyRig();
  rig.provider.account("SENT-tok-C1").otherwise(ok("x"));
  rig.provider.account("SENT-tok-C2").otherwise(ok("x"));
  const counted = await rig.call("/v1/messages/count_tokens", { ...MSG, model: "claude/claude-opus-4-8" });
  assertEquals([counted.status, (await counted.json()).input_tokens], [200, 10]);
  const nowhere = await rig.call("/v1/messages/count_tokens", { ...MSG, model: "codex/gpt-5.5" });
  assertEquals(nowhere.status, 404);
  await nowhere.body?.cancel();
});

Deno.test("models are merged from the upstreams, in the shape the client asks for, with aliases", async () => {
  await using rig = await startRig({
    accounts: ["A"],
    config: { models: [{ alias: "fast", provider: "codex", model: "m1" }] },
  });
  rig.account("A").models.otherwise({ ...ok("m1") });
  const openai = await (await rig.until(
    fetch(`${rig.app.url}/v1/models`, { headers: { authorization: "Bearer SENT-key-client-1" } }),
  )).json();
  assertEquals(openai.data.map(({ id }: { id: string }) => id), ["m1", "fast"]);
  const codex = await (await rig.until(
    fetch(`${rig.app.url}/v1/models?client_version=0.171.0`, {
      headers: { authorization: "Bearer SENT-key-client-1" },
    }),
  )).json();
  assertEquals(codex.models.map(({ slug }: { slug: string }) => slug), ["m1", "fast"]);
  const nobody = await fetch(`${rig.app.url}/v1/models`);
  assertEquals(nobody.status, 401);
  await nobody.body?.cancel();
});

Deno.test("keys of one organisation share its limits, once an answer has named it", async () => {
  await using rig = await startKeyRig();
  const named = { "anthropic-organization-id": "org-1" };
  for (const token of ["SENT-tok-C1", "SENT-tok-C2"]) rig.provider.account(token).script(ok("hello", named));
  const ask = () => rig.call("/v1/messages", { ...MSG, model: "claude/claude-opus-4-8" });
  for (let turn = 0; turn < 2; turn++) await (await ask()).text();
  const limited = failure(429, {
    type: "rate_limit_error",
    message:
      "This request would exceed the rate limit for your organization of 100,000 input tokens per minute.",
    headers: { ...named, "retry-after": "300" },
  });
  for (const token of ["SENT-tok-C1", "SENT-tok-C2"]) rig.provider.account(token).otherwise(limited);
  const before = rig.provider.hits.length;
  const answer = await ask();
  assertEquals([answer.status, rig.provider.hits.length - before], [429, 1]);
  await answer.body?.cancel();
});
