/** What is fuzzed of the wire itself: heads, chunks, codings, request targets, WebSocket frames, management input. */
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { z } from "zod";
import { matchRoute } from "../../lib/protocol/route.ts";
import { namesOtherHost, splitTarget } from "../../lib/proxy/handler.ts";
import { readQueryInput } from "../../lib/proxy/json_input.ts";
import { SocketFrames } from "../../lib/proxy/socket_frames.ts";
import { createInflate } from "../../lib/runtime/inflate.ts";
import { ChunkedBody } from "../../lib/upstream/chunked_body.ts";
import { undoMissingLabel } from "../../lib/upstream/content_coding.ts";
import { type HeadResult, readAnswerHead } from "../../lib/upstream/http_head.ts";
import { type Bytes, equal, join, promise, type Source } from "./mutate.ts";

const DECODER = new TextDecoder();
const BINARY = new TextDecoder("latin1");

const HEADS = [
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n",
  "HTTP/1.0 503 Busy\nretry-after: 1\nconnection: close, x\n\n",
  "HTTP/1.1 429 Too Many\r\nContent-Length: 5\r\nContent-Length: 5\r\nset-cookie: a=b\r\nset-cookie: c=d\r\n\r\n",
];

/** Read as a connection does it, piece by piece, and at once: the same head. */
export function readHeads(source: Source): void {
  const bytes = source.broken(HEADS);
  const method = source.pick(["POST", "GET", "HEAD"]);
  const whole = readAnswerHead(bytes, 0, bytes.length, method);
  if (whole.kind === "head") {
    const { status, framing } = whole.head;
    promise(whole.end <= bytes.length && status >= 101 && status <= 999, "a head ends outside its bytes");
    promise(framing.kind !== "length" || Number.isSafeInteger(framing.bytes), "a length is no length");
  }
  let next = 0;
  let seenBytes = 0;
  let piecewise: HeadResult = { kind: "incomplete", next: 0 };
  let end = 0;
  for (const piece of source.cut(bytes)) {
    end += piece.length;
    piecewise = readAnswerHead(bytes, next, end, method, seenBytes);
    if (piecewise.kind !== "incomplete") break;
    promise(piecewise.next >= next && piecewise.next <= end, "a head begins outside its bytes");
    next = piecewise.next;
    seenBytes = end - next;
  }
  // In pieces it may be given up earlier, never later and never otherwise.
  const same = piecewise.kind === whole.kind ||
    (piecewise.kind === "malformed" && whole.kind === "incomplete");
  promise(same, `a head is ${whole.kind} at once and ${piecewise.kind} in pieces`);
  if (whole.kind === "head" && piecewise.kind === "head") {
    promise(whole.end === piecewise.end, "a head ends elsewhere in pieces");
  }
}

const CHUNKS = [
  "5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n",
  "0000000a\r\n0123456789\r\n0\r\nx: y\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
  "1\na\n0\n\n",
  "fffffff\r\nabc",
];

export function readChunks(source: Source): void {
  const bytes = source.broken(CHUNKS);
  const [once, pieces] = [[bytes], source.cut(bytes)].map(unchunk);
  promise(
    equal(once!.payload, pieces!.payload) && once!.state === pieces!.state && once!.rest === pieces!.rest,
    "a chunked body differs by where it is cut",
  );
  promise(once!.payload.length <= bytes.length, "a chunked body gives more than it was fed");
}

function unchunk(pieces: readonly Bytes[]) {
  const chunked = new ChunkedBody();
  const payload: Bytes[] = [];
  let rest = 0;
  for (const piece of pieces) {
    const unread = { bytes: piece.slice(), start: 0, end: piece.length };
    if (chunked.state === "open") {
      chunked.take(unread);
      payload.push(unread.bytes.slice(chunked.payloadStart, chunked.payloadEnd));
    }
    rest += piece.length - unread.start;
  }
  return { payload: join(...payload), state: chunked.state, rest };
}

const UNPACKED_LIMIT = 20_000;
const INFLATE = createInflate();
const PACKERS = {
  gzip: gzipSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
  deflate: deflateSync,
} as const;
type Coding = keyof typeof PACKERS;

interface Packed {
  readonly plain: Bytes;
  readonly bytes: Bytes;
  /** As `content-encoding` has them: in the order they were applied. */
  readonly codings: readonly Coding[];
}

