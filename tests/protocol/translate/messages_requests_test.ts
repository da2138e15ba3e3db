/** Requests from Anthropic clients and to Anthropic upstreams: what the conversations of the suite do not reach. */
import { assertEquals } from "@std/assert";
import { translatorFor } from "../../../lib/protocol/translate/compose.ts";
import { claudeGeneration, effortOfBudget } from "../../../lib/protocol/translate/effort.ts";
import type { JsonObject } from "../../../lib/protocol/translate/json.ts";
import { isStrictSchema } from "../../../lib/protocol/translate/strict_schema.ts";
import type { TranslateTarget } from "../../../lib/protocol/translate/targets.ts";
import { targetOf } from "../../../lib/protocol/translate/targets.ts";
import type { TranslatedProtocol } from "../../../lib/protocol/translate/translator.ts";
import { carryRequest } from "../../support/conversation_pairs.ts";
import { translateContext } from "../../support/translation.ts";
import { CONVERSATIONS } from "./conversations.ts";

// deno-lint-ignore no-explicit-any -- JSON of three protocols, looked into by each test
type Loose = Record<string, any>;

function ask(
  client: TranslatedProtocol,
  upstream: TranslatedProtocol,
  body: JsonObject,
  { target, model = "claude-sonnet-4-5" }: { target?: TranslateTarget; model?: string } = {},
) {
  const context = { ...translateContext(target ?? "anthropic"), upstreamModel: model };
  const result = translatorFor(client, upstream)!.request(body, context);
  if (!result.ok) throw new Error(`${result.part} refused: ${result.reason}`);
  return {
    body: JSON.parse(JSON.stringify(result.body)) as Loose,
    notes: result.notes,
    memory: result.memory,
  };
}

const HI = { messages: [{ role: "user", content: "hi" }] };

const thinkingCases: { name: string; model: string; body: JsonObject; want: JsonObject; notes?: string[] }[] =
  [
    {
      name: "a budget for models that take one, and room for it",
      model: "claude-sonnet-4-5",
      body: { reasoning_effort: "high" },
      want: { thinking: { type: "enabled", budget_tokens: 24_576 }, max_tokens: 56_576 },
    },
    {
      name: "half of the limit at most",
      model: "claude-sonnet-4-5",
      body: { reasoning_effort: "high", max_tokens: 10_000 },
      want: { thinking: { type: "enabled", budget_tokens: 5_000 }, max_tokens: 10_000 },
    },
    {
      name: "the least budget at its border",
      model: "claude-sonnet-4-5",
      body: { reasoning_effort: "high", max_tokens: 2_048 },
      want: { thinking: { type: "enabled", budget_tokens: 1_024 }, max_tokens: 2_048 },
    },
    {
      name: "no thinking below the border",
      model: "claude-sonnet-4-5",
      body: { reasoning_effort: "high", max_tokens: 2_047 },
      want: { max_tokens: 2_047 },
      notes: ["reasoning_effort left out: the output limit leaves no room for it"],
    },
    {
      name: "a level for models that know levels",
      model: "claude-opus-4-8",
      body: { reasoning_effort: "xhigh" },
      want: { thinking: { type: "adaptive" }, output_config: { effort: "xhigh" }, max_tokens: 32_000 },
    },
    {
      name: "minimal as low",
      model: "claude-opus-5",
      body: { reasoning_effort: "minimal" },
      want: { thinking: { type: "adaptive" }, output_config: { effort: "low" }, max_tokens: 32_000 },
    },
    {
      name: "none as off",
      model: "claude-sonnet-4-5",
      body: { reasoning_effort: "none" },
      want: { thinking: { type: "disabled" }, max_tokens: 32_000 },
    },
    {
      name: "no thinking where a tool must be called",
      model: "claude-opus-4-8",
      body: {
        reasoning_effort: "high",
        tools: [{ type: "function", function: { name: "f" } }],
        tool_choice: "required",
      },
      want: {
        output_config: { effort: "high" },
        max_tokens: 32_000,
        tools: [{ name: "f", input_schema: { type: "object", properties: {} } }],
        tool_choice: { type: "any" },
        cache_control: { type: "ephemeral" },
      },
      notes: ["reasoning_effort left out: a model that must call a tool does not think"],
    },
    {
      name: "sampling only without thinking",
      model: "claude-sonnet-4-5",
      body: { reasoning_effort: "low", temperature: 0.5 },
      want: { thinking: { type: "enabled", budget_tokens: 4_096 }, max_tokens: 36_096 },
      notes: ["temperature left out: a thinking model samples freely"],
    },
    {
      name: "a temperature of at most 1",
      model: "claude-sonnet-4-5",
      body: { temperature: 1.5 },
      want: { temperature: 1, max_tokens: 32_000 },
      notes: ["temperature lowered to 1, the highest of Anthropic"],
    },
    {
      name: "no sampling for models that take none",
      model: "claude-opus-4-7",
      body: { temperature: 0.5, top_p: 0.9 },
      want: { max_tokens: 32_000 },
      notes: [
        "temperature left out: this model takes no sampling controls",
        "top_p left out: this model takes no sampling controls",
      ],
    },
    {
      name: "a limit old models can keep",
      model: "claude-3-5-haiku-20241022",
      body: {},
      want: { max_tokens: 8_192 },
    },
  ];
