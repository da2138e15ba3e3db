/** A Responses client (Codex CLI above all) on a chat upstream. */
import { assertEquals } from "@std/assert";
import { translatorFor } from "../../../lib/protocol/translate/compose.ts";
import type { JsonObject } from "../../../lib/protocol/translate/json.ts";
import type { TranslateTarget } from "../../../lib/protocol/translate/targets.ts";
import { accumulateResponses } from "../../support/accumulators.ts";
import { answerContext, translateContext, translateStream } from "../../support/translation.ts";

const translator = translatorFor("responses", "chat")!;

function request(body: JsonObject, target: TranslateTarget = "platform") {
  return translator.request({ model: "m", input: "hi", ...body }, translateContext(target));
}

function translated(body: JsonObject, target: TranslateTarget = "platform"): JsonObject {
  const result = request(body, target);
  if (!result.ok) throw new Error(`refused: ${result.part}: ${result.reason}`);
  return JSON.parse(JSON.stringify(result.body));
}

const BARE = { model: "upstream-model", messages: [{ role: "user", content: "hi" }] };
const S = { type: "object", properties: { a: { type: "number" } } };

const fieldCases: { name: string; body: JsonObject; want: JsonObject; target?: TranslateTarget }[] = [
  { name: "a bare question", body: {}, want: BARE },
  {
    name: "a stream, whose usage is always asked for",
    body: { stream: true },
    want: { ...BARE, stream: true, stream_options: { include_usage: true } },
  },
  {
    name: "the output limit by the name the target knows",
    body: { max_output_tokens: 9 },
    target: "self_hosted",
    want: { ...BARE, max_tokens: 9 },
  },
  {
    name: "instructions and leading developer words as one system message where roles are few",
    target: "zai",
    body: {
      instructions: "a",
      input: [{ role: "developer", content: "b" }, { role: "user", content: "hi" }],
    },
    want: { ...BARE, messages: [{ role: "system", content: "a\n\nb" }, { role: "user", content: "hi" }] },
  },
  {
    name: "instructions and developer words apart on the platform",
    body: {
      instructions: "a",
      input: [{ role: "developer", content: "b" }, { role: "user", content: "hi" }],
    },
    want: {
      ...BARE,
      messages: [
        { role: "system", content: "a" },
        { role: "developer", content: "b" },
        { role: "user", content: "hi" },
      ],
    },
  },
  {
    name: "a schema (B115)",
    body: { text: { format: { type: "json_schema", name: "n", strict: true, schema: S } } },
    want: {
      ...BARE,
      response_format: { type: "json_schema", json_schema: { name: "n", strict: true, schema: S } },
    },
  },
  {
    name: "effort by level",
    body: { reasoning: { effort: "low" } },
    want: { ...BARE, reasoning_effort: "low" },
  },
  {
    name: "effort as a switch where there are no levels",
    body: { reasoning: { effort: "low" } },
    target: "zai",
    want: { ...BARE, thinking: { type: "enabled" } },
  },
  {
    name: "no reasoning as the switch turned off",
    body: { reasoning: { effort: "none" } },
    target: "zai",
    want: { ...BARE, thinking: { type: "disabled" } },
  },
  {
    name: "choices and flags (B117)",
    body: {
      tools: [{ type: "function", name: "f", parameters: S, strict: true }],
      tool_choice: { type: "function", name: "f" },
      parallel_tool_calls: false,
    },
    want: {
      ...BARE,
      tools: [{ type: "function", function: { name: "f", parameters: S, strict: true } }],
      tool_choice: { type: "function", function: { name: "f" } },
      parallel_tool_calls: false,
    },
  },
];
for (const c of fieldCases) {
  Deno.test(`responses on chat: request() carries ${c.name}`, () => {
    assertEquals(translated(c.body, c.target), c.want);
  });
}

const CUSTOM = {
  type: "custom",
  name: "apply",
  format: { type: "grammar", syntax: "lark", definition: "D" },
};

