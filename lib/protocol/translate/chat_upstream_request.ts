/**
 * A hub request for a chat upstream: the fields. The messages are in `chat_upstream_messages.ts`.
 */
import { writeChatMessages } from "./chat_upstream_messages.ts";
import { type FlatTool, type HubToolChoice, readHubToolChoice, readHubTools } from "./hub_tools.ts";
import { readHubTurns } from "./hub_turns.ts";
import { defined, isObject, type JsonObject, readList, readText } from "./json.ts";
import type { FieldRules, TranslationReport } from "./report.ts";
import { RESPONSES_ONLY_FIELDS } from "./responses_only_fields.ts";
import type { HubRequest } from "./sides.ts";
import { quirksOf, type TargetQuirks } from "./targets.ts";
import type { TranslateContext } from "./translator.ts";
import type {
  ChatCompletionCustomTool,
  ChatCompletionTool,
  ChatCompletionToolChoiceOption,
} from "./wire_types.ts";

/** What becomes of every hub field on its way to a chat upstream. */
export const CHAT_UPSTREAM_FIELDS: FieldRules = {
  model: { kind: "carried", as: "model" },
  instructions: { kind: "carried", as: "a system message" },
  input: { kind: "carried", as: "messages" },
  stream: { kind: "carried", as: "stream, with the usage chunk" },
  max_output_tokens: { kind: "carried", as: "max_completion_tokens or max_tokens" },
  temperature: { kind: "carried", as: "temperature" },
  top_p: { kind: "carried", as: "top_p" },
  top_k: { kind: "carried", as: "top_k (OpenAI-compatible hosts)" },
  stop: { kind: "carried", as: "stop" },
  tools: { kind: "carried", as: "tools" },
  tool_choice: { kind: "carried", as: "tool_choice" },
  parallel_tool_calls: { kind: "carried", as: "parallel_tool_calls" },
  reasoning: { kind: "carried", as: "reasoning_effort or thinking" },
  text: { kind: "carried", as: "response_format, verbosity" },
  include: { kind: "carried", as: "logprobs" },
  top_logprobs: { kind: "carried", as: "top_logprobs" },
  metadata: { kind: "carried", as: "metadata (OpenAI platform)" },
  user: { kind: "carried", as: "user" },
  safety_identifier: { kind: "carried", as: "safety_identifier (OpenAI platform)" },
  prompt_cache_key: { kind: "carried", as: "prompt_cache_key (OpenAI platform)" },
  prompt_cache_options: { kind: "carried", as: "prompt_cache_options (OpenAI platform)" },
  prompt_cache_retention: { kind: "carried", as: "prompt_cache_retention (OpenAI platform)" },
  service_tier: { kind: "carried", as: "service_tier (OpenAI platform)" },
  ...RESPONSES_ONLY_FIELDS,
};

/** Hints that only the OpenAI platform takes; other hosts may refuse fields they do not know. */
const PLATFORM_FIELDS = [
  "metadata",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "service_tier",
] as const;

export function writeChatRequest(hub: HubRequest, report: TranslationReport, context: TranslateContext) {
  const quirks = quirksOf(context.target);
  report.applyRules(hub, CHAT_UPSTREAM_FIELDS, "chat");
  const tools = readHubTools(hub, { customTools: quirks.customTools, webSearch: false }, report);
  const { choice, allowed } = readHubToolChoice(hub, tools, report);
  const body: JsonObject = defined({
    model: hub.model,
    messages: writeChatMessages(readHubTurns(hub, report), quirks, report),
    [quirks.maxTokensField]: hub.max_output_tokens ?? undefined,
    temperature: hub.temperature ?? undefined,
    top_p: hub.top_p ?? undefined,
    stop: hub.stop,
    tools: tools.tools.length === 0 ? undefined : tools.tools.map(chatTool),
    tool_choice: choice === null ? undefined : chatChoice(choice, allowed),
    parallel_tool_calls: hub.parallel_tool_calls ?? undefined,
  });
  if (hub.stream === true) {
    body.stream = true;
    body.stream_options = { include_usage: true };
  }
  writeReasoning(hub, body, quirks, report);
  writeFormat(hub, body, context, quirks, report);
  writeLogprobs(hub, body);
  writeHints(hub, body, context, report);
  return { body, memory: { cutAt: [], tools: tools.names } };
}

