/**
 * A field of the wrong JSON type is refused by its place and by what it must be: nothing a client said is taken for
 * something else, or for nothing, and sent upstream.
 */
import { assertEquals } from "@std/assert";
import { translatorFor } from "../../../lib/protocol/translate/compose.ts";
import type { JsonObject } from "../../../lib/protocol/translate/json.ts";
import type { TranslatedProtocol } from "../../../lib/protocol/translate/translator.ts";
import { PAIRS, TARGETS } from "../../support/conversation_pairs.ts";
import { renderRequest } from "../../support/conversation_requests.ts";
import { translateContext } from "../../support/translation.ts";
import { CONVERSATIONS } from "./conversations.ts";

const TRANSLATED = PAIRS.filter(({ client, upstream }) => translatorFor(client, upstream) !== null);

/** What is said of a body by every translation of its client's protocol; one text when all say the same. */
function said(client: TranslatedProtocol, body: JsonObject): string {
  const answers = TRANSLATED.filter((pair) => pair.client === client).map(({ upstream }) => {
    const result = translatorFor(client, upstream)!.request(body, translateContext(TARGETS[upstream]));
    return result.ok ? "carried" : `${result.part}: ${result.reason}`;
  });
  return [...new Set(answers)].join(" | ");
}

const user = (content: unknown) => ({ messages: [{ role: "user", content }] });
const part = (one: unknown) => user([one]);
const assistant = (members: JsonObject) => ({ messages: [{ role: "assistant", ...members }] });
const call = (members: JsonObject) =>
  assistant({ content: null, tool_calls: [{ id: "c", type: "function", ...members }] });
const tool = (members: JsonObject) => ({
  tools: [{ type: "function", function: { name: "f", ...members } }],
});

const LIST = "must be a list";
const TEXT = "must be a text";
const OBJECT = "must be an object";
const FLAG = "must be true or false";
const NUMBER = "must be a number";
const TEXT_OR_LIST = "must be a text or a list";
const TEXT_OR_OBJECT = "must be a text or an object";

type Row = readonly [body: JsonObject, said: string];

