/**
 * A client that sends a request of the size real clients send, in the pieces a network makes of it, and leaves when
 * told.
 *
 * Not `fetch`: its bodies come in one piece and its connections close when it likes.
 */
import { connect, type Socket } from "node:net";
import { eventually } from "./eventually.ts";
import { HEADERS, message } from "./hardening.ts";

/** How a request comes: a listener may notice the leaving of one kind and miss that of another. */
export interface Shape {
  readonly name: string;
  readonly bodyBytes: number;
  /** A body of unknown length is sent upstream once (state-machine-facts 2A.6). */
  readonly chunked?: true;
  /** Head and body go out in two writes, this far apart. */
  readonly pauseMs?: number;
  /** More of these in the head. */
  readonly headBytes?: number;
  /** The connection has carried another request before. */
  readonly used?: true;
}

const KIB = 1_024;

export const SHORT: Shape = { name: "a body of 100 B", bodyBytes: 100 };
export const LONG: Shape = { name: "a body of 10 KB", bodyBytes: 10 * KIB };
export const SHAPES: readonly Shape[] = [
  SHORT,
  LONG,
  { name: "a body of 200 KB", bodyBytes: 200 * KIB },
  { name: "head and body in two writes", bodyBytes: 10 * KIB, pauseMs: 5 },
  { name: "a chunked body", bodyBytes: 10 * KIB, chunked: true },
  { name: "a body of 100 B under a head of 4 KB", bodyBytes: 100, headBytes: 4 * KIB },
  { name: "a body of 10 KB on a used connection", bodyBytes: 10 * KIB, used: true },
];

export const WAYS = ["closes", "resets", "closes its sending side"] as const;
export type Way = typeof WAYS[number];

export interface Asked {
  readonly path?: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

const CHUNK_BYTES = 4_000;

export class LeavingClient implements Disposable {
  /** Everything that came back, as Latin-1. */
  received = "";
  /** The proxy ended the connection. */
  ended = false;
  readonly #socket: Socket;
  readonly #shape: Shape;

  private constructor(socket: Socket, shape: Shape) {
    this.#socket = socket;
    this.#shape = shape;
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (text) => void (this.received += text));
    socket.on("end", () => void (this.ended = true));
    socket.on("error", () => {});
  }

  static async open(port: number, shape: Shape): Promise<LeavingClient> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // Or the socket would close its other side by itself once the proxy has ended.
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, resolve);
    socket.once("error", reject);
    await promise;
    const client = new LeavingClient(socket, shape);
    if (shape.used) {
      await client.#write(message(["GET /healthz HTTP/1.1", "host: localhost"]));
      await client.until('"ok"');
      client.received = "";
    }
    return client;
  }

  /** Sends a whole request; resolves when the system has taken it. */
  async ask(asked: Asked = {}): Promise<void> {
    const { chunked } = this.#shape;
    const body = this.#body(asked);
    await this.#send(asked, chunked ? chunksOf(body) + LAST_CHUNK : body);
  }

  /** Sends a request up to the middle of its body. */
  async askHalf(asked: Asked = {}): Promise<void> {
    const { chunked } = this.#shape;
    const body = this.#body(asked);
    const begun = chunked ? chunksOf(body) : body;
    await this.#send(asked, begun.slice(0, begun.length / 2));
  }

  /** Waits until what came back has this text. */
  async until(text: string): Promise<void> {
    await eventually(() => this.received.includes(text));
  }

  leave(way: Way = "closes"): void {
    switch (way) {
      case "closes":
        return void this.#socket.destroy();
      case "resets":
        return void this.#socket.resetAndDestroy();
      case "closes its sending side":
        return void this.#socket.end();
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #body({ fields }: Asked): string {
    const bare = JSON.stringify({ model: "m1", ...fields, input: "" });
    const padding = "a fair question ".repeat(Math.ceil(this.#shape.bodyBytes / 16));
    const input = padding.slice(0, Math.max(2, this.#shape.bodyBytes - bare.length));
    return JSON.stringify({ model: "m1", ...fields, input });
  }

  async #send({ path = "/v1/responses", ...asked }: Asked, body: string): Promise<void> {
    const { chunked, headBytes = 0, pauseMs = 0 } = this.#shape;
    const head = message([
      `POST ${path} HTTP/1.1`,
      ...HEADERS,
      ...headBytes > 0 ? [`x-codex-turn-metadata: ${"m".repeat(headBytes)}`] : [],
      chunked ? "transfer-encoding: chunked" : `content-length: ${this.#body(asked).length}`,
    ]);
    if (pauseMs === 0) return await this.#write(head + body);
    await this.#write(head);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    await this.#write(body);
  }

  #write(text: string): Promise<void> {
    return new Promise((resolve) => void this.#socket.write(text, "latin1", () => resolve()));
  }
}

const LAST_CHUNK = "0\r\n\r\n";

function chunksOf(body: string): string {
  let text = "";
  for (let at = 0; at < body.length; at += CHUNK_BYTES) {
    const chunk = body.slice(at, at + CHUNK_BYTES);
    text += `${chunk.length.toString(16)}\r\n${chunk}\r\n`;
  }
  return text;
}
