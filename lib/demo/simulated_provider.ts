/**
 * A provider that does what its script says, on 127.0.0.1 and a port of its own.
 *
 * Serves the demo and the tests alike. It knows accounts by credential, logs every call, refuses calls nobody
 * scripted (599) and holds it against the test when a scripted reply was not used. Not a model of any provider's
 * limits: it has no state beyond its script.
 */
import { createServer, type Server, type Socket } from "node:net";
import type { Clock } from "../ports.ts";
import { type Bytes, WireConnection, type WireRequest } from "./http_wire.ts";
import { json, type Question, type Reply } from "./simulated_reply.ts";
import { sendReply } from "./simulated_sender.ts";
import { acceptWebSocket } from "./simulated_websocket.ts";

/** Calls of one kind share a script, so that a background usage read never takes a scripted answer. */
export type LaneName = "answers" | "websocket" | "usage" | "models" | "tokens";

/** One call as it came. */
export interface Hit {
  readonly lane: LaneName;
  readonly atMs: number;
  readonly method: string;
  /** With query. */
  readonly path: string;
  readonly headers: Headers;
  readonly body: Bytes;
  /** Bearer token or API key; on the token endpoint the refresh token; null when there is none. */
  readonly credential: string | null;
  /** Counts the connections of this provider from 1: equal numbers shared a connection. */
  readonly connection: number;
  text(): string;
  /** The body as JSON. @throws SyntaxError when it is none. */
  json(): Record<string, unknown>;
  /** WebSocket only: frames received so far, text as string. */
  readonly frames: (string | Bytes)[];
  /** Pongs and close frame of the client, as they came. */
  readonly signals: string[];
  /** Resolves when the peer closed, half-closed or reset the connection, or we ended it; then `signals` is complete. */
  readonly left: Promise<void>;
  /** Set with `left`; null while the connection is open. */
  leftAtMs: number | null;
}

/** A queue of replies, then a default; without a default every further call is a violation. */
export class Lane {
  readonly #queue: Reply[] = [];
  #fallback: Reply | null = null;

  /** Adds replies, used in order. */
  script(...replies: readonly Reply[]): this {
    this.#queue.push(...replies);
    return this;
  }

  /** What is answered when the queue is empty. */
  otherwise(reply: Reply): this {
    this.#fallback = reply;
    return this;
  }

  next(): Reply | null {
    return this.#queue.shift() ?? this.#fallback;
  }

  get unused(): number {
    return this.#queue.length;
  }
}

/** All lanes of one account; scripting the account itself scripts its answers. */
export class SimulatedAccount extends Lane {
  readonly websocket = new Lane();
  readonly usage = new Lane();
  readonly models = new Lane();
  readonly tokens = new Lane();

  lane(name: LaneName): Lane {
    return name === "answers" ? this : this[name];
  }
}

export interface SimulatedOptions {
  /** Times of the log and the pauses of scripts. A fake one makes a script wait until it is moved. */
  readonly clock: Pick<Clock, "now" | "sleepUntil">;
  /** Where it listens: 127.0.0.1 and any free port unless told otherwise. */
  readonly hostname?: string;
  readonly port?: number;
}

export async function startSimulatedProvider(options: SimulatedOptions): Promise<SimulatedProvider> {
  const { hostname = "127.0.0.1", port = 0 } = options;
  const server = createServer();
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject);
  server.listen(port, hostname, listening.resolve);
  await listening.promise;
  return new SimulatedProvider(server, options.clock);
}

export class SimulatedProvider implements AsyncDisposable {
  readonly hits: Hit[] = [];
  readonly violations: string[] = [];
  /** Scripts for calls whose own account has none for that kind of call. */
  readonly anyone = new SimulatedAccount();
  readonly url: string;
  readonly port: number;
  readonly #server: Server;
  readonly #clock: SimulatedOptions["clock"];
  readonly #accounts = new Map<string, SimulatedAccount>();
  readonly #open = new Map<WireConnection, Promise<void>>();
  #connections = 0;
  #onHit: () => void = () => {};

