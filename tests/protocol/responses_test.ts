import { assert, assertEquals } from "@std/assert";
import { responsesDialect } from "../../lib/protocol/responses.ts";
import { frameOf } from "../../lib/protocol/sse.ts";
import type { EventClass, EventFacts } from "../../lib/protocol/stream_dialect.ts";
import { event, frame } from "./frames.ts";

const { readEvent } = responsesDialect;

/** Every type of wire-facts 2.1 and some nobody knows. */
const types: [EventClass, string[]][] = [
  ["lifecycle", [
    "keepalive",
    "codex.keepalive",
    "codex.response.metadata",
    "codex.rate_limits",
    "response.created",
    "response.queued",
    "response.in_progress",
    "responsesapi.websocket_timing",
  ]],
  ["output", [
    "response.output_item.added",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.done",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.done",
    "response.mcp_call.in_progress",
    "response.web_search_call.searching",
    "response.image_generation_call.partial_image",
    "response.code_interpreter_call.completed",
    "response.output_item.done",
    "response.something_new",
    "codex.something_new",
    "zz_new",
  ]],
  ["success", ["response.completed", "response.done", "response.incomplete"]],
  ["failure", ["response.failed", "error"]],
];
for (const [want, names] of types) {
  for (const type of names) {
    Deno.test(`readEvent() takes ${type} for ${want}, with and without its event line, wherever the type stands`, () => {
      const rest = { sequence_number: 1, response: { id: "r1" }, error: null };
      for (
        const text of [
          event(type, rest),
          `data: ${JSON.stringify({ type, ...rest })}\n\n`,
          `data: ${JSON.stringify({ ...rest, type })}\n\n`,
          `event: message\ndata: ${JSON.stringify({ ...rest, type })}\n\n`,
          `event: ${type}\ndata: ${JSON.stringify(rest)}\n\n`,
          `event: ${type}\ndata: ${
            JSON.stringify({ type, ...rest }, null, 1).replaceAll("\n", "\ndata: ")
          }\n\n`,
        ]
      ) {
        const facts = readEvent(frame(text));
        assertEquals([facts.class, facts.type], [want, type], text);
      }
    });
  }
}

const others: { name: string; text: string; want: EventClass }[] = [
  { name: "a comment", text: ": ping\n\n", want: "comment" },
  { name: "retry only", text: "retry: 10\n\n", want: "comment" },
  { name: "an event line alone", text: "event: response.completed\n\n", want: "comment" },
  { name: "B068 null", text: "data: null\n\n", want: "padding" },
  { name: "B068 true", text: "data: true\n\n", want: "padding" },
  { name: "B068 0", text: "data: 0\n\n", want: "padding" },
  { name: "B068 []", text: "data: []\n\n", want: "padding" },
  { name: 'B068 "x"', text: 'data: "x"\n\n', want: "padding" },
  { name: "empty data", text: "data:\n\n", want: "padding" },
  {
    name: "null under a terminal's name",
    text: "event: response.completed\ndata: null\n\n",
    want: "padding",
  },
  { name: "[DONE], which ends chat alone", text: "data: [DONE]\n\n", want: "padding" },
  { name: "B068 bad JSON", text: "data: {bad json\n\n", want: "malformed" },
  {
    name: "bad JSON behind a type",
    text: 'data: {"type":"response.output_text.delta","delta":"x\n\n',
    want: "malformed",
  },
  {
    name: "a terminal that is cut",
    text: 'data: {"type":"response.completed","response":{"id":}\n\n',
    want: "malformed",
  },
  { name: "plain text", text: "data: hello\n\n", want: "malformed" },
  { name: "an object without type", text: 'data: {"a":1}\n\n', want: "output" },
  { name: "an error without type", text: 'data: {"error":{"message":"no"}}\n\n', want: "failure" },
  {
    name: "an error under a foreign name",
    text: 'event: message\ndata: {"error":{"code":"x"}}\n\n',
    want: "failure",
  },
  {
    name: "an output event that names an error",
    text: 'data: {"type":"zz_new","error":{"code":"x"}}\n\n',
    want: "output",
  },
];
for (const c of others) {
  Deno.test(`readEvent() takes for ${c.want}: ${c.name}`, () => {
    assertEquals(readEvent(frame(c.text)).class, c.want);
  });
}

