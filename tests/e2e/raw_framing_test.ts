/**
 * Request smuggling: where one reader could see another end of a message than the next, nothing may be served twice.
 *
 * Most of it is decided by the runtime's HTTP parser, and pinned here, so that another version that decides otherwise
 * is noticed.
 */
import { ok } from "../../lib/demo/simulated_replies.ts";
import { type Case, CHUNKED, HEADERS, message, POST, runCases } from "../support/hardening.ts";
import { startRig } from "../support/rig.ts";

const lengths: readonly Case[] = [
  { name: "one length", send: (p) => message([POST, ...HEADERS, p.length], p.body), want: "200", hits: 1 },
  {
    name: "one length twice",
    send: (p) => message([POST, ...HEADERS, p.length, p.length], p.body),
    want: "400 closed",
  },
  ...["content-length: 3", "content-length: 0", "content-length: 999"].flatMap((other): Case[] => [
    {
      name: `a second one: ${other}`,
      send: (p) => message([POST, ...HEADERS, p.length, other], p.body + p.hidden),
      want: "400 closed",
    },
    {
      name: `a first one: ${other}`,
      send: (p) => message([POST, ...HEADERS, other, p.length], p.body + p.hidden),
      want: "400 closed",
    },
  ]),
  ...[
    ["-1", "negative"],
    ["+38", "signed"],
    ["0x26", "hexadecimal"],
    ["38, 38", "a list"],
    ["38, 3", "a list of two"],
    ["3 8", "with a blank inside"],
    ["", "empty"],
    ["38;", "with more behind it"],
    ["99999999999999999999999999", "beyond all measure"],
  ].map(([value, name]): Case => ({
    name: `a length that is ${name}`,
    send: (p) => message([POST, ...HEADERS, `content-length: ${value}`], p.body + p.hidden),
    want: "400 closed",
  })),
  {
    name: "a length below the body's: what is left is no request",
    send: (p) => message([POST, ...HEADERS, `content-length: ${p.body.length - 2}`], p.body + p.hidden),
    want: "400 closed",
  },
];

const codings: readonly Case[] = [
  { name: "chunks", send: (p) => message([POST, ...HEADERS, CHUNKED], p.chunks), want: "200", hits: 1 },
  ...["Transfer-Encoding: CHUNKED", "transfer-encoding:   chunked", "TRANSFER-ENCODING:\tChunked"].map((
    line,
  ): Case => ({
    name: `chunks as ${JSON.stringify(line)}`,
    send: (p) => message([POST, ...HEADERS, line], p.chunks),
    want: "200",
    hits: 1,
  })),
  ...[
    [CHUNKED, "content-length: 4"],
    ["content-length: 4", CHUNKED],
    [CHUNKED, "content-length: 0"],
  ].map((lines): Case => ({
    name: `chunks and a length: ${lines}`,
    send: (p) => message([POST, ...HEADERS, ...lines], p.chunks + p.hidden),
    want: "400 closed",
  })),
  {
    name: "a length, and chunks that end at once",
    send: (p) => message([POST, ...HEADERS, p.length, CHUNKED], `0\r\n\r\n${p.hidden}`),
    want: "400 closed",
  },
  ...[
    "transfer-encoding: chunked, identity",
    "transfer-encoding: chunked, chunked",
    "transfer-encoding: \x0bchunked",
    "transfer-encoding: chunked \t",
    "transfer-encoding : chunked",
    "transfer-encoding:\r\n chunked",
    " transfer-encoding: chunked",
    "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
    "transfer-encoding: chunked\r\ntransfer-encoding: x",
  ].flatMap((line): Case[] => [
    {
      name: `${JSON.stringify(line)}`,
      send: (p) => message([POST, ...HEADERS, line], p.chunks + p.hidden),
      want: "400 closed",
    },
    {
      name: `${JSON.stringify(line)} and a length`,
      send: (p) => message([POST, ...HEADERS, line, p.length], p.body + p.hidden),
      want: "400 closed",
    },
  ]),
  // The parser takes off the chunks alone, and passes over a coding that is empty.
  ...[
    "transfer-encoding: gzip, chunked",
    "transfer-encoding: identity, chunked",
    "transfer-encoding: x\r\ntransfer-encoding: chunked",
  ].map((line): Case => ({
    name: `another coding below the chunks: ${JSON.stringify(line)}`,
    send: (p) => message([POST, ...HEADERS, line], p.chunks + p.hidden),
    want: "400 last closed",
  })),
  ...["xchunked", '"chunked"', "chunked;q=1"].flatMap((coding): Case[] => [
    {
      name: `a coding nobody knows: ${coding}`,
      send: (p) => message([POST, ...HEADERS, `transfer-encoding: ${coding}`], p.chunks + p.hidden),
      want: "400 last closed",
    },
    {
      name: `a coding nobody knows, and a length: ${coding}`,
      send: (p) => message([POST, ...HEADERS, `transfer-encoding: ${coding}`, p.length], p.body + p.hidden),
      want: "400 closed",
    },
  ]),
  {
    name: "no coding, but its header, and a length",
    send: (p) => message([POST, ...HEADERS, "transfer-encoding:", p.length], p.body + p.hidden),
    want: "400 last closed",
  },
  {
    name: "chunks under HTTP/1.0",
    send: (p) => message(["POST /v1/responses HTTP/1.0", ...HEADERS, CHUNKED], p.chunks + p.hidden),
    want: "400 closed",
  },
];

