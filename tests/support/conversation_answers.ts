/** Answers: what an upstream of each protocol says, whole and streamed, and what a client understands. */
import type { JsonObject } from "../../lib/protocol/translate/json.ts";
import type { TranslatedProtocol } from "../../lib/protocol/translate/translator.ts";
import type { AnswerModel, CallModel, UsageModel } from "./conversation_model.ts";

// deno-lint-ignore no-explicit-any -- foreign JSON, checked by the comparison at the end
type Loose = Record<string, any>;

/** Cuts texts into pieces; the same seed cuts the same way. */
export type Splitter = (text: string) => string[];

/** A splitter with pieces of 1 to `longest` characters; surrogate pairs stay whole, as upstreams keep them. */
export function seededSplitter(seed: number, longest: number): Splitter {
  let state = seed >>> 0;
  const next = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
  return (text) => {
    const chars = [...text];
    const pieces: string[] = [];
    while (chars.length > 0) pieces.push(chars.splice(0, 1 + Math.floor(next() * longest)).join(""));
    return pieces;
  };
}

export interface AnswerStyle {
  /** Says a refusal in the place the protocol has for it. */
  readonly refuses: boolean;
}

export function renderAnswer(
  upstream: TranslatedProtocol,
  model: AnswerModel,
  style: AnswerStyle,
): JsonObject {
  return WHOLE[upstream](model, style);
}

export function renderStream(
  upstream: TranslatedProtocol,
  model: AnswerModel,
  style: AnswerStyle,
  split: Splitter,
): (JsonObject | string)[] {
  return STREAM[upstream](model, style, split);
}

/** What a client understands of an answer in its own protocol. */
export function readAnswer(client: TranslatedProtocol, body: JsonObject): AnswerModel {
  return READ[client](body as Loose);
}

const CREATED = 1_760_000_000;

// ---- chat

function chatUsage(usage: UsageModel) {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: usage.written },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}

function chatFinish(model: AnswerModel, style: AnswerStyle): string {
  if (model.stop === "tool") return "tool_calls";
  if (model.stop === "length") return "length";
  return model.stop === "filter" && !style.refuses ? "content_filter" : "stop";
}

const chatCall = ({ id, name, args }: CallModel) => ({
  id,
  type: "function",
  function: { name, arguments: args },
});

function wholeChat(model: AnswerModel, style: AnswerStyle): JsonObject {
  return {
    id: "chatcmpl-42",
    object: "chat.completion",
    created: CREATED,
    model: "upstream-model",
    choices: [{
      index: 0,
      message: {
        role: "assistant",
        content: style.refuses || (model.text === "" && model.calls.length > 0) ? null : model.text,
        refusal: style.refuses ? model.text : null,
        ...(model.reasoning === "" ? {} : { reasoning_content: model.reasoning }),
        ...(model.calls.length === 0 ? {} : { tool_calls: model.calls.map(chatCall) }),
      },
      logprobs: null,
      finish_reason: chatFinish(model, style),
    }],
    ...(model.usage === null ? {} : { usage: chatUsage(model.usage) }),
  };
}

function streamChat(model: AnswerModel, style: AnswerStyle, split: Splitter): (JsonObject | string)[] {
  const head = {
    id: "chatcmpl-42",
    object: "chat.completion.chunk",
    created: CREATED,
    model: "upstream-model",
  };
  const chunk = (delta: Loose, finish: string | null = null) => ({
    ...head,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    usage: null,
  });
  const textKey = style.refuses ? "refusal" : "content";
  const calls = model.calls.map((call, index) => ({
    open: chunk({ tool_calls: [{ index, ...chatCall({ ...call, args: "" }) }] }),
    pieces: split(call.args).map((args) => chunk({ tool_calls: [{ index, function: { arguments: args } }] })),
  }));
  // Parallel calls grow in turns, as they do when a host decodes them side by side.
  const interleaved: JsonObject[] = calls.map((call) => call.open);
  for (let at = 0; calls.some((call) => at < call.pieces.length); at++) {
    for (const call of calls) if (at < call.pieces.length) interleaved.push(call.pieces[at]!);
  }
  return [
    chunk({ role: "assistant", content: "" }),
    ...split(model.reasoning).map((text) => chunk({ reasoning_content: text })),
    ...split(model.text).map((text) => chunk({ [textKey]: text })),
    ...interleaved,
    chunk({}, chatFinish(model, style)),
    ...(model.usage === null ? [] : [{ ...head, choices: [], usage: chatUsage(model.usage) }]),
    "[DONE]",
  ];
}

