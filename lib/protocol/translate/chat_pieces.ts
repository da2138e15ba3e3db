/**
 * The pieces of a chat answer, put into hub items.
 *
 * Chat addresses tool calls by index and lets them interleave; a call is known to be whole only when the answer is.
 */
import { callShape, nativeCustomShape } from "./call_shapes.ts";
import { factsOf } from "./failure_words.ts";
import type { CallHandle, MessageHandle, ReasoningHandle } from "./hub_items.ts";
import { UNNAMED_CALL } from "./hub_reader.ts";
import type { HubEnding, HubError, HubWriter } from "./hub_writer.ts";
import { entryOf, isObject, type JsonObject, readList, readNumber, readText } from "./json.ts";
import { PLAIN_REASONING } from "./reasoning_carrier.ts";
import type { AnswerContext, AnswerProblem } from "./translator.ts";
import type { UsageCounts } from "./usage.ts";

interface ChatCall {
  readonly index: number | null;
  id: string;
  handle: CallHandle | null;
  /** Arguments that came before the name. */
  waiting: string;
}

/** Finish reasons that tell of a failure (wire-facts 7.2); the dialect counts the same ones as failures. */
const FAILURES: Readonly<Record<string, HubError>> = {
  error: { code: "server_error", message: "The upstream ended the answer with an error" },
  network_error: { code: "server_error", message: "The upstream lost its own connection" },
  sensitive: { code: "content_policy_violation", message: "The upstream stopped the answer for its content" },
};

export class ChatPieces {
  readonly #writer: HubWriter;
  readonly #context: AnswerContext;
  readonly #calls: ChatCall[] = [];
  #message: MessageHandle | null = null;
  #reasoning: ReasoningHandle | null = null;
  #problem: AnswerProblem | null = null;

  constructor(writer: HubWriter, context: AnswerContext) {
    this.#writer = writer;
    this.#context = context;
  }

  get problem(): AnswerProblem | null {
    return this.#problem;
  }

  /** A delta, or the message of a whole answer. */
  add(delta: JsonObject, logprobs: unknown): void {
    const thought = readText(delta.reasoning_content) ?? readText(delta.reasoning) ?? "";
    if (thought !== "") this.#openReasoning().summary(thought);
    const text = contentText(delta.content);
    const tokens = isObject(logprobs) ? readList(logprobs.content) : [];
    if (text !== "" || tokens.length > 0) this.#openMessage().text(text, tokens);
    const refusal = readText(delta.refusal) ?? "";
    if (refusal !== "") this.#openMessage().refusal(refusal);
    for (const one of readList(delta.annotations)) this.#annotate(one);
    for (const piece of readList(delta.tool_calls)) if (isObject(piece)) this.#addCall(piece);
    if (isObject(delta.function_call)) this.#addCall({ index: 0, function: delta.function_call });
  }

  finish(finishReason: string | null, usage: UsageCounts | null): void {
    const failure = entryOf(FAILURES, finishReason ?? "");
    if (failure !== null) {
      this.#problem = { kind: "in_stream", error: factsOf({ ...failure, code: finishReason! }) };
      return this.#writer.fail(failure, usage);
    }
    if (this.#calls.some((call) => call.handle === null)) {
      this.#problem = { kind: "malformed", detail: UNNAMED_CALL.message };
      return this.#writer.fail(UNNAMED_CALL, usage);
    }
    this.#closeReasoning();
    this.#writer.finish(endingOf(finishReason), usage);
  }

  #openMessage(): MessageHandle {
    this.#closeReasoning();
    this.#message ??= this.#writer.openMessage();
    return this.#message;
  }

  #openReasoning(): ReasoningHandle {
    this.#closeMessage();
    this.#reasoning ??= this.#writer.openReasoning();
    return this.#reasoning;
  }

  #closeMessage(): void {
    this.#message?.close();
    this.#message = null;
  }

  #closeReasoning(): void {
    // The mark says that a chat upstream may have it back in the next turn.
    this.#reasoning?.seal(PLAIN_REASONING);
    this.#reasoning?.close();
    this.#reasoning = null;
  }

  #annotate(annotation: unknown): void {
    if (!isObject(annotation) || !isObject(annotation.url_citation)) return;
    this.#openMessage().annotate({ type: "url_citation", ...annotation.url_citation });
  }

  #addCall(piece: JsonObject): void {
    const custom = isObject(piece.custom);
    const inner = isObject(piece.custom) ? piece.custom : isObject(piece.function) ? piece.function : {};
    const name = readText(inner.name) ?? "";
    const id = readText(piece.id) ?? "";
    const call = this.#findCall(readNumber(piece.index), id, name);
    if (call.id === "") call.id = id;
    if (call.handle === null && name !== "") this.#openCall(call, name, custom);
    const text = argumentsText(custom ? inner.input : inner.arguments);
    if (text === "") return;
    if (call.handle === null) call.waiting += text;
    else call.handle.arguments(text);
  }

  #openCall(call: ChatCall, name: string, custom: boolean): void {
    this.#closeMessage();
    this.#closeReasoning();
    // Clients pair results by the id; one the upstream left out is made up and stays.
    if (call.id === "") call.id = this.#context.newId("call");
    const shape = custom
      ? nativeCustomShape(name, call.id)
      : callShape(this.#context.memory.tools, name, call.id);
    call.handle = this.#writer.openCall(shape);
    if (call.waiting !== "") call.handle.arguments(call.waiting);
  }

  /** The call a piece belongs to. Some hosts leave the index out, or use one index for every call. */
  #findCall(index: number | null, id: string, name: string): ChatCall {
    const startsAnother = (call: ChatCall) => id !== "" && call.id !== "" && id !== call.id && name !== "";
    const known = index === null
      ? this.#calls.findLast((call) => id === "" ? name === "" || call.handle === null : call.id === id)
      : this.#calls.findLast((call) => call.index === index);
    if (known !== undefined && !startsAnother(known)) return known;
    const call: ChatCall = { index, id: "", handle: null, waiting: "" };
    this.#calls.push(call);
    return call;
  }
}

function endingOf(finishReason: string | null): HubEnding {
  switch (finishReason) {
    case "length":
    case "model_context_window_exceeded":
      return "max_output_tokens";
    case "content_filter":
      return "content_filter";
    default:
      return "completed";
  }
}

/** Content as text; hosts that send parts in answers send text parts. */
function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return readList(content).map((part) => isObject(part) ? readText(part.text) ?? "" : "").join("");
}

/** Arguments are text; hosts that send them parsed mean the same. */
function argumentsText(value: unknown): string {
  if (typeof value === "string") return value;
  return isObject(value) ? JSON.stringify(value) : "";
}
