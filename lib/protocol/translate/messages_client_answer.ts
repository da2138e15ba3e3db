/**
 * A Response told to an Anthropic client: the whole message, and the parts its stream shares with it.
 */
import { isObject, type JsonObject, parseObject, readList, readText } from "./json.ts";
import { mendArguments } from "./json_mender.ts";
import { blockOfReasoning } from "./reasoning_carrier.ts";
import { STOP_SEQUENCE } from "./stop_cutter.ts";
import type { AnswerContext } from "./translator.ts";
import { messagesUsage, readResponsesUsage, type UsageCounts } from "./usage.ts";
import type { StopReason } from "./wire_types.ts";

/** A whole Response as an Anthropic message. Hosted tools' records have no place in it; their findings are the text. */
export function writeMessagesAnswer(response: JsonObject, context: AnswerContext): JsonObject {
  const content: JsonObject[] = [];
  let toldLength = 0;
  let refused = false;
  const add = (block: JsonObject, length: number) => {
    content.push(block);
    toldLength += length;
  };
  for (const item of readList(response.output)) {
    if (!isObject(item)) continue;
    if (item.type === "message") {
      for (const part of readList(item.content)) {
        if (!isObject(part)) continue;
        refused ||= part.type === "refusal";
        const text = readText(part.text) ?? readText(part.refusal) ?? "";
        if (text !== "") add({ type: "text", text, citations: null }, text.length);
      }
    } else if (item.type === "reasoning" && context.memory.takesReasoning) {
      const block = blockOfReasoning(item);
      if (block !== null) add(block, readText(block.thinking)?.length ?? 0);
    } else if (item.type === "function_call" || item.type === "custom_tool_call") {
      const json = mendArguments(callJson(item));
      add(
        { type: "tool_use", id: item.call_id, name: item.name, input: parseObject(json) ?? {} },
        json.length,
      );
    }
  }
  const hasCalls = content.some((block) => block.type === "tool_use");
  return {
    ...messageShell(response, context),
    content,
    ...stopOf(response, hasCalls, refused),
    usage: wholeUsage(readResponsesUsage(response.usage), toldLength, context),
  };
}

/** The arguments of a call as JSON text; a free text becomes an object of one. */
export function callJson(item: JsonObject): string {
  if (item.type === "custom_tool_call") return JSON.stringify({ input: readText(item.input) ?? "" });
  return readText(item.arguments) ?? "";
}

/** What every message says of itself, before its content is known. */
export function messageShell(response: JsonObject, context: AnswerContext) {
  const id = readText(response.id) ?? "";
  return {
    // The client's id keeps the upstream's word, so that both logs can be matched.
    id: id === "" ? context.newId("msg") : `msg_${id.replace(/^resp_/, "")}`,
    type: "message" as const,
    role: "assistant" as const,
    model: context.clientModel,
    container: null,
  };
}

export function stopOf(response: JsonObject, hasCalls: boolean, refused: boolean) {
  const sequence = readText(response[STOP_SEQUENCE]);
  return {
    stop_reason: sequence === null ? stopReasonOf(response, hasCalls, refused) : "stop_sequence" as const,
    stop_sequence: sequence,
    stop_details: null,
  };
}

function stopReasonOf(response: JsonObject, hasCalls: boolean, refused: boolean): StopReason {
  const details = response.incomplete_details;
  const reason = isObject(details) ? details.reason : null;
  if (reason === "max_output_tokens") return "max_tokens";
  if (reason === "content_filter" || refused) return "refusal";
  return hasCalls ? "tool_use" : "end_turn";
}

/**
 * The counts of a whole message. SDKs cannot do without; where the upstream told none they are guessed from the
 * length of what was said, and marked.
 */
export function wholeUsage(
  counts: UsageCounts | null,
  toldLength: number,
  context: AnswerContext,
): JsonObject {
  if (counts !== null) return { ...messagesUsage(counts), ...NO_FIGURES };
  const guess = messagesUsage({
    inputTokens: context.memory.estimatedInputTokens,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: Math.ceil(toldLength / 4),
    reasoningTokens: 0,
  });
  return { ...guess, ...NO_FIGURES, estimated: true };
}

/** Figures of Anthropic's own, which no other upstream reports. */
const NO_FIGURES = { cache_creation: null, inference_geo: null, service_tier: null, speed: null };
