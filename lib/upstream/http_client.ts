/**
 * The one way out for HTTP: one call of `send` is one request on the wire (design.md rulings 10, 15, 16, 18).
 *
 * Connections speak HTTP/1.1 only. Over HTTP/2 all streams of a host share one connection: a slow reader would hold
 * the others back, the peer's stream limit would queue them without a word, and the runtime repeats refused streams
 * by itself.
 */
import type { Evidence } from "../core/evidence.ts";
import type { Clock, Upstream, UpstreamRequest, UpstreamResponse, UpstreamResult } from "../ports.ts";
import type { Endpoint } from "./connect_probe.ts";
import { decodeAnswer, undoMissingLabel } from "./content_coding.ts";
import {
  basicAuthorization,
  createEgress,
  type Egress,
  type EgressProxy,
  endpointOf,
  PROXY_VARIABLES,
} from "./egress_proxy.ts";
import { ERROR_BODY_LIMIT_BYTES, readErrorBody } from "./error_body.ts";
import type { ProxyEnvironment } from "./egress_proxy.ts";
import { HeadWatch } from "./head_watch.ts";
import { outgoingBody } from "./outgoing_body.ts";
import {
  AttemptEnded,
  CLIENT_CANCELLED,
  readBodyFailure,
  readSendFailure,
  type SendContext,
} from "./transport_error.ts";

/** Below the 60 or 75 s after which common servers close an idle connection, so that we close first. */
export const POOL_IDLE_MS = 55_000;
const POOL_MAX_IDLE_PER_HOST = 512;

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
interface Way {
  readonly pooled: Deno.HttpClient;
  readonly fresh: Deno.HttpClient;
  readonly proxy: EgressProxy | null;
  /** What a connect probe knocks at. */
  readonly endpoint: Endpoint;
  /** The request goes to the proxy as it stands, not through a tunnel: a 407 is the proxy's own word. */
  readonly forwarded: boolean;
  /** `proxy-authorization` that `fetch` leaves out: of forwarded requests to an https proxy. */
  readonly proxyAuthorization: string | null;
  /** True once an answer came over a pooled connection, which may lie idle in the pool since. */
  answered: boolean;
}

class HttpUpstream implements Upstream {
  readonly #clock: Clock;
  readonly #egress: Egress;
  readonly #caCerts: readonly string[];
  readonly #ways = new Map<string, Way>();
  readonly #clients = new Map<string, Pick<Way, "pooled" | "fresh">>();

  constructor(options: UpstreamOptions) {
    this.#clock = options.clock;
    this.#egress = createEgress(options.proxyUrl, options.environment);
    this.#caCerts = options.caCerts ?? [];
  }

  async send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamResult> {
    if (signal.aborted) return { ok: false, evidence: CLIENT_CANCELLED };
    const controller = new AbortController();
    // An abort reaches the body only while somebody holds the response (seen on 2.9.6): the runtime ties the two by
    // weak references. The listener holds it, and the caller's signal holds the listener.
    const held: { response: Response | null } = { response: null };
    const cancel = () => {
      controller.abort(new AttemptEnded(CLIENT_CANCELLED));
      held.response = null;
    };
    // Stays on after the head, so that the caller's signal also ends the body.
    signal.addEventListener("abort", cancel, { once: true });
    const outgoing = outgoingBody(request.body, request.bodyLength);
    let proxy: SendContext["proxy"] = "none";
    let maybePooled = false;
    let watch: HeadWatch | null = null;
    try {
      const way = this.#way(request.url);
      // Without a body there is nothing that keeps `fetch` from repeating a request whose pooled connection died.
      const alone = request.fresh || outgoing.body === null;
      proxy = way.proxy === null ? "none" : way.forwarded ? "forward" : "tunnel";
      maybePooled = !alone && way.answered;
      watch = new HeadWatch(this.#clock, request, way, controller);
      const response = await fetch(request.url, {
        method: request.method,
        headers: outgoingHeaders(request.headers, way.proxyAuthorization),
        body: outgoing.body,
        redirect: "manual",
        client: alone ? way.fresh : way.pooled,
        signal: controller.signal,
      });
      watch.stop();
      held.response = response;
      if (!alone) way.answered = true;
      return present(response, way.forwarded);
    } catch (error) {
      watch?.stop();
      signal.removeEventListener("abort", cancel);
      if (outgoing.sourceFailed()) return { ok: false, evidence: CLIENT_CANCELLED };
      return { ok: false, evidence: readSendFailure(error, { proxy, maybePooled }) };
    }
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
    for (const { pooled, fresh } of this.#clients.values()) {
      pooled.close();
      fresh.close();
    }
    this.#clients.clear();
    this.#ways.clear();
  }

  #way(url: string): Way {
    // Scheme and authority as text: a lookup without parsing, the same for all paths of one base.
    const slash = url.indexOf("/", "https://".length);
    const origin = slash < 0 ? url : url.slice(0, slash);
    const known = this.#ways.get(origin);
    if (known !== undefined) return known;
    const target = new URL(url);
    if (target.protocol !== "http:" && target.protocol !== "https:") {
      throw new TypeError(`Cannot send: scheme must be http or https, got ${target.protocol}`);
    }
    const proxy = this.#egress.proxyFor(target);
    const forwarded = proxy !== null && proxy.scheme !== "socks5" && target.protocol === "http:";
    const way: Way = {
      ...this.#clientsFor(proxy),
      proxy,
      endpoint: proxy ?? endpointOf(target),
      forwarded,
      proxyAuthorization: forwarded && proxy.scheme === "https" ? basicAuthorization(proxy) : null,
      answered: false,
    };
    this.#ways.set(origin, way);
    return way;
  }

