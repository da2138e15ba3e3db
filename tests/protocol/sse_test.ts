import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  closedBytes,
  encodeFrame,
  frameOf,
  SSE_FRAME_LIMIT_BYTES,
  SseFramer,
} from "../../lib/protocol/sse.ts";
import { bytesOf, cutAt, event, eventsOf, frameAll, join, textOf } from "./frames.ts";

type Event = { event: string | null; data: string | null };

const d = (data: string, event: string | null = null): Event => ({ event, data });

/** A frame a reader of events never sees. */
const NONE: Event = { event: null, data: null };

const ITEM = '{"type":"response.output_item.done","item":{"id":"i1"}}';
const DONE = '{"type":"response.completed"}';

/** Whole streams and what a reader must see of them; also cut at every byte below. */
const streams: { name: string; text: string; want: Event[]; tail?: string }[] = [
  { name: "an empty stream", text: "", want: [] },
  { name: "event and data", text: 'event: a\ndata: {"x":1}\n\n', want: [d('{"x":1}', "a")] },
  {
    name: "B066 no space after the colon",
    text: "event:a\ndata:{}\n\ndata:[DONE]\n\n",
    want: [
      d("{}", "a"),
      d("[DONE]"),
    ],
  },
  { name: "only one space is stripped", text: "data:  x\n\n", want: [d(" x")] },
  {
    name: "B066 CRLF line ends",
    text: "event: a\r\ndata: {}\r\n\r\ndata: 2\r\n\r\n",
    want: [d("{}", "a"), d("2")],
  },
  { name: "B066 lone CR line ends", text: "event: a\rdata: {}\r\rdata: 2\r\r", want: [d("{}", "a"), d("2")] },
  {
    name: "mixed line ends",
    text: "event: a\r\ndata: {}\n\r\ndata: 2\r\n\ndata: 3\r\r\n",
    want: [
      d("{}", "a"),
      d("2"),
      d("3"),
    ],
  },
  { name: "B066 a byte-order mark", text: "\ufeffdata: 1\n\n", want: [d("1")] },
  { name: "a byte-order mark before a blank line", text: "\ufeff\ndata: 1\n\n", want: [d("1")] },
  { name: "a byte-order mark later is text", text: "data: 1\n\n\ufeffdata: 2\n\n", want: [d("1"), NONE] },
  {
    name: "B066 comments between frames",
    text: ": ping\n\ndata: 1\n\n:\n\n",
    want: [
      NONE,
      d("1"),
      NONE,
    ],
  },
  { name: "a comment inside a frame", text: "event: a\n: x\ndata: 1\n\n", want: [d("1", "a")] },
  {
    name: "B066 id and retry lines",
    text: "id: 7\nretry: 1000\ndata: 1\n\nretry: 5\n\n",
    want: [
      d("1"),
      NONE,
    ],
  },
  { name: "names without a colon", text: "data\n\nevent\ndata: 1\n\n", want: [d(""), d("1", "")] },
  { name: "names that only begin alike", text: "database: 1\neventful: 2\ndata: 3\n\n", want: [d("3")] },
  { name: "the last event line counts", text: "event: a\nevent: b\ndata: 1\n\n", want: [d("1", "b")] },
  {
    name: "several data lines are joined",
    text: 'data: {"a":\ndata: 1\ndata: }\n\n',
    want: [d('{"a":\n1\n}')],
  },
  { name: "many blank lines", text: "\n\n\r\n\rdata: 1\n\n\n\ndata: 2\n\n", want: [d("1"), d("2")] },
  {
    name: "an event line alone",
    text: "event: a\n\ndata: 1\n\n",
    want: [{ event: "a", data: null }, d("1")],
  },
  {
    name: "B065 data-only frames in one read",
    text: `data: ${ITEM}\n\ndata: ${DONE}\n\n`,
    want: [d(ITEM), d(DONE)],
  },
  { name: "glued data lines", text: `data: ${ITEM}\ndata: ${DONE}\n\n`, want: [d(ITEM), d(DONE)] },
  {
    name: "glued frames with event lines",
    text: `event: a\ndata: {}\nevent: b\ndata: []\nevent: c\ndata: 1\n\n`,
    want: [
      d("{}", "a"),
      d("[]", "b"),
      d("1", "c"),
    ],
  },
  {
    name: "glued scalars",
    text: 'data: null\ndata: -1.5e3\ndata: "x"\ndata: [DONE]\n\n',
    want: [
      d("null"),
      d("-1.5e3"),
      d('"x"'),
      d("[DONE]"),
    ],
  },
  {
    name: "glued after a joined value",
    text: 'data: {"a":\ndata: "}"}\ndata: {}\n\n',
    want: [
      d('{"a":\n"}"}'),
      d("{}"),
    ],
  },
  { name: "glued with CRLF", text: "data: {}\r\ndata: {}\r\n\r\n", want: [d("{}"), d("{}")] },
  { name: "plain text lines are no glue", text: "data: hello\ndata: world\n\n", want: [d("hello\nworld")] },
  { name: "two words are no glue", text: "data: nul\ndata: l\n\n", want: [d("nul\nl")] },
  {
    name: "markers inside strings stay",
    text: 'data: {"t":"\\n\\ndata: {}\\ndata: [DONE]"}\n\n',
    want: [
      d('{"t":"\\n\\ndata: {}\\ndata: [DONE]"}'),
    ],
  },
  { name: "an escaped quote keeps a string open", text: 'data: "a\\"\ndata: b"\n\n', want: [d('"a\\"\nb"')] },
  {
    name: "B066 last frame without its blank line",
    text: `data: 1\n\nevent: z\ndata: ${DONE}\n`,
    want: [
      d("1"),
      d(DONE, "z"),
    ],
  },
  {
    name: "last frame without any line end",
    text: `data: 1\n\nevent: z\ndata: ${DONE}`,
    want: [d("1"), d(DONE, "z")],
  },
  { name: "B066 last [DONE] without its blank line", text: "data:[DONE]", want: [d("[DONE]")] },
  {
    name: "last frame cut inside its JSON",
    text: 'data: 1\n\ndata: {"a":"b',
    want: [d("1")],
    tail: 'data: {"a":"b',
  },
  { name: "last frame cut inside a field name", text: "data: {}\ndat", want: [d("{}")], tail: "dat" },
  { name: "last frame and a cut glued one", text: 'data: {}\ndata: {"a', want: [d("{}")], tail: 'data: {"a' },
  {
    name: "last frame and a dangling event line",
    text: "data: {}\nevent: b\n",
    want: [d("{}")],
    tail: "event: b\n",
  },
  { name: "a stream that ends in a comment", text: "data: 1\n\n: ping", want: [d("1")], tail: ": ping" },
  {
    name: "two-, three- and four-byte characters",
    text: 'data: {"c":"é北🚀"}\n\n',
    want: [d('{"c":"é北🚀"}')],
  },
];

