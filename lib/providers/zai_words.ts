/**
 * z.ai's business codes (wire-facts 7.3): one number, one meaning, whatever the status it came with.
 *
 * The number stays part of our word, so that it can be looked up in z.ai's own list.
 */
import { type Dictionary, extendDictionary, type Meaning } from "../core/error_meaning.ts";
import { COMMON_WORDS } from "../core/error_words.ts";
import {
  FIVE_HOUR_RESET_LIMIT_MS,
  MONTHLY_RESET_LIMIT_MS,
  WEEKLY_RESET_LIMIT_MS,
} from "../core/retry_after.ts";

export interface ZaiCode {
  /** Our safe word. */
  readonly word: string;
  readonly meaning: Meaning;
  /** Longest believable wait in the message's reset time; absent: it states none. */
  readonly resetLimitMs?: number;
}

const DAILY_RESET_LIMIT_MS = 86_400_000 + 60_000;

const INVALID: Meaning = { kind: "request_fault", row: 2 };
const REFUSED: Meaning = { kind: "request_fault", row: 4 };
const UNAUTHORIZED: Meaning = { kind: "unauthorized" };
const DEAD: Meaning = { kind: "credential_dead" };
const CREDITS: Meaning = { kind: "credits" };
const MODEL: Meaning = { kind: "model" };
const RATE: Meaning = { kind: "limit", shape: "rate" };
const QUOTA: Meaning = { kind: "limit", shape: "quota" };
const THROTTLE: Meaning = { kind: "throttle" };
const OVERLOADED: Meaning = { kind: "overloaded" };
const TRANSIENT: Meaning = { kind: "transient" };

const SKETCHES: readonly [number, string, Meaning, number?][] = [
  [500, "internal_error", TRANSIENT],
  [1000, "auth_failed", UNAUTHORIZED],
  [1001, "auth_header_missing", UNAUTHORIZED],
  [1002, "token_invalid", UNAUTHORIZED],
  [1003, "token_expired", UNAUTHORIZED],
  [1004, "token_auth_failed", UNAUTHORIZED],
  [1005, "second_factor_needed", DEAD],
  // Trouble with the account's records: short, and no other account's.
  [1100, "account_records_failed", THROTTLE],
  [1110, "account_inactive", DEAD],
  [1111, "account_missing", DEAD],
  [1112, "account_locked", DEAD],
  // No balance or package; also what a key of the other plan's address is told.
  [1113, "no_balance", CREDITS],
  [1120, "account_inaccessible", THROTTLE],
  [1121, "account_violations", DEAD],
  [1200, "call_failed", TRANSIENT],
  [1210, "parameter_wrong", INVALID],
  [1211, "model_missing", MODEL],
  [1212, "model_method_missing", INVALID],
  [1213, "parameter_missing", INVALID],
  [1214, "parameter_invalid", INVALID],
  [1215, "parameters_conflict", INVALID],
  [1220, "api_not_permitted", MODEL],
  [1221, "api_offline", MODEL],
  [1222, "api_missing", MODEL],
  [1230, "process_failed", TRANSIENT],
  [1231, "duplicate_request", REFUSED],
  // Their network, never ours.
  [1234, "network_failed", { kind: "provider_reported" }],
  [1261, "prompt_too_long", { kind: "request_fault", row: 3 }],
  [1300, "policy_blocked", REFUSED],
  [1301, "content_unsafe", REFUSED],
  [1302, "rate_limited", RATE],
  [1303, "frequency_limited", RATE],
  [1304, "daily_limit", QUOTA, DAILY_RESET_LIMIT_MS],
  [1305, "overloaded", OVERLOADED],
  [1308, "usage_limit", QUOTA, FIVE_HOUR_RESET_LIMIT_MS],
  [1309, "plan_expired", CREDITS],
  [1310, "period_limit", QUOTA, MONTHLY_RESET_LIMIT_MS],
  [1311, "plan_excludes_model", MODEL],
  [1312, "model_overloaded", OVERLOADED],
  // Going on ends in a ban: nothing but a person's word sends anything again.
  [1313, "fair_use_restricted", DEAD],
  [1314, "plan_expired", CREDITS],
  ...[1316, 1318, 1320].map((code) =>
    [code, "five_hour_limit", QUOTA, FIVE_HOUR_RESET_LIMIT_MS] as [number, string, Meaning, number]
  ),
  ...[1317, 1319, 1321].map((code) =>
    [code, "seven_day_limit", QUOTA, WEEKLY_RESET_LIMIT_MS] as [number, string, Meaning, number]
  ),
];

/** By the number as it stands in a body, a type or the brackets of a message. */
export const ZAI_CODES: ReadonlyMap<string, ZaiCode> = new Map(
  SKETCHES.map(([code, word, meaning, resetLimitMs]) => [
    String(code),
    { word: `${word}_${code}`, meaning, ...(resetLimitMs !== undefined && { resetLimitMs }) },
  ]),
);

/** What is said without a number: the ends of broken streams, and quota in words. */
export const ZAI_WORDS: Dictionary = extendDictionary(COMMON_WORDS, {
  codes: new Map<string, Meaning>([
    ["network_error", { kind: "provider_reported" }],
    ["sensitive", REFUSED],
  ]),
  phrases: [
    {
      pattern: /usage limit reached for|使用上限|limit exhausted/i,
      code: "usage_limit_reached",
      meaning: QUOTA,
    },
    { pattern: /rate limit reached for requests/i, code: "rate_limit_exceeded", meaning: RATE },
  ],
});
