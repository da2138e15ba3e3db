/**
 * Reads the events of a Responses stream into steps that say each thing exactly once.
 *
 * Upstreams differ in what they repeat: arguments may come in pieces, in the closing event, in the finished item, or in
 * several of these (field case B103); the final `response.output` may be whole or empty (wire-facts 2.1). The reader
 * remembers how much of each part was told and hands on the rest alone.
 */
import { readResponseError } from "./failure_words.ts";
import type { HubEvent } from "./hub_items.ts";
import type { HubError } from "./hub_writer.ts";
import { isObject, type JsonObject, readList, readNumber, readText } from "./json.ts";
import { StopCutter } from "./stop_cutter.ts";
import { readResponsesUsage, type UsageCounts } from "./usage.ts";

/** `item` numbers the items in the order they first appeared. */
export type HubStep =
  | { readonly kind: "begin"; readonly response: JsonObject }
  | {
    readonly kind: "text";
    readonly item: number;
    readonly part: number;
    readonly delta: string;
    readonly logprobs: readonly unknown[];
  }
  | { readonly kind: "refusal"; readonly item: number; readonly part: number; readonly delta: string }
  | { readonly kind: "annotation"; readonly item: number; readonly part: number; readonly value: JsonObject }
  /** `part` counts the summaries, then the raw texts of the item. */
  | { readonly kind: "reasoning"; readonly item: number; readonly part: string; readonly delta: string }
  | { readonly kind: "call"; readonly item: number; readonly value: JsonObject }
  | { readonly kind: "call_text"; readonly item: number; readonly delta: string }
  /** An item is whole; nothing follows for it. Items of kinds without steps of their own appear here alone. */
  | { readonly kind: "item_done"; readonly item: number; readonly value: JsonObject }
  | { readonly kind: "end"; readonly response: JsonObject; readonly usage: UsageCounts | null }
  | {
    readonly kind: "fail";
    readonly error: HubError;
    readonly usage: UsageCounts | null;
    /** True when the events themselves are at fault, not the turn. */
    readonly malformed: boolean;
  };

interface ItemState {
  readonly number: number;
  readonly type: string;
  /** Characters told so far, by part. */
  readonly told: Map<string, number>;
  readonly annotations: Map<string, number>;
  value: JsonObject;
  opened: boolean;
  done: boolean;
}

export class HubReader {
  readonly #items = new Map<string, ItemState>();
  readonly #cutter: StopCutter | null;
  #begun = false;
  #ended = false;

  /** @param cutAt  stop sequences nobody upstream looks for: the text ends before the first one. */
  constructor(cutAt: readonly string[]) {
    this.#cutter = cutAt.length === 0 ? null : new StopCutter(cutAt);
  }

