import { assert, assertEquals } from "@std/assert";
import type { StreamDialect } from "../../lib/protocol/stream_dialect.ts";
import { chatDialect } from "../../lib/protocol/chat.ts";
import { messagesDialect } from "../../lib/protocol/messages.ts";
import { responsesDialect } from "../../lib/protocol/responses.ts";
import {
  judgeStreamEnd,
  malformedStream,
  observeEvent,
  STREAM_START,
} from "../../lib/protocol/terminal_event.ts";
import { bytesOf, event, frame, frameAll } from "./frames.ts";

const HEADERS = new Headers();
const text = (content: string, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ delta: { content }, finish_reason: finish }] })}\n\n`;
const DONE = "data: [DONE]\n\n";
const CREATED = event("response.created", { response: { id: "r1" } });
const DELTA = event("response.output_text.delta", { delta: "x" });
const COMPLETED = event("response.completed", { response: { id: "r1", output: [] } });
const FAILED = event("response.failed", { response: { error: { code: "server_error" } } });
const START = event("message_start", { message: { id: "m1" } });
const STOP = event("message_stop");

/** `want` is the evidence kind, with the detail of a malformed stream or the code of a failure. */
const cases: { dialect: StreamDialect; name: string; stream: string; want: string }[] = [
  {
    dialect: responsesDialect,
    name: "a completed answer",
    stream: CREATED + DELTA + COMPLETED,
    want: "success",
  },
  { dialect: responsesDialect, name: "a terminal alone", stream: COMPLETED, want: "success" },
  { dialect: responsesDialect, name: "[DONE] after the terminal", stream: COMPLETED + DONE, want: "success" },
  {
    dialect: responsesDialect,
    name: "a quota notice after the terminal",
    stream: COMPLETED + event("codex.rate_limits"),
    want: "success",
  },
  {
    dialect: responsesDialect,
    name: "a comment after the terminal",
    stream: COMPLETED + ": x\n\n",
    want: "success",
  },
  { dialect: responsesDialect, name: "B028 nothing", stream: "", want: "malformed no_event" },
  {
    dialect: responsesDialect,
    name: "B028 comments only",
    stream: ": ping\n\n: ping\n\n",
    want: "malformed no_event",
  },
  {
    dialect: responsesDialect,
    name: "B068 nulls only",
    stream: "data: null\n\ndata: null\n\n",
    want: "malformed no_event",
  },
  { dialect: responsesDialect, name: "B071 no terminal", stream: CREATED + DELTA, want: "incomplete" },
  { dialect: responsesDialect, name: "a lifecycle event alone", stream: CREATED, want: "incomplete" },
  { dialect: responsesDialect, name: "B084 a failure first", stream: FAILED, want: "in_stream server_error" },
  {
    dialect: responsesDialect,
    name: "a failure after output",
    stream: CREATED + DELTA + FAILED,
    want: "in_stream server_error",
  },
  {
    dialect: responsesDialect,
    name: "form B followed by form A",
    stream: event("error", { error: { code: "server_is_overloaded" } }) + FAILED,
    want: "in_stream server_is_overloaded",
  },
  {
    dialect: responsesDialect,
    name: "anything after a failure",
    stream: FAILED + DELTA + COMPLETED + "data: {x\n\n",
    want: "in_stream server_error",
  },
  {
    dialect: responsesDialect,
    name: "output after the terminal",
    stream: COMPLETED + DELTA,
    want: "malformed data_after_terminal",
  },
  {
    dialect: responsesDialect,
    name: "a second terminal",
    stream: COMPLETED + COMPLETED,
    want: "malformed data_after_terminal",
  },
  {
    dialect: responsesDialect,
    name: "a failure after the terminal",
    stream: COMPLETED + FAILED,
    want: "malformed data_after_terminal",
  },
  {
    dialect: responsesDialect,
    name: "B068 bad JSON in the middle",
    stream: CREATED + "data: {bad\n\n" + COMPLETED,
    want: "malformed bad_event_data",
  },
  {
    dialect: chatDialect,
    name: "text, finish, [DONE]",
    stream: text("hi") + text("", "stop") + DONE,
    want: "success",
  },
  {
    dialect: chatDialect,
    name: "B068 padding inside",
    stream: text("AB") + "data: null\n\n" + text("CD") + text("", "stop") + DONE,
    want: "success",
  },
  {
    dialect: chatDialect,
    name: "finish without [DONE]",
    stream: text("hi") + text("", "stop"),
    want: "success",
  },
  {
    dialect: chatDialect,
    name: "finish, then usage without [DONE]",
    stream: text("hi", "stop") + 'data: {"choices":[],"usage":{}}\n\n',
    want: "success",
  },
  { dialect: chatDialect, name: "[DONE] without finish", stream: text("hi") + DONE, want: "success" },
  {
    dialect: chatDialect,
    name: "B074 frames without output after [DONE]",
    stream: text("hi", "stop") + DONE + 'data: {"choices":[],"note":1}\n\n' + DONE,
    want: "success",
  },
  {
    dialect: chatDialect,
    name: "text after [DONE]",
    stream: text("hi", "stop") + DONE + text("x"),
    want: "malformed data_after_terminal",
  },
  { dialect: chatDialect, name: "B071 neither finish nor [DONE]", stream: text("half"), want: "incomplete" },
  { dialect: chatDialect, name: "[DONE] alone", stream: DONE, want: "malformed no_event" },
  {
    dialect: chatDialect,
    name: "B068 nulls and [DONE]",
    stream: "data: null\n\n" + DONE,
    want: "malformed no_event",
  },
  {
    dialect: chatDialect,
    name: "z.ai network_error",
    stream: text("hi") + text("", "network_error") + DONE,
    want: "in_stream network_error",
  },
  {
    dialect: messagesDialect,
    name: "a whole message",
    stream: START + event("content_block_delta") + event("message_delta") + STOP,
    want: "success",
  },
  {
    dialect: messagesDialect,
    name: "B121 an empty message",
    stream: START + event("message_delta") + STOP,
    want: "success",
  },
  {
    dialect: messagesDialect,
    name: "no message_stop",
    stream: START + event("message_delta"),
    want: "incomplete",
  },
  {
    dialect: messagesDialect,
    name: "an error first",
    stream: event("error", { error: { type: "1305" } }),
    want: "in_stream 1305",
  },
];
for (const c of cases) {
  Deno.test(`judgeStreamEnd() says ${c.want} of a ${c.dialect.protocol} stream: ${c.name}`, () => {
    const { frames } = frameAll([bytesOf(c.stream)]);
    const progress = frames.map(c.dialect.readEvent).reduce(observeEvent, STREAM_START);
    const evidence = judgeStreamEnd(progress, HEADERS);
    const word = evidence.kind === "malformed"
      ? evidence.detail
      : evidence.kind === "in_stream"
      ? evidence.error.code
      : null;
    assertEquals(word === null ? evidence.kind : `${evidence.kind} ${word}`, c.want);
    if (evidence.kind === "in_stream") assert(evidence.headers === HEADERS);
  });
}

Deno.test("observeEvent() makes no new value for an event that changes nothing", () => {
  const output = responsesDialect.readEvent(frame(DELTA));
  const first = observeEvent(STREAM_START, output);
  assert(first !== STREAM_START);
  assert(observeEvent(first, output) === first);
  assert(observeEvent(first, responsesDialect.readEvent(frame(CREATED))) === first);
});

Deno.test("malformedStream() decides a stream, and nothing after it changes that", () => {
  const broken = malformedStream(STREAM_START, "frame_too_large");
  const progress = observeEvent(broken, responsesDialect.readEvent(frame(COMPLETED)));
  assertEquals(judgeStreamEnd(progress, HEADERS), { kind: "malformed", detail: "frame_too_large" });
});