const CHAT: Row[] = [
  [{ messages: undefined }, `messages: ${LIST}`],
  [{ messages: null }, `messages: ${LIST}`],
  [{ messages: "hi" }, `messages: ${LIST}`],
  [{ messages: { role: "user", content: "hi" } }, `messages: ${LIST}`],
  [{ messages: ["hi"] }, `messages[0]: ${OBJECT}`],
  [{ messages: [[]] }, `messages[0]: ${OBJECT}`],
  [{ messages: [{ content: "hi" }] }, "messages[0].role undefined: no such role"],
  [{ messages: [{ role: "user" }] }, `messages[0].content: ${TEXT_OR_LIST}`],
  [user(null), `messages[0].content: ${TEXT_OR_LIST}`],
  [user(5), `messages[0].content: ${TEXT_OR_LIST}`],
  [user({ type: "text", text: "hi" }), `messages[0].content: ${TEXT_OR_LIST}`],
  [{ messages: [{ role: "system", content: 5 }] }, `messages[0].content: ${TEXT_OR_LIST}`],
  [{ messages: [{ role: "developer" }] }, `messages[0].content: ${TEXT_OR_LIST}`],
  [part("hi"), `messages[0].content[0]: ${OBJECT}`],
  [part(null), `messages[0].content[0]: ${OBJECT}`],
  [part({ type: "text" }), `messages[0].content[0].text: ${TEXT}`],
  [part({ type: "text", text: { value: "hi" } }), `messages[0].content[0].text: ${TEXT}`],
  [part({ type: "input_text", text: 5 }), `messages[0].content[0].text: ${TEXT}`],
  [part({ type: "image_url" }), `messages[0].content[0].image_url: ${TEXT_OR_OBJECT}`],
  [part({ type: "image_url", image_url: {} }), `messages[0].content[0].image_url.url: ${TEXT}`],
  [
    part({ type: "image_url", image_url: { url: "https://x.test", detail: 1 } }),
    `messages[0].content[0].image_url.detail: ${TEXT}`,
  ],
  [part({ type: "input_image", image_url: {} }), `messages[0].content[0].image_url: ${TEXT}`],
  [part({ type: "input_image" }), `messages[0].content[0].image_url: ${TEXT}`],
  [part({ type: "file" }), `messages[0].content[0].file: ${OBJECT}`],
  [part({ type: "file", file: {} }), `messages[0].content[0].file.file_data: ${TEXT}`],
  [part({ type: "file", file: { file_data: 5 } }), `messages[0].content[0].file.file_data: ${TEXT}`],
  [part({ type: "image", source: "x" }), `messages[0].content[0].source: ${OBJECT}`],
  [part({ type: "tool_result", content: "x" }), `messages[0].content[0].tool_use_id: ${TEXT}`],
  [assistant({}), `messages[0].content: ${TEXT_OR_LIST}`],
  [assistant({ tool_calls: [] }), `messages[0].content: ${TEXT_OR_LIST}`],
  [assistant({ content: 5 }), `messages[0].content: ${TEXT_OR_LIST}`],
  [assistant({ content: [{ type: "text", text: 5 }] }), `messages[0].content[0].text: ${TEXT}`],
  [assistant({ content: [{ type: "refusal" }] }), `messages[0].content[0].refusal: ${TEXT}`],
  [assistant({ content: [{ type: "thinking" }] }), `messages[0].content[0].thinking: ${TEXT}`],
  [
    assistant({ content: [{ type: "tool_use", id: "c", name: "f", input: "{}" }] }),
    `messages[0].content[0].input: ${OBJECT}`,
  ],
  [assistant({ content: "x", refusal: true }), `messages[0].refusal: ${TEXT}`],
  [assistant({ content: "x", audio: "a" }), `messages[0].audio: ${OBJECT}`],
  [assistant({ content: "x", function_call: "f" }), `messages[0].function_call: ${OBJECT}`],
  [assistant({ content: "x", reasoning_content: ["a"] }), `messages[0].reasoning_content: ${TEXT}`],
  [assistant({ content: "x", reasoning_details: "a" }), `messages[0].reasoning_details: ${LIST}`],
  [assistant({ content: null, tool_calls: { a: 1 } }), `messages[0].tool_calls: ${LIST}`],
  [assistant({ content: null, tool_calls: ["f"] }), `messages[0].tool_calls[0]: ${OBJECT}`],
  [call({ id: 5, function: { name: "f", arguments: "" } }), `messages[0].tool_calls[0].id: ${TEXT}`],
  [call({}), `messages[0].tool_calls[0].function: ${OBJECT}`],
  [call({ function: "f" }), `messages[0].tool_calls[0].function: ${OBJECT}`],
  [call({ function: { arguments: "{}" } }), `messages[0].tool_calls[0].function.name: ${TEXT}`],
  [
    call({ function: { name: "f", arguments: { a: 1 } } }),
    `messages[0].tool_calls[0].function.arguments: ${TEXT}`,
  ],
  [call({ type: "custom" }), `messages[0].tool_calls[0].custom: ${OBJECT}`],
  [
    call({ type: "custom", custom: { name: "f", input: {} } }),
    `messages[0].tool_calls[0].custom.input: ${TEXT}`,
  ],
  [{ messages: [{ role: "tool", content: "x" }] }, `messages[0].tool_call_id: ${TEXT}`],
  [{ messages: [{ role: "tool", tool_call_id: 5, content: "x" }] }, `messages[0].tool_call_id: ${TEXT}`],
  [{ messages: [{ role: "tool", tool_call_id: "c" }] }, `messages[0].content: ${TEXT_OR_LIST}`],
  [
    { messages: [{ role: "tool", tool_call_id: "c", content: { ok: true } }] },
    `messages[0].content: ${TEXT_OR_LIST}`,
  ],
  [{ tools: { a: 1 } }, `tools: ${LIST}`],
  [{ tools: "f" }, `tools: ${LIST}`],
  [{ tools: ["f"] }, `tools[0]: ${OBJECT}`],
  [{ tools: [{ type: "function" }] }, `tools[0].function: ${OBJECT}`],
  [{ tools: [{ type: "function", name: "f" }] }, `tools[0].function: ${OBJECT}`],
  [{ tools: [{ type: "function", function: {} }] }, `tools[0].function.name: ${TEXT}`],
  [tool({ name: 5 }), `tools[0].function.name: ${TEXT}`],
  [tool({ description: [] }), `tools[0].function.description: ${TEXT}`],
  [tool({ parameters: "{}" }), `tools[0].function.parameters: ${OBJECT}`],
  [tool({ strict: "yes" }), `tools[0].function.strict: ${FLAG}`],
  [{ tools: [{ type: "custom", custom: "f" }] }, `tools[0].custom: ${OBJECT}`],
  [{ tools: [{ type: "custom", custom: { name: "f", format: "g" } }] }, `tools[0].custom.format: ${OBJECT}`],
  [{ tool_choice: 5 }, `tool_choice: ${TEXT_OR_OBJECT}`],
  [{ tool_choice: ["auto"] }, `tool_choice: ${TEXT_OR_OBJECT}`],
  [{ tool_choice: { type: "function" } }, `tool_choice.function: ${OBJECT}`],
  [{ tool_choice: { type: "function", function: {} } }, `tool_choice.function.name: ${TEXT}`],
  [{ tool_choice: { type: "allowed_tools" } }, `tool_choice.allowed_tools: ${OBJECT}`],
  [
    { tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto" } } },
    `tool_choice.allowed_tools.tools: ${LIST}`,
  ],
  [{ parallel_tool_calls: "no" }, `parallel_tool_calls: ${FLAG}`],
  [{ stream: "yes" }, `stream: ${FLAG}`],
  [{ stream: 1 }, `stream: ${FLAG}`],
  [{ stream_options: true }, `stream_options: ${OBJECT}`],
  [{ stream_options: { include_usage: "yes" } }, `stream_options.include_usage: ${FLAG}`],
  [{ stop: 5 }, "stop: must be a text or a list of texts"],
  [{ stop: ["a", 5] }, "stop: must be a text or a list of texts"],
  [{ max_tokens: "5" }, `max_tokens: ${NUMBER}`],
  [{ max_completion_tokens: {} }, `max_completion_tokens: ${NUMBER}`],
  [{ max_completion_tokens: 5, max_tokens: "5" }, `max_tokens: ${NUMBER}`],
  [{ temperature: "hot" }, `temperature: ${NUMBER}`],
  [{ temperature: Infinity }, `temperature: ${NUMBER}`],
  [{ top_p: true }, `top_p: ${NUMBER}`],
  [{ logprobs: 1 }, `logprobs: ${FLAG}`],
  [{ top_logprobs: "5" }, `top_logprobs: ${NUMBER}`],
  [{ reasoning_effort: 5 }, `reasoning_effort: ${TEXT}`],
  [{ verbosity: {} }, `verbosity: ${TEXT}`],
  [{ response_format: "json" }, `response_format: ${OBJECT}`],
  [{ response_format: { type: "json_schema" } }, `response_format.json_schema: ${OBJECT}`],
  [
    { response_format: { type: "json_schema", json_schema: { name: "n", schema: "s" } } },
    `response_format.json_schema.schema: ${OBJECT}`,
  ],
  [{ metadata: "x" }, `metadata: ${OBJECT}`],
  [{ store: "yes" }, `store: ${FLAG}`],
  [{ user: 5 }, `user: ${TEXT}`],
  [{ prompt_cache_key: 5 }, `prompt_cache_key: ${TEXT}`],
  [{ service_tier: 5 }, `service_tier: ${TEXT}`],
  [{ web_search_options: true }, `web_search_options: ${OBJECT}`],
];

const MESSAGES: Row[] = [
  [{ messages: undefined }, `messages: ${LIST}`],
  [{ messages: "hi" }, `messages: ${LIST}`],
  [{ messages: ["hi"] }, `messages[0]: ${OBJECT}`],
  [{ messages: [{ role: "user" }] }, `messages[0].content: ${TEXT_OR_LIST}`],
  [user(null), `messages[0].content: ${TEXT_OR_LIST}`],
  [user(5), `messages[0].content: ${TEXT_OR_LIST}`],
  [user({ type: "text", text: "hi" }), `messages[0].content: ${TEXT_OR_LIST}`],
  [assistant({}), `messages[0].content: ${TEXT_OR_LIST}`],
  [part("hi"), `messages[0].content[0]: ${OBJECT}`],
  [part({ type: "text", text: 5 }), `messages[0].content[0].text: ${TEXT}`],
  [part({ type: "image" }), `messages[0].content[0].source: ${OBJECT}`],
  [part({ type: "image", source: { type: "base64" } }), `messages[0].content[0].source.data: ${TEXT}`],
  [part({ type: "image", source: { type: "url", url: 5 } }), `messages[0].content[0].source.url: ${TEXT}`],
  [part({ type: "document", source: [] }), `messages[0].content[0].source: ${OBJECT}`],
  [part({ type: "document", source: { type: "text" } }), `messages[0].content[0].source.data: ${TEXT}`],
  [
    part({ type: "document", source: { type: "content", content: 5 } }),
    `messages[0].content[0].source.content: ${TEXT_OR_LIST}`,
  ],
  [
    part({ type: "document", source: { type: "content", content: [5] } }),
    `messages[0].content[0].source.content[0]: ${OBJECT}`,
  ],
  [
    part({ type: "document", title: 5, source: { type: "text", data: "x" } }),
    `messages[0].content[0].title: ${TEXT}`,
  ],
  [part({ type: "tool_result" }), `messages[0].content[0].tool_use_id: ${TEXT}`],
  [
    part({ type: "tool_result", tool_use_id: "t", content: 5 }),
    `messages[0].content[0].content: ${TEXT_OR_LIST}`,
  ],
  [
    part({ type: "tool_result", tool_use_id: "t", content: ["x"] }),
    `messages[0].content[0].content[0]: ${OBJECT}`,
  ],
  [
    part({ type: "tool_result", tool_use_id: "t", is_error: "yes" }),
    `messages[0].content[0].is_error: ${FLAG}`,
  ],
  [assistant({ content: [{ type: "tool_use", name: "f" }] }), `messages[0].content[0].id: ${TEXT}`],
  [assistant({ content: [{ type: "tool_use", id: "t" }] }), `messages[0].content[0].name: ${TEXT}`],
  [
    assistant({ content: [{ type: "tool_use", id: "t", name: "f", input: "{}" }] }),
    `messages[0].content[0].input: ${OBJECT}`,
  ],
  [assistant({ content: [{ type: "thinking", thinking: 5 }] }), `messages[0].content[0].thinking: ${TEXT}`],
  [assistant({ content: [{ type: "redacted_thinking" }] }), `messages[0].content[0].data: ${TEXT}`],
  [{ system: 5 }, `system: ${TEXT_OR_LIST}`],
  [{ system: { type: "text", text: "x" } }, `system: ${TEXT_OR_LIST}`],
  [{ system: ["x"] }, `system[0]: ${OBJECT}`],
  [{ system: [{ type: "text", text: 5 }] }, `system[0].text: ${TEXT}`],
  [{ max_tokens: "9" }, `max_tokens: ${NUMBER}`],
  [{ stream: "yes" }, `stream: ${FLAG}`],
  [{ temperature: "hot" }, `temperature: ${NUMBER}`],
  [{ top_p: [] }, `top_p: ${NUMBER}`],
  [{ top_k: "5" }, `top_k: ${NUMBER}`],
  [{ stop_sequences: "x" }, `stop_sequences: ${LIST}`],
  [{ stop_sequences: ["x", 5] }, `stop_sequences[1]: ${TEXT}`],
  [{ tools: { a: 1 } }, `tools: ${LIST}`],
  [{ tools: ["f"] }, `tools[0]: ${OBJECT}`],
  [{ tools: [{}] }, `tools[0].name: ${TEXT}`],
  [{ tools: [{ name: "f", description: 5 }] }, `tools[0].description: ${TEXT}`],
  [{ tools: [{ name: "f", input_schema: "{}" }] }, `tools[0].input_schema: ${OBJECT}`],
  [{ tools: [{ type: "web_search_20250305", allowed_domains: "x" }] }, `tools[0].allowed_domains: ${LIST}`],
  [{ tool_choice: "auto" }, `tool_choice: ${OBJECT}`],
  [{ tool_choice: { type: "tool" } }, `tool_choice.name: ${TEXT}`],
  [
    { tool_choice: { type: "auto", disable_parallel_tool_use: "yes" } },
    `tool_choice.disable_parallel_tool_use: ${FLAG}`,
  ],
  [{ thinking: true }, `thinking: ${OBJECT}`],
  [{ thinking: { type: "enabled", budget_tokens: "9" } }, `thinking.budget_tokens: ${NUMBER}`],
  [{ output_config: "high" }, `output_config: ${OBJECT}`],
  [{ output_config: { effort: 5 } }, `output_config.effort: ${TEXT}`],
  [{ output_config: { format: { type: "json_schema" } } }, `output_config.format.schema: ${OBJECT}`],
  [{ metadata: "x" }, `metadata: ${OBJECT}`],
  [{ metadata: { user_id: 5 } }, `metadata.user_id: ${TEXT}`],
  [{ service_tier: 5 }, `service_tier: ${TEXT}`],
];

const item = (one: unknown) => ({ input: [one] });
const said1 = (content: unknown) => item({ type: "message", role: "user", content });

const RESPONSES: Row[] = [
  [{ input: undefined }, `input: ${TEXT_OR_LIST}`],
  [{ input: null }, `input: ${TEXT_OR_LIST}`],
  [{ input: 5 }, `input: ${TEXT_OR_LIST}`],
  [{ input: { role: "user", content: "hi" } }, `input: ${TEXT_OR_LIST}`],
  [item("hi"), `input[0]: ${OBJECT}`],
  [item({ type: 5, role: "user", content: "hi" }), `input[0].type: ${TEXT}`],
  [item({ role: "user" }), `input[0].content: ${TEXT_OR_LIST}`],
  [item({ role: "assistant", content: null }), `input[0].content: ${TEXT_OR_LIST}`],
  [said1(5), `input[0].content: ${TEXT_OR_LIST}`],
  [said1(["hi"]), `input[0].content[0]: ${OBJECT}`],
  [said1([{ type: "input_text" }]), `input[0].content[0].text: ${TEXT}`],
  [said1([{ type: "input_image", image_url: { url: "u" } }]), `input[0].content[0].image_url: ${TEXT}`],
  [said1([{ type: "input_image" }]), `input[0].content[0].image_url: ${TEXT}`],
  [said1([{ type: "input_file", file_data: 5 }]), `input[0].content[0].file_data: ${TEXT}`],
  [
    item({ role: "assistant", content: [{ type: "output_text", text: null }] }),
    `input[0].content[0].text: ${TEXT}`,
  ],
  [item({ type: "function_call", call_id: "c", arguments: "{}" }), `input[0].name: ${TEXT}`],
  [item({ type: "function_call", call_id: 5, name: "f", arguments: "{}" }), `input[0].call_id: ${TEXT}`],
  [item({ type: "function_call", call_id: "c", name: "f", arguments: {} }), `input[0].arguments: ${TEXT}`],
  [item({ type: "custom_tool_call", call_id: "c", name: "f", input: {} }), `input[0].input: ${TEXT}`],
  [item({ type: "function_call_output", call_id: "c", output: {} }), `input[0].output: ${TEXT_OR_LIST}`],
  [item({ type: "function_call_output", call_id: "c", output: ["x"] }), `input[0].output[0]: ${OBJECT}`],
  [item({ type: "local_shell_call", call_id: "c", action: "ls" }), `input[0].action: ${OBJECT}`],
  [item({ type: "shell_call_output", call_id: "c", output: "x" }), `input[0].output: ${LIST}`],
  [item({ type: "apply_patch_call", call_id: "c" }), `input[0].operation: ${OBJECT}`],
  [item({ type: "additional_tools", tools: "f" }), `input[0].tools: ${LIST}`],
  [item({ type: "reasoning", summary: "x" }), `input[0].summary: ${LIST}`],
  [{ instructions: 5 }, `instructions: ${TEXT}`],
  [{ instructions: ["x"] }, `instructions: ${TEXT}`],
  [{ stream: "yes" }, `stream: ${FLAG}`],
  [{ max_output_tokens: "5" }, `max_output_tokens: ${NUMBER}`],
  [{ temperature: "hot" }, `temperature: ${NUMBER}`],
  [{ top_p: [] }, `top_p: ${NUMBER}`],
  [{ stop: 5 }, `stop: ${TEXT_OR_LIST}`],
  [{ tools: { a: 1 } }, `tools: ${LIST}`],
  [{ tools: ["f"] }, `tools[0]: ${OBJECT}`],
  [{ tools: [{ type: "function", function: { name: "f" } }] }, `tools[0].name: ${TEXT}`],
  [{ tools: [{ type: "function", name: "f", parameters: "{}" }] }, `tools[0].parameters: ${OBJECT}`],
  [{ tools: [{ type: "namespace", name: "n", tools: {} }] }, `tools[0].tools: ${LIST}`],
  [
    { tools: [{ type: "namespace", name: "n", tools: [{ type: "function" }] }] },
    `tools[0].tools[0].name: ${TEXT}`,
  ],
  [{ tool_choice: 5 }, `tool_choice: ${TEXT_OR_OBJECT}`],
  [{ tool_choice: { type: "function" } }, `tool_choice.name: ${TEXT}`],
  [{ tool_choice: { type: "allowed_tools", tools: "f" } }, `tool_choice.tools: ${LIST}`],
  [{ parallel_tool_calls: "no" }, `parallel_tool_calls: ${FLAG}`],
  [{ reasoning: "high" }, `reasoning: ${OBJECT}`],
  [{ reasoning: { effort: 5 } }, `reasoning.effort: ${TEXT}`],
  [{ text: "x" }, `text: ${OBJECT}`],
  [{ text: { format: "json" } }, `text.format: ${OBJECT}`],
  [{ include: "x" }, `include: ${LIST}`],
  [{ metadata: "x" }, `metadata: ${OBJECT}`],
  [{ user: 5 }, `user: ${TEXT}`],
  [{ prompt_cache_key: 5 }, `prompt_cache_key: ${TEXT}`],
  [{ service_tier: 5 }, `service_tier: ${TEXT}`],
];

const GOOD = {
  chat: { model: "m", messages: [{ role: "user", content: "hi" }] },
  messages: { model: "m", max_tokens: 9, messages: [{ role: "user", content: "hi" }] },
  responses: { model: "m", input: "hi" },
} as const;

for (const [client, rows] of Object.entries({ chat: CHAT, messages: MESSAGES, responses: RESPONSES })) {
  for (const [body, want] of rows) {
    Deno.test(`from ${client}: request() refuses ${JSON.stringify(body)}: ${want}`, () => {
      const protocol = client as TranslatedProtocol;
      assertEquals(said(protocol, { ...GOOD[protocol], ...body }), want);
    });
  }
}

/** What the real APIs take for absent, and what clients send beyond the letter. */
const ACCEPTED: { client: TranslatedProtocol; name: string; body: JsonObject }[] = [
  {
    client: "chat",
    name: "null for every optional field",
    body: Object.fromEntries(
      [
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "stop",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning_effort",
        "verbosity",
        "response_format",
        "logprobs",
        "top_logprobs",
        "metadata",
        "store",
        "user",
        "service_tier",
        "web_search_options",
      ].map((key) => [key, null]),
    ),
  },
  {
    client: "chat",
    name: "an assistant's calls with content null, without content, and with every other member null",
    body: {
      messages: [null, undefined, ""].map((content) => ({
        role: "assistant",
        ...(content === undefined ? {} : { content }),
        refusal: null,
        audio: null,
        function_call: null,
        reasoning_content: null,
        annotations: [],
        tool_calls: [{ id: "c", index: 0, type: "function", function: { name: "f", arguments: "{}" } }],
      })),
    },
  },
  {
    client: "chat",
    name: "an empty answer brought back as it was given",
    body: {
      messages: [{ role: "user", content: "hi" }, { role: "assistant", content: null, refusal: null }],
    },
  },
  {
    client: "chat",
    name: "a refusal and reasoning without content",
    body: assistant({ refusal: "no", reasoning_content: "hm", tool_calls: null }),
  },
  {
    client: "chat",
    name: "a call without arguments, and members nobody knows",
    body: {
      messages: [
        { role: "user", content: "hi", name: "u", zz: 1 },
        { role: "assistant", tool_calls: [{ id: "c", type: "function", zz: 1, function: { name: "f" } }] },
        { role: "tool", tool_call_id: "c", content: "" },
      ],
      tools: [{
        type: "function",
        function: { name: "f", description: null, parameters: null, strict: null },
      }],
    },
  },
  {
    client: "messages",
    name: "null for every optional field",
    body: Object.fromEntries(
      [
        "system",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "metadata",
        "service_tier",
      ].map((key) => [key, null]),
    ),
  },
  {
    client: "messages",
    name: "a result without content and a call without input",
    body: {
      messages: [
        { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f" }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t", is_error: null }] },
      ],
      tools: [{ name: "f", input_schema: { type: "object" }, cache_control: null, zz: 1 }],
    },
  },
  {
    client: "responses",
    name: "null for every optional field",
    body: Object.fromEntries(
      [
        "instructions",
        "stream",
        "max_output_tokens",
        "temperature",
        "top_p",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning",
        "text",
        "include",
        "metadata",
        "user",
        "prompt_cache_key",
        "service_tier",
        "previous_response_id",
      ].map((key) => [key, null]),
    ),
  },
  {
    client: "responses",
    name: "what Codex brings back: calls with null members, reasoning without content",
    body: {
      input: [
        { type: "message", role: "user", content: [{ type: "input_text", text: "hi", zz: 1 }], id: null },
        { type: "reasoning", summary: [], content: null, encrypted_content: null },
        {
          type: "local_shell_call",
          id: "l",
          call_id: null,
          action: { type: "exec", command: ["ls"], env: null },
        },
        { type: "function_call_output", call_id: "l", output: "x" },
        { type: "function_call", name: "f", arguments: "{}", call_id: "c", namespace: null },
        { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "x" }] },
      ],
      reasoning: { effort: null, summary: null },
      text: { verbosity: null, format: null },
    },
  },
];
for (const c of ACCEPTED) {
  Deno.test(`from ${c.client}: request() carries ${c.name}`, () => {
    assertEquals(said(c.client, { ...GOOD[c.client], ...c.body }), "carried");
  });
}

