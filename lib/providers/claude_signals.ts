/** What Anthropic's failures say: its words, its windows and its times (wire-facts 6.1-6.6). */
import type { Signal } from "../core/classify.ts";
import { readEdgeBlock } from "../core/edge_block.ts";
import { ACCOUNT_PAUSE_MS, findMeaning, type Found, signalOf } from "../core/error_meaning.ts";
import type { ErrorFacts, Evidence, HeaderLookup } from "../core/evidence.ts";
import type { StatedTime } from "../core/outcome.ts";
import { parseRegainAccess } from "../core/retry_after.ts";
import { readStatedTime } from "../core/stated_time.ts";
import { readStatedStatus } from "../core/status_signal.ts";
import { hasBuckets, readRefusal } from "./claude_limits.ts";
import { CLAUDE_WORDS, MODEL_LIMITS } from "./claude_words.ts";
import type { SignalContext } from "./provider.ts";

/**
 * Reads one failed attempt at Anthropic.
 *
 * @returns `null` for what has no word here: edge pages, unknown codes, bare statuses. `classify` has a safe
 *   default for each of them.
 */
export function readClaudeSignal(evidence: Evidence, context: SignalContext): Signal | null {
  if (evidence.kind !== "http" && evidence.kind !== "in_stream") return null;
  const { error } = evidence;
  const isAnswer = evidence.kind === "http";
  // Windows on a 2xx make parks and say nothing about what failed inside it (ruling 1).
  const headers = isAnswer ? evidence.headers : NO_HEADERS;
  const status = isAnswer ? evidence.status : readStatedStatus(error) ?? limitStatus(error);
  const found = findMeaning(error, status, CLAUDE_WORDS);
  if (found !== null && found.meaning.kind !== "limit") {
    const stated = readStatedTime(error, headers, context.nowMs);
    return signalOf(found, {
      nowMs: context.nowMs,
      namesModel: context.model !== null,
      limiter: "account",
      stated,
    });
  }
  if (found !== null || status === 429) return readLimited(found, status, error, headers, context);
  // An account that may not do this now. It heals by a plan or an owner, and the login stays good meanwhile.
  return error.type === "permission_error"
    ? { kind: "account_pause", code: "permission_denied", untilMs: context.nowMs + ACCOUNT_PAUSE_MS }
    : null;
}

const NO_HEADERS: HeaderLookup = { get: () => null };

function limitStatus(error: ErrorFacts): number | null {
  return error.type === "rate_limit_error" ? 429 : null;
}

/** Words first where they name another limit than the windows', then the windows, then whatever is stated. */
function readLimited(
  found: Found | null,
  status: number | null,
  error: ErrorFacts,
  headers: HeaderLookup,
  context: SignalContext,
): Signal | null {
  const { nowMs } = context;
  const ofModel = context.model === null ? "account" : "model";
  const stated = readStatedTime(error, headers, nowMs, regainAccess(error, nowMs));
  if (found?.meaning.kind === "limit" && found.meaning.shape === "rate") {
    const limiter = NAMED_MODEL.test(error.message ?? "") ? ofModel : "account";
    return { kind: "limited", shape: "rate", limiter, code: found.code, stated };
  }
  const refusal = readRefusal(headers, nowMs);
  if (refusal?.limiter === "account") {
    const resets: StatedTime[] = refusal.resetAtMs === null
      ? []
      : [{ untilMs: refusal.resetAtMs, source: "headers" }];
    return {
      kind: "limited",
      shape: "quota",
      limiter: "account",
      code: found?.code ?? "usage_limit_reached",
      stated: readStatedTime(error, headers, nowMs, resets),
    };
  }
  if (found !== null) {
    const limiter = MODEL_LIMITS.has(found.code) ? ofModel : "account";
    return { kind: "limited", shape: "quota", limiter, code: found.code, stated };
  }
  if (refusal !== null) {
    // Without a time it is asked again soon: the bucket's reset may be a week away and is not believed (B005).
    const shape = stated === null ? "rate" : "quota";
    return { kind: "limited", shape, limiter: ofModel, code: "model_limit_reached", stated };
  }
  if (status !== null && readEdgeBlock(status, headers, error) !== null) return null;
  return readWordless(error, headers, stated);
}

/** `… of 30,000 input tokens per minute (org: …, model: claude-sonnet-4-6)`. */
const NAMED_MODEL = /\(org: .{1,80}, model: \S{1,128}\)|\(model: \S{1,128}\)/i;

/** An absolute date is as good as a field, where "try again in" is a guess that headers outrank. */
function regainAccess(error: ErrorFacts, nowMs: number): readonly StatedTime[] {
  const untilMs = parseRegainAccess(error.message, nowMs);
  return untilMs === null ? [] : [{ untilMs, source: "body" }];
}

/**
 * A 429 whose windows allow. `Error`, `Rate limited` and "would exceed your account's rate limit" with neither time
 * nor buckets are a throttle: the same account serves again in a moment.
 */
function readWordless(error: ErrorFacts, headers: HeaderLookup, stated: StatedTime | null): Signal {
  if (error.form !== "html" && /\busage\b|\bquota\b|exhausted/i.test(error.message ?? "")) {
    return { kind: "limited", shape: "quota", limiter: "account", code: "quota_limited", stated };
  }
  if (stated !== null || hasBuckets(headers)) {
    return { kind: "limited", shape: "rate", limiter: "account", code: "rate_limited", stated };
  }
  return { kind: "throttle", code: "throttled", stated: null };
}
