/** Bodies of answers: read whole within a limit, or handed to the client as they come. */
import { makeBytes } from "../core/byte_memory.ts";
import type { AnswerBody, ByteSource, Clock } from "../ports.ts";
import { concat } from "./request_body.ts";

type Bytes = Uint8Array<ArrayBuffer>;

export type WholeBody =
  | { readonly whole: true; readonly bytes: Bytes }
  /** Longer than the limit: what was read of it so far. */
  | { readonly whole: false; readonly begun: readonly Bytes[] };

/**
 * Reads a body to its end, into memory that is taken once where the length is known.
 *
 * @param note  told after each read how many bytes have come.
 * @throws what reading throws
 */
export async function readWhole(
  body: AnswerBody,
  length: number | null,
  limitBytes: number,
  note: (readBytes: number) => void = () => {},
): Promise<WholeBody> {
  if (length !== null) {
    return length > limitBytes
      ? { whole: false, begun: [] }
      : { whole: true, bytes: await readKnown(body, length, note) };
  }
  const pieces: Bytes[] = [];
  let total = 0;
  for (let piece = await body.read(); piece !== null; piece = await body.read()) {
    pieces.push(piece);
    total += piece.length;
    note(total);
    if (total > limitBytes) return { whole: false, begun: pieces };
  }
  return { whole: true, bytes: concat(pieces, total) };
}

async function readKnown(
  body: AnswerBody,
  length: number,
  note: (readBytes: number) => void,
): Promise<Bytes> {
  const bytes = makeBytes(length);
  let at = 0;
  while (at < length) {
    const piece = await body.read(at === 0 ? bytes : bytes.subarray(at));
    if (piece === null) return bytes.subarray(0, at);
    at += piece.length;
    note(at);
  }
  return bytes;
}

/** Nothing came for too long. */
export class FellSilent extends Error {
  override readonly name = "FellSilent";
}

/**
 * The body, given up when nothing comes of it for `idleMs` while somebody waits; 0 waits for ever. Its reads then
 * throw FellSilent.
 */
export function limitSilence(body: AnswerBody, clock: Clock, idleMs: number): AnswerBody {
  if (idleMs === 0) return body;
  const read = async (into?: Bytes): Promise<Bytes | null> => {
    let silent = false;
    const limit = clock.schedule(clock.now() + idleMs, () => {
      silent = true;
      body.cancel();
    });
    try {
      const piece = await body.read(into);
      if (silent) throw new FellSilent();
      return piece;
    } finally {
      limit.cancel();
    }
  };
  return {
    read,
    cancel: () => body.cancel(),
    async *[Symbol.asyncIterator]() {
      try {
        for (let piece = await read(); piece !== null; piece = await read()) yield piece;
      } finally {
        body.cancel();
      }
    },
  };
}

/**
 * The rest of a body for the client, behind what was read already.
 *
 * @param ended  called once.
 * @param passed  told the length of each piece that goes to the client.
 */
export function streamBody(
  body: AnswerBody,
  begun: readonly Bytes[],
  ended: (end: "whole" | "cancelled" | { readonly error: unknown }) => void,
  passed: (bytes: number) => void = () => {},
): ByteSource {
  const queue = [...begun];
  let over = false;
  const end = (result: Parameters<typeof ended>[0]): void => {
    if (over) return;
    over = true;
    ended(result);
  };
  return {
    async read() {
      let piece: Bytes | null;
      try {
        piece = queue.shift() ?? await body.read();
      } catch (error) {
        end({ error });
        throw error;
      }
      if (piece === null) end("whole");
      else passed(piece.length);
      return piece;
    },
    cancel() {
      body.cancel();
      end("cancelled");
    },
  };
}
