import { assertEquals } from "@std/assert";
import {
  type BodyFraming,
  encodeHead,
  HEAD_LIMIT_BYTES,
  type HeadResult,
  readAnswerHead,
  writeRequestHead,
} from "../../lib/upstream/http_head.ts";

const ENCODER = new TextEncoder();

function read(text: string, method = "POST"): HeadResult {
  const bytes = ENCODER.encode(text);
  return readAnswerHead(bytes, 0, bytes.length, method);
}

const framings: {
  name: string;
  lines: string;
  method?: string;
  status?: number;
  want: BodyFraming | null;
}[] = [
  { name: "a length", lines: "content-length: 5", want: { kind: "length", bytes: 5 } },
  { name: "no length at all", lines: "x: y", want: { kind: "close" } },
  { name: "a length of nothing", lines: "content-length: 0", want: { kind: "length", bytes: 0 } },
  {
    name: "one length said twice",
    lines: "content-length: 5\r\ncontent-length: 5",
    want: { kind: "length", bytes: 5 },
  },
  { name: "two lengths", lines: "content-length: 5\r\ncontent-length: 6", want: null },
  { name: "two lengths in one line", lines: "content-length: 5, 6", want: null },
  { name: "a signed length", lines: "content-length: +5", want: null },
  { name: "a negative length", lines: "content-length: -5", want: null },
  { name: "a hexadecimal length", lines: "content-length: 0x5", want: null },
  { name: "an empty length", lines: "content-length:", want: null },
  { name: "a length beyond all measure", lines: "content-length: 1234567890123456", want: null },
  { name: "chunks", lines: "transfer-encoding: chunked", want: { kind: "chunked" } },
  { name: "Chunks in capitals", lines: "Transfer-Encoding: Chunked", want: { kind: "chunked" } },
  {
    name: "chunks and a length",
    lines: "content-length: 5\r\ntransfer-encoding: chunked",
    want: { kind: "chunked" },
  },
  { name: "another coding before chunks", lines: "transfer-encoding: gzip, chunked", want: null },
  { name: "chunks twice", lines: "transfer-encoding: chunked, chunked", want: null },
  { name: "a coding that is not chunks", lines: "transfer-encoding: identity", want: null },
  { name: "an answer to HEAD", lines: "content-length: 5", method: "HEAD", want: { kind: "none" } },
  { name: "204", lines: "content-length: 5", status: 204, want: { kind: "none" } },
  { name: "304", lines: "transfer-encoding: chunked", status: 304, want: { kind: "none" } },
];
for (const c of framings) {
  Deno.test(`readAnswerHead() tells where the body ends, or refuses: ${c.name}`, () => {
    const result = read(`HTTP/1.1 ${c.status ?? 200} OK\r\n${c.lines}\r\n\r\n`, c.method);
    if (c.want === null) assertEquals(result.kind, "malformed");
    else assertEquals(result.kind === "head" && result.head.framing, c.want);
  });
}

