/**
 * What an upstream signs comes back to it byte for byte, through clients of every other protocol; what another
 * provider signed is not sent.
 */
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { translatorFor } from "../../../lib/protocol/translate/compose.ts";
import type { JsonObject } from "../../../lib/protocol/translate/json.ts";
import { blockOfReasoning, reasoningOfThinking } from "../../../lib/protocol/translate/reasoning_carrier.ts";
import type { TranslateTarget } from "../../../lib/protocol/translate/targets.ts";
import type { TranslatedProtocol } from "../../../lib/protocol/translate/translator.ts";
import { ENCRYPTED, SIGNATURE } from "../../support/conversation_answers.ts";
import { answerContext, translateContext } from "../../support/translation.ts";

// deno-lint-ignore no-explicit-any -- JSON of three protocols, looked into by each test
type Loose = Record<string, any>;

const UPSTREAM_ANSWERS: Readonly<Record<TranslatedProtocol, JsonObject>> = {
  messages: {
    id: "msg_1",
    content: [
      { type: "thinking", thinking: "Two\n\nparts: 漢字", signature: SIGNATURE },
      { type: "redacted_thinking", data: "cmVkYWN0ZWQ=:SENT-redacted" },
      { type: "tool_use", id: "toolu_1", name: "f", input: { a: 1 } },
    ],
    stop_reason: "tool_use",
  },
  responses: {
    id: "resp_1",
    status: "completed",
    output: [
      {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "One" }, { type: "summary_text", text: "two\n\nthree" }],
        encrypted_content: ENCRYPTED,
      },
      { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: '{"a":1}' },
    ],
  },
  chat: {
    id: "chatcmpl-1",
    choices: [{
      index: 0,
      message: {
        role: "assistant",
        content: null,
        reasoning_content: "Plain thoughts: é",
        tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
      },
      finish_reason: "tool_calls",
    }],
  },
};

/** The next request of a client that keeps its answer as its history. */
const NEXT: Readonly<Record<TranslatedProtocol, (answer: Loose) => JsonObject>> = {
  chat: ({ choices }) => ({
    messages: [
      { role: "user", content: "go" },
      choices[0].message,
      { role: "tool", tool_call_id: choices[0].message.tool_calls[0].id, content: "done" },
    ],
  }),
  responses: ({ output }) => ({
    input: [
      { role: "user", content: "go" },
      ...output,
      { type: "function_call_output", call_id: output.at(-1).call_id, output: "done" },
    ],
  }),
  messages: ({ content }) => ({
    max_tokens: 9_000,
    messages: [
      { role: "user", content: "go" },
      { role: "assistant", content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: content.at(-1).id, content: "done" }] },
    ],
  }),
};

/** What an upstream finds of its own in the next request. */
const OWN: Readonly<Record<TranslatedProtocol, (body: Loose) => unknown>> = {
  messages: ({ messages }) => messages[1].content,
  responses: ({ input }) => input.filter((item: Loose) => item.type !== "message"),
  chat: ({ messages }) => messages[1].reasoning_content,
};

const EXPECTED: Readonly<Record<TranslatedProtocol, unknown>> = {
  messages: UPSTREAM_ANSWERS.messages.content,
  responses: [
    (UPSTREAM_ANSWERS.responses.output as Loose[])[0],
    { type: "function_call", call_id: "call_1", name: "f", arguments: '{"a":1}' },
    { type: "function_call_output", call_id: "call_1", output: "done" },
  ],
  chat: "Plain thoughts: é",
};

function nextRequest(client: TranslatedProtocol, upstream: TranslatedProtocol): JsonObject {
  const answer = translatorFor(client, upstream)!.answer(UPSTREAM_ANSWERS[upstream], answerContext());
  if (!answer.ok) throw new Error("no answer");
  return NEXT[client](JSON.parse(JSON.stringify(answer.body)));
}

