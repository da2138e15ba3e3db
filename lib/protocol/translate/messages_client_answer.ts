/**
 * A Response told to an Anthropic client: the whole message, and the parts its stream shares with it.
 */
import { isObject, type JsonObject, parseObject, readList, readText } from "./json.ts";
import { mendArguments } from "./json_mender.ts";
import { blockOfReasoning } from "./reasoning_carrier.ts";
import { STOP_SEQUENCE } from "./stop_cutter.ts";
import type { AnswerContext } from "./translator.ts";
import { messagesUsage, readResponsesUsage, type UsageCounts } from "./usage.ts";
import { citationOfAnnotation, searchBlocks } from "./web_search.ts";
import type { Message, StopReason, TextCitation, ToldBlock, ToldUsage } from "./wire_types.ts";

/** A whole Response as an Anthropic message. Hosted tools' records have no place in it; their findings are the text. */
export function writeMessagesAnswer(response: JsonObject, context: AnswerContext): JsonObject {
  const content: ToldBlock[] = [];
  let toldLength = 0;
  let refused = false;
  const add = (block: ToldBlock, length: number) => {
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
        if (text !== "") add({ type: "text", text, citations: citationsOf(part, text) }, text.length);
      }
    } else if (item.type === "reasoning" && context.memory.takesReasoning) {
      const block = blockOfReasoning(item);
      if (block !== null) add(block, block.type === "thinking" ? block.thinking.length : 0);
    } else if (item.type === "web_search_call") {
      for (const block of searchBlocks(item)) add(block, 0);
    } else if (item.type === "function_call" || item.type === "custom_tool_call") {
      const json = mendArguments(callJson(item));
      add({ ...toolUse(item), input: parseObject(json) ?? {} }, json.length);
    }
  }
  const hasCalls = content.some((block) => block.type === "tool_use");
  return {
    ...messageShell(response, context),
    content,
    ...stopOf(response, hasCalls, refused),
    usage: wholeUsage(readResponsesUsage(response.usage), toldLength, context),
  } satisfies Omit<Message, "content"> & { content: ToldBlock[] };
}

function citationsOf(part: JsonObject, text: string): TextCitation[] | null {
  const citations = readList(part.annotations).flatMap((annotation) => {
    const citation = isObject(annotation) ? citationOfAnnotation(annotation, text) : null;
    return citation === null ? [] : [citation];
  });
  return citations.length === 0 ? null : citations;
}

/** A call as the block that opens it. */
export function toolUse(item: JsonObject) {
  return {
    type: "tool_use" as const,
    id: readText(item.call_id) ?? "",
    name: readText(item.name) ?? "",
    input: {},
  };
}

/** The arguments of a call as JSON text; a free text becomes an object of one. */
function callJson(item: JsonObject): string {
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
    diagnostics: null,
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
): ToldUsage {
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
