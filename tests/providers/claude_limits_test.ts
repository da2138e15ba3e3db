/**
 * Anthropic's 429s (wire-facts 6.6, field case B005).
 *
 * Two rows of 6.6 are about other endpoints: 429s of the usage page and of the token endpoint. Neither is an
 * answer to a model's request, so neither is classified (ruling 12).
 */
import { CLAUDE } from "../../lib/providers/claude.ts";
import type { SignalContext } from "../../lib/providers/provider.ts";
import { fault, http, NOW, NOW_S, type Row, testSignalRows, until } from "../support/signal_rows.ts";

const CONTEXT: SignalContext = { nowMs: NOW, model: "claude-opus-4-8" };
const UNIFIED = "anthropic-ratelimit-unified-";

function refusal(message: string): unknown {
  return { type: "error", error: { type: "rate_limit_error", message }, request_id: "req_1" };
}

const ACCOUNT_TEXT = "This request would exceed your account's rate limit. Please try again later.";

/** Unified headers by their suffix; numbers are seconds from now. */
function unified(values: Record<string, string | number>, more: Record<string, string> = {}) {
  const pairs = Object.entries(values).map(([name, value]) => [
    UNIFIED + name,
    typeof value === "number" ? String(NOW_S + value) : value,
  ]);
  return { ...Object.fromEntries(pairs), ...more } as Record<string, string>;
}

/** 5h and 7d in order, the model's weekly bucket spent. */
const FABLE = {
  status: "rejected",
  "5h-status": "allowed",
  "7d-status": "allowed",
  "7d_oi-status": "rejected",
  "7d_oi-reset": 604_800,
  "representative-claim": "seven_day_overage_included",
};

const windows: Row[] = [
  {
    name: "6.6, the week is spent, as seen",
    evidence: http(
      429,
      refusal(ACCOUNT_TEXT),
      unified({
        status: "rejected",
        reset: 124_633,
        "representative-claim": "seven_day",
        "5h-status": "allowed",
        "5h-reset": 3_600,
        "5h-utilization": "0.28",
        "7d-status": "rejected",
        "7d-reset": 124_633,
        "7d-utilization": "1.0",
        "overage-status": "rejected",
        "overage-disabled-reason": "org_level_disabled",
      }, { "retry-after": "124633", "x-should-retry": "true" }),
    ),
    kind: "limited",
    row: 20,
    code: "usage_limit_reached",
    more: { shape: "quota", limiter: "account", scope: "account", stated: until(124_633, "headers") },
  },
  {
    name: "6.6, both windows rejected: the later reset",
    evidence: http(
      429,
      refusal(ACCOUNT_TEXT),
      unified({
        status: "rejected",
        "5h-status": "rejected",
        "5h-reset": 7_999,
        "7d-status": "rejected",
        "7d-reset": 90_000,
      }, { "retry-after": "7999" }),
    ),
    kind: "limited",
    row: 20,
    code: "usage_limit_reached",
    more: { stated: until(90_000, "headers") },
  },
  {
    name: "6.6, Retry-After beyond the rejected window",
    evidence: http(
      429,
      refusal("…"),
      unified({ status: "rejected", "5h-status": "rejected", "5h-reset": 100 }, { "retry-after": "8000" }),
    ),
    kind: "limited",
    row: 19,
    code: "usage_limit_reached",
    more: { stated: until(8_000, "retry_after") },
  },
  {
    name: "6.6, a window that is allowed has no say however far its reset",
    evidence: http(
      429,
      refusal("…"),
      unified({
        status: "rejected",
        "5h-status": "rejected",
        "5h-reset": 100,
        "7d-status": "allowed_warning",
        "7d-reset": 500_000,
      }),
    ),
    kind: "limited",
    row: 20,
    code: "usage_limit_reached",
    more: { stated: until(100, "headers") },
  },
  {
    name: "6.6, a rejected window without a reset falls to the representative one",
    evidence: http(
      429,
      refusal("…"),
      unified({
        status: "rejected",
        reset: 50,
        "5h-status": "rejected",
        "representative-claim": "five_hour",
      }),
    ),
    kind: "limited",
    row: 20,
    code: "usage_limit_reached",
    more: { stated: until(50, "headers") },
  },
  {
    name: "6.6, a rejected window whose reset is over",
    evidence: http(
      429,
      refusal("…"),
      unified({ status: "rejected", "5h-status": "rejected", "5h-reset": 0 }),
    ),
    kind: "limited",
    row: 22,
    code: "usage_limit_reached",
    more: { stated: null },
  },
  {
    name: "6.6, rejected without any window",
    evidence: http(429, refusal("…"), unified({ status: "rejected", reset: 60 })),
    kind: "limited",
    row: 20,
    code: "usage_limit_reached",
    more: { limiter: "account", stated: until(60, "headers") },
  },
  {
    name: "6.6, rejected with one window of two reported: no proof that it is about a model",
    evidence: http(429, refusal("…"), unified({ status: "rejected", reset: 60, "5h-status": "allowed" })),
    kind: "limited",
    row: 20,
    code: "usage_limit_reached",
    more: { limiter: "account" },
  },
  {
    name: "6.6, rejected although both windows allow: something narrower",
    evidence: http(
      429,
      refusal("…"),
      unified({ status: "rejected", reset: 60, "5h-status": "allowed", "7d-status": "allowed" }),
    ),
    kind: "limited",
    row: 23,
    code: "model_limit_reached",
    more: { limiter: "model" },
  },
  {
    name: "6.6, a claim on the week beats windows that still allow",
    evidence: http(
      429,
      refusal("…"),
      unified({
        status: "rejected",
        reset: 60,
        "representative-claim": "seven_day",
        "5h-status": "allowed",
        "7d-status": "allowed",
      }),
    ),
    kind: "limited",
    row: 20,
    code: "usage_limit_reached",
    more: { limiter: "account" },
  },
  {
    name: "6.6, fallback-percentage shortens no deadline (ruling 1)",
    evidence: http(
      429,
      refusal("…"),
      unified({
        status: "rejected",
        "5h-status": "rejected",
        "5h-reset": 13_262,
        "fallback-percentage": "0.5",
      }, { "retry-after": "13262" }),
    ),
    kind: "limited",
    row: 20,
    code: "usage_limit_reached",
    more: { stated: until(13_262, "headers") },
  },
];

