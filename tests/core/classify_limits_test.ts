/** Rows 19 to 24: what a 429 means and when it ends. */
import { answer, EMPTY_BODY, facts, html } from "../support/evidence.ts";
import { at, NOW, retryAfter, testOutcomes } from "../support/outcome_rows.ts";

testOutcomes([
  {
    name: "row 19, 429 with Retry-After",
    evidence: answer(429, EMPTY_BODY, retryAfter(29)),
    want: {
      kind: "limited",
      row: 19,
      scope: "account",
      status: 429,
      code: "rate_limited",
      shape: "rate",
      limiter: "account",
      stated: at(29, "retry_after"),
    },
  },
  {
    name: "row 19, thirty days are kept (B034)",
    evidence: answer(429, EMPTY_BODY, retryAfter(2_592_000)),
    want: { kind: "limited", row: 19, stated: at(2_592_000, "retry_after") },
  },
  {
    name: "row 19, more than 366 days count as 366",
    evidence: answer(429, EMPTY_BODY, retryAfter(366 * 86_400 + 1)),
    want: { kind: "limited", stated: at(366 * 86_400, "retry_after") },
  },
  {
    name: "a reset beyond 366 days is no time",
    evidence: answer(429, facts({ message: "quota", resetsInMs: 366 * 86_400_000 + 1 })),
    want: { kind: "limited", row: 22, stated: null },
  },
  {
    name: "a date in the past states no time (B030)",
    evidence: answer(429, facts({ message: "Rate limit" }), {
      "retry-after": "Tue, 14 Nov 2023 22:11:50 GMT",
    }),
    want: { kind: "limited", row: 21, stated: null },
  },
  {
    name: "row 20, reset in the body",
    evidence: answer(429, facts({ type: "usage_limit_reached", resetsAtMs: NOW + 600_000 })),
    want: {
      kind: "limited",
      row: 20,
      shape: "quota",
      code: "usage_limit_reached",
      stated: at(600, "body"),
    },
  },
  {
    name: "row 20, the later of header and body (C18)",
    evidence: answer(429, facts({ type: "usage_limit_reached", resetsInMs: 60_000 }), retryAfter(90)),
    want: { kind: "limited", row: 19, stated: at(90, "retry_after") },
  },
  {
    name: "row 20, the later of two bodies' words",
    evidence: answer(
      429,
      facts({ type: "usage_limit_reached", resetsAtMs: NOW + 5_000, resetsInMs: 60_000 }),
      retryAfter(30),
    ),
    want: { kind: "limited", row: 20, stated: at(60, "body") },
  },
  {
    name: "row 20, only the valid one of header and body counts",
    evidence: answer(429, facts({ type: "usage_limit_reached", resetsAtMs: NOW - 1 }), retryAfter(30)),
    want: { kind: "limited", row: 19, stated: at(30, "retry_after") },
  },
  {
    name: "a reset at this very moment is over",
    evidence: answer(429, facts({ type: "usage_limit_reached", resetsAtMs: NOW })),
    want: { kind: "limited", row: 22, stated: null },
  },
  {
    name: "ruling 2, a message that states a wait is a time",
    evidence: answer(429, facts({ message: "Rate limit reached. Please try again in 11.054s." })),
    want: { kind: "limited", row: 20, shape: "rate", stated: at(11.054, "message") },
  },
  {
    name: "a header always beats prose (B032)",
    evidence: answer(429, facts({ message: "Rate limit reached. Please try again in 6m0s." }), retryAfter(5)),
    want: { kind: "limited", row: 19, stated: at(5, "retry_after") },
  },
  {
    name: "retry-after-ms is a time",
    evidence: answer(429, EMPTY_BODY, { "retry-after-ms": "1500" }),
    want: { kind: "limited", row: 19, stated: at(1.5, "retry_after") },
  },
  {
    name: "row 21, rate-worded without a time",
    evidence: answer(429, facts({ message: "Too Many Requests" })),
    want: { kind: "limited", row: 21, shape: "rate", code: "rate_limited", stated: null },
  },
  {
    name: "row 21, by rate-limit headers alone",
    evidence: answer(429, facts(), { "x-ratelimit-remaining-requests": "0" }),
    want: { kind: "limited", row: 21, shape: "rate", stated: null },
  },
  {
    name: "row 22, quota-worded without a time",
    evidence: answer(429, facts({ message: "You have exhausted your plan" })),
    want: { kind: "limited", row: 22, shape: "quota", code: "quota_limited", stated: null },
  },
  {
    name: "row 22, quota words win over rate words",
    evidence: answer(429, facts({ type: "rate_limit_error", message: "usage limit" })),
    want: { kind: "limited", row: 22, shape: "quota" },
  },
  {
    name: "row 23, a model limiter was named",
    evidence: answer(429),
    signal: {
      kind: "limited",
      shape: "quota",
      limiter: "model",
      code: "usage_limit_reached",
      stated: { untilMs: NOW + 9_000, source: "headers" },
    },
    want: { kind: "limited", row: 23, scope: "model", limiter: "model", stated: at(9, "headers") },
  },
  {
    name: "row 24, capacity with a time",
    evidence: answer(429, facts({ code: "slow_down" }), retryAfter(7)),
    want: {
      kind: "limited",
      row: 24,
      scope: "account",
      code: "slow_down",
      shape: "rate",
      stated: at(7, "retry_after"),
      strike: true,
    },
  },
  {
    name: "row 24, capacity without a time",
    evidence: answer(429, facts({ code: "server_is_overloaded" })),
    want: {
      kind: "transient",
      row: 24,
      cause: "overloaded",
      notBeforeMs: null,
      recoverable: false,
      strike: true,
    },
  },
  {
    name: "row 24, a throttle is nobody's strike (ruling 2)",
    evidence: answer(429, EMPTY_BODY),
    want: {
      kind: "transient",
      row: 24,
      scope: "account",
      cause: "throttle",
      code: "throttled",
      notBeforeMs: null,
      recoverable: false,
      strike: false,
    },
  },
  {
    name: "row 24, an HTML 429 says nothing about quota",
    evidence: answer(429, html("<p>usage of this site is limited</p>")),
    want: { kind: "transient", row: 24, cause: "throttle", strike: false },
  },
]);
