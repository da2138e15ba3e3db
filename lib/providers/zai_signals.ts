/** What z.ai's failures say: the code first, the status second (wire-facts 7.2-7.4). */
import type { Signal } from "../core/classify.ts";
import { findMeaning, signalOf } from "../core/error_meaning.ts";
import type { ErrorFacts, Evidence } from "../core/evidence.ts";
import type { StatedTime } from "../core/outcome.ts";
import {
  FIVE_HOUR_RESET_LIMIT_MS,
  MONTHLY_RESET_LIMIT_MS,
  parseUtcPlus8ResetText,
  WEEKLY_RESET_LIMIT_MS,
} from "../core/retry_after.ts";
import { readStatedTime } from "../core/stated_time.ts";
import { readStatedStatus, signalOfStatus } from "../core/status_signal.ts";
import type { SignalContext } from "./provider.ts";
import { readStatusCode } from "./status_code.ts";
import { ZAI_CODES, ZAI_WORDS, type ZaiCode } from "./zai_words.ts";

/**
 * Reads one failed attempt at z.ai, at either of its endpoints; errors inside a 200 are the same.
 *
 * @returns `null` for what has no word here: `classify` has a safe default for each.
 */
export function readZaiSignal(evidence: Evidence, context: SignalContext): Signal | null {
  if (evidence.kind !== "http" && evidence.kind !== "in_stream") return null;
  const { error, headers } = evidence;
  const { nowMs } = context;
  const details = (resetLimitMs: number | null) => ({
    nowMs,
    namesModel: context.model !== null,
    limiter: "account" as const,
    stated: readStatedTime(error, headers, nowMs, readReset(error, nowMs, resetLimitMs)),
  });
  const known = findCode(error);
  if (known !== undefined) {
    const limitMs = known.resetLimitMs === undefined ? null : narrowLimit(known.resetLimitMs, error);
    return signalOf({ code: known.word, meaning: known.meaning }, details(limitMs));
  }
  const isAnswer = evidence.kind === "http";
  const status = isAnswer ? evidence.status : readStatedStatus(error) ?? readStatusCode(error);
  const found = findMeaning(error, status, ZAI_WORDS);
  if (found !== null) {
    const limitMs = /\bhours?\b|小时/i.test(error.message ?? "")
      ? FIVE_HOUR_RESET_LIMIT_MS
      : MONTHLY_RESET_LIMIT_MS;
    return signalOf(found, details(limitMs));
  }
  if (status === 434) {
    return signalOf({ code: "api_not_permitted", meaning: { kind: "model" } }, details(null));
  }
  if (status === 435) return { kind: "request_fault", row: 5, code: "file_too_large", state: "none" };
  return isAnswer || status === null ? null : signalOfStatus(status, error, headers, nowMs);
}

/** The number stands where a code does, where a type does, or in front of the message (wire-facts 7.2). */
function findCode(error: ErrorFacts): ZaiCode | undefined {
  return [error.code, error.type, BRACKETED.exec(error.message ?? "")?.[1]]
    .map((number) => ZAI_CODES.get(number ?? ""))
    .find((code) => code !== undefined);
}

/** `[1302][text][request id]`. */
const BRACKETED = /^\s*\[(\d{3,4})\]/;

/** One code stands for a week and for a month; where the text says week alone, a month is not believed. */
function narrowLimit(limitMs: number, error: ErrorFacts): number {
  const text = error.message ?? "";
  const isWeekly = /week|周/i.test(text) && !/month|月/i.test(text);
  return isWeekly ? Math.min(limitMs, WEEKLY_RESET_LIMIT_MS) : limitMs;
}

/** The message's date is as good as a field: absolute, though without a zone (it is UTC+8 on every host). */
function readReset(error: ErrorFacts, nowMs: number, limitMs: number | null): readonly StatedTime[] {
  if (limitMs === null) return [];
  const untilMs = parseUtcPlus8ResetText(error.message, nowMs, limitMs);
  return untilMs === null ? [] : [{ untilMs, source: "body" }];
}
