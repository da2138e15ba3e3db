/**
 * Writes an answer in the hub's form: the events of a Responses stream, and the Response object they add up to.
 *
 * Chat and Anthropic upstreams are read into this. Items never overlap on the wire, whatever order their pieces come
 * in (`lanes.ts`). Sequence numbers are given where events are put on the wire, not here.
 */
import {
  type CallHandle,
  type CallShape,
  CallWriter,
  type HubEvent,
  type MessageHandle,
  MessageWriter,
  type ReasoningHandle,
  ReasoningWriter,
} from "./hub_items.ts";
import type { JsonObject } from "./json.ts";
import { Lanes } from "./lanes.ts";
import { responsesUsage, type UsageCounts } from "./usage.ts";

export type IncompleteReason = "max_output_tokens" | "content_filter";

/** How an answer ended well: whole, or cut by a limit or a filter. */
export type HubEnding = "completed" | IncompleteReason;

export interface HubError {
  readonly code: string;
  readonly message: string;
}

export interface HubWriterOptions {
  readonly responseId: string;
  readonly model: string;
  readonly createdAtSeconds: number;
  /** Request fields the Response repeats; they win over the defaults. */
  readonly echo: JsonObject;
  newId(prefix: string): string;
}

export class HubWriter {
  readonly #options: HubWriterOptions;
  readonly #lanes = new Lanes<HubEvent>();
  readonly #items: JsonObject[] = [];
  readonly #open = new Set<{ close(): void }>();
  #usage: UsageCounts | null = null;
  #status: "in_progress" | "completed" | "incomplete" | "failed" = "in_progress";
  #incompleteReason: IncompleteReason | null = null;
  #error: HubError | null = null;
  #begun = false;
  #count = 0;

  constructor(options: HubWriterOptions) {
    this.#options = options;
  }

  get begun(): boolean {
    return this.#begun;
  }

  /** True when anything but the opening was written. */
  get hasOutput(): boolean {
    return this.#count > 0;
  }

  /** True once the terminal event is written; everything later changes nothing. */
  get ended(): boolean {
    return this.#status !== "in_progress";
  }

  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    const response = this.response();
    this.#lanes.emit({ type: "response.created", response });
    this.#lanes.emit({ type: "response.in_progress", response });
  }

  openMessage(): MessageHandle {
    const { index, lane, settle } = this.#openItem();
    const id = this.#options.newId("msg");
    const handle = new MessageWriter(lane, index, id, (item) => settle(item, handle));
    this.#open.add(handle);
    return handle;
  }

  openReasoning(): ReasoningHandle {
    const { index, lane, settle } = this.#openItem();
    const handle = new ReasoningWriter(
      lane,
      index,
      this.#options.newId("rs"),
      (item) => settle(item, handle),
    );
    this.#open.add(handle);
    return handle;
  }

  openCall(shape: CallShape): CallHandle {
    const { index, lane, settle } = this.#openItem();
    const id = this.#options.newId(shape.idPrefix);
    const handle = new CallWriter(lane, index, id, shape, (item) => settle(item, handle));
    this.#open.add(handle);
    return handle;
  }

  /** Closes what is open, in order, and ends the answer. */
  finish(ending: HubEnding, usage: UsageCounts | null): void {
    if (this.ended) return;
    this.begin();
    for (const handle of [...this.#open]) handle.close();
    this.#usage = usage;
    this.#status = ending === "completed" ? "completed" : "incomplete";
    this.#incompleteReason = ending === "completed" ? null : ending;
    this.#lanes.emit({ type: `response.${this.#status}`, response: this.response() });
  }

  /** Ends the answer as failed; what is open stays open, as the upstream left it. */
  fail(error: HubError, usage: UsageCounts | null): void {
    if (this.ended) return;
    this.begin();
    this.#usage = usage;
    this.#status = "failed";
    this.#error = error;
    this.#lanes.emit({ type: "response.failed", response: this.response() });
  }

  /** The events written since the last call. */
  take(): HubEvent[] {
    return this.#lanes.take();
  }

  /** The Response object as it stands. */
  response(): JsonObject {
    const { responseId, model, createdAtSeconds, echo } = this.#options;
    return {
      id: responseId,
      object: "response",
      created_at: createdAtSeconds,
      status: this.#status,
      error: this.#error,
      incomplete_details: this.#incompleteReason === null ? null : { reason: this.#incompleteReason },
      instructions: null,
      max_output_tokens: null,
      metadata: {},
      output: this.#items.filter((item) => item !== undefined),
      parallel_tool_calls: true,
      previous_response_id: null,
      reasoning: { effort: null, summary: null },
      store: false,
      temperature: null,
      text: { format: { type: "text" } },
      tool_choice: "auto",
      tools: [],
      top_p: null,
      truncation: "disabled",
      ...echo,
      model,
      usage: this.#usage === null ? null : responsesUsage(this.#usage),
    };
  }

  #openItem() {
    this.begin();
    const lane = this.#lanes.open();
    const index = this.#count++;
    const settle = (item: JsonObject, handle: { close(): void }) => {
      this.#items[index] = item;
      this.#open.delete(handle);
    };
    return { index, lane, settle };
  }
}
