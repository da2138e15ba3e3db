/**
 * Answers of an Anthropic upstream, read into the hub's form.
 *
 * A whole message is read like a stream whose blocks come in one piece, so that both come out the same.
 */
import { hasErrorObject, readErrorValue } from "../error_body.ts";
import type { SseFrame } from "../sse.ts";
import type { EventFacts } from "../stream_dialect.ts";
import { factsOf, hubErrorOfMessages, UNREADABLE } from "./failure_words.ts";
import type { HubEvent } from "./hub_items.ts";
import { UNNAMED_CALL } from "./hub_reader.ts";
import { type HubEnding, HubWriter } from "./hub_writer.ts";
import { entryOf, isObject, type JsonObject, parseObject, readText } from "./json.ts";
import { MessagesBlocks } from "./messages_blocks.ts";
import type { AnswerStreamReader, HubAnswer } from "./sides.ts";
import type { AnswerContext, AnswerProblem } from "./translator.ts";
import { mergeMessagesUsage, readMessagesUsage } from "./usage.ts";

export function readMessagesAnswer(body: JsonObject, context: AnswerContext): HubAnswer {
  if (hasErrorObject(body)) {
    return { ok: false, problem: { kind: "in_stream", error: readErrorValue(body) } };
  }
  if (!Array.isArray(body.content)) {
    return { ok: false, problem: { kind: "malformed", detail: "the answer has no content list" } };
  }
  const writer = hubWriterFor(body, context);
  const blocks = new MessagesBlocks(writer, context);
  body.content.forEach((block, index) => {
    if (!isObject(block)) return;
    blocks.start(index, block);
    blocks.stop(index);
  });
  const problem = finish(writer, blocks, body, isObject(body.usage) ? body.usage : {});
  return problem === null ? { ok: true, response: writer.response() } : { ok: false, problem };
}

/** A writer whose ids keep the upstream's word. */
function hubWriterFor(message: JsonObject, context: AnswerContext): HubWriter {
  const id = readText(message.id) ?? "";
  return new HubWriter({
    responseId: id === "" ? context.newId("resp") : `resp_${id.replace(/^msg_/, "")}`,
    model: context.clientModel,
    createdAtSeconds: Math.floor(context.nowMs / 1000),
    echo: context.memory.echo,
    newId: context.newId,
  });
}

/** Told of turns whose stop reason says that they failed (field case B120). */
const STOPPED_BY_ERROR = { code: "server_error", message: "The upstream ended the answer with an error" };

/**
 * Ends the answer as its stop reason says. `pause_turn` and reasons nobody knows end it as whole: that is the stated
 * default, and never a tool call.
 */
function finish(
  writer: HubWriter,
  blocks: MessagesBlocks,
  stop: JsonObject,
  usage: JsonObject,
): AnswerProblem | null {
  const counts = readMessagesUsage(usage);
  if (stop.stop_reason === "error") {
    writer.fail(STOPPED_BY_ERROR, counts);
    return { kind: "in_stream", error: factsOf({ ...STOPPED_BY_ERROR, code: "stop_reason_error" }) };
  }
  if (blocks.hasUnnamedCall) {
    writer.fail(UNNAMED_CALL, counts);
    return { kind: "malformed", detail: UNNAMED_CALL.message };
  }
  const details = isObject(stop.stop_details) ? stop.stop_details : {};
  const explanation = readText(details.explanation) ?? "";
  if (stop.stop_reason === "refusal" && explanation !== "") blocks.refuse(explanation);
  writer.finish(entryOf(ENDINGS, String(stop.stop_reason)) ?? "completed", counts);
  return null;
}

const ENDINGS: Readonly<Record<string, HubEnding>> = {
  max_tokens: "max_output_tokens",
  model_context_window_exceeded: "max_output_tokens",
  refusal: "content_filter",
};

export class MessagesStreamReader implements AnswerStreamReader {
  readonly #context: AnswerContext;
  #writer: HubWriter | null = null;
  #blocks: MessagesBlocks | null = null;
  #usage: JsonObject = {};
  #stop: JsonObject = {};
  #problem: AnswerProblem | null = null;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  get problem(): AnswerProblem | null {
    return this.#problem;
  }

  read(frame: SseFrame, facts: EventFacts): HubEvent[] {
    if (facts.class === "comment" || facts.class === "padding") return [];
    const data = frame.data();
    if (data === null || data === "" || data === "[DONE]") return [];
    const event = parseObject(data);
    const { writer, blocks } = this.#start(event ?? {});
    if (event === null) this.#fail(UNREADABLE, { kind: "malformed", detail: "an event is not JSON" });
    else this.#read(event, readText(event.type) ?? frame.event ?? "", writer, blocks);
    return writer.take();
  }

  close(): HubEvent[] {
    // An answer is whole at `message_stop` alone.
    return [];
  }

  #read(event: JsonObject, type: string, writer: HubWriter, blocks: MessagesBlocks): void {
    const index = Number(event.index ?? 0);
    switch (type) {
      case "message_start": {
        const message = isObject(event.message) ? event.message : {};
        this.#usage = mergeMessagesUsage(this.#usage, message.usage);
        return writer.begin();
      }
      case "content_block_start":
        return blocks.start(index, isObject(event.content_block) ? event.content_block : {});
      case "content_block_delta":
        return blocks.delta(index, isObject(event.delta) ? event.delta : {});
      case "content_block_stop":
        return blocks.stop(index);
      case "message_delta":
        this.#usage = mergeMessagesUsage(this.#usage, event.usage);
        if (isObject(event.delta)) this.#stop = { ...this.#stop, ...event.delta };
        return;
      case "message_stop":
        this.#problem = finish(writer, blocks, this.#stop, this.#usage);
        return;
      case "error": {
        const error = readErrorValue(event);
        const message = error.message ?? "The upstream reported a failure without a message";
        return this.#fail(hubErrorOfMessages(error.type, message), { kind: "in_stream", error });
      }
      default:
        return;
    }
  }

  #fail(error: { code: string; message: string }, problem: AnswerProblem): void {
    this.#problem ??= problem;
    this.#writer?.fail(error, readMessagesUsage(this.#usage));
  }

  #start(event: JsonObject): { readonly writer: HubWriter; readonly blocks: MessagesBlocks } {
    this.#writer ??= hubWriterFor(isObject(event.message) ? event.message : {}, this.#context);
    this.#blocks ??= new MessagesBlocks(this.#writer, this.#context);
    return { writer: this.#writer, blocks: this.#blocks };
  }
}
