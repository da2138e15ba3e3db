/**
 * One SSE frame: its exact bytes, and views into them that are decoded only when asked for.
 *
 * The framer in `sse.ts` makes frames; this file says what a frame is and how one is written.
 */
import { JsonCompletion } from "./json_completion.ts";

export interface SseFrame {
  /** The exact bytes, with the blank line that ends it and any blank lines before it. */
  readonly raw: Uint8Array<ArrayBuffer>;
  /** False when `raw` lacks its blank line (glued or last frame): send `closedBytes(frame)` then. */
  readonly closed: boolean;
  /** Value of its `event:` line. */
  readonly event: string | null;
  /** True when the data is not valid UTF-8; `data()` then holds replacement characters. */
  readonly malformedUtf8: boolean;
  /** The data lines joined by LF; `null` when there is none (comments, `id:`, `retry:`). Decoded once, on demand. */
  data(): string | null;
  /** The data as bytes when it is one line, else `null`. */
  dataBytes(): Uint8Array<ArrayBuffer> | null;
  /** The `type` when the data is one line `{"type":"…" … }`, else `null`. Nothing is parsed. */
  typeHint(): string | null;
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const CLOSE_BRACE = 0x7d;
const EMPTY = new Uint8Array(0);
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });
const STRICT_DECODER = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });
const LEADING_TYPE = ENCODER.encode('{"type":');

/** The frame as a client can read it: with the blank line it may have come without. */
export function closedBytes(frame: SseFrame): Uint8Array<ArrayBuffer> {
  if (frame.closed) return frame.raw;
  const last = frame.raw.at(-1);
  // LF after CR would only complete a CRLF: the blank line is written in the frame's own line ends.
  const lineEnd = last === CR ? CR : LF;
  const missing = last === lineEnd ? 1 : 2;
  const bytes = new Uint8Array(frame.raw.length + missing).fill(lineEnd);
  bytes.set(frame.raw);
  return bytes;
}

/** Writes one frame. `data` may have several lines; `event` none. */
export function encodeFrame(event: string | null, data: string): Uint8Array<ArrayBuffer> {
  const head = event === null ? "" : `event: ${event}\n`;
  return ENCODER.encode(`${head}data: ${data.replaceAll(/\r\n|\r|\n/g, "\ndata: ")}\n\n`);
}

/** Made when its first line is awaited, given out when its last one was read; offsets count from its first byte. */
export class DraftFrame implements SseFrame {
  raw: Uint8Array<ArrayBuffer> = EMPTY;
  closed = true;
  hasLines = false;
  hasData = false;
  #eventStart = -1;
  #eventEnd = -1;
  #dataStart = -1;
  #dataEnd = -1;
  /** Further data lines as start, end, start, end … */
  #moreData: number[] | null = null;
  #completion: JsonCompletion | null = null;
  #linesFed = 0;
  #text: string | null = null;
  #malformed: boolean | null = null;

  setEvent(start: number, end: number): void {
    this.#eventStart = start;
    this.#eventEnd = end;
  }

  addData(start: number, end: number): void {
    if (this.hasData) {
      (this.#moreData ??= []).push(start, end);
    } else {
      this.hasData = true;
      this.#dataStart = start;
      this.#dataEnd = end;
    }
  }

  /** Whether the data lines so far are one complete JSON value; each line is looked at once over all calls. */
  isComplete(bytes: Uint8Array, origin: number): boolean {
    const completion = this.#completion ??= new JsonCompletion();
    if (this.#linesFed === 0) {
      completion.feed(bytes, origin + this.#dataStart, origin + this.#dataEnd);
      this.#linesFed = 1;
    }
    const more = this.#moreData ?? [];
    for (; this.#linesFed * 2 <= more.length; this.#linesFed++) {
      const at = this.#linesFed * 2 - 2;
      completion.feed(bytes, origin + more[at]!, origin + more[at + 1]!);
    }
    return completion.isComplete();
  }

  finish(raw: Uint8Array<ArrayBuffer>, closed: boolean): this {
    this.raw = raw;
    this.closed = closed;
    this.#completion = null;
    return this;
  }

  get event(): string | null {
    return this.#eventStart === -1 ? null : readWord(this.raw, this.#eventStart, this.#eventEnd);
  }

  get malformedUtf8(): boolean {
    return this.#malformed ??= (this.data() ?? "").includes("\ufffd") && !this.#isValidUtf8();
  }

  data(): string | null {
    if (!this.hasData) return null;
    if (this.#text === null) {
      this.#text = DECODER.decode(this.raw.subarray(this.#dataStart, this.#dataEnd));
      const more = this.#moreData ?? [];
      for (let at = 0; at < more.length; at += 2) {
        this.#text += "\n" + DECODER.decode(this.raw.subarray(more[at], more[at + 1]));
      }
    }
    return this.#text;
  }

  dataBytes(): Uint8Array<ArrayBuffer> | null {
    if (!this.hasData || this.#moreData !== null) return null;
    return this.raw.subarray(this.#dataStart, this.#dataEnd);
  }

  typeHint(): string | null {
    if (!this.hasData || this.#moreData !== null) return null;
    return readLeadingType(this.raw, this.#dataStart, this.#dataEnd);
  }

  /** The replacement character may also have been sent as such. */
  #isValidUtf8(): boolean {
    const more = this.#moreData ?? [];
    try {
      STRICT_DECODER.decode(this.raw.subarray(this.#dataStart, this.#dataEnd));
      for (let at = 0; at < more.length; at += 2) {
        STRICT_DECODER.decode(this.raw.subarray(more[at], more[at + 1]));
      }
      return true;
    } catch {
      return false;
    }
  }
}

function readLeadingType(bytes: Uint8Array, start: number, end: number): string | null {
  for (let index = 0; index < LEADING_TYPE.length; index++) {
    if (bytes[start + index] !== LEADING_TYPE[index]) return null;
  }
  let at = start + LEADING_TYPE.length;
  if (bytes[at] === SPACE) at++;
  if (bytes[at] !== QUOTE || bytes[end - 1] !== CLOSE_BRACE) return null;
  const wordStart = at + 1;
  for (at = wordStart; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) return readWord(bytes, wordStart, at);
    // Escapes and other alphabets are left to a real parser.
    if (byte === BACKSLASH || byte > 0x7e || byte < SPACE) return null;
  }
  return null;
}

/** Names seen before, so that the few event names of a stream are not made into new strings each time. */
const KNOWN_WORDS: { bytes: Uint8Array; word: string }[] = [];
const KNOWN_WORD_SLOTS = 256;
const KNOWN_WORD_LIMIT_BYTES = 64;

function readWord(bytes: Uint8Array, start: number, end: number): string {
  const length = end - start;
  if (length === 0 || length > KNOWN_WORD_LIMIT_BYTES) return DECODER.decode(bytes.subarray(start, end));
  const slot = (length * 7 + bytes[end - 1]! * 31 + bytes[start + (length >> 1)]! * 17 +
    bytes[end - (length >> 2) - 1]!) %
    KNOWN_WORD_SLOTS;
  const known = KNOWN_WORDS[slot];
  if (known !== undefined && equals(known.bytes, bytes, start, length)) return known.word;
  const own = bytes.slice(start, end);
  const word = DECODER.decode(own);
  KNOWN_WORDS[slot] = { bytes: own, word };
  return word;
}

function equals(known: Uint8Array, bytes: Uint8Array, start: number, length: number): boolean {
  if (known.length !== length) return false;
  for (let index = 0; index < length; index++) {
    if (known[index] !== bytes[start + index]) return false;
  }
  return true;
}