Deno.test("readEvent() believes the data's type rather than the event line", () => {
  const facts = readEvent(
    frame('event: response.completed\ndata: {"type":"response.output_text.delta"}\n\n'),
  );
  assertEquals([facts.class, facts.type], ["output", "response.output_text.delta"]);
});

Deno.test("readEvent() never decodes an output event", () => {
  const big = frame(event("response.output_text.delta", { delta: "x" }));
  const guarded = {
    ...big,
    event: big.event,
    typeHint: () => big.typeHint(),
    dataBytes: () => big.dataBytes(),
  };
  const facts = readEvent({
    ...guarded,
    data: () => {
      throw new Error("decoded");
    },
  });
  assertEquals(facts.class, "output");
});

Deno.test("readEvent() reads the id of response.created, whatever it echoes", () => {
  const text = event("response.created", {
    response: { instructions: 'say "id": "no"', tools: [{ id: "no" }], id: "resp_1", usage: null },
  });
  const facts = readEvent(frame(text));
  assertEquals([facts.responseId, facts.usage], ["resp_1", null]);
});

for (const type of ["response.completed", "response.done", "response.incomplete"]) {
  Deno.test(`readEvent() reads id and usage of ${type}`, () => {
    const usage = {
      input_tokens: 12000,
      input_tokens_details: { cached_tokens: 11008 },
      output_tokens: 40,
      output_tokens_details: { reasoning_tokens: 25 },
      total_tokens: 12040,
    };
    const facts = readEvent(
      frame(event(type, { response: { id: "r1", status: "completed", output: [], usage } })),
    );
    assertEquals(facts.usage, {
      inputTokens: 12000,
      cachedTokens: 11008,
      outputTokens: 40,
      reasoningTokens: 25,
    });
    assertEquals(facts.responseId, "r1");
    assertEquals(facts.failure, null);
  });
}

const failures: { name: string; text: string; want: Partial<NonNullable<EventFacts["failure"]>> }[] = [
  {
    name: "form A",
    text: event("response.failed", {
      sequence_number: 3,
      response: {
        id: "r1",
        status: "failed",
        error: { code: "rate_limit_exceeded", message: "try again in 11s" },
        usage: null,
      },
    }),
    want: { code: "rate_limit_exceeded", message: "try again in 11s", type: null },
  },
  {
    name: "form B",
    text: event("error", {
      error: { type: "service_unavailable_error", code: "server_is_overloaded", message: "m", param: null },
    }),
    want: { code: "server_is_overloaded", type: "service_unavailable_error", message: "m" },
  },
  {
    name: "form C",
    text: event("error", { code: "server_error", message: "m", param: null }),
    want: { code: "server_error", message: "m" },
  },
  {
    name: "form F with its reset",
    text: event("response.failed", {
      response: { error: { type: "usage_limit_reached", resets_at: 1775317531 } },
    }),
    want: { type: "usage_limit_reached", resetsAtMs: 1_775_317_531_000 },
  },
  {
    name: "a WebSocket frame with its status",
    text: event("error", { status: 429, error: { type: "usage_limit_reached" }, headers: { "X-A": "1" } }),
    want: { type: "usage_limit_reached", status: 429 },
  },
  {
    name: "a failure without any words",
    text: event("response.failed", { response: { id: "r1" } }),
    want: { code: null, message: null },
  },
];
for (const c of failures) {
  Deno.test(`readEvent() reads the failure of ${c.name}`, () => {
    const facts = readEvent(frame(c.text));
    assertEquals(facts.class, "failure");
    for (const [key, value] of Object.entries(c.want)) {
      assertEquals(facts.failure![key as keyof typeof c.want], value, key);
    }
  });
}

