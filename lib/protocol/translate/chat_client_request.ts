/**
 * A chat client's request in the hub's form: the fields. The messages are in `chat_client_messages.ts`.
 */
import { readChatMessages } from "./chat_client_messages.ts";
import { CHAT_REQUEST_SHAPE } from "./chat_client_shape.ts";
import { isObject, type JsonObject, readList, readText } from "./json.ts";
import type { FieldRules, TranslationReport } from "./report.ts";
import type { HubRequest } from "./sides.ts";
import type { TranslateContext } from "./translator.ts";

const SAMPLING = "no counterpart among the sampling controls of the other protocols";
const AUDIO = "audio is carried by no other protocol";

/** What becomes of every chat field that crosses protocols. */
export const CHAT_CLIENT_FIELDS: FieldRules = {
  model: { kind: "carried", as: "model" },
  messages: { kind: "carried", as: "input" },
  stream: { kind: "carried", as: "stream" },
  stream_options: { kind: "carried", as: "usage chunk; stream_options.include_obfuscation" },
  max_completion_tokens: { kind: "carried", as: "max_output_tokens" },
  max_tokens: { kind: "carried", as: "max_output_tokens" },
  temperature: { kind: "carried", as: "temperature" },
  top_p: { kind: "carried", as: "top_p" },
  stop: { kind: "carried", as: "stop" },
  tools: { kind: "carried", as: "tools" },
  tool_choice: { kind: "carried", as: "tool_choice" },
  parallel_tool_calls: { kind: "carried", as: "parallel_tool_calls" },
  reasoning_effort: { kind: "carried", as: "reasoning.effort" },
  verbosity: { kind: "carried", as: "text.verbosity" },
  response_format: { kind: "carried", as: "text.format" },
  logprobs: { kind: "carried", as: "include message.output_text.logprobs" },
  top_logprobs: { kind: "carried", as: "top_logprobs" },
  metadata: { kind: "carried", as: "metadata" },
  store: { kind: "carried", as: "store (false when absent)" },
  user: { kind: "carried", as: "user" },
  safety_identifier: { kind: "carried", as: "safety_identifier" },
  prompt_cache_key: { kind: "carried", as: "prompt_cache_key" },
  prompt_cache_options: { kind: "carried", as: "prompt_cache_options" },
  prompt_cache_retention: { kind: "carried", as: "prompt_cache_retention" },
  service_tier: { kind: "carried", as: "service_tier" },
  web_search_options: { kind: "carried", as: "tool web_search" },
  n: { kind: "default_only", defaults: [1], why: "only one answer can be carried" },
  modalities: { kind: "default_only", defaults: [["text"]], why: AUDIO },
  audio: { kind: "refused", why: AUDIO },
  frequency_penalty: { kind: "default_only", defaults: [0], why: SAMPLING },
  presence_penalty: { kind: "default_only", defaults: [0], why: SAMPLING },
  logit_bias: { kind: "default_only", defaults: [{}], why: SAMPLING },
  seed: { kind: "refused", why: SAMPLING },
  prediction: { kind: "refused", why: "predicted output is known to chat alone" },
  moderation: { kind: "refused", why: "moderation is not carried" },
  functions: { kind: "default_only", defaults: [[]], why: "use tools" },
  function_call: { kind: "refused", why: "use tool_choice" },
};

/** Hub field -> the chat client's name for it. */
export const CHAT_FIELD_NAMES: Readonly<Record<string, string>> = {
  "max_output_tokens": "max_completion_tokens",
  "reasoning": "reasoning_effort",
  "text.format": "response_format",
  "text.verbosity": "verbosity",
  "include": "logprobs",
};

/** Fields of the same name and meaning on both sides. */
const SAME_NAME = [
  "temperature",
  "top_p",
  "parallel_tool_calls",
  "top_logprobs",
  "metadata",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "service_tier",
] as const;

export function readChatRequest(
  body: JsonObject,
  report: TranslationReport,
  context: TranslateContext,
): HubRequest {
  report.applyRules(body, CHAT_CLIENT_FIELDS, "this translation");
  CHAT_REQUEST_SHAPE(body, "", report);
  const hub: HubRequest = { model: context.upstreamModel };
  if (body.stream === true) hub.stream = true;
  hub.input = readChatMessages(readList(body.messages), report);
  const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? null;
  if (maxTokens !== null) hub.max_output_tokens = maxTokens;
  for (const key of SAME_NAME) if (body[key] !== null && body[key] !== undefined) hub[key] = body[key];
  // A stored conversation is something a chat client has to ask for; Responses stores by default.
  hub.store = body.store === true;
  readStop(body.stop, hub, report);
  readTools(body, hub, report);
  readToolChoice(body.tool_choice, hub, report);
  readTextFormat(body, hub, report);
  if (readText(body.reasoning_effort) !== null) hub.reasoning = { effort: body.reasoning_effort };
  if (body.logprobs === true) hub.include = ["message.output_text.logprobs"];
  const options = body.stream_options;
  if (isObject(options) && typeof options.include_obfuscation === "boolean") {
    hub.stream_options = { include_obfuscation: options.include_obfuscation };
  }
  return hub;
}

