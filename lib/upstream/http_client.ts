/**
 * The one way out for HTTP: one call of `send` is one request on the wire (design.md rulings 10, 15, 16, 18).
 *
 * Connections speak HTTP/1.1 only. Over HTTP/2 all streams of a host share one connection: a slow reader would hold
 * the others back, and the peer's stream limit would queue them without a word.
 */
import type { Evidence, TransportCause } from "../core/evidence.ts";
import type {
  AnswerBody,
  Clock,
  Scheduled,
  Upstream,
  UpstreamRequest,
  UpstreamResponse,
  UpstreamResult,
} from "../ports.ts";
import { ConnectionPool } from "./connection_pool.ts";
import { type Destination, findHost, openWire } from "./connector.ts";
import { forgetBytes } from "./body_memory.ts";
import { ACCEPTED_CODINGS, decodeAnswer, undoMissingLabel } from "./content_coding.ts";
import { basicAuthorization, createEgress, type Egress, type ProxyEnvironment } from "./egress_proxy.ts";
import { ERROR_BODY_LIMIT_BYTES, readErrorBody } from "./error_body.ts";
import { type Answer, HttpConnection } from "./http_connection.ts";
import { writeRequestHead } from "./http_head.ts";
import { outgoingBody } from "./outgoing_body.ts";
import {
  AttemptEnded,
  CLIENT_CANCELLED,
  readBodyFailure,
  readSendFailure,
  transport,
} from "./transport_error.ts";

export interface UpstreamOptions {
  readonly clock: Clock;
  /** `proxy-url` of the configuration. */
  readonly proxyUrl: string;
  readonly environment: ProxyEnvironment;
  /** PEM certificates trusted besides the system's. */
  readonly caCerts?: readonly string[];
}

/** @throws SyntaxError when a proxy URL cannot be read. */
export function createUpstream(options: UpstreamOptions): Upstream {
  return new HttpUpstream(options);
}

/** How requests to one origin leave: settled once, looked up for each request. */
interface Way extends Destination {
  readonly pool: ConnectionPool;
  /** Value of `host`. */
  readonly host: string;
  /** `proxy-authorization` of forwarded requests, or null. */
  readonly proxyAuthorization: string | null;
}

class HttpUpstream implements Upstream {
  readonly #clock: Clock;
  readonly #egress: Egress;
  readonly #caCerts: readonly string[];
  readonly #ways = new Map<string, Way>();

  constructor(options: UpstreamOptions) {
    this.#clock = options.clock;
    this.#egress = createEgress(options.proxyUrl, options.environment);
    this.#caCerts = options.caCerts ?? [];
  }

  async send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamResult> {
    if (signal.aborted) return failed(CLIENT_CANCELLED);
    const url = URL.canParse(request.url) ? new URL(request.url) : null;
    // What is no address is refused like an address nobody listens at.
    if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
      return failed(transport("refused"));
    }
    const way = this.#way(url);
    const nowMs = this.#clock.now();
    const firstByteAtMs = request.firstByteTimeoutMs === 0 ? Infinity : nowMs + request.firstByteTimeoutMs;
    let connection = request.fresh ? null : way.pool.take(nowMs);
    if (connection === null) {
      const opened = await openWire(
        way,
        this.#caCerts,
        connectLimit(way, nowMs + request.connectTimeoutMs, firstByteAtMs),
        this.#clock,
        signal,
      );
      if (!opened.ok) {
        return failed(opened.cause === "cancelled" ? CLIENT_CANCELLED : transport(opened.cause));
      }
      connection = new HttpConnection(opened.wire);
    }
    return await this.#exchange(request, way, url, connection, firstByteAtMs, signal);
  }

  forget(body: Uint8Array<ArrayBuffer>): void {
    forgetBytes(body);
  }

  bodyFailure(error: unknown): Evidence {
    return readBodyFailure(error);
  }

  readErrorBody(response: Pick<UpstreamResponse, "body">): Promise<Uint8Array<ArrayBuffer>> {
    return readErrorBody(response, ERROR_BODY_LIMIT_BYTES, this.#clock);
  }

  undoMissingLabel(whole: Uint8Array<ArrayBuffer>, limitBytes: number): Uint8Array<ArrayBuffer> {
    return undoMissingLabel(whole, limitBytes);
  }

  close(): void {
    for (const { pool } of this.#ways.values()) pool.close();
    this.#ways.clear();
  }

  async #exchange(
    request: UpstreamRequest,
    way: Way,
    url: URL,
    connection: HttpConnection,
    firstByteAtMs: number,
    signal: AbortSignal,
  ): Promise<UpstreamResult> {
    const { reused } = connection;
    // Taken out here: what stays until the answer's end must not hold on to the request's body.
    const { fresh } = request;
    const end = (evidence: Evidence) => connection.fail(new AttemptEnded(evidence));
    const cancel = () => end(CLIENT_CANCELLED);
    // Stays on after the head, so that the caller's signal also ends the body.
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
    const limit = new FirstByteLimit(this.#clock, firstByteAtMs, request.firstByteTimeoutMs, () => {
      end(transport("first_byte_timeout"));
    });
    // While a client sends its body, the peer owes nothing: its time begins anew with each piece it gets.
    const outgoing = request.firstByteIsFixed
      ? outgoingBody(request.body, request.bodyLength, cancel)
      : outgoingBody(request.body, request.bodyLength, cancel, {
        sender: () => limit.stop(),
        peer: () => limit.restart(),
      });
    const search = this.#search(way, request.connectTimeoutMs, firstByteAtMs, end);
    try {
      const answer = await connection.exchange({
        method: request.method,
        head: headOf(request, way, url, outgoing.framing),
        body: outgoing.body,
      }, () => {
        signal.removeEventListener("abort", cancel);
        if (fresh) connection.close();
        else way.pool.put(connection, this.#clock.now());
      });
      return present(answer, way.forwarded);
    } catch (error) {
      signal.removeEventListener("abort", cancel);
      return failed(readSendFailure(error, reused));
    } finally {
      limit.end();
      search?.cancel();
    }
  }

  /**
   * Ruling 16, for connections that were open already: they outlive the network they went through, and a request on
   * one waits for a head that cannot come. Once that took as long as connecting may, the host is looked for.
   */
  #search(
    way: Way,
    connectTimeoutMs: number,
    firstByteAtMs: number,
    end: (evidence: Evidence) => void,
  ): Scheduled | null {
    const searchAtMs = this.#clock.now() + connectTimeoutMs;
    if (firstByteAtMs <= searchAtMs) return null;
    let waiting: AbortController | null = null;
    const scheduled = this.#clock.schedule(searchAtMs, async () => {
      const { signal } = waiting = new AbortController();
      const found = await findHost(way, searchAtMs + connectTimeoutMs, this.#clock, signal);
      if (found !== "gone" || signal.aborted) return;
      way.pool.clear();
      end(transport(way.proxy === null ? "connect_timeout" : "egress_proxy"));
    });
    return {
      cancel() {
        scheduled.cancel();
        waiting?.abort();
      },
    };
  }

  #way(url: URL): Way {
    const known = this.#ways.get(url.origin);
    if (known !== undefined) return known;
    const proxy = this.#egress.proxyFor(url);
    const forwarded = proxy !== null && proxy.scheme !== "socks5" && url.protocol === "http:";
    const way: Way = {
      target: url,
      proxy,
      forwarded,
      pool: new ConnectionPool(),
      host: url.host,
      proxyAuthorization: forwarded ? basicAuthorization(proxy) : null,
    };
    this.#ways.set(url.origin, way);
    return way;
  }
}