for (const c of thinkingCases) {
  Deno.test(`to Anthropic: request() asks for ${c.name} (${c.model})`, () => {
    const { body, notes } = ask("chat", "messages", { ...HI, ...c.body }, { model: c.model });
    const { model: _model, messages: _messages, ...rest } = body;
    assertEquals(rest, c.want);
    assertEquals(notes, c.notes ?? []);
  });
}

Deno.test("to Anthropic: request() does not think on from tool calls that another provider thought of", () => {
  const history = [
    { role: "user", content: "go" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "c1", content: "ok" },
  ];
  const { body, notes } = ask("chat", "messages", { messages: history, reasoning_effort: "high" });
  assertEquals(body.thinking, undefined);
  assertEquals(notes, [
    "reasoning_effort left out: the tool turn in progress was not thought by this provider",
  ]);
  const moved = ask("chat", "messages", { messages: [...history, ...HI.messages], reasoning_effort: "high" });
  assertEquals(moved.body.thinking, { type: "enabled", budget_tokens: 24_576 });
});

Deno.test("to Anthropic: request() puts results first, right behind their calls", () => {
  const { body } = ask("responses", "messages", {
    input: [
      { role: "user", content: "go" },
      { type: "function_call", call_id: "c:1", name: "f", arguments: "{}" },
      { role: "developer", content: "hurry" },
      { role: "user", content: "please" },
      { type: "function_call_output", call_id: "c:1", output: "ok" },
    ],
  });
  assertEquals(body.messages, [
    { role: "user", content: [{ type: "text", text: "go" }] },
    { role: "assistant", content: [{ type: "tool_use", id: "c_3a1", name: "f", input: {} }] },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "c_3a1", content: "ok" },
        { type: "text", text: "<system-reminder>\nhurry\n</system-reminder>" },
        { type: "text", text: "please" },
      ],
    },
  ]);
});

Deno.test("to Anthropic: request() writes long numbers in arguments digit by digit", () => {
  const result = translatorFor("responses", "messages")!.request({
    input: [
      { role: "user", content: "go" },
      { type: "function_call", call_id: "c1", name: "f", arguments: '{"id":1234567890123456789,"x":[0.1]}' },
    ],
  }, translateContext("anthropic"));
  const text = result.ok ? JSON.stringify(result.body) : "";
  assertEquals(text.includes('"input":{"id":1234567890123456789,"x":[0.1]}'), true);
});

Deno.test("to Anthropic: request() offers only the tools a choice allows", () => {
  const tool = (name: string) => ({ type: "function", name, parameters: { type: "object", properties: {} } });
  const { body } = ask("responses", "messages", {
    input: "go",
    tools: [tool("f"), tool("g")],
    tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "g" }] },
  });
  assertEquals(body.tools.map((one: Loose) => one.name), ["g"]);
  assertEquals(body.tool_choice, { type: "any" });
});

