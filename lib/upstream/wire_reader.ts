/** Reads a wire through a buffer: one read at a time, which may be under way before anybody asks for its bytes. */
import { BrokenConnection } from "./transport_error.ts";
import type { Wire } from "./wire.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** An event is shorter; hundreds of streams are open at once. */
const FIRST_BUFFER_BYTES = 4_096;
/** From the first read on that fills the buffer. */
const BUFFER_BYTES = 16_384;

export class WireReader {
  /** Bytes read and not used yet are `bytes[start..end)`; whoever uses some moves `start`. */
  bytes: Bytes = new Uint8Array(FIRST_BUFFER_BYTES);
  start = 0;
  end = 0;
  readonly #wire: Wire;
  #reading: Promise<number | null> | null = null;
  #error: Error | null = null;
  #closed = false;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Begins a read without waiting for it: the next `fill` waits for this one. */
  begin(): Promise<number | null> {
    return this.#reading ??= this.#wire.read(this.#room());
  }

  /** @returns false at the end. @throws what `end` was given, else BrokenConnection */
  async fill(): Promise<boolean> {
    let count: number | null;
    try {
      count = await this.begin();
    } catch (error) {
      throw this.#failure(error);
    } finally {
      this.#reading = null;
    }
    if (count === null) return false;
    this.end += count;
    return true;
  }

  /** Reads past the buffer, which must be empty. @returns null at the end. @throws as `fill` does */
  async fillInto(target: Bytes): Promise<number | null> {
    try {
      return await this.#wire.read(target);
    } catch (error) {
      throw this.#failure(error);
    }
  }

  /** Closes the wire; a read under way fails with this error, and so does every later one. */
  fail(error: Error): void {
    this.#error ??= error;
    this.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#wire.close();
  }

  #failure(cause: unknown): Error {
    this.close();
    return this.#error ?? new BrokenConnection({ cause });
  }

  /** Where the next read goes. The buffer only grows for a head that is longer than it. */
  #room(): Bytes {
    if (this.start === this.end) {
      // Full at its last read: more comes than it was made for.
      if (this.end === this.bytes.length && this.end < BUFFER_BYTES) {
        this.bytes = new Uint8Array(BUFFER_BYTES);
      }
      this.start = this.end = 0;
    }
    if (this.end === this.bytes.length) {
      const moved = this.start > 0 ? this.bytes : new Uint8Array(this.bytes.length * 2);
      moved.set(this.bytes.subarray(this.start, this.end));
      this.bytes = moved;
      this.end -= this.start;
      this.start = 0;
    }
    return this.bytes.subarray(this.end);
  }
}
