/** A chat client on a Responses upstream: request, whole answer and stream. */
import { assertEquals } from "@std/assert";
import { translatorFor } from "../../../lib/protocol/translate/compose.ts";
import type { JsonObject } from "../../../lib/protocol/translate/json.ts";
import type { TranslateTarget } from "../../../lib/protocol/translate/targets.ts";
import { accumulateChat } from "../../support/accumulators.ts";
import { answerContext, clientJson, translateContext, translateStream } from "../../support/translation.ts";

const translator = translatorFor("chat", "responses")!;

function request(body: JsonObject, target: TranslateTarget = "platform") {
  const { messages, ...rest } = { messages: [{ role: "user", content: "hi" }], ...body };
  return translator.request({ model: "m", messages, ...rest }, translateContext(target));
}

function translated(body: JsonObject, target: TranslateTarget = "platform"): JsonObject {
  const result = request(body, target);
  if (!result.ok) throw new Error(`refused: ${result.part}: ${result.reason}`);
  return JSON.parse(JSON.stringify(result.body));
}

const HI = { type: "message", role: "user", content: [{ type: "input_text", text: "hi" }] };
const F = { type: "object", properties: { a: { type: "number" } } };
const BARE = { model: "upstream-model", input: [HI], store: false };

const fieldCases: { name: string; body: JsonObject; want: JsonObject; target?: TranslateTarget }[] = [
  { name: "a bare question", body: {}, want: BARE },
  {
    name: "the newer of two output limits",
    body: { max_tokens: 5, max_completion_tokens: 7 },
    want: { ...BARE, max_output_tokens: 7 },
  },
  {
    name: "sampling, labels and tiers under their own names",
    body: {
      temperature: 0.2,
      top_p: 0.9,
      user: "u",
      metadata: { k: "v" },
      service_tier: "flex",
      prompt_cache_key: "p",
      store: true,
    },
    want: {
      ...BARE,
      temperature: 0.2,
      top_p: 0.9,
      user: "u",
      metadata: { k: "v" },
      service_tier: "flex",
      prompt_cache_key: "p",
      store: true,
    },
  },
  {
    name: "values that say the default",
    body: {
      n: 1,
      frequency_penalty: 0,
      presence_penalty: 0,
      logit_bias: {},
      modalities: ["text"],
      seed: null,
    },
    want: BARE,
  },
  {
    name: "effort, with its reasoning kept for the next turn",
    body: { reasoning_effort: "high", verbosity: "low" },
    want: {
      ...BARE,
      text: { verbosity: "low" },
      reasoning: { effort: "high" },
      include: ["reasoning.encrypted_content"],
    },
  },
  {
    name: "log probabilities",
    body: { logprobs: true, top_logprobs: 2 },
    want: { ...BARE, top_logprobs: 2, include: ["message.output_text.logprobs"] },
  },
  {
    name: "a function, lax unless it says strict",
    body: {
      tools: [
        { type: "function", function: { name: "f", description: "d", parameters: F } },
        { type: "function", function: { name: "g", parameters: F, strict: true } },
        { type: "function", function: { name: "h" } },
      ],
    },
    want: {
      ...BARE,
      tools: [
        { type: "function", name: "f", description: "d", parameters: F, strict: false },
        { type: "function", name: "g", parameters: F, strict: true },
        { type: "function", name: "h", parameters: { type: "object", properties: {} }, strict: false },
      ],
    },
  },
  {
    name: "a custom tool with a grammar, and web search",
    body: {
      tools: [{
        type: "custom",
        custom: {
          name: "p",
          format: { type: "grammar", grammar: { syntax: "lark", definition: "start: A" } },
        },
      }],
      web_search_options: {
        search_context_size: "low",
        user_location: { type: "approximate", approximate: { city: "Bern" } },
      },
    },
    want: {
      ...BARE,
      tools: [
        { type: "custom", name: "p", format: { type: "grammar", syntax: "lark", definition: "start: A" } },
        {
          type: "web_search",
          search_context_size: "low",
          user_location: { type: "approximate", city: "Bern" },
        },
      ],
    },
  },
  {
    name: "all that Codex demands, and nothing it refuses (B116)",
    target: "codex",
    body: {
      temperature: 1,
      top_p: 1,
      max_tokens: 5,
      metadata: { k: "v" },
      user: "u",
      prompt_cache_retention: "24h",
      store: true,
      stream_options: { include_obfuscation: false, include_usage: true },
      prompt_cache_key: "p",
      messages: [{ role: "system", content: "be brief" }, { role: "user", content: "hi" }],
    },
    want: {
      model: "upstream-model",
      input: [
        { type: "message", role: "developer", content: [{ type: "input_text", text: "be brief" }] },
        HI,
      ],
      prompt_cache_key: "p",
      store: false,
      stream: true,
      instructions: "",
      include: ["reasoning.encrypted_content"],
    },
  },
];
for (const c of fieldCases) {
  Deno.test(`chat on responses: request() carries ${c.name}`, () => {
    assertEquals(translated(c.body, c.target), c.want);
  });
}

