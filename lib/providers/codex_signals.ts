/** What Codex's failures say: its words, its headers and its times (wire-facts 1.1-1.6, 2.2, 2.3, 5.7). */
import type { Signal } from "../core/classify.ts";
import { extendDictionary, findMeaning, type Found, type Meaning, signalOf } from "../core/error_meaning.ts";
import { COMMON_WORDS, sameMeaning } from "../core/error_words.ts";
import type { ErrorFacts, Evidence, HeaderLookup } from "../core/evidence.ts";
import type { StatedTime } from "../core/outcome.ts";
import { readStatedTime } from "../core/stated_time.ts";
import { readLimit, readStatedStatus } from "../core/status_signal.ts";
import { readErrorHeaders } from "../protocol/error_body.ts";
import { readExhaustion, readModelFamily } from "./codex_quota.ts";
import { namesModelLimit } from "./named_limit.ts";
import type { SignalContext } from "./provider.ts";

/**
 * Reads one failed attempt at Codex.
 *
 * @returns `null` for what has no word here: edge pages, unknown codes, bare statuses. `classify` has a safe
 *   default for each of them.
 */
export function readCodexSignal(evidence: Evidence, context: SignalContext): Signal | null {
  if (evidence.kind !== "http" && evidence.kind !== "in_stream") return null;
  const { error, headers } = evidence;
  const status = evidence.kind === "http" ? evidence.status : readStatedStatus(error);
  if (status === 429 && context.base === "chatgpt") {
    // The account pages have limits of their own, which say nothing about models (wire-facts 1.4).
    return { kind: "request_fault", row: 4, code: "endpoint_rate_limited", state: "none" };
  }
  const found = findMeaning(error, status, CODEX_WORDS) ?? findInHeaders(status, headers);
  if (found === null) return status === 429 ? readWordlessLimit(error, headers, context) : null;
  const narrowed = narrow(found, error, headers, context);
  return signalOf(narrowed, {
    nowMs: context.nowMs,
    namesModel: context.model !== null,
    limiter: limitsModel(narrowed, error, headers, context) ? "model" : "account",
    stated: readTime(isQuota(narrowed.meaning), error, headers, context.nowMs),
  });
}

const OVERLOADED: Meaning = { kind: "overloaded" };
const INVALID: Meaning = { kind: "request_fault", row: 2 };
const QUOTA: Meaning = { kind: "limit", shape: "quota" };

const REACHED_TYPES = new Map<string, Meaning>([
  ...sameMeaning(
    { kind: "credits_unless_timed" },
    "workspace_owner_credits_depleted",
    "workspace_member_credits_depleted",
  ),
  ...sameMeaning(
    QUOTA,
    "rate_limit_reached",
    "workspace_owner_usage_limit_reached",
    "workspace_member_usage_limit_reached",
  ),
]);

const CODEX_WORDS = extendDictionary(COMMON_WORDS, {
  codes: new Map<string, Meaning>([
    ...REACHED_TYPES,
    // A plan without Codex: nothing but another plan ends it, so it is asked again rarely.
    ...sameMeaning({ kind: "credits" }, "usage_not_included", "budget_reached"),
    // The login is good, so it must neither be refreshed nor asked for again.
    ...sameMeaning(
      { kind: "account_pause" },
      "deactivated_workspace",
      "codex_workspace_access_denied",
      "workspace_access_denied",
      "codex_entitlement_missing",
      "entitlement_missing",
      "access_program_not_enabled",
    ),
    ...sameMeaning(OVERLOADED, "policy_capacity_unavailable"),
    // After an hour the socket is over, not the account; and a connector's limit is no model's.
    ...sameMeaning(
      { kind: "request_fault", row: 4 },
      "websocket_connection_limit_reached",
      "connector_rate_limit",
    ),
  ]),
  types: new Map<string, Meaning>([...sameMeaning({ kind: "credits" }, "usage_not_included")]),
  phrases: [
    { pattern: /the '' model is not supported/i, code: "model_missing", meaning: INVALID },
    {
      pattern: /model is not supported when using codex with a chatgpt account/i,
      code: "model_not_supported",
      meaning: { kind: "model" },
    },
    { pattern: /selected model is at capacity/i, code: "model_at_capacity", meaning: OVERLOADED },
    {
      pattern: /policy-restricted capacity is unavailable/i,
      code: "policy_capacity_unavailable",
      meaning: OVERLOADED,
    },
    { pattern: /hit your spend cap/i, code: "spend_cap_reached", meaning: { kind: "credits" } },
    { pattern: /usage limit has been reached/i, code: "usage_limit_reached", meaning: QUOTA },
    {
      pattern: /rate limit reached for/i,
      code: "rate_limit_exceeded",
      meaning: { kind: "limit", shape: "rate" },
    },
    { pattern: /instructions are not valid/i, code: "instructions_invalid", meaning: INVALID },
    { pattern: /\b(?:stream|store) must be set to/i, code: "transport_fields_invalid", meaning: INVALID },
    { pattern: /no tool output found for/i, code: "tool_output_missing", meaning: INVALID },
  ],
});

