/**
 * What the frames of a bridged socket say: turns beginning and ending, quota notices, failures.
 *
 * Looks, and almost never touches: a frame leaves as it came, unless an alias names another model, or the turn can
 * only fail where it would be sent, and is answered here.
 */
import type { ErrorFacts, Evidence, HeaderLookup } from "../core/evidence.ts";
import { readErrorValue, readFrameHeaders } from "../protocol/error_body.ts";
import { readObject, readString } from "../protocol/event_data.ts";
import { editTopLevel, findMember, readStringValue } from "../protocol/json_scan.ts";
import { readResponsesEvent } from "../protocol/responses.ts";
import type { EventFacts, TokenUsage } from "../protocol/stream_dialect.ts";
import { readBodyFields } from "./request_body.ts";

/** A turn the upstream has ended. */
export interface EndedTurn {
  readonly startedAtMs: number;
  readonly model: string | null;
  readonly effort: string | null;
  readonly usage: TokenUsage | null;
  /** `null`: the turn says nothing of the account's health. */
  readonly evidence: Extract<Evidence, { kind: "success" | "in_stream" }> | null;
}

export type ClientFrame =
  | { readonly kind: "forward"; readonly text: string }
  /** Never sent upstream: this is what the client hears instead. */
  | { readonly kind: "answer"; readonly text: string };

export interface SocketFramesOptions {
  /** `responses`: turns as wire-facts 5.7 has them. `realtime`: a conversation whose frames only pass. */
  readonly dialect: "responses" | "realtime";
  readonly openedAtMs: number;
  readonly now: () => number;
  /** Codex's name of a model, or `null` when another provider serves it. */
  readonly upstreamModel: (model: string) => string | null;
  /** True when the conversation was another account's: ids of answers given there are unknown here (ruling 8). */
  readonly moved: boolean;
  readonly onTurn: (turn: EndedTurn) => void;
  readonly onQuota: (quota: NonNullable<EventFacts["quota"]>) => void;
}

interface OpenTurn {
  readonly startedAtMs: number;
  readonly model: string | null;
  readonly effort: string | null;
}

/** Types of the few frames that mean something to us; every other frame costs one look. */
const MEANINGFUL = /"(?:error|response\.(?:completed|done|incomplete|failed)|codex\.rate_limits)"/;
/** Where the type leads, as both sides write it. */
const LEADING_TYPE = /^\{"type":"([a-z_.]+)"/;
const MEANINGFUL_TYPES: ReadonlySet<string> = new Set([
  "error",
  "response.completed",
  "response.done",
  "response.incomplete",
  "response.failed",
  "codex.rate_limits",
]);
/** Answers of this socket whose ids its next turn may name; the official client names the last one. */
const KNOWN_RESPONSES = 64;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

export class SocketFrames {
  readonly #options: SocketFramesOptions;
  #turn: OpenTurn | null = null;
  /** The last turn has had its end: an `error` frame is usually followed by a `response.failed` of the same cause. */
  #hasEnded = false;
  readonly #responses = new Set<string>();

  constructor(options: SocketFramesOptions) {
    this.#options = options;
  }

  /** A turn is under way: the client waits for its terminal frame. */
  get isBusy(): boolean {
    return this.#turn !== null;
  }

  fromClient(text: string): ClientFrame {
    const forward: ClientFrame = { kind: "forward", text };
    if (this.#options.dialect === "realtime") return forward;
    const bytes = ENCODER.encode(text);
    const read = readBodyFields(bytes);
    // What is no JSON object is the upstream's to refuse.
    if (!read.ok) return forward;
    const { fields } = read;
    if (readStringValue(bytes, findMember(fields.members, "type")) !== "response.create") return forward;
    const previous = fields.previousResponseId;
    if (previous !== null && this.#options.moved && !this.#responses.has(previous)) {
      return refusal("previous_response_not_found", "previous_response_id", FOREIGN_RESPONSE);
    }
    const model = fields.model === null ? null : this.#options.upstreamModel(fields.model);
    if (fields.model !== null && model === null) {
      return refusal("model_not_found", "model", OTHER_PROVIDER);
    }
    this.#turn = { startedAtMs: this.#options.now(), model, effort: fields.effort };
    this.#hasEnded = false;
    if (model === null || model === fields.model) return forward;
    const edited = editTopLevel(bytes, fields.members, [{ key: "model", json: JSON.stringify(model) }]);
    return { kind: "forward", text: DECODER.decode(edited) };
  }

  /** @returns whether it may be an end or an error: upstreams put into those whatever they like. */
  fromUpstream(text: string): boolean {
    const type = LEADING_TYPE.exec(text)?.[1] ?? null;
    if (type === null ? !MEANINGFUL.test(text) : !MEANINGFUL_TYPES.has(type)) return false;
    const json = parseObject(text);
    if (json !== null) this.#read(json);
    return true;
  }

  #read(json: Record<string, unknown>): void {
    if (this.#options.dialect === "realtime") return this.#readRealtime(json);
    const facts = readResponsesEvent(json, null);
    if (facts.quota !== null) this.#options.onQuota(facts.quota);
    if (facts.class === "success") {
      if (facts.responseId !== null) this.#remember(facts.responseId);
      this.#end({ kind: "success" }, facts.usage);
    } else if (facts.class === "failure") {
      this.#end(failure(facts.failure ?? readErrorValue(json), readFrameHeaders(json)), facts.usage);
    }
  }

  /** Realtime errors mostly are the client's own; only a stated status speaks of the account. */
  #readRealtime(json: Record<string, unknown>): void {
    const type = readString(json["type"]);
    if (type === "response.done") {
      const usage = readResponsesEvent({ ...json, type: "response.completed" }, null).usage;
      return this.#end(null, usage);
    }
    const error = type === "error" ? readErrorValue(json) : null;
    if (error !== null && error.status !== null) this.#end(failure(error, readFrameHeaders(json)), null);
  }

  #end(evidence: EndedTurn["evidence"], usage: TokenUsage | null): void {
    if (this.#hasEnded && this.#options.dialect === "responses") return;
    this.#hasEnded = true;
    const turn = this.#turn ?? { startedAtMs: this.#options.openedAtMs, model: null, effort: null };
    this.#turn = null;
    this.#options.onTurn({ ...turn, usage, evidence });
  }

  #remember(responseId: string): void {
    this.#responses.add(responseId);
    for (const oldest of this.#responses) {
      if (this.#responses.size <= KNOWN_RESPONSES) break;
      this.#responses.delete(oldest);
    }
  }
}

const FOREIGN_RESPONSE =
  "The previous response belongs to another connection; send the whole input without previous_response_id";
const OTHER_PROVIDER = "This model is not served over WebSockets; use an HTTP request";

/** The error frame of wire-facts 5.7; without its status the official client would not take it for an error. */
function refusal(code: string, param: string, message: string): ClientFrame {
  const error = { type: "invalid_request_error", code, message, param };
  return { kind: "answer", text: JSON.stringify({ type: "error", status: 400, error }) };
}

function failure(error: ErrorFacts, headers: HeaderLookup): Extract<Evidence, { kind: "in_stream" }> {
  return { kind: "in_stream", error, headers };
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    return readObject(JSON.parse(text)) as Record<string, unknown> | null;
  } catch {
    return null;
  }
}
