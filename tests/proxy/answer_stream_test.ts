import { assertEquals } from "@std/assert";
import { chatDialect } from "../../lib/protocol/chat.ts";
import { responsesDialect } from "../../lib/protocol/responses.ts";
import type { StreamDialect } from "../../lib/protocol/stream_dialect.ts";
import type { StreamTranslation } from "../../lib/protocol/translate/translator.ts";
import { AnswerStream } from "../../lib/proxy/answer_stream.ts";
import { bodyOf } from "../support/answer_bodies.ts";
import { bytesOf, cutAt, textOf } from "../protocol/frames.ts";

function streamOf(
  pieces: readonly Uint8Array<ArrayBuffer>[],
  dialect: StreamDialect = responsesDialect,
  translation: StreamTranslation | null = null,
): AnswerStream {
  return new AnswerStream({
    body: bodyOf(pieces),
    headers: new Headers(),
    dialect,
    translation,
    observer: { quota: () => {} },
    bodyFailure: () => ({ kind: "transport", cause: "reset_in_body", pooled: false }),
  });
}

const CREATED = 'data: {"type":"response.created","response":{"id":"resp_1"}}\n\n';
const DELTA = 'data: {"type":"response.output_text.delta","delta":"a"}\n\n';
const FAILED =
  'data: {"type":"response.failed","response":{"id":"resp_1","error":{"code":"server_error"}}}\n\n';

Deno.test("take() stops at the first output, so that what follows it follows the commit, however the bytes were cut", async () => {
  const whole = bytesOf(CREATED + DELTA + FAILED);
  for (let cut = 0; cut < whole.length; cut++) {
    const stream = streamOf(cutAt(whole, [cut]));
    let held = "";
    while (!stream.sawOutput) for (const piece of await stream.take()) held += textOf(piece);
    assertEquals([held, stream.terminal], [CREATED + DELTA, null], `cut at ${cut}`);
    while (stream.terminal === null) await stream.take();
    assertEquals(stream.terminal.kind === "failed" && stream.terminal.evidence.kind, "in_stream");
    assertEquals(textOf(stream.failing!.bytes), FAILED);
  }
});

Deno.test("take() gives everything, in order, when much comes at once", async () => {
  const completed = 'data: {"type":"response.completed","response":{"id":"resp_1","status":"completed"}}\n\n';
  const stream = streamOf([bytesOf(CREATED + DELTA + DELTA + ": comment\n\n" + completed + DELTA)]);
  let text = "";
  while (stream.terminal === null) for (const piece of await stream.take()) text += textOf(piece);
  assertEquals(text, CREATED + DELTA + DELTA + ": comment\n\n" + completed);
  assertEquals(stream.terminal, { kind: "success" });
});

Deno.test("the frames that close one stream are not given to another", async () => {
  const translation: StreamTranslation = { push: () => [], end: () => [bytesOf("closing")], problem: null };
  const finished = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
  const first = streamOf([bytesOf(finished)], chatDialect, translation);
  let text = "";
  while (first.terminal === null) for (const piece of await first.take()) text += textOf(piece);
  assertEquals(text, "closing");
  const second = streamOf([bytesOf("data: {"), bytesOf(finished.slice("data: {".length))], chatDialect);
  assertEquals(await second.take(), []);
});

Deno.test("a stream of CRLF lines is given byte for byte, also when a cut falls between the CR and the LF that end it", async () => {
  const completed = 'data: {"type":"response.completed","response":{"id":"resp_1","status":"completed"}}\n\n';
  const crlf = (text: string) => text.replaceAll("\n", "\r\n");
  const given = async (stream: AnswerStream): Promise<string> => {
    let text = "";
    while (stream.terminal === null) for (const piece of await stream.take()) text += textOf(piece);
    return text;
  };
  // What no client is shown must not take the end of the frame before it along.
  const padded = bytesOf(crlf(`${CREATED}data: [DONE]\n\n${DELTA}${completed}`));
  for (let cut = 0; cut < padded.length; cut++) {
    const text = await given(streamOf(cutAt(padded, [cut])));
    assertEquals(text, crlf(CREATED + DELTA + completed), `cut at ${cut}`);
  }
  const failing = bytesOf(crlf(CREATED + DELTA + FAILED));
  for (let cut = 0; cut < failing.length; cut++) {
    const stream = streamOf(cutAt(failing, [cut]));
    const text = await given(stream) + textOf(stream.failing!.bytes);
    assertEquals(text, crlf(CREATED + DELTA + FAILED), `cut at ${cut}`);
  }
});
