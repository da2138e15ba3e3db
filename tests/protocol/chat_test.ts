import { assertEquals } from "@std/assert";
import { chatDialect } from "../../lib/protocol/chat.ts";
import type { EventClass } from "../../lib/protocol/stream_dialect.ts";
import { frame } from "./frames.ts";

const { readEvent } = chatDialect;

function chunk(choice: Record<string, unknown> | null, rest: Record<string, unknown> = {}): string {
  const choices = choice === null ? [] : [{ index: 0, finish_reason: null, ...choice }];
  return JSON.stringify({
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices,
    ...rest,
  });
}

const cases: { name: string; data: string; want: EventClass; finishes?: true }[] = [
  { name: "the role alone", data: chunk({ delta: { role: "assistant" } }), want: "lifecycle" },
  {
    name: "the role with empty text",
    data: chunk({ delta: { role: "assistant", content: "" } }),
    want: "lifecycle",
  },
  {
    name: "the role with null text",
    data: chunk({ delta: { role: "assistant", content: null } }),
    want: "lifecycle",
  },
  {
    name: "the role with an empty list",
    data: chunk({ delta: { role: "assistant", tool_calls: [] } }),
    want: "lifecycle",
  },
  { name: "an empty delta", data: chunk({ delta: {} }), want: "lifecycle" },
  { name: "text", data: chunk({ delta: { content: "AB" } }), want: "output" },
  {
    name: "text with the role",
    data: chunk({ delta: { role: "assistant", content: "AB" } }),
    want: "output",
  },
  { name: "text that begins with a quote", data: chunk({ delta: { content: '"' } }), want: "output" },
  {
    name: "text with spaced JSON",
    data: JSON.stringify(JSON.parse(chunk({ delta: { content: "A" } })), null, 1).replaceAll("\n", ""),
    want: "output",
  },
  { name: "reasoning", data: chunk({ delta: { reasoning_content: "hm" } }), want: "output" },
  { name: "a refusal", data: chunk({ delta: { refusal: "no" } }), want: "output" },
  { name: "a tool call", data: chunk({ delta: { tool_calls: [{ index: 0, id: "t" }] } }), want: "output" },
  { name: "a field nobody knows", data: chunk({ delta: { zz: 1 } }), want: "output" },
  { name: "a legacy text choice", data: chunk({ text: "x" }), want: "output" },
  { name: "a whole message", data: chunk({ message: { role: "assistant", content: "x" } }), want: "output" },
  {
    name: "finish_reason stop",
    data: chunk({ delta: {}, finish_reason: "stop" }),
    want: "output",
    finishes: true,
  },
  {
    name: "finish_reason with text",
    data: chunk({ delta: { content: "x" }, finish_reason: "length" }),
    want: "output",
    finishes: true,
  },
  {
    name: "one of two choices finished",
    data: chunk(null, {
      choices: [{ delta: { content: "x" }, finish_reason: null }, { delta: {}, finish_reason: "stop" }],
    }),
    want: "output",
    finishes: true,
  },
  {
    name: "an empty finish_reason",
    data: chunk({ delta: { content: "" }, finish_reason: "" }),
    want: "lifecycle",
  },
  { name: "z.ai network_error", data: chunk({ delta: {}, finish_reason: "network_error" }), want: "failure" },
  {
    name: "z.ai sensitive",
    data: chunk({ delta: { content: "" }, finish_reason: "sensitive" }),
    want: "failure",
  },
  { name: "finish_reason error", data: chunk({ delta: {}, finish_reason: "error" }), want: "failure" },
  {
    name: "content_filter, which is an answer",
    data: chunk({ delta: {}, finish_reason: "content_filter" }),
    want: "output",
    finishes: true,
  },
  { name: "B074 no choices", data: '{"choices":[],"note":1}', want: "lifecycle" },
  {
    name: "the usage chunk",
    data: chunk(null, { usage: { prompt_tokens: 1, completion_tokens: 2 } }),
    want: "lifecycle",
  },
  { name: "usage without choices", data: '{"usage":{"prompt_tokens":1}}', want: "lifecycle" },
  { name: "an object nobody knows", data: '{"a":1}', want: "output" },
  {
    name: "an error object",
    data: '{"error":{"message":"m","code":"rate_limit_exceeded"}}',
    want: "failure",
  },
  {
    name: "an error beside text",
    data: chunk({ delta: { content: "x" } }, { error: { message: "m" } }),
    want: "failure",
  },
  { name: "an error as text", data: '{"error":"slow down"}', want: "failure" },
  {
    name: "error null beside text",
    data: chunk({ delta: { content: "x" } }, { error: null }),
    want: "output",
  },
  { name: "[DONE]", data: "[DONE]", want: "success" },
  { name: "[DONE] with space", data: " [DONE] ", want: "success" },
  { name: "B068 null", data: "null", want: "padding" },
  { name: "B068 true", data: "true", want: "padding" },
  { name: "B068 0", data: "0", want: "padding" },
  { name: "B068 []", data: "[]", want: "padding" },
  { name: 'B068 "x"', data: '"x"', want: "padding" },
  { name: "B068 bad JSON", data: "{bad json", want: "malformed" },
  {
    name: "B074 text that names the marker",
    data: chunk({ delta: { content: "data: [DONE]" } }),
    want: "output",
  },
  {
    name: "text that holds a chunk",
    data: chunk({ delta: { content: '{"finish_reason":"stop","error":{"code":"x"},"usage":{' } }),
    want: "output",
  },
];
for (const c of cases) {
  Deno.test(`readEvent() takes for ${c.want}${c.finishes ? ", finishing" : ""}: ${c.name}`, () => {
    const facts = readEvent(frame(`data: ${c.data}\n\n`));
    assertEquals([facts.class, facts.finishes], [c.want, c.finishes]);
    assertEquals(facts.failure === null, c.want !== "failure");
  });
}

Deno.test("readEvent() takes comments, and an error named by its event line", () => {
  assertEquals(readEvent(frame(": OPENROUTER PROCESSING\n\n")).class, "comment");
  const facts = readEvent(frame('event: error\ndata: {"code":1302,"message":"busy"}\n\n'));
  assertEquals([facts.class, facts.failure?.code], ["failure", "1302"]);
});

Deno.test("readEvent() reads the code of a failed finish and the id of the first chunk", () => {
  const failed = readEvent(frame(`data: ${chunk({ delta: {}, finish_reason: "network_error" })}\n\n`));
  assertEquals([failed.failure?.code, failed.responseId], ["network_error", "c1"]);
  assertEquals(readEvent(frame(`data: ${chunk({ delta: { role: "assistant" } })}\n\n`)).responseId, "c1");
});

Deno.test("readEvent() reads usage wherever it comes, and none where it is null (B110)", () => {
  const usage = {
    prompt_tokens: 7,
    prompt_tokens_details: { cached_tokens: 2 },
    completion_tokens: 3,
    completion_tokens_details: { reasoning_tokens: 1 },
    total_tokens: 10,
  };
  const want = { inputTokens: 7, cachedTokens: 2, outputTokens: 3, reasoningTokens: 1 };
  assertEquals(readEvent(frame(`data: ${chunk(null, { usage })}\n\n`)).usage, want);
  assertEquals(readEvent(frame(`data: ${chunk({ delta: { content: "x" } }, { usage })}\n\n`)).usage, want);
  assertEquals(
    readEvent(frame(`data: ${chunk({ delta: {}, finish_reason: "stop" }, { usage: null })}\n\n`)).usage,
    null,
  );
});
