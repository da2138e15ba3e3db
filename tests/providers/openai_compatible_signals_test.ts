/** Failures of wire-facts 8.1 with their literal bodies, and what hosts of the same protocol say instead. */
import { assertEquals } from "@std/assert";
import type { Evidence } from "../../lib/core/evidence.ts";
import { OPENAI_COMPATIBLE } from "../../lib/providers/openai_compatible.ts";
import type { SignalContext } from "../../lib/providers/provider.ts";
import { event, fault, http, NOW, type Row, testSignalRows, until } from "../support/signal_rows.ts";

const CONTEXT: SignalContext = { nowMs: NOW, model: "gpt-5.1" };

function error(status: number, fields: Record<string, unknown>, headers: Record<string, string> = {}) {
  return http(status, { error: { message: "…", type: null, param: null, code: null, ...fields } }, headers);
}

const NAMED =
  "Rate limit reached for gpt-5.1 in organization org-1 on requests per min (RPM): Limit 3. Please try again in 6m0s.";

const platform: Row[] = [
  {
    name: "8.1, 401 invalid_api_key",
    evidence: error(401, {
      message:
        "Incorrect API key provided: sk-…. You can find your API key at https://platform.openai.com/account/api-keys.",
      type: "invalid_request_error",
      code: "invalid_api_key",
    }),
    kind: "unauthorized",
    row: 6,
    code: "invalid_api_key",
  },
  {
    name: "8.1, 401 member of no organization",
    evidence: error(401, { message: "You must be a member of an organization to use the API." }),
    kind: "credential_dead",
    row: 11,
    code: "no_organization",
  },
  ...[{ code: "ip_not_authorized" }, { message: "Your IP address is not authorized." }].map((
    fields,
  ): Row => ({
    name: `8.1, 401 from an address that is not listed: ${Object.keys(fields)[0]}`,
    evidence: error(401, fields),
    kind: "account_pause",
    row: 10,
    code: "ip_not_authorized",
    more: { untilMs: NOW + 3_600_000 },
  })),
  {
    name: "8.1, 403 country not supported",
    evidence: error(403, {
      code: "unsupported_country_region_territory",
      message: "Country, region, or territory not supported",
      type: "request_forbidden",
    }),
    kind: "edge_block",
    row: 15,
    code: "unsupported_country_region_territory",
    more: { scope: "provider" },
  },
  {
    name: "8.1, 404 model_not_found",
    evidence: error(404, {
      message: "The model `gpt-4` does not exist or you do not have access to it.",
      type: "invalid_request_error",
      code: "model_not_found",
    }),
    kind: "model_unsupported",
    row: 16,
    code: "model_not_found",
  },
  {
    name: "8.1, 400 context_length_exceeded",
    evidence: error(400, {
      message: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000.",
      type: "invalid_request_error",
      code: "context_length_exceeded",
    }),
    ...fault(3, "context_length_exceeded"),
  },
  {
    name: "8.1, 400 service_tier not allowed",
    evidence: error(400, { type: "invalid_request_error", param: "service_tier" }),
    ...fault(2, "invalid_request"),
  },
  {
    name: "8.1, 429 insufficient_quota is no wait, whatever Retry-After says",
    evidence: error(429, {
      message: "You exceeded your current quota, please check your plan and billing details. …",
      type: "insufficient_quota",
      code: "insufficient_quota",
    }, { "retry-after": "20" }),
    kind: "credits",
    row: 10,
    code: "insufficient_quota",
  },
  ...[
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
  ].map((code): Row => ({
    name: `8.1, 429 ${code}`,
    evidence: error(429, { type: "insufficient_quota", code }),
    kind: "credits",
    row: 10,
    code,
  })),
  {
    name: "8.1, 429 insufficient_quota with a code nobody knows",
    evidence: error(429, { type: "insufficient_quota", code: "never_seen_before" }),
    kind: "credits",
    row: 10,
    code: "insufficient_quota",
  },
  {
    name: "8.1, 429 rate_limit_exceeded names the model; the time is in the text",
    evidence: error(429, { message: NAMED, type: "requests", code: "rate_limit_exceeded" }),
    kind: "limited",
    row: 23,
    code: "rate_limit_exceeded",
    more: { shape: "rate", limiter: "model", stated: until(360, "message") },
  },
  {
    name: "8.2, retry-after-ms and retry-after outrank the text; the buckets' reset is no time to come back",
    evidence: error(429, { message: NAMED, type: "tokens", code: "rate_limit_exceeded" }, {
      "retry-after-ms": "1500",
      "retry-after": "2",
      "x-ratelimit-reset-requests": "1h0m0s",
      "x-ratelimit-remaining-requests": "0",
    }),
    kind: "limited",
    row: 23,
    code: "rate_limit_exceeded",
    more: { stated: until(2, "retry_after") },
  },
  {
    name: "8.1, 429 rate_limit_exceeded that names no model",
    evidence: error(429, { message: "Slow down", code: "rate_limit_exceeded" }),
    kind: "limited",
    row: 21,
    code: "rate_limit_exceeded",
    more: { limiter: "account", stated: null },
  },
  {
    name: "8.1, 429 rate_limit_exceeded to a request without a model",
    evidence: error(429, { message: NAMED, code: "rate_limit_exceeded" }),
    context: { nowMs: NOW, model: null },
    kind: "limited",
    row: 20,
    code: "rate_limit_exceeded",
    more: { limiter: "account" },
  },
  {
    name: "8.1, 429 in the same words without a code",
    evidence: error(429, { message: NAMED }),
    kind: "limited",
    row: 23,
    code: "rate_limit_exceeded",
  },
  {
    name: "8.1, 429 slow_down",
    evidence: error(429, { code: "slow_down" }),
    kind: "transient",
    row: 24,
    code: "slow_down",
    more: { cause: "overloaded", strike: true },
  },
  {
    name: "8.1, 503 slow_down with a time",
    evidence: error(503, { code: "slow_down" }, { "retry-after": "8" }),
    kind: "transient",
    row: 26,
    code: "slow_down",
    more: { notBeforeMs: NOW + 8_000 },
  },
  {
    name: "8.1, 500 server_error",
    evidence: error(500, { type: "server_error", code: "server_error" }),
    kind: "transient",
    row: 25,
    code: "server_error",
  },
  {
    name: "8.1, 503 server_is_overloaded",
    evidence: error(503, { type: "service_unavailable_error", code: "server_is_overloaded" }),
    kind: "transient",
    row: 26,
    code: "server_is_overloaded",
    more: { cause: "overloaded" },
  },
  ...["flex_unavailable", "resource_unavailable"].map((code): Row => ({
    name: `8.1, 429 ${code}: the cheap tier is full, not the account`,
    evidence: error(429, { code }),
    kind: "transient",
    row: 24,
    code,
    more: { cause: "overloaded" },
  })),
  {
    name: "B116, a parameter nobody knows is the request's",
    evidence: error(400, { message: "Unknown parameter: 'zz'.", code: "unknown_parameter", param: "zz" }),
    ...fault(2, "unknown_parameter"),
  },
];

