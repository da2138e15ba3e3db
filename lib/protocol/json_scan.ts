/**
 * Reading and editing the top level of a JSON object in its bytes, without parsing what lies below.
 *
 * Bodies reach 32 MiB and a rule needs a handful of fields; parsing whole costs ten times the scan and a
 * second copy would lose what must stay as it came (signed blocks, long numbers, spacing). Structure is
 * checked so far that a cut or trailing-garbage body is refused; numbers and nested commas are the upstream's.
 */

import { borrowBytes } from "../core/spare_buffers.ts";
import { indexOfByte } from "./find_byte.ts";

export type JsonKind = "string" | "number" | "object" | "array" | "true" | "false" | "null";

/** One `"key": value` of an object; offsets into the scanned bytes, `valueEnd` exclusive. */
export interface JsonMember {
  readonly key: string;
  /** Offset of the key's opening quote. */
  readonly keyStart: number;
  readonly valueStart: number;
  readonly valueEnd: number;
  readonly kind: JsonKind;
}

export type JsonScan =
  | {
    readonly ok: true;
    readonly members: JsonMember[];
    readonly objectEnd: number;
    /** A string at any depth begins as our own reasoning carriers do (`translate/reasoning_carrier.ts`). */
    readonly mayCarry: boolean;
  }
  /** `problem` is a sentence of ours for the client; `at` the offset where reading stopped. */
  | { readonly ok: false; readonly at: number; readonly problem: string };

export type JsonEdit =
  | { readonly key: string; readonly json: string }
  | { readonly key: string; readonly remove: true };

/** Deeper bodies are bombs: the official clients stay below 40. */
export const JSON_DEPTH_LIMIT = 512;
/** More top-level fields than any API has; each costs an object of ours. */
export const JSON_MEMBER_LIMIT = 4096;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const MINUS = 0x2d;
const ZERO = 0x30;

/** Measured: good for prose, code, markup, tool schemas and base64 alike. */
const NEAR_BYTES = 96;

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });
const ENCODER = new TextEncoder();

/** What a byte means outside of strings: 0 nothing, 1 a string begins, 2 a level opens, 3 a level closes. */
const MEANING = new Uint8Array(256);
MEANING[QUOTE] = 1;
MEANING[OPEN_BRACE] = 2;
MEANING[OPEN_BRACKET] = 2;
MEANING[CLOSE_BRACE] = 3;
MEANING[CLOSE_BRACKET] = 3;

/** Members of the object that is the whole body, in their order; duplicates stay, the last one counts. */
export function scanTopLevel(bytes: Uint8Array): JsonScan {
  sawCarrier = false;
  const start = skipSpace(bytes, 0);
  const scan = scanObject(bytes, start, bytes.length);
  if (!scan.ok) return scan;
  const rest = skipSpace(bytes, scan.objectEnd);
  return rest === bytes.length ? scan : { ok: false, at: rest, problem: "Text follows the JSON object" };
}

/** The kind of a value as a message names it, never the value itself. */
export function tellKind(kind: JsonKind): string {
  switch (kind) {
    case "true":
    case "false":
    case "null":
      return kind;
    case "object":
    case "array":
      return `an ${kind}`;
    case "string":
    case "number":
      return `a ${kind}`;
    default:
      return kind satisfies never;
  }
}

/** The member that counts: the last of that name, or `null`. */
export function findMember(members: readonly JsonMember[], key: string): JsonMember | null {
  for (let index = members.length - 1; index >= 0; index--) {
    if (members[index]!.key === key) return members[index]!;
  }
  return null;
}

/** One level below `member`, e.g. `metadata` → `user_id`; `null` when it is no object or has no such key. */
export function findNested(bytes: Uint8Array, member: JsonMember | null, key: string): JsonMember | null {
  if (member === null || member.kind !== "object") return null;
  const scan = scanObject(bytes, member.valueStart, member.valueEnd);
  return scan.ok ? findMember(scan.members, key) : null;
}

/** The string with its escapes resolved; `null` when the member is absent, no string, or badly escaped. */
export function readStringValue(bytes: Uint8Array, member: JsonMember | null): string | null {
  if (member === null || member.kind !== "string") return null;
  return decodeString(bytes, member.valueStart, member.valueEnd);
}

export function readBooleanValue(_bytes: Uint8Array, member: JsonMember | null): boolean | null {
  if (member?.kind === "true") return true;
  return member?.kind === "false" ? false : null;
}

/**
 * Copies the body with some top-level members replaced, removed (with their comma) or appended.
 *
 * Every other byte stays as it was. All members of an edited name are edited, so that no reader of duplicates
 * sees the old value. Returns the input itself when nothing has to change.
 *
 * @param members  as `scanTopLevel` gave them for these bytes.
 * @param edits    at most one per key counts: the last.
 */