function readChat(body: Loose): AnswerModel {
  const { message, finish_reason } = body.choices[0];
  const usage = body.usage;
  const stops: Record<string, AnswerModel["stop"]> = {
    stop: "end",
    length: "length",
    content_filter: "filter",
    tool_calls: "tool",
  };
  return {
    reasoning: message.reasoning_content ?? "",
    text: (message.content ?? "") + (message.refusal ?? ""),
    calls: (message.tool_calls ?? []).map((call: Loose) => ({
      id: call.id,
      name: call.function.name,
      args: call.function.arguments,
    })),
    stop: message.refusal === null ? stops[finish_reason]! : "filter",
    usage: usage === undefined ? null : {
      input: usage.prompt_tokens,
      cached: usage.prompt_tokens_details.cached_tokens,
      written: usage.prompt_tokens_details.cache_write_tokens ?? 0,
      output: usage.completion_tokens,
      reasoning: usage.completion_tokens_details.reasoning_tokens,
    },
  };
}

// ---- responses

/** Opaque to all but its provider; characters of every kind that base64 and JSON have. */
export const ENCRYPTED = "gAAAAABo+/=_-SENT-encrypted:1,2:3\\u00e9";

function responsesItems(model: AnswerModel, style: AnswerStyle): Loose[] {
  const items: Loose[] = [];
  if (model.reasoning !== "") {
    items.push({
      type: "reasoning",
      id: "rs_7",
      summary: model.reasoning.split("\n\n").map((text) => ({ type: "summary_text", text })),
      encrypted_content: ENCRYPTED,
    });
  }
  if (model.text !== "") {
    const part = style.refuses
      ? { type: "refusal", refusal: model.text }
      : { type: "output_text", text: model.text, annotations: [] };
    items.push({ type: "message", id: "msg_7", role: "assistant", status: "completed", content: [part] });
  }
  for (const { id, name, args } of model.calls) {
    items.push({
      type: "function_call",
      id: `fc_${id}`,
      call_id: id,
      name,
      arguments: args,
      status: "completed",
    });
  }
  return items;
}

function wholeResponses(model: AnswerModel, style: AnswerStyle): JsonObject {
  const reasons: Record<string, string> = { length: "max_output_tokens", filter: "content_filter" };
  const reason = style.refuses ? undefined : reasons[model.stop];
  const usage = model.usage;
  return {
    id: "resp_42",
    object: "response",
    created_at: CREATED,
    status: reason === undefined ? "completed" : "incomplete",
    error: null,
    incomplete_details: reason === undefined ? null : { reason },
    model: "upstream-model",
    output: responsesItems(model, style),
    usage: usage === null ? null : {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: usage.written },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: usage.reasoning },
      total_tokens: usage.input + usage.output,
    },
  };
}

function streamResponses(model: AnswerModel, style: AnswerStyle, split: Splitter): JsonObject[] {
  const whole = wholeResponses(model, style) as Loose;
  const opening = { ...whole, status: "in_progress", output: [], usage: null, incomplete_details: null };
  const events: Loose[] = [
    { type: "response.created", response: opening },
    { type: "codex.rate_limits", rate_limits: { primary: { used_percent: 1 } } },
    { type: "response.in_progress", response: opening },
  ];
  (whole.output as Loose[]).forEach((item, output_index) => {
    events.push(...itemEvents(item, split).map((event) => ({ item_id: item.id, output_index, ...event })));
  });
  // Codex ends with an empty list: the finished items have told everything.
  events.push({ type: `response.${whole.status}`, response: { ...whole, output: [] } });
  return events.map((event, sequence_number) => ({ ...event, type: event.type, sequence_number }));
}

