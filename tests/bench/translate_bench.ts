/**
 * What translation costs: a request of 1 MiB (limit 15 ms) and one step of a stream (limit 20 µs at the median).
 *
 * Run with `deno bench -A tests/bench/translate_bench.ts`. The baselines parse and write the same bytes without
 * translating them, so that ratios hold on any machine.
 */
import { chatDialect } from "../../lib/protocol/chat.ts";
import { messagesDialect } from "../../lib/protocol/messages.ts";
import { responsesDialect } from "../../lib/protocol/responses.ts";
import { type SseFrame, SseFramer } from "../../lib/protocol/sse.ts";
import { translatorFor } from "../../lib/protocol/translate/compose.ts";
import type { AnswerModel, RequestModel, TurnModel } from "../support/conversation_model.ts";
import { renderStream, seededSplitter } from "../support/conversation_answers.ts";
import { pairName, PAIRS, TARGETS } from "../support/conversation_pairs.ts";
import { renderRequest } from "../support/conversation_requests.ts";
import { answerContext, translateContext, upstreamBytes } from "../support/translation.ts";

const MIB = 1_048_576;

/** A coding session: turns of text, tool calls and results of 2 KiB, up to 1 MiB of JSON. */
function longSession(): RequestModel {
  const code = 'const value = compute("argument", 42); // a line of code\n'.repeat(36);
  const turns: TurnModel[] = [{ who: "user", parts: ["Refactor the parser."] }];
  for (let n = 0; JSON.stringify(turns).length < MIB - 10_000; n++) {
    const calls = [{
      id: `call_${n}`,
      name: "read_file",
      args: JSON.stringify({ path: `src/file_${n}.ts` }),
    }];
    turns.push({ who: "assistant", text: `Step ${n}`, calls });
    turns.push({ who: "results", results: [{ id: `call_${n}`, output: [code] }] });
  }
  turns.push({ who: "user", parts: ["Go on."] });
  const schema = { type: "object", properties: { path: { type: "string" } } };
  return { turns, tools: [{ name: "read_file", schema }], maxTokens: 9_000 };
}

const session = longSession();
for (const { client, upstream } of PAIRS) {
  const translator = translatorFor(client, upstream);
  const body = JSON.stringify(renderRequest(client, session, true));
  const group = `request of 1 MiB, ${client}`;
  if (translator === null) {
    Deno.bench(`parse and write, ${client}`, { group, baseline: true }, () => {
      JSON.stringify(JSON.parse(body));
    });
    continue;
  }
  const context = translateContext(TARGETS[upstream]);
  Deno.bench(`parse, translate and write, ${pairName(client, upstream)}`, { group }, () => {
    const result = translator.request(JSON.parse(body), context);
    if (!result.ok) throw new Error(result.part);
    JSON.stringify(result.body);
  });
}

const answer: AnswerModel = {
  reasoning: "I have to look at the file first. ".repeat(20),
  text: "Here is what I found in the file, line by line. ".repeat(60),
  calls: [{ id: "call_1", name: "read_file", args: JSON.stringify({ path: "x".repeat(2_000) }) }],
  stop: "tool",
  usage: { input: 100, cached: 0, written: 0, output: 900, reasoning: 90 },
};
const DIALECTS = { chat: chatDialect, responses: responsesDialect, messages: messagesDialect } as const;

for (const { client, upstream } of PAIRS) {
  const translator = translatorFor(client, upstream);
  if (translator === null) continue;
  const events = renderStream(upstream, answer, { refuses: false }, seededSplitter(1, 8));
  const bytes = upstreamBytes(events);
  const steps = frames(bytes).length;
  const context = answerContext({ includeUsage: true });
  Deno.bench(`a stream of ${steps} steps, ${pairName(client, upstream)}`, { group: "stream" }, (b) => {
    const all = frames(bytes);
    b.start();
    const stream = translator.startStream(context);
    for (const frame of all) stream.push(frame, DIALECTS[upstream].readEvent(frame));
    b.end();
  });
}

function frames(bytes: Uint8Array<ArrayBuffer>): SseFrame[] {
  return new SseFramer().push(bytes);
}