export function editTopLevel(
  bytes: Uint8Array<ArrayBuffer>,
  members: readonly JsonMember[],
  edits: readonly JsonEdit[],
): Uint8Array<ArrayBuffer> {
  const wanted = new Map(edits.map((edit) => [edit.key, edit]));
  const isRemoved = (member: JsonMember) => "remove" in (wanted.get(member.key) ?? {});
  const lastKept = members.findLastIndex((member) => !isRemoved(member));
  const splices: { start: number; end: number; text: string }[] = [];
  members.forEach((member, index) => {
    const edit = wanted.get(member.key);
    if (edit === undefined) return;
    if ("json" in edit) splices.push({ start: member.valueStart, end: member.valueEnd, text: edit.json });
    else if (index < lastKept) {
      splices.push({ start: member.keyStart, end: members[index + 1]!.keyStart, text: "" });
    } else {
      // Nothing follows that stays: the comma to take is the one before.
      const start = index === 0 ? member.keyStart : members[index - 1]!.valueEnd;
      splices.push({ start, end: member.valueEnd, text: "" });
    }
  });
  const added = [...wanted.values()].flatMap((edit) =>
    "json" in edit && findMember(members, edit.key) === null
      ? [`${JSON.stringify(edit.key)}:${edit.json}`]
      : []
  );
  if (added.length > 0) {
    const place = lastKept === -1 ? bytes.indexOf(OPEN_BRACE) + 1 : members[lastKept]!.valueEnd;
    splices.push({ start: place, end: place, text: (lastKept === -1 ? "" : ",") + added.join(",") });
  }
  if (splices.length === 0) return bytes;
  // Several may start at one offset: a replacement ends there, the addition is empty, a removal goes on from it.
  splices.sort((a, b) => a.start - b.start || a.end - b.end);
  return applySplices(bytes, splices);
}

function applySplices(
  bytes: Uint8Array<ArrayBuffer>,
  splices: readonly { start: number; end: number; text: string }[],
): Uint8Array<ArrayBuffer> {
  const texts = splices.map((splice) => ENCODER.encode(splice.text));
  const growth = splices.reduce((sum, splice, i) => sum + texts[i]!.length - (splice.end - splice.start), 0);
  const out = borrowBytes(bytes.length + growth);
  let from = 0;
  let to = 0;
  splices.forEach((splice, index) => {
    out.set(bytes.subarray(from, splice.start), to);
    to += splice.start - from;
    out.set(texts[index]!, to);
    to += texts[index]!.length;
    from = splice.end;
  });
  out.set(bytes.subarray(from), to);
  return out;
}

function scanObject(bytes: Uint8Array, start: number, limit: number): JsonScan {
  if (bytes[start] !== OPEN_BRACE || start >= limit) return fail(start, "The body is not a JSON object");
  const members: JsonMember[] = [];
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACE) return { ok: true, members, objectEnd: at + 1, mayCarry: sawCarrier };
  for (;;) {
    if (bytes[at] !== QUOTE) return fail(at, "A field name must be a string");
    if (members.length === JSON_MEMBER_LIMIT) return fail(at, "The JSON object has too many fields");
    const keyStart = at;
    const keyEnd = skipString(bytes, at);
    if (keyEnd === -1) return fail(bytes.length, "The JSON ends inside a string");
    const key = decodeString(bytes, keyStart, keyEnd);
    if (key === null) return fail(keyStart, "A field name is badly escaped");
    at = skipSpace(bytes, keyEnd);
    if (bytes[at] !== COLON) return fail(at, "A colon must follow a field name");
    const valueStart = skipSpace(bytes, at + 1);
    const kind = kindAt(bytes, valueStart);
    if (kind === null) return fail(valueStart, "A value is not JSON");
    const valueEnd = skipValue(bytes, valueStart, kind);
    if (typeof valueEnd === "string") return fail(valueStart, valueEnd);
    members.push({ key, keyStart, valueStart, valueEnd, kind });
    at = skipSpace(bytes, valueEnd);
    if (bytes[at] === CLOSE_BRACE) return { ok: true, members, objectEnd: at + 1, mayCarry: sawCarrier };
    if (bytes[at] !== COMMA) return fail(at, "A comma or the end of the object must follow a value");
    at = skipSpace(bytes, at + 1);
  }
}

function fail(at: number, problem: string): JsonScan {
  return { ok: false, at, problem };
}

/** What the value is that begins at `start`, by its first byte; `null` for what begins none. */
function kindAt(bytes: Uint8Array, start: number): JsonKind | null {
  const first = bytes[start];
  switch (first) {
    case QUOTE:
      return "string";
    case OPEN_BRACE:
      return "object";
    case OPEN_BRACKET:
      return "array";
    case 0x74:
      return "true";
    case 0x66:
      return "false";
    case 0x6e:
      return "null";
    // Where the text ends it is said to end, and not to be wrong.
    case undefined:
      return "number";
  }
  const digit = first === MINUS ? bytes[start + 1] : first;
  return digit !== undefined && digit >= ZERO && digit <= ZERO + 9 ? "number" : null;
}

