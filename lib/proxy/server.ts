/**
 * The listener: serves, drains on stop, and never leaves an answer half sent without telling its upstream.
 */
import type { Clock, Log } from "../ports.ts";
import type { ConnectionInfo } from "./local_routes.ts";
import type { OpenSockets } from "./open_sockets.ts";

export interface RunningServer {
  readonly hostname: string;
  readonly port: number;
  /** True from the first moment of `stop`: new requests are answered 503. */
  readonly draining: boolean;
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

/** @throws Deno.errors.AddrInUse and the like, when the address cannot be bound. */
export function startServer(options: ServerOptions): RunningServer {
  const abort = new AbortController();
  let draining = false;
  /** Answers not yet taken whole by their clients. */
  let unsent = 0;
  const sent = (): void => void unsent--;
  const server = Deno.serve({
    hostname: options.hostname,
    port: options.port,
    signal: abort.signal,
    onListen: () => {},
    onError: (error) => {
      // Only a broken invariant comes here; the client gets no detail.
      options.log.write("error", "handler_failed", {
        problem: error instanceof Error ? error.name : "unknown",
      });
      return new Response(
        JSON.stringify({
          error: { message: "Internal error", type: "server_error", code: "internal_error", param: null },
        }),
        {
          status: 500,
          headers: { "content-type": "application/json" },
        },
      );
    },
  }, (request, info) => {
    unsent++;
    info.completed.then(sent, sent);
    return options.handler(request, info);
  });
  let stopping: Promise<void> | null = null;
  return {
    hostname: server.addr.hostname,
    port: server.addr.port,
    get draining() {
      return draining;
    },
    stop(graceMs) {
      draining = true;
      stopping ??= drain(server, abort, options, () => unsent + options.sockets.size, graceMs);
      return stopping;
    },
  };
}

/**
 * Not by `server.shutdown()`: that cuts WebSockets in the middle of a turn, and once it was called nothing can end
 * a connection whose client does not read.
 */
async function drain(
  server: Deno.HttpServer<Deno.NetAddr>,
  abort: AbortController,
  options: ServerOptions,
  openCount: () => number,
  graceMs: number,
): Promise<void> {
  const { clock, sockets } = options;
  const endMs = clock.now() + graceMs;
  sockets.drain();
  while (openCount() > 0 && clock.now() < endMs) {
    await clock.sleepUntil(Math.min(clock.now() + LOOK_MS, endMs), null);
  }
  if (openCount() > 0) {
    options.abortAll();
    await clock.sleepUntil(clock.now() + LAST_WORDS_MS, null);
  }
  abort.abort();
  await server.finished;
}
