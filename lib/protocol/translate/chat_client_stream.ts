/**
 * A Response told to a chat client piece by piece: `chat.completion.chunk` frames and `[DONE]`.
 *
 * The pieces add up to exactly what `writeChatAnswer()` says at once.
 */
import {
  chatAnnotation,
  chatCall,
  chatId,
  chatLogprob,
  chatTier,
  finishReasonOf,
  reasoningDetails,
} from "./chat_client_answer.ts";
import { factsOf, openAiError } from "./failure_words.ts";
import type { HubEvent } from "./hub_items.ts";
import { HubReader, type HubStep } from "./hub_reader.ts";
import type { HubError } from "./hub_writer.ts";
import { type JsonObject, readNumber } from "./json.ts";
import { PART_SEPARATOR } from "./reasoning_carrier.ts";
import type { AnswerStreamWriter } from "./sides.ts";
import type { AnswerContext, AnswerProblem, ClientFailure } from "./translator.ts";
import { chatUsage, type UsageCounts } from "./usage.ts";
import type {
  ChatCompletionChunk,
  ChatCompletionMessage,
  ChatCompletionTokenLogprob,
  ToldChatDelta,
} from "./wire_types.ts";

export class ChatStreamWriter implements AnswerStreamWriter {
  readonly #context: AnswerContext;
  readonly #reader: HubReader;
  /** Item number -> its place in `tool_calls`. */
  readonly #calls = new Map<number, { readonly index: number; readonly custom: boolean }>();
  readonly #annotations: ChatCompletionMessage.Annotation[] = [];
  readonly #details: JsonObject[] = [];
  #head: Pick<ChatCompletionChunk, "id" | "object" | "created" | "model"> = {
    id: "",
    object: "chat.completion.chunk",
    created: 0,
    model: "",
  };
  #begun = false;
  #ended = false;
  #problem: AnswerProblem | null = null;
  #contentLength = 0;
  #partOffset = 0;
  #textPart = "";
  #textItem = -1;
  #reasoningPart = "";
  #refused = false;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#reader = new HubReader(context.memory.cutAt);
  }

  get ended(): boolean {
    return this.#ended;
  }

  get problem(): AnswerProblem | null {
    return this.#problem;
  }

  write(event: HubEvent): string[] {
    const frames: string[] = [];
    for (const step of this.#reader.read(event)) this.#step(step, frames);
    return frames;
  }

  fail(failure: ClientFailure): string[] {
    if (this.#ended) return [];
    this.#ended = true;
    return [frame({ error: openAiError(failure) })];
  }

  #step(step: HubStep, frames: string[]): void {
    switch (step.kind) {
      case "begin":
        return this.#begin(step.response, frames);
      case "text":
        return this.#text(step, frames);
      case "refusal":
        this.#refused = true;
        return this.#delta({ refusal: step.delta }, frames);
      case "annotation":
        return this.#annotate(step.value);
      case "reasoning":
        return this.#reasoning(`${step.item}:${step.part}`, step.delta, frames);
      case "call":
        return this.#openCall(step.item, step.value, frames);
      case "call_text":
        return this.#callText(step.item, step.delta, frames);
      case "item_done":
        if (step.value.type === "reasoning") {
          this.#details.push(...reasoningDetails(step.value, this.#details));
        }
        return;
      case "end":
        return this.#end(step.response, step.usage, frames);
      case "fail":
        return this.#fail(step.error, step.usage, step.malformed, frames);
      default:
        return step satisfies never;
    }
  }

  #begin(response: JsonObject, frames: string[]): void {
    this.#begun = true;
    this.#head = {
      id: chatId(response, this.#context),
      object: "chat.completion.chunk",
      created: readNumber(response.created_at) ?? Math.floor(this.#context.nowMs / 1000),
      model: this.#context.clientModel,
    };
    this.#delta({ role: "assistant" }, frames);
  }

  #text(step: HubStep & { kind: "text" }, frames: string[]): void {
    const part = `${step.item}:${step.part}`;
    let content = step.delta;
    if (part !== this.#textPart) {
      if (step.item !== this.#textItem && this.#contentLength > 0) content = PART_SEPARATOR + content;
      this.#partOffset = this.#contentLength + content.length - step.delta.length;
      this.#textPart = part;
      this.#textItem = step.item;
    }
    this.#contentLength += content.length;
    this.#delta({ content }, frames, step.logprobs.map(chatLogprob));
  }

  #annotate(value: JsonObject): void {
    const annotation = chatAnnotation(value, this.#partOffset);
    if (annotation !== null) this.#annotations.push(annotation);
  }

  #reasoning(part: string, delta: string, frames: string[]): void {
    const text = this.#reasoningPart === "" || this.#reasoningPart === part ? delta : PART_SEPARATOR + delta;
    this.#reasoningPart = part;
    this.#delta({ reasoning_content: text }, frames);
  }

  #openCall(item: number, value: JsonObject, frames: string[]): void {
    const index = this.#calls.size;
    this.#calls.set(item, { index, custom: value.type === "custom_tool_call" });
    const call = chatCall({ ...value, input: "" });
    const opened = call.type === "custom" ? call : { ...call, function: { ...call.function, arguments: "" } };
    this.#delta({ tool_calls: [{ index, ...opened }] }, frames);
  }

  #callText(item: number, delta: string, frames: string[]): void {
    const call = this.#calls.get(item);
    if (call === undefined) return;
    const piece = call.custom ? { custom: { input: delta } } : { function: { arguments: delta } };
    this.#delta({ tool_calls: [{ index: call.index, ...piece }] }, frames);
  }

  #end(response: JsonObject, usage: UsageCounts | null, frames: string[]): void {
    this.#ended = true;
    const finishReason = finishReasonOf(response, this.#calls.size > 0);
    const last: ToldChatDelta = {};
    // An answer of nothing at all is an empty text, the same as when it comes whole.
    if (this.#contentLength === 0 && this.#calls.size === 0 && !this.#refused) last.content = "";
    // Lists come in one piece: clients replace what they do not know how to add up.
    if (this.#annotations.length > 0) last.annotations = this.#annotations;
    if (this.#details.length > 0) last.reasoning_details = this.#details;
    if (Object.keys(last).length > 0) this.#delta(last, frames);
    this.#chunk(
      { index: 0, delta: {}, logprobs: null, finish_reason: finishReason },
      frames,
      chatTier(response),
    );
    this.#usage(usage, frames);
    frames.push("data: [DONE]\n\n");
  }

  #fail(error: HubError, usage: UsageCounts | null, malformed: boolean, frames: string[]): void {
    this.#ended = true;
    this.#problem = malformed
      ? { kind: "malformed", detail: error.message }
      : { kind: "in_stream", error: factsOf(error) };
    // A failed turn was paid for all the same.
    this.#usage(usage, frames);
    // No finish reason and no [DONE] after it: both would say that the turn went well (field case B044).
    frames.push(frame({ error: openAiError(error) }));
  }

  #usage(usage: UsageCounts | null, frames: string[]): void {
    if (!this.#context.memory.includeUsage || usage === null || !this.#begun) return;
    frames.push(frame({ ...this.#head, choices: [], usage: chatUsage(usage) } satisfies ChatCompletionChunk));
  }

  #delta(delta: ToldChatDelta, frames: string[], logprobs: ChatCompletionTokenLogprob[] = []): void {
    const told = logprobs.length === 0 ? null : { content: logprobs, refusal: null };
    this.#chunk({ index: 0, delta, logprobs: told, finish_reason: null }, frames);
  }

  #chunk(
    choice: ChatCompletionChunk.Choice,
    frames: string[],
    members: Pick<ChatCompletionChunk, "service_tier"> = {},
  ): void {
    // Whoever asked for usage finds the member in every chunk, with nothing in it before the end.
    const usage = this.#context.memory.includeUsage ? { usage: null } : {};
    frames.push(
      frame({ ...this.#head, choices: [choice], ...usage, ...members } satisfies ChatCompletionChunk),
    );
  }
}

function frame(data: JsonObject): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}