function readStop(stop: unknown, hub: HubRequest, report: TranslationReport): void {
  if (stop === null || stop === undefined) return;
  const list = typeof stop === "string" ? [stop] : stop;
  if (Array.isArray(list) && list.every((one) => typeof one === "string")) {
    const texts = list.filter((one) => one !== "");
    if (texts.length > 0) hub.stop = texts;
  } else report.refuse("stop", "must be a text or a list of texts");
}

function readTools(body: JsonObject, hub: HubRequest, report: TranslationReport): void {
  const tools: JsonObject[] = [];
  readList(body.tools).forEach((tool, index) => {
    const path = `tools[${index}]`;
    if (!isObject(tool)) return report.refuse(path, "must be an object");
    if (tool.type === "function" && isObject(tool.function)) {
      tools.push(functionTool(tool.function, report, `${path}.function`));
    } else if (tool.type === "custom" && isObject(tool.custom)) tools.push(customTool(tool.custom));
    else report.refuseType(path, tool.type, "no such tool in chat");
  });
  const search = body.web_search_options;
  if (isObject(search)) tools.push(webSearchTool(search));
  if (tools.length > 0) hub.tools = tools;
}

const FUNCTION_KEYS = new Set(["name", "description", "parameters", "strict"]);

function functionTool(tool: JsonObject, report: TranslationReport, path: string): JsonObject {
  report.noteExtras(tool, FUNCTION_KEYS, path);
  return {
    type: "function",
    name: tool.name,
    ...(tool.description === undefined || tool.description === null ? {} : { description: tool.description }),
    parameters: isObject(tool.parameters) ? tool.parameters : { type: "object", properties: {} },
    // Chat is lax by default, Responses strict: unsaid must be said.
    strict: tool.strict === true,
  };
}

function customTool(tool: JsonObject): JsonObject {
  const { format, ...rest } = tool;
  const grammar = isObject(format) && isObject(format.grammar) ? format.grammar : null;
  const flat = grammar === null ? format : { type: "grammar", ...grammar };
  return { type: "custom", ...rest, ...(flat === undefined || flat === null ? {} : { format: flat }) };
}

function webSearchTool(options: JsonObject): JsonObject {
  const place = isObject(options.user_location) && isObject(options.user_location.approximate)
    ? { user_location: { type: "approximate", ...options.user_location.approximate } }
    : {};
  const size = readText(options.search_context_size);
  return { type: "web_search", ...(size === null ? {} : { search_context_size: size }), ...place };
}

function readToolChoice(choice: unknown, hub: HubRequest, report: TranslationReport): void {
  if (choice === null || choice === undefined) return;
  if (typeof choice === "string") {
    hub.tool_choice = choice;
    return;
  }
  const flat = isObject(choice) ? flatChoice(choice) : null;
  if (flat !== null) hub.tool_choice = flat;
  else report.refuseType("tool_choice", isObject(choice) ? choice.type : choice, "no such choice in chat");
}

function flatChoice(choice: JsonObject): JsonObject | null {
  const named = choice.type === "function"
    ? choice.function
    : choice.type === "custom"
    ? choice.custom
    : null;
  if (isObject(named)) return { type: choice.type, name: named.name };
  if (choice.type !== "allowed_tools" || !isObject(choice.allowed_tools)) return null;
  const { mode, tools } = choice.allowed_tools;
  const flat = readList(tools).map((tool) => isObject(tool) ? flatChoice(tool) : null);
  return flat.includes(null) ? null : { type: "allowed_tools", mode: mode ?? "auto", tools: flat };
}

function readTextFormat(body: JsonObject, hub: HubRequest, report: TranslationReport): void {
  const text: JsonObject = {};
  const format = body.response_format;
  if (isObject(format)) {
    if (format.type === "json_schema" && isObject(format.json_schema)) {
      text.format = { type: "json_schema", ...format.json_schema };
    } else if (format.type === "json_object" || format.type === "text") text.format = { type: format.type };
    else report.refuseType("response_format", format.type, "no such format");
  }
  if (readText(body.verbosity) !== null) text.verbosity = body.verbosity;
  if (Object.keys(text).length > 0) hub.text = text;
}