const chunks: readonly Case[] = [
  {
    name: "extensions",
    send: (p) =>
      message(
        [POST, ...HEADERS, CHUNKED],
        `${p.chunks.replace("\r\n", ';a="b;c"\r\n').replace("0\r\n", "0;x\r\n")}`,
      ),
    want: "200",
    hits: 1,
  },
  {
    name: "a size with zeros before it",
    send: (p) => message([POST, ...HEADERS, CHUNKED], `0000${p.chunks}`),
    want: "200",
    hits: 1,
  },
  {
    name: "trailers: they are no headers",
    send: (p) =>
      message(
        [POST, ...HEADERS, CHUNKED, "trailer: authorization"],
        p.chunks.replace(/\r\n$/, "authorization: Bearer SENT-trailer\r\nchatgpt-account-id: x\r\n\r\n"),
      ),
    want: "200",
    hits: 1,
  },
  ...[
    ["negative", "-1\r\n"],
    ["hexadecimal by name", "0x26\r\n"],
    ["beyond 64 bits", "fffffffffffffffff26\r\n"],
    ["empty", "\r\n"],
    ["followed by a line feed inside an extension", "26;a\n"],
  ].map(([name, size]): Case => ({
    name: `a size that is ${name}`,
    send: (p) => message([POST, ...HEADERS, CHUNKED], `${size}${p.body}\r\n0\r\n\r\n${p.hidden}`),
    want: "400 closed",
  })),
  {
    name: "data longer than its size",
    send: (p) =>
      message(
        [POST, ...HEADERS, CHUNKED],
        `${(p.body.length - 2).toString(16)}\r\n${p.body}\r\n0\r\n\r\n${p.hidden}`,
      ),
    want: "400 closed",
  },
  {
    name: "data without a line's end",
    send: (p) => message([POST, ...HEADERS, CHUNKED], p.chunks.replace("}\r\n", "}") + p.hidden),
    want: "400 closed",
  },
];