Deno.test("chat on responses: request() notes every field Codex refuses (B116)", () => {
  const result = request({ temperature: 1, max_tokens: 5, store: true }, "codex");
  assertEquals(result.ok && result.notes, [
    "max_completion_tokens left out: the Codex backend refuses it",
    "temperature left out: the Codex backend refuses it",
    "store set to false: the Codex backend keeps nothing",
  ]);
});

const choiceCases: { name: string; choice: unknown; want: unknown }[] = [
  { name: "none", choice: "none", want: "none" },
  { name: "auto", choice: "auto", want: "auto" },
  { name: "required", choice: "required", want: "required" },
  {
    name: "a named function",
    choice: { type: "function", function: { name: "f" } },
    want: { type: "function", name: "f" },
  },
  {
    name: "a named custom tool",
    choice: { type: "custom", custom: { name: "p" } },
    want: { type: "custom", name: "p" },
  },
  {
    name: "allowed tools",
    choice: {
      type: "allowed_tools",
      allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "f" } }] },
    },
    want: { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "f" }] },
  },
];
for (const c of choiceCases) {
  Deno.test(`chat on responses: request() keeps tool_choice ${c.name} and the parallel flag (B117)`, () => {
    const body = translated({ tool_choice: c.choice, parallel_tool_calls: false });
    assertEquals([body.tool_choice, body.parallel_tool_calls], [c.want, false]);
  });
}

const formatCases: { name: string; format: JsonObject; want: JsonObject }[] = [
  {
    name: "a schema with name and strict",
    format: { type: "json_schema", json_schema: { name: "n", strict: true, schema: F, description: "d" } },
    want: { type: "json_schema", name: "n", strict: true, schema: F, description: "d" },
  },
  { name: "any object", format: { type: "json_object" }, want: { type: "json_object" } },
  { name: "plain text", format: { type: "text" }, want: { type: "text" } },
];
for (const c of formatCases) {
  Deno.test(`chat on responses: request() demands ${c.name} (B115)`, () => {
    assertEquals(translated({ response_format: c.format }).text, { format: c.want });
  });
}

const DATA_URL = "data:image/png;base64,iVBORw0KGgo=";
const CALL = { id: "c1", type: "function", function: { name: "f", arguments: '{"a":1}' } };

