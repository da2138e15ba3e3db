/**
 * Takes the chunk framing off a body (RFC 9112 section 7.1), in place. Pure: bytes in, bytes out.
 */
type Bytes = Uint8Array<ArrayBuffer>;

/** A size with its extensions, or a trailer line; longer is an attack. */
const LINE_LIMIT_BYTES = 4_096;
const TRAILER_LIMIT_BYTES = 16_384;
/** Nobody sends more in one chunk, and sums stay far from losing precision. */
const CHUNK_LIMIT_BYTES = 0xfff_ffff;

const CR = 13;
const LF = 10;
const SEMICOLON = 0x3b;

type Place =
  | "size"
  | "extension"
  | "size_lf"
  | "data"
  | "data_end"
  | "data_lf"
  | "trailer"
  | "done"
  | "malformed";

/** Bytes not used yet: `bytes[start..end)`. */
export interface Unread {
  readonly bytes: Bytes;
  start: number;
  readonly end: number;
}

/** Feed it what was read, in order. Where the input is cut never changes the bytes that come out. */
export class ChunkedBody {
  #place: Place = "size";
  #missingBytes = 0;
  #lineBytes = 0;
  #trailerBytes = 0;
  /** Where in the bytes the payload lies after `take`. */
  payloadStart = 0;
  payloadEnd = 0;

  get state(): "open" | "done" | "malformed" {
    return this.#place === "done" || this.#place === "malformed" ? this.#place : "open";
  }

  /** Uses what is unread, up to the end of the body, and moves the payload in it together. */
  take(unread: Unread): void {
    const { bytes, end } = unread;
    let at = unread.start;
    this.payloadStart = this.payloadEnd = at;
    while (at < end && this.state === "open") {
      if (this.#place === "data") {
        const length = Math.min(this.#missingBytes, end - at);
        this.#keep(bytes, at, at + length);
        at += length;
        this.#missingBytes -= length;
        if (this.#missingBytes === 0) this.#place = "data_end";
      } else {
        this.#place = this.#next(bytes[at]!);
        at++;
      }
    }
    unread.start = at;
  }

  /** One payload piece needs no move: most reads hold one chunk. */
  #keep(bytes: Bytes, from: number, to: number): void {
    if (this.payloadEnd === this.payloadStart) {
      this.payloadStart = from;
      this.payloadEnd = to;
    } else {
      bytes.copyWithin(this.payloadEnd, from, to);
      this.payloadEnd += to - from;
    }
  }

  #next(byte: number): Place {
    switch (this.#place) {
      case "size":
        return this.#readSize(byte);
      case "extension":
        if (byte === CR) return "size_lf";
        if (byte === LF) return this.#endSizeLine();
        return ++this.#lineBytes > LINE_LIMIT_BYTES ? "malformed" : "extension";
      case "size_lf":
        return byte === LF ? this.#endSizeLine() : "malformed";
      case "data_end":
        if (byte === CR) return "data_lf";
        return byte === LF ? "size" : "malformed";
      case "data_lf":
        return byte === LF ? "size" : "malformed";
      case "trailer":
        return this.#readTrailer(byte);
      default:
        return "malformed";
    }
  }

  #readSize(byte: number): Place {
    const digit = hexValue(byte);
    if (digit >= 0) {
      // Zeros before the size are allowed; the line is bounded, not the number of digits.
      this.#missingBytes = this.#missingBytes * 16 + digit;
      const tooLong = ++this.#lineBytes > LINE_LIMIT_BYTES || this.#missingBytes > CHUNK_LIMIT_BYTES;
      return tooLong ? "malformed" : "size";
    }
    if (this.#lineBytes === 0) return "malformed";
    if (byte === CR) return "size_lf";
    if (byte === LF) return this.#endSizeLine();
    return byte === SEMICOLON || byte === 0x20 || byte === 0x09 ? "extension" : "malformed";
  }

  #endSizeLine(): Place {
    this.#lineBytes = 0;
    return this.#missingBytes === 0 ? "trailer" : "data";
  }

  /** Trailers say nothing anybody here asks for: they are read and dropped. */
  #readTrailer(byte: number): Place {
    if (++this.#trailerBytes > TRAILER_LIMIT_BYTES) return "malformed";
    if (byte === LF) {
      if (this.#lineBytes === 0) return "done";
      this.#lineBytes = 0;
    } else if (byte !== CR) this.#lineBytes++;
    return "trailer";
  }
}

function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
