/** Which events each dialect owns up to not knowing: recovery lets a stream go at the first of them. */
import { assertEquals } from "@std/assert";
import { chatDialect } from "../../lib/protocol/chat.ts";
import { messagesDialect } from "../../lib/protocol/messages.ts";
import { responsesDialect } from "../../lib/protocol/responses.ts";
import { frameOf } from "../../lib/protocol/sse.ts";
import type { StreamDialect } from "../../lib/protocol/stream_dialect.ts";

/** Every streamed type of openai 7.59.0's `ResponseStreamEvent`, of wire-facts 2.1, and older spellings. */
const KNOWN_RESPONSES = [
  "keepalive",
  "codex.keepalive",
  "codex.response.metadata",
  "codex.rate_limits",
  "responsesapi.websocket_timing",
  "error",
  ...[
    "apply_patch_call_operation_diff.delta",
    "audio.delta",
    "audio.transcript.done",
    "code_interpreter_call.interpreting",
    "code_interpreter_call_code.delta",
    "compaction.compacting",
    "completed",
    "content_part.added",
    "created",
    "custom_tool_call_input.delta",
    "done",
    "failed",
    "file_search_call.searching",
    "function_call_arguments.delta",
    "function_call_arguments.done",
    "image_generation_call.partial_image",
    "in_progress",
    "incomplete",
    "local_shell_call.in_progress",
    "mcp_call.failed",
    "mcp_call_arguments.done",
    "mcp_list_tools.failed",
    "output_item.added",
    "output_item.done",
    "output_text.annotation.added",
    "output_text.delta",
    "queued",
    "reasoning.delta",
    "reasoning_summary.done",
    "reasoning_summary_part.added",
    "reasoning_summary_text.delta",
    "reasoning_text.delta",
    "refusal.delta",
    "shell_call_command.delta",
    "shell_call_output_content.done",
    "steer.accepted",
    "web_search_call.searching",
  ].map((name) => `response.${name}`),
];

const cases: readonly { dialect: StreamDialect; unknown: boolean; events: readonly unknown[] }[] = [
  { dialect: responsesDialect, unknown: false, events: KNOWN_RESPONSES.map((type) => ({ type })) },
  {
    dialect: responsesDialect,
    unknown: true,
    events: [
      { type: "response.zz_new.delta" },
      { type: "response.aborted" },
      { type: "response." },
      { type: "codex.zz_new" },
      { type: "zz" },
      { type: 7 },
      {},
    ],
  },
  {
    dialect: messagesDialect,
    unknown: false,
    events: [
      "message_start",
      "ping",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
      "error",
    ].map((type) => ({ type })),
  },
  { dialect: messagesDialect, unknown: true, events: [{ type: "zz_new" }, { type: 7 }, {}] },
  {
    dialect: chatDialect,
    unknown: false,
    events: [
      { choices: [] },
      { choices: [{ index: 0, delta: { content: "x" }, finish_reason: null }] },
      { choices: [{ index: 0, delta: { zz_new: "x" } }] },
      { usage: { prompt_tokens: 1, completion_tokens: 1 } },
      { error: { message: "x" } },
    ],
  },
  { dialect: chatDialect, unknown: true, events: [{ type: "zz_new" }, { object: "zz" }, {}] },
];
for (const { dialect, unknown, events } of cases) {
  for (const event of events) {
    const text = JSON.stringify(event);
    Deno.test(`readEvent() of ${dialect.protocol} ${unknown ? "does not know" : "knows"} ${text}`, () => {
      assertEquals(dialect.readEvent(frameOf(null, text)).unknown ?? false, unknown);
      // However it is laid out: what is told by the leading type is told by the whole event as well.
      const spaced = JSON.stringify({ zz_first: 1, ...event as object }, null, 1);
      assertEquals(dialect.readEvent(frameOf(null, spaced)).unknown ?? false, unknown);
    });
  }
}

Deno.test("readEvent() knows an event by its event line alone", () => {
  assertEquals(responsesDialect.readEvent(frameOf("response.output_text.delta", "{}")).unknown, undefined);
  assertEquals(responsesDialect.readEvent(frameOf("zz_new", "{}")).unknown, true);
  assertEquals(messagesDialect.readEvent(frameOf("content_block_stop", "{}")).unknown, undefined);
});

for (const dialect of [responsesDialect, messagesDialect, chatDialect]) {
  Deno.test(`readEvent() of ${dialect.protocol} calls no comment, padding or broken data unknown`, () => {
    for (const data of ["null", "[]", "{broken", "[DONE]", ""]) {
      assertEquals(dialect.readEvent(frameOf(null, data)).unknown, undefined, data);
    }
  });
}
