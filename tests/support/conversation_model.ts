/**
 * A conversation by its meaning alone, so that one fixture can be said in every protocol and read back from it.
 *
 * The renderers and readers beside this file know the protocols on their own; they share nothing with `lib/`.
 */
import type { JsonObject } from "../../lib/protocol/translate/json.ts";
import type { TranslatedProtocol } from "../../lib/protocol/translate/translator.ts";

export type PartModel =
  | string
  | { readonly image: string }
  | { readonly pdf: string; readonly name: string }
  | { readonly document: string; readonly name: string };

export interface CallModel {
  readonly id: string;
  readonly name: string;
  /** JSON text. */
  readonly args: string;
}

export interface ResultModel {
  readonly id: string;
  readonly output: readonly PartModel[];
}

export type TurnModel =
  | { readonly who: "user"; readonly parts: readonly PartModel[] }
  | { readonly who: "system"; readonly text: string }
  | { readonly who: "assistant"; readonly text: string; readonly calls: readonly CallModel[] }
  | { readonly who: "results"; readonly results: readonly ResultModel[] };

export interface ToolModel {
  readonly name: string;
  readonly description?: string;
  readonly schema: JsonObject;
}

export interface RequestModel {
  readonly system?: string;
  readonly turns: readonly TurnModel[];
  readonly tools?: readonly ToolModel[];
  readonly toolChoice?: "auto" | "none" | "required" | { readonly name: string };
  readonly parallel?: boolean;
  readonly maxTokens: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly stop?: readonly string[];
  readonly effort?: "none" | "low" | "medium" | "high";
  readonly schema?: JsonObject;
  readonly user?: string;
}

export interface UsageModel {
  readonly input: number;
  readonly cached: number;
  readonly written: number;
  readonly output: number;
  readonly reasoning: number;
}

export interface AnswerModel {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly CallModel[];
  /** `filter` is also how a refusal in words ends. */
  readonly stop: "end" | "length" | "filter" | "tool" | "stop_sequence";
  readonly usage: UsageModel | null;
}

export interface Conversation {
  readonly name: string;
  readonly request: RequestModel;
  readonly answer: AnswerModel;
  /** The answer refuses in words of its own, where the protocol has a place for them. */
  readonly refuses?: boolean;
}

/** A request that no other protocol can carry: members laid over a bare request, and the part named in the refusal. */
export interface RefusedConversation {
  readonly name: string;
  readonly bodies: Readonly<Record<TranslatedProtocol, { readonly body: JsonObject; readonly part: string }>>;
}

/** Adjacent turns of one speaker are one turn; empty ones say nothing. */
export function joinTurns(turns: readonly TurnModel[]): TurnModel[] {
  const joined: TurnModel[] = [];
  for (const turn of turns) {
    const last = joined.at(-1);
    if (turn.who === "user" && last?.who === "user") {
      joined[joined.length - 1] = { who: "user", parts: [...last.parts, ...turn.parts] };
    } else if (turn.who === "assistant" && last?.who === "assistant") {
      const text = [last.text, turn.text].filter((one) => one !== "").join("\n\n");
      joined[joined.length - 1] = { who: "assistant", text, calls: [...last.calls, ...turn.calls] };
    } else if (turn.who === "results" && last?.who === "results") {
      joined[joined.length - 1] = { who: "results", results: [...last.results, ...turn.results] };
    } else joined.push(turn);
  }
  return joined;
}
