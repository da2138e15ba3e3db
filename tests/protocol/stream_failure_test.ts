import { assert, assertEquals } from "@std/assert";
import { chatDialect } from "../../lib/protocol/chat.ts";
import { messagesDialect } from "../../lib/protocol/messages.ts";
import { responsesDialect } from "../../lib/protocol/responses.ts";
import { renderStreamFailure, translateBareError } from "../../lib/protocol/answer.ts";
import { event, frame, textOf } from "./frames.ts";

const FAILURE = { code: "stream_incomplete", message: "The answer ended early", requestId: "req_1" };

Deno.test("renderStreamFailure() ends a Responses stream with response.failed", () => {
  const bytes = renderStreamFailure("responses", { ...FAILURE, responseId: "resp_7", sequenceNumber: 12 });
  const read = frame(textOf(bytes));
  assertEquals([read.closed, read.event], [true, "response.failed"]);
  const json = JSON.parse(read.data()!);
  assertEquals([json.type, json.sequence_number], ["response.failed", 12]);
  assertEquals([json.response.id, json.response.object, json.response.status], [
    "resp_7",
    "response",
    "failed",
  ]);
  assertEquals(json.response.error, { code: "stream_incomplete", message: "The answer ended early" });
  assertEquals(responsesDialect.readEvent(read).failure?.code, "stream_incomplete");
});

Deno.test("renderStreamFailure() makes an id where the client has seen none, and no sequence number", () => {
  const json = JSON.parse(frame(textOf(renderStreamFailure("responses", FAILURE))).data()!);
  assertEquals([json.response.id, "sequence_number" in json], ["resp_req_1", false]);
});

for (const protocol of ["chat", "raw"] as const) {
  Deno.test(`renderStreamFailure() ends a ${protocol} stream with an error chunk and no [DONE]`, () => {
    const text = textOf(renderStreamFailure(protocol, FAILURE));
    const read = frame(text);
    assertEquals(read.event, null);
    assertEquals(JSON.parse(read.data()!), {
      error: {
        message: "The answer ended early",
        type: "server_error",
        code: "stream_incomplete",
        param: null,
      },
    });
    assert(!text.includes("[DONE]"));
    assertEquals(chatDialect.readEvent(read).class, "failure");
  });
}

const anthropicTypes: [string, string][] = [
  ["stream_incomplete", "api_error"],
  ["upstream_unavailable", "api_error"],
  ["rate_limited", "rate_limit_error"],
  ["overloaded", "overloaded_error"],
];
for (const [code, type] of anthropicTypes) {
  Deno.test(`renderStreamFailure() ends a messages stream with an error event of ${type} for ${code}`, () => {
    const read = frame(textOf(renderStreamFailure("messages", { ...FAILURE, code })));
    assertEquals(read.event, "error");
    assertEquals(JSON.parse(read.data()!), {
      type: "error",
      error: { type, message: "The answer ended early", code },
      request_id: "req_1",
    });
    assertEquals(messagesDialect.readEvent(read).class, "failure");
  });
}

const bare: { name: string; text: string; error: Record<string, unknown>; sequence?: number }[] = [
  {
    name: "form B",
    text: event("error", {
      sequence_number: 2,
      error: {
        type: "service_unavailable_error",
        code: "server_is_overloaded",
        message: "Overloaded",
        param: null,
      },
    }),
    error: { code: "server_is_overloaded", message: "Overloaded", type: "service_unavailable_error" },
    sequence: 2,
  },
  {
    name: "form C",
    text: event("error", {
      code: "rate_limit_exceeded",
      message: "Please try again in 20s",
      param: "p",
      sequence_number: 4,
    }),
    error: { code: "rate_limit_exceeded", message: "Please try again in 20s", param: "p" },
    sequence: 4,
  },
  {
    name: "a quota with its reset",
    text: event("error", {
      error: {
        type: "usage_limit_reached",
        message: "m",
        plan_type: "pro",
        resets_at: 1775317531,
        resets_in_seconds: 60,
      },
    }),
    error: {
      code: "usage_limit_reached",
      message: "m",
      type: "usage_limit_reached",
      plan_type: "pro",
      resets_at: 1775317531,
      resets_in_seconds: 60,
    },
  },
  {
    name: "an error as text",
    text: event("error", { error: "boom today" }),
    error: { code: "server_error", message: "boom today" },
  },
  {
    name: "an error without words",
    text: event("error"),
    error: { code: "server_error", message: "The upstream reported an error" },
  },
  {
    name: "an error object without type",
    text: 'data: {"error":{"code":"x","message":"m"}}\n\n',
    error: { code: "x", message: "m" },
  },
  {
    name: "an error named by its event line",
    text: 'event: error\ndata: {"code":"server_error","message":"m"}\n\n',
    error: { code: "server_error", message: "m" },
  },
];
for (const c of bare) {
  Deno.test(`translateBareError() gives response.failed for ${c.name}`, () => {
    const bytes = translateBareError(frame(c.text), { requestId: "req_1", responseId: "resp_7" });
    const read = frame(textOf(bytes!));
    assertEquals(read.event, "response.failed");
    const json = JSON.parse(read.data()!);
    assertEquals(json.response.error, c.error);
    assertEquals([json.response.id, json.sequence_number], ["resp_7", c.sequence]);
  });
}

for (
  const text of [
    event("response.failed", { response: { error: { code: "x" } } }),
    event("response.output_text.delta", { delta: "error" }),
    'data: {"a":1}\n\n',
    "data: null\n\n",
    "data: {bad\n\n",
    ": error\n\n",
  ]
) {
  Deno.test(`translateBareError() leaves alone ${JSON.stringify(text)}`, () => {
    assertEquals(translateBareError(frame(text), { requestId: "req_1" }), null);
  });
}
