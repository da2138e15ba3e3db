/**
 * What a client is told, in its own protocol, when the answer is ours and not an upstream's (design.md 6).
 *
 * Fixed sentences and codes only: no account ids, upstream text, URLs or tokens can reach a client from here.
 * How clients react to each form: wire-facts 1.7 (Codex), 6.9 (Claude Code, Anthropic SDK), 8.3 (OpenAI SDK).
 */
import type { ClientProtocol } from "../core/domain.ts";
import type { FinalAnswer, FinalCode } from "../core/final_error.ts";

export { renderStreamFailure, translateBareError } from "./stream_failure.ts";
export type { StreamFailure } from "./stream_failure.ts";

export interface AnswerContext {
  readonly requestId: string;
  readonly nowMs: number;
}

export interface RenderedAnswer {
  readonly status: number;
  readonly headers: [string, string][];
  readonly body: string;
}

export type LocalKind =
  | "invalid_api_key"
  | "key_disabled"
  | "request_too_large"
  | "request_timeout"
  | "not_found"
  | "shutting_down"
  | "invalid_request"
  | "unsupported_encoding"
  | "overloaded_local"
  | "loop_detected"
  | "internal_error";

/** Longest wait Claude Code sits out by itself; told a longer one it gives up at once (wire-facts 6.9). */
const ANTHROPIC_WAIT_LIMIT_SECONDS = 60;
/** The last moment `toISOString` can write. */
const LAST_MOMENT_MS = 8.64e15;
/** Load and restarts pass within a second or two; SDKs wait this long before they come back. */
const LOCAL_RETRY_AFTER_SECONDS = 1;

const FINAL_MESSAGES: Readonly<Record<Exclude<FinalCode, "rate_limited">, string>> = {
  model_not_found: "No account can serve this model",
  auth_unavailable: "No account is available: each one is missing, disabled, signed out or without credit",
  upstream_unavailable: "The upstream is unavailable at the moment",
  stream_incomplete: "The answer of the upstream ended before it was complete",
};

const LOCAL_ANSWERS: Readonly<Record<LocalKind, { status: number; code: string; message: string }>> = {
  invalid_api_key: { status: 401, code: "invalid_api_key", message: "The API key is missing or wrong" },
  key_disabled: { status: 403, code: "key_disabled", message: "This API key is disabled" },
  request_too_large: { status: 413, code: "request_too_large", message: "The request body is too large" },
  request_timeout: {
    status: 408,
    code: "request_timeout",
    message: "The request body did not come in time",
  },
  not_found: { status: 404, code: "not_found", message: "There is no such route" },
  internal_error: { status: 500, code: "internal_error", message: "The proxy failed on this request" },
  loop_detected: {
    status: 508,
    code: "loop_detected",
    message: "The request came back to a proxy it had passed: a base URL leads to a proxy in a circle",
  },
  shutting_down: { status: 503, code: "shutting_down", message: "The proxy is shutting down" },
  invalid_request: { status: 400, code: "invalid_request", message: "The request cannot be read" },
  unsupported_encoding: {
    status: 415,
    code: "unsupported_encoding",
    message: "The content-encoding of the request body is not supported",
  },
  overloaded_local: {
    status: 503,
    code: "overloaded",
    message: "The proxy is at its own limit of open requests; no upstream quota is involved",
  },
};