  /** The steps of one event; none for events that add nothing (`codex.*`, progress, repetitions). */
  read(event: HubEvent): HubStep[] {
    if (this.#ended) return [];
    const steps: HubStep[] = [];
    switch (event.type) {
      case "response.created":
      case "response.queued":
      case "response.in_progress":
        this.#begin(isObject(event.response) ? event.response : {}, steps);
        break;
      case "response.output_item.added":
        if (isObject(event.item)) this.#openCall(this.#item(event, event.item), event.item, steps);
        break;
      case "response.output_text.delta":
        this.#tellText(event, steps);
        break;
      case "response.refusal.delta":
        this.#tell(this.#item(event, MESSAGE), partKey(event), readText(event.delta) ?? "", steps);
        break;
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        this.#tell(this.#item(event, REASONING), partKey(event), readText(event.delta) ?? "", steps);
        break;
      case "response.function_call_arguments.delta":
        this.#tell(this.#item(event, CALL), "arguments", readText(event.delta) ?? "", steps);
        break;
      case "response.custom_tool_call_input.delta":
        this.#tell(this.#item(event, CUSTOM_CALL), "input", readText(event.delta) ?? "", steps);
        break;
      case "response.output_text.done":
        this.#tellRest(this.#item(event, MESSAGE), partKey(event), event.text, steps);
        break;
      case "response.refusal.done":
        this.#tellRest(this.#item(event, MESSAGE), partKey(event), event.refusal, steps);
        break;
      case "response.reasoning_summary_text.done":
      case "response.reasoning_text.done":
        this.#tellRest(this.#item(event, REASONING), partKey(event), event.text, steps);
        break;
      case "response.function_call_arguments.done":
        this.#tellRest(this.#item(event, CALL), "arguments", event.arguments, steps);
        break;
      case "response.custom_tool_call_input.done":
        this.#tellRest(this.#item(event, CUSTOM_CALL), "input", event.input, steps);
        break;
      case "response.output_text.annotation.added":
        this.#annotate(this.#item(event, MESSAGE), partKey(event), event.annotation, steps);
        break;
      case "response.output_item.done":
        if (isObject(event.item)) this.#finishItem(this.#item(event, event.item), event.item, steps);
        break;
      case "response.completed":
      case "response.done":
      case "response.incomplete":
        this.#end(isObject(event.response) ? event.response : {}, steps);
        break;
      case "response.failed":
      case "error":
        this.#fail(event, steps);
        break;
      default:
        break;
    }
    if (!this.#begun && steps.length > 0) {
      // An upstream that never said it began: the clients' streams have an opening all the same.
      this.#begun = true;
      steps.unshift({ kind: "begin", response: {} });
    }
    return this.#cutter === null ? steps : steps.flatMap((step) => this.#cutter!.filter(step));
  }

  #begin(response: JsonObject, steps: HubStep[]): void {
    if (this.#begun) return;
    this.#begun = true;
    steps.push({ kind: "begin", response });
  }

  /** The state of the item an event speaks of; a first mention makes it. */
  #item(event: JsonObject, shape: JsonObject): ItemState {
    // The output index is the address; an event without one is matched by the item's id.
    const key = readNumber(event.output_index) === null
      ? readText(event.item_id) ?? readText(shape.id) ?? "only"
      : String(event.output_index);
    const known = this.#items.get(key);
    if (known !== undefined) return known;
    const state: ItemState = {
      number: this.#items.size,
      type: readText(shape.type) ?? "",
      told: new Map(),
      annotations: new Map(),
      value: shape,
      opened: false,
      done: false,
    };
    this.#items.set(key, state);
    return state;
  }

