/** What the translation tests share: a context with counted ids, frames from text, and the joined stream of a client. */
import { chatDialect } from "../../lib/protocol/chat.ts";
import { messagesDialect } from "../../lib/protocol/messages.ts";
import { responsesDialect } from "../../lib/protocol/responses.ts";
import { type SseFrame, SseFramer } from "../../lib/protocol/sse.ts";
import type { JsonObject } from "../../lib/protocol/translate/json.ts";
import type { TranslateTarget } from "../../lib/protocol/translate/targets.ts";
import type {
  AnswerContext,
  RequestMemory,
  StreamEnd,
  StreamTranslation,
  TranslateContext,
  TranslatedProtocol,
  Translator,
} from "../../lib/protocol/translate/translator.ts";

export const NOW_MS = 1_760_000_000_000;

/** Ids count from 1 for each prefix, so that the same answer gets the same ids plain and streamed. */
export function translateContext(target: TranslateTarget = "platform"): TranslateContext {
  const counters = new Map<string, number>();
  return {
    clientModel: "client-model",
    upstreamModel: "upstream-model",
    target,
    nowMs: NOW_MS,
    newId(prefix) {
      const next = (counters.get(prefix) ?? 0) + 1;
      counters.set(prefix, next);
      return `${prefix}_${next}`;
    },
  };
}

export const MEMORY: RequestMemory = {
  streaming: true,
  includeUsage: false,
  takesReasoning: true,
  cutAt: [],
  tools: {},
  echo: {},
  estimatedInputTokens: 0,
};

export function answerContext(
  memory: Partial<RequestMemory> = {},
  target: TranslateTarget = "platform",
): AnswerContext {
  return { ...translateContext(target), memory: { ...MEMORY, ...memory } };
}

/** An upstream's stream as bytes: objects become events named by their `type` (chat chunks have none), texts bare data. */
export function upstreamBytes(events: readonly (JsonObject | string)[]): Uint8Array<ArrayBuffer> {
  const text = events.map((event) => {
    if (typeof event === "string") return `data: ${event}\n\n`;
    const name = typeof event.type === "string" ? `event: ${event.type}\n` : "";
    return `${name}data: ${JSON.stringify(event)}\n\n`;
  }).join("");
  return new TextEncoder().encode(text);
}

const DIALECTS = { responses: responsesDialect, chat: chatDialect, messages: messagesDialect } as const;

/** Where a body is cut: lengths of its chunks, the last one takes the rest. */
export type Cuts = (length: number) => readonly number[];

/** Feeds an upstream's bytes through the framer and the dialect, and returns the client's stream as text. */
export function translateBytes(
  stream: StreamTranslation,
  upstream: TranslatedProtocol,
  bytes: Uint8Array<ArrayBuffer>,
  cuts: Cuts = () => [],
  end: StreamEnd = { kind: "closed" },
): string {
  const framer = new SseFramer();
  const decoder = new TextDecoder();
  let text = "";
  const take = (frames: readonly SseFrame[]) => {
    for (const frame of frames) {
      for (const out of stream.push(frame, DIALECTS[upstream].readEvent(frame))) text += decoder.decode(out);
    }
  };
  let at = 0;
  for (const length of [...cuts(bytes.length), bytes.length]) {
    take(framer.push(bytes.slice(at, at + length)));
    at += length;
  }
  take(framer.end());
  for (const out of stream.end(end)) text += decoder.decode(out);
  return text;
}

/** The client's stream for an upstream's events. */
export function translateStream(
  translator: Translator,
  events: readonly (JsonObject | string)[],
  context: AnswerContext = answerContext(),
  end: StreamEnd = { kind: "closed" },
): string {
  const stream = translator.startStream(context);
  return translateBytes(stream, translator.upstream, upstreamBytes(events), undefined, end);
}

export interface ClientEvent {
  readonly event: string | null;
  readonly data: string;
}

/** A client's stream as events; fails on anything that is not a well-formed frame. */
export function clientEvents(stream: string): ClientEvent[] {
  if (stream === "") return [];
  if (!stream.endsWith("\n\n")) throw new Error("the stream ends inside a frame");
  return stream.slice(0, -2).split("\n\n").map((frame) => {
    const lines = frame.split("\n");
    const event = lines[0]!.startsWith("event: ") ? lines.shift()!.slice(7) : null;
    const data = lines[0] ?? "";
    if (lines.length !== 1 || !data.startsWith("data: ")) throw new Error(`no frame: ${frame}`);
    return { event, data: data.slice(6) };
  });
}

/** The JSON events of a client's stream, `[DONE]` left out. */
export function clientJson(stream: string): JsonObject[] {
  return clientEvents(stream).filter((one) => one.data !== "[DONE]").map((one) => JSON.parse(one.data));
}
