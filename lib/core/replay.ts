/**
 * Whether one client request may ever be sent more than once.
 *
 * Answers from the route's class, the method, the content type and what is known of the body; the rule never
 * refuses a request: what cannot be repeated is sent once.
 */
import { REPLAY_BODY_LIMIT_BYTES } from "./domain.ts";

/** The route's own word (`Route.replay`). `json_only` is repeatable while its body is JSON or untyped. */
export type ReplayClass = "replayable" | "json_only" | "once";

export interface BodyKnowledge {
  /**
   * `none`: the request has no body. `known`: read whole, `lengthBytes` long. `unknown`: chunked, its end was not
   * announced. `over_limit`: larger than the buffer. `failed`: reading it broke off.
   */
  readonly kind: "none" | "known" | "unknown" | "over_limit" | "failed";
  /** Bytes on the wire or inflated, whichever is more; null where it is not known. */
  readonly lengthBytes: number | null;
}

export type ReplayReason =
  | "replayable"
  | "unknown_route"
  | "once_only_route"
  | "method"
  | "content_type"
  | "body_read_failed"
  | "body_length_unknown"
  | "body_too_large";

export interface ReplayAssessment {
  readonly replayable: boolean;
  readonly reason: ReplayReason;
}

/**
 * Judges one request.
 *
 * @param replay  class of the matched route; null for a route nobody knows.
 * @param method  as received; compared case-sensitively, as HTTP does.
 * @param contentType  header value as received, or null.
 * @returns the first reason against a second send, or `replayable`.
 * Source: state-machine-facts 2A.6; design.md 4 and ruling 18.
 */
export function assessReplay(
  replay: ReplayClass | null,
  method: string,
  contentType: string | null,
  body: BodyKnowledge,
): ReplayAssessment {
  if (replay === null) return once("unknown_route");
  if (replay === "once") return once("once_only_route");
  if (!REPEATABLE_METHODS.has(method)) return once("method");
  if (replay === "json_only" && !isJsonOrAbsent(contentType)) return once("content_type");
  switch (body.kind) {
    case "none":
      return { replayable: true, reason: "replayable" };
    case "failed":
      return once("body_read_failed");
    case "unknown":
      return once("body_length_unknown");
    case "over_limit":
      return once("body_too_large");
    case "known":
      return assessLength(body.lengthBytes);
    default:
      return body.kind satisfies never;
  }
}

/** Every method the table's repeatable routes have; a new write method must not become repeatable by accident. */
const REPEATABLE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST"]);

function assessLength(lengthBytes: number | null): ReplayAssessment {
  if (lengthBytes === null || !Number.isInteger(lengthBytes) || lengthBytes < 0) {
    return once("body_length_unknown");
  }
  return lengthBytes <= REPLAY_BODY_LIMIT_BYTES
    ? { replayable: true, reason: "replayable" }
    : once("body_too_large");
}

function isJsonOrAbsent(contentType: string | null): boolean {
  const essence = (contentType ?? "").split(";", 1)[0]!.trim().toLowerCase();
  return essence === "" || essence === "application/json" || JSON_SUFFIX.test(essence);
}

/** Structured suffix of RFC 6839, e.g. `application/problem+json`. */
const JSON_SUFFIX = /^application\/[a-z0-9.!#$&^_-]+\+json$/;

function once(reason: Exclude<ReplayReason, "replayable">): ReplayAssessment {
  return { replayable: false, reason };
}
