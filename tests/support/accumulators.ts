/**
 * Puts a client's stream together to the whole answer, knowing nothing of how it was made.
 *
 * Written from the protocols' documents; strict where a client would be confused: unknown events, wrong indices,
 * overlapping blocks and missing ends are errors.
 */
import type { JsonObject } from "../../lib/protocol/translate/json.ts";
import { clientEvents } from "./translation.ts";

// deno-lint-ignore no-explicit-any -- foreign JSON, checked by the comparison at the end
type Loose = Record<string, any>;

export interface Accumulated {
  /** The whole answer, or `null` when the stream failed before one was complete. */
  readonly answer: JsonObject | null;
  /** The error the client was told in the stream. */
  readonly error: JsonObject | null;
}

export function accumulateChat(stream: string): Accumulated {
  const events = clientEvents(stream);
  let answer: Loose | null = null;
  let error: JsonObject | null = null;
  let finished = false;
  let done = false;
  for (const { event, data } of events) {
    if (event !== null) throw new Error(`chat frames have no event name: ${event}`);
    if (done) throw new Error("a frame after [DONE]");
    if (data === "[DONE]") {
      done = true;
      continue;
    }
    const chunk = JSON.parse(data) as Loose;
    if (chunk.error !== undefined) {
      error = chunk.error;
      continue;
    }
    if (error !== null) throw new Error("a chunk after the error");
    answer ??= {
      id: chunk.id,
      object: "chat.completion",
      created: chunk.created,
      model: chunk.model,
      choices: [],
    };
    if (chunk.id !== answer.id || chunk.object !== "chat.completion.chunk") {
      throw new Error("a foreign chunk");
    }
    if (chunk.usage) answer.usage = chunk.usage;
    if (chunk.service_tier) answer.service_tier = chunk.service_tier;
    if (chunk.choices.length === 0) continue;
    if (finished) throw new Error("a delta after the finish reason");
    const { index, delta, logprobs, finish_reason } = chunk.choices[0];
    if (chunk.choices.length !== 1 || index !== 0) throw new Error("more than one choice");
    const choice = answer.choices[0] ??= {
      index: 0,
      message: { role: null, content: null, refusal: null },
      logprobs: null,
      finish_reason: null,
    };
    addChatDelta(choice.message, delta);
    if (logprobs !== null) {
      choice.logprobs ??= { content: [], refusal: null };
      choice.logprobs.content.push(...logprobs.content);
    }
    if (finish_reason !== null) {
      choice.finish_reason = finish_reason;
      finished = true;
    }
  }
  if (error === null && !(done && finished)) throw new Error("the stream has no end");
  if (error !== null && (done || finished)) throw new Error("a failed stream says it went well");
  return { answer: error === null ? answer : null, error };
}

function addChatDelta(message: Loose, delta: Loose): void {
  for (const [key, value] of Object.entries(delta)) {
    switch (key) {
      case "role":
        message.role = value;
        break;
      case "content":
      case "refusal":
      case "reasoning_content":
        message[key] = (message[key] ?? "") + value;
        break;
      case "annotations":
      case "reasoning_details":
        message[key] = [...message[key] ?? [], ...value];
        break;
      case "tool_calls":
        message.tool_calls ??= [];
        for (const piece of value) addChatCall(message.tool_calls, piece);
        break;
      default:
        throw new Error(`unknown delta member ${key}`);
    }
  }
}

function addChatCall(calls: Loose[], { index, id, type, ...body }: Loose): void {
  const [field, inner] = body.function === undefined ? ["custom", body.custom] : ["function", body.function];
  const text = field === "custom" ? "input" : "arguments";
  if (index === calls.length) {
    if (!id || !inner.name) throw new Error("a call opens without its id or name");
    calls.push({ id, type, [field]: { name: inner.name, [text]: inner[text] } });
    return;
  }
  const call = calls[index];
  if (call === undefined) throw new Error(`call index ${index} out of order`);
  call[field][text] += inner[text];
}

export function accumulateMessages(stream: string): Accumulated {
  let message: Loose | null = null;
  let error: JsonObject | null = null;
  let open: number | null = null;
  let json = "";
  let stopped = false;
  for (const { event, data } of clientEvents(stream)) {
    const body = JSON.parse(data) as Loose;
    if (event !== body.type) throw new Error(`event name ${event} for type ${body.type}`);
    if (stopped || error !== null) throw new Error(`${event} after the end`);
    switch (body.type) {
      case "message_start":
        if (message !== null) throw new Error("two starts");
        message = body.message;
        break;
      case "content_block_start":
        if (open !== null || body.index !== message!.content.length) throw new Error("blocks overlap");
        open = body.index;
        json = "";
        message!.content.push({ ...body.content_block });
        break;
      case "content_block_delta":
        if (body.index !== open) throw new Error("a delta for a closed block");
        json += addBlockDelta(message!.content[open!], body.delta);
        break;
      case "content_block_stop":
        if (body.index !== open) throw new Error("a stop for a closed block");
        if (json !== "") message!.content[open!].input = JSON.parse(json);
        open = null;
        break;
      case "message_delta":
        if (open !== null) throw new Error("the message ends inside a block");
        Object.assign(message!, body.delta);
        for (const [key, value] of Object.entries(body.usage)) {
          if (value !== null) message!.usage[key] = value;
        }
        break;
      case "message_stop":
        stopped = true;
        break;
      case "error":
        error = body.error;
        break;
      case "ping":
        break;
      default:
        throw new Error(`unknown event ${body.type}`);
    }
  }
  if (!stopped && error === null) throw new Error("the stream has no end");
  return { answer: stopped ? message : null, error };
}

