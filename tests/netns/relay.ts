/**
 * Stands in for a cable where namespaces are not permitted: a port that leads to another, until it refuses or
 * swallows. What it cannot do is keep an open connection silent: those are closed.
 */

/** A full queue of one holds two connections; whoever comes next waits for an answer that does not come. */
const QUEUED = 2;

export class Relay implements AsyncDisposable {
  readonly url: string;
  readonly #port: number;
  readonly #toPort: number;
  #listener: Deno.TcpListener | null = null;
  readonly #open = new Set<Deno.TcpConn>();
  #accepting: Promise<void> = Promise.resolve();

  constructor(toPort: number) {
    this.#toPort = toPort;
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.#port = listener.addr.port;
    this.url = `http://127.0.0.1:${this.#port}`;
    this.#serve(listener);
  }

  async break(how: "unplug" | "swallow"): Promise<void> {
    await this.#close();
    if (how === "unplug") return;
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: this.#port, tcpBacklog: 1 });
    for (let count = 0; count < QUEUED; count++) {
      this.#open.add(await Deno.connect({ hostname: "127.0.0.1", port: this.#port }));
    }
  }

  async mend(): Promise<void> {
    await this.#close();
    this.#serve(Deno.listen({ hostname: "127.0.0.1", port: this.#port }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }

  async #close(): Promise<void> {
    this.#listener?.close();
    this.#listener = null;
    for (const connection of this.#open) closeQuietly(connection);
    this.#open.clear();
    await this.#accepting;
  }

  #serve(listener: Deno.TcpListener): void {
    this.#listener = listener;
    this.#accepting = (async () => {
      for await (const near of listener) this.#join(near);
    })();
  }

  async #join(near: Deno.TcpConn): Promise<void> {
    this.#open.add(near);
    try {
      const far = await Deno.connect({ hostname: "127.0.0.1", port: this.#toPort });
      this.#open.add(far);
      await Promise.allSettled([near.readable.pipeTo(far.writable), far.readable.pipeTo(near.writable)]);
      this.#open.delete(far);
    } catch {
      closeQuietly(near);
    }
    this.#open.delete(near);
  }
}

function closeQuietly(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // The other end was quicker.
  }
}