/** Packed once: packing costs a hundred times what unpacking does. */
const PACKED: readonly Packed[] = [0, 1, 100, 10_000, UNPACKED_LIMIT, UNPACKED_LIMIT + 1, 50 * UNPACKED_LIMIT]
  .flatMap((length) => {
    const names = Object.keys(PACKERS) as Coding[];
    return names.flatMap((first) => [[first], ...names.map((second) => [first, second])]).map((codings) => {
      const plain = new Uint8Array(length).fill(0x61);
      const bytes = codings.reduce<Bytes>((packed, coding) => new Uint8Array(PACKERS[coding](packed)), plain);
      return { plain, bytes, codings };
    });
  });

/** Sound bodies, bombs and broken ones: never more than the limit, never an exception. */
export async function unpack(source: Source): Promise<void> {
  const { plain, bytes, codings } = source.pick(PACKED);
  // Corrupt brotli is refused after a while, and leaks in the runtime until then: 60 inputs would be the last.
  const isSound = codings.includes("br") || source.chance(0.3);
  const sent = isSound ? bytes : source.brokenBytes(bytes);
  const read = await INFLATE.decode(sent, codings.join(source.pick([",", ", "])), UNPACKED_LIMIT);
  promise(!read.ok || read.bytes.length <= UNPACKED_LIMIT, "a body unpacks beyond its limit");
  if (isSound) {
    const fits = plain.length <= UNPACKED_LIMIT;
    promise(read.ok ? fits && equal(read.bytes, plain) : !fits, `a sound body unpacks wrongly: ${codings}`);
  }
  undoMissingLabel(sent, UNPACKED_LIMIT);
}

const TARGETS = [
  "/v1/responses?x=y",
  "//files/../v1/messages",
  "*",
  "http://localhost:8317/v1/responses?x=y",
  "http://[::1]/files/file-1/uploaded",
  "http://a/backend-api/codex/responses#f",
  "ftp://b/v1/messages",
];
const UNSAFE_PATH = /\.\.|\/\/|[%\\?#;\s]|\/$/;

export function readTargets(source: Source): void {
  const url = BINARY.decode(source.broken(TARGETS));
  const split = splitTarget(url);
  if (split === null) return;
  const { path, search } = split;
  promise(path.startsWith("/") && !path.includes("?"), "a path is no path");
  promise(search === "" || search.startsWith("?"), "a query is no query");
  namesOtherHost(url, source.pick(["localhost:8317", "a", "", "[::1]"]));
  for (const method of ["GET", "POST"]) {
    const match = matchRoute(method, path, source.chance(0.2));
    if (match === null) continue;
    promise(!UNSAFE_PATH.test(match.upstreamPath), `an upstream path is not plain: ${match.upstreamPath}`);
  }
}

const FRAMES = [
  '{"type":"response.create","model":"m1","previous_response_id":"resp_1","input":[]}',
  '{"type":"response.completed","response":{"id":"resp_1","usage":{"input_tokens":1}}}',
  '{"type":"error","status":429,"error":{"code":"rate_limit_exceeded"},"headers":{"retry-after":"5"}}',
  '{"type":"codex.rate_limits","rate_limits":{"primary":{"used_percent":1,"window_minutes":300,"reset_at":1}}}',
];

export function readFrames(source: Source): void {
  const frames = new SocketFrames({
    dialect: source.pick(["responses", "realtime"] as const),
    openedAtMs: 0,
    now: () => 0,
    upstreamModel: (model) => model === "m1" ? "m2" : null,
    moved: source.chance(0.5),
    onTurn: () => {},
    onQuota: () => {},
  });
  for (let count = source.below(6); count >= 0; count--) {
    const text = DECODER.decode(source.broken(FRAMES));
    if (source.chance(0.5)) frames.fromUpstream(text);
    else {
      const said = frames.fromClient(text);
      if (said.kind === "answer") JSON.parse(said.text);
    }
  }
}

const QUERIES = ["?since=2026-01-01T00:00:00Z&limit=5", "?user=SENT-mine&limit=1e9&limit=2", "?%ff=%&=&&a"];
const QUERY = z.strictObject({
  since: z.string({ error: "must be a time" }).optional(),
  user: z.string({ error: "must be a name" }).max(5, { error: "must be short" }).optional(),
  limit: z.string().regex(/^\d+$/, { error: "must be a number" }).optional(),
}, { error: "must be a query" });

export function readQueries(source: Source): void {
  const input = readQueryInput(DECODER.decode(source.broken(QUERIES)), QUERY);
  if (input.ok) return;
  const named = /"[^"]*SENT/.test(input.message);
  // Names of fields are repeated, values are not.
  promise(!input.message.includes("SENT-mine") || named, "a mistake repeats a value");
}