Deno.test("responses on chat: request() tells Codex's own tools as functions where only those are known", () => {
  const result = request({
    tools: [
      CUSTOM,
      { type: "local_shell" },
      { type: "tool_search", execution: "client", description: "find", parameters: S },
      {
        type: "namespace",
        name: "mcp__mail",
        description: "",
        tools: [{ type: "function", name: "send", parameters: S }],
      },
      { type: "web_search", external_web_access: false },
    ],
  }, "self_hosted");
  if (!result.ok) throw new Error(result.part);
  const names = (result.body.tools as { function: { name: string } }[]).map((tool) => tool.function.name);
  assertEquals(names, ["apply", "local_shell", "tool_search", "mcp__mail__send"]);
  assertEquals(result.memory.tools, {
    apply: { form: "custom", name: "apply", namespace: null },
    local_shell: { form: "local_shell", name: "local_shell", namespace: null },
    tool_search: { form: "tool_search", name: "tool_search", namespace: null },
    mcp__mail__send: { form: "function", name: "send", namespace: "mcp__mail" },
  });
  assertEquals(result.notes, [
    "tools[0].format told in the tool's description: no grammars upstream",
    "tools[4] left out: searches an index of OpenAI alone",
  ]);
});

Deno.test("responses on chat: request() keeps free-text tools as they are on the platform", () => {
  const body = translated({ tools: [CUSTOM], tool_choice: { type: "custom", name: "apply" } });
  assertEquals(body.tools, [{
    type: "custom",
    custom: { name: "apply", format: { type: "grammar", grammar: { syntax: "lark", definition: "D" } } },
  }]);
  assertEquals(body.tool_choice, { type: "custom", custom: { name: "apply" } });
});

const PNG = "data:image/png;base64,iVBORw0KGgo=";
const item = (type: string, members: JsonObject) => ({ type, ...members });
const fn = (id: string, name: string, args: string) => ({
  id,
  type: "function",
  function: { name, arguments: args },
});

const inputCases: { name: string; input: unknown[]; want: unknown[] }[] = [
  {
    name: "text and parallel calls of one turn as one message, results behind it",
    input: [
      item("message", { role: "assistant", content: [{ type: "output_text", text: "look" }] }),
      item("function_call", { call_id: "c1", name: "f", arguments: '{"a":1}' }),
      item("function_call", { call_id: "c2", name: "g", arguments: "" }),
      item("function_call_output", { call_id: "c1", output: "one" }),
      item("function_call_output", { call_id: "c2", output: [{ type: "input_text", text: "two" }] }),
    ],
    want: [
      { role: "assistant", content: "look", tool_calls: [fn("c1", "f", '{"a":1}'), fn("c2", "g", "")] },
      { role: "tool", tool_call_id: "c1", content: "one" },
      { role: "tool", tool_call_id: "c2", content: "two" },
    ],
  },
  {
    name: "a picture from a tool behind all results",
    input: [
      item("function_call", { call_id: "c1", name: "f", arguments: "{}" }),
      item("function_call", { call_id: "c2", name: "f", arguments: "{}" }),
      item("function_call_output", { call_id: "c1", output: [{ type: "input_image", image_url: PNG }] }),
      item("function_call_output", { call_id: "c2", output: "two" }),
    ],
    want: [
      { role: "assistant", content: null, tool_calls: [fn("c1", "f", "{}"), fn("c2", "f", "{}")] },
      { role: "tool", tool_call_id: "c1", content: "(attachments follow in the next message)" },
      { role: "tool", tool_call_id: "c2", content: "two" },
      {
        role: "user",
        content: [
          { type: "text", text: "Attachments of the result of tool call c1:" },
          { type: "image_url", image_url: { url: PNG } },
        ],
      },
    ],
  },
  {
    name: "calls of Codex's own tools, paired with their results (B119)",
    input: [
      item("custom_tool_call", { call_id: "c1", name: "apply", input: "*** x" }),
      item("custom_tool_call_output", { call_id: "c1", output: "done" }),
      item("local_shell_call", {
        call_id: "c2",
        id: "lsh_1",
        status: "completed",
        action: { type: "exec", command: ["ls", "-l"], env: {}, timeout_ms: null },
      }),
      item("local_shell_call_output", { id: "c2", output: "total 0" }),
      item("tool_search_call", { call_id: "c3", execution: "client", arguments: { query: "mail" } }),
      item("tool_search_output", { call_id: "c3", tools: [] }),
    ],
    want: [
      { role: "assistant", content: null, tool_calls: [fn("c1", "apply", '{"input":"*** x"}')] },
      { role: "tool", tool_call_id: "c1", content: "done" },
      {
        role: "assistant",
        content: null,
        tool_calls: [fn("c2", "local_shell", '{"command":["ls","-l"],"env":{}}')],
      },
      { role: "tool", tool_call_id: "c2", content: "total 0" },
      { role: "assistant", content: null, tool_calls: [fn("c3", "tool_search", '{"query":"mail"}')] },
      { role: "tool", tool_call_id: "c3", content: "[]" },
    ],
  },
  {
    name: "reasoning of a chat upstream, and none of another's",
    input: [
      item("reasoning", {
        summary: [{ type: "summary_text", text: "hm" }],
        encrypted_content: "hf.txt1:",
      }),
      item("reasoning", { summary: [{ type: "summary_text", text: "sealed" }], encrypted_content: "gAAA" }),
      item("message", { role: "assistant", content: [{ type: "output_text", text: "ok" }] }),
    ],
    want: [{ role: "assistant", content: "ok", reasoning_content: "hm" }],
  },
];
for (const c of inputCases) {
  Deno.test(`responses on chat: request() carries ${c.name}`, () => {
    assertEquals(translated({ input: c.input }, "self_hosted").messages, c.want);
  });
}

