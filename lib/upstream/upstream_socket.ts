/**
 * One open WebSocket to an upstream: frames in order and none lost, large messages in fragments, one close.
 */
import { HeaderFields, type HeaderList } from "../core/header_fields.ts";
import { Buffer } from "node:buffer";
// @ts-types="@types/ws"
import type { WebSocket } from "ws";
import type { UpstreamSocket } from "../ports.ts";

/**
 * Messages above this go out in fragments of this size, so that a pong never waits behind megabytes: a peer that
 * reads slowly would take the late pong for a dead connection (field case B099).
 */
export const FRAGMENT_BYTES = 131_072;

type Handlers = Parameters<UpstreamSocket["listen"]>[0];
type Incoming =
  | { readonly kind: "frame"; readonly data: string | Uint8Array }
  | { readonly kind: "ping" | "pong"; readonly data: Uint8Array }
  | { readonly kind: "close"; readonly code: number; readonly reason: string; readonly clean: boolean };

interface Outgoing {
  readonly bytes: Uint8Array;
  readonly binary: boolean;
  sentBytes: number;
}

/** Wraps a `ws` socket; made before the handshake ends, so that frames right behind it find it. */
export class BridgedSocket implements UpstreamSocket {
  headers: HeaderList = new HeaderFields();
  readonly #ws: WebSocket;
  /** What came before `listen`; bounded, because the connection is paused until then. */
  #early: Incoming[] | null = [];
  #handlers: Handlers | null = null;
  /** Not empty exactly while a large message, and what was sent behind it, is on its way in pieces. */
  readonly #outgoing: Outgoing[] = [];
  #waitingBytes = 0;
  #closing: { readonly code: number; readonly reason: string } | null = null;
  /** Close code that a protocol error of the peer stands for. */
  #errorCode: number | null = null;

  constructor(ws: WebSocket) {
    this.#ws = ws;
    ws.on("open", () => ws.pause());
    ws.on("message", (data, binary) => {
      const bytes = data as Buffer;
      this.#take({ kind: "frame", data: binary ? new Uint8Array(bytes) : bytes.toString("utf8") });
    });
    ws.on("ping", (data) => this.#take({ kind: "ping", data: new Uint8Array(data) }));
    ws.on("pong", (data) => this.#take({ kind: "pong", data: new Uint8Array(data) }));
    ws.on("error", (error) => this.#errorCode ??= closeCodeOf(error));
    ws.on("close", (code, reason) => {
      const clean = this.#errorCode === null && code !== ABNORMAL_CLOSE;
      this.#take({ kind: "close", code: this.#errorCode ?? code, reason: reason.toString("utf8"), clean });
    });
  }

  get protocol(): string {
    return this.#ws.protocol;
  }

  get bufferedAmount(): number {
    return this.#waitingBytes + this.#ws.bufferedAmount;
  }

  send(data: string | Uint8Array): void {
    if (this.#ws.readyState !== this.#ws.OPEN || this.#closing !== null) return;
    const binary = typeof data !== "string";
    const bytes = binary ? data : Buffer.from(data, "utf8");
    if (this.#outgoing.length === 0 && bytes.length <= FRAGMENT_BYTES) {
      return this.#ws.send(bytes, { binary }, this.#onSent);
    }
    this.#waitingBytes += bytes.length;
    this.#outgoing.push({ bytes, binary, sentBytes: 0 });
    if (this.#outgoing.length === 1) this.#sendPiece();
  }

  ping(data: Uint8Array = new Uint8Array()): void {
    if (this.#ws.readyState === this.#ws.OPEN) this.#ws.ping(data);
  }

  /** Nothing is read while paused, pings included: a pause longer than the peer's patience for a pong ends the socket. */
  pause(): void {
    this.#ws.pause();
  }

  resume(): void {
    this.#ws.resume();
  }

  /**
   * Closes behind everything sent so far. Codes that may not be sent (1005, 1006, out of range) close without one; a
   * long reason is cut.
   */
  close(code: number, reason: string): void {
    if (this.#closing !== null) return;
    this.#closing = { code, reason };
    // The answer to our close must be read, also by an owner that paused or never listened.
    if (this.#handlers === null) this.#early = null;
    this.#ws.resume();
    if (this.#outgoing.length === 0) this.#sendClose();
  }

  terminate(): void {
    this.#ws.terminate();
  }

  listen(handlers: Handlers): void {
    const early = this.#early ?? [];
    this.#handlers = handlers;
    this.#early = null;
    for (const incoming of early) this.#deliver(handlers, incoming);
    this.#ws.resume();
  }

  #take(incoming: Incoming): void {
    if (this.#early !== null) this.#early.push(incoming);
    else if (this.#handlers !== null) this.#deliver(this.#handlers, incoming);
  }

  #deliver(handlers: Handlers, incoming: Incoming): void {
    switch (incoming.kind) {
      case "frame":
        return handlers.frame(incoming.data);
      case "ping":
        return handlers.ping(incoming.data);
      case "pong":
        return handlers.pong(incoming.data);
      case "close":
        this.#outgoing.length = 0;
        this.#waitingBytes = 0;
        return handlers.close(incoming.code, incoming.reason, incoming.clean);
      default: {
        const never: never = incoming;
        return never;
      }
    }
  }

  /** Sends the next piece of the first message; the one after it follows when this one is on its way. */
  #sendPiece(): void {
    const next = this.#outgoing[0];
    if (next === undefined) return;
    const piece = next.bytes.subarray(next.sentBytes, next.sentBytes + FRAGMENT_BYTES);
    next.sentBytes += piece.length;
    this.#waitingBytes -= piece.length;
    const last = next.sentBytes >= next.bytes.length;
    this.#ws.send(piece, { binary: next.binary, fin: last }, (error) => {
      if (error) return;
      if (last) this.#outgoing.shift();
      this.#sendPiece();
      if (this.#outgoing.length === 0 && this.#closing !== null) this.#sendClose();
      this.#onSent();
    });
  }

  readonly #onSent = () => {
    if (this.bufferedAmount === 0) this.#handlers?.drain();
  };

  #sendClose(): void {
    const { code, reason } = this.#closing!;
    if (sendable(code)) this.#ws.close(code, cutToBytes(reason, MAX_REASON_BYTES));
    else this.#ws.close();
  }
}

/** RFC 6455 section 5.5: control frames carry at most 125 bytes, two of them the code. */
const MAX_REASON_BYTES = 123;
const ABNORMAL_CLOSE = 1006;

function sendable(code: number): boolean {
  return (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== ABNORMAL_CLOSE) ||
    (code >= 3000 && code <= 4999);
}

/** Cuts at a character, never inside one. */
function cutToBytes(text: string, limitBytes: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= limitBytes) return text;
  return new TextDecoder().decode(bytes.subarray(0, limitBytes)).replace(/\uFFFD+$/, "");
}

/** `ws` names what the peer did wrong; a broken connection is no protocol error. */
function closeCodeOf(error: unknown): number | null {
  const code = String((error as { code?: unknown }).code ?? "");
  if (code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH") return 1009;
  if (code === "WS_ERR_INVALID_UTF8") return 1007;
  return code.startsWith("WS_ERR_") ? 1002 : null;
}