const messageCases: { name: string; messages: JsonObject[]; want: unknown[] }[] = [
  {
    name: "system and developer in their places",
    messages: [
      { role: "system", content: "s" },
      { role: "user", content: "u" },
      { role: "developer", content: [{ type: "text", text: "d" }] },
    ],
    want: [
      { type: "message", role: "system", content: [{ type: "input_text", text: "s" }] },
      { type: "message", role: "user", content: [{ type: "input_text", text: "u" }] },
      { type: "message", role: "developer", content: [{ type: "input_text", text: "d" }] },
    ],
  },
  {
    name: "images by URL and in base64, files by data and id",
    messages: [{
      role: "user",
      content: [
        { type: "image_url", image_url: { url: "https://x.test/a.png", detail: "low" } },
        { type: "image_url", image_url: { url: DATA_URL } },
        { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" } },
        { type: "file", file: { file_id: "file-1" } },
      ],
    }],
    want: [{
      type: "message",
      role: "user",
      content: [
        { type: "input_image", image_url: "https://x.test/a.png", detail: "low" },
        { type: "input_image", image_url: DATA_URL, detail: "auto" },
        { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" },
        { type: "input_file", file_id: "file-1" },
      ],
    }],
  },
  {
    name: "a turn with text, parallel calls and their results, an image among them",
    messages: [
      { role: "assistant", content: "look", tool_calls: [CALL, { ...CALL, id: "c2" }] },
      { role: "tool", tool_call_id: "c1", content: "one" },
      {
        role: "tool",
        tool_call_id: "c2",
        content: [{ type: "text", text: "two" }, { type: "image_url", image_url: { url: DATA_URL } }],
      },
    ],
    want: [
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "look" }] },
      { type: "function_call", call_id: "c1", name: "f", arguments: '{"a":1}' },
      { type: "function_call", call_id: "c2", name: "f", arguments: '{"a":1}' },
      { type: "function_call_output", call_id: "c1", output: "one" },
      {
        type: "function_call_output",
        call_id: "c2",
        output: [
          { type: "input_text", text: "two" },
          { type: "input_image", image_url: DATA_URL, detail: "auto" },
        ],
      },
    ],
  },
  {
    name: "broken arguments as they are, paired with their result (B102)",
    messages: [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ ...CALL, function: { name: "f", arguments: "{oops" } }],
      },
      { role: "tool", tool_call_id: "c1", content: "bad" },
    ],
    want: [
      { type: "function_call", call_id: "c1", name: "f", arguments: "{oops" },
      { type: "function_call_output", call_id: "c1", output: "bad" },
    ],
  },
  {
    name: "a custom call and its result",
    messages: [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c9", type: "custom", custom: { name: "p", input: "*** Begin" } }],
      },
      { role: "tool", tool_call_id: "c9", content: "ok" },
    ],
    want: [
      { type: "custom_tool_call", call_id: "c9", name: "p", input: "*** Begin" },
      { type: "custom_tool_call_output", call_id: "c9", output: "ok" },
    ],
  },
  {
    name: "a refusal",
    messages: [{ role: "assistant", content: null, refusal: "no" }],
    want: [{ type: "message", role: "assistant", content: [{ type: "refusal", refusal: "no" }] }],
  },
  {
    name: "Anthropic parts inside chat content, paired (B119)",
    messages: [
      {
        role: "assistant",
        content: [
          { type: "text", text: "t" },
          { type: "tool_use", id: "toolu_1", name: "f", input: { a: 1 } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "r" }] },
          { type: "text", text: "go on" },
        ],
      },
    ],
    want: [
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "t" }] },
      { type: "function_call", call_id: "toolu_1", name: "f", arguments: '{"a":1}' },
      { type: "function_call_output", call_id: "toolu_1", output: [{ type: "input_text", text: "r" }] },
      { type: "message", role: "user", content: [{ type: "input_text", text: "go on" }] },
    ],
  },
];
for (const c of messageCases) {
  Deno.test(`chat on responses: request() carries ${c.name}`, () => {
    assertEquals(translated({ messages: c.messages }).input, c.want);
  });
}

