/** Failures of wire-facts 1.1, 1.2 and 1.5 with their literal bodies, read and judged. */
import { frame, http, NOW, NOW_S, type Row, testRows, until } from "../support/codex_rows.ts";

const MODEL_TEXT = "The 'gpt-5.1-codex' model is not supported when using Codex with a ChatGPT account.";
const HOUR_MS = 3_600_000;

const shapes: Row[] = [
  {
    name: "1.1 a, error object with type and no code",
    evidence: http(429, {
      error: {
        type: "usage_limit_reached",
        message: "The usage limit has been reached",
        plan_type: "free",
        resets_at: NOW_S + 602_705,
        resets_in_seconds: 602_705,
        eligible_promo: null,
      },
    }),
    kind: "limited",
    row: 20,
    code: "usage_limit_reached",
    more: { shape: "quota", limiter: "account", stated: until(602_705, "body") },
  },
  {
    name: "1.1 b, the status inside the body",
    evidence: http(401, {
      error: { message: "x", type: null, code: "token_revoked", param: null },
      status: 401,
    }),
    kind: "unauthorized",
    row: 6,
    code: "token_revoked",
  },
  {
    name: "1.1 c, detail as text",
    evidence: http(400, { detail: MODEL_TEXT }),
    kind: "model_unsupported",
    row: 16,
    code: "model_not_supported",
  },
  {
    name: "1.1 d, detail as object with all fields",
    evidence: http(402, {
      detail: { message: "x", type: "x", param: null, code: "deactivated_workspace" },
    }),
    kind: "account_pause",
    row: 10,
    code: "deactivated_workspace",
  },
  {
    name: "1.1 e, code at the top",
    evidence: http(403, { code: "workspace_access_denied" }),
    kind: "account_pause",
    row: 11,
    code: "workspace_access_denied",
  },
  {
    name: "1.1 f, an HTML document",
    evidence: http(502, "<html><head><title>502</title></head></html>", { "content-type": "text/html" }),
    kind: "transient",
    row: 25,
    code: "upstream_error",
  },
  {
    name: "1.1 g, an empty body",
    evidence: http(500, ""),
    kind: "transient",
    row: 25,
    code: "upstream_error",
  },
  {
    name: "1.1 g, plain text",
    evidence: http(503, "upstream connect error or disconnect/reset before headers"),
    kind: "transient",
    row: 26,
    code: "upstream_error",
  },
  {
    name: "1.1 h, a frame with the error under body",
    evidence: frame({ type: "error", status: 429, body: { error: { type: "usage_limit_reached" } } }),
    kind: "limited",
    row: 22,
    code: "usage_limit_reached",
  },
  {
    name: "1.1 h, a frame with the error under response",
    evidence: frame({ type: "error", status: 401, response: { error: { code: "token_expired" } } }),
    kind: "unauthorized",
    row: 6,
    code: "token_expired",
  },
  {
    name: "1.1, the reason of a 401 only in x-error-json",
    evidence: http(401, "", { "x-error-json": btoa('{"error":{"code":"account_deactivated"}}') }),
    kind: "credential_dead",
    row: 11,
    code: "account_deactivated",
  },
  {
    name: "1.1, the reason of a 401 only in x-openai-authorization-error",
    evidence: http(401, "", { "x-openai-authorization-error": "token_revoked" }),
    kind: "unauthorized",
    row: 6,
    code: "token_revoked",
  },
];

