/**
 * Failures told inside a stream whose status is already 200, in the words the client's parser acts on.
 *
 * Codex acts on `response.failed` alone and takes a bare `error` event for a cut (wire-facts 2.2); chat clients
 * throw on an `error` key and must not see `[DONE]` after it; Anthropic clients throw on `event: error`.
 */
import type { ClientProtocol } from "../core/domain.ts";
import { hasErrorObject, readErrorValue } from "./error_body.ts";
import { readEventData, readObject } from "./event_data.ts";
import { encodeFrame, type SseFrame } from "./sse.ts";

export interface StreamFailure {
  /** A safe word of ours. */
  readonly code: string;
  /** Our own sentence. */
  readonly message: string;
  readonly requestId: string;
  /** Id of the response the client has seen begin. */
  readonly responseId?: string;
  readonly sequenceNumber?: number;
}

/** What Codex reads of an upstream's error beside code and message; kept in its own form. */
const KEPT_FIELDS = ["plan_type", "resets_at", "resets_in_seconds"] as const;

/** One closed frame that ends the client's stream as failed. Nothing may follow it. */
export function renderStreamFailure(
  protocol: ClientProtocol,
  failure: StreamFailure,
): Uint8Array<ArrayBuffer> {
  const { code, message, requestId } = failure;
  switch (protocol) {
    case "responses":
      return responseFailed(
        { code, message },
        failure.responseId ?? null,
        requestId,
        failure.sequenceNumber ?? null,
      );
    case "messages": {
      const error = { type: anthropicTypeOf(code), message, code };
      return encodeFrame("error", JSON.stringify({ type: "error", error, request_id: requestId }));
    }
    case "chat":
    case "raw": {
      const type = code === "rate_limited" ? "rate_limit_error" : "server_error";
      return encodeFrame(null, JSON.stringify({ error: { message, type, code, param: null } }));
    }
    default:
      return protocol satisfies never;
  }
}

/**
 * An upstream's bare `error` event (nested, flat, or an error object without any type) as the `response.failed` a Responses client understands.
 *
 * Code, message and reset stay the upstream's: Codex reads its waiting time from them.
 *
 * @returns `null` when the frame is no such event: pass it on as it came.
 */
export function translateBareError(
  frame: SseFrame,
  ctx: { readonly requestId: string; readonly responseId?: string },
): Uint8Array<ArrayBuffer> | null {
  const data = readEventData(frame);
  if (data.kind !== "object") return null;
  const { json } = data;
  const isTyped = json["type"] !== undefined;
  const isError = isTyped ? json["type"] === "error" : frame.event === "error" || hasErrorObject(json);
  if (!isError) return null;
  const facts = readErrorValue(json);
  const source = readObject(json["error"]) ?? json;
  const kept = Object.fromEntries(
    KEPT_FIELDS.flatMap((key) => source[key] == null ? [] : [[key, source[key]]]),
  );
  const error = {
    code: facts.code ?? facts.type ?? "server_error",
    message: facts.message ?? "The upstream reported an error",
    ...(facts.type === null ? {} : { type: facts.type }),
    ...(facts.param === null ? {} : { param: facts.param }),
    ...kept,
  };
  const sequence = json["sequence_number"];
  return responseFailed(
    error,
    ctx.responseId ?? null,
    ctx.requestId,
    typeof sequence === "number" ? sequence : null,
  );
}

/** Form A of wire-facts 2.2. */
function responseFailed(
  error: Record<string, unknown>,
  responseId: string | null,
  requestId: string,
  sequenceNumber: number | null,
): Uint8Array<ArrayBuffer> {
  const response = {
    id: responseId ?? `resp_${requestId}`,
    object: "response",
    status: "failed",
    error,
    incomplete_details: null,
    output: [],
    usage: null,
    metadata: {},
  };
  const sequence = sequenceNumber === null ? {} : { sequence_number: sequenceNumber };
  return encodeFrame("response.failed", JSON.stringify({ type: "response.failed", ...sequence, response }));
}

function anthropicTypeOf(code: string): string {
  if (code === "rate_limited") return "rate_limit_error";
  return code === "overloaded" ? "overloaded_error" : "api_error";
}
