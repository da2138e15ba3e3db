/** The bound of a withheld stream is met, or not, wherever the network cut its bytes (2D.2, row 43). */
import { assertEquals } from "@std/assert";
import { responsesDialect } from "../../lib/protocol/responses.ts";
import type { StreamTranslation } from "../../lib/protocol/translate/translator.ts";
import { AnswerStream } from "../../lib/proxy/answer_stream.ts";
import { type HoldPolicy, type HoldResult, holdStream } from "../../lib/proxy/stream_relay.ts";
import { bytesOf, cutAt } from "../protocol/frames.ts";
import { bodyOf } from "../support/answer_bodies.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { COMPLETED, CREATED, FAILED, textDelta, UNKNOWN } from "../support/held_streams.ts";

const PREFIX = CREATED + textDelta("a") + textDelta("b");
const PADDING = "data: [DONE]\n\n";
const HALF = textDelta("x".repeat(200)).slice(0, 150);

/** Every event in a few bytes, as a terser protocol would have it. */
const TERSE: StreamTranslation = { push: () => [bytesOf("x\n\n")], end: () => [], problem: null };

const cases: readonly {
  name: string;
  text: string;
  maxBytes: number;
  want: string;
  translation?: StreamTranslation;
}[] = [
  {
    name: "an answer of just the bound",
    text: PREFIX + COMPLETED,
    maxBytes: length(PREFIX + COMPLETED),
    want: "success",
  },
  {
    name: "an answer of a byte more",
    text: PREFIX + COMPLETED,
    maxBytes: length(PREFIX + COMPLETED) - 1,
    want: "overflow",
  },
  { name: "a failure that fits", text: PREFIX + FAILED, maxBytes: length(PREFIX + FAILED), want: "failed" },
  {
    name: "a failure that passes it itself",
    text: PREFIX + FAILED,
    maxBytes: length(PREFIX + FAILED) - 1,
    want: "overflow",
  },
  {
    name: "noise that fits only because it is dropped",
    text: PREFIX + PADDING + FAILED,
    maxBytes: length(PREFIX + FAILED),
    want: "failed",
  },
  {
    name: "noise that passes it",
    text: PREFIX + PADDING + FAILED,
    maxBytes: length(PREFIX + PADDING) - 1,
    want: "overflow",
  },
  {
    name: "what follows the terminal counts for nothing",
    text: PREFIX + COMPLETED + HALF,
    maxBytes: length(PREFIX + COMPLETED),
    want: "success",
  },
  {
    name: "nor does what follows a failure",
    text: PREFIX + FAILED + HALF,
    maxBytes: length(PREFIX + FAILED),
    want: "failed",
  },
  {
    name: "an unknown event before the bound",
    text: PREFIX + UNKNOWN + textDelta("y".repeat(300)) + COMPLETED,
    maxBytes: length(PREFIX + UNKNOWN),
    want: "unknown_payload",
  },
  {
    name: "a translated event is counted as it came until it is translated",
    text: PREFIX + COMPLETED,
    maxBytes: length(COMPLETED),
    want: "overflow",
    translation: TERSE,
  },
  {
    name: "a translated answer within it",
    text: PREFIX + COMPLETED,
    maxBytes: length(COMPLETED) + 3 * length("x\n\n"),
    want: "success",
    translation: TERSE,
  },
];

for (const c of cases) {
  Deno.test(`a withheld stream ends as ${c.want} however it is cut: ${c.name}`, async () => {
    const bytes = bytesOf(c.text);
    const each = Array.from({ length: bytes.length }, (_, at) => at);
    for (const cuts of [[], each, ...each.map((at) => [at])]) {
      const stream = new AnswerStream({
        body: bodyOf(cutAt(bytes, cuts)),
        headers: new Headers(),
        dialect: responsesDialect,
        translation: c.translation ?? null,
        observer: { quota: () => {} },
        bodyFailure: () => ({ kind: "transport", cause: "reset_in_body", pooled: false }),
      });
      let most = 0;
      const policy: HoldPolicy = {
        until: "success",
        maxEvents: Infinity,
        maxBytes: c.maxBytes,
        untilMs: Infinity,
        idleMs: 1_000,
        guarded: true,
        onHeld: (held) => most = Math.max(most, held),
      };
      const hold = await holdStream(stream, policy, new FakeClock());
      assertEquals(nameOf(hold), c.want, `cut at ${cuts.length > 1 ? "every byte" : cuts}`);
      assertEquals(most <= c.maxBytes, true, `${most} bytes were held`);
    }
  });
}

function nameOf(hold: HoldResult): string {
  return hold.kind === "commit" ? hold.why : hold.kind;
}

function length(text: string): number {
  return bytesOf(text).length;
}