const tierCases: { tier: string; want: string | undefined; note: boolean }[] = [
  { tier: "auto", want: "auto", note: false },
  { tier: "priority", want: "auto", note: false },
  { tier: "default", want: "standard_only", note: false },
  { tier: "flex", want: undefined, note: true },
];
for (const c of tierCases) {
  Deno.test(`to Anthropic: request() sends service tier ${c.tier} as ${c.want ?? "nothing, with a note"}`, () => {
    const { body, notes } = ask("chat", "messages", { ...HI, service_tier: c.tier });
    assertEquals([body.service_tier, notes.length > 0], [c.want, c.note]);
  });
}

/** A turn as Codex CLI 0.171 sends it (captured 2026-11-30, texts shortened). */
const CODEX_TURN: JsonObject = {
  model: "gpt-5.5",
  instructions: "",
  input: [
    {
      type: "message",
      id: "msg_1",
      role: "developer",
      content: [{ type: "input_text", text: "You are Codex." }],
    },
    {
      type: "message",
      id: "msg_2",
      role: "user",
      content: [{ type: "input_text", text: "<environment_context>" }],
    },
    { type: "message", id: "msg_3", role: "user", content: [{ type: "input_text", text: "hi" }] },
  ],
  tools: [
    {
      type: "function",
      name: "exec_command",
      description: "Runs",
      strict: false,
      parameters: { type: "object", properties: {} },
    },
    {
      type: "custom",
      name: "apply_patch",
      description: "FREEFORM",
      format: { type: "grammar", syntax: "lark", definition: "start: x" },
    },
    {
      type: "tool_search",
      execution: "client",
      description: "# Tool discovery",
      parameters: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
    },
    { type: "web_search", external_web_access: false, search_content_types: ["text", "image"] },
  ],
  tool_choice: "auto",
  parallel_tool_calls: true,
  reasoning: { effort: "medium" },
  store: false,
  stream: true,
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "01a229cd-ea6c-7b71-a715-4d746267df2f",
  text: { verbosity: "low" },
  client_metadata: { session_id: "01a229cd" },
};

Deno.test("to Anthropic: request() carries a turn of the Codex CLI", () => {
  const { body, notes, memory } = ask("responses", "messages", CODEX_TURN, { model: "claude-opus-4-8" });
  assertEquals({ ...body, tools: body.tools.map((tool: Loose) => tool.name) }, {
    model: "claude-opus-4-8",
    max_tokens: 32_000,
    messages: [
      {
        role: "user",
        content: [{ type: "text", text: "<environment_context>" }, { type: "text", text: "hi" }],
      },
    ],
    system: [{ type: "text", text: "You are Codex." }],
    stream: true,
    tools: ["exec_command", "apply_patch", "tool_search"],
    tool_choice: { type: "auto", disable_parallel_tool_use: false },
    output_config: { effort: "medium" },
    thinking: { type: "adaptive" },
    cache_control: { type: "ephemeral" },
  });
  assertEquals(Object.keys(memory.tools), ["apply_patch", "tool_search"]);
  assertEquals(notes, [
    "client_metadata left out: bookkeeping that changes no answer",
    "tools[1].format told in the tool's description: no grammars upstream",
    "tools[3] left out: searches an index of OpenAI alone",
    "text.verbosity left out: Anthropic has no such field",
  ]);
});

/** A turn as Claude Code 2.1.197 sends it (captured 2026-11-30, texts shortened). */
const CLAUDE_CODE_TURN: JsonObject = {
  model: "claude-opus-4-8",
  system: [
    { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.197.0df; cc_entrypoint=sdk-cli;" },
    { type: "text", text: "You are a Claude agent.", cache_control: { type: "ephemeral" } },
    { type: "text", text: "You are interactive." },
  ],
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>\nContext\n</system-reminder>\n\n" },
        { type: "text", text: "hi", cache_control: { type: "ephemeral" } },
      ],
    },
    { role: "system", content: "Available agent types" },
  ],
  tools: [{ name: "Bash", description: "Executes", input_schema: { type: "object", properties: {} } }],
  metadata: {
    user_id: '{"device_id":"1d87","account_uuid":"","session_id":"1d171cdf-f682-4a2b-97ac-2dfa4b3f324f"}',
  },
  max_tokens: 64_000,
  thinking: { type: "adaptive" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "high" },
  stream: true,
};

