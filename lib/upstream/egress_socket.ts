/**
 * A connected socket to an upstream, through the egress proxy where there is one, TLS on top where asked for.
 *
 * Made step by step, so that a failure can be told by the step it happened in.
 */
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { TransportCause } from "../core/evidence.ts";
import type { Clock } from "../ports.ts";
import { type EgressProxy, type Endpoint, endpointOf } from "./egress_proxy.ts";
import { isLocalLimitCode, isOutOfDescriptors } from "./local_limit.ts";
import { openTunnel } from "./proxy_tunnel.ts";

export type SocketResult =
  | { readonly ok: true; readonly socket: Socket }
  | { readonly ok: false; readonly cause: TransportCause | "cancelled" };

export interface SocketRequest {
  readonly target: URL;
  readonly proxy: EgressProxy | null;
  /** For everything up to the TLS handshake. */
  readonly timeoutMs: number;
  readonly caCerts: readonly string[];
}

/** Never throws; leaves no socket behind when it fails. */
export async function openSocket(
  request: SocketRequest,
  clock: Clock,
  signal: AbortSignal,
): Promise<SocketResult> {
  const attempt = new SocketAttempt(request);
  const limit = clock.schedule(
    clock.now() + request.timeoutMs,
    () => attempt.fail(request.proxy === null ? "connect_timeout" : "egress_proxy"),
  );
  const cancel = () => attempt.fail("cancelled");
  signal.addEventListener("abort", cancel, { once: true });
  if (signal.aborted) cancel();
  try {
    return await attempt.run();
  } finally {
    limit.cancel();
    signal.removeEventListener("abort", cancel);
  }
}

const SECURE_SCHEMES: ReadonlySet<string> = new Set(["wss:", "https:"]);

class SocketAttempt {
  readonly #request: SocketRequest;
  readonly #failed = Promise.withResolvers<null>();
  #socket: Socket | null = null;
  #cause: TransportCause | "cancelled" | null = null;

  constructor(request: SocketRequest) {
    this.#request = request;
  }

  /** Ends the attempt; the first cause stands. */
  fail(cause: TransportCause | "cancelled"): void {
    this.#cause ??= cause;
    this.#socket?.destroy();
    this.#failed.resolve(null);
  }

  async run(): Promise<SocketResult> {
    const socket = await Promise.race([this.#steps(), this.#failed.promise]);
    if (socket !== null && this.#cause === null) return { ok: true, socket };
    this.#socket?.destroy();
    return { ok: false, cause: this.#cause ?? "reset_before_head" };
  }

  async #steps(): Promise<Socket | null> {
    const { target, proxy, caCerts } = this.#request;
    const destination = endpointOf(target);
    let socket = await this.#tcp(proxy ?? destination, proxy !== null);
    if (socket !== null && proxy !== null) socket = await this.#tunnel(socket, proxy, destination);
    if (socket === null || !SECURE_SCHEMES.has(target.protocol)) return socket;
    return await this.#tls(socket, destination.hostname, caCerts, false);
  }

  #tcp(endpoint: Endpoint, viaProxy: boolean): Promise<Socket | null> {
    if (this.#cause !== null) return Promise.resolve(null);
    const socket = connect({ host: endpoint.hostname, port: endpoint.port, noDelay: true });
    return this.#ready(socket, "connect", (code) => {
      const cause = connectCause(code);
      return viaProxy && cause !== "local_limit" ? "egress_proxy" : cause;
    });
  }

  async #tunnel(plain: Socket, proxy: EgressProxy, destination: Endpoint): Promise<Socket | null> {
    const socket = proxy.scheme === "https"
      ? await this.#tls(plain, proxy.hostname, this.#request.caCerts, true)
      : plain;
    if (socket === null) return null;
    if (await openTunnel(socket, proxy, destination)) return socket;
    this.fail("egress_proxy");
    return null;
  }

  #tls(
    socket: Socket,
    hostname: string,
    caCerts: readonly string[],
    toProxy: boolean,
  ): Promise<Socket | null> {
    const secure = connectTls({
      socket,
      servername: isIP(hostname) === 0 ? hostname : "",
      host: hostname,
      ALPNProtocols: ["http/1.1"],
      ...(caCerts.length === 0 ? {} : { ca: [...caCerts] }),
    });
    return this.#ready(secure, "secureConnect", (code) => {
      if (toProxy) return "egress_proxy";
      return CERTIFICATE_CODES.test(code) ? "tls_certificate" : "tls";
    });
  }

  /** Waits for a step; until it is over, a failure of this socket is a failure of that step. */
  #ready(socket: Socket, event: string, cause: (code: string) => TransportCause): Promise<Socket | null> {
    this.#socket = socket;
    const { promise, resolve } = Promise.withResolvers<Socket | null>();
    const failed = (error?: unknown) => {
      this.fail(cause(codeOf(error)));
      resolve(null);
    };
    socket.once(event, () => {
      socket.off("error", failed);
      socket.off("close", failed);
      resolve(socket);
    });
    socket.once("error", failed);
    socket.once("close", failed);
    // The socket may break later, while nobody else listens; that must not end the process.
    socket.on("error", () => {});
    return promise;
  }
}

/** OpenSSL's names for papers that are not in order. */
const CERTIFICATE_CODES = /CERT|VERIFY|ISSUER|SELF_SIGNED|UNTRUSTED|CRL/;

function connectCause(code: string): TransportCause {
  if (isLocalLimitCode(code)) return "local_limit";
  if (code === "ENOTFOUND" || code.startsWith("EAI_")) return isOutOfDescriptors() ? "local_limit" : "dns";
  return code === "ETIMEDOUT" ? "connect_timeout" : "refused";
}

/** Code of an error, or of the first of several addresses tried. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  const code = error instanceof Error ? (error as Error & { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}
