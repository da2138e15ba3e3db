/** What the platform and the hosts that copy it say beyond the common words (wire-facts 8.1). */
import { type Dictionary, extendDictionary, type Meaning } from "../core/error_meaning.ts";
import { COMMON_WORDS, sameMeaning } from "../core/error_words.ts";

const TOO_LONG: Meaning = { kind: "request_fault", row: 3 };
const MODEL: Meaning = { kind: "model" };
const OVERLOADED: Meaning = { kind: "overloaded" };
/** The organisation's list of addresses, or where this proxy stands: either may be put right at any time. */
const NOT_FROM_HERE: Meaning = { kind: "account_pause" };

export const OPENAI_WORDS: Dictionary = extendDictionary(COMMON_WORDS, {
  codes: new Map<string, Meaning>([
    ["ip_not_authorized", NOT_FROM_HERE],
    ["usage_limit_exceeded", { kind: "limit", shape: "quota" }],
    // Cheap tiers that are full for now.
    ...sameMeaning(OVERLOADED, "flex_unavailable", "resource_unavailable", "server_overloaded"),
    // Ends of broken streams, as hosts of GLM models tell them.
    ["network_error", { kind: "provider_reported" }],
    ["sensitive", { kind: "request_fault", row: 4 }],
  ]),
  // llama.cpp
  types: new Map<string, Meaning>([["exceed_context_size_error", TOO_LONG]]),
  phrases: [
    {
      pattern: /must be a member of an organization/i,
      code: "no_organization",
      meaning: { kind: "credential_dead" },
    },
    {
      pattern: /\bip(?: address)? (?:is )?not authorized/i,
      code: "ip_not_authorized",
      meaning: NOT_FROM_HERE,
    },
    {
      pattern: /\bmodel ['"`]?[^\s'"`]{1,200}['"`]? (?:does not exist|not found)/i,
      code: "model_not_found",
      meaning: MODEL,
    },
    {
      pattern: /exceeds? the (?:available|maximum) context (?:size|length|window)/i,
      code: "context_length_exceeded",
      meaning: TOO_LONG,
    },
    {
      pattern: /rate limit reached for/i,
      code: "rate_limit_exceeded",
      meaning: { kind: "limit", shape: "rate" },
    },
  ],
});
