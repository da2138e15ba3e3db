/**
 * A Response told to an Anthropic client piece by piece: `message_start` to `message_stop`.
 *
 * Blocks are opened, filled and closed one after the other, whatever order the pieces come in. They add up to exactly
 * what `writeMessagesAnswer()` says at once.
 */
import { factsOf, messagesErrorOf } from "./failure_words.ts";
import type { HubEvent } from "./hub_items.ts";
import { HubReader, type HubStep } from "./hub_reader.ts";
import type { HubError } from "./hub_writer.ts";
import type { JsonObject } from "./json.ts";
import { JsonMender } from "./json_mender.ts";
import { type Lane, Lanes } from "./lanes.ts";
import { messageShell, stopOf, toolUse, wholeUsage } from "./messages_client_answer.ts";
import { blockOfReasoning, PART_SEPARATOR, signatureOfReasoning } from "./reasoning_carrier.ts";
import type { AnswerStreamWriter } from "./sides.ts";
import type { AnswerContext, AnswerProblem, ClientFailure } from "./translator.ts";
import type { UsageCounts } from "./usage.ts";
import { citationOfAnnotation, searchBlocks } from "./web_search.ts";
import type { RawContentBlockDelta, ToldBlock, ToldEvent } from "./wire_types.ts";

interface OpenBlock {
  readonly index: number;
  readonly lane: Lane<ToldEvent>;
  /** Part of a text or reasoning item the block tells. */
  part: string;
  /** What a text block told so far: citations quote it. */
  text: string;
  readonly mender: JsonMender | null;
  /** A free-text call is told as JSON once it is whole. */
  readonly custom: boolean;
}

export class MessagesStreamWriter implements AnswerStreamWriter {
  readonly #context: AnswerContext;
  readonly #reader: HubReader;
  readonly #lanes = new Lanes<ToldEvent>();
  /** Item number -> its open block. */
  readonly #open = new Map<number, OpenBlock>();
  #blockCount = 0;
  #toldLength = 0;
  #hasCalls = false;
  #refused = false;
  #ended = false;
  #problem: AnswerProblem | null = null;

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
    for (const step of this.#reader.read(event)) this.#step(step);
    return this.#lanes.take().map(frame);
  }

  fail(failure: ClientFailure): string[] {
    if (this.#ended) return [];
    this.#ended = true;
    return [frame({ type: "error", error: messagesErrorOf(failure) })];
  }

  #step(step: HubStep): void {
    switch (step.kind) {
      case "begin":
        return this.#begin(step.response);
      case "text":
      case "refusal":
        this.#refused ||= step.kind === "refusal";
        return this.#text(step.item, `${step.kind}:${step.part}`, step.delta);
      case "annotation":
        return this.#annotate(step.item, step.value);
      case "reasoning":
        return this.#reasoning(step.item, step.part, step.delta);
      case "call":
        return this.#openCall(step.item, step.value);
      case "call_text":
        return this.#callText(step.item, step.delta);
      case "item_done":
        return this.#finishItem(step.item, step.value);
      case "end":
        return this.#end(step.response, step.usage);
      case "fail":
        return this.#fail(step.error, step.malformed);
      default:
        return step satisfies never;
    }
  }

  #begin(response: JsonObject): void {
    const usage = wholeUsage(NOTHING_YET, 0, this.#context);
    const stop = { stop_reason: null, stop_sequence: null, stop_details: null };
    const message = { ...messageShell(response, this.#context), content: [], ...stop, usage };
    this.#lanes.emit({ type: "message_start", message });
  }

  #text(item: number, part: string, delta: string): void {
    if (delta === "") return;
    let block = this.#open.get(item);
    if (block !== undefined && block.part !== part) {
      this.#close(item, block);
      block = undefined;
    }
    block ??= this.#openBlock(item, part, { type: "text", text: "", citations: null });
    block.text += delta;
    this.#tell(block, { type: "text_delta", text: delta }, delta.length);
  }

  #annotate(item: number, value: JsonObject): void {
    const block = this.#open.get(item);
    if (block === undefined) return;
    const citation = citationOfAnnotation(value, block.text);
    if (citation !== null) this.#tell(block, { type: "citations_delta", citation }, 0);
  }

