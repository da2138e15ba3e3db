/**
 * An Anthropic client's request in the hub's form: the fields. The messages are in `messages_client_messages.ts`.
 */
import { effortOfBudget } from "./effort.ts";
import { objectSchema } from "./hub_tools.ts";
import { isObject, type JsonObject, parseObject, readList, readNumber, readText } from "./json.ts";
import { readMessages } from "./messages_client_messages.ts";
import { MESSAGES_REQUEST_SHAPE } from "./messages_client_shape.ts";
import { type FieldRules, quoted, type TranslationReport } from "./report.ts";
import type { HubRequest } from "./sides.ts";
import { isStrictSchema } from "./strict_schema.ts";
import type { TranslateContext } from "./translator.ts";
import { isMessagesSearch, SEARCH_NAME, searchOfMessages } from "./web_search.ts";

const SERVER_SIDE = "it names something at Anthropic";

/** What becomes of every Anthropic field that crosses protocols. */
export const MESSAGES_CLIENT_FIELDS: FieldRules = {
  model: { kind: "carried", as: "model" },
  messages: { kind: "carried", as: "input" },
  system: { kind: "carried", as: "instructions" },
  max_tokens: { kind: "carried", as: "max_output_tokens" },
  stream: { kind: "carried", as: "stream" },
  temperature: { kind: "carried", as: "temperature" },
  top_p: { kind: "carried", as: "top_p" },
  top_k: { kind: "carried", as: "top_k" },
  stop_sequences: { kind: "carried", as: "stop" },
  tools: { kind: "carried", as: "tools" },
  tool_choice: { kind: "carried", as: "tool_choice, parallel_tool_calls" },
  thinking: { kind: "carried", as: "reasoning" },
  output_config: { kind: "carried", as: "reasoning.effort, text.format" },
  metadata: { kind: "carried", as: "user or metadata.user_id; its session as prompt_cache_key" },
  service_tier: { kind: "carried", as: "service_tier" },
  cache_control: { kind: "hint", why: "the upstream caches by itself" },
  context_management: { kind: "hint", why: "the whole context is sent" },
  diagnostics: { kind: "hint", why: "it changes no answer" },
  user_profile_id: { kind: "hint", why: "it changes no answer" },
  speed: { kind: "hint", why: "a speed of Anthropic's own" },
  mcp_servers: { kind: "default_only", defaults: [[]], why: SERVER_SIDE },
  container: { kind: "refused", why: SERVER_SIDE },
  workspace_id: { kind: "refused", why: SERVER_SIDE },
  inference_geo: { kind: "refused", why: "no other provider promises where it runs" },
};

/** Hub field -> the Anthropic client's name for it. */
export const MESSAGES_FIELD_NAMES: Readonly<Record<string, string>> = {
  "instructions": "system",
  "max_output_tokens": "max_tokens",
  "stop": "stop_sequences",
  "reasoning": "thinking",
  "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
  "text.format": "output_config.format",
  "user": "metadata.user_id",
  "prompt_cache_key": "metadata.user_id",
};

export function readMessagesRequest(
  body: JsonObject,
  report: TranslationReport,
  context: TranslateContext,
): HubRequest {
  report.applyRules(body, MESSAGES_CLIENT_FIELDS, "this translation");
  MESSAGES_REQUEST_SHAPE(body, "", report);
  const hub: HubRequest = { model: context.upstreamModel };
  if (body.stream === true) hub.stream = true;
  const instructions = readSystem(body.system, report);
  if (instructions !== "") hub.instructions = instructions;
  hub.input = readMessages(readList(body.messages), report);
  if (readNumber(body.max_tokens) !== null) hub.max_output_tokens = body.max_tokens;
  for (const key of ["temperature", "top_p", "top_k"]) {
    if (readNumber(body[key]) !== null) hub[key] = body[key];
  }
  const stops = readList(body.stop_sequences).filter((one) => typeof one === "string" && one !== "");
  if (stops.length > 0) hub.stop = stops as string[];
  readTools(body, hub, report);
  readToolChoice(body.tool_choice, hub, report);
  readThinking(body, hub, report);
  readFormat(body.output_config, hub, report);
  readMetadata(body.metadata, hub);
  readTier(body.service_tier, hub, report);
  // An Anthropic client fetches nothing later.
  hub.store = false;
  return hub;
}

/** A header in disguise, for Anthropic's billing; it changes with every build and would spoil prompt caches. */
const BILLING = /^x-anthropic-billing-header:/;

function readSystem(system: unknown, report: TranslationReport): string {
  if (typeof system === "string") return system;
  const texts = readList(system).flatMap((block, index) => {
    const text = isObject(block) && block.type === "text" ? readText(block.text) : null;
    if (text === null) {
      report.refuseType(`system[${index}]`, isObject(block) ? block.type : block, "a system prompt is text");
      return [];
    }
    if (!BILLING.test(text)) return [text];
    report.note(`system[${index}] left out: a header for Anthropic's billing`);
    return [];
  });
  return texts.join("\n\n");
}