/** How long the peer may take to begin its answer. */
class FirstByteLimit {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #late: () => void;
  #scheduled: Scheduled | null = null;
  #over = false;

  /** @param atMs  Infinity where there is no limit. */
  constructor(clock: Clock, atMs: number, limitMs: number, late: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#late = late;
    if (atMs === Infinity) this.#over = true;
    else this.#scheduled = clock.schedule(atMs, late);
  }

  stop(): void {
    this.#scheduled?.cancel();
    this.#scheduled = null;
  }

  restart(): void {
    this.stop();
    if (!this.#over) this.#scheduled = this.#clock.schedule(this.#clock.now() + this.#limitMs, this.#late);
  }

  /** For good. */
  end(): void {
    this.#over = true;
    this.stop();
  }
}

function connectLimit(
  way: Way,
  connectAtMs: number,
  firstByteAtMs: number,
): { readonly atMs: number; readonly cause: TransportCause } {
  if (firstByteAtMs <= connectAtMs) return { atMs: firstByteAtMs, cause: "first_byte_timeout" };
  return { atMs: connectAtMs, cause: way.proxy === null ? "connect_timeout" : "egress_proxy" };
}

function headOf(request: UpstreamRequest, way: Way, url: URL, framing: number | "chunked" | null): string {
  const path = url.pathname + url.search;
  const line = { method: request.method, target: way.forwarded ? url.origin + path : path, host: way.host };
  const extra = way.proxyAuthorization === null ? {} : { "proxy-authorization": way.proxyAuthorization };
  return writeRequestHead(line, request.headers, { "accept-encoding": ACCEPTED_CODINGS, ...extra }, framing);
}

function present(answer: Answer, forwarded: boolean): UpstreamResult {
  const { head: { status, headers, framing }, body } = answer;
  if (status < 200 || status > 599) {
    return refuse(body, { kind: "malformed", detail: "unexpected_status" });
  }
  if (forwarded && status === 407) return refuse(body, transport("egress_proxy"));
  if (body === null) return { ok: true, response: { status, headers, body, contentLength: null } };
  const eventStream = headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") ?? false;
  const decoded = decodeAnswer(body, headers.get("content-encoding"), eventStream);
  if (decoded !== null) {
    headers.delete("content-encoding");
    headers.delete("content-length");
  }
  const contentLength = decoded === null && framing.kind === "length" ? framing.bytes : null;
  return { ok: true, response: { status, headers, body: decoded ?? body, contentLength } };
}

function refuse(body: AnswerBody | null, evidence: Evidence): UpstreamResult {
  body?.cancel();
  return failed(evidence);
}

function failed(evidence: Evidence): UpstreamResult {
  return { ok: false, evidence };
}
