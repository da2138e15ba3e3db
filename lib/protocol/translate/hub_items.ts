/**
 * The items of an answer in the hub's form, each written event by event: messages, reasoning, tool calls.
 *
 * `hub_writer.ts` opens them, orders them and ends the answer.
 */
import { defined, type JsonObject } from "./json.ts";
import type { Lane } from "./lanes.ts";

/** One event of a Responses stream, without its sequence number. */
export type HubEvent = JsonObject & { readonly type: string };

/** A growing message: text and refusal parts in order. */
export interface MessageHandle {
  text(delta: string, logprobs?: readonly unknown[]): void;
  refusal(delta: string): void;
  annotate(annotation: JsonObject): void;
  /** The next delta opens another part. */
  endPart(): void;
  close(): void;
}

export interface ReasoningHandle {
  summary(delta: string): void;
  endPart(): void;
  /** What only the upstream can read, as it came or in a carrier. */
  seal(encryptedContent: string): void;
  close(): void;
}

export interface CallHandle {
  arguments(delta: string): void;
  close(): void;
}

/** How a tool call is put into the hub, e.g. `function_call` or `custom_tool_call`. */
export interface CallShape {
  /** The item at its opening, without id and status; deltas go into `textField` where there is one. */
  readonly item: JsonObject & { readonly type: string };
  readonly idPrefix: string;
  /** The field with a stream of its own, or `null` for an item that appears whole at its end (`finishItem`). */
  readonly textField: "arguments" | "input" | null;
  /** True where the pieces of the call are the pieces of that field. */
  readonly streams: boolean;
  /** The final members of the item, from the whole arguments text. */
  finishItem(argumentsText: string): JsonObject;
}

export class MessageWriter implements MessageHandle {
  readonly #lane: Lane<HubEvent>;
  readonly #index: number;
  readonly #id: string;
  readonly #settle: (item: JsonObject) => void;
  readonly #parts: JsonObject[] = [];
  #kind: "output_text" | "refusal" | null = null;
  #text = "";
  #logprobs: unknown[] = [];
  #annotations: JsonObject[] = [];

  constructor(lane: Lane<HubEvent>, index: number, id: string, settle: (item: JsonObject) => void) {
    this.#lane = lane;
    this.#index = index;
    this.#id = id;
    this.#settle = settle;
    this.#emit("response.output_item.added", {
      item: { id, type: "message", status: "in_progress", role: "assistant", content: [] },
    });
  }

  text(delta: string, logprobs: readonly unknown[] = []): void {
    this.#openPart("output_text");
    this.#text += delta;
    for (const one of logprobs) this.#logprobs.push(one);
    this.#emit("response.output_text.delta", { ...this.#address(), delta, logprobs });
  }

  refusal(delta: string): void {
    this.#openPart("refusal");
    this.#text += delta;
    this.#emit("response.refusal.delta", { ...this.#address(), delta });
  }

  annotate(annotation: JsonObject): void {
    this.#openPart("output_text");
    this.#emit("response.output_text.annotation.added", {
      ...this.#address(),
      annotation_index: this.#annotations.length,
      annotation,
    });
    this.#annotations.push(annotation);
  }

  endPart(): void {
    if (this.#kind === null) return;
    const address = this.#address();
    const part = this.#part();
    if (this.#kind === "output_text") {
      this.#emit("response.output_text.done", {
        ...address,
        text: this.#text,
        logprobs: this.#logprobs,
      });
    } else this.#emit("response.refusal.done", { ...address, refusal: this.#text });
    this.#emit("response.content_part.done", { ...address, part });
    this.#parts.push(part);
    this.#kind = null;
    this.#text = "";
    this.#logprobs = [];
    this.#annotations = [];
  }

  close(): void {
    this.endPart();
    const item = {
      id: this.#id,
      type: "message",
      status: "completed",
      role: "assistant",
      content: this.#parts,
    };
    this.#settle(item);
    this.#emit("response.output_item.done", { item });
    this.#lane.close();
  }

  #openPart(kind: "output_text" | "refusal"): void {
    if (this.#kind === kind) return;
    this.endPart();
    this.#kind = kind;
    this.#emit("response.content_part.added", { ...this.#address(), part: this.#part() });
  }

  #part(): JsonObject {
    if (this.#kind === "refusal") return { type: "refusal", refusal: this.#text };
    // Copies: an event may wait in its lane while the lists grow.
    const part: JsonObject = { type: "output_text", text: this.#text, annotations: [...this.#annotations] };
    if (this.#logprobs.length > 0) part.logprobs = [...this.#logprobs];
    return part;
  }

  #address() {
    return { item_id: this.#id, content_index: this.#parts.length };
  }

  #emit(type: string, members: JsonObject): void {
    this.#lane.emit({ type, output_index: this.#index, ...members });
  }
}