/** End of the value at `start`, or the problem as a sentence. */
function skipValue(bytes: Uint8Array, start: number, kind: JsonKind): number | string {
  if (kind === "string") {
    const end = skipString(bytes, start);
    return end === -1 ? "The JSON ends inside a string" : end;
  }
  if (kind === "object" || kind === "array") return skipLevels(bytes, start);
  if (start >= bytes.length) return "The JSON ends where a value must follow";
  let end = start;
  while (end < bytes.length && !endsScalar(bytes[end]!)) end++;
  if (end - start > 400) return "A number is too long";
  if (kind === "number") return end;
  if (end - start !== kind.length) return "A value is not JSON";
  for (let at = start; at < end; at++) {
    if (bytes[at] !== kind.charCodeAt(at - start)) return "A value is not JSON";
  }
  return end;
}

function endsScalar(byte: number): boolean {
  return byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || byte === COLON ||
    byte === QUOTE || byte <= 0x20;
}

/** `hf.`, with which every carrier begins: looked for on the way, where a search of its own would take as long again. */
const CARRIER_H = 0x68;
const CARRIER_F = 0x66;
const CARRIER_DOT = 0x2e;
/** Of the scan under way. */
let sawCarrier = false;

/** What closes each open level; the body itself is level 1. One for all scans: none is interrupted by another. */
const closers = new Uint8Array(JSON_DEPTH_LIMIT - 1);

/** End of the object or array at `start`: brackets are matched by kind in a loop, so depth costs no stack. */
function skipLevels(bytes: Uint8Array, start: number): number | string {
  let depth = 0;
  let at = start;
  const length = bytes.length;
  while (at < length) {
    const byte = bytes[at]!;
    const meaning = MEANING[byte]!;
    if (meaning === 0) {
      at++;
    } else if (meaning === 1) {
      at = skipString(bytes, at);
      if (at === -1) return "The JSON ends inside a string";
    } else if (meaning === 2) {
      if (depth === closers.length) return "The JSON is nested too deeply";
      closers[depth++] = byte + 2; // `}` is `{` + 2 and `]` is `[` + 2 in ASCII.
      at++;
    } else {
      if (closers[--depth] !== byte) return "A bracket does not match";
      at++;
      if (depth === 0) return at;
    }
  }
  return "The JSON ends before its brackets are closed";
}

/**
 * Offset after the closing quote of the string that opens at `start`, or -1.
 *
 * A search costs as much as a loop over some hundred bytes, so the loop goes first each time: source code in prompts
 * has an escaped quote every few words, base64 has none in a megabyte.
 */
function skipString(bytes: Uint8Array, start: number): number {
  const length = bytes.length;
  let at = start + 1;
  if (bytes[at] === CARRIER_H && bytes[at + 1] === CARRIER_F && bytes[at + 2] === CARRIER_DOT) {
    sawCarrier = true;
  }
  for (;;) {
    const near = Math.min(length, at + NEAR_BYTES);
    for (; at < near; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) return at + 1;
      if (byte === BACKSLASH) at++;
    }
    // `at` may stand one past an escaped byte, never on one.
    const quote = indexOfByte(bytes, QUOTE, at);
    if (quote === -1) return -1;
    let slash = quote;
    while (slash > at && bytes[slash - 1] === BACKSLASH) slash--;
    if ((quote - slash) % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

function skipSpace(bytes: Uint8Array, start: number): number {
  let at = start;
  for (;;) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at++;
  }
}

/** Names and ids are short and plain: put together without the decoder, which costs more than they do. */
const PLAIN_BYTES = 64;
/** The same few names come again and again; each has its place here until another one takes it. */
const KNOWN_TEXTS: string[] = new Array(256).fill("");

function decodeString(bytes: Uint8Array, start: number, end: number): string | null {
  if (end - start <= PLAIN_BYTES) {
    let place = end - start;
    let at = start + 1;
    for (; at < end - 1; at++) {
      const byte = bytes[at]!;
      if (byte >= 0x80 || byte === BACKSLASH) break;
      place = (place * 31 + byte) & 0xffff;
    }
    if (at === end - 1) {
      const known = KNOWN_TEXTS[place & 0xff]!;
      if (isText(bytes, start + 1, at, known)) return known;
      return KNOWN_TEXTS[place & 0xff] = String.fromCharCode.apply(
        null,
        bytes.subarray(start + 1, at) as never,
      );
    }
  }
  const text = DECODER.decode(bytes.subarray(start, end));
  if (!text.includes("\\")) return text.slice(1, -1);
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isText(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (text.length !== end - start) return false;
  for (let at = start; at < end; at++) if (bytes[at] !== text.charCodeAt(at - start)) return false;
  return true;
}
