import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { ChunkedBody } from "../../lib/upstream/chunked_body.ts";

const ENCODER = new TextEncoder();

interface Read {
  readonly text: string;
  readonly state: "open" | "done" | "malformed";
  /** What lies behind the body. */
  readonly rest: string;
}

/** Feeds the wire in pieces of one buffer, as a connection does. */
function read(wire: Uint8Array<ArrayBuffer>, cuts: readonly number[] = []): Read {
  const chunked = new ChunkedBody();
  let text = "";
  const edges = [...cuts.filter((cut) => cut < wire.length).sort((a, b) => a - b), wire.length];
  let from = 0;
  for (const edge of edges) {
    const unread = { bytes: wire.slice(from, edge), start: 0, end: edge - from };
    chunked.take(unread);
    text += new TextDecoder("latin1").decode(unread.bytes.subarray(chunked.payloadStart, chunked.payloadEnd));
    if (chunked.state !== "open") {
      const rest = new TextDecoder().decode(wire.subarray(from + unread.start));
      return { text, state: chunked.state, rest };
    }
    assertEquals(unread.start, unread.end);
    from = edge;
  }
  return { text, state: chunked.state, rest: "" };
}

const cases: { name: string; wire: string; text: string; state: Read["state"]; rest?: string }[] = [
  { name: "two chunks", wire: "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", text: "abcde", state: "done" },
  { name: "an empty body", wire: "0\r\n\r\n", text: "", state: "done" },
  {
    name: "a size in capitals with zeros before",
    wire: "000A\r\n0123456789\r\n0\r\n\r\n",
    text: "0123456789",
    state: "done",
  },
  {
    name: "a size padded to eight digits, and a last chunk padded as well",
    wire: "00000005\r\nabcde\r\n00000000\r\n\r\n",
    text: "abcde",
    state: "done",
  },
  {
    name: "the largest size there may be, padded",
    wire: "00000fffffff;x\r\nabc",
    text: "abc",
    state: "open",
  },
  { name: "an extension", wire: '3;a="b\tc"\r\nabc\r\n0;x\r\n\r\n', text: "abc", state: "done" },
  { name: "trailers", wire: "1\r\na\r\n0\r\nx: y\r\nz: w\r\n\r\n", text: "a", state: "done" },
  { name: "bare line feeds", wire: "1\na\n0\n\n", text: "a", state: "done" },
  { name: "line ends inside the data", wire: "4\r\n\r\n\r\n\r\n0\r\n\r\n", text: "\r\n\r\n", state: "done" },
  { name: "bytes behind the end", wire: "0\r\n\r\nHTTP/1.1", text: "", state: "done", rest: "HTTP/1.1" },
  { name: "a cut chunk", wire: "5\r\nabc", text: "abc", state: "open" },
  { name: "a missing last chunk", wire: "3\r\nabc\r\n", text: "abc", state: "open" },
  { name: "no size", wire: "\r\nabc", text: "", state: "malformed", rest: "\nabc" },
  { name: "a size that is none", wire: "g\r\n", text: "", state: "malformed", rest: "\r\n" },
  { name: "a signed size", wire: "-1\r\n", text: "", state: "malformed", rest: "1\r\n" },
  { name: "a size with 0x", wire: "0x3\r\n", text: "", state: "malformed", rest: "3\r\n" },
  { name: "a size beyond the bound", wire: "12345678\r\n", text: "", state: "malformed", rest: "\r\n" },
  { name: "a CR alone behind the size", wire: "1\ra", text: "", state: "malformed", rest: "" },
  { name: "more data than the size", wire: "3\r\nabcdef", text: "abc", state: "malformed", rest: "ef" },
  { name: "a CR alone behind the data", wire: "1\r\na\rb", text: "a", state: "malformed", rest: "" },
];
for (const c of cases) {
  Deno.test(`ChunkedBody reads ${c.name}, in one piece and cut at every byte`, () => {
    const wire = ENCODER.encode(c.wire);
    const want = { text: c.text, state: c.state, rest: c.rest ?? "" };
    assertEquals(read(wire), want);
    assertEquals(read(wire, [...wire.keys()]), want);
    for (let cut = 1; cut < wire.length; cut++) assertEquals(read(wire, [cut]), want, `cut at ${cut}`);
  });
}

for (
  const [name, wire] of [
    ["zeros without end", "0".repeat(10_000)],
    ["an extension without end", `1;${"x".repeat(10_000)}`],
    ["a trailer without end", `0\r\nx: ${"y".repeat(100_000)}`],
    ["trailers without end", `0\r\n${"x: y\r\n".repeat(10_000)}`],
  ] as const
) {
  Deno.test(`ChunkedBody gives up on ${name}`, () => {
    assertEquals(read(ENCODER.encode(wire)).state, "malformed");
  });
}

Deno.test("ChunkedBody gives back what was framed, wherever chunks and reads end", () => {
  fc.assert(fc.property(
    fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 8 }),
    fc.array(fc.nat(400)),
    (pieces, cuts) => {
      const wire: number[] = [];
      for (const piece of pieces) {
        wire.push(...ENCODER.encode(`${piece.length.toString(16)}\r\n`), ...piece, 13, 10);
      }
      wire.push(...ENCODER.encode("0\r\n\r\n"));
      const got = read(new Uint8Array(wire), cuts.filter((cut) => cut > 0));
      const want = pieces.map((piece) => new TextDecoder("latin1").decode(piece)).join("");
      assertEquals(got, { text: want, state: "done", rest: "" });
    },
  ));
});

Deno.test("ChunkedBody never gives more than it was fed, and never moves past its input", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
    const chunked = new ChunkedBody();
    const unread = { bytes: new Uint8Array(noise), start: 0, end: noise.length };
    chunked.take(unread);
    assert(unread.start <= unread.end && chunked.payloadEnd - chunked.payloadStart <= noise.length);
    assert(chunked.payloadStart >= 0 && chunked.payloadEnd <= noise.length);
  }));
});
