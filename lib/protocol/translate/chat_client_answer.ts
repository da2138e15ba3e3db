/**
 * A Response told to a chat client: the whole completion, and the parts its stream shares with it.
 */
import { isObject, type JsonObject, readList, readNumber, readText } from "./json.ts";
import { PART_SEPARATOR, reasoningTexts } from "./reasoning_carrier.ts";
import type { AnswerContext } from "./translator.ts";
import { chatUsage, readResponsesUsage } from "./usage.ts";
import type {
  ChatCompletion,
  ChatCompletionMessage,
  ChatCompletionMessageToolCall,
  ChatCompletionTokenLogprob,
  ToldChatMessage,
} from "./wire_types.ts";

export type ChatFinishReason = ChatCompletion.Choice["finish_reason"];

/** A whole Response as a chat completion. Hosted tools' records have no place in it; their findings are the text. */
export function writeChatAnswer(response: JsonObject, context: AnswerContext): JsonObject {
  const parts = new ChatMessageParts();
  for (const item of readList(response.output)) if (isObject(item)) parts.add(item);
  const usage = readResponsesUsage(response.usage);
  const answer: ChatCompletion = {
    id: chatId(response, context),
    object: "chat.completion",
    created: readNumber(response.created_at) ?? Math.floor(context.nowMs / 1000),
    model: context.clientModel,
    choices: [{
      index: 0,
      message: parts.message(),
      logprobs: parts.logprobs.length === 0 ? null : { content: parts.logprobs, refusal: null },
      finish_reason: finishReasonOf(response, parts.calls.length > 0),
    }],
    ...(usage === null ? {} : { usage: chatUsage(usage) }),
    ...chatTier(response),
  };
  return { ...answer };
}

/** Which tier served the answer, where the upstream says so. */
export function chatTier(response: JsonObject): Pick<ChatCompletion, "service_tier"> {
  const tier = readText(response.service_tier);
  return tier === null ? {} : { service_tier: tier as NonNullable<ChatCompletion["service_tier"]> };
}

class ChatMessageParts {
  readonly calls: ChatCompletionMessageToolCall[] = [];
  readonly logprobs: ChatCompletionTokenLogprob[] = [];
  readonly #texts: string[] = [];
  readonly #annotations: ChatCompletionMessage.Annotation[] = [];
  readonly #reasoning: string[] = [];
  readonly #details: JsonObject[] = [];
  #refusal = "";
  #length = 0;

  add(item: JsonObject): void {
    if (item.type === "message") this.#addMessage(readList(item.content));
    else if (item.type === "reasoning") {
      const { summary, content } = reasoningTexts(item);
      this.#reasoning.push(...summary, ...content);
      this.#details.push(...reasoningDetails(item, this.#details));
    } else if (item.type === "function_call" || item.type === "custom_tool_call") {
      this.calls.push(chatCall(item));
    }
  }

  message(): ToldChatMessage {
    const content = this.#texts.join("");
    const said = content !== "" || (this.calls.length === 0 && this.#refusal === "");
    return {
      role: "assistant",
      content: said ? content : null,
      refusal: this.#refusal === "" ? null : this.#refusal,
      ...(this.#annotations.length === 0 ? {} : { annotations: this.#annotations }),
      ...(this.calls.length === 0 ? {} : { tool_calls: this.calls }),
      ...(this.#reasoning.length === 0 ? {} : { reasoning_content: this.#reasoning.join(PART_SEPARATOR) }),
      ...(this.#details.length === 0 ? {} : { reasoning_details: this.#details }),
    };
  }

  #addMessage(content: readonly unknown[]): void {
    let first = true;
    for (const part of content) {
      if (!isObject(part)) continue;
      const refusal = readText(part.refusal);
      if (refusal !== null) this.#refusal += refusal;
      const text = readText(part.text) ?? "";
      if (text === "") continue;
      // Two messages of one answer are two paragraphs; parts of one message may break in mid-sentence.
      if (first && this.#length > 0) this.#append(PART_SEPARATOR);
      first = false;
      const offset = this.#length;
      this.#append(text);
      for (const one of readList(part.annotations)) {
        const annotation = chatAnnotation(one, offset);
        if (annotation !== null) this.#annotations.push(annotation);
      }
      for (const one of readList(part.logprobs)) this.logprobs.push(chatLogprob(one));
    }
  }

  #append(text: string): void {
    this.#texts.push(text);
    this.#length += text.length;
  }
}

/** The client's id keeps the upstream's word, so that both logs can be matched. */
export function chatId(response: JsonObject, context: AnswerContext): string {
  const id = readText(response.id);
  return id === null || id === "" ? context.newId("chatcmpl") : `chatcmpl-${id.replace(/^resp_/, "")}`;
}

export function finishReasonOf(response: JsonObject, hasCalls: boolean): ChatFinishReason {
  const details = response.incomplete_details;
  const reason = isObject(details) ? details.reason : null;
  if (reason === "max_output_tokens") return "length";
  if (reason === "content_filter") return "content_filter";
  return hasCalls ? "tool_calls" : "stop";
}

export function chatCall(item: JsonObject): ChatCompletionMessageToolCall {
  const id = readText(item.call_id) ?? readText(item.id) ?? "";
  const name = readText(item.name) ?? "";
  if (item.type === "custom_tool_call") {
    return { id, type: "custom", custom: { name, input: readText(item.input) ?? "" } };
  }
  const args = readText(item.arguments) ?? "";
  // Every chat client parses the arguments; a call without any says so with an empty object.
  return { id, type: "function", function: { name, arguments: args === "" ? "{}" : args } };
}

/** Citations count from the start of the whole content, not of their part. */
export function chatAnnotation(annotation: unknown, offset: number): ChatCompletionMessage.Annotation | null {
  if (!isObject(annotation) || annotation.type !== "url_citation") return null;
  return {
    type: "url_citation",
    url_citation: {
      start_index: (readNumber(annotation.start_index) ?? 0) + offset,
      end_index: (readNumber(annotation.end_index) ?? 0) + offset,
      title: readText(annotation.title) ?? "",
      url: readText(annotation.url) ?? "",
    },
  };
}

/** Streams of the Responses API leave `bytes` out; chat wants them in both forms. */
export function chatLogprob(value: unknown): ChatCompletionTokenLogprob {
  const one = isObject(value) ? value : {};
  const entry = (from: JsonObject) => {
    const token = readText(from.token) ?? "";
    return { token, bytes: [...new TextEncoder().encode(token)], logprob: readNumber(from.logprob) ?? 0 };
  };
  return {
    ...entry(one),
    top_logprobs: readList(one.top_logprobs).map((top) => entry(isObject(top) ? top : {})),
  };
}

/**
 * A reasoning item as entries of `reasoning_details`, the de-facto chat extension for reasoning that must come back
 * unchanged. All entries of one item share its index; `chat_client_request.ts` builds the item again from them.
 */
export function reasoningDetails(item: JsonObject, before: readonly JsonObject[]): JsonObject[] {
  const last = before.at(-1);
  const index = last === undefined ? 0 : Number(last.index) + 1;
  const { summary, content } = reasoningTexts(item);
  const id = readText(item.id);
  const shared = { ...(id === null ? {} : { id }), format: "holdfast-v1", index };
  const encrypted = readText(item.encrypted_content);
  return [
    ...summary.map((text) => ({ type: "reasoning.summary", summary: text, ...shared })),
    ...content.map((text) => ({ type: "reasoning.text", text, ...shared })),
    ...(encrypted === null || encrypted === ""
      ? []
      : [{ type: "reasoning.encrypted", data: encrypted, ...shared }]),
  ];
}
