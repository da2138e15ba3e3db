/**
 * The contract of translation: a client protocol served by an upstream of another protocol (design.md 9).
 *
 * The Responses form is the hub; `compose.ts` builds each translator from a client side and an upstream side.
 * Everything is pure: time and ids are arguments, what must be remembered between request and answer is passed in.
 */
import type { ErrorFacts } from "../../core/evidence.ts";
import type { SseFrame } from "../sse.ts";
import type { EventFacts } from "../stream_dialect.ts";
import type { JsonObject } from "./json.ts";
import type { Refusal } from "./report.ts";
import type { TranslateTarget } from "./targets.ts";
import type { ToolNames } from "./tool_names.ts";

export type TranslatedProtocol = "responses" | "chat" | "messages";

export interface TranslateContext {
  /** The model name the client used; answers carry it. */
  readonly clientModel: string;
  /** The model name sent upstream. */
  readonly upstreamModel: string;
  /** Whose peculiarities the request is fitted to (`targetOf()`). */
  readonly target: TranslateTarget;
  readonly nowMs: number;
  /** A fresh id with the given prefix, e.g. `msg` -> `msg_4f…`. */
  newId(prefix: string): string;
}

/** What an answer's translation must know of its request. Small, and nothing of the conversation's text. */
export interface RequestMemory {
  readonly streaming: boolean;
  /** Chat: the client asked for the usage chunk. */
  readonly includeUsage: boolean;
  /** False where the client would not understand reasoning blocks: it never asked for any. */
  readonly takesReasoning: boolean;
  /** Stop sequences the upstream has no field for: the answer is cut at the first one. */
  readonly cutAt: readonly string[];
  /** Tool names as sent upstream -> what the client calls them. */
  readonly tools: ToolNames;
  /** Request fields that a Response object repeats. */
  readonly echo: JsonObject;
  /** A guess (four characters a token) for upstreams that report no usage. */
  readonly estimatedInputTokens: number;
}

export interface AnswerContext extends TranslateContext {
  readonly memory: RequestMemory;
}

export type RequestTranslation =
  | {
    readonly ok: true;
    readonly body: JsonObject;
    /** What was changed or left out, in words for the log (no text of the conversation). */
    readonly notes: readonly string[];
    readonly memory: RequestMemory;
  }
  | ({ readonly ok: false } & Refusal);

/** Why an answer is none; the kinds of `Evidence` without the headers, which the caller has. */
export type AnswerProblem =
  | { readonly kind: "in_stream"; readonly error: ErrorFacts }
  | { readonly kind: "malformed"; readonly detail: string };

export type AnswerTranslation =
  | { readonly ok: true; readonly body: JsonObject }
  | { readonly ok: false; readonly problem: AnswerProblem };

/** What a client is told in its own protocol; `code` and `message` are our words (design.md 6). */
export interface ClientFailure {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/** How the upstream's stream ended for the relay. */
export type StreamEnd =
  /** The body ended; without a terminal event before it the client is told the answer is incomplete. */
  | { readonly kind: "closed" }
  /** The relay gave up, with the words the client gets. */
  | { readonly kind: "failed"; readonly failure: ClientFailure };

export interface StreamTranslation {
  /**
   * One upstream frame in, the client's frames out, each complete with its blank line.
   *
   * A failure event becomes the client's failure terminal with the upstream's own code and words, which only a
   * request-scoped failure may show (design.md 6): for every other one call `end()` instead of pushing it.
   */
  push(frame: SseFrame, facts: EventFacts): Uint8Array<ArrayBuffer>[];
  /** The frames that close the client's stream; none when a terminal was already sent. */
  end(reason: StreamEnd): Uint8Array<ArrayBuffer>[];
  /** What made this answer a failure: an event of the upstream, or one that could not be translated. */
  readonly problem: AnswerProblem | null;
}

export interface Translator {
  readonly client: TranslatedProtocol;
  readonly upstream: TranslatedProtocol;
  /** A client's body for the upstream, or the refusal that names the part. Never changes `body`. */
  request(body: JsonObject, context: TranslateContext): RequestTranslation;
  /** A whole answer of the upstream in the client's form. */
  answer(body: JsonObject, context: AnswerContext): AnswerTranslation;
  startStream(context: AnswerContext): StreamTranslation;
}