const hosts: Row[] = [
  {
    name: "vLLM, context",
    evidence: http(400, {
      object: "error",
      message: "This model's maximum context length is 32768 tokens. However, you requested 40000.",
      type: "BadRequestError",
      param: null,
      code: 400,
    }),
    ...fault(3, "context_length_exceeded"),
  },
  {
    name: "vLLM, model",
    evidence: http(404, {
      object: "error",
      message: "The model `qwen3` does not exist.",
      type: "NotFoundError",
      code: 404,
    }),
    kind: "model_unsupported",
    row: 16,
    code: "model_not_found",
  },
  {
    name: "Ollama, model",
    evidence: http(404, {
      error: { message: `model "qwen3" not found, try pulling it first`, type: "api_error" },
    }),
    kind: "model_unsupported",
    row: 16,
    code: "model_not_found",
  },
  {
    name: "llama.cpp, context by its type",
    evidence: http(400, { error: { code: 400, message: "…", type: "exceed_context_size_error" } }),
    ...fault(3, "exceed_context_size_error"),
  },
  {
    name: "llama.cpp, context by its words",
    evidence: http(400, { error: { code: 400, message: "the request exceeds the available context size" } }),
    ...fault(3, "context_length_exceeded"),
  },
  {
    name: "llama.cpp, still loading",
    evidence: http(503, { error: { code: 503, message: "Loading model", type: "unavailable_error" } }),
    kind: "transient",
    row: 26,
    code: "upstream_error",
  },
  {
    name: "a gateway out of credit",
    evidence: http(402, { error: { code: 402, message: "Insufficient credits" } }),
    kind: "credits",
    row: 10,
    code: "payment_required",
  },
  {
    name: "a gateway's 429 in a stream, the status as code",
    evidence: event({ error: { code: 429, message: "Rate limit exceeded" } }),
    kind: "limited",
    row: 21,
    code: "rate_limited",
    more: { status: 429 },
  },
  {
    name: "a gateway's 502 in a stream",
    evidence: event({ error: { code: 502, message: "Provider disconnected" } }),
    kind: "transient",
    row: 36,
    code: "upstream_error",
    more: { status: 502 },
  },
  {
    name: "B045, an error object in a 200 without any code",
    evidence: event({ error: { message: "no credit" } }),
    kind: "transient",
    row: 36,
    code: "upstream_error",
  },
  {
    name: "a stream that ended in network_error",
    evidence: event({ error: { code: "network_error" } }),
    kind: "transient",
    row: 35,
    code: "network_error",
  },
  {
    name: "a stream that ended in sensitive",
    evidence: event({ error: { code: "sensitive" } }),
    ...fault(4, "sensitive"),
  },
  {
    name: "an unknown path is not the model's fault",
    evidence: http(404, `{"detail":"Not Found"}`),
    ...fault(17, "not_found"),
  },
  {
    name: "a 429 with limit headers alone",
    evidence: http(429, "", { "x-ratelimit-remaining-requests": "0" }),
    kind: "limited",
    row: 21,
    code: "rate_limited",
  },
  { name: "a 429 that says nothing", evidence: http(429, ""), kind: "transient", row: 24, code: "throttled" },
];

testSignalRows(OPENAI_COMPATIBLE, CONTEXT, [...platform, ...hosts]);

Deno.test("readSignal() of openai is silent about what is no failure answer", () => {
  const silent: Evidence[] = [
    { kind: "success" },
    { kind: "incomplete" },
    { kind: "malformed", detail: "no_choices" },
    { kind: "transport", cause: "dns", pooled: false },
  ];
  for (const evidence of silent) assertEquals(OPENAI_COMPATIBLE.readSignal(evidence, CONTEXT), null);
});
