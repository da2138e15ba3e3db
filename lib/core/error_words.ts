/**
 * The words that mean the same at every provider: OpenAI's vocabulary, which the others borrowed.
 *
 * A word that is missing here is not an error: the status gives a safe default.
 */
import type { Dictionary, Meaning, Phrase } from "./error_meaning.ts";

/** Builds one dictionary section from lists of words with the same meaning. */
export function sameMeaning(meaning: Meaning, ...words: string[]): [string, Meaning][] {
  return words.map((word) => [word, meaning]);
}

const INVALID: Meaning = { kind: "request_fault", row: 2 };
const REFUSED: Meaning = { kind: "request_fault", row: 4 };

const CODES = new Map<string, Meaning>([
  ...sameMeaning(
    INVALID,
    "invalid_request",
    "invalid_parameter",
    "invalid_value",
    "invalid_type",
    "invalid_json",
    "unsupported_value",
    "unsupported_parameter",
    "unknown_parameter",
    "missing_required_parameter",
    "string_above_max_length",
    "string_below_min_length",
    "array_above_max_length",
    "integer_above_max_value",
    "integer_below_min_value",
    "invalid_function_parameters",
    "invalid_image",
    "invalid_base64_image",
    "empty_image_file",
    "unsupported_image_media_type",
    "failed_to_download_image",
    "vector_store_timeout",
    "data_residency_mismatch",
  ),
  ...sameMeaning(
    { kind: "request_fault", row: 3 },
    "context_length_exceeded",
    "context_window_exceeded",
    "model_context_window_exceeded",
  ),
  ...sameMeaning(
    REFUSED,
    "invalid_prompt",
    "cyber_policy",
    "bio_policy",
    "misalignment_policy_violation",
    "content_policy_violation",
    "image_content_policy_violation",
    "content_filter",
    "inference_hook_denied",
    "session_budget_exceeded",
  ),
  ["previous_response_not_found", { kind: "request_fault", row: 4, state: "previous_response" }],
  ["invalid_encrypted_content", { kind: "request_fault", row: 4, state: "foreign_state" }],
  ...sameMeaning(
    { kind: "request_fault", row: 5 },
    "request_too_large",
    "message_too_big",
    "websocket_message_too_large",
  ),
  ...sameMeaning(
    { kind: "unauthorized" },
    "token_revoked",
    "token_invalidated",
    "token_expired",
    "invalid_api_key",
    "invalid_authentication",
  ),
  ...sameMeaning(
    { kind: "credential_dead" },
    "account_deactivated",
    "account_suspended",
    "account_deleted",
  ),
  ...sameMeaning(
    { kind: "credits" },
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "project_spend_limit_exceeded",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
    "insufficient_credits",
    "payment_required",
  ),
  ...sameMeaning(
    { kind: "model" },
    "model_not_found",
    "model_not_supported",
    "unsupported_model",
    "unknown_model",
    "model_unavailable",
  ),
  ...sameMeaning({ kind: "limit", shape: "rate" }, "rate_limit_exceeded"),
  ...sameMeaning({ kind: "limit", shape: "quota" }, "usage_limit_reached", "quota_exceeded"),
  ...sameMeaning({ kind: "overloaded" }, "server_is_overloaded", "slow_down", "overloaded_error"),
  ...sameMeaning({ kind: "transient" }, "server_error", "internal_server_error", "internal_error"),
  ...sameMeaning({ kind: "edge_block" }, "unsupported_country_region_territory"),
]);

const TYPES = new Map<string, Meaning>([
  ...sameMeaning({ kind: "limit", shape: "quota" }, "usage_limit_reached"),
  ...sameMeaning({ kind: "limit", shape: "rate" }, "rate_limit_exceeded"),
  ...sameMeaning({ kind: "credits" }, "insufficient_quota", "billing_error"),
  ...sameMeaning({ kind: "overloaded" }, "overloaded_error", "service_unavailable_error"),
]);

/** Every pattern runs in linear time over the 2,000 characters it gets. */
const PHRASES: Phrase[] = [
  {
    pattern: /previous response with id .{1,120} not found|invalid [`'"]?previous_response_id/i,
    code: "previous_response_not_found",
    meaning: { kind: "request_fault", row: 4, state: "previous_response" },
  },
  {
    pattern: /encrypted[ _]content .{0,160}could not be (?:verified|decrypted|parsed)/i,
    code: "invalid_encrypted_content",
    meaning: { kind: "request_fault", row: 4, state: "foreign_state" },
  },
  {
    pattern: /exceeds the context window|maximum context length is|prompt is too long/i,
    code: "context_length_exceeded",
    meaning: { kind: "request_fault", row: 3 },
  },
  {
    pattern: /item with id .{1,120} not found/i,
    code: "item_not_found",
    meaning: { kind: "request_fault", row: 17 },
  },
  { pattern: /unsupported parameter/i, code: "unsupported_parameter", meaning: INVALID },
  { pattern: /unknown parameter/i, code: "unknown_parameter", meaning: INVALID },
  {
    pattern: /account has been (?:deactivated|suspended|deleted)/i,
    code: "account_deactivated",
    meaning: { kind: "credential_dead" },
  },
  {
    pattern: /exceeded your current quota, please check your plan and billing/i,
    code: "insufficient_quota",
    meaning: { kind: "credits" },
  },
  {
    pattern: /country, region,? or territory (?:is )?not supported/i,
    code: "unsupported_country_region_territory",
    meaning: { kind: "edge_block" },
  },
  {
    pattern:
      /\bmodel\b.{0,120}\b(?:is |are )?not (?:supported|available) (?:for|on|with|in|by|to|when|your)\b|\bmodel\b.{0,120} does not exist or you do not have access/i,
    code: "model_not_supported",
    meaning: { kind: "model" },
  },
  {
    pattern: /model is at capacity|servers are (?:currently )?overloaded/i,
    code: "server_is_overloaded",
    meaning: { kind: "overloaded" },
  },
];

export const COMMON_WORDS: Dictionary = { codes: CODES, types: TYPES, phrases: PHRASES };
