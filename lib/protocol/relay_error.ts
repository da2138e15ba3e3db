/**
 * The upstream's own refusal of a request, told to the client whose request it was.
 *
 * Only request-scoped and once-only answers come here (design.md 6); everything else is told in our words.
 */
import type { ClientProtocol } from "../core/domain.ts";
import type { ErrorFacts } from "../core/evidence.ts";

/**
 * Words an upstream error for a client of another dialect, or one whose SDK reads only `error` (wire-facts 8.3).
 *
 * @returns JSON text.
 */
export function wordUpstreamError(
  protocol: ClientProtocol,
  status: number,
  facts: ErrorFacts,
  requestId: string,
): string {
  const message = facts.form === "html" || facts.message === null
    ? `The upstream refused this request with status ${status}`
    : facts.message;
  if (protocol === "messages") {
    return JSON.stringify({
      type: "error",
      error: {
        type: MESSAGES_TYPES[status] ?? (status >= 500 ? "api_error" : "invalid_request_error"),
        message,
      },
      request_id: requestId,
    });
  }
  return JSON.stringify({
    error: { message, type: facts.type ?? "invalid_request_error", code: facts.code, param: facts.param },
  });
}

/** True when the body may go to the client as it came: JSON with an `error` object, in its own dialect. */
export function isOwnDialect(
  protocol: ClientProtocol,
  upstream: ClientProtocol,
  body: Uint8Array,
  facts: ErrorFacts,
): boolean {
  if (facts.form === "html") return false;
  if (protocol === "raw") return true;
  if (protocol !== upstream) return false;
  if (protocol === "responses") return facts.form === "json";
  return facts.form === "json" && startsWithErrorObject(body);
}

function startsWithErrorObject(body: Uint8Array): boolean {
  try {
    const json: unknown = JSON.parse(new TextDecoder().decode(body));
    return typeof json === "object" && json !== null && "error" in json;
  } catch {
    return false;
  }
}

const MESSAGES_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};
