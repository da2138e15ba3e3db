/**
 * The listener: serves, drains on stop, and never leaves an answer half sent without telling its upstream.
 */
import type { Clock, Log } from "../ports.ts";

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
  readonly handler: (request: Request) => Response | Promise<Response>;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the grace is over: whatever still runs must end now. */
  readonly abortAll: () => void;
}

/** @throws Deno.errors.AddrInUse and the like, when the address cannot be bound. */
export function startServer(options: ServerOptions): RunningServer {
  const abort = new AbortController();
  let draining = false;
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
  }, options.handler);
  let stopping: Promise<void> | null = null;
  return {
    hostname: server.addr.hostname,
    port: server.addr.port,
    get draining() {
      return draining;
    },
    stop(graceMs) {
      draining = true;
      stopping ??= drain(server, abort, options, graceMs);
      return stopping;
    },
  };
}

async function drain(
  server: Deno.HttpServer<Deno.NetAddr>,
  abort: AbortController,
  options: ServerOptions,
  graceMs: number,
): Promise<void> {
  const grace = options.clock.schedule(options.clock.now() + graceMs, () => {
    options.abortAll();
    // A moment for in-stream endings to go out, then the sockets are closed under whatever remains.
    options.clock.schedule(options.clock.now() + 200, () => abort.abort());
  });
  await server.shutdown();
  grace.cancel();
  await server.finished;
}
