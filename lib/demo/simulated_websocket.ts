/** Plays a scripted reply over an accepted WebSocket. */
import { Buffer } from "node:buffer";
import type { IncomingMessage } from "node:http";
// @ts-types="@types/ws"
import { type WebSocket, WebSocketServer } from "ws";
import type { Bytes, WireRequest } from "./http_wire.ts";
import type { Reply } from "./simulated_reply.ts";
import { pause, type ReplyContext } from "./simulated_sender.ts";
import type { Step } from "./simulated_steps.ts";

/** Above everything a test sends; the provider's own limits are scripted, not simulated. */
const MAX_PAYLOAD_BYTES = 67_108_864;

/** Resolves when the socket is closed. */
export async function acceptWebSocket(
  request: WireRequest,
  reply: Extract<Reply, { kind: "accept" }>,
  context: ReplyContext,
): Promise<void> {
  const { connection } = context;
  const socket = await upgrade(request, reply, context);
  if (socket === null) {
    connection.drop();
    return;
  }
  const player = new SocketPlayer(socket, context);
  await player.play(reply.steps);
  await connection.left;
  socket.terminate();
  await player.closed;
}

function upgrade(
  request: WireRequest,
  reply: Extract<Reply, { kind: "accept" }>,
  context: ReplyContext,
): Promise<WebSocket | null> {
  const server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: true,
    maxPayload: MAX_PAYLOAD_BYTES,
    handleProtocols: (offered) => reply.protocol ?? [...offered][0] ?? false,
  });
  server.on("headers", (lines) => {
    for (const [name, value] of Object.entries(reply.headers)) lines.push(`${name}: ${value}`);
  });
  const message = {
    method: request.method,
    url: request.target,
    httpVersion: "1.1",
    headers: Object.fromEntries(request.headers),
  } as unknown as IncomingMessage;
  const { promise, resolve } = Promise.withResolvers<WebSocket | null>();
  // A handshake that `ws` itself refuses never calls back.
  context.connection.left.then(() => resolve(null));
  server.handleUpgrade(message, context.connection.release(), Buffer.from(request.rest), resolve);
  return promise;
}

class SocketPlayer {
  readonly #socket: WebSocket;
  readonly #context: ReplyContext;
  /** Frames that came and were not waited for yet. */
  #waiting = 0;
  #wake: () => void = () => {};
  readonly #closed = Promise.withResolvers<void>();

  constructor(socket: WebSocket, context: ReplyContext) {
    this.#socket = socket;
    this.#context = context;
    const { hit } = context;
    socket.on("message", (data, binary) => {
      const bytes = new Uint8Array(data as Buffer);
      hit.frames.push(binary ? bytes : new TextDecoder().decode(bytes));
      this.#waiting++;
      this.#wake();
    });
    socket.on("pong", (data) => hit.signals.push(`pong ${data}`));
    socket.on("ping", (data) => hit.signals.push(`ping ${data}`));
    socket.on("close", (code, reason) => {
      hit.signals.push(`close ${code} ${reason}`);
      this.#closed.resolve();
    });
    // The peer may break the protocol or the connection on purpose; `left` tells.
    socket.on("error", () => {});
  }

  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  async play(steps: Iterable<Step>): Promise<void> {
    const { connection } = this.#context;
    for (const step of steps) {
      if (connection.gone) return;
      switch (step.kind) {
        case "event":
          await this.#send(step.data);
          break;
        case "bytes":
          await this.#send(step.bytes);
          break;
        case "delay":
        case "gate":
          await pause(step, this.#context);
          break;
        case "receive":
          await this.#receive();
          break;
        case "ping":
          this.#socket.ping(step.data);
          break;
        case "deaf":
          this.#socket.pause();
          break;
        case "close":
          this.#socket.close(step.code, step.reason);
          return;
        case "rst":
          connection.reset();
          return;
        case "fin":
          connection.finish();
          return;
        case "hold":
          return;
        default: {
          const never: never = step;
          return never;
        }
      }
    }
  }

  async #send(data: string | Bytes): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#socket.send(data, () => resolve());
    await promise;
  }

  async #receive(): Promise<void> {
    if (this.#waiting === 0) {
      await this.#context.connection.unlessLeft((resolve) => {
        this.#wake = resolve;
        return () => this.#wake = () => {};
      });
    }
    this.#waiting--;
  }
}
