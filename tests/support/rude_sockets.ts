/** Listeners no provider script can play: dead ports, black holes, TLS with the wrong papers. */
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";

const FIXTURES = new URL("../fixtures/tls/", import.meta.url);

export function tlsFixture(name: string): string {
  return Deno.readTextFileSync(new URL(name, FIXTURES));
}

/** The authority that signed the fixtures' certificates. */
export const TEST_CA: string = tlsFixture("ca.pem");

/** A port nobody listens on: bound once, then closed. */
export function deadPort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  return port;
}

/** A port that swallows connection attempts: its queue is one long, full, and nobody takes anything out of it. */
export async function blackHole(): Promise<Disposable & { readonly port: number }> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0, tcpBacklog: 1 });
  const { port } = listener.addr as Deno.NetAddr;
  // A backlog of one holds two established connections.
  const queued = [
    await Deno.connect({ hostname: "127.0.0.1", port }),
    await Deno.connect({ hostname: "127.0.0.1", port }),
  ];
  return {
    port,
    [Symbol.dispose]() {
      for (const connection of queued) connection.close();
      listener.close();
    },
  };
}

/**
 * A host that answers the first request of each connection and then goes: connections stay open and silent, as they
 * do when a network dies, and new ones are refused or swallowed.
 */
export class FadingHost implements AsyncDisposable {
  readonly url: string;
  readonly #port: number;
  readonly #listener: Deno.TcpListener;
  readonly #open: Deno.TcpConn[] = [];
  readonly #accepting: Promise<void>;
  #isGone = false;

  private constructor() {
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0, tcpBacklog: 1 });
    this.#port = this.#listener.addr.port;
    this.url = `http://127.0.0.1:${this.#port}`;
    this.#accepting = this.#accept();
  }

  static start(): Promise<FadingHost> {
    return Promise.resolve(new FadingHost());
  }

  refuse(): void {
    this.#isGone = true;
    this.#listener.close();
  }

  /** The accept under way takes one more; a backlog of one holds two, as in `blackHole`. */
  async swallow(): Promise<void> {
    this.#isGone = true;
    for (let queued = 0; queued < 3; queued++) {
      this.#open.push(await Deno.connect({ hostname: "127.0.0.1", port: this.#port }));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#listener.close();
    } catch {
      // It refused already.
    }
    await this.#accepting;
    for (const connection of this.#open) connection.close();
  }

  async #accept(): Promise<void> {
    try {
      while (!this.#isGone) {
        const connection = await this.#listener.accept();
        this.#open.push(connection);
        if (this.#isGone) return;
        await connection.read(new Uint8Array(65_536));
        await connection.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"));
      }
    } catch {
      // Closed: nobody new is taken.
    }
  }
}

/** A listener run by `serve`, one call for each connection. */
export function rawServer(serve: (socket: Socket) => void): Promise<RudeServer> {
  return listen(createServer(), "connection", serve);
}

/** A TLS listener with `localhost` (right name) or `other_name` (wrong name) papers. */
export function tlsServer(
  papers: "localhost" | "other_name",
  serve: (socket: Socket) => void = () => {},
): Promise<RudeServer> {
  const server = createTlsServer({ key: tlsFixture(`${papers}.key`), cert: tlsFixture(`${papers}.pem`) });
  server.on("tlsClientError", () => {});
  return listen(server, "secureConnection", serve);
}

export interface RudeServer extends AsyncDisposable {
  readonly port: number;
}

async function listen(
  server: NetServer,
  event: string,
  serve: (socket: Socket) => void,
): Promise<RudeServer> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  };
  server.on("connection", keep);
  server.on(event, (socket: Socket) => {
    keep(socket);
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as { port: number }).port,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
