/**
 * Answers of a chat upstream, read into the hub's form.
 *
 * A whole completion is read like a stream of one piece, so that both come out the same.
 */
import type { SseFrame } from "../sse.ts";
import type { EventFacts } from "../stream_dialect.ts";
import { hasErrorObject, readErrorValue } from "../error_body.ts";
import { UNREADABLE } from "./failure_words.ts";
import { ChatPieces } from "./chat_pieces.ts";
import type { HubEvent } from "./hub_items.ts";
import { HubWriter } from "./hub_writer.ts";
import { isObject, type JsonObject, parseObject, readList, readNumber, readText } from "./json.ts";

import type { AnswerStreamReader, HubAnswer } from "./sides.ts";
import type { AnswerContext, AnswerProblem } from "./translator.ts";
import { readChatUsage, type UsageCounts } from "./usage.ts";

export function readChatAnswer(body: JsonObject, context: AnswerContext): HubAnswer {
  if (hasErrorObject(body)) {
    return { ok: false, problem: { kind: "in_stream", error: readErrorValue(body) } };
  }
  const choice = readList(body.choices)[0];
  if (!isObject(choice) || !isObject(choice.message)) {
    return { ok: false, problem: { kind: "malformed", detail: "the answer has no choice with a message" } };
  }
  const writer = hubWriterFor(body, context);
  const pieces = new ChatPieces(writer, context);
  pieces.add(choice.message, choice.logprobs);
  pieces.finish(readText(choice.finish_reason), readChatUsage(body.usage));
  const { problem } = pieces;
  return problem === null ? { ok: true, response: writer.response() } : { ok: false, problem };
}

/** A writer whose ids keep the upstream's word. */
function hubWriterFor(body: JsonObject, context: AnswerContext): HubWriter {
  const id = readText(body.id) ?? "";
  const tier = readText(body.service_tier);
  return new HubWriter({
    responseId: id === "" ? context.newId("resp") : `resp_${id.replace(/^chatcmpl-/, "")}`,
    model: context.clientModel,
    createdAtSeconds: readNumber(body.created) ?? Math.floor(context.nowMs / 1000),
    echo: tier === null ? context.memory.echo : { ...context.memory.echo, service_tier: tier },
    newId: context.newId,
  });
}

export class ChatStreamReader implements AnswerStreamReader {
  readonly #context: AnswerContext;
  #writer: HubWriter | null = null;
  #pieces: ChatPieces | null = null;
  #finishReason: string | null = null;
  #usage: UsageCounts | null = null;
  #problem: AnswerProblem | null = null;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  get problem(): AnswerProblem | null {
    return this.#problem ?? this.#pieces?.problem ?? null;
  }

  read(frame: SseFrame, facts: EventFacts): HubEvent[] {
    if (facts.class === "comment" || facts.class === "padding") return [];
    const data = frame.data();
    if (data === null || data === "") return [];
    if (data === "[DONE]") return this.#end();
    const chunk = parseObject(data);
    if (chunk === null) return this.#giveUp("an event is not JSON");
    if (hasErrorObject(chunk)) return this.#fail(chunk);
    return this.#addChunk(chunk);
  }

  close(): HubEvent[] {
    // Some hosts never send [DONE]; a finish reason says as much.
    return this.#finishReason === null ? [] : this.#end();
  }

  #addChunk(chunk: JsonObject): HubEvent[] {
    const { writer, pieces } = this.#start(chunk);
    writer.begin();
    // Usage may come with the last piece or in a chunk of its own; `null` says nothing (field case B110).
    this.#usage = readChatUsage(chunk.usage) ?? this.#usage;
    const choice = readList(chunk.choices)[0];
    if (isObject(choice)) {
      const delta = isObject(choice.delta) ? choice.delta : choice.message;
      if (isObject(delta)) pieces.add(delta, choice.logprobs);
      this.#finishReason = readText(choice.finish_reason) || this.#finishReason;
    }
    return writer.take();
  }

  #end(): HubEvent[] {
    if (this.#writer?.ended) return [];
    const { writer, pieces } = this.#start({});
    if (this.#finishReason === null && !writer.hasOutput && this.#usage === null) {
      return this.#giveUp("the stream ended without an answer");
    }
    pieces.finish(this.#finishReason, this.#usage);
    return writer.take();
  }

  #fail(chunk: JsonObject): HubEvent[] {
    const { writer } = this.#start(chunk);
    const error = readErrorValue(chunk);
    this.#problem = { kind: "in_stream", error };
    writer.fail({
      code: error.code ?? error.type ?? "server_error",
      message: error.message ?? "The upstream reported a failure without a message",
    }, readChatUsage(chunk.usage) ?? this.#usage);
    return writer.take();
  }

  #giveUp(detail: string): HubEvent[] {
    const { writer } = this.#start({});
    this.#problem ??= { kind: "malformed", detail };
    writer.fail(UNREADABLE, this.#usage);
    return writer.take();
  }

  #start(chunk: JsonObject): { readonly writer: HubWriter; readonly pieces: ChatPieces } {
    this.#writer ??= hubWriterFor(chunk, this.#context);
    this.#pieces ??= new ChatPieces(this.#writer, this.#context);
    return { writer: this.#writer, pieces: this.#pieces };
  }
}
