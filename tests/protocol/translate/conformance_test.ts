/**
 * Every conversation through every pair of protocols, whole and streamed.
 *
 * A request must mean upstream what the client meant; an answer must mean to the client what the upstream meant; a
 * stream must add up to exactly the whole answer, wherever its bytes are cut.
 */
import { assertEquals } from "@std/assert";
import { translatorFor } from "../../../lib/protocol/translate/compose.ts";
import { renderAnswer, seededSplitter } from "../../support/conversation_answers.ts";
import {
  carryAnswer,
  carryRequest,
  carryStream,
  expectedAnswer,
  expectedRequest,
  pairName,
  PAIRS,
  PROTOCOLS,
  streamBytes,
  understoodAnswer,
  understoodRequest,
} from "../../support/conversation_pairs.ts";
import { renderRequest } from "../../support/conversation_requests.ts";
import { MEMORY, translateContext } from "../../support/translation.ts";
import { CONVERSATIONS, REFUSED } from "./conversations.ts";

const SEEDED_CUTS = 50;

/** Chunk lengths of 1 to 200 bytes from a seed. */
function seededCuts(seed: number) {
  return (length: number) => {
    const lengths: number[] = [];
    let state = seed * 2_654_435_761 >>> 0;
    for (let sum = 0; sum < length;) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      lengths.push(1 + state % 200);
      sum += lengths.at(-1)!;
    }
    return lengths;
  };
}

const byteByByte = (length: number) => Array.from({ length }, () => 1);

Deno.test("the suite has at least forty conversations, each named once", () => {
  const names = [...CONVERSATIONS, ...REFUSED].map((one) => one.name);
  assertEquals(new Set(names).size, names.length);
  assertEquals(CONVERSATIONS.length >= 40, true);
});

for (const { client, upstream } of PAIRS) {
  const translator = translatorFor(client, upstream);
  for (const conversation of CONVERSATIONS) {
    const name = `${pairName(client, upstream)}: ${conversation.name}`;
    if (translator === null) {
      // One protocol on both sides: nothing is translated. What is checked is that the fixtures speak the protocol.
      Deno.test(`${name}, said and understood`, () => {
        const body = renderRequest(client, conversation.request, false);
        const understood = understoodRequest({ body, memory: MEMORY }, upstream);
        assertEquals(understood, expectedRequest(conversation.request, upstream));
        const style = { refuses: conversation.refuses === true };
        const answer = renderAnswer(upstream, conversation.answer, style);
        assertEquals(understoodAnswer(client, answer).text, conversation.answer.text);
      });
      continue;
    }
    Deno.test(`${name}, whole`, () => {
      const carried = carryRequest(translator, conversation, false);
      assertEquals(understoodRequest(carried, upstream), expectedRequest(conversation.request, upstream));
      const answer = carryAnswer(translator, conversation, carried.memory);
      assertEquals(understoodAnswer(client, answer), expectedAnswer(conversation, client));
    });
    Deno.test(`${name}, streamed`, () => {
      const { body, memory } = carryRequest(translator, conversation, true);
      assertEquals(body.stream, true);
      const whole = carryAnswer(translator, conversation, memory);
      const bytes = streamBytes(upstream, conversation, seededSplitter(1, 7));
      assertEquals(carryStream(translator, bytes, memory, byteByByte), whole);
      const coarse = streamBytes(upstream, conversation, seededSplitter(2, 400));
      for (let seed = 1; seed <= SEEDED_CUTS; seed++) {
        assertEquals(carryStream(translator, coarse, memory, seededCuts(seed)), whole);
      }
    });
  }
  for (const { name, bodies } of REFUSED) {
    Deno.test(`${pairName(client, upstream)}: ${name} ${translator === null ? "passes" : "is refused by name"}`, () => {
      const { body, part } = bodies[client];
      const bare = renderRequest(client, { turns: [{ who: "user", parts: ["hi"] }], maxTokens: 9 }, false);
      if (translator === null) return assertEquals(translatorFor(client, upstream), null);
      const result = translator.request({ ...bare, ...body }, translateContext());
      assertEquals(result.ok ? "translated" : result.part, part);
    });
  }
}

for (const upstream of PROTOCOLS) {
  Deno.test(`a ${upstream} stream is told the same wherever it is cut in two`, () => {
    const conversation = CONVERSATIONS.find((one) => one.name === "reasoning before tool calls")!;
    for (const client of PROTOCOLS) {
      const translator = translatorFor(client, upstream);
      if (translator === null) continue;
      const { memory } = carryRequest(translator, conversation, true);
      const whole = carryAnswer(translator, conversation, memory);
      const bytes = streamBytes(upstream, conversation, seededSplitter(3, 9));
      for (let at = 1; at < bytes.length; at++) {
        assertEquals(carryStream(translator, bytes, memory, () => [at]), whole);
      }
    }
  });
}
