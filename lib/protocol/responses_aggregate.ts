/**
 * The whole answer of a Responses stream, for clients that asked for JSON where the upstream only streams.
 *
 * The terminal's own `output` is empty on Codex: the finished items are the authority (wire-facts 2.1).
 */
import type { Evidence, HeaderLookup } from "../core/evidence.ts";
import { type JsonObject, readEventData, readObject } from "./event_data.ts";
import { judgeStreamEnd, malformedStream, observeEvent, STREAM_START } from "./terminal_event.ts";
import type { SseFrame } from "./sse.ts";
import type { EventFacts } from "./stream_dialect.ts";

export type AggregateResult =
  | { readonly ok: true; readonly json: Record<string, unknown> }
  | { readonly ok: false; readonly evidence: Evidence };

/** More finished items than this are not held in memory for one client. */
export const AGGREGATE_LIMIT_BYTES = 67_108_864;

const NO_HEADERS: HeaderLookup = { get: () => null };

/** Feed every frame with its facts, then ask for the result once the stream ended cleanly. */
export class ResponsesAggregator {
  readonly #headers: HeaderLookup;
  readonly #maxBytes: number;
  #progress = STREAM_START;
  /** Finished items by their place in the output. */
  readonly #items = new Map<number, JsonObject>();
  #bytes = 0;
  #sawDelta = false;
  #terminal: { readonly type: string | null; readonly response: JsonObject } | null = null;

  /** @param headers  of the upstream's answer, for the evidence of a failure inside it. */
  constructor(headers: HeaderLookup = NO_HEADERS, maxBytes = AGGREGATE_LIMIT_BYTES) {
    this.#headers = headers;
    this.#maxBytes = maxBytes;
  }

  add(frame: SseFrame, facts: EventFacts): void {
    this.#progress = observeEvent(this.#progress, facts);
    const { end } = this.#progress;
    if (end === null && facts.class === "output") {
      if (facts.type === "response.output_item.done") this.#takeItem(frame);
      else if (facts.type?.endsWith(".delta")) this.#sawDelta = true;
    } else if (end === "success" && facts.class === "success") {
      this.#takeTerminal(frame, facts.type);
    }
  }

  result(): AggregateResult {
    const evidence = judgeStreamEnd(this.#progress, this.#headers);
    if (evidence.kind !== "success" || this.#terminal === null) return { ok: false, evidence };
    const { type, response } = this.#terminal;
    const isIncomplete = type === "response.incomplete";
    const output = this.#output(response);
    // Text went by and none of it is in the answer: an empty success would hide that.
    if (output.length === 0 && this.#sawDelta && !isIncomplete) {
      return { ok: false, evidence: { kind: "malformed", detail: "items_missing" } };
    }
    const status = response["status"] ?? (isIncomplete ? "incomplete" : "completed");
    return { ok: true, json: { ...response, status, output } };
  }

  #output(response: JsonObject): unknown[] {
    const stated = response["output"];
    if (Array.isArray(stated) && stated.length > 0) return stated;
    return [...this.#items].sort(([a], [b]) => a - b).map(([, item]) => item);
  }

  #takeItem(frame: SseFrame): void {
    this.#bytes += frame.raw.length;
    if (this.#bytes > this.#maxBytes) return this.#refuse("answer_too_large");
    const data = readEventData(frame);
    const json = data.kind === "object" ? data.json : null;
    const item = readObject(json?.["item"]);
    if (item === null) return this.#refuse("bad_event_data");
    const index = json?.["output_index"];
    this.#items.set(typeof index === "number" ? index : this.#items.size, item);
  }

  #takeTerminal(frame: SseFrame, type: string | null): void {
    const data = readEventData(frame);
    const response = data.kind === "object" ? readObject(data.json["response"]) : null;
    if (response === null) return this.#refuse("bad_event_data");
    this.#terminal = { type, response };
  }

  #refuse(detail: string): void {
    this.#progress = malformedStream(this.#progress, detail);
    this.#items.clear();
  }
}
