/**
 * Builds a translator from a client side and an upstream side; the hub's form passes between them.
 */
import { CHAT_CLIENT } from "./chat_client.ts";
import { CHAT_UPSTREAM } from "./chat_upstream.ts";
import type { HubEvent } from "./hub_items.ts";
import { isObject, type JsonObject } from "./json.ts";
import { MESSAGES_CLIENT } from "./messages_client.ts";
import { MESSAGES_UPSTREAM } from "./messages_upstream.ts";
import { TranslationReport } from "./report.ts";
import { RESPONSES_CLIENT } from "./responses_client.ts";
import { RESPONSES_UPSTREAM } from "./responses_upstream.ts";
import type { AnswerStreamReader, AnswerStreamWriter, ClientSide, UpstreamSide } from "./sides.ts";
import type {
  AnswerContext,
  AnswerProblem,
  AnswerTranslation,
  ClientFailure,
  RequestTranslation,
  StreamEnd,
  StreamTranslation,
  TranslateContext,
  TranslatedProtocol,
  Translator,
} from "./translator.ts";
import type { SseFrame } from "../sse.ts";
import type { EventFacts } from "../stream_dialect.ts";

export function compose(client: ClientSide, upstream: UpstreamSide): Translator {
  return {
    client: client.protocol,
    upstream: upstream.protocol,
    request: (body, context) => translateRequest(client, upstream, body, context),
    answer: (body, context) => translateAnswer(client, upstream, body, context),
    startStream: (context) => new ComposedStream(client, upstream, context),
  };
}

function translateRequest(
  client: ClientSide,
  upstream: UpstreamSide,
  body: JsonObject,
  context: TranslateContext,
): RequestTranslation {
  const report = new TranslationReport(client.fieldNames);
  const hub = client.readRequest(body, report, context);
  const written = upstream.writeRequest(hub, report, context);
  if (report.refusal !== null) return { ok: false, ...report.refusal };
  const memory = {
    ...client.remember(body, hub),
    ...written.memory,
    estimatedInputTokens: Math.ceil(textLength(hub.input) / 4),
  };
  return { ok: true, body: written.body, notes: report.notes, memory };
}

function translateAnswer(
  client: ClientSide,
  upstream: UpstreamSide,
  body: JsonObject,
  context: AnswerContext,
): AnswerTranslation {
  const answer = upstream.readAnswer(body, context);
  return answer.ok
    ? { ok: true, body: client.writeAnswer(answer.response, context) }
    : { ok: false, problem: answer.problem };
}

/** Told when the upstream's stream ends without a terminal event. */
const INCOMPLETE: ClientFailure = {
  status: 408,
  code: "stream_incomplete",
  message: "The upstream ended its stream before the answer was complete",
};

class ComposedStream implements StreamTranslation {
  readonly #reader: AnswerStreamReader;
  readonly #writer: AnswerStreamWriter;

  constructor(client: ClientSide, upstream: UpstreamSide, context: AnswerContext) {
    this.#reader = upstream.startStream(context);
    this.#writer = client.startStream(context);
  }

  get problem(): AnswerProblem | null {
    return this.#reader.problem ?? this.#writer.problem;
  }

  push(frame: SseFrame, facts: EventFacts): Uint8Array<ArrayBuffer>[] {
    if (this.#writer.ended) return [];
    return this.#write(this.#reader.read(frame, facts));
  }

  end(reason: StreamEnd): Uint8Array<ArrayBuffer>[] {
    if (this.#writer.ended) return [];
    const frames = this.#write(this.#reader.close());
    if (this.#writer.ended) return frames;
    return [...frames, ...encode(this.#writer.fail(reason.kind === "failed" ? reason.failure : INCOMPLETE))];
  }

  #write(events: readonly HubEvent[]): Uint8Array<ArrayBuffer>[] {
    const frames: string[] = [];
    for (const event of events) for (const frame of this.#writer.write(event)) frames.push(frame);
    return encode(frames);
  }
}

const ENCODER = new TextEncoder();

function encode(frames: readonly string[]): Uint8Array<ArrayBuffer>[] {
  return frames.map((frame) => ENCODER.encode(frame));
}

/** Characters of all texts below a value; data URLs are pictures, not text. */
function textLength(value: unknown): number {
  if (typeof value === "string") return value.startsWith("data:") ? 0 : value.length;
  let length = 0;
  if (Array.isArray(value)) { for (const one of value) length += textLength(one); }
  else if (isObject(value)) { for (const key of Object.keys(value)) length += textLength(value[key]); }
  return length;
}

/** @returns the translator, or `null` where both sides speak one protocol and bytes stay untouched. */
export function translatorFor(client: TranslatedProtocol, upstream: TranslatedProtocol): Translator | null {
  if (client === upstream) return null;
  return TRANSLATORS[client][upstream] ?? null;
}

const TRANSLATORS: Readonly<Record<TranslatedProtocol, Partial<Record<TranslatedProtocol, Translator>>>> = {
  chat: {
    responses: compose(CHAT_CLIENT, RESPONSES_UPSTREAM),
    messages: compose(CHAT_CLIENT, MESSAGES_UPSTREAM),
  },
  responses: {
    chat: compose(RESPONSES_CLIENT, CHAT_UPSTREAM),
    messages: compose(RESPONSES_CLIENT, MESSAGES_UPSTREAM),
  },
  messages: {
    responses: compose(MESSAGES_CLIENT, RESPONSES_UPSTREAM),
    chat: compose(MESSAGES_CLIENT, CHAT_UPSTREAM),
  },
};