const refusedCases: { body: JsonObject; part: string; target?: TranslateTarget }[] = [
  { body: { zz: 1 }, part: "zz" },
  { body: { previous_response_id: "resp_1" }, part: "previous_response_id" },
  { body: { conversation: "conv_1" }, part: "conversation" },
  { body: { background: true }, part: "background" },
  { body: { truncation: "auto" }, part: "truncation" },
  { body: { tools: [{ type: "file_search" }] }, part: 'tools[0].type "file_search"' },
  { body: { tools: [{ type: "web_search" }] }, part: 'tools[0].type "web_search"' },
  {
    body: { text: { format: { type: "json_schema", name: "n", schema: S } } },
    part: 'text.format.type "json_schema"',
    target: "zai",
  },
  { body: { input: [{ type: "zz_new" }] }, part: 'input[0].type "zz_new"' },
  { body: { input: [{ type: "item_reference", id: "x" }] }, part: 'input[0].type "item_reference"' },
  { body: { input: [{ type: "compaction", encrypted_content: "x" }] }, part: 'input[0].type "compaction"' },
  {
    body: { input: [{ role: "user", content: [{ type: "zz_new" }] }] },
    part: 'input[0].content[0].type "zz_new"',
  },
  {
    body: { input: [{ role: "user", content: [{ type: "input_image", file_id: "f" }] }] },
    part: "input[0].content[0].file_id",
  },
  {
    body: { input: [{ role: "user", content: [{ type: "input_file", file_url: "https://x.test" }] }] },
    part: "input[0].content[0].file_url",
  },
];
for (const c of refusedCases) {
  Deno.test(`responses on chat: request() refuses ${c.part} by name`, () => {
    const result = request(c.body, c.target);
    assertEquals(result.ok ? "translated" : result.part, c.part);
  });
}

const chunk = (delta: JsonObject, finish: string | null = null, members: JsonObject = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_760_000_001,
  model: "x",
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...members,
});
const usageChunk = {
  id: "chatcmpl-1",
  choices: [],
  usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
};
const piece = (index: number, name: unknown, args: string, id?: string) => ({
  tool_calls: [{ index, ...(id ? { id, type: "function" } : {}), function: { name, arguments: args } }],
});
const calls = (response: JsonObject | null) =>
  (response!.output as JsonObject[]).map((one) => [one.type, one.name, one.arguments, one.call_id]);

