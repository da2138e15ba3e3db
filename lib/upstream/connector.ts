/**
 * Opens connections for HTTP: direct ones by the runtime, those through an egress proxy step by step as for
 * WebSockets (`egress_socket.ts`). A failure is told by the step it happened in.
 */
import { isOutOfDescriptors, namesLocalLimit } from "./local_limit.ts";
import type { TransportCause } from "../core/evidence.ts";
import type { Clock } from "../ports.ts";
import { type EgressProxy, type Endpoint, endpointOf } from "./egress_proxy.ts";
import { openSocket } from "./egress_socket.ts";
import { runtimeWire, socketWire, type Wire } from "./wire.ts";

export interface Destination {
  readonly target: URL;
  readonly proxy: EgressProxy | null;
  /** Requests go to the proxy as they stand: the connection is with the proxy alone. */
  readonly forwarded: boolean;
}

export type OpenResult =
  | { readonly ok: true; readonly wire: Wire }
  | { readonly ok: false; readonly cause: TransportCause | "cancelled" };

/**
 * Connects, up to and including the TLS handshake. Never throws; leaves nothing behind when it fails.
 *
 * @param limit  moment after which it is given up, and what that is called.
 */
export async function openWire(
  destination: Destination,
  caCerts: readonly string[],
  limit: { readonly atMs: number; readonly cause: TransportCause },
  clock: Clock,
  signal: AbortSignal,
): Promise<OpenResult> {
  if (destination.proxy !== null) return await openProxied(destination, caCerts, limit, clock, signal);
  const attempt = new DirectAttempt(destination.target, caCerts);
  const scheduled = clock.schedule(limit.atMs, () => attempt.fail(limit.cause));
  const cancel = () => attempt.fail("cancelled");
  signal.addEventListener("abort", cancel, { once: true });
  if (signal.aborted) cancel();
  try {
    return await attempt.run();
  } finally {
    scheduled.cancel();
    signal.removeEventListener("abort", cancel);
  }
}

/**
 * Whether a connection could be made now, to the host or to the proxy before it; nothing is said on it.
 *
 * @returns `unknown` when the signal aborts, or this machine has no descriptor left for it.
 */
export async function findHost(
  destination: Destination,
  atMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<"there" | "gone" | "unknown"> {
  // What is spoken there does not matter.
  const target = urlOf("http", destination.proxy ?? endpointOf(destination.target));
  const opened = await openWire(
    { target, proxy: null, forwarded: false },
    [],
    { atMs, cause: "connect_timeout" },
    clock,
    signal,
  );
  if (opened.ok) {
    opened.wire.close();
    return "there";
  }
  return opened.cause === "cancelled" || opened.cause === "local_limit" ? "unknown" : "gone";
}

async function openProxied(
  destination: Destination,
  caCerts: readonly string[],
  limit: { readonly atMs: number; readonly cause: TransportCause },
  clock: Clock,
  signal: AbortSignal,
): Promise<OpenResult> {
  const proxy = destination.proxy!;
  const target = destination.forwarded ? urlOf(proxy.scheme, proxy) : destination.target;
  const opened = await openSocket(
    { target, proxy: destination.forwarded ? null : proxy, timeoutMs: limit.atMs - clock.now(), caCerts },
    clock,
    signal,
  );
  if (opened.ok) return { ok: true, wire: socketWire(opened.socket) };
  // Toward a forwarding proxy every failure is the proxy's, but for what this machine itself could not do.
  return destination.forwarded && opened.cause !== "cancelled" && opened.cause !== "local_limit"
    ? { ok: false, cause: "egress_proxy" }
    : opened;
}

function urlOf(scheme: string, { hostname, port }: Endpoint): URL {
  const host = hostname.includes(":") ? `[${hostname}]` : hostname;
  return new URL(`${scheme}://${host}:${port}`);
}

class DirectAttempt {
  readonly #endpoint: Endpoint;
  readonly #secure: boolean;
  readonly #caCerts: readonly string[];
  readonly #abort = new AbortController();
  #connection: Deno.Conn | null = null;
  #cause: TransportCause | "cancelled" | null = null;

  constructor(target: URL, caCerts: readonly string[]) {
    this.#endpoint = endpointOf(target);
    this.#secure = target.protocol === "https:";
    this.#caCerts = caCerts;
  }

  /** Ends the attempt; the first cause stands. */
  fail(cause: TransportCause | "cancelled"): void {
    this.#cause ??= cause;
    this.#abort.abort();
    this.#close();
  }

  async run(): Promise<OpenResult> {
    let step: (error: unknown) => TransportCause = connectCause;
    try {
      const tcp = await Deno.connect({ ...this.#endpoint, signal: this.#abort.signal });
      this.#connection = tcp;
      if (this.#cause === null) {
        tcp.setNoDelay(true);
        if (!this.#secure) return { ok: true, wire: runtimeWire(tcp) };
        step = handshakeCause;
        const tls = await Deno.startTls(tcp, {
          hostname: this.#endpoint.hostname,
          caCerts: [...this.#caCerts],
          alpnProtocols: ["http/1.1"],
        });
        this.#connection = tls;
        await tls.handshake();
        if (this.#cause === null) return { ok: true, wire: runtimeWire(tls) };
      }
    } catch (error) {
      this.#cause ??= step(error);
    }
    this.#close();
    return { ok: false, cause: this.#cause! };
  }

  #close(): void {
    try {
      this.#connection?.close();
    } catch {
      // Closed by the other way round, or given to the handshake that failed.
    }
    this.#connection = null;
  }
}

/** No route and an unreachable network are told at once, like a refusal; before anybody is blamed, this machine is asked. */
function connectCause(error: unknown): TransportCause {
  if (error instanceof Deno.errors.TimedOut) return "connect_timeout";
  const text = error instanceof Error ? error.message : "";
  if (namesLocalLimit(text)) return "local_limit";
  if (!/failed to lookup address/.test(text)) return "refused";
  return isOutOfDescriptors() ? "local_limit" : "dns";
}

function handshakeCause(error: unknown): TransportCause {
  return error instanceof Error && /invalid peer certificate/.test(error.message) ? "tls_certificate" : "tls";
}
