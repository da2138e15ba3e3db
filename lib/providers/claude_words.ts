/** Anthropic's words: `details.error_code`, and the texts its subscriptions still rely on (wire-facts 6.1-6.3, 6.6). */
import { type Dictionary, extendDictionary, type Meaning } from "../core/error_meaning.ts";
import { COMMON_WORDS, sameMeaning } from "../core/error_words.ts";

const INVALID: Meaning = { kind: "request_fault", row: 2 };
const REFUSED: Meaning = { kind: "request_fault", row: 4 };
const CREDITS: Meaning = { kind: "credits" };
const DEAD: Meaning = { kind: "credential_dead" };
const UNAUTHORIZED: Meaning = { kind: "unauthorized" };
const QUOTA: Meaning = { kind: "limit", shape: "quota" };
const RATE: Meaning = { kind: "limit", shape: "rate" };

/** Limits on what one model may cost; the plan's own windows may be fine. */
export const MODEL_LIMITS: ReadonlySet<string> = new Set(["credits_required", "extra_usage_exhausted"]);

const CODES = new Map<string, Meaning>([
  ["ramp_limit_exceeded", RATE],
  ["credits_required", QUOTA],
  // They end with the billing period or by an owner's hand: asked again rarely, whatever Retry-After says.
  ...sameMeaning(
    CREDITS,
    "enforced_spend_limit_reached",
    "contract_spend_limit_reached",
    "linked_organization_spend_limit_reached",
    "linked_organization_billing_unavailable",
  ),
  ...sameMeaning(DEAD, "organization_on_hold", "claude_code_key_creator_not_member"),
  // The workspace's own encryption key: somebody has to turn it on again, and the login stays good.
  ...sameMeaning({ kind: "account_pause" }, "cmek_key_disabled", "cmek_key_network_blocked"),
  ...sameMeaning(
    INVALID,
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
  ),
  // Signatures and threads are bound to the account that made them; without them the conversation is another one,
  // so nothing is left out and the client starts anew.
  ...sameMeaning(
    REFUSED,
    "compaction_signature_invalid",
    "compaction_content_mismatch",
    "compaction_tool_changes_mismatch",
    "thread_already_continued",
    "thread_continue_in_flight",
    "thread_fingerprint_mismatch",
    "sandbox_egress_restricted",
  ),
  ["thread_not_found", { kind: "request_fault", row: 4, state: "previous_response" }],
  ["request_body_too_large_after_decoding", { kind: "request_fault", row: 5 }],
  ...sameMeaning(
    { kind: "transient" },
    "cmek_context_unavailable",
    "cmek_key_unreachable",
    "compaction_unavailable",
  ),
]);

/** An error event inside a stream states no status. */
const IN_STREAM = null;

export const CLAUDE_WORDS: Dictionary = extendDictionary(COMMON_WORDS, {
  codes: CODES,
  phrases: [
    // Refusals of an option of the request, dressed as limits: the account serves everything else.
    {
      pattern: /(?:extra usage|usage credits) (?:is|are) required for (?:long context|1m context)/i,
      code: "long_context_needs_credits",
      meaning: REFUSED,
      at: [400, 403, 429, IN_STREAM],
    },
    {
      pattern: /usage credits (?:is|are) required for fast mode|fast mode requires usage credits/i,
      code: "fast_mode_needs_credits",
      meaning: REFUSED,
      at: [400, 403, 429, IN_STREAM],
    },
    {
      pattern: /only authorized for use with claude code/i,
      code: "claude_code_only",
      meaning: INVALID,
    },
    { pattern: /out of extra usage/i, code: "extra_usage_exhausted", meaning: QUOTA },
    { pattern: /credit balance is too low/i, code: "credit_balance_too_low", meaning: CREDITS },
    {
      pattern: /reached your specified api usage limits|\bregain access on \d{4}-/i,
      code: "api_usage_limit_reached",
      meaning: QUOTA,
      at: [400, 402, 403, 429, IN_STREAM],
    },
    {
      pattern: /(?:this|your) organization has been disabled/i,
      code: "organization_disabled",
      meaning: DEAD,
    },
    {
      pattern: /oauth authentication is currently not allowed for this organization/i,
      code: "oauth_org_not_allowed",
      meaning: DEAD,
    },
    // The header it asks for is always sent: then it is an outage, and a second 401 would kill every login.
    {
      pattern: /oauth authentication is currently not supported/i,
      code: "oauth_not_supported",
      meaning: { kind: "transient" },
      at: [401, 403, IN_STREAM],
    },
    { pattern: /oauth token has been revoked/i, code: "token_revoked", meaning: UNAUTHORIZED },
    { pattern: /oauth token has expired/i, code: "token_expired", meaning: UNAUTHORIZED },
    {
      pattern: /^model: \S|\bis not available\. please use\b/i,
      code: "model_not_found",
      meaning: { kind: "model" },
    },
    {
      pattern: /would exceed (?:the rate limit for your organization|your organization['’]s rate limit)/i,
      code: "rate_limit_exceeded",
      meaning: RATE,
    },
    { pattern: /^overloaded\.?$/i, code: "overloaded", meaning: { kind: "overloaded" } },
  ],
});
