/**
 * What a kind of upstream takes beyond its protocol's letter.
 *
 * Facts: wire-facts 5.4 (Codex backend), docs.z.ai (chat fields), the SDK type files.
 */
import type { ProviderKind } from "../../core/domain.ts";

/** - `platform`: api.openai.com with a key. - `self_hosted`: any other OpenAI-compatible host. */
export type TranslateTarget = "codex" | "platform" | "anthropic" | "zai" | "self_hosted";

export interface TargetQuirks {
  /** Words for notes and refusals. */
  readonly label: string;
  /** Top-level Responses fields this upstream refuses; they are left out with a note. */
  readonly droppedResponsesFields: ReadonlySet<string>;
  /** True where the `developer` role is known; elsewhere it is spelled `system`. */
  readonly developerRole: boolean;
  /** Chat: the name of the output limit. */
  readonly maxTokensField: "max_completion_tokens" | "max_tokens";
  /** True where a JSON schema can be demanded of the answer. */
  readonly jsonSchema: boolean;
  /** How the depth of reasoning is asked for over chat. */
  readonly chatReasoning: "reasoning_effort" | "thinking_switch";
  /** True where chat knows tools with free text input. */
  readonly customTools: boolean;
  /** True where `strict` tool schemas are known. */
  readonly strictTools: boolean;
}

/** Refused by the Codex backend, or dropped by everybody who talks to it (wire-facts 5.4). */
export const CODEX_DROPPED_FIELDS: ReadonlySet<string> = new Set([
  "max_output_tokens",
  "metadata",
  "prompt_cache_retention",
  "safety_identifier",
  "temperature",
  "top_p",
  "truncation",
  "user",
  "prompt_cache_options",
  "stream_options",
  "background",
  "generate",
  "previous_response_id",
]);

const NONE: ReadonlySet<string> = new Set();

const QUIRKS: Readonly<Record<TranslateTarget, TargetQuirks>> = {
  codex: {
    label: "the Codex backend",
    droppedResponsesFields: CODEX_DROPPED_FIELDS,
    developerRole: true,
    maxTokensField: "max_completion_tokens",
    jsonSchema: true,
    chatReasoning: "reasoning_effort",
    customTools: true,
    strictTools: true,
  },
  platform: {
    label: "the OpenAI platform",
    droppedResponsesFields: NONE,
    developerRole: true,
    maxTokensField: "max_completion_tokens",
    jsonSchema: true,
    chatReasoning: "reasoning_effort",
    customTools: true,
    strictTools: true,
  },
  anthropic: {
    label: "the Anthropic API",
    droppedResponsesFields: NONE,
    developerRole: false,
    maxTokensField: "max_tokens",
    jsonSchema: true,
    chatReasoning: "reasoning_effort",
    customTools: false,
    strictTools: true,
  },
  zai: {
    label: "z.ai",
    droppedResponsesFields: NONE,
    developerRole: false,
    maxTokensField: "max_tokens",
    // docs.z.ai names `text` and `json_object` alone.
    jsonSchema: false,
    chatReasoning: "thinking_switch",
    customTools: false,
    strictTools: false,
  },
  self_hosted: {
    label: "an OpenAI-compatible host",
    droppedResponsesFields: NONE,
    developerRole: false,
    maxTokensField: "max_tokens",
    jsonSchema: true,
    chatReasoning: "reasoning_effort",
    customTools: false,
    strictTools: true,
  },
};

export function quirksOf(target: TranslateTarget): TargetQuirks {
  return QUIRKS[target];
}

/** The target of a configured provider: its kind, and for `openai` whose host it is. */
export function targetOf(kind: ProviderKind, baseUrl: string): TranslateTarget {
  if (kind !== "openai") return kind;
  return /^https:\/\/([a-z0-9-]+\.)?api\.openai\.com(:443)?(\/|$)/i.test(baseUrl)
    ? "platform"
    : "self_hosted";
}
