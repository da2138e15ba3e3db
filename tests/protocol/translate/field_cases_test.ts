/**
 * Real reports of translation gone wrong (field-cases (f), and B044, B045 where they meet translation), each for every
 * pair it names. Those of one pair alone stand with that pair's tests.
 */
import { assertEquals } from "@std/assert";
import { translatorFor } from "../../../lib/protocol/translate/compose.ts";
import type { JsonObject } from "../../../lib/protocol/translate/json.ts";
import type { TranslateTarget } from "../../../lib/protocol/translate/targets.ts";
import type { RequestMemory, TranslatedProtocol } from "../../../lib/protocol/translate/translator.ts";
import { ACCUMULATORS } from "../../support/accumulators.ts";
import { answerContext, clientJson, translateContext, translateStream } from "../../support/translation.ts";

// deno-lint-ignore no-explicit-any -- JSON of three protocols, looked into by each test
type Loose = Record<string, any>;

/** What is asked where a case is about something else. */
const QUESTION: Readonly<Record<TranslatedProtocol, JsonObject>> = {
  chat: { messages: [{ role: "user", content: "hi" }] },
  messages: { messages: [{ role: "user", content: "hi" }] },
  responses: { input: "hi" },
};

function translated(
  client: TranslatedProtocol,
  upstream: TranslatedProtocol,
  body: JsonObject,
  target?: TranslateTarget,
): Loose {
  const result = translatorFor(client, upstream)!.request(
    { ...QUESTION[client], ...body },
    translateContext(target),
  );
  if (!result.ok) throw new Error(`${result.part} refused: ${result.reason}`);
  return JSON.parse(JSON.stringify(result.body));
}

function streamed(
  client: TranslatedProtocol,
  upstream: TranslatedProtocol,
  events: readonly (JsonObject | string)[],
  memory: Partial<RequestMemory> = {},
) {
  const stream = translatorFor(client, upstream)!.startStream(
    answerContext({ includeUsage: true, ...memory }),
  );
  const translator = { ...translatorFor(client, upstream)!, startStream: () => stream };
  const text = translateStream(translator, events);
  return { text, problem: stream.problem, ...ACCUMULATORS[client](text) };
}

function answered(client: TranslatedProtocol, upstream: TranslatedProtocol, body: JsonObject) {
  return translatorFor(client, upstream)!.answer(body, answerContext());
}

/** Calls of an answer in any protocol: name and arguments. */
function callsOf(client: TranslatedProtocol, answer: Loose): [string, unknown][] {
  switch (client) {
    case "chat":
      return (answer.choices[0].message.tool_calls ?? []).map((one: Loose) => [
        one.function.name,
        JSON.parse(one.function.arguments),
      ]);
    case "responses":
      return answer.output.filter((one: Loose) => one.type === "function_call").map((one: Loose) => [
        one.name,
        JSON.parse(one.arguments),
      ]);
    case "messages":
      return answer.content.filter((one: Loose) => one.type === "tool_use").map((one: Loose) => [
        one.name,
        one.input,
      ]);
  }
}

const CLIENTS_OF: Readonly<Record<TranslatedProtocol, readonly TranslatedProtocol[]>> = {
  chat: ["responses", "messages"],
  responses: ["chat", "messages"],
  messages: ["chat", "responses"],
};

// ---- B102

Deno.test("B102: broken arguments stay paired with their result, and are JSON upstream", () => {
  const broken = "{oops";
  const chat = translated("chat", "messages", {
    messages: [
      { role: "user", content: "go" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "t1", type: "function", function: { name: "f", arguments: broken } }],
      },
      { role: "tool", tool_call_id: "t1", content: "bad" },
    ],
  });
  const responses = translated("responses", "messages", {
    input: [
      { role: "user", content: "go" },
      { type: "function_call", call_id: "t1", name: "f", arguments: broken },
      { type: "function_call_output", call_id: "t1", output: "bad" },
    ],
  });
  for (const { messages } of [chat, responses]) {
    assertEquals(messages.slice(1), [
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "t1", name: "f", input: { raw_arguments: broken } }],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "bad" }] },
    ]);
  }
});

// ---- B103