const models: Row[] = [
  {
    name: "B005, the model's week is spent: back after Retry-After, the week is ignored",
    evidence: http(429, refusal("…"), unified(FABLE, { "retry-after": "120" })),
    kind: "limited",
    row: 23,
    code: "model_limit_reached",
    more: { limiter: "model", scope: "model", stated: until(120, "retry_after") },
  },
  {
    name: "B005, without Retry-After: the short default only",
    evidence: http(429, refusal("…"), unified(FABLE)),
    kind: "limited",
    row: 23,
    code: "model_limit_reached",
    more: { shape: "rate", limiter: "model", stated: null },
  },
  {
    name: "B005, with the 5h window rejected as well: the account, until the account's own window",
    evidence: http(
      429,
      refusal("…"),
      unified({ ...FABLE, "5h-status": "rejected", "5h-reset": 18_000 }),
    ),
    kind: "limited",
    row: 20,
    code: "usage_limit_reached",
    more: { limiter: "account", stated: until(18_000, "headers") },
  },
  {
    name: "6.6, a model's bucket by its status alone",
    evidence: http(
      429,
      refusal("…"),
      unified({ "7d_opus-status": "rejected", "7d_opus-reset": 9_999 }, { "retry-after": "5" }),
    ),
    kind: "limited",
    row: 23,
    code: "model_limit_reached",
    more: { stated: until(5, "retry_after") },
  },
  {
    name: "6.6, extra usage is out while the windows allow",
    evidence: http(
      429,
      refusal("You're out of extra usage. Add more at claude.ai/settings/usage and keep going."),
      unified({ status: "rejected", "5h-status": "allowed", "7d-status": "allowed" }),
    ),
    kind: "limited",
    row: 23,
    code: "extra_usage_exhausted",
    more: { shape: "quota", limiter: "model", stated: null },
  },
  {
    name: "6.6, extra usage is out and so is the window",
    evidence: http(
      429,
      refusal("You're out of extra usage."),
      unified({ status: "rejected", "5h-status": "rejected", "5h-reset": 70 }),
    ),
    kind: "limited",
    row: 20,
    code: "extra_usage_exhausted",
    more: { limiter: "account", stated: until(70, "headers") },
  },
];

