/**
 * The upstream's own refusal of a request, told to the client whose request it was.
 *
 * Only request-scoped and once-only answers come here (design.md 6); everything else is told in our words.
 */
import type { ClientProtocol } from "../core/domain.ts";
import type { ErrorFacts } from "../core/evidence.ts";
import { translateErrorBody } from "./translate/failure_words.ts";

/**
 * Words an upstream error for a client of another dialect, or one whose SDK reads only `error` (wire-facts 8.3).
 *
 * @returns JSON text; a page's text is never in it.
 */
export function wordUpstreamError(
  protocol: ClientProtocol,
  status: number,
  facts: ErrorFacts,
  requestId: string,
): string {
  const message = facts.form === "html" ? null : facts.message;
  const told = { ...facts, message: message ?? `The upstream refused this request with status ${status}` };
  return JSON.stringify(
    translateErrorBody(protocol === "raw" ? "responses" : protocol, told, status, requestId),
  );
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
