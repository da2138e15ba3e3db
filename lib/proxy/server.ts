/**
 * The listener: serves, drains on stop, and never leaves an answer half sent without telling its upstream.
 *
 * Over `node:http` and not `Deno.serve`, which in 2.9.6 does not look at a connection whose request took more than
 * its first read until it writes to it again: a client that leaves while it waits would not be noticed.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Buffer } from "node:buffer";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock, Log } from "../ports.ts";
import { Answer } from "./answer.ts";
import type { ClientRequest } from "./client_request.ts";
import { HttpRequest, sendAnswer } from "./http_exchange.ts";
import { Upgrader, WaitingUpgrade } from "./http_upgrade.ts";
import { ListenerWatch } from "./listener_watch.ts";
import type { OpenSockets } from "./open_sockets.ts";

export interface RunningServer {
  readonly hostname: string;
  readonly port: number;
  /** True from the first moment of `stop`: new requests are answered 503. */
  readonly draining: boolean;
  /** Answers not yet given or not yet taken whole by their clients, and upgraded connections. */
  readonly openCount: number;
  /** Lets what is under way finish for at most `graceMs`, then ends it. Resolves when every socket is closed. */
  stop(graceMs: number): Promise<void>;
}

export interface ServerOptions {
  readonly hostname: string;
  readonly port: number;
  readonly handler: (request: ClientRequest) => Answer | Promise<Answer>;
  readonly clock: Clock;
  readonly log: Log;
  readonly sockets: OpenSockets;
  /** For the head of a request to come whole, from the connection on or from its first byte; a minute if absent. */
  readonly headLimitMs?: number;
  /** Called when the grace is over: whatever still runs must end now. */
  readonly abortAll: () => void;
}

/** How often a stop looks whether everything has ended. */
const LOOK_MS = 20;
/** For in-stream endings and close frames to go out, before sockets are closed under whatever remains. */
const LAST_WORDS_MS = 200;
const HEAD_LIMIT_MS = 60_000;
const HEAD_LIMIT_BYTES = 65_536;
/** So much of an answer may wait for its client; then its source is not asked for more. */
const WAITING_LIMIT_BYTES = 262_144;
/** More requests than any client sends ahead. */
const AHEAD_LIMIT = 32;
/** Connections whose client is gone without a word are found out by the system. */
const ALIVE_AFTER_MS = 60_000;
/** One trouble that goes on is told once in this time. */
const TOLD_EVERY_MS = 10_000;
/** The answer to an upgrade that was accepted: it has gone out already. */
const SWITCHED = 101;

/** @throws the system's error, with its `code`, when the address cannot be bound. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const listening = new Listening(options);
  await listening.start();
  return listening;
}

interface Connection {
  /** A request of it is being served. */
  isBusy: boolean;
  /** Requests that came ahead of their turn. */
  readonly waiting: Waiting[];
}

interface Waiting {
  readonly start: () => void;
  /** The connection is over before its turn. */
  readonly over: () => void;
}

