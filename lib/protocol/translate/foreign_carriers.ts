/**
 * Takes our own carriers out of a request that goes to an upstream of the client's own protocol.
 *
 * A conversation that was served by another provider before brings reasoning of that provider back in a carrier
 * (`reasoning_carrier.ts`). Translators unpack it; where nothing is translated the upstream would refuse the whole
 * request for it. Every other byte stays as it was: signed blocks are checked byte for byte (field case B112).
 */
import { findMember, type JsonMember, readStringValue, scanTopLevel } from "../json_scan.ts";
import type { TranslatedProtocol } from "./translator.ts";

const CARRIER = /^hf\.(?:sig1|red1|txt1|enc1):/;

interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * @param body  a JSON request of that protocol.
 * @returns the body without our carriers; the same bytes when there is none, or the body cannot be read.
 */
export function withoutForeignCarriers(
  protocol: TranslatedProtocol,
  body: Uint8Array<ArrayBuffer>,
): Uint8Array<ArrayBuffer> {
  if (protocol === "chat") return body;
  const top = scanTopLevel(body);
  if (!top.ok || !top.mayCarry) return body;
  const list = findMember(top.members, protocol === "responses" ? "input" : "messages");
  if (list?.kind !== "array") return body;
  const elements = elementsOf(body, list.valueStart, list.valueEnd);
  const gone = protocol === "responses"
    ? removals(elements, elements.map((item) => isForeignItem(body, item)))
    : removedBlocks(body, elements);
  return gone.length === 0 ? body : without(body, gone);
}

/** Foreign thinking blocks of each message; a message of nothing else goes as a whole. */
function removedBlocks(body: Uint8Array<ArrayBuffer>, messages: readonly Span[]): Span[] {
  const inside: Span[][] = [];
  const whole = messages.map((message, index) => {
    const members = membersOf(body, message);
    const content = findMember(members, "content");
    inside[index] = [];
    if (content?.kind !== "array") return false;
    const start = message.start + content.valueStart;
    const blocks = elementsOf(body, start, message.start + content.valueEnd);
    const foreign = blocks.map((block) => isForeignBlock(body, block));
    if (blocks.length > 0 && foreign.every(Boolean)) return true;
    inside[index] = removals(blocks, foreign);
    return false;
  });
  const outer = removals(messages, whole);
  return [...outer, ...inside.flatMap((spans, index) => whole[index] ? [] : spans)]
    .sort((a, b) => a.start - b.start);
}

function isForeignItem(body: Uint8Array<ArrayBuffer>, item: Span): boolean {
  const members = membersOf(body, item);
  return text(body, item, members, "type") === "reasoning" &&
    CARRIER.test(text(body, item, members, "encrypted_content") ?? "");
}

function isForeignBlock(body: Uint8Array<ArrayBuffer>, block: Span): boolean {
  const members = membersOf(body, block);
  return text(body, block, members, "type") === "thinking" &&
    CARRIER.test(text(body, block, members, "signature") ?? "");
}

function membersOf(body: Uint8Array, span: Span): readonly JsonMember[] {
  const scan = scanTopLevel(body.subarray(span.start, span.end));
  return scan.ok ? scan.members : [];
}

function text(body: Uint8Array, span: Span, members: readonly JsonMember[], key: string): string | null {
  return readStringValue(body.subarray(span.start, span.end), findMember(members, key));
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const SPACES: ReadonlySet<number> = new Set([0x20, 0x0a, 0x0d, 0x09]);
const OPENERS: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSERS: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** The elements of the array that lies in `start`..`end`, without the space around them. */
function elementsOf(bytes: Uint8Array, start: number, end: number): Span[] {
  const elements: Span[] = [];
  let depth = 0;
  let from = start + 1;
  for (let at = start + 1; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) at = stringEnd(bytes, at);
    else if (OPENERS.has(byte)) depth++;
    else if (CLOSERS.has(byte) && depth > 0) depth--;
    else if (depth === 0 && (byte === COMMA || at === end - 1)) {
      const element = trimmed(bytes, from, at);
      if (element.start < element.end) elements.push(element);
      from = at + 1;
    }
  }
  return elements;
}

/** Offset of the quote that closes the string opening at `start`. */
function stringEnd(bytes: Uint8Array, start: number): number {
  for (let quote = start;;) {
    quote = bytes.indexOf(QUOTE, quote + 1);
    if (quote === -1) return bytes.length;
    let slash = quote;
    while (bytes[slash - 1] === BACKSLASH) slash--;
    if ((quote - slash) % 2 === 0) return quote;
  }
}

function trimmed(bytes: Uint8Array, start: number, end: number): Span {
  while (start < end && SPACES.has(bytes[start]!)) start++;
  while (end > start && SPACES.has(bytes[end - 1]!)) end--;
  return { start, end };
}

/** The spans to cut so that the marked elements go, each with one comma. */
function removals(elements: readonly Span[], marked: readonly boolean[]): Span[] {
  const lastKept = marked.lastIndexOf(false);
  return elements.flatMap((element, index) => {
    if (!marked[index]) return [];
    if (index < lastKept) return [{ start: element.start, end: elements[index + 1]!.start }];
    // Nothing that stays follows: the comma to take is the one before.
    return [{ start: index === 0 ? element.start : elements[index - 1]!.end, end: element.end }];
  });
}

function without(bytes: Uint8Array<ArrayBuffer>, gone: readonly Span[]): Uint8Array<ArrayBuffer> {
  const kept = new Uint8Array(bytes.length - gone.reduce((sum, { start, end }) => sum + end - start, 0));
  let from = 0;
  let to = 0;
  for (const { start, end } of gone) {
    kept.set(bytes.subarray(from, start), to);
    to += start - from;
    from = end;
  }
  kept.set(bytes.subarray(from), to);
  return kept;
}
