/** Every code of wire-facts 7.3, in the forms of 7.2 and with the times of 7.4, read and judged. */
import { assertEquals } from "@std/assert";
import type { Evidence } from "../../lib/core/evidence.ts";
import { ZAI } from "../../lib/providers/zai.ts";
import { ZAI_CODES } from "../../lib/providers/zai_words.ts";
import type { SignalContext } from "../../lib/providers/provider.ts";
import { event, fault, http, NOW, type Row, testSignalRows } from "../support/signal_rows.ts";

const CONTEXT: SignalContext = { nowMs: NOW, model: "glm-5.2" };
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** `2026-08-27 21:31:39`: the moment as z.ai writes it, eight hours ahead of UTC and without saying so. */
function stamp(ms: number): string {
  return new Date(ms + 8 * HOUR_MS).toISOString().slice(0, 19).replace("T", " ");
}

/** Times on the wire have no fractions of a second. */
const inMs = (ms: number) => Math.floor((NOW + ms) / 1_000) * 1_000;

interface Case {
  code: number;
  statuses: number[];
  want: Omit<Row, "name" | "evidence">;
}

const dead = (code: string) => ({ kind: "credential_dead", row: 11, code });
const unauthorized = (code: string) => ({ kind: "unauthorized", row: 6, code });
const credits = (code: string) => ({ kind: "credits", row: 10, code });
const model = (code: string, row = 16) => ({ kind: "model_unsupported", row, code });
const limited = (code: string, shape: string) => ({
  kind: "limited",
  row: shape === "rate" ? 21 : 22,
  code,
  more: { shape, limiter: "account", stated: null },
});
const throttle = (code: string) => ({
  kind: "transient",
  row: 24,
  code,
  more: { cause: "throttle", strike: false, scope: "account" },
});
const overloaded = (code: string) => ({
  kind: "transient",
  row: 24,
  code,
  more: { cause: "overloaded", strike: true, scope: "provider" },
});
const transient = (code: string) => ({ kind: "transient", row: 25, code, more: { cause: "status" } });

const cases: Case[] = [
  { code: 500, statuses: [500], want: transient("internal_error_500") },
  { code: 1000, statuses: [401], want: unauthorized("auth_failed_1000") },
  { code: 1001, statuses: [401], want: unauthorized("auth_header_missing_1001") },
  { code: 1002, statuses: [401], want: unauthorized("token_invalid_1002") },
  { code: 1003, statuses: [401], want: unauthorized("token_expired_1003") },
  { code: 1004, statuses: [401], want: unauthorized("token_auth_failed_1004") },
  { code: 1005, statuses: [401], want: dead("second_factor_needed_1005") },
  { code: 1100, statuses: [400, 500], want: throttle("account_records_failed_1100") },
  { code: 1110, statuses: [401, 429], want: dead("account_inactive_1110") },
  { code: 1111, statuses: [401, 429], want: dead("account_missing_1111") },
  { code: 1112, statuses: [401, 429], want: dead("account_locked_1112") },
  { code: 1113, statuses: [429], want: credits("no_balance_1113") },
  { code: 1120, statuses: [429], want: throttle("account_inaccessible_1120") },
  { code: 1121, statuses: [429], want: dead("account_violations_1121") },
  { code: 1200, statuses: [500], want: transient("call_failed_1200") },
  { code: 1210, statuses: [400], want: fault(2, "parameter_wrong_1210") },
  { code: 1211, statuses: [400], want: model("model_missing_1211") },
  { code: 1212, statuses: [400], want: fault(2, "model_method_missing_1212") },
  { code: 1213, statuses: [400], want: fault(2, "parameter_missing_1213") },
  { code: 1214, statuses: [400], want: fault(2, "parameter_invalid_1214") },
  { code: 1215, statuses: [400], want: fault(2, "parameters_conflict_1215") },
  { code: 1220, statuses: [434], want: model("api_not_permitted_1220") },
  { code: 1220, statuses: [403], want: model("api_not_permitted_1220", 12) },
  { code: 1221, statuses: [400, 404], want: model("api_offline_1221") },
  { code: 1222, statuses: [404], want: model("api_missing_1222") },
  { code: 1230, statuses: [500], want: transient("process_failed_1230") },
  { code: 1231, statuses: [400], want: fault(4, "duplicate_request_1231") },
  {
    code: 1234,
    statuses: [500],
    want: {
      kind: "transient",
      row: 35,
      code: "network_failed_1234",
      more: { cause: "provider_reported", recoverable: true },
    },
  },
  { code: 1261, statuses: [400], want: fault(3, "prompt_too_long_1261") },
  { code: 1300, statuses: [400], want: fault(4, "policy_blocked_1300") },
  { code: 1301, statuses: [400], want: fault(4, "content_unsafe_1301") },
  { code: 1302, statuses: [429], want: limited("rate_limited_1302", "rate") },
  { code: 1303, statuses: [429], want: limited("frequency_limited_1303", "rate") },
  { code: 1304, statuses: [429], want: limited("daily_limit_1304", "quota") },
  { code: 1305, statuses: [429], want: overloaded("overloaded_1305") },
  { code: 1308, statuses: [429], want: limited("usage_limit_1308", "quota") },
  { code: 1309, statuses: [429], want: credits("plan_expired_1309") },
  { code: 1310, statuses: [429], want: limited("period_limit_1310", "quota") },
  { code: 1311, statuses: [429], want: model("plan_excludes_model_1311") },
  { code: 1312, statuses: [429], want: overloaded("model_overloaded_1312") },
  { code: 1313, statuses: [429], want: dead("fair_use_restricted_1313") },
  { code: 1314, statuses: [429], want: credits("plan_expired_1314") },
  { code: 1316, statuses: [429], want: limited("five_hour_limit_1316", "quota") },
  { code: 1318, statuses: [429], want: limited("five_hour_limit_1318", "quota") },
  { code: 1320, statuses: [429], want: limited("five_hour_limit_1320", "quota") },
  { code: 1317, statuses: [429], want: limited("seven_day_limit_1317", "quota") },
  { code: 1319, statuses: [429], want: limited("seven_day_limit_1319", "quota") },
  { code: 1321, statuses: [429], want: limited("seven_day_limit_1321", "quota") },
];

