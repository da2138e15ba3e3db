/** One conversation through one pair of protocols: the request, the whole answer, the stream. */
import type { JsonObject } from "../../lib/protocol/translate/json.ts";
import type { TranslateTarget } from "../../lib/protocol/translate/targets.ts";
import type {
  RequestMemory,
  TranslatedProtocol,
  Translator,
} from "../../lib/protocol/translate/translator.ts";
import { ACCUMULATORS } from "./accumulators.ts";
import { type AnswerModel, type Conversation, joinTurns, type RequestModel } from "./conversation_model.ts";
import { readAnswer, renderAnswer, renderStream, type Splitter } from "./conversation_answers.ts";
import { readRequest, renderRequest } from "./conversation_requests.ts";
import { type Cuts, translateBytes, translateContext, upstreamBytes } from "./translation.ts";

export const PROTOCOLS: readonly TranslatedProtocol[] = ["chat", "responses", "messages"];

export const PAIRS = PROTOCOLS.flatMap((client) => PROTOCOLS.map((upstream) => ({ client, upstream })));

/** The targets that each protocol is translated for most. */
export const TARGETS: Readonly<Record<TranslatedProtocol, TranslateTarget>> = {
  chat: "self_hosted",
  responses: "platform",
  messages: "anthropic",
};

export interface Carried {
  readonly body: JsonObject;
  readonly memory: RequestMemory;
}

/** Translates the rendered request, or throws with the refusal. */
export function carryRequest(
  translator: Translator,
  conversation: Conversation,
  stream: boolean,
  target = TARGETS[translator.upstream],
): Carried {
  const body = renderRequest(translator.client, conversation.request, stream);
  const before = JSON.stringify(body);
  const result = translator.request(body, translateContext(target));
  if (!result.ok) throw new Error(`${result.part} refused: ${result.reason}`);
  if (JSON.stringify(body) !== before) throw new Error("the client's body was changed");
  return { body: JSON.parse(JSON.stringify(result.body)), memory: result.memory };
}

/** What an upstream should understand of a request; the differences are what one side has no word for. */
export function expectedRequest(model: RequestModel, upstream: TranslatedProtocol): RequestModel {
  const expected: Record<string, unknown> = { ...model, turns: joinTurns(model.turns) };
  // `auto` is what no choice means, and no protocol has to say it.
  if (expected.toolChoice === "auto") delete expected.toolChoice;
  if (upstream === "messages") {
    // A choice is an error without tools, and a model that must not call has no flag.
    if (model.tools === undefined || model.toolChoice === "none") delete expected.parallel;
  }
  return JSON.parse(JSON.stringify(expected));
}

export function understoodRequest(carried: Carried, upstream: TranslatedProtocol): RequestModel {
  const model: Record<string, unknown> = { ...readRequest(upstream, carried.body, carried.memory) };
  if (model.toolChoice === "auto") delete model.toolChoice;
  return model as unknown as RequestModel;
}

/** What a client should understand of an answer; numbers in arguments are compared as JSON. */
export function expectedAnswer(conversation: Conversation, client: TranslatedProtocol): AnswerModel {
  const { answer, request } = conversation;
  const hears = client !== "messages" || (request.effort !== undefined && request.effort !== "none");
  return normalized({ ...answer, reasoning: hears ? answer.reasoning : "" });
}

export function understoodAnswer(client: TranslatedProtocol, body: JsonObject): AnswerModel {
  return normalized(readAnswer(client, body));
}

function normalized(model: AnswerModel): AnswerModel {
  const calls = model.calls.map((call) => ({ ...call, args: JSON.stringify(JSON.parse(call.args)) }));
  return { ...model, calls };
}

export function carryAnswer(
  translator: Translator,
  conversation: Conversation,
  memory: RequestMemory,
): JsonObject {
  const style = { refuses: conversation.refuses === true };
  const body = renderAnswer(translator.upstream, conversation.answer, style);
  const answer = translator.answer(body, { ...translateContext(), memory });
  if (!answer.ok) throw new Error(`no answer: ${JSON.stringify(answer.problem)}`);
  return JSON.parse(JSON.stringify(answer.body));
}

/** The upstream's bytes of a conversation's stream. */
export function streamBytes(
  upstream: TranslatedProtocol,
  conversation: Conversation,
  split: Splitter,
): Uint8Array<ArrayBuffer> {
  const style = { refuses: conversation.refuses === true };
  return upstreamBytes(renderStream(upstream, conversation.answer, style, split));
}

/** The whole answer a client puts together from the translated stream. */
export function carryStream(
  translator: Translator,
  bytes: Uint8Array<ArrayBuffer>,
  memory: RequestMemory,
  cuts: Cuts,
): JsonObject {
  const stream = translator.startStream({ ...translateContext(), memory });
  const told = translateBytes(stream, translator.upstream, bytes, cuts);
  const { answer, error } = ACCUMULATORS[translator.client](told);
  if (answer === null) throw new Error(`the stream failed: ${JSON.stringify(error)}`);
  if (stream.problem !== null) throw new Error(`a problem: ${JSON.stringify(stream.problem)}`);
  return answer;
}

export function pairName(client: TranslatedProtocol, upstream: TranslatedProtocol): string {
  return `${client} on ${upstream}`;
}
