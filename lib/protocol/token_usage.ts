/** Token counts as the three protocols state them, in one form; `null` when a value states none. */
import { readObject } from "./event_data.ts";
import type { TokenUsage } from "./stream_dialect.ts";

/** The `usage` of a Responses object. */
export function readResponsesUsage(usage: unknown): TokenUsage | null {
  const object = readObject(usage);
  if (object === null) return null;
  return {
    inputTokens: readCount(object["input_tokens"]),
    cachedTokens: readCount(readObject(object["input_tokens_details"])?.["cached_tokens"]),
    outputTokens: readCount(object["output_tokens"]),
    reasoningTokens: readCount(readObject(object["output_tokens_details"])?.["reasoning_tokens"]),
  };
}

/** The `usage` of a chat completion or of its last chunk. */
export function readChatUsage(usage: unknown): TokenUsage | null {
  const object = readObject(usage);
  if (object === null) return null;
  return {
    inputTokens: readCount(object["prompt_tokens"]),
    cachedTokens: readCount(readObject(object["prompt_tokens_details"])?.["cached_tokens"]),
    outputTokens: readCount(object["completion_tokens"]),
    reasoningTokens: readCount(readObject(object["completion_tokens_details"])?.["reasoning_tokens"]),
  };
}

/** The `usage` of an Anthropic message, whose `input_tokens` leaves out what went through the cache. */
export function readMessagesUsage(usage: unknown): TokenUsage | null {
  const object = readObject(usage);
  if (object === null) return null;
  const cachedTokens = readCount(object["cache_read_input_tokens"]);
  return {
    inputTokens: readCount(object["input_tokens"]) + cachedTokens +
      readCount(object["cache_creation_input_tokens"]),
    cachedTokens,
    outputTokens: readCount(object["output_tokens"]),
    reasoningTokens: 0,
  };
}

/** Joins what several events of one answer state: the counts are running totals, so the larger one is later. */
export function mergeUsage(a: TokenUsage | null, b: TokenUsage | null): TokenUsage | null {
  if (a === null || b === null) return a ?? b;
  return {
    inputTokens: Math.max(a.inputTokens, b.inputTokens),
    cachedTokens: Math.max(a.cachedTokens, b.cachedTokens),
    outputTokens: Math.max(a.outputTokens, b.outputTokens),
    reasoningTokens: Math.max(a.reasoningTokens, b.reasoningTokens),
  };
}

/** More than any answer holds; a larger count is a lie, and sums of lies would leave the range of integers. */
const MOST_TOKENS = 1_000_000_000;

function readCount(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 && value <= MOST_TOKENS
    ? value
    : 0;
}
