/** The events of one simulated answer in each protocol, and what each of them is to a proxy that may only guess. */

export type WireProtocol = "responses" | "chat" | "messages";

/**
 * `finish`: a chat chunk after which a clean end is complete. `padding`: legal noise that no client is shown.
 * The roles are stated where the events are made, so that no code under test is asked what they are.
 */
export type EventRole =
  | "comment"
  | "padding"
  | "lifecycle"
  | "output"
  | "finish"
  | "terminal"
  | "unknown"
  | "failure"
  | "malformed";

/** What a failure told inside an answer means for the request. */
export type FailureMeaning = "recoverable" | "fault" | "refused" | "unauthorized";

export interface WireEvent {
  readonly role: EventRole;
  readonly name: string | null;
  /** Null for a comment, whose text is `name`. */
  readonly data: string | null;
  readonly meaning?: FailureMeaning;
}

/** A complete answer with these texts; `marker` is in every event that could tell one attempt from another. */
export function answerEvents(protocol: WireProtocol, marker: string, texts: readonly string[]): WireEvent[] {
  switch (protocol) {
    case "responses":
      return responsesAnswer(marker, texts);
    case "chat":
      return chatAnswer(marker, texts);
    case "messages":
      return messagesAnswer(marker, texts);
  }
}

function responsesAnswer(marker: string, texts: readonly string[]): WireEvent[] {
  const id = `resp_${marker}`;
  const item = {
    id: `msg_${marker}`,
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: texts.join(""), annotations: [] }],
  };
  return [
    responsesEvent("lifecycle", "response.created", {
      response: { id, object: "response", status: "in_progress" },
    }),
    responsesEvent("lifecycle", "response.in_progress", { response: { id, status: "in_progress" } }),
    responsesEvent("output", "response.output_item.added", {
      output_index: 0,
      item: { ...item, status: "in_progress", content: [] },
    }),
    ...texts.map((delta) =>
      responsesEvent("output", "response.output_text.delta", {
        item_id: item.id,
        output_index: 0,
        content_index: 0,
        delta,
      })
    ),
    responsesEvent("output", "response.output_item.done", { output_index: 0, item }),
    responsesEvent("terminal", "response.completed", {
      response: { id, object: "response", status: "completed", output: [item], usage: RESPONSES_USAGE },
    }),
  ];
}

function chatAnswer(marker: string, texts: readonly string[]): WireEvent[] {
  const chunk = (role: EventRole, delta: Record<string, unknown>, finish: string | null): WireEvent => ({
    role,
    name: null,
    data: JSON.stringify({
      id: `chatcmpl-${marker}`,
      object: "chat.completion.chunk",
      created: 1_700_000_000,
      model: "simulated",
      choices: [{ index: 0, delta, finish_reason: finish }],
    }),
  });
  return [
    chunk("lifecycle", { role: "assistant", content: "" }, null),
    ...texts.map((content) => chunk("output", { content }, null)),
    chunk("finish", {}, "stop"),
    { role: "terminal", name: null, data: "[DONE]" },
  ];
}

function messagesAnswer(marker: string, texts: readonly string[]): WireEvent[] {
  return [
    messagesEvent("lifecycle", "message_start", {
      message: {
        id: `msg_${marker}`,
        type: "message",
        role: "assistant",
        model: "simulated",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 10, output_tokens: 1 },
      },
    }),
    messagesEvent("lifecycle", "ping", {}),
    messagesEvent("output", "content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    ...texts.map((text) =>
      messagesEvent("output", "content_block_delta", { index: 0, delta: { type: "text_delta", text } })
    ),
    messagesEvent("output", "content_block_stop", { index: 0 }),
    messagesEvent("output", "message_delta", {
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: 5 },
    }),
    messagesEvent("terminal", "message_stop", {}),
  ];
}

/** An event of a family that nobody knows. */
export function unknownEvent(protocol: WireProtocol, marker: string): WireEvent {
  const type = protocol === "messages" ? "sim_novelty" : "sim.novelty";
  return protocol === "chat"
    ? { role: "unknown", name: null, data: JSON.stringify({ sim_novelty: marker }) }
    : { role: "unknown", name: type, data: JSON.stringify({ type, novelty: marker }) };
}

/** `[DONE]` where it says nothing; chat streams have no noise of this kind. */
export function paddingEvent(): WireEvent {
  return { role: "padding", name: null, data: "[DONE]" };
}