export class ReasoningWriter implements ReasoningHandle {
  readonly #lane: Lane<HubEvent>;
  readonly #index: number;
  readonly #id: string;
  readonly #settle: (item: JsonObject) => void;
  readonly #summary: { type: "summary_text"; text: string }[] = [];
  #text: string | null = null;
  #encrypted: string | undefined;

  constructor(lane: Lane<HubEvent>, index: number, id: string, settle: (item: JsonObject) => void) {
    this.#lane = lane;
    this.#index = index;
    this.#id = id;
    this.#settle = settle;
    this.#emit("response.output_item.added", {
      item: { id, type: "reasoning", status: "in_progress", summary: [] },
    });
  }

  summary(delta: string): void {
    if (this.#text === null) {
      this.#text = "";
      this.#emit("response.reasoning_summary_part.added", {
        ...this.#address(),
        part: { type: "summary_text", text: "" },
      });
    }
    this.#text += delta;
    this.#emit("response.reasoning_summary_text.delta", { ...this.#address(), delta });
  }

  endPart(): void {
    if (this.#text === null) return;
    const part = { type: "summary_text" as const, text: this.#text };
    this.#emit("response.reasoning_summary_text.done", { ...this.#address(), text: this.#text });
    this.#emit("response.reasoning_summary_part.done", { ...this.#address(), part });
    this.#summary.push(part);
    this.#text = null;
  }

  seal(encryptedContent: string): void {
    this.#encrypted = encryptedContent;
  }

  close(): void {
    this.endPart();
    const item = defined({
      id: this.#id,
      type: "reasoning",
      status: "completed",
      summary: this.#summary,
      encrypted_content: this.#encrypted,
    });
    this.#settle(item);
    this.#emit("response.output_item.done", { item });
    this.#lane.close();
  }

  #address() {
    return { item_id: this.#id, summary_index: this.#summary.length };
  }

  #emit(type: string, members: JsonObject): void {
    this.#lane.emit({ type, output_index: this.#index, ...members });
  }
}

export class CallWriter implements CallHandle {
  readonly #lane: Lane<HubEvent>;
  readonly #index: number;
  readonly #id: string;
  readonly #shape: CallShape;
  readonly #settle: (item: JsonObject) => void;
  #text = "";

  constructor(
    lane: Lane<HubEvent>,
    index: number,
    id: string,
    shape: CallShape,
    settle: (item: JsonObject) => void,
  ) {
    this.#lane = lane;
    this.#index = index;
    this.#id = id;
    this.#shape = shape;
    this.#settle = settle;
    const empty = shape.textField === null ? {} : { [shape.textField]: "" };
    this.#emit("response.output_item.added", {
      item: { id, status: "in_progress", ...shape.item, ...empty },
    });
  }

  arguments(delta: string): void {
    this.#text += delta;
    if (this.#shape.streams) this.#delta(delta);
  }

  close(): void {
    const { textField, streams, item: opening, finishItem } = this.#shape;
    const item: JsonObject = { id: this.#id, status: "completed", ...opening, ...finishItem(this.#text) };
    if (textField !== null) {
      // What the pieces did not say (a whole text that waited, the `{}` of a call without arguments) comes now.
      const rest = String(item[textField]).slice(streams ? this.#text.length : 0);
      if (rest !== "") this.#delta(rest);
      this.#emit(`${STREAM_OF[textField]}.done`, { item_id: this.#id, [textField]: item[textField] });
    }
    this.#settle(item);
    this.#emit("response.output_item.done", { item });
    this.#lane.close();
  }

  #delta(delta: string): void {
    const { textField } = this.#shape;
    if (textField !== null) this.#emit(`${STREAM_OF[textField]}.delta`, { item_id: this.#id, delta });
  }

  #emit(type: string, members: JsonObject): void {
    this.#lane.emit({ type, output_index: this.#index, ...members });
  }
}

const STREAM_OF = {
  arguments: "response.function_call_arguments",
  input: "response.custom_tool_call_input",
} as const;