for (const c of streams) {
  Deno.test(`SseFramer gives the same events however the input is cut: ${c.name}`, () => {
    const bytes = bytesOf(c.text);
    const ways = [
      [bytes],
      cutAt(bytes, [...bytes.keys()]),
      ...[...bytes.keys()].map((at) => cutAt(bytes, [at])),
    ];
    for (const chunks of ways) {
      const { frames, tail } = frameAll(chunks);
      assertEquals(eventsOf(frames), c.want);
      if (c.tail !== undefined) assertEquals(textOf(tail), c.tail);
      assertEquals(textOf(join([...frames.map((f) => f.raw), tail])), c.text);
      assert(frames.every((f) => !f.malformedUtf8));
    }
  });
}

/** B064: created, item added, 3 deltas, item done, completed. */
const RESPONSES_STREAM = [
  event("response.created", { response: { id: "r1", status: "in_progress" } }),
  event("response.output_item.added", { output_index: 0, item: { id: "m1" } }),
  ...["a", "é", "🚀"].map((delta) => event("response.output_text.delta", { delta })),
  event("response.output_item.done", { output_index: 0, item: { id: "m1" } }),
  event("response.completed", { response: { id: "r1", status: "completed" } }),
].join("");

const writes: { name: string; cut: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>[] }[] = [
  { name: "one byte per write", cut: (bytes) => cutAt(bytes, [...bytes.keys()]) },
  { name: "one write", cut: (bytes) => [bytes] },
  {
    name: "a write per line",
    cut: (bytes) => cutAt(bytes, [...bytes.keys()].filter((at) => bytes[at - 1] === 10)),
  },
  {
    name: "event and data lines apart",
    cut: (bytes) => cutAt(bytes, [...textOf(bytes).matchAll(/data: /g)].map((m) => m.index)),
  },
];
for (const write of writes) {
  Deno.test(`SseFramer B064 gives every frame closed and in order: ${write.name}`, () => {
    const { frames, tail } = frameAll(write.cut(bytesOf(RESPONSES_STREAM)));
    assertEquals(frames.map((f) => JSON.parse(f.data()!).type), [
      "response.created",
      "response.output_item.added",
      ...Array(3).fill("response.output_text.delta"),
      "response.output_item.done",
      "response.completed",
    ]);
    assert(frames.every((f) => f.closed && textOf(f.raw).endsWith("\n\n")));
    assertEquals(tail.length, 0);
  });
}

