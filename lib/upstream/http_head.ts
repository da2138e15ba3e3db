/**
 * Heads of HTTP/1.1 as a client writes and reads them (RFC 9112). Pure: bytes and values, no sockets.
 *
 * Strict where two readers could differ about where a message ends: that is how one answer becomes two.
 */
import { Buffer } from "node:buffer";
import { makeBytes } from "../core/byte_memory.ts";
import { HeaderFields, type HeaderList } from "../core/header_fields.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** How the end of a body is told. */
export type BodyFraming =
  | { readonly kind: "none" }
  | { readonly kind: "length"; readonly bytes: number }
  | { readonly kind: "chunked" }
  /** Until the connection ends. */
  | { readonly kind: "close" };

export interface AnswerHead {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly framing: BodyFraming;
  /** The connection may carry another request once the body has ended. */
  readonly keepAlive: boolean;
}

export type HeadResult =
  | { readonly kind: "head"; readonly head: AnswerHead; readonly end: number }
  /** `next`: where the head not yet whole begins; interim ones before it are done with. */
  | { readonly kind: "incomplete"; readonly next: number }
  | { readonly kind: "malformed" };

/** Longer heads are an attack or an accident; Cloudflare's are about 2 KB, with cookies. */
export const HEAD_LIMIT_BYTES = 131_072;

const LF = 10;
const CR = 13;
const STATUS_LINE = /^HTTP\/1\.([01]) ([0-9]{3})(?: |$)/;
const LENGTH = /^[0-9]{1,15}$/;

const MALFORMED: HeadResult = { kind: "malformed" };

/**
 * Reads the head of a final answer; interim ones (1xx other than 101) before it are passed over.
 *
 * @param method  of the request: an answer to HEAD has no body, whatever it says.
 * @param seenBytes  so many bytes from `start` on were looked at before, and no head ended in them.
 */
export function readAnswerHead(
  bytes: Bytes,
  start: number,
  end: number,
  method: string,
  seenBytes = 0,
): HeadResult {
  // The blank line may have begun in what was seen.
  for (let at = start, from = Math.max(start, start + seenBytes - BLANK_LINE_BYTES);;) {
    const headEnd = findHeadEnd(bytes, from, end);
    if (headEnd === -1) {
      if (!startsLikeHttp(bytes, at, end) || end - at > HEAD_LIMIT_BYTES) return MALFORMED;
      return { kind: "incomplete", next: at };
    }
    if (headEnd - at > HEAD_LIMIT_BYTES) return MALFORMED;
    const head = parseHead(textOf(bytes, at, headEnd), method);
    if (head === null) return MALFORMED;
    if (head.status >= 200 || head.status === 101) return { kind: "head", head, end: headEnd };
    at = from = headEnd;
  }
}

const BLANK_LINE_BYTES = 4;

/** Offset after the blank line, or -1. A bare LF ends a line too (RFC 9112 section 2.2). */
function findHeadEnd(bytes: Bytes, start: number, end: number): number {
  for (let at = bytes.indexOf(LF, start); at !== -1 && at < end; at = bytes.indexOf(LF, at + 1)) {
    const next = at + 1;
    if (next < end && bytes[next] === LF) return next + 1;
    if (next + 1 < end && bytes[next] === CR && bytes[next + 1] === LF) return next + 2;
  }
  return -1;
}

const HTTP = [0x48, 0x54, 0x54, 0x50, 0x2f];

/** Another protocol is told by its first bytes, without waiting for a blank line that never comes. */
function startsLikeHttp(bytes: Bytes, start: number, end: number): boolean {
  const length = Math.min(HTTP.length, end - start);
  for (let at = 0; at < length; at++) if (bytes[start + at] !== HTTP[at]) return false;
  return true;
}

function textOf(bytes: Bytes, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
}

function parseHead(text: string, method: string): AnswerHead | null {
  const lines = text.split("\n");
  const first = STATUS_LINE.exec(withoutCr(lines[0]!));
  if (first === null) return null;
  const status = Number(first[2]);
  const headers = new HeaderFields();
  for (let index = 1; index < lines.length; index++) {
    const line = withoutCr(lines[index]!);
    if (line === "") break;
    const colon = line.indexOf(":");
    // A CR alone ends a line to some readers.
    if (colon <= 0 || line.includes("\r")) return null;
    try {
      // Refuses names and values that cannot be: blanks before the colon, folded lines, NUL.
      headers.append(line.slice(0, colon), line.slice(colon + 1));
    } catch {
      return null;
    }
  }
  const framing = readFraming(status, headers, method);
  if (framing === null) return null;
  // After a 101 the connection speaks something else, whoever asked for it.
  const doubted = framing.kind === "close" || status === 101 ||
    (headers.has("transfer-encoding") && headers.has("content-length"));
  return { status, headers, framing, keepAlive: first[1] === "1" && !doubted && !asksToClose(headers) };
}

function withoutCr(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** RFC 9112 section 6.3; null where the end of the body cannot be known for sure. */
function readFraming(status: number, headers: HeaderList, method: string): BodyFraming | null {
  if (method === "HEAD" || status < 200 || status === 204 || status === 304) return { kind: "none" };
  const coding = headers.get("transfer-encoding");
  if (coding !== null) return coding.toLowerCase() === "chunked" ? { kind: "chunked" } : null;
  const length = headers.get("content-length");
  if (length === null) return { kind: "close" };
  // The same length said twice is one length; two lengths are two messages.
  const [stated, ...others] = length.split(",").map((part) => part.trim());
  if (!LENGTH.test(stated!) || others.some((other) => other !== stated)) return null;
  return { kind: "length", bytes: Number(stated) };
}

function asksToClose(headers: HeaderList): boolean {
  const connection = headers.get("connection");
  return connection !== null && connection.toLowerCase().split(",").some((word) => word.trim() === "close");
}

export interface RequestLine {
  readonly method: string;
  /** Path with query, or the whole URL toward a forwarding proxy. */
  readonly target: string;
  /** Value of `host`. */
  readonly host: string;
}

/** Stated by the writer itself; the caller's are left out. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "expect",
  "upgrade",
]);

/** Methods for which a request without a body says so. */
const BODY_METHODS: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);

/**
 * The head of a request, up to and including the blank line.
 *
 * @param extra  headers beside the caller's, which win over those of the same name.
 * @param body  length of the body, `chunked`, or null for none.
 */
export function writeRequestHead(
  line: RequestLine,
  headers: HeaderList,
  extra: Readonly<Record<string, string>>,
  body: number | "chunked" | null,
): string {
  let text = `${line.method} ${line.target} HTTP/1.1\r\nhost: ${line.host}\r\n`;
  headers.forEach((value, name) => {
    if (!OWN_HEADERS.has(name) && extra[name] === undefined) text += `${name}: ${value}\r\n`;
  });
  for (const name in extra) text += `${name}: ${extra[name]}\r\n`;
  if (body === "chunked") text += "transfer-encoding: chunked\r\n";
  else if (body !== null || BODY_METHODS.has(line.method)) text += `content-length: ${body ?? 0}\r\n`;
  return `${text}\r\n`;
}

/** Head and the bytes that go with it in one piece. */
export function encodeHead(head: string, body: Bytes | null): Bytes {
  const bytes = makeBytes(head.length + (body?.length ?? 0));
  // Header values are bytes, not text: Latin-1 keeps each as it is.
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).write(head, 0, "latin1");
  if (body !== null) bytes.set(body, head.length);
  return bytes;
}