const codes: Row[] = cases.flatMap(({ code, statuses, want }) =>
  statuses.map((status): Row => ({
    name: `7.3, ${code} with ${status}`,
    evidence: http(status, { error: { code: String(code), message: "…" } }),
    ...want,
  }))
);

testSignalRows(ZAI, CONTEXT, codes);

Deno.test("readSignal() of zai has a row here for every code it knows", () => {
  assertEquals(
    [...new Set(cases.map(({ code }) => code))].sort((a, b) => a - b),
    [...ZAI_CODES.keys()].map(Number).sort((a, b) => a - b),
  );
});

/** Forms in which one code arrives; each is judged alike. */
const forms: { name: string; make: (code: number, text: string) => Evidence }[] = [
  { name: "a string", make: (code, text) => http(429, { error: { code: String(code), message: text } }) },
  { name: "a number", make: (code, text) => http(429, { error: { code, message: text } }) },
  {
    name: "the newer Anthropic style",
    make: (code, text) =>
      http(429, {
        type: "error",
        error: { type: "rate_limit_error", code: String(code), message: `[${code}][${text}][20260912]` },
        request_id: "x",
      }),
  },
  {
    name: "the older Anthropic style",
    make: (code, text) => http(429, { type: "error", error: { type: String(code), message: text } }),
  },
  {
    name: "brackets alone",
    make: (code, text) =>
      http(429, {
        type: "error",
        error: { type: "rate_limit_error", message: `[${code}][${text}][20260912]` },
      }),
  },
  {
    name: "brackets under another code",
    make: (code, text) =>
      http(429, { error: { code: "rate_limit_error", message: `[${code}][${text}][20260912]` } }),
  },
  {
    name: "the body of a 200",
    make: (code, text) => event({ error: { code: String(code), message: text } }),
  },
  {
    name: "a 200 without an error object",
    make: (code, text) => event({ code, msg: text, success: false }),
  },
  {
    name: "an error event",
    make: (code, text) =>
      event({ type: "error", error: { type: "api_error", code: String(code), message: text } }),
  },
];
testSignalRows(
  ZAI,
  CONTEXT,
  forms.flatMap(({ name, make }): Row[] => {
    const resetAtMs = inMs(2 * HOUR_MS);
    const text = `Usage limit reached for 5 hour. Your limit will reset at ${stamp(resetAtMs)}`;
    return [
      { name: `7.2, 1113 as ${name}`, evidence: make(1113, "No package"), ...credits("no_balance_1113") },
      {
        name: `7.2, 1308 as ${name}`,
        evidence: make(1308, text),
        kind: "limited",
        row: 20,
        code: "usage_limit_1308",
        more: { shape: "quota", stated: { untilMs: resetAtMs, source: "body" } },
      },
    ];
  }),
);

