/** What failures of the platform and of OpenAI-compatible hosts say (wire-facts 8.1). */
import type { Signal } from "../core/classify.ts";
import { findMeaning, signalOf } from "../core/error_meaning.ts";
import type { Evidence } from "../core/evidence.ts";
import { readStatedTime } from "../core/stated_time.ts";
import { readStatedStatus, signalOfStatus } from "../core/status_signal.ts";
import { namesModelLimit } from "./named_limit.ts";
import { OPENAI_WORDS } from "./openai_compatible_words.ts";
import type { SignalContext } from "./provider.ts";
import { readStatusCode } from "./status_code.ts";

/**
 * Reads one failed attempt. `x-ratelimit-reset-*` is no time to come back: it says when the bucket is full again.
 *
 * @returns `null` for what has no word here: `classify` has a safe default for each.
 */
export function readOpenAiSignal(evidence: Evidence, context: SignalContext): Signal | null {
  if (evidence.kind !== "http" && evidence.kind !== "in_stream") return null;
  const { error, headers } = evidence;
  const isAnswer = evidence.kind === "http";
  const status = isAnswer ? evidence.status : readStatedStatus(error) ?? readStatusCode(error);
  const found = findMeaning(error, status, OPENAI_WORDS);
  if (found === null) {
    return isAnswer || status === null ? null : signalOfStatus(status, error, headers, context.nowMs);
  }
  return signalOf(found, {
    nowMs: context.nowMs,
    namesModel: context.model !== null,
    limiter: context.model !== null && namesModelLimit(error.message) ? "model" : "account",
    stated: readStatedTime(error, headers, context.nowMs),
  });
}