const created = { type: "response.created", response: { id: "resp_1", created_at: 1_760_000_000 } };
const Q = { type: "function_call", id: "fc_1", call_id: "c1", name: "f", arguments: '{"q":1}' };
const done = { type: "response.output_item.done", output_index: 0, item: Q };
const completed = { type: "response.completed", response: { id: "resp_1", status: "completed", output: [] } };
const added = { type: "response.output_item.added", output_index: 0, item: { ...Q, arguments: "" } };
const argumentsDelta = (delta: string) => ({
  type: "response.function_call_arguments.delta",
  output_index: 0,
  item_id: "fc_1",
  delta,
});
const argumentsDone = {
  type: "response.function_call_arguments.done",
  output_index: 0,
  item_id: "fc_1",
  arguments: '{"q":1}',
};

for (const client of CLIENTS_OF.responses) {
  const runs: Record<string, JsonObject[]> = {
    "the closing event": [added, argumentsDone, done],
    "pieces and the closing event": [
      added,
      argumentsDelta('{"q"'),
      argumentsDelta(":1}"),
      argumentsDone,
      done,
    ],
    "the finished item": [done],
  };
  for (const [where, events] of Object.entries(runs)) {
    Deno.test(`B103: ${client} gets arguments once that come in ${where}`, () => {
      const { answer } = streamed(client, "responses", [created, ...events, completed]);
      assertEquals(callsOf(client, answer!), [["f", { q: 1 }]]);
    });
  }
}

// ---- B104, B105, B110: chat upstreams

const chunk = (delta: JsonObject, finish: string | null = null, members: JsonObject = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_760_000_000,
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...members,
});
const piece = (index: number, name: unknown, args: string, id?: string) =>
  chunk({
    tool_calls: [{ index, ...(id ? { id, type: "function" } : {}), function: { name, arguments: args } }],
  });
const usageChunk = {
  id: "chatcmpl-1",
  choices: [],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
};

for (const client of CLIENTS_OF.chat) {
  for (const name of ["", 7, undefined]) {
    Deno.test(`B104: ${client} is told of no call named ${JSON.stringify(name)}, the turn fails`, () => {
      const { answer, problem, text } = streamed(client, "chat", [
        piece(0, name, '{"a":1}', "c1"),
        chunk({}, "tool_calls"),
        "[DONE]",
      ]);
      assertEquals([answer, problem?.kind, text.includes('"tool_use"'), text.includes('"function_call"')], [
        null,
        "malformed",
        false,
        false,
      ]);
    });
  }

  Deno.test(`B105: ${client} gets interleaved calls one after the other, without gaps`, () => {
    const { answer } = streamed(client, "chat", [
      chunk({ content: "before" }),
      piece(0, "f", '{"a"', "c1"),
      piece(1, "g", '{"b"', "c2"),
      chunk({ content: "between" }),
      piece(0, "", ":1}"),
      piece(1, "", ":2}"),
      piece(2, "h", "", "c3"),
      chunk({}, "tool_calls"),
      "[DONE]",
    ]);
    assertEquals(callsOf(client, answer!), [["f", { a: 1 }], ["g", { b: 2 }], ["h", {}]]);
  });

  Deno.test(`B110: ${client} gets the usage that comes after the finish reason`, () => {
    const { answer } = streamed(client, "chat", [
      chunk({ content: "a" }, null, { usage: null }),
      chunk({}, "stop", { usage: null }),
      usageChunk,
      "[DONE]",
    ]);
    const usage = answer!.usage as Loose;
    assertEquals([usage.input_tokens, usage.output_tokens], [7, 3]);
  });
}

Deno.test("B110: usage that nobody reported is absent, or marked as estimated, never zero", () => {
  const events = [chunk({ content: "eight ch" }), chunk({}, "stop"), "[DONE]"];
  assertEquals(streamed("responses", "chat", events).answer!.usage, null);
  const usage = streamed("messages", "chat", events, { estimatedInputTokens: 5 }).answer!.usage as Loose;
  assertEquals([usage.input_tokens, usage.output_tokens, usage.estimated], [5, 2, true]);
});

// ---- B108