  #reasoning(item: number, part: string, delta: string): void {
    if (!this.#context.memory.takesReasoning) return;
    const block = this.#open.get(item) ??
      this.#openBlock(item, part, EMPTY_THINKING);
    const thinking = block.part === part ? delta : PART_SEPARATOR + delta;
    block.part = part;
    this.#tell(block, { type: "thinking_delta", thinking }, thinking.length);
  }

  #openCall(item: number, value: JsonObject): void {
    this.#hasCalls = true;
    const custom = value.type === "custom_tool_call";
    this.#openBlock(item, "", toolUse(value), custom ? null : new JsonMender(), custom);
  }

  #callText(item: number, delta: string): void {
    const block = this.#open.get(item);
    if (block === undefined || block.mender === null) return;
    this.#tellJson(block, block.mender.push(delta));
  }

  #finishItem(item: number, value: JsonObject): void {
    const block = this.#open.get(item);
    if (value.type === "reasoning") return this.#finishReasoning(item, value, block);
    if (value.type === "web_search_call") {
      for (const whole of searchBlocks(value)) this.#close(item, this.#openBlock(item, "", whole));
      return;
    }
    if (block === undefined) return;
    if (block.mender !== null) this.#tellJson(block, block.mender.end());
    else if (block.custom) this.#tellJson(block, JSON.stringify({ input: value.input ?? "" }));
    this.#close(item, block);
  }

  #finishReasoning(item: number, value: JsonObject, open: OpenBlock | undefined): void {
    if (!this.#context.memory.takesReasoning) return;
    const whole = blockOfReasoning(value);
    if (whole === null && open === undefined) return;
    // Redacted thinking comes whole in its opening event.
    const start = whole?.type === "redacted_thinking" ? whole : EMPTY_THINKING;
    const block = open ?? this.#openBlock(item, "", start);
    if (start.type === "thinking") {
      this.#tell(block, { type: "signature_delta", signature: signatureOfReasoning(value) }, 0);
    }
    this.#close(item, block);
  }

  #end(response: JsonObject, usage: UsageCounts | null): void {
    this.#ended = true;
    for (const [item, block] of this.#open) {
      if (block.mender !== null) this.#tellJson(block, block.mender.end());
      this.#close(item, block);
    }
    this.#lanes.emit({
      type: "message_delta",
      delta: { ...stopOf(response, this.#hasCalls, this.#refused), container: null },
      usage: wholeUsage(usage, this.#toldLength, this.#context),
    });
    this.#lanes.emit({ type: "message_stop" });
  }

  #fail(error: HubError, malformed: boolean): void {
    this.#ended = true;
    this.#problem = malformed
      ? { kind: "malformed", detail: error.message }
      : { kind: "in_stream", error: factsOf(error) };
    this.#lanes.emit({ type: "error", error: messagesErrorOf(error) });
  }

  #openBlock(
    item: number,
    part: string,
    contentBlock: ToldBlock,
    mender: JsonMender | null = null,
    custom = false,
  ): OpenBlock {
    // An upstream that makes another thing of an item half-way: the first block ends where it stands.
    const before = this.#open.get(item);
    if (before !== undefined) this.#close(item, before);
    const block = { index: this.#blockCount++, lane: this.#lanes.open(), part, text: "", mender, custom };
    this.#open.set(item, block);
    block.lane.emit({ type: "content_block_start", index: block.index, content_block: contentBlock });
    return block;
  }

  #tellJson(block: OpenBlock, json: string): void {
    if (json !== "") this.#tell(block, { type: "input_json_delta", partial_json: json }, json.length);
  }

  #tell(block: OpenBlock, delta: RawContentBlockDelta, length: number): void {
    this.#toldLength += length;
    block.lane.emit({ type: "content_block_delta", index: block.index, delta });
  }

  #close(item: number, block: OpenBlock): void {
    this.#open.delete(item);
    block.lane.emit({ type: "content_block_stop", index: block.index });
    block.lane.close();
  }
}

const EMPTY_THINKING = { type: "thinking", thinking: "", signature: "" } as const;

/** The counts a message opens with; the true ones come with its end. */
const NOTHING_YET: UsageCounts = {
  inputTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
};

function frame(event: ToldEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
