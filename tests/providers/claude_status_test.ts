/** Failures of wire-facts 6.1-6.3 with their literal bodies, read and judged. */
import { assertEquals } from "@std/assert";
import type { Evidence } from "../../lib/core/evidence.ts";
import { CLAUDE } from "../../lib/providers/claude.ts";
import type { SignalContext } from "../../lib/providers/provider.ts";
import { event, fault, http, NOW, type Row, testSignalRows, until } from "../support/signal_rows.ts";

const CONTEXT: SignalContext = { nowMs: NOW, model: "claude-opus-4-8" };
const HOUR_MS = 3_600_000;

function body(type: string, message: string, details?: Record<string, unknown>): unknown {
  return { type: "error", error: { type, message, ...(details && { details }) }, request_id: "req_1" };
}

/** An answer whose stable key is its detail code; the wording may be anything. */
function coded(status: number, type: string, code: string): Evidence {
  return http(status, body(type, "…", { error_code: code }));
}

const statuses: Row[] = [
  {
    name: "6.1, 400 invalid_request_error",
    evidence: http(400, body("invalid_request_error", "messages: field required")),
    ...fault(2, "invalid_request"),
  },
  {
    name: "6.1, 401 authentication_error",
    evidence: http(401, body("authentication_error", "invalid x-api-key")),
    kind: "unauthorized",
    row: 6,
    code: "unauthorized",
  },
  {
    name: "6.1, 402 billing_error",
    evidence: http(402, body("billing_error", "…")),
    kind: "credits",
    row: 10,
    code: "billing_error",
  },
  {
    name: "6.1, 403 permission_error in unknown words: the account rests, the login stays",
    evidence: http(
      403,
      body("permission_error", "Your API key does not have permission to use the specified resource."),
    ),
    kind: "account_pause",
    row: 11,
    code: "permission_denied",
    more: { untilMs: NOW + HOUR_MS, scope: "account" },
  },
  {
    name: "6.1, 403 permission_error about a model",
    evidence: http(403, body("permission_error", "The model claude-x is not available for your plan")),
    kind: "model_unsupported",
    row: 12,
    code: "model_not_supported",
  },
  {
    name: "6.1, 403 without an error of Anthropic's is nobody's",
    evidence: http(403, { type: "error", error: { type: "forbidden", message: "Request not allowed" } }),
    ...fault(14, "forbidden"),
  },
  {
    name: "6.1, 404 not_found_error that names no model",
    evidence: http(404, body("not_found_error", "Not Found")),
    ...fault(17, "not_found"),
  },
  { name: "6.1, 409", evidence: http(409, body("conflict_error", "…")), ...fault(4, "conflict") },
  {
    name: "6.1, 413 from the edge, without a top-level type",
    evidence: http(
      413,
      `{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`,
    ),
    ...fault(5, "request_too_large"),
  },
  {
    name: "6.1, 500 api_error",
    evidence: http(500, body("api_error", "Internal server error")),
    kind: "transient",
    row: 25,
    code: "upstream_error",
    more: { cause: "status", strike: true },
  },
  {
    name: "6.1, 500 api_error that says Overloaded",
    evidence: http(500, body("api_error", "Overloaded")),
    kind: "transient",
    row: 25,
    code: "overloaded",
    more: { cause: "overloaded", scope: "provider" },
  },
  {
    name: "6.1, 504 timeout_error",
    evidence: http(504, body("timeout_error", "…")),
    kind: "transient",
    row: 25,
    code: "upstream_error",
  },
  {
    name: "6.1, 529 overloaded_error",
    evidence: http(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
    kind: "transient",
    row: 27,
    code: "overloaded_error",
    more: { cause: "overloaded", notBeforeMs: null },
  },
  {
    name: "6.1, 529 that states a time",
    evidence: http(529, body("overloaded_error", "Overloaded"), { "retry-after": "7" }),
    kind: "transient",
    row: 27,
    code: "overloaded_error",
    more: { notBeforeMs: NOW + 7_000 },
  },
  {
    name: "6.1, 503",
    evidence: http(503, body("api_error", "Service unavailable")),
    kind: "transient",
    row: 26,
    code: "upstream_error",
  },
];

const details: Row[] = [
  {
    name: "6.2, ramp_limit_exceeded honours Retry-After",
    evidence: http(429, body("rate_limit_error", "…", { error_code: "ramp_limit_exceeded" }), {
      "retry-after": "30",
    }),
    kind: "limited",
    row: 19,
    code: "ramp_limit_exceeded",
    more: { shape: "rate", limiter: "account", stated: until(30, "retry_after") },
  },
  ...["enforced_spend_limit_reached", "contract_spend_limit_reached"].map((code): Row => ({
    name: `6.2, ${code} is over with the billing period, not with its Retry-After`,
    evidence: http(429, body("rate_limit_error", "…", { error_code: code }), { "retry-after": "5" }),
    kind: "credits",
    row: 10,
    code,
  })),
  {
    name: "6.2, credits_required limits the model",
    evidence: http(
      429,
      body("rate_limit_error", "…", {
        error_code: "credits_required",
        disabled_reason: "org_level_disabled_until",
      }),
    ),
    kind: "limited",
    row: 23,
    code: "credits_required",
    more: { scope: "model", limiter: "model", shape: "quota", stated: null },
  },
  ...["linked_organization_spend_limit_reached", "linked_organization_billing_unavailable"].map((
    code,
  ): Row => ({
    name: `6.2, ${code}`,
    evidence: coded(402, "billing_error", code),
    kind: "credits",
    row: 10,
    code,
  })),
  ...["organization_on_hold", "claude_code_key_creator_not_member"].map((code): Row => ({
    name: `6.2, ${code} is the end of the account although it is a 400`,
    evidence: coded(400, "invalid_request_error", code),
    kind: "credential_dead",
    row: 11,
    code,
  })),
  ...["cmek_key_disabled", "cmek_key_network_blocked"].map((code): Row => ({
    name: `6.2, ${code}: somebody must turn the key on again`,
    evidence: coded(400, "invalid_request_error", code),
    kind: "account_pause",
    row: 10,
    code,
  })),
  ...[
    "claude_code_version_too_old",
    "request_body_encoding_invalid",
    "request_body_encoding_unsupported",
    "image_dimensions_too_large",
    "available_tools_limit_exceeded",
    "tool_name_conflict",
    "tool_reference_unresolved",
    "compaction_block_ambiguous",
    "compaction_block_misplaced",
    "compaction_incomplete_turn",
    "compaction_nothing_to_summarize",
    "compaction_too_many_tool_references",
    "thread_unsupported_request",
  ].map((code): Row => ({
    name: `6.2, ${code}`,
    evidence: coded(400, "invalid_request_error", code),
    ...fault(2, code),
  })),
  ...[
    "compaction_signature_invalid",
    "compaction_content_mismatch",
    "compaction_tool_changes_mismatch",
    "thread_already_continued",
    "thread_continue_in_flight",
    "thread_fingerprint_mismatch",
  ].map((code): Row => ({
    name: `6.2, ${code} blames nobody after a failover`,
    evidence: coded(400, "invalid_request_error", code),
    ...fault(4, code),
  })),
  {
    name: "6.2, sandbox_egress_restricted is no word about the account",
    evidence: coded(403, "permission_error", "sandbox_egress_restricted"),
    ...fault(4, "sandbox_egress_restricted"),
  },
  {
    name: "6.2, thread_not_found is state of another account",
    evidence: coded(404, "not_found_error", "thread_not_found"),
    ...fault(4, "thread_not_found", "previous_response"),
  },
  {
    name: "6.2, request_body_too_large_after_decoding",
    evidence: coded(413, "request_too_large", "request_body_too_large_after_decoding"),
    ...fault(5, "request_body_too_large_after_decoding"),
  },
  ...["cmek_context_unavailable", "cmek_key_unreachable"].map((code): Row => ({
    name: `6.2, ${code}`,
    evidence: coded(503, "api_error", code),
    kind: "transient",
    row: 26,
    code,
  })),
  {
    name: "6.2, compaction_unavailable",
    evidence: coded(529, "overloaded_error", "compaction_unavailable"),
    kind: "transient",
    row: 27,
    code: "compaction_unavailable",
  },
  {
    name: "6.2, a detail code nobody knows is its bare type",
    evidence: coded(400, "invalid_request_error", "never_seen_before"),
    ...fault(2, "invalid_request"),
  },
];

const accounts: Row[] = [
  {
    name: "6.3, 400 credit balance",
    evidence: http(
      400,
      `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."},"request_id":"req_1"}`,
    ),
    kind: "credits",
    row: 10,
    code: "credit_balance_too_low",
    more: { scope: "account", status: 400 },
  },
  {
    name: "6.3, 400 usage limits with the time in the text",
    evidence: http(
      400,
      body(
        "invalid_request_error",
        "You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.",
      ),
    ),
    kind: "limited",
    row: 20,
    code: "api_usage_limit_reached",
    more: {
      shape: "quota",
      limiter: "account",
      stated: { untilMs: Date.UTC(2026, 3, 1), source: "body" },
    },
  },
  {
    name: "6.3, 400 usage limits whose time is over",
    evidence: http(
      400,
      body(
        "invalid_request_error",
        "You have reached your specified API usage limits. You will regain access on 2026-03-01 at 00:00 UTC.",
      ),
    ),
    kind: "limited",
    row: 22,
    code: "api_usage_limit_reached",
    more: { stated: null },
  },
  {
    name: "6.3, 400 organization disabled",
    evidence: http(400, body("invalid_request_error", "This organization has been disabled.")),
    kind: "credential_dead",
    row: 11,
    code: "organization_disabled",
  },
  ...["", "system: "].map((prefix): Row => ({
    name: `6.3, 400 for Claude Code only, prefix "${prefix}"`,
    evidence: http(
      400,
      body(
        "invalid_request_error",
        `${prefix}This credential is only authorized for use with Claude Code and cannot be used for other API requests.`,
      ),
    ),
    ...fault(2, "claude_code_only"),
  })),
  {
    name: "6.3, 401 token expired",
    evidence: http(
      401,
      body(
        "authentication_error",
        "OAuth token has expired. Please obtain a new token or refresh your existing token.",
      ),
    ),
    kind: "unauthorized",
    row: 6,
    code: "token_expired",
  },
  ...["Invalid authentication credentials", "invalid x-api-key", "Invalid bearer token"].map((
    message,
  ): Row => ({
    name: `6.3, 401 ${message}`,
    evidence: http(401, body("authentication_error", message)),
    kind: "unauthorized",
    row: 6,
    code: "unauthorized",
  })),
  {
    name: "6.3, 401 OAuth not supported: the beta was sent, so it is an outage and no login dies of it",
    evidence: http(401, body("authentication_error", "OAuth authentication is currently not supported.")),
    kind: "transient",
    row: 25,
    code: "oauth_not_supported",
    more: { strike: true, status: 401, recoverable: false },
  },
  ...[401, 403].map((status): Row => ({
    name: `6.3, ${status} organization does not allow OAuth`,
    evidence: http(
      status,
      body(
        "permission_error",
        "OAuth authentication is currently not allowed for this organization.",
      ),
    ),
    kind: "credential_dead",
    row: 11,
    code: "oauth_org_not_allowed",
  })),
  {
    name: "6.3, 403 token revoked is an auth failure, which a refresh may repair",
    evidence: http(
      403,
      body("permission_error", "OAuth token has been revoked. Please obtain a new token."),
    ),
    kind: "unauthorized",
    row: 6,
    code: "token_revoked",
  },
  {
    name: "6.3, 404 with the model's name alone",
    evidence: http(404, body("not_found_error", "model: claude-3-nope")),
    kind: "model_unsupported",
    row: 16,
    code: "model_not_found",
    more: { scope: "model" },
  },
  {
    name: "6.3, 404 for a model that went away",
    evidence: http(
      404,
      body("not_found_error", "Claude Fable 5 is not available. Please use Opus 4.8. …"),
    ),
    kind: "model_unsupported",
    row: 16,
    code: "model_not_found",
  },
  {
    name: "6.3, 404 for a model when the request named none",
    evidence: http(404, body("not_found_error", "model: claude-3-nope")),
    context: { nowMs: NOW, model: null },
    ...fault(2, "model_not_found"),
  },
  {
    name: "6.3, 400 prompt too long",
    evidence: http(
      400,
      body("invalid_request_error", "prompt is too long: 200251 tokens > 200000 maximum"),
    ),
    ...fault(3, "context_length_exceeded"),
  },
  {
    name: "6.3, a 400 whose text only mentions what a limit would say",
    evidence: http(400, body("invalid_request_error", "messages.0: text mentions rate limit and usage")),
    ...fault(2, "invalid_request"),
  },
];

const streams: Row[] = [
  {
    name: "6.7, an error event: overloaded",
    evidence: event({
      type: "error",
      error: { details: null, type: "overloaded_error", message: "Overloaded" },
    }),
    kind: "transient",
    row: 36,
    code: "overloaded_error",
    more: { cause: "overloaded" },
  },
  {
    name: "6.7, an error event: api_error",
    evidence: event({ type: "error", error: { type: "api_error", message: "Internal server error" } }),
    kind: "transient",
    row: 36,
    code: "upstream_error",
    more: { status: 500, cause: "stream_failure" },
  },
  {
    name: "6.7, an error event: rate_limit_error is a throttle whatever the windows of its 200 were",
    evidence: event({ type: "error", error: { type: "rate_limit_error", message: "Rate limited" } }, {
      "anthropic-ratelimit-unified-status": "rejected",
      "anthropic-ratelimit-unified-5h-status": "rejected",
      "anthropic-ratelimit-unified-5h-reset": String(NOW / 1_000 + 99),
    }),
    kind: "transient",
    row: 24,
    code: "throttled",
    more: { cause: "throttle", strike: false, status: 429 },
  },
  {
    name: "6.7, an error event about the request",
    evidence: event({
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 1 > 0" },
    }),
    ...fault(3, "context_length_exceeded"),
  },
  {
    name: "6.7, an error event about the account",
    evidence: event({ type: "error", error: { type: "permission_error", message: "…" } }),
    kind: "account_pause",
    row: 11,
    code: "permission_denied",
  },
  {
    name: "B120, a turn that ended in stop_reason error",
    evidence: event({ error: { code: "stop_reason_error" } }),
    kind: "transient",
    row: 36,
    code: "upstream_error",
  },
];

testSignalRows(CLAUDE, CONTEXT, [...statuses, ...details, ...accounts, ...streams]);

Deno.test("readSignal() of anthropic is silent about what is no failure answer", () => {
  const silent: Evidence[] = [
    { kind: "success" },
    { kind: "incomplete" },
    { kind: "client_cancelled" },
    { kind: "malformed", detail: "no_event" },
    { kind: "transport", cause: "dns", pooled: false },
  ];
  for (const evidence of silent) assertEquals(CLAUDE.readSignal(evidence, CONTEXT), null);
});