for (const name of ["", 7, undefined]) {
  Deno.test(`responses on chat: a call named ${JSON.stringify(name)} fails the turn (B104)`, () => {
    const stream = translator.startStream(answerContext());
    const told = translateStream({ ...translator, startStream: () => stream }, [
      chunk(piece(0, name, '{"a":', "c1")),
      chunk(piece(0, name, "1}")),
      chunk({}, "tool_calls"),
      "[DONE]",
    ]);
    assertEquals(accumulateResponses(told).error?.code, "server_error");
    assertEquals(stream.problem?.kind, "malformed");
  });
}

Deno.test("responses on chat: an id the upstream left out is made up and stays (B104)", () => {
  const { answer } = accumulateResponses(translateStream(translator, [
    chunk(piece(0, "f", '{"a":')),
    chunk(piece(0, "", "1}")),
    chunk({}, "tool_calls"),
    "[DONE]",
  ]));
  assertEquals(calls(answer), [["function_call", "f", '{"a":1}', "call_1"]]);
});

const interleaved: { name: string; chunks: JsonObject[]; want: unknown[] }[] = [
  {
    name: "two calls in turns",
    chunks: [
      chunk(piece(0, "f", '{"a"', "c1")),
      chunk(piece(1, "g", '{"b"', "c2")),
      chunk(piece(0, "", ":1}")),
      chunk(piece(1, "", ":2}")),
    ],
    want: [["function_call", "f", '{"a":1}', "c1"], ["function_call", "g", '{"b":2}', "c2"]],
  },
  {
    name: "three calls, the third complete first",
    chunks: [
      chunk(piece(0, "f", "", "c1")),
      chunk(piece(1, "g", "", "c2")),
      chunk(piece(2, "h", "{}", "c3")),
      chunk(piece(1, "", "[2]")),
      chunk(piece(0, "", "[1]")),
    ],
    want: [
      ["function_call", "f", "[1]", "c1"],
      ["function_call", "g", "[2]", "c2"],
      ["function_call", "h", "{}", "c3"],
    ],
  },
  {
    name: "text before and between",
    chunks: [
      chunk({ content: "one" }),
      chunk(piece(0, "f", '{"a"', "c1")),
      chunk({ content: "two" }),
      chunk(piece(0, "", ":1}")),
      chunk(piece(1, "g", "", "c2")),
    ],
    want: [
      ["message", undefined, undefined, undefined],
      ["function_call", "f", '{"a":1}', "c1"],
      ["message", undefined, undefined, undefined],
      ["function_call", "g", "{}", "c2"],
    ],
  },
  {
    name: "one index for every call, told apart by their ids",
    chunks: [chunk(piece(0, "f", "{}", "c1")), chunk(piece(0, "g", "{}", "c2"))],
    want: [["function_call", "f", "{}", "c1"], ["function_call", "g", "{}", "c2"]],
  },
];
for (const c of interleaved) {
  Deno.test(`responses on chat: a stream keeps ${c.name} apart (B105)`, () => {
    const told = translateStream(translator, [...c.chunks, chunk({}, "tool_calls"), "[DONE]"]);
    assertEquals(calls(accumulateResponses(told).answer), c.want);
  });
}

const usageCases: { name: string; events: (JsonObject | string)[]; want: unknown }[] = [
  {
    name: "in a chunk of its own, after nulls",
    events: [
      chunk({ content: "a" }, null, { usage: null }),
      chunk({}, "stop", { usage: null }),
      usageChunk,
      "[DONE]",
    ],
    want: [7, 3, 10],
  },
  {
    name: "with the finish reason, and no [DONE]",
    events: [chunk({ content: "a" }), chunk({}, "stop", { usage: usageChunk.usage })],
    want: [7, 3, 10],
  },
  { name: "never", events: [chunk({ content: "a" }), chunk({}, "stop"), "[DONE]"], want: null },
];
for (const c of usageCases) {
  Deno.test(`responses on chat: a stream tells the usage that comes ${c.name} (B110)`, () => {
    const usage = accumulateResponses(translateStream(translator, c.events)).answer!.usage as
      | JsonObject
      | null;
    assertEquals(usage && [usage.input_tokens, usage.output_tokens, usage.total_tokens], c.want);
  });
}