Deno.test("SseFramer B063 keeps every character whole at every cut", () => {
  const bytes = bytesOf('data: {"choices":[{"delta":{"content":"é北🚀"}}]}\n\n');
  for (const at of bytes.keys()) {
    const { frames } = frameAll(cutAt(bytes, [at]));
    assertEquals(JSON.parse(frames[0]!.data()!).choices[0].delta.content, "é北🚀");
    assertEquals(frames[0]!.malformedUtf8, false);
  }
});

Deno.test("SseFramer B063 leaves a stream that ends inside a character in its tail", () => {
  const cut = bytesOf('data: {"c":"🚀').slice(0, -2);
  const { frames, tail } = frameAll([cut]);
  assertEquals(frames, []);
  assertEquals(tail, cut);
});

Deno.test("SseFramer B074 gives frames after [DONE] too, and content that names the marker as content", () => {
  const content = '{"choices":[{"delta":{"content":"data: [DONE]"}}]}';
  const text = `data: ${content}\n\ndata: [DONE]\n\ndata: {"choices":[],"note":1}\n\ndata: [DONE]\n\n`;
  const { frames } = frameAll([bytesOf(text)]);
  assertEquals(frames.map((f) => f.data()), [content, "[DONE]", '{"choices":[],"note":1}', "[DONE]"]);
});

const invalid: { name: string; bytes: number[]; malformed: boolean }[] = [
  { name: "a stray byte", bytes: [0x61, 0xff, 0x62], malformed: true },
  { name: "a cut character", bytes: [0xf0, 0x9f, 0x9a], malformed: true },
  { name: "a replacement character sent as such", bytes: [0xef, 0xbf, 0xbd], malformed: false },
];
for (const c of invalid) {
  Deno.test(`SseFrame.malformedUtf8 is ${c.malformed} for ${c.name}`, () => {
    for (const lines of [1, 2]) {
      const line = [...bytesOf("data: "), ...c.bytes, 10];
      const { frames } = frameAll([new Uint8Array([...Array(lines).fill(line).flat(), 10])]);
      assert(frames[0]!.data()!.includes("\ufffd"));
      assertEquals(frames[0]!.malformedUtf8, c.malformed);
    }
  });
}

Deno.test("SseFrame.raw is a view of its chunk when the frame lies inside it", () => {
  const chunk = bytesOf("data: 1\n\ndata: {}\ndata: {}\n\ndata: 2");
  const framer = new SseFramer();
  const frames = framer.push(chunk);
  assertEquals(frames.map((f) => textOf(f.raw)), ["data: 1\n\n", "data: {}\n", "data: {}\n\n"]);
  for (const f of frames) assert(f.raw.buffer === chunk.buffer);
  assertEquals(framer.pendingBytes, "data: 2".length);
  assertEquals(textOf(framer.tail()), "data: 2");
});

Deno.test("SseFramer leaves what a finished frame holds alone when it reads on", () => {
  const framer = new SseFramer();
  framer.push(bytesOf("data: "));
  const [first] = framer.push(bytesOf("first\n\ndata: sec"));
  const [second] = framer.push(bytesOf("ond\n\n"));
  assertEquals([first!.data(), second!.data()], ["first", "second"]);
  assertEquals([textOf(first!.raw), textOf(second!.raw)], ["data: first\n\n", "data: second\n\n"]);
});

Deno.test("SseFramer gives a frame as soon as its blank line came, also with lone CR and CRLF", () => {
  for (const text of ["data: 1\n\n", "data: 1\r\r", "data: 1\r\n\r\n", "data: 1\r\n\r"]) {
    assertEquals(new SseFramer().push(bytesOf(text)).map((f) => f.data()), ["1"]);
  }
});

const LIMIT = 32;
for (
  const c of [
    { name: "a frame at the limit", text: `data: ${"x".repeat(LIMIT - 8)}\n\n`, fails: false },
    { name: "a frame one byte over", text: `data: ${"x".repeat(LIMIT - 7)}\n\n`, fails: true },
    { name: "an unfinished line over the limit", text: `data: ${"x".repeat(LIMIT)}`, fails: true },
    { name: "many small lines over the limit", text: "data: x\n".repeat(8), fails: true },
    { name: "blank lines over the limit", text: "\n".repeat(LIMIT + 1), fails: true },
  ]
) {
  Deno.test(`SseFramer ${c.fails ? "gives up on" : "takes"} ${c.name}, however it is cut`, () => {
    const bytes = bytesOf("data: before\n\n" + c.text);
    for (const at of bytes.keys()) {
      const framer = new SseFramer({ maxFrameBytes: LIMIT });
      const frames = [...cutAt(bytes, [at]).flatMap((chunk) => framer.push(chunk)), ...framer.end()];
      assertEquals(framer.failure, c.fails ? "frame_too_large" : null);
      assertEquals(frames.length, c.fails ? 1 : 2);
      if (c.fails) {
        assertEquals(framer.push(bytesOf("data: 1\n\n")), []);
        assertEquals([framer.pendingBytes, framer.tail().length], [0, 0]);
      }
    }
  });
}