const EMPTY: { client: TranslatedProtocol; body: JsonObject; notes: string[] }[] = [
  { client: "chat", body: user(""), notes: ["messages[0] left out: it says nothing"] },
  { client: "chat", body: user([]), notes: ["messages[0] left out: it says nothing"] },
  { client: "chat", body: assistant({ content: null }), notes: ["messages[0] left out: it says nothing"] },
  { client: "chat", body: user("hi"), notes: [] },
  { client: "messages", body: user(""), notes: ["messages[0] left out: it says nothing"] },
  { client: "messages", body: assistant({ content: [] }), notes: ["messages[0] left out: it says nothing"] },
  { client: "messages", body: user("hi"), notes: [] },
  { client: "messages", body: { service_tier: "zz" }, notes: ['service_tier "zz" left out: no such tier'] },
];
for (const { client, body, notes } of EMPTY) {
  Deno.test(`from ${client}: request() notes what it leaves out of ${JSON.stringify(body)}: ${notes.length}`, () => {
    const { max_tokens: _limit, ...good } = { max_tokens: 0, ...GOOD[client] };
    const result = translatorFor(client, "responses")!.request({ ...good, ...body }, translateContext());
    assertEquals(result.ok ? result.notes : result, notes);
  });
}

/** Members whose inside is the client's own: schemas, arguments, labels. */
const FREE = new Set(["parameters", "input_schema", "schema", "metadata"]);
/** Checked before any translation, and what a client brings back of an answer and no reader looks at. */
const UNREAD = new Set(["model", "annotations"]);