const finishCases: { finish: string; status: string; reason: string | null }[] = [
  { finish: "stop", status: "completed", reason: null },
  { finish: "tool_calls", status: "completed", reason: null },
  { finish: "zz", status: "completed", reason: null },
  { finish: "length", status: "incomplete", reason: "max_output_tokens" },
  { finish: "content_filter", status: "incomplete", reason: "content_filter" },
];
for (const c of finishCases) {
  Deno.test(`responses on chat: finish reason ${c.finish} ends as ${c.status} ${c.reason ?? ""}`, () => {
    const told = translateStream(translator, [chunk({ content: "a" }), chunk({}, c.finish), "[DONE]"]);
    const answer = accumulateResponses(told).answer!;
    assertEquals([answer.status, answer.incomplete_details], [c.status, c.reason && { reason: c.reason }]);
  });
}

for (const finish of ["network_error", "sensitive", "error"]) {
  Deno.test(`responses on chat: finish reason ${finish} is a failure`, () => {
    const stream = translator.startStream(answerContext());
    const told = translateStream({ ...translator, startStream: () => stream }, [
      chunk({ content: "a" }),
      chunk({}, finish),
      "[DONE]",
    ]);
    assertEquals(accumulateResponses(told).answer, null);
    assertEquals(stream.problem?.kind === "in_stream" && stream.problem.error.code, finish);
  });
}

Deno.test("responses on chat: answers name Codex's own tools as Codex does", () => {
  const tools = {
    apply: { form: "custom", name: "apply", namespace: null },
    local_shell: { form: "local_shell", name: "local_shell", namespace: null },
    tool_search: { form: "tool_search", name: "tool_search", namespace: null },
    mcp__mail__send: { form: "function", name: "send", namespace: "mcp__mail" },
  } as const;
  const told = translateStream(translator, [
    chunk(piece(0, "apply", '{"input":"*** ', "c1")),
    chunk(piece(0, "", 'x"}')),
    chunk(piece(1, "local_shell", '{"command":["ls"],"timeout_ms":5}', "c2")),
    chunk(piece(2, "tool_search", '{"query":"mail"}', "c3")),
    chunk(piece(3, "mcp__mail__send", "{}", "c4")),
    chunk({}, "tool_calls"),
    "[DONE]",
  ], answerContext({ tools }));
  const output = accumulateResponses(told).answer!.output as JsonObject[];
  assertEquals(output.map(({ id: _id, status: _status, ...rest }) => rest), [
    { type: "custom_tool_call", call_id: "c1", name: "apply", input: "*** x" },
    {
      type: "local_shell_call",
      call_id: "c2",
      action: { type: "exec", command: ["ls"], timeout_ms: 5, env: {} },
    },
    { type: "tool_search_call", call_id: "c3", execution: "client", arguments: { query: "mail" } },
    { type: "function_call", call_id: "c4", name: "send", namespace: "mcp__mail", arguments: "{}" },
  ]);
});

const badStreams: { name: string; events: (JsonObject | string)[]; problem: string }[] = [
  { name: "nothing but its end", events: ["[DONE]"], problem: "malformed" },
  { name: "no JSON", events: ["{oops"], problem: "malformed" },
  { name: "an error chunk", events: [{ error: { code: "1302", message: "slow" } }], problem: "in_stream" },
];
for (const c of badStreams) {
  Deno.test(`responses on chat: a stream of ${c.name} fails (B045)`, () => {
    const stream = translator.startStream(answerContext());
    const told = translateStream({ ...translator, startStream: () => stream }, c.events);
    assertEquals(accumulateResponses(told).answer, null);
    assertEquals(stream.problem?.kind, c.problem);
  });
}

Deno.test("responses on chat: end() words a failure after the opening with the same response id", () => {
  const failure = { status: 502, code: "upstream_unavailable", message: "gone" };
  const told = translateStream(translator, [chunk({ content: "a" })], answerContext(), {
    kind: "failed",
    failure,
  });
  assertEquals(accumulateResponses(told).error, { code: "upstream_unavailable", message: "gone" });
});
