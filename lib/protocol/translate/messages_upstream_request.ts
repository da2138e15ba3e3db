/**
 * A hub request for an Anthropic upstream: the fields. Thinking is in `messages_upstream_thinking.ts`, the messages in
 * `messages_upstream_messages.ts`.
 */
import { claudeGeneration } from "./effort.ts";
import {
  type FlatTools,
  type HubToolChoice,
  objectSchema,
  readHubToolChoice,
  readHubTools,
} from "./hub_tools.ts";
import { type HubTurn, readHubTurns } from "./hub_turns.ts";
import { defined, entryOf, isObject, type JsonObject, readNumber, readText } from "./json.ts";
import { writeMessages } from "./messages_upstream_messages.ts";
import { writeThinking } from "./messages_upstream_thinking.ts";
import { type FieldRules, quoted, type TranslationReport } from "./report.ts";
import type { HubRequest } from "./sides.ts";
import { quirksOf } from "./targets.ts";
import type { TranslateContext } from "./translator.ts";
import { messagesSearchTool } from "./web_search.ts";
import { RESPONSES_ONLY_FIELDS } from "./responses_only_fields.ts";

const OWN_CACHE = "Anthropic marks what it caches in the request";

/** What becomes of every hub field on its way to an Anthropic upstream. */
export const MESSAGES_UPSTREAM_FIELDS: FieldRules = {
  model: { kind: "carried", as: "model" },
  instructions: { kind: "carried", as: "system" },
  input: { kind: "carried", as: "messages, system" },
  stream: { kind: "carried", as: "stream" },
  max_output_tokens: { kind: "carried", as: "max_tokens (32,000 when absent)" },
  temperature: { kind: "carried", as: "temperature, at most 1" },
  top_p: { kind: "carried", as: "top_p" },
  top_k: { kind: "carried", as: "top_k" },
  stop: { kind: "carried", as: "stop_sequences" },
  tools: { kind: "carried", as: "tools" },
  tool_choice: { kind: "carried", as: "tool_choice" },
  parallel_tool_calls: { kind: "carried", as: "tool_choice.disable_parallel_tool_use" },
  reasoning: { kind: "carried", as: "thinking, output_config.effort" },
  text: { kind: "carried", as: "output_config.format" },
  metadata: { kind: "carried", as: "metadata.user_id" },
  user: { kind: "carried", as: "metadata.user_id" },
  safety_identifier: { kind: "carried", as: "metadata.user_id" },
  service_tier: { kind: "carried", as: "service_tier" },
  prompt_cache_key: { kind: "carried", as: "cache_control" },
  include: { kind: "carried", as: "nothing; log probabilities are refused" },
  prompt_cache_options: { kind: "hint", why: OWN_CACHE },
  prompt_cache_retention: { kind: "hint", why: OWN_CACHE },
  top_logprobs: { kind: "default_only", defaults: [0], why: "Anthropic reports no log probabilities" },
  ...RESPONSES_ONLY_FIELDS,
};

/** Anthropic demands a limit; this one every current model can keep. */
const DEFAULT_MAX_TOKENS = 32_000;

export function writeMessagesRequest(hub: HubRequest, report: TranslationReport, context: TranslateContext) {
  report.applyRules(hub, MESSAGES_UPSTREAM_FIELDS, "the Messages API");
  const tools = readHubTools(hub, { customTools: false, webSearch: context.target === "anthropic" }, report);
  const { choice, allowed } = readHubToolChoice(hub, tools, report);
  const turns = readHubTurns(hub, report);
  const { system, rest } = splitSystem(turns);
  const generation = claudeGeneration(context.upstreamModel);
  const body: JsonObject = {
    model: hub.model,
    max_tokens: readNumber(hub.max_output_tokens) ??
      Math.min(DEFAULT_MAX_TOKENS, generation.maxOutputTokens),
    messages: writeMessages(rest, report),
  };
  if (system.length > 0) body.system = system.map((text) => ({ type: "text", text }));
  if (hub.stream === true) body.stream = true;
  if (hub.stop !== undefined) body.stop_sequences = hub.stop;
  writeTools(tools, allowed, body, context, report);
  writeToolChoice(choice, hub, body);
  writeThinking(
    { hub, body, turns, forced: choice?.mode === "required" || choice?.mode === "named" },
    report,
    context,
  );
  writeSampling(hub, body, context, report);
  writeFormat(hub, body, context, report);
  writeLabels(hub, body, context, report);
  if (Array.isArray(hub.include) && hub.include.includes("message.output_text.logprobs")) {
    report.refuse(report.field("include"), "Anthropic reports no log probabilities");
  }
  return { body, memory: { cutAt: [], tools: tools.names } };
}

