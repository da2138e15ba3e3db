/** Request bodies as they go onto the wire: bytes as they are, streams counted or in chunks. */
import { frameChunk } from "../core/chunk.ts";

type Bytes = Uint8Array<ArrayBuffer>;

export interface OutgoingBody {
  /** Framed already. */
  readonly body: Bytes | AsyncIterable<Bytes> | null;
  /** Length to state, `chunked`, or null for no body. */
  readonly framing: number | "chunked" | null;
}

/** Told of a streamed body whose turn it is: its sender's, or that of the peer who takes it. */
export interface Turns {
  readonly sender: () => void;
  readonly peer: () => void;
}

/**
 * @param length  of a streamed body, or null: then it goes out in chunks.
 * @param broken  called when a stream breaks, or is not as long as promised: its sender is gone, and what was sent
 *   of it must not look whole.
 */
export function outgoingBody(
  body: Bytes | ReadableStream<Bytes> | null,
  length: number | null,
  broken: () => void,
  turns: Turns = NO_TURNS,
): OutgoingBody {
  if (body === null) return { body: null, framing: null };
  if (body instanceof Uint8Array) return { body: body.length === 0 ? null : body, framing: body.length };
  if (length === 0) {
    body.cancel().catch(() => {});
    return { body: null, framing: 0 };
  }
  const pieces = taking(body, turns);
  return length === null
    ? { body: inChunks(pieces, broken), framing: "chunked" }
    : { body: counted(pieces, length, broken), framing: length };
}

const NO_TURNS: Turns = { sender: () => {}, peer: () => {} };

async function* taking(source: ReadableStream<Bytes>, turns: Turns): AsyncGenerator<Bytes> {
  turns.sender();
  for await (const piece of source) {
    turns.peer();
    yield piece;
    turns.sender();
  }
  turns.peer();
}

async function* counted(source: AsyncIterable<Bytes>, length: number, broken: () => void) {
  let missingBytes = length;
  try {
    for await (const piece of source) {
      missingBytes -= piece.length;
      if (missingBytes < 0) break;
      yield piece;
    }
  } catch {
    missingBytes = -1;
  }
  if (missingBytes !== 0) broken();
}

async function* inChunks(source: AsyncIterable<Bytes>, broken: () => void) {
  try {
    for await (const piece of source) {
      // An empty chunk would end the body.
      if (piece.length > 0) yield frameChunk(piece);
    }
  } catch {
    return broken();
  }
  yield LAST_CHUNK;
}

const LAST_CHUNK = new TextEncoder().encode("0\r\n\r\n");
