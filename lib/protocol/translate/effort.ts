/**
 * The depth of reasoning: OpenAI names levels, Anthropic gave a budget of tokens and now names levels too.
 *
 * Sources: the type files of both SDKs (effort values; `budget_tokens` at least 1,024 and below `max_tokens`).
 */
import { entryOf } from "./json.ts";

/** Least budget Anthropic accepts. */
export const MIN_BUDGET_TOKENS = 1_024;

const BUDGET_TOKENS: Readonly<Record<string, number>> = {
  minimal: 1_024,
  low: 4_096,
  medium: 8_192,
  high: 24_576,
  xhigh: 32_768,
  max: 49_152,
};

/** @returns the budget of a level, `null` for a level nobody knows. */
export function budgetOfEffort(effort: string): number | null {
  return entryOf(BUDGET_TOKENS, effort);
}

/** The level closest to a budget; the borders lie so that `budgetOfEffort()` comes back to its level. */
export function effortOfBudget(budgetTokens: number): "low" | "medium" | "high" | "xhigh" {
  if (budgetTokens <= 4_096) return "low";
  if (budgetTokens <= 16_384) return "medium";
  return budgetTokens <= 32_000 ? "high" : "xhigh";
}

/** Anthropic has no `minimal`. */
export function messagesEffort(effort: string): string {
  return effort === "minimal" ? "low" : effort;
}

export interface ClaudeGeneration {
  /** Thinks as deep as `output_config.effort` says; older models take a budget. */
  readonly adaptive: boolean;
  /** Takes `temperature`, `top_p` and `top_k`; the newest request types name them no more. */
  readonly sampling: boolean;
  /** What an answer may be at most, tokens. */
  readonly maxOutputTokens: number;
}

const VERSION = /claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?!\d)/;

/** What a model takes, by its name; models of other makers are taken for the older generation. */
export function claudeGeneration(model: string): ClaudeGeneration {
  const match = VERSION.exec(model);
  const version = match === null ? 0 : Number(match[1]) * 100 + Number(match[2] ?? 0);
  const preview = /claude-[a-z]+-preview/.test(model);
  return {
    adaptive: preview || version >= 406,
    sampling: !preview && version < 407,
    maxOutputTokens: /claude-3-5/.test(model)
      ? 8_192
      : /claude-3-(opus|sonnet|haiku)/.test(model)
      ? 4_096
      : /claude-opus-4(-1)?(-\d{8})?$/.test(model)
      ? 32_000
      : 64_000,
  };
}
