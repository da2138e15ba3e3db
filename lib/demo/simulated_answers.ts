/** Complete answers in the protocol of the call: what `ok("A")` says on each route. */
import { type Answer, json, models, type Question, type Reply, stream, usage } from "./simulated_reply.ts";
import {
  chatDelta,
  chatDone,
  chatFinish,
  chatRole,
  completed,
  created,
  delta,
  event,
  itemAdded,
  itemDone,
  messageItem,
  receive,
  SIMULATED_USAGE,
  type Step,
} from "./simulated_steps.ts";

export function wholeAnswer(question: Question, text: string, headers: Record<string, string>): Reply {
  if (question.websocket) return { kind: "accept", headers, protocol: null, steps: endlessTurns(text) };
  const streaming = question.json?.["stream"] === true;
  const path = question.path;
  if (path.endsWith("/responses")) {
    return streaming ? stream(responsesTurn(text), headers) : json(responsesObject(text), 200, headers);
  }
  if (path.endsWith("/chat/completions")) {
    return streaming ? stream(chatTurn(text), headers) : json(chatObject(text), 200, headers);
  }
  if (path.endsWith("/messages")) {
    return streaming ? stream(messagesTurn(text), headers) : json(messagesObject(text), 200, headers);
  }
  return otherAnswer(path, text, headers);
}

function otherAnswer(path: string, text: string, headers: Record<string, string>): Answer {
  if (path.endsWith("/responses/compact")) {
    return json({ object: "response.compaction", output: [messageItem(text)] }, 200, headers);
  }
  if (path.endsWith("/count_tokens")) return json({ input_tokens: 10 }, 200, headers);
  if (path.endsWith("/models")) return models([text], headers);
  if (path.endsWith("/wham/usage")) return usage();
  if (path.includes("/images/")) {
    return json({ created: 0, data: [{ b64_json: btoa(text) }], usage: SIMULATED_USAGE }, 200, headers);
  }
  return json({ ok: true, text }, 200, headers);
}

export function responsesTurn(text: string): Step[] {
  return [created(), itemAdded(), delta(text), itemDone(text), completed()];
}

/** One turn for every frame the client sends, until it leaves. */
function* endlessTurns(text: string): Generator<Step> {
  while (true) {
    yield receive();
    yield* responsesTurn(text);
  }
}

function responsesObject(text: string) {
  return {
    id: "resp_sim",
    object: "response",
    created_at: 0,
    status: "completed",
    model: "simulated",
    output: [messageItem(text)],
    usage: SIMULATED_USAGE,
  };
}

function chatTurn(text: string): Step[] {
  return [chatRole(), chatDelta(text), chatFinish(), chatDone()];
}

function chatObject(text: string) {
  return {
    id: "chatcmpl-sim",
    object: "chat.completion",
    created: 0,
    model: "simulated",
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  };
}

function messagesTurn(text: string): Step[] {
  const named = (type: string, fields: Record<string, unknown>) => event(type, { type, ...fields });
  return [
    messageStart(),
    named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    named("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
    named("content_block_stop", { index: 0 }),
    named("message_delta", {
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: 5 },
    }),
    named("message_stop", {}),
  ];
}

export function messageStart(): Step {
  const message = { ...messagesObject(""), content: [], stop_reason: null };
  return event("message_start", { type: "message_start", message });
}

function messagesObject(text: string) {
  return {
    id: "msg_sim",
    type: "message",
    role: "assistant",
    model: "simulated",
    content: [{ type: "text", text }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 5 },
  };
}
