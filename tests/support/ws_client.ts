/**
 * A client's side of a WebSocket in tests, by way of `ws`: it shows refused handshakes, pings and close codes.
 */
import type { Socket } from "node:net";
// @ts-types="@types/ws"
import { type RawData, WebSocket } from "ws";

export interface Close {
  readonly code: number;
  readonly reason: string;
}

export type Opened =
  | { readonly ok: true; readonly client: WsClient }
  | { readonly ok: false; readonly status: number; readonly headers: Headers; readonly body: string }
  /** The connection ended before any answer. */
  | { readonly ok: false; readonly status: 0; readonly headers: Headers; readonly body: "" };

export interface OpenOptions {
  readonly headers?: Record<string, string>;
  readonly protocols?: readonly string[];
  /** False: pings of the proxy are not answered. */
  readonly autoPong?: boolean;
  readonly signal?: AbortSignal;
}

/** Waits for the answer to the handshake. */
export function openWs(url: string, options: OpenOptions = {}): Promise<Opened> {
  const socket = new WebSocket(url.replace(/^http/, "ws"), [...options.protocols ?? []], {
    headers: options.headers ?? {},
    autoPong: options.autoPong ?? true,
    perMessageDeflate: true,
    maxPayload: 134_217_728,
  });
  const client = new WsClient(socket);
  const { promise, resolve } = Promise.withResolvers<Opened>();
  const headersOf = (message: { rawHeaders: string[] }): Headers => {
    const headers = new Headers();
    for (let at = 0; at + 1 < message.rawHeaders.length; at += 2) {
      headers.append(message.rawHeaders[at]!, message.rawHeaders[at + 1]!);
    }
    return headers;
  };
  socket.on("upgrade", (message) => client.headers = headersOf(message));
  socket.on("open", () => resolve({ ok: true, client }));
  socket.on("unexpected-response", async (_, message) => {
    let body = "";
    for await (const chunk of message) body += new TextDecoder().decode(chunk);
    resolve({ ok: false, status: message.statusCode!, headers: headersOf(message), body });
    socket.terminate();
  });
  socket.on("error", () => resolve({ ok: false, status: 0, headers: new Headers(), body: "" }));
  options.signal?.addEventListener("abort", () => socket.terminate(), { once: true });
  return promise;
}

/** As `openWs`, for handshakes that must succeed. @throws Error with the refusal. */
export async function mustOpenWs(url: string, options: OpenOptions = {}): Promise<WsClient> {
  const opened = await openWs(url, options);
  if (!opened.ok) throw new Error(`The handshake was refused: ${opened.status} ${opened.body}`);
  return opened.client;
}

export class WsClient implements AsyncDisposable {
  headers = new Headers();
  /** Every frame so far: text as it is, binary as bytes. */
  readonly frames: (string | Uint8Array)[] = [];
  readonly pings: string[] = [];
  readonly pongs: string[] = [];
  readonly closed: Promise<Close>;
  readonly socket: WebSocket;
  #taken = 0;
  #wake: () => void = () => {};
  #close: Close | null = null;

  constructor(socket: WebSocket) {
    this.socket = socket;
    const { promise, resolve } = Promise.withResolvers<Close>();
    this.closed = promise;
    socket.on("message", (data: RawData, binary: boolean) => {
      const bytes = new Uint8Array(data as unknown as ArrayBuffer);
      this.frames.push(binary ? bytes : new TextDecoder().decode(bytes));
      this.#wake();
    });
    socket.on("ping", (data) => this.pings.push(data.toString()));
    socket.on("pong", (data) => this.pongs.push(data.toString()));
    socket.on("close", (code, reason) => {
      this.#close = { code, reason: reason.toString() };
      this.#wake();
      resolve(this.#close);
    });
  }

  get protocol(): string {
    return this.socket.protocol;
  }

  get isClosed(): boolean {
    return this.#close !== null;
  }

  send(frame: unknown): void {
    this.socket.send(
      typeof frame === "string" || frame instanceof Uint8Array ? frame : JSON.stringify(frame),
    );
  }

  /** One turn as the official client asks for it. */
  create(fields: Record<string, unknown> = {}): void {
    this.send({ type: "response.create", model: "m1", instructions: "", input: [], ...fields });
  }

  /** The next frame nobody took yet. @throws Error when the socket closes first. */
  async next(): Promise<string | Uint8Array> {
    while (this.#taken >= this.frames.length) {
      if (this.#close !== null) throw new Error(`The socket closed first: ${JSON.stringify(this.#close)}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    return this.frames[this.#taken++]!;
  }

  /** Lets go of the frames that were taken: a long run would keep them all. */
  forget(): void {
    this.frames.splice(0, this.#taken);
    this.#taken = 0;
  }

  async json(): Promise<Record<string, unknown>> {
    return JSON.parse(await this.next() as string);
  }

  /** Frames up to and with the first of one of these types; their types. */
  async until(...types: string[]): Promise<string[]> {
    const seen: string[] = [];
    while (true) {
      const type = String((await this.json()).type);
      seen.push(type);
      if (types.includes(type)) return seen;
    }
  }

  /** The TCP connection below, to be rude on it. */
  get tcp(): Socket {
    return (this.socket as unknown as { _socket: Socket })._socket;
  }

  async close(code = 1000, reason = ""): Promise<Close> {
    this.socket.close(code, reason);
    return await this.closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#close !== null) return;
    this.socket.terminate();
    await this.closed;
  }
}
