/**
 * What a failed send or a failed body read means, as evidence.
 *
 * Deno's `fetch` tells failures apart by text alone: a `TypeError` whose `cause` says what happened. All knowledge
 * of those texts is here, proven with real sockets in `tests/upstream/transport_error_test.ts`. The texts hold URLs
 * and addresses, so none of them leaves this file.
 */
import type { Evidence, TransportCause } from "../core/evidence.ts";

export const CLIENT_CANCELLED: Evidence = { kind: "client_cancelled" };

/** How we end an attempt ourselves: the reason given to its AbortController, thrown by `fetch` and by body reads. */
export class AttemptEnded extends Error {
  override readonly name = "AttemptEnded";
  constructor(readonly evidence: Evidence) {
    super(`Attempt ended: ${evidence.kind}`);
  }
}

/** Bytes that do not decode, or that unpack beyond the bound. */
export class UndecodableBody extends Error {
  override readonly name = "UndecodableBody";
  constructor(readonly detail: "undecodable_body" | "oversized_body", options?: ErrorOptions) {
    super(`Cannot decode body: ${detail}`, options);
  }
}

export interface SendContext {
  /** `tunnel`: the proxy passes bytes to the upstream; `forward`: the connection is with the proxy alone. */
  readonly proxy: "none" | "tunnel" | "forward";
  /** The connection may have been an idle one of the pool. */
  readonly maybePooled: boolean;
}

/**
 * Why no response head came.
 *
 * @param error  what `fetch` rejected with.
 * @returns `malformed` when the peer answered with something that is not HTTP, else a transport failure. A text
 * nobody knows yet counts as a reset before the head: nothing of a head arrived, and that is all that is certain.
 */
export function readSendFailure(error: unknown, context: SendContext): Evidence {
  if (error instanceof AttemptEnded) return error.evidence;
  if (isAbort(error)) return CLIENT_CANCELLED;
  const text = detailOf(error);
  if (text.startsWith("client error (Connect)")) return transport(connectCause(text, context.proxy));
  if (/parsed|head is too large|invalid header/i.test(text)) {
    return { kind: "malformed", detail: "bad_response_head" };
  }
  // A URL that is refused before anything is sent (blocked port, unreadable): no cause is attached.
  if (error instanceof TypeError && error.cause === undefined) return transport("refused");
  return { kind: "transport", cause: "reset_before_head", pooled: context.maybePooled };
}

/** What the error thrown by a read of a response body means. */
export function readBodyFailure(error: unknown): Evidence {
  if (error instanceof AttemptEnded) return error.evidence;
  if (error instanceof UndecodableBody) return { kind: "malformed", detail: error.detail };
  if (isAbort(error)) return CLIENT_CANCELLED;
  // `fetch` undoes gzip and br by itself; its decoders speak of their stream, hyper of the connection.
  const text = detailOf(error);
  if (!/connection|reset|broken pipe|os error/i.test(text) && DECODER_WORDS.test(text)) {
    return { kind: "malformed", detail: "undecodable_body" };
  }
  return transport("reset_in_body");
}

const DECODER_WORDS = /end of file|unexpected EOF|gzip|deflate|brotli|corrupt|invalid|decompress|checksum/i;

/** Causes of a failure while the connection was being made. */
function connectCause(text: string, proxy: SendContext["proxy"]): TransportCause {
  if (proxy === "forward") return "egress_proxy";
  if (text.includes("invalid peer certificate")) return "tls_certificate";
  // Through a tunnel these are the upstream's: a proxy fails in words of its own.
  if (/handshake|corrupt message|fatal alert/i.test(text)) return "tls";
  if (proxy === "tunnel") return "egress_proxy";
  if (text.includes("dns error")) return "dns";
  if (!text.includes("tcp connect error")) return "tls";
  // No route and an unreachable network are told at once, like a refusal; only a kernel timeout is one.
  return /timed out/i.test(text) ? "connect_timeout" : "refused";
}

function transport(cause: TransportCause): Evidence {
  return { kind: "transport", cause, pooled: false };
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** What went wrong, without the URL and the addresses before it, whose words could be taken for it. */
function detailOf(error: unknown): string {
  const parts: string[] = [];
  let current = error;
  for (let depth = 0; depth < MAX_CAUSES && current instanceof Error; depth++) {
    parts.push(current.message);
    current = current.cause;
  }
  const text = parts.join(" <- ");
  const at = text.indexOf("client error (");
  return at < 0 ? text : text.slice(at);
}

/** Chains are two long in practice; the bound is against a cycle. */
const MAX_CAUSES = 6;
