/**
 * Token endpoints of Codex and Anthropic: one refresh, one call, one judged answer (wire-facts 4.2, 4.3, 6.8).
 *
 * A login is declared dead only on the issuer's own word: JSON with a code, or a 401 in JSON. Whatever else comes
 * (a portal's page, a cut body, a region refusal) leaves the refresh token in use, because a login lost by mistake
 * costs a person's time and a retry costs nothing.
 */
import { formatAttemptId } from "../core/domain.ts";
import type { Evidence, TransportCause } from "../core/evidence.ts";
import { HeaderFields } from "../core/header_fields.ts";
import { DEAD_GRANTS } from "../core/local_outcome.ts";
import { parseRetryAfter, parseRetryAfterMs } from "../core/retry_after.ts";
import { validityOnReceipt } from "../core/token_lifetime.ts";
import type { Clock, RefreshCall, RefreshResult, TokenIssuer, Upstream, UpstreamResponse } from "../ports.ts";
import { readErrorBody } from "./error_body.ts";

const CODEX_CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann";
const ANTHROPIC_CLIENT_ID = "9d1c250a-e61b-44d9-88ed-5944d1962f5e";
const CONNECT_LIMIT_MS = 10_000;
/** Below the 30 s a refresh may take in all, so that our own limit speaks and not the caller's. */
const FIRST_BYTE_LIMIT_MS = 25_000;
/** Answers are 2 to 10 KB. */
const ANSWER_LIMIT_BYTES = 65_536;

/** The request has certainly not reached the issuer. */
const NEVER_SENT: ReadonlySet<TransportCause> = new Set(
  ["refused", "dns", "connect_timeout", "tls", "tls_certificate", "egress_proxy", "local_limit"] as const,
);
/** Refusals of where we are, not of who we are: over as soon as the way out changes (B147). */
const REGION_CODES: ReadonlySet<string> = new Set([
  "unsupported_country_region_territory",
  "unsupported_country",
  "unsupported_region",
]);
/** OAuth's and the issuers' words for "not now", sometimes sent with 400. */
const PASSING_CODES: ReadonlySet<string> = new Set([
  "api_error",
  "internal_error",
  "internal_server_error",
  "overloaded_error",
  "rate_limit_error",
  "rate_limit_exceeded",
  "server_error",
  "slow_down",
  "temporarily_unavailable",
  "timeout",
  "timeout_error",
  "too_many_requests",
]);

export function createOauthClient(upstream: Upstream, clock: Clock): TokenIssuer {
  let callCount = 0;
  return {
    async refresh(call, signal) {
      callCount += 1;
      const body = new TextEncoder().encode(JSON.stringify(refreshBody(call)));
      const sent = await upstream.send({
        method: "POST",
        url: call.url,
        headers: refreshHeaders(call),
        body,
        bodyLength: body.length,
        // A refresh token is good for one use: whether it arrived must never be a question of an idle connection.
        fresh: true,
        connectTimeoutMs: CONNECT_LIMIT_MS,
        firstByteTimeoutMs: FIRST_BYTE_LIMIT_MS,
        attempt: formatAttemptId("refresh", callCount),
      }, signal);
      if (!sent.ok) return unanswered(sent.evidence);
      const bytes = await readErrorBody(sent.response, ANSWER_LIMIT_BYTES, clock);
      return readAnswer(sent.response, new TextDecoder().decode(bytes), clock.now());
    },
  };
}

function refreshBody(call: RefreshCall): Record<string, string> {
  return {
    client_id: call.kind === "codex" ? CODEX_CLIENT_ID : ANTHROPIC_CLIENT_ID,
    grant_type: "refresh_token",
    refresh_token: call.refreshToken,
  };
}

function refreshHeaders(call: RefreshCall): HeaderFields {
  const headers = HeaderFields.from({ "content-type": "application/json", accept: "application/json" });
  if (call.kind === "anthropic") headers.set("anthropic-beta", "oauth-2025-04-20");
  return headers;
}

function unanswered(evidence: Evidence): RefreshResult {
  if (evidence.kind !== "transport") return retryable("token_endpoint_no_answer", { sent: true });
  const neverSent = NEVER_SENT.has(evidence.cause);
  return retryable(`token_endpoint_${evidence.cause}`, { sent: !neverSent, repeatable: neverSent });
}

/** Judges a whole answer of a token endpoint. */
export function readAnswer(
  response: Pick<UpstreamResponse, "status" | "headers">,
  text: string,
  nowMs: number,
): RefreshResult {
  const { status, headers } = response;
  const json = readObject(text);
  if (status >= 200 && status < 300) return readSuccess(json, nowMs);
  if (status === 408 || status === 429 || status >= 500) {
    const retryAtMs = parseRetryAfterMs(headers.get("retry-after-ms"), nowMs) ??
      parseRetryAfter(headers.get("retry-after"), nowMs, headers.get("date"));
    return retryable(`token_endpoint_${status}`, { sent: true, repeatable: true, retryAtMs });
  }
  const code = json === null ? null : readCode(json);
  if (code !== null && DEAD_GRANTS.has(code)) return { kind: "dead", reason: "invalid_grant", code };
  if (code !== null && REGION_CODES.has(code)) return retryable("token_endpoint_region", { sent: true });
  const isVerdict = json !== null && (status === 401 || (status === 400 && code !== null));
  if (isVerdict && !(code !== null && PASSING_CODES.has(code))) {
    // An unknown word is not repeated in logs or answers: it may hold anything, even the token itself.
    return { kind: "dead", reason: "credential_invalid", code: "refresh_refused" };
  }
  return retryable(`token_endpoint_${status}`, { sent: true });
}

function readSuccess(json: Record<string, unknown> | null, nowMs: number): RefreshResult {
  if (json === null) return retryable("token_endpoint_unreadable", { sent: true });
  const accessToken = readToken(json.access_token);
  const refreshToken = readToken(json.refresh_token);
  const idToken = readToken(json.id_token);
  if (accessToken === null) return retryable("token_endpoint_unreadable", { sent: true, refreshToken });
  return {
    kind: "refreshed",
    tokens: {
      accessToken,
      // What is absent is left out, so that the caller keeps the old one.
      ...refreshToken === null ? {} : { refreshToken },
      ...idToken === null ? {} : { idToken },
      expiresAtMs: validityOnReceipt(accessToken, json.expires_in, nowMs).expiresAtMs,
    },
  };
}

type Retryable = Extract<RefreshResult, { kind: "retryable" }>;

function retryable(code: string, facts: Pick<Retryable, "sent"> & Partial<Retryable>): Retryable {
  return { repeatable: false, retryAtMs: null, refreshToken: null, ...facts, kind: "retryable", code };
}

/** The code is at `error.code`, at `error` (text), or at the top (wire-facts 4.3); Anthropic names a type. */
function readCode(json: Record<string, unknown>): string | null {
  const { error } = json;
  const inner = typeof error === "object" && error !== null ? error as Record<string, unknown> : {};
  for (const value of [inner.code, error, json.code]) {
    if (typeof value === "string" && value.trim() !== "") return value.trim().toLowerCase();
  }
  return typeof inner.type === "string" && PASSING_CODES.has(inner.type) ? inner.type : null;
}

function readToken(value: unknown): string | null {
  return typeof value === "string" && /^[\x21-\x7e]+$/.test(value) ? value : null;
}

function readObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? value as Record<string, unknown>
      : null;
  } catch {
    return null;
  }
}
