/**
 * HTTP/1.1 of a server over one TCP socket, small and rude on request.
 *
 * Not `Deno.serve`: a simulated provider must reset a connection, cut a body or send half a head when told to.
 */
import type { Socket } from "node:net";

export type Bytes = Uint8Array<ArrayBuffer>;

export interface WireRequest {
  readonly method: string;
  /** Path with query, as received. */
  readonly target: string;
  readonly headers: Headers;
  readonly body: Bytes;
  /** Bytes that came behind an upgrade request. */
  readonly rest: Bytes;
}

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** One connection: reads requests one after the other, writes with back-pressure, knows when the peer left. */
export class WireConnection {
  readonly #socket: Socket;
  readonly #unread = new ByteQueue();
  #wake: () => void = () => {};
  #ended = false;
  readonly #waiters = new Set<() => void>();
  readonly #left = Promise.withResolvers<void>();

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", this.#onData);
    socket.on("error", this.#leave);
    socket.on("end", this.#leave);
    socket.on("close", this.#leave);
  }

  readonly #onData = (chunk: Uint8Array) => {
    this.#unread.push(chunk);
    this.#wake();
  };

  readonly #leave = () => {
    this.#ended = true;
    this.#wake();
    for (const waiter of this.#waiters) waiter();
    this.#left.resolve();
  };

  /** Resolves when the peer closed, half-closed or reset the connection, or we dropped it. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  get gone(): boolean {
    return this.#ended;
  }

  /** The next whole request, or null when the peer left before it was complete. */
  async request(): Promise<WireRequest | null> {
    const head = await this.#take(() => this.#unread.after(BLANK_LINE));
    if (head === null) return null;
    const [first = "", ...lines] = DECODER.decode(head).split("\r\n").filter((line) => line !== "");
    const [method = "", target = ""] = first.split(" ");
    const headers = new Headers(lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()] as [string, string];
    }));
    if (headers.has("upgrade")) {
      return {
        method,
        target,
        headers,
        body: new Uint8Array(),
        rest: this.#unread.take(this.#unread.length),
      };
    }
    const body = headers.get("transfer-encoding")?.toLowerCase().includes("chunked")
      ? await this.#chunkedBody()
      : await this.#exactly(Number(headers.get("content-length") ?? "0"));
    return body === null ? null : { method, target, headers, body, rest: new Uint8Array() };
  }

  /** Writes and waits until the kernel took it, so that a slow reader is felt. Silently nothing once the peer left. */
  async write(data: string | Uint8Array): Promise<void> {
    if (this.#ended || this.#socket.destroyed) return;
    if (this.#socket.write(typeof data === "string" ? ENCODER.encode(data) : data)) return;
    await this.unlessLeft((resolve) => {
      this.#socket.once("drain", resolve);
      return () => void this.#socket.off("drain", resolve);
    });
  }

  /**
   * Waits for something, but not beyond the peer's leaving, and leaves nothing behind.
   *
   * @param start  begins to wait, calls what it is given when done, and returns how to stop.
   */
  async unlessLeft(start: (resolve: () => void) => () => void): Promise<void> {
    if (this.#ended) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = start(resolve);
    this.#waiters.add(resolve);
    await promise;
    this.#waiters.delete(resolve);
    stop();
  }

  finish(): void {
    this.#socket.end();
  }

  reset(): void {
    this.#socket.resetAndDestroy();
    this.#leave();
  }

  drop(): void {
    this.#socket.destroy();
    this.#leave();
  }

  /** Gives the socket away after an upgrade: this object no longer reads it. */
  release(): Socket {
    this.#socket.off("data", this.#onData);
    return this.#socket;
  }

  async #chunkedBody(): Promise<Bytes | null> {
    const whole = new ByteQueue();
    while (true) {
      const line = await this.#take(() => this.#unread.after(LINE_END));
      if (line === null) return null;
      const size = parseInt(DECODER.decode(line), 16);
      const chunk = await this.#exactly(size + 2);
      if (chunk === null) return null;
      if (size === 0) return whole.take(whole.length);
      whole.push(chunk.subarray(0, size));
    }
  }

  #exactly(length: number): Promise<Bytes | null> {
    return this.#take(() => this.#unread.length >= length ? length : -1);
  }

  /** Waits until `measure` finds a length, then takes that many bytes. */
  async #take(measure: () => number): Promise<Bytes | null> {
    while (true) {
      const length = measure();
      if (length >= 0) return this.#unread.take(length);
      if (this.#ended) return null;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
  }
}

/** Bytes in order; grows by doubling, so that a body of many pieces is copied a few times and not once a piece. */
class ByteQueue {
  #store = new Uint8Array(INITIAL_BYTES);
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  push(chunk: Uint8Array): void {
    if (this.#end + chunk.length > this.#store.length) this.#makeRoom(chunk.length);
    this.#store.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  take(length: number): Bytes {
    const taken = this.#store.slice(this.#start, this.#start + length);
    this.#start += length;
    return taken;
  }

  /** @returns how many bytes there are up to and including the first `mark`, or -1 without one. */
  after(mark: readonly number[]): number {
    const last = this.#end - mark.length;
    for (let at = this.#start; at <= last; at++) {
      if (mark.every((byte, offset) => this.#store[at + offset] === byte)) {
        return at + mark.length - this.#start;
      }
    }
    return -1;
  }

  #makeRoom(extra: number): void {
    const { length } = this;
    const needed = length + extra;
    const next = needed * 2 > this.#store.length ? new Uint8Array(needed * 2) : this.#store;
    next.set(this.#store.subarray(this.#start, this.#end));
    this.#store = next;
    this.#start = 0;
    this.#end = length;
  }
}

const INITIAL_BYTES = 4_096;
const LINE_END = [10];
const BLANK_LINE = [13, 10, 13, 10];