  /** Opens a call as soon as its name and call id are known; before that its pieces wait for the finished item. */
  #openCall(state: ItemState, item: JsonObject, steps: HubStep[]): void {
    state.value = item;
    if (state.opened || !STREAMED_CALLS.has(readText(item.type) ?? "")) return;
    if ((readText(item.name) ?? "") === "" || (readText(item.call_id) ?? "") === "") return;
    state.opened = true;
    steps.push({ kind: "call", item: state.number, value: item });
  }

  #tellText(event: HubEvent, steps: HubStep[]): void {
    const state = this.#item(event, MESSAGE);
    const delta = readText(event.delta) ?? "";
    const logprobs = readList(event.logprobs);
    const key = partKey(event);
    if (state.done || (delta === "" && logprobs.length === 0)) return;
    state.told.set(key, (state.told.get(key) ?? 0) + delta.length);
    steps.push({ kind: "text", item: state.number, part: partNumber(key), delta, logprobs });
  }

  #tell(state: ItemState, key: string, delta: string, steps: HubStep[]): void {
    if (state.done || delta === "") return;
    if (isCallKey(key) && !state.opened) return;
    state.told.set(key, (state.told.get(key) ?? 0) + delta.length);
    steps.push(stepOf(state.number, key, delta));
  }

  /** Hands on what of a whole text the pieces have not told. */
  #tellRest(state: ItemState, key: string, whole: unknown, steps: HubStep[]): void {
    const text = readText(whole);
    if (text !== null) this.#tell(state, key, text.slice(state.told.get(key) ?? 0), steps);
  }

  #annotate(state: ItemState, key: string, value: unknown, steps: HubStep[]): void {
    if (state.done || !isObject(value)) return;
    state.annotations.set(key, (state.annotations.get(key) ?? 0) + 1);
    steps.push({ kind: "annotation", item: state.number, part: partNumber(key), value });
  }

  #finishItem(state: ItemState, item: JsonObject, steps: HubStep[]): void {
    if (state.done) return;
    const type = readText(item.type) ?? state.type;
    if (STREAMED_CALLS.has(type)) {
      this.#openCall(state, item, steps);
      if (!state.opened) return this.#refuseUnnamedCall(steps);
      const key = type === "function_call" ? "arguments" : "input";
      // A call without arguments is told as `{}`: every client parses them.
      const whole = readText(item[key]) ?? "";
      this.#tellRest(state, key, whole === "" && key === "arguments" ? "{}" : whole, steps);
    } else if (type === "message") this.#finishMessage(state, readList(item.content), steps);
    else if (type === "reasoning") {
      this.#finishReasoning(state, "summary", readList(item.summary), steps);
      this.#finishReasoning(state, "text", readList(item.content), steps);
    }
    state.done = true;
    steps.push({ kind: "item_done", item: state.number, value: item });
  }

  #finishMessage(state: ItemState, parts: readonly unknown[], steps: HubStep[]): void {
    parts.forEach((part, index) => {
      if (!isObject(part)) return;
      const refusal = part.type === "refusal";
      const key = `${refusal ? "refusal" : "output_text"}:${index}`;
      if (refusal) return this.#tellRest(state, key, part.refusal, steps);
      const told = state.told.get(key) ?? 0;
      const text = (readText(part.text) ?? "").slice(told);
      // Log probabilities come with the pieces; only a part nobody streamed still owes them.
      const logprobs = told === 0 ? readList(part.logprobs) : [];
      if (text !== "" || logprobs.length > 0) {
        state.told.set(key, told + text.length);
        steps.push({ kind: "text", item: state.number, part: index, delta: text, logprobs });
      }
      const annotations = readList(part.annotations);
      for (const value of annotations.slice(state.annotations.get(key) ?? 0)) {
        this.#annotate(state, key, value, steps);
      }
    });
  }

  #finishReasoning(state: ItemState, kind: string, parts: readonly unknown[], steps: HubStep[]): void {
    parts.forEach((part, index) => {
      if (isObject(part)) this.#tellRest(state, `${kind}:${index}`, part.text, steps);
    });
  }

  #end(response: JsonObject, steps: HubStep[]): void {
    if (response.status === "failed") return this.#fail({ type: "response.failed", response }, steps);
    this.#begin(response, steps);
    readList(response.output).forEach((item, index) => {
      if (isObject(item)) this.#finishItem(this.#item({ output_index: index }, item), item, steps);
    });
    this.#ended = true;
    steps.push({ kind: "end", response, usage: readResponsesUsage(response.usage) });
  }

  #fail(event: HubEvent, steps: HubStep[]): void {
    const response = isObject(event.response) ? event.response : {};
    this.#begin(response, steps);
    this.#ended = true;
    steps.push({
      kind: "fail",
      error: readResponseError(event),
      usage: readResponsesUsage(response.usage),
      malformed: false,
    });
  }

  /** A call nobody can dispatch is neither handed on nor left out: the turn fails (field case B104). */
  #refuseUnnamedCall(steps: HubStep[]): void {
    this.#ended = true;
    steps.push({ kind: "fail", error: UNNAMED_CALL, usage: null, malformed: true });
  }
}

/** Told when an upstream ends a tool call that never got its name or its id. */
export const UNNAMED_CALL: HubError = {
  code: "server_error",
  message: "The upstream sent a tool call without a name",
};

const MESSAGE = { type: "message" };
const REASONING = { type: "reasoning" };
const CALL = { type: "function_call" };
const CUSTOM_CALL = { type: "custom_tool_call" };

/** Calls whose arguments have a stream of their own. */
const STREAMED_CALLS: ReadonlySet<string> = new Set(["function_call", "custom_tool_call"]);

/** The key of the part an event speaks of, the same for its pieces, its closing event and the finished item. */
function partKey(event: HubEvent): string {
  if (event.type.startsWith("response.reasoning_summary")) return `summary:${event.summary_index ?? 0}`;
  if (event.type.startsWith("response.reasoning_text")) return `text:${event.content_index ?? 0}`;
  const kind = event.type.startsWith("response.refusal") ? "refusal" : "output_text";
  return `${kind}:${event.content_index ?? 0}`;
}

function partNumber(key: string): number {
  return Number(key.slice(key.indexOf(":") + 1));
}

function isCallKey(key: string): boolean {
  return key === "arguments" || key === "input";
}

function stepOf(item: number, key: string, delta: string): HubStep {
  if (isCallKey(key)) return { kind: "call_text", item, delta };
  if (key.startsWith("refusal")) return { kind: "refusal", item, part: partNumber(key), delta };
  return { kind: "reasoning", item, part: key, delta };
}
