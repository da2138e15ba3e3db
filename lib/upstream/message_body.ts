/** The body of one answer, read from its connection as somebody asks for it: no read, no bytes in memory. */
import { makeBytes } from "../core/byte_memory.ts";
import type { AnswerBody } from "../ports.ts";
import { ChunkedBody } from "./chunked_body.ts";
import type { BodyFraming } from "./http_head.ts";
import { BrokenConnection, UndecodableBody } from "./transport_error.ts";
import type { WireReader } from "./wire_reader.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** With at least this much still to come, bytes are read into pieces of their own and not through the buffer. */
const DIRECT_BYTES = 65_536;
const PIECE_BYTES = 262_144;
/** A piece with less in it is copied out, and used again. */
const WORTH_BYTES = 65_536;

export class MessageBody implements AnswerBody {
  readonly #reader: WireReader;
  readonly #chunked: ChunkedBody | null;
  readonly #ended: (whole: boolean) => void;
  /** Still to come; Infinity where only the end of the connection tells. */
  #missingBytes: number;
  /** Memory for the next piece. */
  #piece: Bytes | null = null;
  #over = false;

  /**
   * @param ended  called once: `whole` when the body was read to its end, and nothing is left of it in the reader.
   */
  constructor(reader: WireReader, framing: BodyFraming, ended: (whole: boolean) => void) {
    this.#reader = reader;
    this.#ended = ended;
    this.#chunked = framing.kind === "chunked" ? new ChunkedBody() : null;
    this.#missingBytes = framing.kind === "length" ? framing.bytes : framing.kind === "none" ? 0 : Infinity;
    if (this.#missingBytes === 0) this.#end(true);
    else this.#chunked?.take(reader);
  }

  async read(into?: Bytes): Promise<Bytes | null> {
    try {
      return this.#chunked === null
        ? await this.#readPlain(into)
        : await this.#readChunked(this.#chunked, into);
    } catch (error) {
      // Let go by `cancel`, which needs no telling.
      if (this.#over) return null;
      this.#end(false);
      throw error;
    }
  }

  cancel(): void {
    this.#end(false);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Bytes> {
    try {
      for (let piece = await this.read(); piece !== null; piece = await this.read()) yield piece;
    } finally {
      this.cancel();
    }
  }

  async #readPlain(into: Bytes | undefined): Promise<Bytes | null> {
    const reader = this.#reader;
    if (this.#over) return null;
    if (reader.start === reader.end) {
      if (into !== undefined) return this.#count(await this.#readDirect(into));
      if (this.#missingBytes >= DIRECT_BYTES) return this.#count(await this.#readPiece());
      if (!await reader.fill()) return this.#meetEnd();
    }
    const available = Math.min(reader.end - reader.start, this.#missingBytes);
    const piece = take(reader.bytes, reader.start, available, into);
    reader.start += piece.length;
    return this.#count(piece);
  }

  async #readPiece(): Promise<Bytes | null> {
    const target = this.#piece ?? new Uint8Array(PIECE_BYTES);
    this.#piece = null;
    const piece = await this.#readDirect(target);
    if (piece === null || piece.length >= WORTH_BYTES) return piece;
    this.#piece = target;
    return piece.slice();
  }

  async #readDirect(target: Bytes): Promise<Bytes | null> {
    const room = target.length > this.#missingBytes ? target.subarray(0, this.#missingBytes) : target;
    const count = await this.#reader.fillInto(room);
    return count === null ? this.#meetEnd() : target.subarray(0, count);
  }

  #count(piece: Bytes | null): Bytes | null {
    if (piece !== null && (this.#missingBytes -= piece.length) === 0) this.#end(true);
    return piece;
  }

  /** The connection ended: fine where that is how the body ends. */
  #meetEnd(): null {
    if (this.#missingBytes !== Infinity) throw new BrokenConnection();
    this.#end(true);
    return null;
  }

  async #readChunked(chunked: ChunkedBody, into: Bytes | undefined): Promise<Bytes | null> {
    const reader = this.#reader;
    while (!this.#over) {
      if (chunked.payloadStart < chunked.payloadEnd) {
        const available = chunked.payloadEnd - chunked.payloadStart;
        const piece = take(reader.bytes, chunked.payloadStart, available, into);
        chunked.payloadStart += piece.length;
        if (chunked.payloadStart === chunked.payloadEnd && chunked.state === "done") this.#end(true);
        return piece;
      }
      if (chunked.state === "done") this.#end(true);
      else if (chunked.state === "malformed") throw new UndecodableBody("bad_body_framing");
      else if (!await reader.fill()) throw new BrokenConnection();
      else chunked.take(reader);
    }
    return null;
  }

  #end(whole: boolean): void {
    if (this.#over) return;
    this.#over = true;
    this.#ended(whole);
  }
}

/** Bytes of the buffer in memory of their own, because the next read writes over it. */
function take(bytes: Bytes, start: number, available: number, into: Bytes | undefined): Bytes {
  const target = into ?? makeBytes(available);
  const count = Math.min(available, target.length);
  target.set(bytes.subarray(start, start + count));
  return count === target.length ? target : target.subarray(0, count);
}