/** The reset in the text, in ms from now, and whether it is believed. */
const times: {
  name: string;
  code: number;
  text: (at: string) => string;
  aheadMs: number;
  believed: boolean;
}[] = [
  {
    name: "Chinese",
    code: 1308,
    text: (at) => `已达到 5 小时的使用上限。您的限额将在 ${at} 重置。`,
    aheadMs: HOUR_MS,
    believed: true,
  },
  {
    name: "five hours",
    code: 1308,
    text: (at) => `Usage limit reached for 5 hour. Your limit will reset at ${at}`,
    aheadMs: 5 * HOUR_MS,
    believed: true,
  },
  {
    name: "more than five hours: eight too many is a zone read wrong",
    code: 1308,
    text: (at) => `Usage limit reached for 5 hour. Your limit will reset at ${at}`,
    aheadMs: 5 * HOUR_MS + 2 * MINUTE_MS,
    believed: false,
  },
  {
    name: "the past",
    code: 1308,
    text: (at) => `Usage limit reached for 5 hour. Your limit will reset at ${at}`,
    aheadMs: -MINUTE_MS,
    believed: false,
  },
  {
    name: "a month",
    code: 1310,
    text: (at) => `Weekly/Monthly Limit Exhausted. Your limit will reset at ${at}`,
    aheadMs: 31 * DAY_MS,
    believed: true,
  },
  {
    name: "more than a month",
    code: 1310,
    text: (at) => `Weekly/Monthly Limit Exhausted. Your limit will reset at ${at}`,
    aheadMs: 31 * DAY_MS + 2 * MINUTE_MS,
    believed: false,
  },
  {
    name: "a week where the text says week alone",
    code: 1310,
    text: (at) => `Weekly limit exhausted. Your limit will reset at ${at}`,
    aheadMs: 7 * DAY_MS,
    believed: true,
  },
  {
    name: "more than the week that the text says",
    code: 1310,
    text: (at) => `Weekly limit exhausted. Your limit will reset at ${at}`,
    aheadMs: 7 * DAY_MS + 2 * MINUTE_MS,
    believed: false,
  },
  { name: "a day", code: 1304, text: (at) => `It will reset at ${at}`, aheadMs: DAY_MS, believed: true },
  {
    name: "more than a day",
    code: 1304,
    text: (at) => `It will reset at ${at}`,
    aheadMs: DAY_MS + 2 * MINUTE_MS,
    believed: false,
  },
  { name: "five hours", code: 1318, text: (at) => `reset at ${at}`, aheadMs: 5 * HOUR_MS, believed: true },
  { name: "six hours", code: 1318, text: (at) => `reset at ${at}`, aheadMs: 6 * HOUR_MS, believed: false },
  { name: "seven days", code: 1319, text: (at) => `reset at ${at}`, aheadMs: 7 * DAY_MS, believed: true },
  { name: "eight days", code: 1319, text: (at) => `reset at ${at}`, aheadMs: 8 * DAY_MS, believed: false },
  {
    name: "a time with a code that states none",
    code: 1302,
    text: (at) => `reset at ${at}`,
    aheadMs: MINUTE_MS,
    believed: false,
  },
];
for (const c of times) {
  Deno.test(`readSignal() of zai ${c.believed ? "believes" : "distrusts"} ${c.code}: ${c.name}`, () => {
    const untilMs = inMs(c.aheadMs);
    const evidence = http(429, { error: { code: String(c.code), message: c.text(stamp(untilMs)) } });
    const signal = ZAI.readSignal(evidence, CONTEXT);
    assertEquals(signal?.kind, "limited");
    if (signal?.kind === "limited") {
      assertEquals(signal.stated, c.believed ? { untilMs, source: "body" } : null);
    }
  });
}

Deno.test("readSignal() of zai reads the captured reset as UTC+8", () => {
  const nowMs = Date.UTC(2026, 7, 27, 12, 0, 0);
  const evidence = http(
    429,
    `{"error":{"code":"1308","message":"Usage limit reached for 5 hour. Your limit will reset at 2026-08-27 21:31:39"}}`,
  );
  const signal = ZAI.readSignal(evidence, { ...CONTEXT, nowMs });
  assertEquals(signal?.kind === "limited" ? signal.stated?.untilMs : null, Date.UTC(2026, 7, 27, 13, 31, 39));
});