function addBlockDelta(block: Loose, delta: Loose): string {
  switch (delta.type) {
    case "text_delta":
      block.text += delta.text;
      return "";
    case "thinking_delta":
      block.thinking += delta.thinking;
      return "";
    case "signature_delta":
      block.signature += delta.signature;
      return "";
    case "citations_delta":
      block.citations = [...block.citations ?? [], delta.citation];
      return "";
    case "input_json_delta":
      if (block.type !== "tool_use") throw new Error("arguments for a block that is no tool");
      return delta.partial_json;
    default:
      throw new Error(`unknown delta ${delta.type}`);
  }
}

export function accumulateResponses(stream: string): Accumulated {
  const items: Loose[] = [];
  let terminal: Loose | null = null;
  let begun = false;
  let sequence = 0;
  let open: number | null = null;
  for (const { event, data } of clientEvents(stream)) {
    const body = JSON.parse(data) as Loose;
    if (event !== body.type) throw new Error(`event name ${event} for type ${body.type}`);
    if (body.sequence_number !== sequence++) throw new Error(`sequence number ${body.sequence_number}`);
    if (terminal !== null) throw new Error(`${event} after the end`);
    if (!begun && body.type !== "response.created") throw new Error(`${event} before response.created`);
    switch (body.type) {
      case "response.created":
        begun = true;
        break;
      case "response.in_progress":
        break;
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        if (open !== null && body.type !== "response.failed") {
          throw new Error("the answer ends inside an item");
        }
        terminal = body.response;
        break;
      case "response.output_item.added":
        if (open !== null || body.output_index !== items.length) throw new Error("items overlap");
        open = body.output_index;
        items.push(structuredClone(body.item));
        break;
      case "response.output_item.done":
        if (body.output_index !== open) throw new Error("an item that is not open ends");
        checkItem(items[open!]!, body.item);
        items[open!] = body.item;
        open = null;
        break;
      default:
        if (body.output_index !== open) throw new Error(`${event} outside its item`);
        if (body.item_id !== items[open!]!.id) throw new Error(`${event} with a foreign id`);
        addItemEvent(items[open!]!, body);
    }
  }
  if (terminal === null) throw new Error("the stream has no end");
  if (terminal.status === "failed") return { answer: null, error: terminal.error };
  if (JSON.stringify(terminal.output) !== JSON.stringify(items)) {
    throw new Error("the end tells another answer");
  }
  return { answer: terminal, error: null };
}

/** The pieces of an item against the item as it is said to be at its end. */
function checkItem(built: Loose, final: Loose): void {
  for (const key of ["arguments", "input", "content", "summary"]) {
    if (final[key] === undefined || built[key] === undefined) continue;
    const left = JSON.stringify(built[key]);
    const right = JSON.stringify(final[key]);
    if (left !== right) throw new Error(`pieces of ${key}: ${left}, whole: ${right}`);
  }
}

function addItemEvent(item: Loose, body: Loose): void {
  switch (body.type) {
    case "response.content_part.added":
      if (body.content_index !== item.content.length) throw new Error("parts out of order");
      item.content.push(structuredClone(body.part));
      break;
    case "response.output_text.delta":
      item.content[body.content_index].text += body.delta;
      if (body.logprobs.length > 0) (item.content[body.content_index].logprobs ??= []).push(...body.logprobs);
      break;
    case "response.refusal.delta":
      item.content[body.content_index].refusal += body.delta;
      break;
    case "response.output_text.annotation.added":
      item.content[body.content_index].annotations.push(body.annotation);
      break;
    case "response.output_text.done":
      if (item.content[body.content_index].text !== body.text) throw new Error("another text at its end");
      break;
    case "response.refusal.done":
      if (item.content[body.content_index].refusal !== body.refusal) {
        throw new Error("another refusal at its end");
      }
      break;
    case "response.content_part.done":
      if (JSON.stringify(item.content[body.content_index]) !== JSON.stringify(body.part)) {
        throw new Error("another part at its end");
      }
      break;
    case "response.reasoning_summary_part.added":
      if (body.summary_index !== item.summary.length) throw new Error("summaries out of order");
      item.summary.push(structuredClone(body.part));
      break;
    case "response.reasoning_summary_text.delta":
      item.summary[body.summary_index].text += body.delta;
      break;
    case "response.reasoning_summary_text.done":
      if (item.summary[body.summary_index].text !== body.text) throw new Error("another summary at its end");
      break;
    case "response.reasoning_summary_part.done":
      break;
    case "response.function_call_arguments.delta":
      item.arguments += body.delta;
      break;
    case "response.function_call_arguments.done":
      if (item.arguments !== body.arguments) throw new Error("other arguments at their end");
      break;
    case "response.custom_tool_call_input.delta":
      item.input += body.delta;
      break;
    case "response.custom_tool_call_input.done":
      if (item.input !== body.input) throw new Error("another input at its end");
      break;
    default:
      throw new Error(`unknown event ${body.type}`);
  }
}

export const ACCUMULATORS = {
  chat: accumulateChat,
  messages: accumulateMessages,
  responses: accumulateResponses,
} as const;