function chatTool(tool: FlatTool): ChatCompletionTool {
  const about = tool.description === null ? {} : { description: tool.description };
  if (tool.custom !== null) {
    const format = tool.custom.format;
    // The client's own format, one level deeper: its server checks it.
    const nested = (format?.type === "grammar"
      ? { type: "grammar", grammar: { syntax: format.syntax, definition: format.definition } }
      : format) as ChatCompletionCustomTool["custom"]["format"] | null;
    return {
      type: "custom",
      custom: { name: tool.name, ...about, ...(nested ? { format: nested } : {}) },
    };
  }
  const strict = tool.strict ? { strict: true } : {};
  return {
    type: "function",
    function: { name: tool.name, ...about, parameters: tool.parameters, ...strict },
  };
}

function chatChoice(
  choice: HubToolChoice,
  allowed: ReadonlySet<string> | null,
): ChatCompletionToolChoiceOption {
  if (choice.mode === "named") {
    return choice.custom
      ? { type: "custom", custom: { name: choice.name } }
      : { type: "function", function: { name: choice.name } };
  }
  if (allowed === null) return choice.mode;
  const tools = [...allowed].map((name) => ({ type: "function", function: { name } }));
  const mode = choice.mode === "required" ? "required" : "auto";
  return { type: "allowed_tools", allowed_tools: { mode, tools } };
}

function writeReasoning(
  hub: HubRequest,
  body: JsonObject,
  quirks: TargetQuirks,
  report: TranslationReport,
): void {
  const effort = isObject(hub.reasoning) ? readText(hub.reasoning.effort) : null;
  if (effort === null) return;
  if (quirks.chatReasoning === "reasoning_effort") body.reasoning_effort = effort;
  else {
    body.thinking = { type: effort === "none" ? "disabled" : "enabled" };
    if (effort !== "none") {
      report.note(`${report.field("reasoning")} sent as on: ${quirks.label} has no levels`);
    }
  }
}

function writeFormat(
  hub: HubRequest,
  body: JsonObject,
  context: TranslateContext,
  quirks: TargetQuirks,
  report: TranslationReport,
): void {
  if (!isObject(hub.text)) return;
  const { format, verbosity } = hub.text;
  if (isObject(format) && format.type !== "text") {
    const { type, ...schema } = format;
    if (type === "json_object") body.response_format = { type };
    else if (type !== "json_schema" || !quirks.jsonSchema) {
      report.refuseType(report.field("text.format"), type, `${quirks.label} has no such format`);
    } else body.response_format = { type, json_schema: schema };
  }
  if (verbosity === null || verbosity === undefined) return;
  if (context.target === "platform") body.verbosity = verbosity;
  else report.note(`${report.field("text.verbosity")} left out: ${quirks.label} has no such field`);
}

function writeLogprobs(hub: HubRequest, body: JsonObject): void {
  const asked = readList(hub.include).includes("message.output_text.logprobs");
  const top = typeof hub.top_logprobs === "number" ? hub.top_logprobs : 0;
  if (asked || top > 0) body.logprobs = true;
  if (top > 0) body.top_logprobs = top;
}

function writeHints(
  hub: HubRequest,
  body: JsonObject,
  context: TranslateContext,
  report: TranslationReport,
): void {
  const label = quirksOf(context.target).label;
  for (const key of PLATFORM_FIELDS) {
    if (hub[key] === null || hub[key] === undefined) continue;
    if (context.target === "platform") body[key] = hub[key];
    else report.note(`${report.field(key)} left out: ${label} has no such field`);
  }
  if (hub.user !== null && hub.user !== undefined) {
    if (context.target === "zai") report.note(`${report.field("user")} left out: ${label} has no such field`);
    else body.user = hub.user;
  }
  if (hub.top_k === undefined) return;
  if (context.target === "self_hosted") body.top_k = hub.top_k;
  else report.refuse(report.field("top_k"), `${label} has no such field`);
}