Deno.test("readEvent() takes a terminal around a failed response for a failure, and keeps its usage", () => {
  const response = {
    id: "r1",
    status: "failed",
    error: { code: "server_error" },
    usage: { input_tokens: 5, output_tokens: 2 },
  };
  const facts = readEvent(frame(event("response.done", { response })));
  assertEquals([facts.class, facts.failure?.code, facts.usage?.inputTokens], ["failure", "server_error", 5]);
});

const quotas: { name: string; json: Record<string, unknown>; want: EventFacts["quota"] }[] = [
  {
    name: "both windows, credits and plan",
    json: {
      plan_type: "pro",
      rate_limits: {
        primary: { used_percent: 42.5, window_minutes: 300, reset_at: 1775317531 },
        secondary: { used_percent: 100, window_minutes: 10080, resets_at: 1775900000 },
      },
      credits: { has_credits: false, unlimited: false, balance: "0" },
      metered_limit_name: "codex",
    },
    want: {
      windows: [
        { name: "5h", usedPercent: 42.5, resetAtMs: 1_775_317_531_000, modelFamily: null },
        { name: "7d", usedPercent: 100, resetAtMs: 1_775_900_000_000, modelFamily: null },
      ],
      limitReached: null,
      servesBeyondWindows: false,
      creditsAvailable: false,
      plan: "pro",
    },
  },
  {
    name: "windows in the other slots, one absent, one of odd length",
    json: {
      rate_limits: {
        primary: { used_percent: 1, window_minutes: 10080, reset_at: null },
        secondary: { used_percent: 0, window_minutes: 0, reset_at: 0 },
        tertiary: { used_percent: 3, window_minutes: 43200 },
      },
      limit_name: "premium",
    },
    want: {
      windows: [
        { name: "7d", usedPercent: 1, resetAtMs: null, modelFamily: null },
        { name: "30d", usedPercent: 3, resetAtMs: null, modelFamily: null },
      ],
      limitReached: null,
      servesBeyondWindows: false,
      creditsAvailable: null,
      plan: null,
    },
  },
  {
    name: "a model family, with unlimited credits",
    json: {
      rate_limits: { primary: { used_percent: 100, reset_at: 1775317531 }, secondary: null },
      credits: { has_credits: false, unlimited: true },
      limit_id: "codex-bengalfox",
    },
    want: {
      windows: [{
        name: "primary",
        usedPercent: 100,
        resetAtMs: 1_775_317_531_000,
        modelFamily: "codex-bengalfox",
      }],
      limitReached: null,
      servesBeyondWindows: true,
      creditsAvailable: true,
      plan: null,
    },
  },
  {
    name: "B070 limit_reached",
    json: { rate_limits: { limit_reached: true } },
    want: { windows: [], limitReached: true, servesBeyondWindows: false, creditsAvailable: null, plan: null },
  },
  {
    name: "allowed false",
    json: { rate_limits: { allowed: false } },
    want: { windows: [], limitReached: true, servesBeyondWindows: false, creditsAvailable: null, plan: null },
  },
  { name: "nothing readable", json: { rate_limits: null }, want: null },
];
for (const c of quotas) {
  Deno.test(`readEvent() reads codex.rate_limits: ${c.name}`, () => {
    const facts = readEvent(frame(event("codex.rate_limits", c.json)));
    assertEquals([facts.class, facts.failure], ["lifecycle", null]);
    assertEquals(facts.quota, c.want);
  });
}

Deno.test("readEvent() reads a WebSocket frame wrapped by frameOf()", () => {
  const facts = readEvent(frameOf(null, '{"type":"response.completed","response":{"id":"r9"}}'));
  assertEquals([facts.class, facts.responseId], ["success", "r9"]);
});

Deno.test("readEvent() gives one shared, frozen object for plain events of a type", () => {
  const read = () => readEvent(frame(event("response.output_text.delta", { delta: "x" })));
  assert(read() === read());
  assert(Object.isFrozen(read()));
});
