import { assertEquals } from "@std/assert";
import { messagesDialect } from "../../lib/protocol/messages.ts";
import type { EventClass } from "../../lib/protocol/stream_dialect.ts";
import { event, frame } from "./frames.ts";

const { readEvent } = messagesDialect;

const types: [string, EventClass][] = [
  ["message_start", "lifecycle"],
  ["ping", "lifecycle"],
  ["content_block_start", "output"],
  ["content_block_delta", "output"],
  ["content_block_stop", "output"],
  ["message_delta", "output"],
  ["zz_new", "output"],
  ["message_stop", "success"],
  ["error", "failure"],
];
for (const [type, want] of types) {
  Deno.test(`readEvent() takes ${type} for ${want}, with and without its event line, wherever the type stands`, () => {
    for (
      const text of [
        event(type),
        `data: ${JSON.stringify({ type })}\n\n`,
        `data: ${JSON.stringify({ index: 0, type })}\n\n`,
        `event: message\ndata: ${JSON.stringify({ index: 0, type })}\n\n`,
        `event: ${type}\ndata: ${JSON.stringify({ index: 0 })}\n\n`,
      ]
    ) {
      const facts = readEvent(frame(text));
      assertEquals([facts.class, facts.type], [want, type], text);
    }
  });
}

const others: { name: string; text: string; want: EventClass }[] = [
  { name: "a comment", text: ": ping\n\n", want: "comment" },
  { name: "B068 null", text: "data: null\n\n", want: "padding" },
  { name: "B068 null under a name", text: "event: message_stop\ndata: null\n\n", want: "padding" },
  { name: "[DONE], which ends chat alone", text: "data: [DONE]\n\n", want: "padding" },
  { name: "B068 bad JSON", text: "data: {bad json\n\n", want: "malformed" },
  {
    name: "bad JSON in an event that is read whole",
    text: 'data: {"type":"message_start",x}\n\n',
    want: "malformed",
  },
  {
    name: "an error without type",
    text: 'data: {"error":{"type":"1308","message":"m"}}\n\n',
    want: "failure",
  },
  { name: "an object without type", text: 'data: {"a":1}\n\n', want: "output" },
];
for (const c of others) {
  Deno.test(`readEvent() takes for ${c.want}: ${c.name}`, () => {
    assertEquals(readEvent(frame(c.text)).class, c.want);
  });
}

Deno.test("readEvent() reads id and input usage of message_start, cached tokens included (B108)", () => {
  const usage = {
    input_tokens: 992,
    cache_read_input_tokens: 11008,
    cache_creation_input_tokens: 500,
    output_tokens: 1,
  };
  const facts = readEvent(frame(event("message_start", { message: { id: "msg_1", usage } })));
  assertEquals(facts.responseId, "msg_1");
  assertEquals(facts.usage, { inputTokens: 12500, cachedTokens: 11008, outputTokens: 1, reasoningTokens: 0 });
});

Deno.test("readEvent() reads the output usage of message_delta", () => {
  const facts = readEvent(
    frame(event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 40 } })),
  );
  assertEquals([facts.class, facts.usage?.outputTokens], ["output", 40]);
});

for (
  const [reason, want] of [["error", "failure"], ["refusal", "output"], ["pause_turn", "output"], [
    "zz",
    "output",
  ]] as const
) {
  Deno.test(`readEvent() takes a message_delta that stops with ${reason} for ${want}, with its usage (B120)`, () => {
    const text = event("message_delta", {
      delta: { stop_reason: reason },
      usage: { input_tokens: 5, output_tokens: 2 },
    });
    const facts = readEvent(frame(text));
    assertEquals([facts.class, facts.usage?.inputTokens, facts.usage?.outputTokens], [want, 5, 2]);
    assertEquals(facts.failure?.code ?? null, reason === "error" ? "stop_reason_error" : null);
  });
}

Deno.test("readEvent() reads an error event", () => {
  const facts = readEvent(
    frame(event("error", { error: { type: "overloaded_error", message: "Overloaded", details: null } })),
  );
  assertEquals([facts.failure?.type, facts.failure?.message], ["overloaded_error", "Overloaded"]);
});