  #clientsFor(proxy: EgressProxy | null): Pick<Way, "pooled" | "fresh"> {
    const key = proxy === null ? "direct" : `${proxy.scheme}://${proxy.hostname}:${proxy.port}`;
    const known = this.#clients.get(key);
    if (known !== undefined) return known;
    const common = { http2: false, caCerts: [...this.#caCerts], ...proxyOption(proxy) };
    const made = withoutProxyVariables(() => ({
      pooled: Deno.createHttpClient({
        ...common,
        poolMaxIdlePerHost: POOL_MAX_IDLE_PER_HOST,
        poolIdleTimeout: POOL_IDLE_MS,
      }),
      fresh: Deno.createHttpClient({ ...common, poolMaxIdlePerHost: 0 }),
    }));
    this.#clients.set(key, made);
    return made;
  }
}

function present(response: Response, forwarded: boolean): UpstreamResult {
  const { status, headers, body } = response;
  if (status < 200 || status > 599) {
    return refuse(response, { kind: "malformed", detail: "unexpected_status" });
  }
  if (forwarded && status === 407) {
    return refuse(response, { kind: "transport", cause: "egress_proxy", pooled: false });
  }
  if (body === null) return { ok: true, response: { status, headers, body, contentLength: null } };
  const eventStream = headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") ?? false;
  const decoded = decodeAnswer(
    body as ReadableStream<Uint8Array<ArrayBuffer>>,
    headers.get("content-encoding"),
    eventStream,
  );
  if (!decoded.changed) {
    return {
      ok: true,
      response: { status, headers, body: decoded.body, contentLength: readLength(headers) },
    };
  }
  const honest = new Headers(headers);
  honest.delete("content-encoding");
  honest.delete("content-length");
  return { ok: true, response: { status, headers: honest, body: decoded.body, contentLength: null } };
}

function refuse(response: Response, evidence: Evidence): UpstreamResult {
  response.body?.cancel().catch(() => {});
  return { ok: false, evidence };
}

function readLength(headers: Headers): UpstreamResponse["contentLength"] {
  const text = headers.get("content-length");
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** The caller's headers; the choice of codings is left to `fetch`, which asks for what it undoes natively. */
function outgoingHeaders(headers: Headers, proxyAuthorization: string | null): Headers {
  if (!headers.has("accept-encoding") && proxyAuthorization === null) return headers;
  const own = new Headers(headers);
  own.delete("accept-encoding");
  if (proxyAuthorization !== null) own.set("proxy-authorization", proxyAuthorization);
  return own;
}

function proxyOption(proxy: EgressProxy | null): Pick<Deno.CreateHttpClientOptions, "proxy"> {
  if (proxy === null) return {};
  const host = proxy.hostname.includes(":") ? `[${proxy.hostname}]` : proxy.hostname;
  const url = `${proxy.scheme}://${host}:${proxy.port}`;
  const basicAuth = proxy.credentials === null ? {} : { basicAuth: proxy.credentials };
  return { proxy: { transport: proxy.scheme, url, ...basicAuth } };
}

/**
 * Makes clients that do not see the environment's proxies: Deno reads the variables while it makes a client, has no
 * option against it, and would apply its own reading of NO_PROXY besides ours. Synchronous, so nobody else sees it.
 */
function withoutProxyVariables<T>(make: () => T): T {
  const saved = PROXY_VARIABLES.map((name) => [name, Deno.env.get(name)] as const);
  try {
    for (const [name, value] of saved) if (value !== undefined) Deno.env.delete(name);
    return make();
  } finally {
    for (const [name, value] of saved) if (value !== undefined) Deno.env.set(name, value);
  }
}
