/**
 * One request of a client and the answer to it, over `node:http`.
 *
 * The header fields are taken as they came (`rawHeaders`): the runtime's own list forgets repeats.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { freeBytes } from "../core/byte_memory.ts";
import { frameChunk } from "../core/chunk.ts";
import { HeaderFields } from "../core/header_fields.ts";
import type { ByteSource, Clock } from "../ports.ts";
import type { Answer } from "./answer.ts";
import type { ClientRequest, Progress, RequestSource, Upgrade } from "./client_request.ts";

type Bytes = Uint8Array<ArrayBuffer>;

export class HttpRequest implements ClientRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: HeaderFields;
  readonly body: IncomingBody | null;
  readonly upgrade: Upgrade | null;
  readonly #incoming: IncomingMessage;
  readonly #callbacks: (() => void)[] = [];
  #hasLeft = false;

  constructor(incoming: IncomingMessage, upgrade: Upgrade | null) {
    this.#incoming = incoming;
    this.method = incoming.method ?? "";
    this.target = incoming.url ?? "";
    this.headers = HeaderFields.fromWire(incoming.rawHeaders);
    this.upgrade = upgrade;
    const hasBody = upgrade === null &&
      (this.headers.has("content-length") || this.headers.has("transfer-encoding"));
    this.body = hasBody ? new IncomingBody(incoming) : null;
  }

  get address(): string | null {
    return this.#incoming.socket.remoteAddress ?? null;
  }

  whenLeft(callback: () => void): void {
    if (this.#hasLeft) callback();
    else this.#callbacks.push(callback);
  }

  /** The connection is over, and the answer was not. */
  left(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    for (const callback of this.#callbacks) callback();
  }
}

/** So much of a body may wait for its reader. */
const WAITING_LIMIT_BYTES = 262_144;

/** A body on its way into its memory. Not a closure: one for each request is kept until the next full collection. */
interface Filling {
  readonly into: Bytes;
  readonly progress: Progress;
  at: number;
}

function fill(filling: Filling, piece: Bytes): void {
  // More than was declared the parser lets nobody send; thrown from here it would end the process.
  const fits = piece.length <= filling.into.length - filling.at;
  if (fits) filling.into.set(piece, filling.at);
  filling.at += piece.length;
  filling.progress.count(piece.length);
  freeBytes(piece);
}