const TOOL_KEYS = new Set([
  "type",
  "name",
  "description",
  "input_schema",
  "strict",
  // How and when Anthropic shows or bills a tool; the tool is the same without.
  "cache_control",
  "eager_input_streaming",
  "defer_loading",
  "allowed_callers",
  "input_examples",
]);

function readTools(body: JsonObject, hub: HubRequest, report: TranslationReport): void {
  const tools = readList(body.tools).flatMap((tool, index) => {
    const path = `tools[${index}]`;
    if (!isObject(tool)) {
      report.refuse(path, "must be an object");
      return [];
    }
    if (isMessagesSearch(tool)) return [searchOfMessages(tool, path, report)];
    if (tool.type !== undefined && tool.type !== null && tool.type !== "custom") {
      report.refuseType(path, tool.type, "a tool of Anthropic's own");
      return [];
    }
    report.noteExtras(tool, TOOL_KEYS, path);
    const examples = readList(tool.input_examples);
    const about = [
      readText(tool.description),
      examples.length === 0 ? null : `Examples of its input: ${JSON.stringify(examples)}`,
    ].filter((text) => text !== null && text !== "").join("\n\n");
    return [{
      type: "function",
      name: tool.name,
      ...(about === "" ? {} : { description: about }),
      parameters: objectSchema(tool.input_schema),
      strict: tool.strict === true,
    }];
  });
  if (tools.length > 0) hub.tools = tools;
}

function readToolChoice(choice: unknown, hub: HubRequest, report: TranslationReport): void {
  if (!isObject(choice)) return;
  switch (choice.type) {
    case "auto":
    case "none":
      hub.tool_choice = choice.type;
      break;
    case "any":
      hub.tool_choice = "required";
      break;
    case "tool":
      hub.tool_choice = searchIsNamed(choice.name, hub)
        ? { type: "web_search" }
        : { type: "function", name: choice.name };
      break;
    default:
      report.refuseType("tool_choice", choice.type, "no such choice");
  }
  if (typeof choice.disable_parallel_tool_use === "boolean") {
    hub.parallel_tool_calls = !choice.disable_parallel_tool_use;
  }
}

/** True when a name means the provider's own search and no function of the client. */
function searchIsNamed(name: unknown, hub: HubRequest): boolean {
  const tools = readList(hub.tools);
  return name === SEARCH_NAME && tools.some((tool) => isObject(tool) && tool.type === "web_search") &&
    !tools.some((tool) => isObject(tool) && tool.name === SEARCH_NAME);
}

function readThinking(body: JsonObject, hub: HubRequest, report: TranslationReport): void {
  const config = isObject(body.output_config) ? body.output_config : {};
  const named = readText(config.effort);
  const thinking = body.thinking;
  if (!isObject(thinking)) {
    if (named !== null) hub.reasoning = { effort: named };
    return;
  }
  const summary = thinking.display === "omitted" ? {} : { summary: "auto" };
  switch (thinking.type) {
    case "enabled": {
      const budget = readNumber(thinking.budget_tokens);
      const effort = named ?? (budget === null ? "medium" : effortOfBudget(budget));
      hub.reasoning = { effort, ...summary };
      return;
    }
    case "adaptive":
    case "between_tools":
      hub.reasoning = { ...(named === null ? {} : { effort: named }), ...summary };
      return;
    case "disabled":
      hub.reasoning = { effort: "none" };
      return;
    default:
      return report.refuseType("thinking", thinking.type, "no such way of thinking");
  }
}

const CONFIG_KEYS = new Set(["effort", "format"]);

function readFormat(config: unknown, hub: HubRequest, report: TranslationReport): void {
  if (!isObject(config)) return;
  report.noteExtras(config, CONFIG_KEYS, "output_config");
  if (!isObject(config.format)) return;
  const { type, schema } = config.format;
  if (type !== "json_schema" || !isObject(schema)) {
    return report.refuseType("output_config.format", type, "no such format");
  }
  // Anthropic always holds the answer to the schema; OpenAI does so for schemas of its strict kind.
  hub.text = { format: { type, name: "output", schema, strict: isStrictSchema(schema) } };
}

function readTier(tier: unknown, hub: HubRequest, report: TranslationReport): void {
  if (tier === "auto") hub.service_tier = "auto";
  else if (tier === "standard_only") hub.service_tier = "default";
  else if (tier !== null && tier !== undefined) {
    report.note(`service_tier ${quoted(tier)} left out: no such tier`);
  }
}

/** Longest `user` OpenAI accepts. */
const USER_LIMIT = 64;
const SESSION = /_session_([0-9a-fA-F-]{36})$/;

function readMetadata(metadata: unknown, hub: HubRequest): void {
  const userId = isObject(metadata) ? readText(metadata.user_id) : null;
  if (userId === null || userId === "") return;
  if (userId.length <= USER_LIMIT) hub.user = userId;
  else hub.metadata = { user_id: userId };
  // Claude Code names its session here; told as the cache key it keeps an OpenAI prompt cache warm.
  const session = SESSION.exec(userId)?.[1] ?? readText(parseObject(userId)?.session_id);
  if (session) hub.prompt_cache_key = session;
}