const lines: readonly Case[] = [
  {
    name: "bare line feeds",
    send: (p) => message([POST, ...HEADERS, p.length], p.body).replaceAll("\r\n", "\n"),
    want: "400 closed",
  },
  {
    name: "blank lines before it",
    send: (p) => `\r\n\r\n${message([POST, ...HEADERS, p.length], p.body)}`,
    want: "200",
    hits: 1,
  },
  ...[
    ["a folded header", "x-a: b\r\n c"],
    ["a folded length", "content-length:\r\n 0"],
    ["a blank before the colon", "x-a : b"],
    ["a length with a blank before the colon", "content-length : 0"],
    ["a blank before the name", " x-a: b"],
    ["a CR alone in a value", "x-a: b\rcontent-length: 0"],
    ["a NUL in a value", "x-a: b\0c"],
    ["a NUL in a name", "x\0: b"],
    ["no colon", "x-a"],
    ["no name", ": b"],
    ["a name that is no token", "x(a): b"],
    ["a name beyond ASCII", "x\xe9: b"],
  ].map(([name, line]): Case => ({
    name: name!,
    send: (p) => message([POST, ...HEADERS, line!, p.length], p.body + p.hidden),
    want: "400 closed",
  })),
  ...[
    "POST\t/v1/responses\tHTTP/1.1",
    "POST /v1/responses HTTP/1.2",
    "POST /v1/responses HTTP/1.1 x",
    "POST /v1/resp onses HTTP/1.1",
    "PO ST /v1/responses HTTP/1.1",
    "POST /v1/responses\0 HTTP/1.1",
    "POST /v1/responses\xe9 HTTP/1.1",
    "POST v1/responses HTTP/1.1",
    "POST localhost:80 HTTP/1.1",
  ].map((line): Case => ({
    name: `first line ${JSON.stringify(line)}`,
    send: (p) => message([line, ...HEADERS, p.length], p.body),
    want: "400 closed",
  })),
  ...["POST /v1/responses", "POST /v1/responses HTTP/0.9", "POST /v1/responses HTTP/2.0"].map((
    line,
  ): Case => ({
    name: `another version: ${JSON.stringify(line)}`,
    send: (p) => message([line, ...HEADERS, p.length], p.body + p.hidden),
    want: "505 last closed",
  })),
  {
    name: "a tunnel",
    send: (p) => message(["CONNECT /v1/responses HTTP/1.1", ...HEADERS, p.length], p.body),
    want: "closed",
  },
  {
    name: "the preface of HTTP/2",
    send: () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    want: "400 closed",
  },
  { name: "TLS", send: () => "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", want: "400 closed" },
  { name: "SOCKS", send: () => "\x05\x01\x00\r\n\r\n", want: "400 closed" },
];

const behind: readonly Case[] = [
  {
    name: "a request behind a body is a request of its own",
    send: (p) => message([POST, ...HEADERS, p.length], p.body + p.hidden),
    want: "200 200",
    hits: 1,
    behind: 1,
  },
  {
    name: "rubbish behind a body",
    send: (p) => message([POST, ...HEADERS, p.length], `${p.body}RUBBISH\r\n\r\n`),
    want: "400 closed",
  },
  // Bodies nobody asks for are passed over: what they hold is never read as a request.
  ...["GET /healthz HTTP/1.1", "GET / HTTP/1.1", "GET /readyz HTTP/1.1"].map((first): Case => ({
    name: `a request inside the body of ${first}`,
    send: (p) => message([first, ...HEADERS, `content-length: ${p.hidden.length}`], p.hidden),
    want: "200",
  })),
  {
    name: "a request inside the body of one that is not found",
    send: (p) =>
      message(["POST /v1/nothing HTTP/1.1", ...HEADERS, `content-length: ${p.hidden.length}`], p.hidden) +
      message(["GET /healthz HTTP/1.1", "host: localhost"]),
    want: "404 200",
  },
  {
    name: "a request inside the body of one without a key",
    send: (p) =>
      message([POST, "host: localhost", `content-length: ${p.hidden.length}`], p.hidden) +
      message(["GET /healthz HTTP/1.1", "host: localhost"]),
    want: "401 200",
  },
  {
    name: "a request inside the chunks of one without a key",
    send: (p) =>
      message(
        [POST, "host: localhost", CHUNKED],
        `${p.hidden.length.toString(16)}\r\n${p.hidden}\r\n0\r\n\r\n`,
      ) + message(["GET /healthz HTTP/1.1", "host: localhost"]),
    want: "401 200",
  },
];

for (const [name, cases] of Object.entries({ lengths, codings, chunks, lines, behind })) {
  Deno.test(`nothing is smuggled: ${name}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").otherwise(ok("A"));
    await runCases(rig, cases);
  });
}
