/**
 * The blocks of an Anthropic answer, put into hub items.
 *
 * Texts that follow each other are parts of one message; every other block is an item of its own. Blocks that only a
 * request for Anthropic's own tools could have called up are left out.
 */
import { callShape } from "./call_shapes.ts";
import type { CallHandle, MessageHandle, ReasoningHandle } from "./hub_items.ts";
import type { HubWriter } from "./hub_writer.ts";
import { isObject, type JsonObject, readList, readText } from "./json.ts";
import { carryRedacted, carrySignature } from "./reasoning_carrier.ts";
import type { AnswerContext } from "./translator.ts";
import { annotationOfCitation, SEARCH_NAME, searchShape } from "./web_search.ts";

interface OpenBlock {
  readonly message?: MessageHandle;
  readonly reasoning?: ReasoningHandle;
  readonly call?: CallHandle;
  readonly citations: unknown[];
  text: string;
  signature: string;
  /** Input that came with the opening and counts if no pieces follow. */
  readonly input: JsonObject | null;
  hasJson: boolean;
}

function newBlock(): OpenBlock {
  return { citations: [], text: "", signature: "", input: null, hasJson: false };
}

/** Input that came with a block's opening; an empty one says that pieces follow. */
function inputOf(block: JsonObject): JsonObject | null {
  return isObject(block.input) && Object.keys(block.input).length > 0 ? block.input : null;
}

export class MessagesBlocks {
  readonly #writer: HubWriter;
  readonly #context: AnswerContext;
  readonly #open = new Map<number, OpenBlock>();
  #message: MessageHandle | null = null;
  #hasUnnamedCall = false;

  constructor(writer: HubWriter, context: AnswerContext) {
    this.#writer = writer;
    this.#context = context;
  }

  /** True when a call came that nobody can dispatch (field case B104). */
  get hasUnnamedCall(): boolean {
    return this.#hasUnnamedCall;
  }

  start(index: number, block: JsonObject): void {
    switch (block.type) {
      case "text": {
        const message = this.#openMessage();
        message.endPart();
        this.#open.set(index, { ...newBlock(), message, citations: [...readList(block.citations)] });
        return this.delta(index, { type: "text_delta", text: block.text });
      }
      case "thinking": {
        this.#closeMessage();
        const reasoning = this.#writer.openReasoning();
        this.#open.set(index, { ...newBlock(), reasoning });
        this.delta(index, { type: "thinking_delta", thinking: block.thinking });
        return this.delta(index, { type: "signature_delta", signature: block.signature });
      }
      case "redacted_thinking": {
        this.#closeMessage();
        const reasoning = this.#writer.openReasoning();
        reasoning.seal(carryRedacted(readText(block.data) ?? ""));
        return reasoning.close();
      }
      case "server_tool_use": {
        if (block.name !== SEARCH_NAME) return;
        this.#closeMessage();
        this.#open.set(index, {
          ...newBlock(),
          call: this.#writer.openCall(searchShape()),
          input: inputOf(block),
        });
        return;
      }
      case "tool_use": {
        this.#closeMessage();
        const name = readText(block.name) ?? "";
        if (name === "") {
          this.#hasUnnamedCall = true;
          return;
        }
        const id = readText(block.id) || this.#context.newId("call");
        const shape = callShape(this.#context.memory.tools, name, id);
        const call = this.#writer.openCall(shape);
        this.#open.set(index, { ...newBlock(), call, input: inputOf(block) });
        return;
      }
      default:
        return;
    }
  }

  delta(index: number, delta: JsonObject): void {
    const block = this.#open.get(index);
    if (block === undefined) return;
    switch (delta.type) {
      case "text_delta": {
        const text = readText(delta.text) ?? "";
        if (text !== "") block.message?.text(text);
        block.text += text;
        return;
      }
      case "thinking_delta": {
        const thinking = readText(delta.thinking) ?? "";
        if (thinking !== "") block.reasoning?.summary(thinking);
        return;
      }
      case "signature_delta":
        block.signature = readText(delta.signature) ?? "";
        return;
      case "citations_delta":
        block.citations.push(delta.citation);
        return;
      case "input_json_delta": {
        const json = readText(delta.partial_json) ?? "";
        if (json === "") return;
        block.hasJson = true;
        return block.call?.arguments(json);
      }
      default:
        return;
    }
  }

  stop(index: number): void {
    const block = this.#open.get(index);
    if (block === undefined) return;
    this.#open.delete(index);
    for (const citation of block.citations) {
      const annotation = annotationOfCitation(citation, block.text.length);
      if (annotation !== null) block.message?.annotate(annotation);
    }
    if (block.reasoning !== undefined) {
      if (block.signature !== "") block.reasoning.seal(carrySignature(block.signature));
      block.reasoning.close();
    }
    if (block.call !== undefined) {
      if (!block.hasJson && block.input !== null) block.call.arguments(JSON.stringify(block.input));
      block.call.close();
    }
  }

  /** Why the model refused, in its provider's words. */
  refuse(explanation: string): void {
    const message = this.#openMessage();
    message.endPart();
    message.refusal(explanation);
  }

  #openMessage(): MessageHandle {
    this.#message ??= this.#writer.openMessage();
    return this.#message;
  }

  #closeMessage(): void {
    this.#message?.close();
    this.#message = null;
  }
}
