/** Chunk framing of HTTP/1.1 (RFC 9112 section 7.1), for whoever writes a body of unknown length. */
import { makeBytes } from "./byte_memory.ts";

const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;

/** The piece as one chunk. @param piece  not empty: an empty chunk ends the body. */
export function frameChunk(piece: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const size = piece.length.toString(16);
  const chunk = makeBytes(size.length + piece.length + 4);
  let at = 0;
  while (at < size.length) chunk[at] = size.charCodeAt(at++);
  chunk[at++] = CARRIAGE_RETURN;
  chunk[at++] = LINE_FEED;
  chunk.set(piece, at);
  at += piece.length;
  chunk[at++] = CARRIAGE_RETURN;
  chunk[at] = LINE_FEED;
  return chunk;
}