const CODEX_USAGE = {
  input_tokens: 12_000,
  input_tokens_details: { cached_tokens: 11_008 },
  output_tokens: 40,
  output_tokens_details: { reasoning_tokens: 25 },
  total_tokens: 12_040,
};
const CLAUDE_USAGE = {
  input_tokens: 992,
  cache_read_input_tokens: 11_008,
  cache_creation_input_tokens: 500,
  output_tokens: 40,
};
const start = (members: JsonObject = {}) => ({
  type: "message_start",
  message: { id: "msg_1", type: "message", role: "assistant", content: [], model: "x", ...members },
});
const textBlock = [
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "ab" } },
  { type: "content_block_stop", index: 0 },
];
const claudeEnd = (stopReason: string | null, usage: JsonObject) => [
  { type: "message_delta", delta: { stop_reason: stopReason, stop_sequence: null }, usage },
  { type: "message_stop" },
];

Deno.test("B108: an Anthropic client counts cached tokens apart", () => {
  const response = { ...completed.response, usage: CODEX_USAGE };
  const whole = answered("messages", "responses", response);
  const stream = streamed("messages", "responses", [created, { ...completed, response }]);
  for (const usage of [whole.ok && whole.body.usage, stream.answer!.usage] as Loose[]) {
    assertEquals([usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens], [992, 11_008, 40]);
  }
});

Deno.test("B108: OpenAI clients count cached tokens inside the prompt", () => {
  const message = { id: "msg_1", content: [{ type: "text", text: "ab" }], stop_reason: "end_turn" };
  const events = [
    start({ usage: { ...CLAUDE_USAGE, output_tokens: 1 } }),
    ...textBlock,
    ...claudeEnd("end_turn", { output_tokens: 40 }),
  ];
  const counts: Record<string, (usage: Loose) => unknown[]> = {
    chat: (
      usage,
    ) => [usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens, usage.completion_tokens],
    responses: (usage) => [usage.input_tokens, usage.input_tokens_details.cached_tokens, usage.output_tokens],
  };
  for (const client of CLIENTS_OF.messages) {
    const whole = answered(client, "messages", { ...message, usage: CLAUDE_USAGE });
    const stream = streamed(client, "messages", events);
    for (const usage of [whole.ok && whole.body.usage, stream.answer!.usage] as Loose[]) {
      assertEquals(counts[client]!(usage), [12_500, 11_008, 40]);
    }
  }
});

// ---- B115

const SCHEMA = {
  type: "object",
  properties: { a: { type: "string" } },
  required: ["a"],
  additionalProperties: false,
};

Deno.test("B115: a schema reaches every upstream deep-equal", () => {
  const chat = {
    response_format: { type: "json_schema", json_schema: { name: "n", strict: true, schema: SCHEMA } },
  };
  const responses = {
    input: "x",
    text: { format: { type: "json_schema", name: "n", strict: true, schema: SCHEMA } },
  };
  const messages = { output_config: { format: { type: "json_schema", schema: SCHEMA } } };
  const claude = { format: { type: "json_schema", schema: SCHEMA } };
  assertEquals(translated("chat", "messages", chat).output_config, claude);
  assertEquals(translated("responses", "messages", responses).output_config, claude);
  assertEquals(translated("chat", "responses", chat).text, responses.text);
  assertEquals(translated("responses", "chat", responses).response_format, chat.response_format);
  const named = { name: "output", schema: SCHEMA, strict: true };
  assertEquals(translated("messages", "responses", messages).text, {
    format: { type: "json_schema", ...named },
  });
  assertEquals(translated("messages", "chat", messages).response_format, {
    type: "json_schema",
    json_schema: named,
  });
});

const unsupported: {
  client: TranslatedProtocol;
  upstream: TranslatedProtocol;
  body: JsonObject;
  part: string;
  target?: TranslateTarget;
}[] = [
  {
    client: "chat",
    upstream: "messages",
    body: { response_format: { type: "json_object" } },
    part: 'response_format.type "json_object"',
  },
  {
    client: "responses",
    upstream: "messages",
    body: { text: { format: { type: "json_object" } } },
    part: 'text.format.type "json_object"',
  },
  {
    client: "messages",
    upstream: "chat",
    body: { output_config: { format: { type: "json_schema", schema: SCHEMA } } },
    part: 'output_config.format.type "json_schema"',
    target: "zai",
  },
  {
    client: "responses",
    upstream: "messages",
    body: { text: { format: { type: "json_schema", name: "n", schema: SCHEMA } } },
    part: 'text.format.type "json_schema"',
    target: "zai",
  },
];
for (const c of unsupported) {
  Deno.test(`B115: ${c.client} on ${c.upstream}${c.target ? ` (${c.target})` : ""} refuses ${c.part}`, () => {
    const body = { ...QUESTION[c.client], ...c.body };
    const result = translatorFor(c.client, c.upstream)!.request(body, translateContext(c.target));
    assertEquals(result.ok ? "translated" : result.part, c.part);
  });
}