const reuse: { name: string; head: string; want: boolean }[] = [
  { name: "HTTP/1.1 with a length", head: "HTTP/1.1 200 OK\r\ncontent-length: 1", want: true },
  { name: "HTTP/1.1 in chunks", head: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked", want: true },
  { name: "no body", head: "HTTP/1.1 204 No Content\r\nx: y", want: true },
  {
    name: "connection: close",
    head: "HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: Close",
    want: false,
  },
  {
    name: "close among others",
    head: "HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: x-a, close",
    want: false,
  },
  {
    name: "a word that contains close",
    head: "HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: x-close",
    want: true,
  },
  { name: "HTTP/1.0", head: "HTTP/1.0 200 OK\r\ncontent-length: 1", want: false },
  { name: "a body that ends with the connection", head: "HTTP/1.1 200 OK\r\nx: y", want: false },
  {
    name: "a length beside chunks",
    head: "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked",
    want: false,
  },
];
for (const c of reuse) {
  Deno.test(`readAnswerHead() ${c.want ? "keeps" : "gives up"} the connection: ${c.name}`, () => {
    const result = read(`${c.head}\r\n\r\n`);
    assertEquals(result.kind === "head" && result.head.keepAlive, c.want);
  });
}

const malformed = [
  { name: "another protocol", text: "SSH-2.0-OpenSSH_9\r\n" },
  { name: "the first byte of another protocol", text: "S" },
  { name: "HTTP/2", text: "HTTP/2 200 OK\r\n\r\n" },
  { name: "a status of two digits", text: "HTTP/1.1 20 OK\r\n\r\n" },
  { name: "a status of four digits", text: "HTTP/1.1 2000 OK\r\n\r\n" },
  { name: "a line that is no header", text: "HTTP/1.1 200 OK\r\nno header\r\n\r\n" },
  { name: "a header without a name", text: "HTTP/1.1 200 OK\r\n: x\r\n\r\n" },
  { name: "a blank before the colon", text: "HTTP/1.1 200 OK\r\nx : y\r\n\r\n" },
  { name: "a folded header", text: "HTTP/1.1 200 OK\r\nx: y\r\n  z\r\n\r\n" },
  { name: "a NUL in a value", text: "HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n" },
  { name: "a bare CR in a value", text: "HTTP/1.1 200 OK\r\nx: a\rcontent-length: 3\r\n\r\n" },
];
for (const c of malformed) {
  Deno.test(`readAnswerHead() refuses ${c.name}`, () => assertEquals(read(c.text).kind, "malformed"));
}

Deno.test("readAnswerHead() keeps repeated headers and every byte of a value", () => {
  const bytes = new Uint8Array([
    ...ENCODER.encode("HTTP/1.1 200\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\nx-name:  "),
    0xe4,
    0xff,
    ...ENCODER.encode("\t\r\n\r\nbody"),
  ]);
  const result = readAnswerHead(bytes, 0, bytes.length, "GET");
  if (result.kind !== "head") throw new Error(result.kind);
  assertEquals(result.head.headers.get("set-cookie"), "a=1, b=2");
  assertEquals(result.head.headers.get("x-name"), "\u00e4\u00ff");
  assertEquals(result.end, bytes.length - 4);
});

Deno.test("readAnswerHead() gives the same head however much of it has come, and not before it is whole", () => {
  const text = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\ncontent-length: 2\n\nok";
  const bytes = ENCODER.encode(`....${text}`);
  let next = 4;
  let seenBytes = 0;
  for (let end = 4; end <= bytes.length; end++) {
    const result = readAnswerHead(bytes, 4, end, "POST");
    const whole = end >= bytes.length - 2;
    assertEquals(result.kind, whole ? "head" : "incomplete", `after ${end - 4} bytes`);
    // As a connection does it: what was passed over or looked at needs no second look.
    const again = readAnswerHead(bytes, next, end, "POST", seenBytes);
    assertEquals([again.kind, again.kind === "head" && again.end], [
      result.kind,
      result.kind === "head" && result.end,
    ]);
    if (again.kind === "incomplete") ({ next } = again);
    seenBytes = end - next;
    if (result.kind === "head") assertEquals([result.head.status, result.end], [200, bytes.length - 2]);
  }
});

Deno.test("readAnswerHead() says where the head begins that is not whole: interim ones are read once", () => {
  const interim = "HTTP/1.1 100 Continue\r\n\r\n";
  for (const count of [0, 1, 3]) {
    const bytes = ENCODER.encode(`${interim.repeat(count)}HTTP/1.1 2`);
    assertEquals(readAnswerHead(bytes, 0, bytes.length, "POST"), {
      kind: "incomplete",
      next: count * interim.length,
    });
  }
});

Deno.test("readAnswerHead() takes a 101 for final", () => {
  const result = read("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n");
  assertEquals(result.kind === "head" && [result.head.status, result.head.framing.kind], [101, "none"]);
});

for (const over of [-1, 0, 1]) {
  Deno.test(`readAnswerHead() reads heads up to its limit: ${over} bytes over`, () => {
    const frame = "HTTP/1.1 200 OK\r\nx: \r\n\r\n".length;
    const text = `HTTP/1.1 200 OK\r\nx: ${"y".repeat(HEAD_LIMIT_BYTES - frame + over)}\r\n\r\n`;
    assertEquals(read(text).kind, over <= 0 ? "head" : "malformed");
    assertEquals(read(text.slice(0, -1)).kind, over <= 1 ? "incomplete" : "malformed");
  });
}

Deno.test("writeRequestHead() states framing and host itself, and keeps every other header", () => {
  const headers = new Headers({
    "x-kept": "1",
    host: "elsewhere",
    "content-length": "99",
    "transfer-encoding": "chunked",
    connection: "upgrade",
    upgrade: "x",
    expect: "100-continue",
    "accept-encoding": "zstd",
  });
  const line = { method: "POST", target: "/v1/x?a=b", host: "api.example.com:8443" };
  assertEquals(
    writeRequestHead(line, headers, { "accept-encoding": "gzip,br" }, 14),
    "POST /v1/x?a=b HTTP/1.1\r\nhost: api.example.com:8443\r\nx-kept: 1\r\naccept-encoding: gzip,br\r\ncontent-length: 14\r\n\r\n",
  );
});

const ends: { method: string; body: number | "chunked" | null; want: string }[] = [
  { method: "POST", body: "chunked", want: "transfer-encoding: chunked\r\n" },
  { method: "POST", body: null, want: "content-length: 0\r\n" },
  { method: "PUT", body: 0, want: "content-length: 0\r\n" },
  { method: "GET", body: null, want: "" },
  { method: "DELETE", body: 3, want: "content-length: 3\r\n" },
];
for (const c of ends) {
  Deno.test(`writeRequestHead() frames ${c.method} with ${c.body}`, () => {
    const head = writeRequestHead({ method: c.method, target: "/", host: "h" }, new Headers(), {}, c.body);
    assertEquals(head, `${c.method} / HTTP/1.1\r\nhost: h\r\n${c.want}\r\n`);
  });
}

Deno.test("encodeHead() writes each character of a value as the byte it stands for, the body behind it", () => {
  assertEquals(
    encodeHead("x: \u00e4\u00ff\r\n", new Uint8Array([1, 2])),
    new Uint8Array([0x78, 0x3a, 0x20, 0xe4, 0xff, 13, 10, 1, 2]),
  );
  assertEquals(encodeHead("ab", null), new Uint8Array([0x61, 0x62]));
});