Deno.test("from Anthropic: request() carries a turn of Claude Code to Codex", () => {
  const { body, notes, memory } = ask("messages", "responses", CLAUDE_CODE_TURN, {
    target: "codex",
    model: "gpt-5.5",
  });
  assertEquals(body, {
    model: "gpt-5.5",
    stream: true,
    instructions: "You are a Claude agent.\n\nYou are interactive.",
    input: [
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "<system-reminder>\nContext\n</system-reminder>\n\n" },
          { type: "input_text", text: "hi" },
        ],
      },
      {
        type: "message",
        role: "developer",
        content: [{ type: "input_text", text: "Available agent types" }],
      },
    ],
    tools: [{
      type: "function",
      name: "Bash",
      description: "Executes",
      parameters: { type: "object", properties: {} },
      strict: false,
    }],
    reasoning: { effort: "high", summary: "auto" },
    prompt_cache_key: "1d171cdf-f682-4a2b-97ac-2dfa4b3f324f",
    store: false,
    include: ["reasoning.encrypted_content"],
  });
  assertEquals(memory.takesReasoning, true);
  assertEquals(notes, [
    "context_management left out: the whole context is sent",
    "system[0] left out: a header for Anthropic's billing",
    "max_tokens left out: the Codex backend refuses it",
    "metadata left out: the Codex backend refuses it",
  ]);
});

Deno.test("from Anthropic: a client that turned no thinking on gets no thinking blocks", () => {
  const { memory } = ask("messages", "responses", { ...HI, max_tokens: 9 }, { target: "platform" });
  const answer = translatorFor("messages", "responses")!.answer({
    id: "resp_1",
    status: "completed",
    output: [
      { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "x" },
      { type: "message", content: [{ type: "output_text", text: "ok" }] },
    ],
  }, { ...translateContext(), memory });
  const content = answer.ok ? answer.body.content as Loose[] : [];
  assertEquals(content.map((block) => block.type), ["text"]);
});

Deno.test("from Anthropic: request() says before a result that its tool failed", () => {
  const { body } = ask("messages", "responses", {
    max_tokens: 9,
    messages: [
      { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "f", input: {} }] },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "t1", is_error: true, content: "no such file" }],
      },
    ],
  }, { target: "platform" });
  assertEquals(body.input[1].output, "The tool reported an error:\nno such file");
});

const messagesRefusals: {
  body: JsonObject;
  part: string;
  upstream?: TranslatedProtocol;
  target?: TranslateTarget;
}[] = [
  { body: { top_k: 5 }, part: "top_k", upstream: "responses", target: "platform" },
  { body: { top_k: 5 }, part: "top_k", upstream: "chat", target: "platform" },
  { body: { container: "c" }, part: "container" },
  { body: { mcp_servers: [{ url: "https://x.test" }] }, part: "mcp_servers" },
  { body: { inference_geo: "us" }, part: "inference_geo" },
  { body: { thinking: { type: "zz" } }, part: 'thinking.type "zz"' },
  { body: { tool_choice: { type: "zz" } }, part: 'tool_choice.type "zz"' },
  { body: { tools: [{ type: "bash_20250124", name: "bash" }] }, part: 'tools[0].type "bash_20250124"' },
  { body: { system: [{ type: "image" }] }, part: 'system[0].type "image"' },
  {
    body: {
      messages: [{
        role: "user",
        content: [{ type: "document", source: { type: "file", file_id: "f" } }],
      }],
    },
    part: 'messages[0].content[0].source.type "file"',
  },
  {
    body: {
      messages: [{
        role: "user",
        content: [{
          type: "document",
          source: { type: "text", media_type: "text/plain", data: "x" },
          citations: { enabled: true },
        }],
      }],
    },
    part: "messages[0].content[0].citations",
  },
  {
    body: {
      messages: [{
        role: "user",
        content: [{ type: "document", source: { type: "url", url: "https://x.test/a.pdf" } }],
      }],
    },
    part: "messages[0].content[0].file_url",
    upstream: "chat",
  },
  {
    body: { messages: [{ role: "assistant", content: [{ type: "server_tool_use", id: "s" }] }] },
    part: 'messages[0].content[0].type "server_tool_use"',
  },
  {
    body: {
      messages: [{
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "t", content: [{ type: "search_result" }] }],
      }],
    },
    part: 'messages[0].content[0].content[0].type "search_result"',
  },
];
for (const c of messagesRefusals) {
  Deno.test(`from Anthropic: request() to ${c.upstream ?? "responses"} refuses ${c.part} by name`, () => {
    const translator = translatorFor("messages", c.upstream ?? "responses")!;
    const result = translator.request({ ...HI, max_tokens: 9, ...c.body }, translateContext(c.target));
    assertEquals(result.ok ? "translated" : result.part, c.part);
  });
}

