/**
 * Token counts between the three protocols.
 *
 * Responses and chat count cached tokens inside the input; Anthropic counts fresh, cache-read and cache-written input
 * apart (wire-facts; field case B108). `null` means the upstream said nothing: nobody invents a zero (B110).
 */
import { isObject, type JsonObject, readNumber } from "./json.ts";
import type { CompletionUsage, MessageDeltaUsage, ResponseUsage } from "./wire_types.ts";

/** One answer's counts; `inputTokens` is everything that went in, cached or not. */
export interface UsageCounts {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

export function readResponsesUsage(usage: unknown): UsageCounts | null {
  if (!isObject(usage)) return null;
  const input = readNumber(usage.input_tokens);
  const output = readNumber(usage.output_tokens);
  if (input === null && output === null) return null;
  return {
    inputTokens: input ?? 0,
    cachedTokens: detail(usage.input_tokens_details, "cached_tokens"),
    cacheWriteTokens: detail(usage.input_tokens_details, "cache_write_tokens"),
    outputTokens: output ?? 0,
    reasoningTokens: detail(usage.output_tokens_details, "reasoning_tokens"),
  };
}

export function readChatUsage(usage: unknown): UsageCounts | null {
  if (!isObject(usage)) return null;
  const input = readNumber(usage.prompt_tokens);
  const output = readNumber(usage.completion_tokens);
  if (input === null && output === null) return null;
  return {
    inputTokens: input ?? 0,
    cachedTokens: detail(usage.prompt_tokens_details, "cached_tokens"),
    cacheWriteTokens: detail(usage.prompt_tokens_details, "cache_write_tokens"),
    outputTokens: output ?? 0,
    reasoningTokens: detail(usage.completion_tokens_details, "reasoning_tokens"),
  };
}

/**
 * @param usage  the final counts; in a stream, `message_start` merged with `message_delta` by `mergeMessagesUsage()`.
 */
export function readMessagesUsage(usage: unknown): UsageCounts | null {
  if (!isObject(usage)) return null;
  const fresh = readNumber(usage.input_tokens);
  const output = readNumber(usage.output_tokens);
  if (fresh === null && output === null) return null;
  const cached = readNumber(usage.cache_read_input_tokens) ?? 0;
  const written = readNumber(usage.cache_creation_input_tokens) ?? 0;
  return {
    inputTokens: (fresh ?? 0) + cached + written,
    cachedTokens: cached,
    cacheWriteTokens: written,
    outputTokens: output ?? 0,
    reasoningTokens: detail(usage.output_tokens_details, "thinking_tokens"),
  };
}

/** Later counts are totals and replace earlier ones; absent or null ones leave them. */
export function mergeMessagesUsage(earlier: JsonObject, later: unknown): JsonObject {
  if (!isObject(later)) return earlier;
  const merged = { ...earlier };
  for (const key of Object.keys(later)) {
    if (later[key] !== null && later[key] !== undefined) merged[key] = later[key];
  }
  return merged;
}

export function responsesUsage(counts: UsageCounts) {
  return {
    input_tokens: counts.inputTokens,
    input_tokens_details: {
      cached_tokens: counts.cachedTokens,
      cache_write_tokens: counts.cacheWriteTokens,
    },
    output_tokens: counts.outputTokens,
    output_tokens_details: { reasoning_tokens: counts.reasoningTokens },
    total_tokens: counts.inputTokens + counts.outputTokens,
  } satisfies ResponseUsage;
}

export function chatUsage(counts: UsageCounts) {
  return {
    prompt_tokens: counts.inputTokens,
    completion_tokens: counts.outputTokens,
    total_tokens: counts.inputTokens + counts.outputTokens,
    prompt_tokens_details: {
      cached_tokens: counts.cachedTokens,
      ...(counts.cacheWriteTokens > 0 ? { cache_write_tokens: counts.cacheWriteTokens } : {}),
    },
    completion_tokens_details: { reasoning_tokens: counts.reasoningTokens },
  } satisfies CompletionUsage;
}

export function messagesUsage(counts: UsageCounts) {
  // Some upstreams count cached tokens apart from the input; a negative rest would be nonsense to every client.
  const fresh = Math.max(0, counts.inputTokens - counts.cachedTokens - counts.cacheWriteTokens);
  return {
    input_tokens: fresh,
    cache_creation_input_tokens: counts.cacheWriteTokens,
    cache_read_input_tokens: counts.cachedTokens,
    output_tokens: counts.outputTokens,
    output_tokens_details: { thinking_tokens: counts.reasoningTokens },
    server_tool_use: null,
  } satisfies MessageDeltaUsage;
}

function detail(details: unknown, key: string): number {
  return isObject(details) ? readNumber(details[key]) ?? 0 : 0;
}
