/** WebSocket handshakes of clients, over `node:http` and `npm:ws`. */
import { Buffer } from "node:buffer";
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
// @ts-types="@types/ws"
import { type WebSocket, WebSocketServer } from "ws";
import type { HeaderList } from "../core/header_fields.ts";
import type { Clock, Scheduled } from "../ports.ts";
import type { Upgrade } from "./client_request.ts";
import type { ClientSocket } from "./client_socket.ts";

/** The bridge ends a socket with larger messages in its own words first. */
const MESSAGE_LIMIT_BYTES = 67_108_864;
/** No client may send frames before it was answered; so much of them is kept, the rest waits in the network. */
const EARLY_LIMIT_BYTES = 65_536;

/** For a client whose handshake was refused to close its side as well. */
const REFUSED_LIMIT_MS = 2_000;

/** Makes server sockets of handshakes; one for a listener. */
export class Upgrader {
  readonly #clock: Clock;
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MESSAGE_LIMIT_BYTES,
  });
  /** Header lines of the one handshake being answered. */
  #lines: readonly string[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#server.on("headers", (lines: string[]) => lines.push(...this.#lines));
  }

  /** Ends a connection whose client does not. */
  destroyLater(socket: Duplex): void {
    const scheduled = this.#clock.schedule(this.#clock.now() + REFUSED_LIMIT_MS, () => socket.destroy());
    socket.on("close", () => scheduled.cancel());
  }

  /** @returns `null` when the connection is gone. */
  upgrade(
    incoming: IncomingMessage,
    socket: Duplex,
    early: Buffer,
    headers: HeaderList,
    protocol: string,
    silenceMs: number,
  ): ClientSocket | null {
    const lines: string[] = [];
    headers.forEach((value, name) => lines.push(`${name}: ${value}`));
    if (protocol !== "") lines.push(`sec-websocket-protocol: ${protocol}`);
    this.#lines = lines;
    // Which one is taken is the upstream's choice, and words that are none are passed over.
    delete incoming.headers["sec-websocket-protocol"];
    let opened: WebSocket | null = null;
    this.#server.handleUpgrade(incoming, socket, early, (webSocket) => opened = webSocket);
    return opened === null ? null : watched(opened, this.#clock, silenceMs);
  }
}

/** The socket as a bridge takes it; a client is pinged after half of that silence, and given up after all of it. */
function watched(socket: WebSocket, clock: Clock, silenceMs: number): ClientSocket {
  let heard = true;
  let timer: Scheduled;
  const hear = (): void => void (heard = true);
  const look = (): void => {
    if (!heard) return socket.terminate();
    heard = false;
    socket.ping();
    timer = clock.schedule(clock.now() + silenceMs / 2, look);
  };
  timer = clock.schedule(clock.now() + silenceMs / 2, look);
  socket.on("message", hear);
  socket.on("ping", hear);
  socket.on("pong", hear);
  socket.on("close", () => timer.cancel());
  socket.binaryType = "arraybuffer";
  const client = socket as unknown as ClientSocket;
  queueMicrotask(() => client.onopen?.(new Event("open")));
  return client;
}

/** A connection that waits for its 101. */
export class WaitingUpgrade implements Upgrade {
  readonly #upgrader: Upgrader;
  readonly #incoming: IncomingMessage;
  readonly #socket: Duplex;
  readonly #early: Buffer[];
  #earlyBytes: number;
  #isOver = false;
  /** Told when the client leaves while it waits. */
  onLeft: () => void = () => {};

  constructor(upgrader: Upgrader, incoming: IncomingMessage, socket: Duplex, head: Buffer) {
    this.#upgrader = upgrader;
    this.#incoming = incoming;
    this.#socket = socket;
    this.#early = [head];
    this.#earlyBytes = head.length;
    // Only a connection that is read is seen to end.
    socket.on("data", this.#keep);
    socket.on("end", this.#leave);
    socket.on("close", this.#leave);
    socket.on("error", this.#leave);
  }

  accept(headers: HeaderList, protocol: string, silenceMs: number): ClientSocket | null {
    if (this.#isOver) return null;
    this.#stop();
    const early = Buffer.concat(this.#early);
    return this.#upgrader.upgrade(this.#incoming, this.#socket, early, headers, protocol, silenceMs);
  }

  /** For an answer that is none: the connection ends with it. */
  refuse(): ServerResponse {
    const response = new ServerResponse(this.#incoming);
    response.shouldKeepAlive = false;
    // deno-lint-ignore no-explicit-any -- a Duplex here, always a Socket
    response.assignSocket(this.#socket as any);
    response.on("finish", () => {
      this.#stop();
      this.#socket.on("error", () => {});
      this.#socket.end();
      this.#socket.resume();
      this.#upgrader.destroyLater(this.#socket);
    });
    return response;
  }

  readonly #keep = (piece: Buffer): void => {
    this.#early.push(piece);
    this.#earlyBytes += piece.length;
    if (this.#earlyBytes > EARLY_LIMIT_BYTES) this.#socket.pause();
  };

  readonly #leave = (): void => {
    if (this.#isOver) return;
    this.#stop();
    this.#socket.on("error", () => {});
    this.#socket.destroy();
    this.onLeft();
  };

  #stop(): void {
    this.#isOver = true;
    this.#socket.off("data", this.#keep);
    this.#socket.off("end", this.#leave);
    this.#socket.off("close", this.#leave);
    this.#socket.off("error", this.#leave);
  }
}