const user = (part: JsonObject) => ({ messages: [{ role: "user", content: [part] }] });
const refusedCases: { body: JsonObject; part: string; target?: TranslateTarget }[] = [
  { body: { zz: 1 }, part: "zz" },
  { body: { n: 2 }, part: "n" },
  { body: { seed: 1 }, part: "seed" },
  { body: { frequency_penalty: 0.1 }, part: "frequency_penalty" },
  { body: { modalities: ["text", "audio"] }, part: "modalities" },
  { body: { audio: { voice: "a", format: "wav" } }, part: "audio" },
  { body: { functions: [{ name: "f" }] }, part: "functions" },
  { body: { logprobs: true }, part: "logprobs", target: "codex" },
  { body: { tools: [{ type: "zz_tool" }] }, part: 'tools[0].type "zz_tool"' },
  { body: { tool_choice: { type: "zz" } }, part: 'tool_choice.type "zz"' },
  { body: { response_format: { type: "zz" } }, part: 'response_format.type "zz"' },
  { body: user({ type: "zz_new" }), part: 'messages[0].content[0].type "zz_new"' },
  {
    body: user({ type: "input_audio", input_audio: { data: "", format: "wav" } }),
    part: 'messages[0].content[0].type "input_audio"',
  },
  {
    body: user({ type: "image", source: { type: "file", file_id: "f" } }),
    part: 'messages[0].content[0].source.type "file"',
  },
  { body: { messages: [{ role: "zz", content: "x" }] }, part: 'messages[0].role "zz"' },
  { body: { messages: [{ role: "assistant", audio: { id: "a" } }] }, part: "messages[0].audio" },
];
for (const c of refusedCases) {
  Deno.test(`chat on responses: request() refuses ${c.part} by name${c.target ? ` on ${c.target}` : ""}`, () => {
    const result = request(c.body, c.target);
    assertEquals(result.ok ? "translated" : result.part, c.part);
  });
}

const USAGE = {
  input_tokens: 12000,
  input_tokens_details: { cached_tokens: 11008 },
  output_tokens: 40,
  output_tokens_details: { reasoning_tokens: 25 },
  total_tokens: 12040,
};
const created = { type: "response.created", response: { id: "resp_1", created_at: 1_760_000_001 } };
const text = (text: string) => ({
  type: "message",
  id: "msg_1",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [] }],
});
const completed = (output: JsonObject[]) => ({
  type: "response.completed",
  response: { id: "resp_1", created_at: 1_760_000_001, status: "completed", output, usage: USAGE },
});

Deno.test("chat on responses: answer() counts cached and reasoning tokens (B108)", () => {
  const answer = translator.answer(completed([text("hi")]).response, answerContext());
  assertEquals(answer.ok && answer.body, {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1_760_000_001,
    model: "client-model",
    choices: [{
      index: 0,
      message: { role: "assistant", content: "hi", refusal: null },
      logprobs: null,
      finish_reason: "stop",
    }],
    usage: {
      prompt_tokens: 12000,
      completion_tokens: 40,
      total_tokens: 12040,
      prompt_tokens_details: { cached_tokens: 11008 },
      completion_tokens_details: { reasoning_tokens: 25 },
    },
  });
});

const Q = {
  type: "function_call",
  id: "fc_c0",
  call_id: "c0",
  name: "f",
  arguments: '{"q":1}',
  status: "completed",
};
const UNNAMED = { ...Q, name: "" };
const pieceOfArguments = (delta: string) => ({
  type: "response.function_call_arguments.delta",
  item_id: "fc_c0",
  output_index: 0,
  delta,
});
const argumentsDone = {
  type: "response.function_call_arguments.done",
  output_index: 0,
  item_id: "fc_c0",
  arguments: '{"q":1}',
};
const added = (item: JsonObject) => ({
  type: "response.output_item.added",
  output_index: 0,
  item: { ...item, arguments: "" },
});
const done = (index: number, item: JsonObject) => ({
  type: "response.output_item.done",
  output_index: index,
  item,
});

const argumentCases: { name: string; events: JsonObject[] }[] = [
  { name: "in the closing event alone", events: [added(Q), argumentsDone, done(0, Q), completed([])] },
  {
    name: "in pieces and in the closing event",
    events: [
      added(Q),
      pieceOfArguments('{"q"'),
      pieceOfArguments(":1}"),
      argumentsDone,
      done(0, Q),
      completed([Q]),
    ],
  },
  { name: "in the finished item alone", events: [done(0, Q), completed([])] },
  { name: "in the final answer alone", events: [completed([Q])] },
  {
    name: "before their call has a name",
    events: [added(UNNAMED), pieceOfArguments('{"q":1}'), done(0, Q), completed([])],
  },
];
for (const c of argumentCases) {
  Deno.test(`chat on responses: a stream tells arguments once that come ${c.name} (B103)`, () => {
    const { answer } = accumulateChat(translateStream(translator, [created, ...c.events]));
    const choice = (answer!.choices as JsonObject[])[0]!;
    assertEquals((choice.message as JsonObject).tool_calls, [
      { id: "c0", type: "function", function: { name: "f", arguments: '{"q":1}' } },
    ]);
    assertEquals(choice.finish_reason, "tool_calls");
  });
}

