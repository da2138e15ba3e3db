/**
 * The listener: serves, drains on stop, and never leaves an answer half sent without telling its upstream.
 *
 * The runtime closes a listener whose accept fails once, for want of descriptors above all. Then another one takes
 * its place on the same port, while the connections of the first go on.
 */
import type { Clock, Log } from "../ports.ts";
import type { ConnectionInfo } from "./local_routes.ts";
import type { OpenSockets } from "./open_sockets.ts";

export interface RunningServer {
  readonly hostname: string;
  readonly port: number;
  /** True from the first moment of `stop`: new requests are answered 503. */
  readonly draining: boolean;
  /** Answers not yet taken whole by their clients, and upgraded connections. */
  readonly openCount: number;
  /** Lets what is under way finish for at most `graceMs`, then ends it. Resolves when every socket is closed. */
  stop(graceMs: number): Promise<void>;
}

export interface ServerOptions {
  readonly hostname: string;
  readonly port: number;
  readonly handler: (request: Request, info: ConnectionInfo) => Response | Promise<Response>;
  readonly clock: Clock;
  readonly log: Log;
  readonly sockets: OpenSockets;
  /** Called when the grace is over: whatever still runs must end now. */
  readonly abortAll: () => void;
}

/** How often a stop looks whether everything has ended. */
const LOOK_MS = 20;
/** For in-stream endings and close frames to go out, before sockets are closed under whatever remains. */
const LAST_WORDS_MS = 200;
/** Between a listener that failed and the next: a flood must not become a loop. */
const RELISTEN_MS = 100;
/** For clients in the middle of a conversation to move to another connection, before theirs is closed. */
const SHED_AFTER_MS = 500;
/** One trouble that goes on is told once in this time. */
const TOLD_EVERY_MS = 10_000;

/** One listening socket with the connections that came through it. */
interface Generation {
  readonly abort: AbortController;
  readonly finished: Promise<void>;
  readonly socketsBefore: number;
  unsent: number;
  failed: boolean;
}

/** @throws Deno.errors.AddrInUse and the like, when the address cannot be bound. */
export function startServer(options: ServerOptions): RunningServer {
  return new Listening(options);
}

class Listening implements RunningServer {
  readonly hostname: string;
  readonly port: number;
  readonly #options: ServerOptions;
  readonly #generations = new Set<Generation>();
  readonly #closing = new AbortController();
  #unsent = 0;
  #stopping: Promise<void> | null = null;
  #toldAtMs = -Infinity;

  constructor(options: ServerOptions) {
    this.#options = options;
    const { hostname, port } = this.#listen(options.port);
    this.hostname = hostname;
    this.port = port;
  }

  get draining(): boolean {
    return this.#stopping !== null;
  }

  get openCount(): number {
    return this.#unsent + this.#options.sockets.size;
  }

  stop(graceMs: number): Promise<void> {
    if (this.#stopping !== null) return this.#stopping;
    this.#closing.abort();
    return this.#stopping = this.#drain(this.#options.clock.now() + graceMs);
  }

  #listen(port: number): Deno.NetAddr {
    const abort = new AbortController();
    const sent = (): void => {
      generation.unsent--;
      this.#unsent--;
    };
    const server = Deno.serve({
      hostname: this.#options.hostname,
      port,
      signal: abort.signal,
      onListen: () => {},
      onError: (error) => this.#answerBroken(error),
    }, (request, info) => {
      generation.unsent++;
      this.#unsent++;
      info.completed.then(sent, sent);
      const answer = this.#options.handler(request, info);
      return generation.failed ? lastOf(answer) : answer;
    });
    const finished = server.finished.catch((error) => this.#failed(generation, error));
    const socketsBefore = this.#options.sockets.opened;
    const generation: Generation = { abort, finished, socketsBefore, unsent: 0, failed: false };
    this.#generations.add(generation);
    return server.addr;
  }

  #failed(generation: Generation, error: unknown): void {
    generation.failed = true;
    const { clock, log } = this.#options;
    if (clock.now() - this.#toldAtMs >= TOLD_EVERY_MS) {
      this.#toldAtMs = clock.now();
      log.write("error", "listener_failed", { problem: wordError(error), open: this.openCount });
    }
    void this.#relisten();
    void this.#shed(generation);
  }

  async #relisten(): Promise<void> {
    const { clock } = this.#options;
    while (await clock.sleepUntil(clock.now() + RELISTEN_MS, this.#closing.signal)) {
      try {
        this.#listen(this.port);
        return;
      } catch {
        // Nothing to listen with yet.
      }
    }
  }

  /**
   * Gives back what the silent connections of a failed listener hold, as soon as no other one needs it: nothing else
   * ends a connection on which no request was ever sent.
   */
  async #shed(generation: Generation): Promise<void> {
    const { clock, sockets } = this.#options;
    // A WebSocket ends with the listener it came through.
    const upgraded = sockets.opened > generation.socketsBefore;
    do {
      if (!await clock.sleepUntil(clock.now() + SHED_AFTER_MS, this.#closing.signal)) return;
    } while (generation.unsent > 0 || (upgraded && sockets.size > 0));
    generation.abort.abort();
    this.#generations.delete(generation);
  }

  /**
   * Not by `server.shutdown()`: that cuts WebSockets in the middle of a turn, and once it was called nothing can end
   * a connection whose client does not read.
   */
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
    for (const { abort } of this.#generations) abort.abort();
    await Promise.all([...this.#generations].map(({ finished }) => finished));
  }

  /** Only a broken invariant comes here; the client gets no detail. */
  #answerBroken(error: unknown): Response {
    this.#options.log.write("error", "handler_failed", {
      problem: error instanceof Error ? error.name : "unknown",
    });
    const body = { message: "Internal error", type: "server_error", code: "internal_error", param: null };
    return new Response(JSON.stringify({ error: body }), {
      status: 500,
      headers: { "content-type": "application/json" },
    });
  }
}

/** The client comes back over another connection, so that this one's listener can be given up. */
async function lastOf(answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer;
  if (response.status !== 101) response.headers.set("connection", "close");
  return response;
}

/** The system's own words, which hold no address; else the error's class. */
function wordError(error: unknown): string {
  const text = error instanceof Error ? error.message : "";
  return /^(?:Error: )?([A-Za-z ]{1,60} \(os error \d+\))/.exec(text)?.[1] ?? "accept failed";
}
