/**
 * How deep an Anthropic model shall think, and when it cannot think at all.
 *
 * Source: the SDK's type file (budget of at least 1,024 and below `max_tokens`; which form depends on the model).
 */
import { budgetOfEffort, claudeGeneration, messagesEffort, MIN_BUDGET_TOKENS } from "./effort.ts";
import type { HubTurn } from "./hub_turns.ts";
import { isObject, type JsonObject, readNumber, readText } from "./json.ts";
import { anthropicBlockOf } from "./reasoning_carrier.ts";
import { quoted, type TranslationReport } from "./report.ts";
import type { HubRequest } from "./sides.ts";
import type { TranslateContext } from "./translator.ts";

interface ThinkingRequest {
  readonly hub: HubRequest;
  readonly body: JsonObject;
  readonly turns: readonly HubTurn[];
  /** True when the model has to call a tool. */
  readonly forced: boolean;
}

export function writeThinking(
  { hub, body, turns, forced }: ThinkingRequest,
  report: TranslationReport,
  context: TranslateContext,
): void {
  if (!isObject(hub.reasoning)) return;
  const effort = readText(hub.reasoning.effort);
  const summary = readText(hub.reasoning.summary);
  if (effort === null && summary === null) return;
  const { adaptive, maxOutputTokens } = claudeGeneration(context.upstreamModel);
  if (effort === "none") {
    if (!adaptive) body.thinking = { type: "disabled" };
    return;
  }
  if (adaptive && effort !== null) body.output_config = { effort: messagesEffort(effort) };
  const off = (why: string) => report.note(`${report.field("reasoning")} left out: ${why}`);
  if (forced) return off("a model that must call a tool does not think");
  if (adaptive) {
    body.thinking = { type: "adaptive" };
    return;
  }
  if (endsInForeignToolTurn(turns)) return off("the tool turn in progress was not thought by this provider");
  const wanted = budgetOfEffort(effort ?? "medium");
  if (wanted === null) {
    return report.refuse(`${report.field("reasoning")} ${quoted(effort)}`, "no such effort");
  }
  const limit = readNumber(hub.max_output_tokens);
  if (limit === null) body.max_tokens = Math.min(maxOutputTokens, wanted + (body.max_tokens as number));
  // Half of the limit at most, so that thinking leaves room for an answer.
  const budget = Math.min(wanted, Math.floor((body.max_tokens as number) / 2));
  if (budget < MIN_BUDGET_TOKENS) return off("the output limit leaves no room for it");
  body.thinking = { type: "enabled", budget_tokens: budget };
}

/** A model that thinks must find its own thinking before the tool calls it is to go on from. */
function endsInForeignToolTurn(turns: readonly HubTurn[]): boolean {
  const last = turns.at(-1);
  const before = turns.at(-2);
  if (last?.role !== "results" || before?.role !== "assistant") return false;
  const first = before.entries.find((entry) => entry.kind !== "text");
  return first?.kind === "call" ||
    !before.entries.some((entry) => entry.kind === "reasoning" && anthropicBlockOf(entry.item) !== null);
}