  constructor(server: Server, clock: SimulatedOptions["clock"]) {
    this.#server = server;
    this.#clock = clock;
    const { address, port } = server.address() as { address: string; port: number };
    this.port = port;
    this.url = `http://${address}:${port}`;
    server.on("connection", (socket: Socket) => this.#serve(socket));
  }

  /** The script of the account with this bearer token, API key or (token endpoint) refresh token. */
  account(credential: string): SimulatedAccount {
    const known = this.#accounts.get(credential);
    if (known !== undefined) return known;
    const made = new SimulatedAccount();
    this.#accounts.set(credential, made);
    return made;
  }

  /** Calls of one account, all lanes or one. */
  hitsOf(credential: string, lane: LaneName | null = null): readonly Hit[] {
    return this.hits.filter((hit) => hit.credential === credential && (lane === null || hit.lane === lane));
  }

  /** Resolves when at least `count` calls have come. */
  async hitCount(count: number): Promise<void> {
    while (this.hits.length < count) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const previous = this.#onHit;
      this.#onHit = () => {
        previous();
        resolve();
      };
      await promise;
    }
  }

  /** Connections that are open now. */
  get openConnections(): number {
    return this.#open.size;
  }

  /** @throws Error naming every call nobody scripted and every scripted reply nobody used. */
  assertDone(): void {
    const problems = [...this.violations];
    for (const [credential, account] of [["anyone", this.anyone] as const, ...this.#accounts]) {
      for (const lane of LANES) {
        const unused = account.lane(lane).unused;
        if (unused > 0) problems.push(`${credential}: ${unused} scripted ${lane} not used`);
      }
    }
    if (problems.length > 0) throw new Error(`Script was not played as written: ${problems.join("; ")}`);
  }

  /** Drops every connection and stops listening; resolves when nothing is left. */
  async close(): Promise<void> {
    const closed = Promise.withResolvers<void>();
    this.#server.close(() => closed.resolve());
    const serving = [...this.#open];
    for (const [connection] of serving) connection.drop();
    await Promise.all(serving.map(([, done]) => done));
    await closed.promise;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #serve(socket: Socket): void {
    const connection = new WireConnection(socket);
    const number = ++this.#connections;
    const done = this.#converse(connection, number).finally(() => this.#open.delete(connection));
    this.#open.set(connection, done);
  }

  async #converse(connection: WireConnection, number: number): Promise<void> {
    while (!connection.gone) {
      const request = await connection.request();
      if (request === null) break;
      const { hit, markLeft } = this.#log(request, number);
      const reply = this.#choose(hit);
      const context = { connection, hit, clock: this.#clock, dueAtMs: hit.atMs };
      if (reply.kind === "accept") return await acceptWebSocket(request, reply, context).finally(markLeft);
      connection.left.then(markLeft);
      const again = await sendReply(request, reply, context);
      // An upgrade that was refused ends its connection: what follows on it is anybody's guess.
      if (!again || hit.lane === "websocket") break;
    }
    connection.finish();
    // The peer gets what was written; whoever never closes is dropped by `close`.
    await connection.left;
    connection.drop();
  }

  #log(request: WireRequest, number: number): { hit: Hit; markLeft: () => void } {
    const left = Promise.withResolvers<void>();
    const lane = laneOf(request);
    const text = () => new TextDecoder().decode(request.body);
    const hit: Hit = {
      lane,
      atMs: this.#clock.now(),
      method: request.method,
      path: request.target,
      headers: request.headers,
      body: request.body,
      credential: credentialOf(lane, request, text),
      connection: number,
      text,
      json: () => JSON.parse(text()),
      frames: [],
      signals: [],
      left: left.promise,
      leftAtMs: null,
    };
    const markLeft = () => {
      hit.leftAtMs = this.#clock.now();
      left.resolve();
    };
    this.hits.push(hit);
    const notify = this.#onHit;
    this.#onHit = () => {};
    notify();
    return { hit, markLeft };
  }

  #choose(hit: Hit): Reply {
    const own = hit.credential === null ? undefined : this.#accounts.get(hit.credential);
    let reply = own?.lane(hit.lane).next() ?? this.anyone.lane(hit.lane).next();
    if (reply === null) {
      // Lists are asked for in the background: whoever scripts none has none.
      if (hit.lane !== "models") {
        this.violations.push(`nobody scripted ${hit.lane} ${hit.method} ${hit.path} for ${hit.credential}`);
      }
      return json({ error: { message: "nobody scripted this call", code: "unscripted" } }, 599);
    }
    const question = questionOf(hit);
    while (reply.kind === "dynamic") reply = reply.make(question);
    return reply;
  }
}

const LANES: readonly LaneName[] = ["answers", "websocket", "usage", "models", "tokens"];

function laneOf(request: WireRequest): LaneName {
  const path = pathOf(request.target);
  if (request.headers.get("upgrade")?.toLowerCase() === "websocket") return "websocket";
  if (path.endsWith("/oauth/token")) return "tokens";
  if (path.endsWith("/usage")) return "usage";
  return path.endsWith("/models") ? "models" : "answers";
}

function credentialOf(lane: LaneName, request: WireRequest, text: () => string): string | null {
  if (lane === "tokens") {
    const json = parseObject(text());
    const token = json === null ? new URLSearchParams(text()).get("refresh_token") : json["refresh_token"];
    return typeof token === "string" ? token : null;
  }
  const bearer = request.headers.get("authorization")?.replace(/^Bearer /i, "");
  return bearer ?? request.headers.get("x-api-key");
}

function questionOf(hit: Hit): Question {
  return {
    method: hit.method,
    path: pathOf(hit.path),
    websocket: hit.lane === "websocket",
    json: parseObject(hit.text()),
  };
}

function pathOf(target: string): string {
  // A request through a forwarding proxy names the whole URL.
  const path = target.startsWith("http") ? new URL(target).pathname : target;
  return path.split("?")[0] ?? path;
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value as Record<string, unknown> : null;
  } catch {
    return null;
  }
}