function itemEvents(item: Loose, split: Splitter): Loose[] {
  const done = { type: "response.output_item.done", item };
  const added = (members: Loose) => ({
    type: "response.output_item.added",
    item: { ...item, ...members, status: "in_progress" },
  });
  if (item.type === "function_call") {
    const kind = "response.function_call_arguments";
    return [
      added({ arguments: "" }),
      ...split(item.arguments).map((delta) => ({ type: `${kind}.delta`, delta })),
      { type: `${kind}.done`, arguments: item.arguments },
      done,
    ];
  }
  if (item.type === "reasoning") {
    const kind = "response.reasoning_summary";
    const parts = (item.summary as Loose[]).flatMap((part, summary_index) => [
      { type: `${kind}_part.added`, summary_index, part: { type: "summary_text", text: "" } },
      ...split(part.text).map((delta) => ({ type: `${kind}_text.delta`, summary_index, delta })),
      { type: `${kind}_text.done`, summary_index, text: part.text },
      { type: `${kind}_part.done`, summary_index, part },
    ]);
    return [added({ summary: [] }), ...parts, done];
  }
  const part = item.content[0];
  const refusal = part.type === "refusal";
  const kind = refusal ? "response.refusal" : "response.output_text";
  const text = refusal ? part.refusal : part.text;
  const address = { content_index: 0 };
  return [
    added({ content: [] }),
    {
      type: "response.content_part.added",
      ...address,
      part: { ...part, [refusal ? "refusal" : "text"]: "" },
    },
    ...split(text).map((delta) => ({ type: `${kind}.delta`, ...address, delta, logprobs: [] })),
    { type: `${kind}.done`, ...address, [refusal ? "refusal" : "text"]: text },
    { type: "response.content_part.done", ...address, part },
    done,
  ];
}

function readResponses(body: Loose): AnswerModel {
  const output = body.output as Loose[];
  const parts = output.filter((item) => item.type === "message").flatMap((item) => item.content as Loose[]);
  const calls = output.filter((item) => item.type === "function_call");
  const refused = parts.some((part) => part.type === "refusal");
  const reason = body.incomplete_details?.reason;
  const usage = body.usage;
  return {
    reasoning: output.filter((item) => item.type === "reasoning")
      .flatMap((item) => (item.summary as Loose[]).map((part) => part.text)).join("\n\n"),
    text: parts.map((part) => part.text ?? part.refusal).join(""),
    calls: calls.map((item) => ({ id: item.call_id, name: item.name, args: item.arguments })),
    stop: reason === "max_output_tokens"
      ? "length"
      : reason === "content_filter" || refused
      ? "filter"
      : calls.length > 0
      ? "tool"
      : "end",
    usage: usage === null ? null : {
      input: usage.input_tokens,
      cached: usage.input_tokens_details.cached_tokens,
      written: usage.input_tokens_details.cache_write_tokens,
      output: usage.output_tokens,
      reasoning: usage.output_tokens_details.reasoning_tokens,
    },
  };
}

// ---- messages

export const SIGNATURE = "EqQBCkYIBxgCKkD+/=SENT-signature\\u00e9:hf.enc1:";

function messagesStop(model: AnswerModel) {
  const stops: Record<AnswerModel["stop"], string> = {
    end: "end_turn",
    length: "max_tokens",
    filter: "refusal",
    tool: "tool_use",
    stop_sequence: "stop_sequence",
  };
  return { stop_reason: stops[model.stop], stop_sequence: model.stop === "stop_sequence" ? "STOP" : null };
}

