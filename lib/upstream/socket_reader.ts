/** Reads the few answer bytes of a proxy from a socket, and gives back what came behind them. */
import type { Socket } from "node:net";

export class SocketReader {
  readonly #socket: Socket;
  #seen: Uint8Array = new Uint8Array();
  #ended = false;
  #wake: () => void = () => {};

  constructor(socket: Socket) {
    this.#socket = socket;
    // Not `data`: a socket that was once made to flow would have to be paused for good before it is handed on.
    socket.on("readable", this.#onReadable);
    socket.on("close", this.#onEnd);
    socket.on("end", this.#onEnd);
  }

  readonly #onReadable = () => {
    const chunk: Uint8Array | null = this.#socket.read();
    if (chunk === null) return;
    const joined = new Uint8Array(this.#seen.length + chunk.length);
    joined.set(this.#seen);
    joined.set(chunk, this.#seen.length);
    this.#seen = joined;
    this.#wake();
  };

  readonly #onEnd = () => {
    this.#ended = true;
    this.#wake();
  };

  /**
   * @param measure  given all unread bytes, tells how many belong to the answer, or -1 while it is incomplete.
   * @param limitBytes  an answer longer than this is none.
   * @returns `null` when the socket ended, or the limit was reached, before the answer was complete.
   */
  async read(measure: (seen: Uint8Array) => number, limitBytes: number): Promise<Uint8Array | null> {
    while (true) {
      const length = measure(this.#seen);
      if (length >= 0) {
        const answer = this.#seen.subarray(0, length);
        this.#seen = this.#seen.subarray(length);
        return answer;
      }
      if (this.#ended || this.#seen.length > limitBytes) return null;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
  }

  /** Stops reading; bytes behind the last answer are the peer's and go back to the socket. */
  release(): void {
    this.#socket.off("readable", this.#onReadable);
    this.#socket.off("close", this.#onEnd);
    this.#socket.off("end", this.#onEnd);
    if (this.#seen.length > 0) this.#socket.unshift(this.#seen);
  }
}
