/**
 * What a failure means by its status alone, when no word in it is known.
 *
 * Undocumented upstreams send new codes any day: every status has a default that neither blames an account
 * without cause nor repeats what cannot work.
 */
import type { Signal } from "./classify.ts";
import type { ErrorFacts, HeaderLookup } from "./evidence.ts";
import type { StatedTime } from "./outcome.ts";
import { readStatedTime } from "./stated_time.ts";

/**
 * @param status  400 and above, or the status an in-stream failure maps to.
 * Source: state-machine-facts 2A.5 and 4; design.md ruling 2.
 */
export function signalOfStatus(
  status: number,
  error: ErrorFacts,
  headers: HeaderLookup,
  nowMs: number,
): Signal {
  switch (status) {
    case 401:
      return { kind: "unauthorized", code: "unauthorized" };
    case 402:
      return { kind: "credits", code: "payment_required" };
    case 403:
      return requestFault(14, "forbidden");
    case 404:
      return requestFault(17, "not_found");
    case 409:
      return requestFault(4, "conflict");
    case 413:
      return requestFault(5, "request_too_large");
    case 422:
      return requestFault(4, "unprocessable");
    // A WebSocket refused for good: the client itself falls back to HTTP when it sees the status.
    case 426:
      return requestFault(2, "upgrade_required");
    case 429:
      return readLimit(error, headers, readStatedTime(error, headers, nowMs));
    case 408:
      return { kind: "transient", code: "upstream_timeout", stated: null };
    // Misdirected and too early: this connection's trouble, not the request's.
    case 421:
    case 425:
      return { kind: "transient", code: "upstream_error", stated: null };
    case 529:
      return { kind: "overloaded", code: "overloaded", stated: readStatedTime(error, headers, nowMs) };
  }
  if (status >= 500) {
    return { kind: "transient", code: "upstream_error", stated: readStatedTime(error, headers, nowMs) };
  }
  return requestFault(2, "invalid_request");
}

/**
 * A 429 that no known code explains: by its wording, else by its headers.
 *
 * @param stated  the time it states, if any: then it is a limit whatever it says.
 */
export function readLimit(error: ErrorFacts, headers: HeaderLookup, stated: StatedTime | null): Signal {
  const words = error.form === "html"
    ? ""
    : `${error.code ?? ""} ${error.type ?? ""} ${(error.message ?? "").slice(0, 2_000)}`;
  if (QUOTA_WORDS.test(words)) {
    return { kind: "limited", shape: "quota", limiter: "account", code: "quota_limited", stated };
  }
  if (RATE_WORDS.test(words) || stated !== null || LIMIT_HEADERS.some((name) => headers.get(name) !== null)) {
    return { kind: "limited", shape: "rate", limiter: "account", code: "rate_limited", stated };
  }
  return { kind: "throttle", code: "throttled", stated: null };
}

const QUOTA_WORDS = /usage|quota|exhausted/i;
const RATE_WORDS =
  /rate[ _-]?limit|too[ _-]many[ _-]requests|slow[ _-]down|throttl|concurren|requests? per |tokens? per /i;
const LIMIT_HEADERS = [
  "x-ratelimit-limit-requests",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-limit-tokens",
  "x-ratelimit-remaining-tokens",
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "ratelimit",
  "ratelimit-remaining",
  "ratelimit-policy",
] as const;

/** The failure status an event or frame states of itself, or null. */
export function readStatedStatus(error: ErrorFacts): number | null {
  return error.status !== null && error.status >= 400 && error.status <= 599 ? error.status : null;
}

/** Which status a failure inside a stream would have had as an answer, by its type; 502 where that tells nothing. */
export function statusOfErrorType(error: ErrorFacts): number {
  return STATUS_OF_TYPE.get((error.type ?? "").toLowerCase()) ?? 502;
}

/** wire-facts 6.1 and the platform's own names. */
const STATUS_OF_TYPE: ReadonlyMap<string, number> = new Map([
  ["invalid_request_error", 400],
  ["invalid_request", 400],
  ["authentication_error", 401],
  ["billing_error", 402],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["conflict_error", 409],
  ["request_too_large", 413],
  ["rate_limit_error", 429],
  ["api_error", 500],
  ["server_error", 500],
  ["service_unavailable_error", 503],
  ["timeout_error", 504],
  ["overloaded_error", 529],
]);

function requestFault(row: Extract<Signal, { kind: "request_fault" }>["row"], code: string): Signal {
  return { kind: "request_fault", row, code, state: "none" };
}
