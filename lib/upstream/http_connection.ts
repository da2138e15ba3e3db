/**
 * One HTTP/1.1 connection: a request out, its answer in, one at a time; never a request twice.
 *
 * Our own and not the runtime's client, which costs several times as much for a small request and twice as much for
 * a chunk, repeats requests by itself, and tells failures apart by text alone (docs/decisions.md).
 */
import { freeBytes } from "../core/byte_memory.ts";
import type { AnswerBody } from "../ports.ts";
import { whileSent } from "./body_memory.ts";
import { type AnswerHead, encodeHead, HEAD_LIMIT_BYTES, readAnswerHead } from "./http_head.ts";
import { MessageBody } from "./message_body.ts";
import { BadHead, BrokenConnection } from "./transport_error.ts";
import type { Wire } from "./wire.ts";
import { WireReader } from "./wire_reader.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** Small bodies go out in one piece with their head; larger ones are not copied for it. */
const JOIN_LIMIT_BYTES = 16_384;

export interface OutgoingMessage {
  readonly method: string;
  /** As `writeRequestHead` gives it. */
  readonly head: string;
  /** A stream comes framed already. */
  readonly body: Bytes | AsyncIterable<Bytes> | null;
}

export interface Answer {
  readonly head: AnswerHead;
  /** Null where the answer has none by its nature. */
  readonly body: AnswerBody | null;
}

export class HttpConnection {
  /** It has carried an answer before: a death without one may be an idle close. */
  reused = false;
  idleSinceMs = 0;
  readonly #wire: Wire;
  readonly #reader: WireReader;

  constructor(wire: Wire) {
    this.#wire = wire;
    this.#reader = new WireReader(wire);
  }

  get closed(): boolean {
    return this.#reader.closed;
  }

  /**
   * Sends a request and waits for the head of its answer.
   *
   * @param released  called once when the answer is over: the connection is free for another request, or closed.
   * @throws what `fail` was given, BadHead or BrokenConnection; the connection is closed then.
   */
  async exchange(message: OutgoingMessage, released: () => void): Promise<Answer> {
    let sent = false;
    // A write that fails shows in the read as well, where an answer that came before it still counts.
    this.#send(message).then(() => sent = true, () => {});
    let head: AnswerHead;
    try {
      head = await this.#readHead(message.method);
    } catch (error) {
      this.#reader.close();
      throw error;
    }
    const body = new MessageBody(this.#reader, head.framing, (whole) => {
      const isClean = whole && sent && head.keepAlive && this.#reader.start === this.#reader.end;
      if (isClean) this.reused = true;
      else this.#reader.close();
      released();
    });
    return { head, body: head.framing.kind === "none" ? null : body };
  }

  /** Ends whatever is under way; it fails with this error. */
  fail(error: Error): void {
    this.#reader.fail(error);
  }

  close(): void {
    this.#reader.close();
  }

  /** Calls back when something comes on a connection nobody uses: its end, or bytes nobody asked for. */
  watchIdle(came: () => void): void {
    this.#reader.begin().then(came, came);
  }

  async #send(message: OutgoingMessage): Promise<void> {
    const { head, body } = message;
    if (body === null || (body instanceof Uint8Array && body.length <= JOIN_LIMIT_BYTES)) {
      return await this.#write(encodeHead(head, body));
    }
    if (body instanceof Uint8Array) {
      // From the head on: an answer that comes before the body went out must not take it away.
      return await whileSent(body, async () => {
        await this.#write(encodeHead(head, null));
        await this.#write(body);
      });
    }
    await this.#write(encodeHead(head, null));
    for await (const piece of body) {
      await this.#write(piece);
      freeBytes(piece);
    }
  }

  async #write(bytes: Bytes): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      at += await this.#wire.write(at === 0 ? bytes : bytes.subarray(at));
    }
  }

  async #readHead(method: string): Promise<AnswerHead> {
    const reader = this.#reader;
    let seenBytes = 0;
    let interimBytes = 0;
    for (;;) {
      if (!await reader.fill()) throw new BrokenConnection();
      const result = readAnswerHead(reader.bytes, reader.start, reader.end, method, seenBytes);
      if (result.kind === "malformed") throw new BadHead();
      if (result.kind === "head") {
        reader.start = result.end;
        return result.head;
      }
      // Interim answers are used up as they come: read again with each further one they would cost their square.
      interimBytes += result.next - reader.start;
      if (interimBytes > HEAD_LIMIT_BYTES) throw new BadHead();
      reader.start = result.next;
      seenBytes = reader.end - reader.start;
    }
  }
}