/** Every place of a request whose type matters, with a value of each other type. */
function* wrongTypes(
  value: unknown,
  path: readonly (string | number)[],
): Generator<[(string | number)[], unknown]> {
  const last = path.at(-1);
  if (path.length > 0 && !(typeof last === "string" && UNREAD.has(last))) {
    for (const other of [5, "zz", true, [5], { zz: 1 }]) {
      if (kindOf(other) !== kindOf(value)) yield [[...path], other];
    }
  }
  if (typeof value !== "object" || value === null) return;
  if (typeof last === "string" && FREE.has(last)) return;
  if (last === "input" && !Array.isArray(value)) return;
  for (const key of Object.keys(value)) {
    const at = Array.isArray(value) ? Number(key) : key;
    if (at === "type") continue;
    yield* wrongTypes((value as JsonObject)[key], [...path, at]);
  }
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? "list" : typeof value;
}

function replaced(body: JsonObject, path: readonly (string | number)[], other: unknown): JsonObject {
  const copy = structuredClone(body);
  let holder: JsonObject = copy;
  for (const key of path.slice(0, -1)) holder = holder[key] as JsonObject;
  holder[path.at(-1)!] = other;
  return copy;
}

/** Members that may be a text instead of what they are in these conversations, or the other way round. */
const TEXT_TOO = new Set(["content", "output", "input", "system", "stop", "tool_choice", "image_url"]);

for (const client of ["chat", "messages", "responses"] as const) {
  Deno.test(`from ${client}: no value of another type is carried, wherever it stands in a conversation`, () => {
    const carried = new Set<string>();
    const seen = new Set<string>();
    for (const { request } of CONVERSATIONS) {
      const body = renderRequest(client, request, true);
      if (said(client, body) !== "carried") continue;
      for (const [path, other] of wrongTypes(body, [])) {
        const place = `${path.map((key) => typeof key === "number" ? "#" : key).join(".")} ${kindOf(other)}`;
        if (seen.has(place) || (typeof other === "string" && TEXT_TOO.has(String(path.at(-1))))) continue;
        seen.add(place);
        if (said(client, replaced(body, path, other)).includes("carried")) carried.add(place);
      }
    }
    assertEquals([...carried], []);
    assertEquals(seen.size > 100, true, `${seen.size} places`);
  });
}