for (const client of ["chat", "messages"] as const) {
  Deno.test(`every conversation of a ${client} client is carried to Codex`, () => {
    const translator = translatorFor(client, "responses")!;
    for (const conversation of CONVERSATIONS) {
      const { body } = carryRequest(translator, conversation, true, "codex");
      const input = body.input as Loose[];
      assertEquals([body.store, body.stream, typeof body.instructions], [false, true, "string"]);
      assertEquals(input.some((item) => item.role === "system"), false);
    }
  });
}

const generations: { model: string; adaptive: boolean; sampling: boolean }[] = [
  { model: "claude-3-5-sonnet-20241022", adaptive: false, sampling: true },
  { model: "claude-opus-4-20250514", adaptive: false, sampling: true },
  { model: "claude-sonnet-4-5-20250929", adaptive: false, sampling: true },
  { model: "claude-haiku-4-5", adaptive: false, sampling: true },
  { model: "claude-opus-4-6", adaptive: true, sampling: true },
  { model: "claude-opus-4-7", adaptive: true, sampling: false },
  { model: "claude-opus-4-8", adaptive: true, sampling: false },
  { model: "claude-sonnet-5", adaptive: true, sampling: false },
  { model: "claude-fable-5-2", adaptive: true, sampling: false },
  { model: "claude-mythos-preview", adaptive: true, sampling: false },
  { model: "glm-5.2", adaptive: false, sampling: true },
];
for (const { model, adaptive, sampling } of generations) {
  Deno.test(`claudeGeneration() knows what ${model} takes`, () => {
    const generation = claudeGeneration(model);
    assertEquals([generation.adaptive, generation.sampling], [adaptive, sampling]);
  });
}

const budgets: [tokens: number, effort: string][] = [
  [1_024, "low"],
  [4_096, "low"],
  [4_097, "medium"],
  [16_384, "medium"],
  [16_385, "high"],
  [32_000, "high"],
  [32_001, "xhigh"],
];
for (const [tokens, effort] of budgets) {
  Deno.test(`effortOfBudget() calls ${tokens} tokens ${effort}`, () => {
    assertEquals(effortOfBudget(tokens), effort);
  });
}

const closed = (properties: JsonObject, required: string[]) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});
const schemas: { name: string; schema: JsonObject; strict: boolean }[] = [
  { name: "a closed object", schema: closed({ a: { type: "string" } }, ["a"]), strict: true },
  { name: "an optional property", schema: closed({ a: { type: "string" } }, []), strict: false },
  { name: "an open object", schema: { type: "object", properties: {} }, strict: false },
  {
    name: "an open object deep inside",
    schema: closed({ a: { type: "array", items: { type: "object" } } }, ["a"]),
    strict: false,
  },
  { name: "a definition", schema: { $defs: { a: { type: "object" } } }, strict: false },
];
for (const c of schemas) {
  Deno.test(`isStrictSchema() calls ${c.name} ${c.strict ? "strict" : "lax"}`, () => {
    assertEquals(isStrictSchema(c.schema), c.strict);
  });
}

const targets: [kind: "codex" | "anthropic" | "zai" | "openai", url: string, want: TranslateTarget][] = [
  ["codex", "https://chatgpt.com/backend-api/codex", "codex"],
  ["anthropic", "https://api.anthropic.com", "anthropic"],
  ["zai", "https://api.z.ai", "zai"],
  ["openai", "https://api.openai.com/v1", "platform"],
  ["openai", "https://eu.api.openai.com/v1", "platform"],
  ["openai", "https://api.openai.com.evil.test/v1", "self_hosted"],
  ["openai", "http://127.0.0.1:8000/v1", "self_hosted"],
];
for (const [kind, url, want] of targets) {
  Deno.test(`targetOf() takes ${kind} at ${url} for ${want}`, () => {
    assertEquals(targetOf(kind, url), want);
  });
}