Deno.test("SseFramer takes an image of 8 MiB on one line in chunks of 64 KiB", () => {
  const data = `{"type":"x","b64":"${"A".repeat(8 << 20)}"}`;
  const bytes = bytesOf(`data: ${data}\n\n`);
  assert(bytes.length < SSE_FRAME_LIMIT_BYTES);
  const cuts = Array.from({ length: bytes.length >> 16 }, (_, index) => (index + 1) << 16);
  const { frames } = frameAll(cutAt(bytes, cuts));
  assertEquals(frames.length, 1);
  assertEquals(frames[0]!.typeHint(), "x");
  assert(frames[0]!.data() === data);
});

const hints: { data: string; want: string | null }[] = [
  { data: '{"type":"response.created","a":1}', want: "response.created" },
  { data: '{"type": "ping"}', want: "ping" },
  { data: '{"type":""}', want: "" },
  { data: '{"type":"a\\u0062"}', want: null },
  { data: '{"type":"é"}', want: null },
  { data: '{"type":"open', want: null },
  { data: '{"type":"cut","a":', want: null },
  { data: '{"type":7}', want: null },
  { data: '{"id":1,"type":"ping"}', want: null },
  { data: "null", want: null },
  { data: `{"type":"${"x".repeat(200)}"}`, want: "x".repeat(200) },
];
for (const c of hints) {
  Deno.test(`SseFrame.typeHint() is ${c.want?.slice(0, 20) ?? "null"} for ${c.data.slice(0, 40)}`, () => {
    for (let again = 0; again < 2; again++) assertEquals(frameOf(null, c.data).typeHint(), c.want);
  });
}

Deno.test("SseFrame.typeHint() and dataBytes() are null for several data lines", () => {
  const [f] = frameAll([bytesOf('data: {"type":"a",\ndata: "b":1}\n\n')]).frames;
  assertEquals([f!.typeHint(), f!.dataBytes()], [null, null]);
});

Deno.test("SseFrame.event is right for many names of equal length", () => {
  const names = Array.from({ length: 2000 }, (_, index) => `event.${index.toString(36).padStart(3, "0")}.x`);
  const { frames } = frameAll([bytesOf(names.map((name) => `event: ${name}\ndata: 1\n\n`).join(""))]);
  assertEquals(frames.map((f) => f.event), names);
});

const closings: { text: string; want: string }[] = [
  { text: "data: 1\n\n", want: "data: 1\n\n" },
  { text: "data: 1\r\r", want: "data: 1\r\r" },
  { text: "data: 1\n", want: "data: 1\n\n" },
  { text: "data: 1\r", want: "data: 1\r\r" },
  { text: "data: 1", want: "data: 1\n\n" },
];
for (const c of closings) {
  Deno.test(`closedBytes() gives a frame a reader accepts: ${JSON.stringify(c.text)}`, () => {
    const f = frameAll([bytesOf(c.text)]).frames[0]!;
    const closed = closedBytes(f);
    assertEquals(textOf(closed), c.want);
    assertEquals(new SseFramer().push(closed).map((read) => read.data()), ["1"]);
  });
}

Deno.test("encodeFrame() writes what the framer reads back, for any text", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.constantFrom(null, "a", "response.x"), (data, name) => {
      const [read] = new SseFramer().push(encodeFrame(name, data));
      assertEquals(read!.event, name);
      assertEquals(read!.data(), data.toWellFormed().replaceAll(/\r\n|\r/g, "\n"));
    }),
  );
});

Deno.test("SseFramer loses no byte and is blind to cuts, for any bytes", () => {
  const piece = fc.constantFrom(
    ...'\n \r \r\n data: event: : { } [ ] " \\ a 1 é \ufeff id:x'.split(" "),
    " ",
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 60 }),
      fc.array(fc.nat(120), { maxLength: 8 }),
      (pieces, cuts) => {
        const bytes = bytesOf(pieces.join(""));
        const whole = frameAll([bytes]);
        const parts = frameAll(cutAt(bytes, cuts));
        assertEquals(eventsOf(parts.frames), eventsOf(whole.frames));
        for (const framed of [whole, parts]) {
          assertEquals(join([...framed.frames.map((f) => f.raw), framed.tail]), bytes);
        }
      },
    ),
    { numRuns: 500 },
  );
});