// ---- B116 (codex and platform: chat_on_responses_test.ts)

Deno.test("B116: Codex gets none of the fields it refuses from an Anthropic client either", () => {
  const body = translated("messages", "responses", {
    max_tokens: 9,
    temperature: 1,
    top_p: 0.5,
    system: "s",
    metadata: { user_id: "u" },
    messages: [{ role: "user", content: "hi" }],
  }, "codex");
  assertEquals(body, {
    model: "upstream-model",
    instructions: "s",
    input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "hi" }] }],
    store: false,
    stream: true,
    include: ["reasoning.encrypted_content"],
  });
});

// ---- B117

const chatTools = [{ type: "function", function: { name: "f", parameters: SCHEMA } }];
const claudeTools = [{ name: "f", input_schema: SCHEMA }];
const choices: { chat: unknown; responses: unknown; messages: JsonObject }[] = [
  { chat: "none", responses: "none", messages: { type: "none" } },
  { chat: "auto", responses: "auto", messages: { type: "auto", disable_parallel_tool_use: true } },
  { chat: "required", responses: "required", messages: { type: "any", disable_parallel_tool_use: true } },
  {
    chat: { type: "function", function: { name: "f" } },
    responses: { type: "function", name: "f" },
    messages: { type: "tool", name: "f", disable_parallel_tool_use: true },
  },
];
for (const c of choices) {
  Deno.test(`B117: tool_choice ${JSON.stringify(c.chat)} has its counterpart in every direction`, () => {
    const fromChat = { tools: chatTools, tool_choice: c.chat, parallel_tool_calls: false };
    assertEquals(translated("chat", "messages", fromChat).tool_choice, c.messages);
    assertEquals(translated("chat", "responses", fromChat).tool_choice, c.responses);
    const fromClaude = { tools: claudeTools, tool_choice: c.messages };
    const parallel = c.messages.type === "none" ? undefined : false;
    for (const upstream of ["chat", "responses"] as const) {
      const body = translated("messages", upstream, fromClaude);
      assertEquals([body.tool_choice, body.parallel_tool_calls], [c[upstream], parallel]);
      assertEquals(body.tools.length, 1);
    }
  });
}

// ---- B119 (chat and Responses clients: their own tests)

Deno.test("B119: a document of an Anthropic client is carried, a part nobody knows refused by name", () => {
  const part = (block: JsonObject) => ({ messages: [{ role: "user", content: [block] }] });
  const source = { type: "base64", media_type: "application/pdf", data: "AA==" };
  const pdf = part({ type: "document", source, title: "a.pdf" });
  const data = "data:application/pdf;base64,AA==";
  assertEquals(translated("messages", "responses", pdf).input[0].content, [
    { type: "input_file", filename: "a.pdf", file_data: data },
  ]);
  assertEquals(translated("messages", "chat", pdf).messages[0].content, [
    { type: "file", file: { filename: "a.pdf", file_data: data } },
  ]);
  const refused = translatorFor("messages", "chat")!.request(part({ type: "zz_new" }), translateContext());
  assertEquals(refused.ok ? "translated" : refused.part, 'messages[0].content[0].type "zz_new"');
});

// ---- B120

const stopCases: { stop: string; chat: string; status: string; reason: string | null }[] = [
  { stop: "refusal", chat: "content_filter", status: "incomplete", reason: "content_filter" },
  { stop: "max_tokens", chat: "length", status: "incomplete", reason: "max_output_tokens" },
  {
    stop: "model_context_window_exceeded",
    chat: "length",
    status: "incomplete",
    reason: "max_output_tokens",
  },
  { stop: "pause_turn", chat: "stop", status: "completed", reason: null },
  { stop: "stop_sequence", chat: "stop", status: "completed", reason: null },
  { stop: "end_turn", chat: "stop", status: "completed", reason: null },
  { stop: "zz", chat: "stop", status: "completed", reason: null },
];
for (const c of stopCases) {
  Deno.test(`B120: stop reason ${c.stop} ends as ${c.chat} and ${c.status}, whole and streamed`, () => {
    const events = [start(), ...textBlock, ...claudeEnd(c.stop, { input_tokens: 5, output_tokens: 2 })];
    const message = { id: "msg_1", content: [{ type: "text", text: "ab" }], stop_reason: c.stop };
    const chat = [answered("chat", "messages", message), streamed("chat", "messages", events)] as Loose[];
    for (const { body, answer } of chat) {
      assertEquals((body ?? answer).choices[0].finish_reason, c.chat);
    }
    const responses = [answered("responses", "messages", message), streamed("responses", "messages", events)];
    for (const { body, answer } of responses as Loose[]) {
      const { status, incomplete_details } = body ?? answer;
      assertEquals([status, incomplete_details], [c.status, c.reason && { reason: c.reason }]);
    }
  });
}