class Listening implements RunningServer {
  readonly hostname: string;
  #port: number;
  readonly #options: ServerOptions;
  readonly #upgrader: Upgrader;
  /** Servers whose connections may still be open; the last one listens. */
  readonly #servers = new Set<Server>();
  /** Connections that speak HTTP. */
  readonly #connections = new Map<Socket, Connection>();
  /** Connections whose last answer is on its way. */
  readonly #ending = new WeakSet<Socket>();
  /** Connections that left HTTP. */
  readonly #upgraded = new Set<Duplex>();
  #watch: ListenerWatch | null = null;
  #accepted = 0;
  #unsent = 0;
  #stopping: Promise<void> | null = null;
  #toldAtMs = -Infinity;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#upgrader = new Upgrader(options.clock);
    this.hostname = options.hostname;
    this.#port = options.port;
  }

  get port(): number {
    return this.#port;
  }

  get draining(): boolean {
    return this.#stopping !== null;
  }

  get openCount(): number {
    return this.#unsent + this.#options.sockets.size;
  }

  async start(): Promise<void> {
    this.#port = await this.#listen();
    this.#watch = new ListenerWatch({
      clock: this.#options.clock,
      accepted: () => this.#accepted,
      knock: () => Deno.connect({ hostname: ownAddress(this.hostname), port: this.#port }),
      deaf: () => this.#relisten(),
    });
  }

  stop(graceMs: number): Promise<void> {
    return this.#stopping ??= this.#drain(this.#options.clock.now() + graceMs);
  }

  /** @returns the port. */
  async #listen(): Promise<number> {
    const { headLimitMs = HEAD_LIMIT_MS } = this.#options;
    const server = createServer({
      headersTimeout: headLimitMs,
      connectionsCheckingInterval: headLimitMs / 10,
      // How slowly a body may come is looked after where it is read.
      requestTimeout: 0,
      // One that we closed under a client's next request would fail it.
      keepAliveTimeout: 0,
      keepAlive: true,
      keepAliveInitialDelay: ALIVE_AFTER_MS,
      maxHeaderSize: HEAD_LIMIT_BYTES,
      highWaterMark: WAITING_LIMIT_BYTES,
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
    }, (incoming, response) => this.#serve(incoming, response));
    // Beyond its number they are not refused, but forgotten; their length is limited anyway.
    server.maxHeadersCount = 0;
    // Else the runtime answers 417 by itself and leaves the body unread; RFC 9110 section 10.1.1 lets us pass it over.
    server.on("checkExpectation", (incoming, response) => this.#serve(incoming, response));
    server.on("upgrade", (incoming, socket, head) => this.#serveUpgrade(incoming, socket, head));
    server.on("connection", (socket) => {
      this.#accepted++;
      const connection: Connection = { isBusy: false, waiting: [] };
      this.#connections.set(socket, connection);
      socket.on("close", () => {
        this.#connections.delete(socket);
        // The runtime tells a response of its connection's end only once it is the next to be sent.
        for (const { over } of connection.waiting.splice(0)) over();
      });
    });
    await new Promise<void>((resolve, reject) => {
      server.on("error", reject);
      server.listen(this.#port, this.hostname, resolve);
    });
    this.#servers.add(server);
    return (server.address() as AddressInfo).port;
  }

  /** Another listener takes the place of one that is deaf, and connections that nobody needs now make room for it. */
  #relisten(): void {
    const { clock, log } = this.#options;
    if (clock.now() - this.#toldAtMs >= TOLD_EVERY_MS) {
      this.#toldAtMs = clock.now();
      log.write("error", "listener_failed", { open: this.openCount, connections: this.#connections.size });
    }
    for (const server of this.#servers) server.close(() => this.#servers.delete(server));
    for (const [socket, { isBusy }] of this.#connections) if (!isBusy) socket.destroy();
    // The next look tells whether it went well.
    this.#listen().catch(() => {});
  }

  /** Requests of one connection are served one after the other, also those that come ahead of their turn. */
  #serve(incoming: IncomingMessage, response: ServerResponse): void {
    const { socket } = incoming;
    const connection = this.#connections.get(socket);
    // What came behind a request that was the connection's last is nobody's.
    if (connection === undefined || this.#ending.has(socket)) return;
    const request = new HttpRequest(incoming, null);
    const over = this.#count(request, incoming, response);
    response.on("close", () => {
      connection.isBusy = false;
      connection.waiting.shift()?.start();
    });
    const start = (): void => {
      // The answer before it was the last: this one's turn never comes, and the runtime tells nobody.
      if (this.#ending.has(socket)) return over();
      connection.isBusy = true;
      this.#start(incoming, request, response);
    };
    if (!connection.isBusy) return start();
    connection.waiting.push({ start, over });
    if (connection.waiting.length > AHEAD_LIMIT) socket.destroy();
  }

  #start(incoming: IncomingMessage, request: HttpRequest, response: ServerResponse): void {
    const send = (answer: Answer): void => {
      if (answer.headers.get("connection") === "close") this.#ending.add(incoming.socket);
      sendAnswer(request, response, answer, this.#options.clock);
    };
    // The parser takes 0.9 and 2.0 as well, and means 1.1 by them.
    if (incoming.httpVersionMajor !== 1) return send(wrongVersion());
    this.#answer(request, send, () => response.destroy());
  }

  #serveUpgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const connection = this.#connections.get(incoming.socket);
    if (connection === undefined || this.#ending.has(incoming.socket)) return void socket.destroy();
    const upgrade = new WaitingUpgrade(this.#upgrader, incoming, socket, head);
    const request = new HttpRequest(incoming, upgrade);
    upgrade.onLeft = () => request.left();
    const start = (): void => {
      if (!this.#ending.has(incoming.socket)) this.#startUpgrade(incoming, request, upgrade, socket);
    };
    // Its 101 would be taken for the answer to the request before it.
    if (connection.isBusy) connection.waiting.push({ start, over: () => {} });
    else start();
  }

  #startUpgrade(
    incoming: IncomingMessage,
    request: HttpRequest,
    upgrade: WaitingUpgrade,
    socket: Duplex,
  ): void {
    this.#connections.delete(incoming.socket);
    this.#upgraded.add(socket);
    const answered = this.#countOne();
    socket.on("close", () => {
      this.#upgraded.delete(socket);
      answered();
    });
    this.#answer(request, (answer) => {
      answered();
      if (answer.status === SWITCHED || socket.destroyed) return;
      const response = upgrade.refuse();
      this.#count(request, incoming, response);
      sendAnswer(request, response, answer, this.#options.clock);
    }, () => socket.destroy());
  }

  /** Counts an answer until its client has taken it whole or is gone. @returns what to call when it is gone. */
  #count(request: HttpRequest, incoming: IncomingMessage, response: ServerResponse): () => void {
    const uncount = this.#countOne();
    const over = (): void => {
      uncount();
      if (!response.writableFinished) request.left();
    };
    response.on("close", over);
    // For one the runtime did not make, the other comes only with its connection's end.
    response.on("finish", over);
    // Whatever is said here is said by `close` as well.
    response.on("error", () => {});
    incoming.on("error", () => {});
    return over;
  }

  /** @returns what to call when it is over; once or more. */
  #countOne(): () => void {
    this.#unsent++;
    let isOver = false;
    return () => {
      if (!isOver) this.#unsent--;
      isOver = true;
    };
  }

  #answer(request: HttpRequest, send: (answer: Answer) => void, giveUp: () => void): void {
    const fail = (error: unknown): void => {
      try {
        send(this.#answerBroken(error));
      } catch {
        giveUp();
      }
    };
    try {
      const answer = this.#options.handler(request);
      if (answer instanceof Answer) send(answer);
      else answer.then(send).catch(fail);
    } catch (error) {
      fail(error);
    }
  }

  /** New requests are refused meanwhile, by the handler, which sees that we are draining. */
  async #drain(endMs: number): Promise<void> {
    const { clock, sockets, abortAll } = this.#options;
    sockets.drain();
    while (this.openCount > 0 && clock.now() < endMs) {
      await clock.sleepUntil(Math.min(clock.now() + LOOK_MS, endMs), null);
    }
    if (this.openCount > 0) {
      abortAll();
      await clock.sleepUntil(clock.now() + LAST_WORDS_MS, null);
    }
    this.#watch?.stop();
    const closed = [...this.#servers].map((server) =>
      new Promise<void>((resolve) => server.close(() => resolve()))
    );
    for (const socket of this.#connections.keys()) socket.destroy();
    for (const socket of this.#upgraded) socket.destroy();
    await Promise.all(closed);
  }

  /** Only a broken invariant comes here; the client gets no detail. */
  #answerBroken(error: unknown): Answer {
    this.#options.log.write("error", "handler_failed", {
      problem: error instanceof Error ? error.name : "unknown",
    });
    const body = { message: "Internal error", type: "server_error", code: "internal_error", param: null };
    return new Answer(JSON.stringify({ error: body }), {
      status: 500,
      headers: { "content-type": "application/json" },
    });
  }
}

function wrongVersion(): Answer {
  return new Answer("Only HTTP/1.1 and 1.0 are spoken here\n", {
    status: 505,
    headers: { "content-type": "text/plain; charset=utf-8", connection: "close" },
  });
}

/** An address under which this machine reaches itself. */
function ownAddress(hostname: string): string {
  return hostname === "0.0.0.0" ? "127.0.0.1" : hostname === "::" ? "::1" : hostname;
}