export function malformedEvent(marker: string): WireEvent {
  return { role: "malformed", name: null, data: `{"broken":"${marker}` };
}

/** Words for each meaning, as each protocol has them. Request faults keep the upstream's text, so it is marked. */
export function failureEvent(protocol: WireProtocol, meaning: FailureMeaning, marker: string): WireEvent {
  const message = `failed in ${marker}`;
  const words = WORDS[protocol][meaning];
  const base = { role: "failure" as const, meaning };
  switch (protocol) {
    case "responses": {
      const response = {
        id: `resp_${marker}`,
        object: "response",
        status: "failed",
        error: { message, ...words },
      };
      return { ...base, ...responsesEvent("failure", "response.failed", { response }) };
    }
    case "chat":
      return { ...base, name: null, data: JSON.stringify({ error: { message, ...words } }) };
    case "messages":
      return { ...base, ...messagesEvent("failure", "error", { error: { message, ...words } }) };
  }
}

const WORDS: Readonly<Record<WireProtocol, Record<FailureMeaning, Record<string, unknown>>>> = {
  responses: {
    recoverable: { code: "server_error" },
    fault: { code: "context_length_exceeded" },
    refused: { code: "usage_limit_reached", type: "usage_limit_reached", resets_in_seconds: 40 },
    unauthorized: { code: "token_expired" },
  },
  chat: {
    recoverable: { code: "server_error", type: "server_error" },
    fault: { code: "context_length_exceeded", type: "invalid_request_error" },
    refused: { code: "rate_limit_exceeded", type: "rate_limit_error" },
    unauthorized: { code: "invalid_authentication", type: "authentication_error" },
  },
  messages: {
    recoverable: { type: "overloaded_error" },
    fault: { type: "invalid_request_error" },
    refused: { type: "rate_limit_error" },
    unauthorized: { type: "authentication_error" },
  },
};

/** The same answer as one document, for calls that asked for no stream. */
export function answerDocument(protocol: WireProtocol, marker: string, texts: readonly string[]): string {
  const text = texts.join("");
  switch (protocol) {
    case "responses":
      return JSON.stringify({
        id: `resp_${marker}`,
        object: "response",
        created_at: 1_700_000_000,
        status: "completed",
        model: "simulated",
        output: [{
          id: `msg_${marker}`,
          type: "message",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text, annotations: [] }],
        }],
        usage: RESPONSES_USAGE,
      });
    case "chat":
      return JSON.stringify({
        id: `chatcmpl-${marker}`,
        object: "chat.completion",
        created: 1_700_000_000,
        model: "simulated",
        choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
        usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
      });
    case "messages":
      return JSON.stringify({
        id: `msg_${marker}`,
        type: "message",
        role: "assistant",
        model: "simulated",
        content: [{ type: "text", text }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 10, output_tokens: 5 },
      });
  }
}

/** What begins an answer in a client's protocol; a client may see it once. */
export const START_MARKS: Readonly<Record<WireProtocol, RegExp>> = {
  responses: /"type":"response\.created"/g,
  chat: /"role":"assistant"/g,
  messages: /"type":"message_start"/g,
};

const RESPONSES_USAGE = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 15,
};

function responsesEvent(role: EventRole, type: string, fields: Record<string, unknown>): WireEvent {
  return { role, name: type, data: JSON.stringify({ type, ...fields }) };
}

function messagesEvent(role: EventRole, type: string, fields: Record<string, unknown>): WireEvent {
  return { role, name: type, data: JSON.stringify({ type, ...fields }) };
}

export interface WireStyle {
  readonly lineEnd: "\n" | "\r\n" | "\r";
  /** A space after the colon. */
  readonly spaced: boolean;
  /** An `id:` line before the rest. */
  readonly ids: boolean;
}

/** One event as it goes over the wire. */
export function frameBytes(event: WireEvent, style: WireStyle): Uint8Array<ArrayBuffer> {
  const { lineEnd, spaced, ids } = style;
  const line = (field: string, value: string) => `${field}:${spaced ? " " : ""}${value}${lineEnd}`;
  if (event.data === null) return ENCODER.encode(`: ${event.name}${lineEnd}${lineEnd}`);
  const name = event.name === null ? "" : line("event", event.name);
  return ENCODER.encode(`${ids ? line("id", "7") : ""}${name}${line("data", event.data)}${lineEnd}`);
}

const ENCODER = new TextEncoder();
