/**
 * The two halves a translator is composed of: how a client protocol meets the hub, and how the hub meets an upstream.
 */
import type { SseFrame } from "../sse.ts";
import type { EventFacts } from "../stream_dialect.ts";
import type { HubEvent } from "./hub_items.ts";
import type { JsonObject } from "./json.ts";
import type { TranslationReport } from "./report.ts";
import type {
  AnswerContext,
  AnswerProblem,
  ClientFailure,
  RequestMemory,
  TranslateContext,
  TranslatedProtocol,
} from "./translator.ts";

/** A request in the hub's form: Responses fields, and the few that only other protocols have. */
export type HubRequest = JsonObject & {
  /** Stop sequences; no Responses upstream knows them. */
  stop?: readonly string[];
  top_k?: number;
};

/** The events or steps of an answer, put into the client's frames. */
export interface AnswerStreamWriter {
  /** Frames for one hub event. */
  write(event: HubEvent): string[];
  /** The client's failure terminal in our words; whatever is needed before it comes along. */
  fail(failure: ClientFailure): string[];
  /** True once a terminal was written. */
  readonly ended: boolean;
  /** Set when the events could not be made into an answer. */
  readonly problem: AnswerProblem | null;
}

export interface ClientSide {
  readonly protocol: TranslatedProtocol;
  /** Hub field -> this protocol's name, for refusals. */
  readonly fieldNames: Readonly<Record<string, string>>;
  readRequest(body: JsonObject, report: TranslationReport, context: TranslateContext): HubRequest;
  /** What this client's answer must know of its request. */
  remember(
    body: JsonObject,
    hub: HubRequest,
  ): Pick<RequestMemory, "streaming" | "includeUsage" | "takesReasoning" | "echo">;
  /** A whole Response, not failed, as the client's answer. */
  writeAnswer(response: JsonObject, context: AnswerContext): JsonObject;
  startStream(context: AnswerContext): AnswerStreamWriter;
}

export type HubAnswer =
  | { readonly ok: true; readonly response: JsonObject }
  | { readonly ok: false; readonly problem: AnswerProblem };

/** The frames of an upstream, read into hub events. */
export interface AnswerStreamReader {
  read(frame: SseFrame, facts: EventFacts): HubEvent[];
  /** The upstream's body ended: what is still owed, for protocols whose last word may be missing. */
  close(): HubEvent[];
  readonly problem: AnswerProblem | null;
}

export interface UpstreamSide {
  readonly protocol: TranslatedProtocol;
  writeRequest(
    hub: HubRequest,
    report: TranslationReport,
    context: TranslateContext,
  ): { readonly body: JsonObject; readonly memory: Pick<RequestMemory, "cutAt" | "tools"> };
  readAnswer(body: JsonObject, context: AnswerContext): HubAnswer;
  startStream(context: AnswerContext): AnswerStreamReader;
}
