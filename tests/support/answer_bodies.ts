/** Bodies of answers without a connection. */
import type { AnswerBody } from "../../lib/ports.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** A body that gives what the stream gives, however little or much room it is offered. */
export function bodyFrom(stream: ReadableStream<Bytes>): AnswerBody {
  const reader = stream.getReader();
  return {
    async read() {
      const { done, value } = await reader.read();
      return done ? null : value;
    },
    cancel: () => void reader.cancel().catch(() => {}),
    async *[Symbol.asyncIterator]() {
      try {
        for (let piece = await this.read(); piece !== null; piece = await this.read()) yield piece;
      } finally {
        this.cancel();
      }
    },
  };
}

/** A body of these pieces; empty ones are left out. */
export function bodyOf(pieces: readonly Bytes[]): AnswerBody {
  return bodyFrom(ReadableStream.from(pieces.filter((piece) => piece.length > 0)));
}
