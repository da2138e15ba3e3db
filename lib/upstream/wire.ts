/** A connected channel of bytes to a peer: the runtime's own connection, or a node socket led through a proxy. */
import type { Socket } from "node:net";

export interface Wire {
  /** Reads what there is, at least one byte; null at the end. One read at a time. */
  read(into: Uint8Array): Promise<number | null>;
  /** Writes at least one byte. @returns how many. */
  write(bytes: Uint8Array): Promise<number>;
  /** A read or write under way fails. Safe to call twice. */
  close(): void;
}

/** Takes over a connection of `Deno.connect` or `Deno.startTls`. */
export function runtimeWire(connection: Deno.Conn): Wire {
  let closed = false;
  return {
    read: (into) => connection.read(into),
    write: (bytes) => connection.write(bytes),
    close() {
      if (closed) return;
      closed = true;
      connection.close();
    },
  };
}

/** Takes over a node socket, which is paused while nobody reads. */
export function socketWire(socket: Socket): Wire {
  return new SocketWire(socket);
}

class SocketWire implements Wire {
  readonly #socket: Socket;
  #unread: Uint8Array[] = [];
  #ended = false;
  #error: Error | null = null;
  #wake: () => void = () => {};

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Uint8Array) => {
      this.#unread.push(chunk);
      socket.pause();
      this.#wake();
    });
    socket.on("end", () => this.#end(null));
    socket.on("error", (error) => this.#end(error));
    socket.on("close", () => this.#end(new Error("Cannot read: the socket was closed")));
  }

  async read(into: Uint8Array): Promise<number | null> {
    while (this.#unread.length === 0) {
      if (this.#error !== null) throw this.#error;
      if (this.#ended) return null;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      this.#socket.resume();
      await promise;
    }
    const first = this.#unread[0]!;
    const count = Math.min(first.length, into.length);
    into.set(first.subarray(0, count));
    if (count === first.length) this.#unread.shift();
    else this.#unread[0] = first.subarray(count);
    return count;
  }

  write(bytes: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#socket.write(bytes, (error) => error ? reject(error) : resolve(bytes.length));
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  /** The first end stands: a close after an orderly end changes nothing. */
  #end(error: Error | null): void {
    if (this.#ended || this.#error !== null) return;
    if (error === null) this.#ended = true;
    else this.#error = error;
    this.#wake();
  }
}