/** The aggregate: what is said when no account could serve the request. */
export function renderFinal(
  protocol: ClientProtocol,
  answer: FinalAnswer,
  ctx: AnswerContext,
): RenderedAnswer {
  const retryAtMs = answer.retryAtMs;
  const waitSeconds = retryAtMs === null ? null : wholeSeconds(retryAtMs - ctx.nowMs);
  const headers = baseHeaders(protocol, ctx.requestId);
  if (waitSeconds !== null) headers.push(["retry-after", String(waitSeconds)]);
  const message = finalMessage(answer, waitSeconds);
  if (protocol === "messages") {
    if (waitSeconds !== null && waitSeconds > ANTHROPIC_WAIT_LIMIT_SECONDS) {
      headers.push(["x-should-retry", "false"]);
    }
    return anthropicAnswer(answer.status, answer.code, message, headers, ctx.requestId);
  }
  const quota = protocol === "responses" && answer.code === "rate_limited"
    ? {
      // Codex shows the time from `resets_at` only for this type, and only if it is an integer; any other 429,
      // that of a rate limit too, is a dead end to it (wire-facts 1.7).
      type: "usage_limit_reached",
      ...(retryAtMs === null ? {} : {
        resets_at: Math.ceil(clampMoment(retryAtMs) / 1000),
        resets_in_seconds: waitSeconds,
      }),
    }
    : {};
  const next = answer.nextRetryAtMs === null ? {} : { next_retry_at: isoTime(answer.nextRetryAtMs) };
  return openaiAnswer(answer.status, answer.code, message, headers, { ...quota, ...next });
}

/**
 * A refusal of the proxy itself, before any account was looked at.
 *
 * @param detail  our own sentence, more exact than the fixed one (which field, which limit); never upstream text.
 */
export function renderLocal(
  protocol: ClientProtocol,
  kind: LocalKind,
  ctx: AnswerContext,
  detail?: string,
): RenderedAnswer {
  const { status, code, message } = LOCAL_ANSWERS[kind];
  const headers = baseHeaders(protocol, ctx.requestId);
  if (status === 401) headers.push(["www-authenticate", "Bearer"]);
  if (status === 503) headers.push(["retry-after", String(LOCAL_RETRY_AFTER_SECONDS)]);
  const words = detail ?? message;
  return protocol === "messages"
    ? anthropicAnswer(status, code, words, headers, ctx.requestId)
    : openaiAnswer(status, code, words, headers, {});
}

function finalMessage(answer: FinalAnswer, waitSeconds: number | null): string {
  const iso = answer.retryAtMs === null ? null : isoTime(answer.retryAtMs);
  if (answer.code === "rate_limited") {
    if (answer.undispatched) {
      // Proxies in front of this one look for these words.
      const reset = iso === null ? "" : `; earliest reset ${iso}`;
      return `All accounts have exhausted their quota (cached quota state, no upstream attempt${reset})`;
    }
    if (answer.limit === "rate") {
      return `All accounts are rate limited${waitSeconds === null ? "" : `; try again in ${waitSeconds}s`}`;
    }
    return `All accounts have exhausted their quota${iso === null ? "" : ` (earliest reset ${iso})`}`;
  }
  const message = FINAL_MESSAGES[answer.code];
  return answer.undispatched ? `${message} (cached state, no upstream attempt)` : message;
}

function baseHeaders(protocol: ClientProtocol, requestId: string): [string, string][] {
  const headers: [string, string][] = [["content-type", "application/json"], ["x-request-id", requestId]];
  // Anthropic's own name for it, which its SDK puts into the error it throws.
  if (protocol === "messages") headers.push(["request-id", requestId]);
  return headers;
}

function openaiAnswer(
  status: number,
  code: string,
  message: string,
  headers: [string, string][],
  more: Record<string, unknown>,
): RenderedAnswer {
  const error = { message, type: openaiType(status), code, param: null, ...more };
  return { status, headers, body: JSON.stringify({ error }) };
}

function anthropicAnswer(
  status: number,
  code: string,
  message: string,
  headers: [string, string][],
  requestId: string,
): RenderedAnswer {
  const error = { type: anthropicType(status), message, code };
  return { status, headers, body: JSON.stringify({ type: "error", error, request_id: requestId }) };
}

function openaiType(status: number): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 || status === 408 ? "server_error" : "invalid_request_error";
  }
}

function anthropicType(status: number): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 408:
      return "timeout_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

/** Rounded up, so that nobody comes back too early; never 0, which SDKs take for "at once". */
function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

function clampMoment(ms: number): number {
  return Math.min(Math.max(ms, 0), LAST_MOMENT_MS);
}

function isoTime(ms: number): string {
  return new Date(clampMoment(ms)).toISOString();
}
