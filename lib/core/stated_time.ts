/** The recovery time an answer states, out of all the places where it may stand (wire-facts 1.6). */
import type { ErrorFacts, HeaderLookup } from "./evidence.ts";
import type { StatedTime } from "./outcome.ts";
import { laterOf, parseMessageDelay, parseRetryAfter, parseRetryAfterMs } from "./retry_after.ts";

/**
 * Reads the fields of the body, `Retry-After` in both its forms and the message.
 *
 * @param more  what a provider's own headers state.
 * @returns the one statement to obey, see `laterOf`; `null` when nothing states a moment that lies ahead.
 */
export function readStatedTime(
  error: ErrorFacts,
  headers: HeaderLookup,
  nowMs: number,
  more: readonly StatedTime[] = [],
): StatedTime | null {
  const retryAfterMs = parseRetryAfter(headers.get("retry-after"), nowMs, headers.get("date"));
  const delayMs = error.form === "html" ? null : parseMessageDelay(error.message);
  const statements = [
    ...more,
    statement(error.resetsAtMs, "body"),
    statement(error.resetsInMs === null ? null : nowMs + error.resetsInMs, "body"),
    statement(retryAfterMs, "retry_after"),
    statement(parseRetryAfterMs(headers.get("retry-after-ms"), nowMs), "retry_after"),
    statement(delayMs === null ? null : nowMs + delayMs, "message"),
  ];
  return laterOf(statements, nowMs);
}

function statement(untilMs: number | null, source: StatedTime["source"]): StatedTime | null {
  return untilMs === null ? null : { untilMs: Math.ceil(untilMs), source };
}