for (const client of CLIENTS_OF.messages) {
  Deno.test(`B120: ${client} hears of stop reason error as a failure, with what it cost`, () => {
    const events = [start(), ...textBlock, ...claudeEnd("error", { input_tokens: 5, output_tokens: 2 })];
    const { answer, error, problem, text } = streamed(client, "messages", events);
    assertEquals([answer, error?.code, problem?.kind], [null, "server_error", "in_stream"]);
    const told = clientJson(text).map((one) => (one.response as Loose | undefined)?.usage ?? one.usage);
    assertEquals(told.some((usage) => (usage?.total_tokens) === 7), true);
    const message = { content: [{ type: "text", text: "ab" }], stop_reason: "error" };
    assertEquals(answered(client, "messages", message).ok, false);
  });
}

Deno.test("B120: why Claude refused is told as a refusal", () => {
  const message = {
    content: [],
    stop_reason: "refusal",
    stop_details: { type: "refusal", category: "bio", explanation: "Not this." },
  };
  const chat = answered("chat", "messages", message);
  assertEquals(chat.ok && (chat.body.choices as Loose[])[0]!.message.refusal, "Not this.");
});

// ---- B121

for (const client of CLIENTS_OF.messages) {
  Deno.test(`B121: ${client} gets an empty answer at the limit as what it is`, () => {
    const usage = { input_tokens: 8, output_tokens: 1 };
    const whole = answered(client, "messages", {
      id: "msg_1",
      content: [],
      stop_reason: "max_tokens",
      usage,
    });
    const stream = streamed(client, "messages", [start({ usage }), ...claudeEnd("max_tokens", usage)]);
    assertEquals(whole.ok && JSON.parse(JSON.stringify(whole.body)), stream.answer);
    const body = stream.answer as Loose;
    assertEquals(
      client === "chat" ? body.choices[0].message.content : body.output,
      client === "chat" ? "" : [],
    );
  });
}

// ---- B044

const failed = {
  type: "response.failed",
  response: {
    id: "resp_1",
    status: "failed",
    error: { code: "rate_limit_exceeded", message: "try again in 11s" },
  },
};
for (const client of CLIENTS_OF.responses) {
  Deno.test(`B044: ${client} hears of a failed turn as a failure, whole and streamed`, () => {
    const { answer, error, problem } = streamed(client, "responses", [created, failed]);
    assertEquals([answer, error?.type, problem?.kind], [null, "rate_limit_error", "in_stream"]);
    const whole = answered(client, "responses", failed.response);
    assertEquals(
      !whole.ok && whole.problem.kind === "in_stream" && whole.problem.error.message,
      "try again in 11s",
    );
  });
}

// ---- B045

const notAnswers: { name: string; body: JsonObject; kind: string }[] = [
  { name: "no choices", body: { choices: [] }, kind: "malformed" },
  { name: "an error object", body: { error: { message: "no credit" } }, kind: "in_stream" },
  { name: "an error text", body: { error: "no credit" }, kind: "in_stream" },
  { name: "nothing", body: {}, kind: "malformed" },
  { name: "a choice without a message", body: { choices: [{ index: 0 }] }, kind: "malformed" },
];
for (const upstream of ["chat", "responses", "messages"] as const) {
  for (const client of CLIENTS_OF[upstream]) {
    for (const c of notAnswers) {
      Deno.test(`B045: ${client} on ${upstream} makes no answer of ${c.name}`, () => {
        const whole = answered(client, upstream, c.body);
        assertEquals(whole.ok ? "answered" : whole.problem.kind, c.kind);
      });
    }
  }
}