/** What only headers say: the reason of an auth failure, or which limit was reached. */
function findInHeaders(status: number | null, headers: HeaderLookup): Found | null {
  if (status === 401 || status === 403) {
    const error = readErrorHeaders(headers);
    return error === null ? null : findMeaning(error, status, CODEX_WORDS);
  }
  return status === 429 ? readReachedType(headers) : null;
}

function readReachedType(headers: HeaderLookup): Found | null {
  const code = headers.get("x-codex-rate-limit-reached-type")?.trim().toLowerCase() ?? "";
  const meaning = REACHED_TYPES.get(code);
  return meaning === undefined ? null : { code, meaning };
}

/** The cases in which a word alone says too little. */
function narrow(found: Found, error: ErrorFacts, headers: HeaderLookup, context: SignalContext): Found {
  if (isQuota(found.meaning)) {
    const reached = readReachedType(headers);
    if (reached?.meaning.kind === "credits_unless_timed") return reached;
  }
  const isEntitlement = found.code.endsWith("entitlement_missing");
  if (isEntitlement && context.model !== null && /\bmodel\b/i.test(error.message ?? error.param ?? "")) {
    return { code: found.code, meaning: { kind: "model" } };
  }
  return found;
}

function isQuota(meaning: Meaning): boolean {
  return meaning.kind === "credits_unless_timed" || (meaning.kind === "limit" && meaning.shape === "quota");
}

/** Account-wide unless the upstream names a model's limiter: by header, or in the sentence of a rate limit (C21). */
function limitsModel(
  { meaning }: Found,
  error: ErrorFacts,
  headers: HeaderLookup,
  context: SignalContext,
): boolean {
  if (context.model === null) return false;
  if (readModelFamily(headers) !== null) return true;
  return meaning.kind === "limit" && meaning.shape === "rate" && namesModelLimit(error.message);
}

/** A 429 in no known words: used-up windows make it quota, else wording and headers of the common kind decide. */
function readWordlessLimit(error: ErrorFacts, headers: HeaderLookup, context: SignalContext): Signal {
  const stated = readTime(true, error, headers, context.nowMs);
  const limiter = context.model !== null && readModelFamily(headers) !== null ? "model" : "account";
  if (readExhaustion(headers, context.nowMs) !== null) {
    return { kind: "limited", shape: "quota", limiter, code: "usage_limit_reached", stated };
  }
  const limit = readLimit(error, headers, stated);
  return limit.kind === "limited" ? { ...limit, limiter } : limit;
}

/** Windows count for quota only: a spent week says nothing about a limit of tokens per minute. */
function readTime(
  quota: boolean,
  error: ErrorFacts,
  headers: HeaderLookup,
  nowMs: number,
): StatedTime | null {
  const resetAtMs = quota ? readExhaustion(headers, nowMs)?.resetAtMs ?? null : null;
  return readStatedTime(
    error,
    headers,
    nowMs,
    resetAtMs === null ? [] : [{ untilMs: resetAtMs, source: "headers" }],
  );
}
