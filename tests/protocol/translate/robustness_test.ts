/**
 * Whatever a client or an upstream sends, a translator answers with a value: it never throws, and what it tells a
 * client is a whole, well-formed stream.
 */
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { translatorFor } from "../../../lib/protocol/translate/compose.ts";
import type { JsonObject } from "../../../lib/protocol/translate/json.ts";
import { ACCUMULATORS } from "../../support/accumulators.ts";
import { renderAnswer, renderStream, seededSplitter } from "../../support/conversation_answers.ts";
import { pairName, PAIRS, TARGETS } from "../../support/conversation_pairs.ts";
import { renderRequest } from "../../support/conversation_requests.ts";
import { answerContext, clientEvents, translateContext, translateStream } from "../../support/translation.ts";
import { CONVERSATIONS } from "./conversations.ts";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Values that stand where something else belongs. */
const OTHERS: Json[] = [
  null,
  true,
  -1,
  0,
  "",
  "constructor",
  "__proto__",
  "hf.enc1:a:1:2:",
  [],
  [null],
  {},
  { type: "zz" },
  [{ type: "text" }],
];

/** The document with some of its values replaced or removed; `picks` are numbers that choose which and by what. */
function mutated(document: unknown, picks: readonly number[]): Json {
  const copy = JSON.parse(JSON.stringify(document)) as Json;
  for (const pick of picks) {
    const places: [Record<string, Json>, string][] = [];
    const walk = (node: Json) => {
      if (node === null || typeof node !== "object") return;
      for (const key of Object.keys(node)) {
        places.push([node as Record<string, Json>, key]);
        walk((node as Record<string, Json>)[key]!);
      }
    };
    walk(copy);
    if (places.length === 0) return copy;
    const [holder, key] = places[pick % places.length]!;
    const other = Math.floor(pick / places.length) % (OTHERS.length + 1);
    if (other === OTHERS.length && !Array.isArray(holder)) delete holder[key];
    else holder[key] = structuredClone(OTHERS[other % OTHERS.length]!);
  }
  return copy;
}

const picks = fc.array(fc.nat(), { minLength: 1, maxLength: 4 });
const conversations = fc.constantFrom(...CONVERSATIONS);
const RUNS = 300;

for (const { client, upstream } of PAIRS) {
  const translator = translatorFor(client, upstream);
  if (translator === null) continue;
  const name = pairName(client, upstream);

  Deno.test(`${name}: request() gives a value for every body`, () => {
    fc.assert(
      fc.property(conversations, picks, (conversation, chosen) => {
        const body = mutated(renderRequest(client, conversation.request, true), chosen) as JsonObject;
        const before = JSON.stringify(body);
        const result = translator.request(body, translateContext(TARGETS[upstream]));
        assertEquals(JSON.stringify(body), before);
        if (result.ok) JSON.stringify(result.body);
        else assertEquals(result.part.length > 0 && result.part.length < 500, true);
      }),
      { numRuns: RUNS },
    );
  });

  Deno.test(`${name}: answer() gives a value for every body`, () => {
    fc.assert(
      fc.property(conversations, picks, (conversation, chosen) => {
        const style = { refuses: conversation.refuses === true };
        const body = mutated(renderAnswer(upstream, conversation.answer, style), chosen) as JsonObject;
        const answer = translator.answer(body, answerContext({ cutAt: ["STOP", "e"] }));
        if (answer.ok) JSON.stringify(answer.body);
      }),
      { numRuns: RUNS },
    );
  });

  Deno.test(`${name}: a stream of any events is told as whole frames with one end`, () => {
    fc.assert(
      fc.property(conversations, picks, (conversation, chosen) => {
        const style = { refuses: conversation.refuses === true };
        const events = renderStream(upstream, conversation.answer, style, seededSplitter(1, 400));
        const odd = mutated(events, chosen) as (JsonObject | string)[];
        const texts = odd.map((event) =>
          typeof event === "string" ? event.replaceAll("\n", "") : JSON.stringify(event)
        );
        const text = translateStream(translator, texts, answerContext({ includeUsage: true }));
        // The accumulator throws on blocks that overlap, on what comes after an end, on pieces without their item.
        ACCUMULATORS[client](text);
        const told = clientEvents(text);
        const ends = told.filter(({ event, data }) => isEnd(event, data));
        assertEquals(ends.length, 1);
        assertEquals(ends[0], told.at(-1));
        for (const { data } of told) if (data !== "[DONE]") JSON.parse(data);
      }),
      { numRuns: RUNS },
    );
  });
}

const ENDS = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "message_stop",
  "error",
]);

function isEnd(event: string | null, data: string): boolean {
  return event === null ? data === "[DONE]" || data.startsWith('{"error"') : ENDS.has(event);
}