const throttles: Row[] = [
  ...["Error", "Rate limited", ACCOUNT_TEXT].map((message): Row => ({
    name: `6.6, ${message} without headers: a throttle`,
    evidence: http(429, refusal(message), { "x-should-retry": "true" }),
    kind: "transient",
    row: 24,
    code: "throttled",
    more: { cause: "throttle", strike: false, notBeforeMs: null },
  })),
  {
    name: "6.6, the account's rate limit while its windows allow: a throttle",
    evidence: http(
      429,
      refusal(ACCOUNT_TEXT),
      unified({ status: "allowed", "5h-status": "allowed", "7d-status": "allowed_warning" }),
    ),
    kind: "transient",
    row: 24,
    code: "throttled",
    more: { cause: "throttle" },
  },
  {
    name: "6.6, the same with a Retry-After: a time is a deadline",
    evidence: http(429, refusal(ACCOUNT_TEXT), { "retry-after": "9" }),
    kind: "limited",
    row: 19,
    code: "rate_limited",
    more: { shape: "rate", limiter: "account", stated: until(9, "retry_after") },
  },
  {
    name: "6.6, 429 with an empty body",
    evidence: http(429, ""),
    kind: "transient",
    row: 24,
    code: "throttled",
  },
  {
    name: "6.6, 429 in words of quota",
    evidence: http(429, refusal("You have exhausted your usage for now")),
    kind: "limited",
    row: 22,
    code: "quota_limited",
    more: { shape: "quota" },
  },
  {
    name: "6.6, a challenge page with 429 is the edge's",
    evidence: http(429, "<html><title>Just a moment...</title></html>", { "content-type": "text/html" }),
    kind: "edge_block",
    row: 13,
    code: "edge_challenge",
  },
];

const options: Row[] = [
  ...[
    "Extra usage is required for long context requests.",
    "Usage credits are required for long context requests",
  ].map((message): Row => ({
    name: `6.6, ${message}: the request's, nothing cools`,
    evidence: http(429, refusal(message), unified({ status: "rejected" }, { "retry-after": "60" })),
    ...fault(4, "long_context_needs_credits"),
  })),
  ...["Usage credits are required for fast mode.", "Fast mode requires usage credits"].map((
    message,
  ): Row => ({
    name: `6.6, ${message}: the request's, nothing cools`,
    evidence: http(429, refusal(message)),
    ...fault(4, "fast_mode_needs_credits"),
  })),
];

const keys: Row[] = [
  {
    name: "6.4, an organization's tokens per minute",
    evidence: http(
      429,
      refusal(
        "This request would exceed the rate limit for your organization (0000-1111) of 100,000 input tokens per minute. For details…",
      ),
      { "retry-after": "4", "x-should-retry": "true", "anthropic-ratelimit-input-tokens-remaining": "0" },
    ),
    kind: "limited",
    row: 19,
    code: "rate_limit_exceeded",
    more: { shape: "rate", limiter: "account", stated: until(4, "retry_after") },
  },
  {
    name: "6.4, the same with the model named",
    evidence: http(
      429,
      refusal(
        "This request would exceed your organization's rate limit of 8,000 output tokens per minute (org: 0000-1111, model: claude-sonnet-4-6). For details…",
      ),
      { "retry-after": "4" },
    ),
    kind: "limited",
    row: 23,
    code: "rate_limit_exceeded",
    more: { limiter: "model", stated: until(4, "retry_after") },
  },
  {
    name: "6.4, the same with the model named to a request that named none",
    evidence: http(
      429,
      refusal("This request would exceed your organization's rate limit of 1 (model: claude-sonnet-4-6)."),
    ),
    context: { nowMs: NOW, model: null },
    kind: "limited",
    row: 21,
    code: "rate_limit_exceeded",
    more: { limiter: "account", stated: null },
  },
  {
    name: "6.4, counted buckets without words or time",
    evidence: http(429, refusal("Error"), {
      "anthropic-ratelimit-requests-limit": "50",
      "anthropic-ratelimit-requests-remaining": "0",
      "anthropic-ratelimit-requests-reset": "2030-01-01T00:00:00Z",
    }),
    kind: "limited",
    row: 21,
    code: "rate_limited",
    more: { shape: "rate", stated: null },
  },
];

testSignalRows(CLAUDE, CONTEXT, [...windows, ...models, ...throttles, ...options, ...keys]);
