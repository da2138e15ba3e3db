/**
 * Opens WebSockets to upstreams.
 *
 * By way of `npm:ws` and not the runtime's own client, which hides status, headers and body of a refused handshake:
 * a refusal is an ordinary answer that has to be judged like any other. The socket is made by `egress_socket.ts`,
 * so that proxies and connect failures are treated as for HTTP.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
// @ts-types="@types/ws"
import { WebSocket } from "ws";
import type { Evidence, TransportCause } from "../core/evidence.ts";
import { HeaderFields, type HeaderList } from "../core/header_fields.ts";
import type { Clock, Dialer, DialRequest, DialResult } from "../ports.ts";
import { unpackAnswer } from "./content_coding.ts";
import { createEgress, type Egress, type ProxyEnvironment } from "./egress_proxy.ts";
import { openSocket } from "./egress_socket.ts";
import { ERROR_BODY_LIMIT_BYTES, readErrorBody } from "./error_body.ts";
import { CLIENT_CANCELLED } from "./transport_error.ts";
import { BridgedSocket } from "./upstream_socket.ts";

export interface DialerOptions {
  readonly clock: Clock;
  /** `proxy-url` of the configuration. */
  readonly proxyUrl: string;
  readonly environment: ProxyEnvironment;
  /** PEM certificates trusted besides the system's. */
  readonly caCerts?: readonly string[];
}

/** @throws SyntaxError when a proxy URL cannot be read. */
export function createDialer(options: DialerOptions): Dialer {
  const egress = createEgress(options.proxyUrl, options.environment);
  const { clock, caCerts = [] } = options;
  return { dial: (request, signal) => dial(request, signal, { clock, egress, caCerts }) };
}

interface DialContext {
  readonly clock: Clock;
  readonly egress: Egress;
  readonly caCerts: readonly string[];
}

/** The signal ends the dialling; once the socket is open, its owner closes it. */
async function dial(request: DialRequest, signal: AbortSignal, context: DialContext): Promise<DialResult> {
  const target = socketUrl(request.url);
  if (target === null) return refused(transport("refused"));
  const opened = await openSocket(
    {
      target,
      proxy: context.egress.proxyFor(target),
      timeoutMs: request.connectTimeoutMs,
      caCerts: context.caCerts,
    },
    context.clock,
    signal,
  );
  if (!opened.ok) return refused(opened.cause === "cancelled" ? CLIENT_CANCELLED : transport(opened.cause));
  return await shakeHands(request, target, opened.socket, context.clock, signal);
}

/** `http:` and `https:` bases are taken for their WebSocket forms. */
function socketUrl(text: string): URL | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text.replace(/^http/i, "ws"));
  return url.protocol === "ws:" || url.protocol === "wss:" ? url : null;
}

function shakeHands(
  request: DialRequest,
  target: URL,
  socket: Socket,
  clock: Clock,
  signal: AbortSignal,
): Promise<DialResult> {
  const ws = new WebSocket(target, [...request.protocols], {
    createConnection: () => socket,
    headers: ownHeaders(request.headers),
    maxPayload: request.maxPayloadBytes,
    perMessageDeflate: true,
    followRedirects: false,
  });
  const bridged = new BridgedSocket(ws);
  const { promise, resolve } = Promise.withResolvers<DialResult>();
  /** An answer has come: later errors are the body's or the socket's own, and reported as theirs. */
  let answered = false;
  const end = (result: DialResult) => {
    answered = true;
    limit.cancel();
    signal.removeEventListener("abort", cancel);
    resolve(result);
  };
  const drop = (result: DialResult) => {
    end(result);
    ws.terminate();
    socket.destroy();
  };
  const cancel = () => drop(refused(CLIENT_CANCELLED));
  const limit = clock.schedule(
    clock.now() + request.handshakeTimeoutMs,
    () => drop(refused(transport("first_byte_timeout"))),
  );
  signal.addEventListener("abort", cancel, { once: true });
  ws.on("upgrade", (message) => bridged.headers = headersOf(message));
  ws.on("open", () => end({ ok: true, socket: bridged }));
  ws.on("error", (error) => {
    if (!answered) drop(refused(handshakeEvidence(error)));
  });
  ws.on("unexpected-response", async (_, message) => {
    answered = true;
    limit.cancel();
    drop(await readRefusal(message, clock));
  });
  if (signal.aborted) cancel();
  return promise;
}

async function readRefusal(message: IncomingMessage, clock: Clock): Promise<DialResult> {
  const headers = headersOf(message);
  const coding = headers.get("content-encoding");
  // A cut body is an error of the stream, which is read below; unheard, it would end the process.
  message.on("error", () => {});
  const body = unpackAnswer(message as AsyncIterable<Uint8Array<ArrayBuffer>>, coding);
  headers.delete("content-encoding");
  headers.delete("content-length");
  const bytes = await readErrorBody({ body }, ERROR_BODY_LIMIT_BYTES, clock);
  return { ok: false, status: message.statusCode ?? 0, headers, body: bytes };
}

function refused(evidence: Evidence): DialResult {
  return { ok: false, status: null, evidence };
}

function transport(cause: TransportCause): Evidence {
  return { kind: "transport", cause, pooled: false };
}

function handshakeEvidence(error: unknown): Evidence {
  const code = String((error as { code?: unknown }).code ?? "");
  if (code.startsWith("HPE_")) return { kind: "malformed", detail: "bad_response_head" };
  // Without a code it is `ws` itself that objects: wrong accept key, unasked subprotocol, broken extension.
  return code === "" ? { kind: "malformed", detail: "bad_upgrade" } : transport("reset_before_head");
}

/** Everything but what the handshake itself states. */
function ownHeaders(headers: HeaderList): Record<string, string> {
  const own: Record<string, string> = {};
  headers.forEach((value, name) => {
    if (!HANDSHAKE_HEADERS.has(name)) own[name] = value;
  });
  return own;
}

const HANDSHAKE_HEADERS: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "host",
  "sec-websocket-extensions",
  "sec-websocket-key",
  "sec-websocket-protocol",
  "sec-websocket-version",
  "transfer-encoding",
  "upgrade",
]);

/** Raw pairs, so that repeated headers stay repeated; what cannot be a header is left out. */
function headersOf(message: IncomingMessage): HeaderFields {
  const headers = new HeaderFields();
  for (let at = 0; at + 1 < message.rawHeaders.length; at += 2) {
    try {
      headers.append(message.rawHeaders[at]!, message.rawHeaders[at + 1]!);
    } catch {
      continue;
    }
  }
  return headers;
}