function translated(
  client: TranslatedProtocol,
  upstream: TranslatedProtocol,
  body: JsonObject,
  target?: TranslateTarget,
) {
  const result = translatorFor(client, upstream)!.request(body, translateContext(target));
  if (!result.ok) throw new Error(`${result.part} refused: ${result.reason}`);
  return { body: JSON.parse(JSON.stringify(result.body)) as Loose, notes: result.notes };
}

for (const upstream of ["messages", "responses", "chat"] as const) {
  for (const client of ["messages", "responses", "chat"] as const) {
    if (client === upstream) continue;
    Deno.test(`${upstream} gets its own reasoning back from ${client}, byte for byte`, () => {
      const { body } = translated(client, upstream, nextRequest(client, upstream));
      const own = OWN[upstream](body);
      const wanted = EXPECTED[upstream];
      if (upstream !== "responses" || client === "responses") return assertEquals(own, wanted);
      // The item's fields are the same; their order and its status say nothing.
      const strip = (items: unknown) =>
        (items as Loose[]).map(({ id: _id, status: _status, ...rest }) => rest);
      assertEquals(strip(own), strip(wanted));
      assertEquals((own as Loose[])[0]!.id, "rs_1");
    });
  }
}

const foreign: { client: TranslatedProtocol; from: TranslatedProtocol; to: TranslatedProtocol }[] = [
  { client: "chat", from: "messages", to: "responses" },
  { client: "chat", from: "responses", to: "messages" },
  { client: "messages", from: "responses", to: "chat" },
  { client: "messages", from: "chat", to: "responses" },
  { client: "responses", from: "messages", to: "chat" },
  { client: "responses", from: "chat", to: "messages" },
];
for (const { client, from, to } of foreign) {
  Deno.test(`${client} that moves from ${from} to ${to} loses foreign reasoning alone, with a note`, () => {
    const { body, notes } = translated(client, to, nextRequest(client, from));
    const text = JSON.stringify(body);
    assertEquals([text.includes("SENT-"), text.includes("Plain thoughts"), text.includes("hf.")], [
      false,
      false,
      false,
    ]);
    assertEquals([text.includes("done"), /"f"/.test(text)], [true, true]);
    assertEquals(notes.some((note) => note.endsWith("left out: reasoning of another provider")), true);
  });
}

const texts = fc.string({ unit: "grapheme", minLength: 1 });
Deno.test("blockOfReasoning() and reasoningOfThinking() are inverse for every Responses item", () => {
  fc.assert(fc.property(
    fc.array(texts),
    fc.array(texts),
    fc.option(texts, { nil: undefined }),
    fc.stringMatching(/^[\w-]{0,20}$/),
    (summary, content, encrypted, id) => {
      fc.pre(!encrypted?.startsWith("hf."));
      const item: JsonObject = { type: "reasoning" };
      if (id !== "") item.id = id;
      item.summary = summary.map((text) => ({ type: "summary_text", text }));
      if (content.length > 0) item.content = content.map((text) => ({ type: "reasoning_text", text }));
      if (encrypted !== undefined) item.encrypted_content = encrypted;
      const block = blockOfReasoning(item) as Loose | null;
      if (block === null) return assertEquals([summary, content, encrypted], [[], [], undefined]);
      assertEquals(reasoningOfThinking(block.thinking, block.signature), item);
    },
  ));
});

Deno.test("reasoningOfThinking() and blockOfReasoning() are inverse for every Anthropic block", () => {
  fc.assert(fc.property(fc.string(), texts, (thinking, signature) => {
    fc.pre(!signature.startsWith("hf."));
    const block = { type: "thinking", thinking, signature };
    assertEquals(blockOfReasoning(reasoningOfThinking(thinking, signature)), block);
  }));
});

Deno.test("reasoningOfThinking() believes no header that is none", () => {
  for (const signature of ["hf.enc1:", "hf.enc1:a", "hf.enc1:a:1", "hf.enc1:a:x:y:z", "hf.enc1:%zz:9:9:e"]) {
    const item = reasoningOfThinking("text", signature) as Loose;
    assertEquals(item.summary, [{ type: "summary_text", text: "text" }], signature);
  }
});