const credentials: Row[] = [
  {
    name: "1.2, token_revoked",
    evidence: http(
      401,
      `{"error":{"message":"Encountered invalidated oauth token for user, failing request","type":null,"code":"token_revoked","param":null},"status":401}`,
    ),
    kind: "unauthorized",
    row: 6,
    code: "token_revoked",
    more: { scope: "account", status: 401 },
  },
  {
    name: "1.2, token_invalidated although its type is invalid_request_error",
    evidence: http(
      401,
      `{"error":{"message":"Your authentication token has been invalidated. Please try signing in again.","type":"invalid_request_error","code":"token_invalidated","param":null},"status":401}`,
    ),
    kind: "unauthorized",
    row: 6,
    code: "token_invalidated",
  },
  {
    name: "1.2, token_expired",
    evidence: http(401, {
      detail: {
        code: "token_expired",
        message: "Your authentication token has expired. Please try signing in again.",
      },
    }),
    kind: "unauthorized",
    row: 6,
    code: "token_expired",
  },
  {
    name: "1.2, an expired token in words only",
    evidence: http(401, { detail: "Your authentication token has expired. Please try signing in again." }),
    kind: "unauthorized",
    row: 6,
    code: "unauthorized",
  },
  {
    name: "1.2, detail Unauthorized",
    evidence: http(401, `{"detail":"Unauthorized"}`),
    kind: "unauthorized",
    row: 6,
    code: "unauthorized",
  },
  {
    name: "1.2, account_deactivated",
    evidence: http(401, { error: { code: "account_deactivated" } }),
    kind: "credential_dead",
    row: 11,
    code: "account_deactivated",
  },
  {
    name: "1.2, account deactivated in words",
    evidence: http(401, { error: { message: "Your OpenAI account has been deactivated, please check" } }),
    kind: "credential_dead",
    row: 11,
    code: "account_deactivated",
  },
  {
    name: "1.2, deactivated_workspace rests an hour (ruling 20)",
    evidence: http(402, `{"detail":{"code":"deactivated_workspace"}}`),
    kind: "account_pause",
    row: 10,
    code: "deactivated_workspace",
    more: { untilMs: NOW + HOUR_MS, scope: "account" },
  },
  ...["codex_workspace_access_denied", "workspace_access_denied", "codex_entitlement_missing"].flatMap((
    code,
  ) =>
    [
      { name: "under error", body: { error: { code } } },
      { name: "under detail", body: { detail: { code } } },
      { name: "at the top", body: { code } },
    ].map(({ name, body }): Row => ({
      name: `1.2, ${code} ${name}: the login stays good`,
      evidence: http(403, body),
      kind: "account_pause",
      row: 11,
      code,
      more: { untilMs: NOW + HOUR_MS },
    }))
  ),
  {
    name: "1.2, entitlement_missing without a model",
    evidence: http(403, { error: { code: "entitlement_missing", message: "Not entitled" } }),
    kind: "account_pause",
    row: 11,
    code: "entitlement_missing",
  },
  {
    name: "1.2, entitlement_missing for a model when the request named none",
    evidence: http(403, { error: { code: "entitlement_missing", message: "No access to this model" } }),
    context: { nowMs: NOW, model: null },
    kind: "account_pause",
    row: 11,
    code: "entitlement_missing",
  },
  {
    name: "1.2, entitlement_missing for a model",
    evidence: http(403, { error: { code: "entitlement_missing", message: "No access to this model" } }),
    kind: "model_unsupported",
    row: 12,
    code: "entitlement_missing",
  },
  {
    name: "1.2, Cloudflare block page",
    evidence: http(
      403,
      "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head>" +
        "<body><h1>Sorry, you have been blocked</h1></body></html>",
      { "content-type": "text/html; charset=UTF-8", "cf-ray": "9abc" },
    ),
    kind: "edge_block",
    row: 13,
    code: "edge_blocked",
    more: { scope: "provider" },
  },
  {
    name: "1.2, Cloudflare challenge page",
    evidence: http(
      403,
      `<html><head><title>Just a moment...</title><script src="/cdn-cgi/challenge-platform/h/g"></script></head></html>`,
      { "content-type": "text/html", "cf-mitigated": "challenge" },
    ),
    kind: "edge_block",
    row: 13,
    code: "edge_challenge",
  },
  { name: "1.2, empty 403", evidence: http(403, ""), kind: "edge_block", row: 13, code: "edge_empty" },
  {
    name: "1.2, region refused",
    evidence: http(403, { error: { code: "unsupported_country_region_territory" } }),
    kind: "edge_block",
    row: 15,
    code: "unsupported_country_region_territory",
  },
];

const overloads: Row[] = [
  {
    name: "1.5, server_is_overloaded",
    evidence: http(503, {
      error: {
        type: "service_unavailable_error",
        code: "server_is_overloaded",
        message: "Our servers are currently overloaded. Please try again later.",
      },
    }),
    kind: "transient",
    row: 26,
    code: "server_is_overloaded",
    more: { cause: "overloaded", notBeforeMs: null, recoverable: true, strike: true },
  },
  {
    name: "1.5, overload in words",
    evidence: http(503, "Our servers are currently overloaded. Please try again later."),
    kind: "transient",
    row: 26,
    code: "server_is_overloaded",
    more: { cause: "overloaded" },
  },
  {
    name: "1.5, slow_down with a time",
    evidence: http(503, { error: { code: "slow_down" } }, { "retry-after": "12" }),
    kind: "transient",
    row: 26,
    code: "slow_down",
    more: { cause: "overloaded", notBeforeMs: NOW + 12_000 },
  },
  ...[500, 502, 504, 520, 521, 522].map((status): Row => ({
    name: `1.5, bare ${status}`,
    evidence: http(status, ""),
    kind: "transient",
    row: 25,
    code: "upstream_error",
  })),
  {
    name: "1.5, limit words in a 500 make no limit",
    evidence: http(500, { detail: "Rate limit reached for the internal cache" }),
    kind: "transient",
    row: 25,
    code: "upstream_error",
  },
  {
    name: "1.5, policy_capacity_unavailable",
    evidence: http(503, { error: { code: "policy_capacity_unavailable" } }),
    kind: "transient",
    row: 26,
    code: "policy_capacity_unavailable",
    more: { cause: "overloaded" },
  },
  {
    name: "1.5, policy capacity in words",
    evidence: http(503, {
      detail: "Policy-restricted capacity is unavailable. Please try again later.",
    }),
    kind: "transient",
    row: 26,
    code: "policy_capacity_unavailable",
  },
];

testRows([...shapes, ...credentials, ...overloads]);
