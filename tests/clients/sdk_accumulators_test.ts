/**
 * The official SDKs put our streams together: what they build must be the whole answer, field by field.
 *
 * Streams and whole answers of the conformance suite are served from a local port to the SDKs' own streaming helpers.
 */
import { assertEquals } from "@std/assert";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { translatorFor } from "../../lib/protocol/translate/compose.ts";
import type { JsonObject } from "../../lib/protocol/translate/json.ts";
import type { TranslatedProtocol, Translator } from "../../lib/protocol/translate/translator.ts";
import { CONVERSATIONS } from "../protocol/translate/conversations.ts";
import { seededSplitter } from "../support/conversation_answers.ts";
import type { Conversation } from "../support/conversation_model.ts";
import { carryAnswer, carryRequest, pairName, PAIRS, streamBytes } from "../support/conversation_pairs.ts";
import { renderRequest } from "../support/conversation_requests.ts";
import { translateBytes, translateContext } from "../support/translation.ts";

/** Serves one translated answer, whole or streamed as the request asks, and hands its base URL to `use`. */
async function withAnswer(
  translator: Translator,
  conversation: Conversation,
  use: (baseURL: string) => Promise<void>,
): Promise<void> {
  const { memory } = carryRequest(translator, conversation, true);
  const bytes = streamBytes(translator.upstream, conversation, seededSplitter(5, 11));
  const stream = translator.startStream({ ...translateContext(), memory });
  const told = translateBytes(stream, translator.upstream, bytes);
  const whole = carryAnswer(translator, conversation, memory);
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    const { stream } = await request.json();
    return stream
      ? new Response(told, { headers: { "content-type": "text/event-stream" } })
      : Response.json(whole);
  });
  await use(`http://127.0.0.1:${server.addr.port}`);
}

const KEY = "SENT-test-key";

/** What each SDK makes of the whole answer and of the stream. */
const ASK: Record<TranslatedProtocol, (baseURL: string, body: JsonObject) => Promise<[unknown, unknown]>> = {
  async chat(baseURL, body) {
    const client = new OpenAI({ apiKey: KEY, baseURL, maxRetries: 0 });
    const { stream: _stream, stream_options: _options, ...rest } = body;
    const params = rest as unknown as Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, "stream">;
    const whole = await client.chat.completions.create(params);
    const streamed = await client.chat.completions
      .stream({ ...params, stream_options: { include_usage: true } }).finalChatCompletion();
    return [withoutReasoning(plain(whole)), withoutReasoning(plain(streamed))];
  },
  async responses(baseURL, body) {
    const client = new OpenAI({ apiKey: KEY, baseURL, maxRetries: 0 });
    const { stream: _stream, ...rest } = body;
    const params = rest as Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, "stream">;
    const whole = await client.responses.create(params);
    const streamed = await client.responses.stream(params).finalResponse();
    return [plain(whole), plain(streamed)];
  },
  async messages(baseURL, body) {
    const client = new Anthropic({ apiKey: KEY, baseURL, maxRetries: 0, timeout: 30_000 });
    const { stream: _stream, ...rest } = body;
    const params = rest as unknown as Anthropic.MessageCreateParamsNonStreaming;
    const whole = await client.messages.create(params);
    const streamed = await client.messages.stream(params).finalMessage();
    return [plain(whole), plain(streamed)];
  },
};

/** Members the SDKs add to what came, in one of the two forms or in both. */
const ADDED = new Set([
  "parsed",
  "parsed_arguments",
  "parsed_output",
  "output_parsed",
  "output_text",
  "_request_id",
]);

/**
 * Without what the SDKs add. Counts nobody reported are `null` in a chat stream and absent in a whole answer; that
 * they are guessed stands in a member of ours, which the Anthropic SDK does not take over from a stream.
 */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, one) => {
    const left = ADDED.has(key) || key === "estimated" || (key === "usage" && one === null);
    return left ? undefined : one;
  });
}

/**
 * `reasoning_content` is no field of OpenAI's: its JavaScript SDK keeps the last piece of every delta member it does
 * not know. The suite's own accumulator compares it; here everything else is.
 */
function withoutReasoning(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, one) => key === "reasoning_content" ? undefined : one);
}

for (const { client, upstream } of PAIRS) {
  const translator = translatorFor(client, upstream);
  if (translator === null) continue;
  for (const conversation of CONVERSATIONS) {
    Deno.test(`the SDK rebuilds ${pairName(client, upstream)}: ${conversation.name}`, async () => {
      const body = renderRequest(client, conversation.request, true);
      await withAnswer(translator, conversation, async (baseURL) => {
        const [whole, streamed] = await ASK[client](baseURL, body);
        assertEquals(streamed, whole);
      });
    });
  }
}
