/**
 * The steps of a simulated answer: events of each protocol, raw bytes, pauses, endings.
 *
 * The names are those of the field cases' "Frames", so that a script reads like the case it plays.
 */
import type { Bytes } from "./http_wire.ts";

/** One thing a provider does after its head (HTTP) or its upgrade (WebSocket). */
export type Step =
  /** Rendered as an SSE event over HTTP, as one text frame over a WebSocket. */
  | { readonly kind: "event"; readonly name: string | null; readonly data: string }
  | { readonly kind: "bytes"; readonly bytes: Bytes }
  | { readonly kind: "delay"; readonly ms: number }
  /** Goes on when the test says so. */
  | { readonly kind: "gate"; readonly opened: Promise<unknown> }
  /** Orderly close without the end of the body; reset; open and silent for ever. */
  | { readonly kind: "fin" | "rst" | "hold" }
  /** WebSocket only: wait for the client's next frame; ping; stop reading; close. */
  | { readonly kind: "receive" }
  | { readonly kind: "ping"; readonly data: string }
  | { readonly kind: "deaf" }
  | { readonly kind: "close"; readonly code: number; readonly reason: string };

export function event(name: string | null, data: unknown): Step {
  return { kind: "event", name, data: typeof data === "string" ? data : JSON.stringify(data) };
}

export function text(content: string): Step {
  return { kind: "bytes", bytes: new TextEncoder().encode(content) };
}

export function bytes(content: Bytes): Step {
  return { kind: "bytes", bytes: content };
}

export function delay(ms: number): Step {
  return { kind: "delay", ms };
}

export function gate(opened: Promise<unknown>): Step {
  return { kind: "gate", opened };
}

export function fin(): Step {
  return { kind: "fin" };
}

export function rst(): Step {
  return { kind: "rst" };
}

export function hold(): Step {
  return { kind: "hold" };
}

export function receive(): Step {
  return { kind: "receive" };
}

export function ping(data = ""): Step {
  return { kind: "ping", data };
}

export function deaf(): Step {
  return { kind: "deaf" };
}

export function close(code: number, reason = ""): Step {
  return { kind: "close", code, reason };
}

/** Responses events, as wire-facts 2.1 and 2.2 have them. */
function responsesEvent(type: string, fields: Record<string, unknown>): Step {
  return event(type, { type, ...fields });
}

export function created(id = "resp_sim"): Step {
  return responsesEvent("response.created", { response: { id, object: "response", status: "in_progress" } });
}

export function inProgress(id = "resp_sim"): Step {
  return responsesEvent("response.in_progress", { response: { id, status: "in_progress" } });
}

export function itemAdded(): Step {
  const item = { id: "msg_sim", type: "message", role: "assistant", status: "in_progress", content: [] };
  return responsesEvent("response.output_item.added", { output_index: 0, item });
}

export function delta(content: string): Step {
  return responsesEvent("response.output_text.delta", {
    item_id: "msg_sim",
    output_index: 0,
    content_index: 0,
    delta: content,
  });
}

export function itemDone(content: string): Step {
  return responsesEvent("response.output_item.done", { output_index: 0, item: messageItem(content) });
}

export function messageItem(content: string) {
  return {
    id: "msg_sim",
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: content, annotations: [] }],
  };
}

/** Codex leaves `output` of the terminal event empty; so does this one. */
export function completed(id = "resp_sim"): Step {
  return responsesEvent("response.completed", {
    response: { id, object: "response", status: "completed", output: [], usage: SIMULATED_USAGE },
  });
}

export const SIMULATED_USAGE = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 15,
};

export function failed(
  code: string,
  message = `simulated ${code}`,
  extra: Record<string, unknown> = {},
): Step {
  return responsesEvent("response.failed", {
    response: { id: "resp_sim", object: "response", status: "failed", error: { code, message, ...extra } },
  });
}

/** A nested `error` event (wire-facts 2.2 form B). */
export function error(
  code: string,
  message = `simulated ${code}`,
  extra: Record<string, unknown> = {},
): Step {
  return responsesEvent("error", { error: { type: null, code, message, param: null, ...extra } });
}

export function incomplete(reason = "max_output_tokens"): Step {
  return responsesEvent("response.incomplete", {
    response: { id: "resp_sim", object: "response", status: "incomplete", incomplete_details: { reason } },
  });
}

/** The error frame of a WebSocket (wire-facts 1.1 h). */
export function errorFrame(
  status: number,
  words: { readonly error: Record<string, unknown>; readonly headers?: Record<string, unknown> },
): Step {
  return responsesEvent("error", { status, error: words.error, headers: words.headers ?? {} });
}

/** Chat chunks. */
export function chatDelta(content: string): Step {
  return event(null, chatChunk({ content }, null));
}

export function chatRole(): Step {
  return event(null, chatChunk({ role: "assistant", content: "" }, null));
}

export function chatFinish(reason = "stop"): Step {
  return event(null, chatChunk({}, reason));
}

export function chatDone(): Step {
  return event(null, "[DONE]");
}

function chatChunk(content: Record<string, unknown>, reason: string | null) {
  return {
    id: "chatcmpl-sim",
    object: "chat.completion.chunk",
    created: 0,
    model: "simulated",
    choices: [{ index: 0, delta: content, finish_reason: reason }],
  };
}

/**
 * Responses deltas whose texts count up (`#1 `, `#2 ` …), so that a checker sees what was lost or doubled.
 * Made one by one: a long soak costs no memory.
 */
export function* numbered(options: { readonly chunks: number; readonly everyMs: number }): Generator<Step> {
  yield created();
  for (let index = 1; index <= options.chunks; index++) {
    if (options.everyMs > 0) yield delay(options.everyMs);
    yield delta(`#${index} `);
  }
  yield completed();
}