function messagesUsage(usage: UsageModel) {
  return {
    input_tokens: usage.input - usage.cached - usage.written,
    cache_creation_input_tokens: usage.written,
    cache_read_input_tokens: usage.cached,
    output_tokens: usage.output,
    output_tokens_details: { thinking_tokens: usage.reasoning },
  };
}

function messagesBlocks(model: AnswerModel): Loose[] {
  return [
    ...(model.reasoning === ""
      ? []
      : [{ type: "thinking", thinking: model.reasoning, signature: SIGNATURE }]),
    ...(model.text === "" ? [] : [{ type: "text", text: model.text }]),
    ...model.calls.map(({ id, name, args }) => ({ type: "tool_use", id, name, input: JSON.parse(args) })),
  ];
}

function wholeMessages(model: AnswerModel): JsonObject {
  return {
    id: "msg_42",
    type: "message",
    role: "assistant",
    model: "upstream-model",
    content: messagesBlocks(model),
    ...messagesStop(model),
    ...(model.usage === null ? {} : { usage: messagesUsage(model.usage) }),
  };
}

function streamMessages(model: AnswerModel, _style: AnswerStyle, split: Splitter): JsonObject[] {
  const usage = model.usage === null ? null : messagesUsage(model.usage);
  const blocks = messagesBlocks(model);
  const calls = blocks.length - model.calls.length;
  const start = { ...wholeMessages(model), content: [], stop_reason: null, stop_sequence: null };
  return [
    {
      type: "message_start",
      message: usage === null ? start : { ...start, usage: { ...usage, output_tokens: 1 } },
    },
    { type: "ping" },
    ...blocks.flatMap((block, index) => {
      const piece = (delta: Loose) => ({ type: "content_block_delta", index, delta });
      const opened: Loose = block.type === "tool_use" ? { ...block, input: {} } : { ...block };
      if (block.type === "text") opened.text = "";
      if (block.type === "thinking") Object.assign(opened, { thinking: "", signature: "" });
      const pieces = block.type === "text"
        ? split(block.text).map((text) => piece({ type: "text_delta", text }))
        : block.type === "thinking"
        ? [
          ...split(block.thinking).map((thinking) => piece({ type: "thinking_delta", thinking })),
          piece({ type: "signature_delta", signature: block.signature }),
        ]
        : split(model.calls[index - calls]!.args).map((partial_json) =>
          piece({ type: "input_json_delta", partial_json })
        );
      return [
        { type: "content_block_start", index, content_block: opened },
        ...pieces,
        { type: "content_block_stop", index },
      ];
    }),
    {
      type: "message_delta",
      delta: messagesStop(model),
      ...(usage === null ? {} : { usage: { output_tokens: usage.output_tokens } }),
    },
    { type: "message_stop" },
  ];
}

function readMessages(body: Loose): AnswerModel {
  const blocks = body.content as Loose[];
  const stops: Record<string, AnswerModel["stop"]> = {
    end_turn: "end",
    max_tokens: "length",
    refusal: "filter",
    tool_use: "tool",
    stop_sequence: "stop_sequence",
  };
  const { usage } = body;
  return {
    reasoning: blocks.filter((block) => block.type === "thinking").map((block) => block.thinking).join(
      "\n\n",
    ),
    text: blocks.filter((block) => block.type === "text").map((block) => block.text).join(""),
    calls: blocks.filter((block) => block.type === "tool_use").map((block) => ({
      id: block.id,
      name: block.name,
      args: JSON.stringify(block.input),
    })),
    stop: stops[body.stop_reason]!,
    usage: usage === undefined || usage.estimated ? null : {
      input: usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
      cached: usage.cache_read_input_tokens,
      written: usage.cache_creation_input_tokens,
      output: usage.output_tokens,
      reasoning: usage.output_tokens_details.thinking_tokens,
    },
  };
}

const WHOLE = { chat: wholeChat, responses: wholeResponses, messages: wholeMessages } as const;
const STREAM = { chat: streamChat, responses: streamResponses, messages: streamMessages } as const;
const READ = { chat: readChat, responses: readResponses, messages: readMessages } as const;