class IncomingBody implements RequestSource {
  readonly #incoming: IncomingMessage;
  readonly #queue: Bytes[] = [];
  #queuedBytes = 0;
  #state: "untouched" | "open" | "ended" | "broken" = "untouched";
  #wake: (() => void) | null = null;
  /** Where the pieces go as they come, else they wait in the queue: a promise for each takes longer than copying it. */
  #filling: Filling | null = null;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
  }

  async read(): Promise<Bytes | null> {
    this.#begin();
    if (this.#queue.length === 0 && this.#state === "open") {
      await new Promise<void>((wake) => this.#wake = wake);
    }
    const next = this.#queue.shift();
    if (next !== undefined) {
      this.#queuedBytes -= next.length;
      if (this.#queuedBytes < WAITING_LIMIT_BYTES) this.#incoming.resume();
      return next;
    }
    if (this.#isBroken()) throw new BodyCut();
    return null;
  }

  async whole(into: Bytes, progress: Progress): Promise<number> {
    const filling = this.#filling = { into, progress, at: 0 };
    this.#begin();
    if (this.#state === "open") await new Promise<void>((wake) => this.#wake = wake);
    this.#filling = null;
    if (this.#isBroken()) throw new BodyCut();
    return filling.at;
  }

  /** What still comes is read and dropped: a client may send all of it before it looks at its answer. */
  cancel(): void {
    this.#drop("ended");
  }

  /** The answer is out: as `cancel`, but whoever still reads must not take what came for all of it. */
  abandon(): void {
    if (this.#state !== "ended") this.#drop("broken");
  }

  /** Calls back once nothing of it is to come any more; at once if that is so. */
  whenOver(callback: () => void): void {
    if (this.#incoming.complete || this.#incoming.destroyed) return callback();
    this.#incoming.once("end", callback);
    this.#incoming.once("close", callback);
  }

  #drop(state: "ended" | "broken"): void {
    this.#queue.length = this.#queuedBytes = 0;
    this.#close(state);
    this.#incoming.resume();
  }

  #begin(): void {
    if (this.#state !== "untouched") return;
    this.#state = "open";
    this.#incoming.on("data", (piece: Bytes) => this.#push(piece));
    this.#incoming.on("end", () => this.#close("ended"));
    this.#incoming.on("close", () => this.#close("broken"));
  }

  #push(piece: Bytes): void {
    if (this.#state !== "open") return;
    if (this.#filling !== null) return fill(this.#filling, piece);
    this.#queue.push(piece);
    this.#queuedBytes += piece.length;
    if (this.#queuedBytes >= WAITING_LIMIT_BYTES) this.#incoming.pause();
    this.#wake?.();
    this.#wake = null;
  }

  #isBroken(): boolean {
    return this.#state === "broken";
  }

  #close(state: "ended" | "broken"): void {
    if (this.#state === "ended" || this.#state === "broken") return;
    this.#state = state;
    this.#wake?.();
    this.#wake = null;
  }
}

/** The client went in the middle of its body. */
export class BodyCut extends Error {
  override readonly name = "BodyCut";
}

/** A connection that is closed while its client sends is reset, and the answer may be lost: so long it may go on. */
const LINGER_MS = 2_000;

/** Hands an answer to the client at its own pace. Whatever goes wrong on the way is the connection's end. */
export function sendAnswer(
  request: HttpRequest,
  response: ServerResponse,
  answer: Answer,
  clock: Clock,
): void {
  const { body, headers, status } = answer;
  const head: string[] = [];
  headers.forEach((value, name) => head.push(name, value));
  const bodyless = request.method === "HEAD" || status === 204 || status === 304;
  if (body === null || body instanceof Uint8Array) {
    if (!headers.has("content-length") && (!bodyless || body !== null)) {
      head.push("content-length", String(body?.length ?? 0));
    }
    response.writeHead(status, head);
    const content = bodyless ? null : body;
    const isLast = !response.shouldKeepAlive || headers.get("connection") === "close";
    if (isLast && request.body !== null) endLater(request.body, response, content, clock);
    else if (content === null) response.end();
    else if (content.length < LARGE_PIECE_BYTES) response.end(content);
    else response.end(content, () => freeBytes(content));
    request.body?.abandon();
    return;
  }
  response.writeHead(status, head);
  if (bodyless) {
    body.cancel();
    response.end();
    return;
  }
  response.flushHeaders();
  void pump(request, response, body);
}

/** The client has the whole answer by its length. */
function endLater(
  upload: IncomingBody,
  response: ServerResponse,
  content: Bytes | null,
  clock: Clock,
): void {
  if (content === null) response.flushHeaders();
  else {
    response.write(content);
    // At once: what is wrong in the body ends the connection with whatever waits on it.
    response.socket?.uncork();
  }
  const scheduled = clock.schedule(clock.now() + LINGER_MS, () => response.end());
  upload.whenOver(() => {
    scheduled.cancel();
    response.end();
  });
}

async function pump(request: HttpRequest, response: ServerResponse, body: ByteSource): Promise<void> {
  let hasLeft = false;
  let wake: (() => void) | null = null;
  const goOn = (): void => {
    wake?.();
    wake = null;
  };
  request.whenLeft(() => {
    hasLeft = true;
    body.cancel();
    goOn();
  });
  const writer = new BodyWriter(response);
  const { socket } = response;
  socket?.on("drain", goOn);
  try {
    while (!hasLeft) {
      const piece = await body.read();
      if (hasLeft) return;
      if (piece === null) break;
      if (!writer.write(piece)) await new Promise<void>((resolve) => wake = resolve);
    }
    if (hasLeft) return;
    response.end();
    request.body?.abandon();
  } catch {
    // In the middle of a body there is no other way to say that it is not whole.
    response.destroy();
  } finally {
    socket?.off("drain", goOn);
  }
}

/** From here on a piece is not copied to be framed. */
const LARGE_PIECE_BYTES = 16_384;

/**
 * Writes the pieces of a body whose head is out.
 *
 * `ServerResponse` writes a chunk's size, the chunk and its end as three buffers and a tick later: for the few words of
 * an event that costs twice as much as one buffer framed here.
 */
class BodyWriter {
  readonly #response: ServerResponse;
  readonly #socket: Socket | null;

  constructor(response: ServerResponse) {
    this.#response = response;
    this.#socket = response.chunkedEncoding ? response.socket : null;
  }

  /** @returns false when the next piece should wait for the socket's `drain`. */
  write(piece: Bytes): boolean {
    if (piece.length >= LARGE_PIECE_BYTES) return this.#response.write(piece, () => freeBytes(piece));
    return this.#socket === null ? this.#response.write(piece) : this.#socket.write(frameChunk(piece));
  }
}
