/** What ends an attempt or a body early, as errors of our own, and what they are evidence of. */
import type { Evidence, TransportCause } from "../core/evidence.ts";

export const CLIENT_CANCELLED: Evidence = { kind: "client_cancelled" };

/** How we end an attempt ourselves: thrown by whatever is under way. */
export class AttemptEnded extends Error {
  override readonly name = "AttemptEnded";
  constructor(readonly evidence: Evidence) {
    super(`Attempt ended: ${evidence.kind}`);
  }
}

/** The connection ended or broke before what was read from it was whole. */
export class BrokenConnection extends Error {
  override readonly name = "BrokenConnection";
  constructor(options?: ErrorOptions) {
    super("Cannot read answer: the connection ended", options);
  }
}

/** What came is not the head of an HTTP/1.1 answer. */
export class BadHead extends Error {
  override readonly name = "BadHead";
  constructor() {
    super("Cannot read answer: its head is not HTTP/1.1");
  }
}

/** Bytes that do not decode, that unpack beyond the bound, or whose end cannot be told. */
export class UndecodableBody extends Error {
  override readonly name = "UndecodableBody";
  constructor(
    readonly detail: "undecodable_body" | "oversized_body" | "bad_body_framing",
    options?: ErrorOptions,
  ) {
    super(`Cannot decode body: ${detail}`, options);
  }
}

/**
 * Why no response head came.
 *
 * @param pooled  the connection had lain idle in the pool.
 */
export function readSendFailure(error: unknown, pooled: boolean): Evidence {
  if (error instanceof AttemptEnded) return error.evidence;
  if (error instanceof BadHead) return { kind: "malformed", detail: "bad_response_head" };
  return transport("reset_before_head", pooled);
}

/** What the error thrown by a read of a response body means. */
export function readBodyFailure(error: unknown): Evidence {
  if (error instanceof AttemptEnded) return error.evidence;
  if (error instanceof UndecodableBody) return { kind: "malformed", detail: error.detail };
  return transport("reset_in_body");
}

export function transport(cause: TransportCause, pooled = false): Evidence {
  return { kind: "transport", cause, pooled };
}