const others: Row[] = [
  {
    name: "7.2, overload in the Anthropic style",
    evidence: http(529, { type: "error", error: { type: "overloaded_error", message: "…" } }),
    kind: "transient",
    row: 27,
    code: "overloaded_error",
    more: { cause: "overloaded" },
  },
  {
    name: "7.2, a stream that ended in network_error: theirs, not ours",
    evidence: event({ error: { code: "network_error" } }),
    kind: "transient",
    row: 35,
    code: "network_error",
    more: { cause: "provider_reported" },
  },
  {
    name: "7.2, a stream that ended in sensitive",
    evidence: event({ error: { code: "sensitive" } }),
    ...fault(4, "sensitive"),
  },
  {
    name: "7.2, a stream that ended in error",
    evidence: event({ error: { code: "error" } }),
    kind: "transient",
    row: 36,
    code: "upstream_error",
  },
  {
    name: "7.2, a status for a code in a 200: 401",
    evidence: event({ code: 401, msg: "token expired or incorrect", success: false }),
    kind: "unauthorized",
    row: 6,
    code: "unauthorized",
  },
  {
    name: "7.2, a status for a code in a 200: 429",
    evidence: event({ code: 429, msg: "too many requests", success: false }),
    kind: "limited",
    row: 21,
    code: "rate_limited",
    more: { status: 429 },
  },
  {
    name: "7.2, a status for a type",
    evidence: http(401, { type: "error", error: { type: "401", message: "token expired or incorrect" } }),
    kind: "unauthorized",
    row: 6,
    code: "unauthorized",
  },
  {
    name: "7.3, 434 without a code",
    evidence: http(434, ""),
    kind: "model_unsupported",
    row: 16,
    code: "api_not_permitted",
  },
  { name: "7.3, 435", evidence: http(435, ""), ...fault(5, "file_too_large") },
  { name: "7.3, 404 without a code", evidence: http(404, ""), ...fault(17, "not_found") },
  {
    name: "7.3, a code nobody knows falls to its status",
    evidence: http(429, { error: { code: "1399", message: "…" } }),
    kind: "transient",
    row: 24,
    code: "throttled",
  },
  {
    name: "7.3, 1305 with a time is a deadline and a strike",
    evidence: http(429, { error: { code: "1305", message: "…" } }, { "retry-after": "5" }),
    kind: "limited",
    row: 24,
    code: "overloaded_1305",
    more: { strike: true, stated: { untilMs: NOW + 5_000, source: "retry_after" } },
  },
  {
    name: "7.3, 1305 inside a 200",
    evidence: event({ error: { code: "1305", message: "…" } }),
    kind: "transient",
    row: 36,
    code: "overloaded_1305",
    more: { cause: "overloaded", strike: true },
  },
  {
    name: "7.3, 1211 when the request named no model",
    evidence: http(400, { error: { code: "1211" } }),
    context: { nowMs: NOW, model: null },
    ...fault(2, "model_missing_1211"),
  },
  {
    name: "7.2, quota in words without a code",
    evidence: http(429, {
      error: { message: `Usage limit reached for 5 hour. Your limit will reset at ${stamp(inMs(HOUR_MS))}` },
    }),
    kind: "limited",
    row: 20,
    code: "usage_limit_reached",
    more: { shape: "quota", stated: { untilMs: inMs(HOUR_MS), source: "body" } },
  },
  {
    name: "7.2, rate in words without a code",
    evidence: http(429, { error: { message: "Rate limit reached for requests" } }),
    kind: "limited",
    row: 21,
    code: "rate_limit_exceeded",
  },
  {
    name: "7.2, HTML from the edge",
    evidence: http(403, "<html><title>Just a moment...</title></html>", { "content-type": "text/html" }),
    kind: "edge_block",
    row: 13,
    code: "edge_challenge",
  },
];
testSignalRows(ZAI, CONTEXT, others);

Deno.test("readSignal() of zai is silent about what is no failure answer", () => {
  const silent: Evidence[] = [
    { kind: "success" },
    { kind: "incomplete" },
    { kind: "malformed", detail: "no_event" },
    { kind: "transport", cause: "reset_in_body", pooled: false },
  ];
  for (const evidence of silent) assertEquals(ZAI.readSignal(evidence, CONTEXT), null);
});