Deno.test("chat on responses: a call that never gets a name fails the turn (B104)", () => {
  const stream = translateStream(translator, [created, added(UNNAMED), done(0, UNNAMED), completed([])]);
  assertEquals(accumulateChat(stream).error?.code, "server_error");
  const answer = translator.answer(completed([UNNAMED]).response, answerContext());
  assertEquals(answer.ok ? "answered" : answer.problem.kind, "malformed");
});

Deno.test("chat on responses: a failed turn is an error, never a finish reason (B044)", () => {
  const error = { code: "rate_limit_exceeded", message: "try again in 11s" };
  const failed = { type: "response.failed", response: { id: "resp_1", status: "failed", error } };
  const stream = translateStream(translator, [created, failed]);
  assertEquals(accumulateChat(stream).error, { ...error, type: "rate_limit_error", param: null });
  const answer = translator.answer(failed.response, answerContext());
  const code = !answer.ok && answer.problem.kind === "in_stream" ? answer.problem.error.code : null;
  assertEquals(code, "rate_limit_exceeded");
});

Deno.test("chat on responses: the usage chunk comes only where it was asked for", () => {
  const events = [created, completed([text("hi")])];
  const context = answerContext({ includeUsage: true });
  const withUsage = clientJson(translateStream(translator, events, context));
  assertEquals(withUsage.map((one) => one.usage === null), [true, true, true, false]);
  assertEquals(withUsage.at(-1)!.choices, []);
  const without = clientJson(translateStream(translator, events));
  assertEquals(without.some((one) => "usage" in one), false);
});

const pieceOfText = (delta: string) => ({
  type: "response.output_text.delta",
  output_index: 0,
  content_index: 0,
  delta,
});

Deno.test("chat on responses: an end without a terminal event is told as incomplete", () => {
  const stream = translateStream(translator, [created, pieceOfText("a")]);
  assertEquals(accumulateChat(stream).error?.code, "stream_incomplete");
});

Deno.test("chat on responses: end() words a failure of the relay", () => {
  const failure = { status: 429, code: "rate_limited", message: "All accounts are limited" };
  const stream = translateStream(translator, [created], answerContext(), { kind: "failed", failure });
  assertEquals(accumulateChat(stream).error, {
    message: "All accounts are limited",
    type: "rate_limit_error",
    code: "rate_limited",
    param: null,
  });
});

const bodyCases: { name: string; body: JsonObject; problem: string }[] = [
  { name: "an error object", body: { error: { message: "no credit" } }, problem: "in_stream" },
  { name: "another protocol's answer", body: { choices: [] }, problem: "malformed" },
  { name: "an unfinished answer", body: { status: "in_progress", output: [] }, problem: "malformed" },
];
for (const c of bodyCases) {
  Deno.test(`chat on responses: answer() makes no answer of ${c.name} (B045)`, () => {
    const answer = translator.answer(c.body, answerContext());
    assertEquals(answer.ok ? "answered" : answer.problem.kind, c.problem);
  });
}

Deno.test("chat on responses: stop sequences cut the answer, plain and streamed", () => {
  const result = request({ stop: ["END", "ENOUGH"] });
  if (!result.ok) throw new Error(result.part);
  assertEquals([result.body.stop, result.memory.cutAt], [undefined, ["END", "ENOUGH"]]);
  const whole = text("one EN two ENOUGH three");
  const plain = translator.answer(completed([whole, Q]).response, answerContext(result.memory));
  const pieces = "one EN two ENOUGH three".split("").map(pieceOfText);
  const events = [created, ...pieces, done(0, whole), done(1, Q), completed([])];
  const context = answerContext({ ...result.memory, includeUsage: true });
  const { answer } = accumulateChat(translateStream(translator, events, context));
  assertEquals(plain.ok && plain.body, answer);
  const choice = (answer!.choices as JsonObject[])[0]!;
  assertEquals([(choice.message as JsonObject).content, choice.finish_reason], ["one EN two ", "stop"]);
});