/** What stands before the conversation is the system prompt. */
function splitSystem(turns: readonly HubTurn[]): { system: string[]; rest: readonly HubTurn[] } {
  const first = turns.findIndex((turn) => turn.role !== "system" && turn.role !== "developer");
  const count = first < 0 ? turns.length : first;
  const system = turns.slice(0, count).flatMap((turn) =>
    "text" in turn && turn.text !== "" ? [turn.text] : []
  );
  return { system, rest: turns.slice(count) };
}

function writeTools(
  tools: FlatTools,
  allowed: ReadonlySet<string> | null,
  body: JsonObject,
  context: TranslateContext,
  report: TranslationReport,
): void {
  // Anthropic has no list of allowed tools: the others are not offered.
  const offered = tools.tools.filter((tool) => allowed === null || allowed.has(tool.name));
  const strictTools = quirksOf(context.target).strictTools;
  const search = tools.webSearch === null ? [] : [messagesSearchTool(tools.webSearch)];
  if (offered.length + search.length === 0) return;
  body.tools = offered.map((tool): JsonObject => {
    if (tool.strict && !strictTools) {
      report.note(
        `strict of tool ${tool.name} left out: ${quirksOf(context.target).label} has no such field`,
      );
    }
    return defined({
      name: tool.name,
      description: tool.description ?? undefined,
      input_schema: objectSchema(tool.parameters),
      strict: tool.strict && strictTools ? true : undefined,
    });
  }).concat(search);
}

function writeToolChoice(choice: HubToolChoice | null, hub: HubRequest, body: JsonObject): void {
  const serial = hub.parallel_tool_calls === false;
  // Without tools a choice is an error at Anthropic; with `auto` alone it says nothing.
  if (body.tools === undefined || (choice === null && !serial)) return;
  const mode = choice?.mode ?? "auto";
  if (mode === "none") {
    body.tool_choice = { type: "none" };
    return;
  }
  const flag = typeof hub.parallel_tool_calls === "boolean" ? { disable_parallel_tool_use: serial } : {};
  if (choice?.mode === "named") body.tool_choice = { type: "tool", name: choice.name, ...flag };
  else body.tool_choice = { type: mode === "required" ? "any" : "auto", ...flag };
}

function writeSampling(
  hub: HubRequest,
  body: JsonObject,
  context: TranslateContext,
  report: TranslationReport,
): void {
  const { sampling } = claudeGeneration(context.upstreamModel);
  for (const key of ["temperature", "top_p", "top_k"] as const) {
    const value = readNumber(hub[key]);
    if (value === null) continue;
    if (!sampling) report.note(`${report.field(key)} left out: this model takes no sampling controls`);
    else if (body.thinking !== undefined) {
      report.note(`${report.field(key)} left out: a thinking model samples freely`);
    } else if (key === "temperature" && value > 1) {
      body.temperature = 1;
      report.note(`${report.field(key)} lowered to 1, the highest of Anthropic`);
    } else body[key] = value;
  }
}

function writeFormat(
  hub: HubRequest,
  body: JsonObject,
  context: TranslateContext,
  report: TranslationReport,
): void {
  if (!isObject(hub.text)) return;
  const { format, verbosity } = hub.text;
  if (verbosity !== null && verbosity !== undefined && verbosity !== "medium") {
    report.note(`${report.field("text.verbosity")} left out: Anthropic has no such field`);
  }
  if (!isObject(format) || format.type === "text") return;
  const quirks = quirksOf(context.target);
  if (format.type !== "json_schema" || !quirks.jsonSchema) {
    return report.refuseType(report.field("text.format"), format.type, `${quirks.label} has no such format`);
  }
  const config = isObject(body.output_config) ? body.output_config : {};
  body.output_config = { ...config, format: { type: "json_schema", schema: format.schema } };
}

const TIERS: Readonly<Record<string, string>> = { auto: "auto", priority: "auto", default: "standard_only" };

function writeLabels(
  hub: HubRequest,
  body: JsonObject,
  context: TranslateContext,
  report: TranslationReport,
): void {
  const labels = isObject(hub.metadata) ? hub.metadata : {};
  const userId = readText(hub.user) ?? readText(hub.safety_identifier) ?? readText(labels.user_id);
  if (userId !== null) body.metadata = { user_id: userId };
  if (Object.keys(labels).some((key) => key !== "user_id")) {
    report.note(`${report.field("metadata")} left out but for user_id: Anthropic knows no other label`);
  }
  const tier = readText(hub.service_tier);
  if (tier !== null) {
    const own = entryOf(TIERS, tier);
    if (own === null) report.note(`${report.field("service_tier")} ${quoted(tier)} left out: no such tier`);
    else if (context.target === "anthropic") body.service_tier = own;
  }
  // OpenAI caches by itself; an agent that keeps coming back must not pay for its whole context each time.
  const cached = body.tools !== undefined || readText(hub.prompt_cache_key) !== null;
  if (cached && context.target === "anthropic") body.cache_control = { type: "ephemeral" };
}
