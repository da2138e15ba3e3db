/** Judged outcomes as `classify.ts` makes them, one maker a kind, for tests of the machine. */
import type { Outcome, StatedTime } from "../../lib/core/outcome.ts";

const base = { scope: "account", origin: "upstream", code: "" } as const;

export function success(): Outcome {
  return { ...base, kind: "success", row: 1, scope: "none", status: 200 };
}

/** A passing failure with a status: 503 unless said otherwise. */
export function unavailable(
  given: { notBeforeMs?: number; recoverable?: boolean; status?: number; row?: number } = {},
): Outcome {
  return {
    ...base,
    kind: "transient",
    row: given.row ?? 26,
    scope: "provider",
    status: given.status ?? 503,
    code: "unavailable",
    cause: "status",
    notBeforeMs: given.notBeforeMs ?? null,
    recoverable: given.recoverable ?? false,
    strike: true,
  };
}

type Transient = Extract<Outcome, { kind: "transient" }>;

export function transient(cause: Transient["cause"], given: Partial<Transient> = {}): Outcome {
  return { ...(unavailable() as Transient), cause, ...given };
}

/** A 429 that states a time. */
export function limitedUntil(
  untilMs: number,
  limiter: "account" | "model" = "account",
  shape: "rate" | "quota" = "quota",
): Outcome {
  return limited({ untilMs, source: "retry_after" }, shape, limiter);
}

/** A 429 without a time. */
export function limitedSomehow(shape: "rate" | "quota", limiter: "account" | "model" = "account"): Outcome {
  return limited(null, shape, limiter);
}

function limited(stated: StatedTime | null, shape: "rate" | "quota", limiter: "account" | "model"): Outcome {
  return { ...base, kind: "limited", row: 19, status: 429, code: "usage_limit", shape, limiter, stated };
}

export function noResponse(given: { pooled?: boolean; recoverable?: boolean } = {}): Outcome {
  return {
    ...base,
    kind: "no_response",
    row: 28,
    scope: "network",
    status: null,
    code: "refused",
    cause: "refused",
    recoverable: given.recoverable ?? false,
    pooled: given.pooled ?? false,
  };
}

export function unauthorized(): Outcome {
  return { ...base, kind: "unauthorized", row: 6, status: 401, code: "unauthorized" };
}

export function credentialDead(): Outcome {
  return { ...base, kind: "credential_dead", row: 11, status: 403, code: "suspended" };
}

export function refreshDead(reason: "invalid_grant" | "credential_invalid" = "invalid_grant"): Outcome {
  return { ...base, kind: "refresh_dead", row: 8, status: null, code: reason, reason };
}

export function refreshFailed(notBeforeMs: number | null = null): Outcome {
  return transient("refresh", { row: 9, status: null, strike: false, notBeforeMs, code: "refresh_failed" });
}

export function noCredits(): Outcome {
  return { ...base, kind: "credits", row: 10, status: 402, code: "credits" };
}

export function workspacePaused(untilMs: number): Outcome {
  return { ...base, kind: "account_pause", row: 10, status: 402, code: "deactivated_workspace", untilMs };
}

export function modelUnsupported(): Outcome {
  return {
    ...base,
    kind: "model_unsupported",
    row: 16,
    scope: "model",
    status: 404,
    code: "model_not_found",
  };
}

export function requestFault(state: "none" | "foreign_state" | "previous_response" = "none"): Outcome {
  return {
    ...base,
    kind: "request_fault",
    row: 2,
    scope: "request",
    status: 400,
    code: "invalid_request",
    state,
  };
}

export function edgeBlock(): Outcome {
  return { ...base, kind: "edge_block", row: 13, scope: "provider", status: 403, code: "edge_block" };
}

export function incomplete(): Outcome {
  return { ...base, kind: "incomplete", row: 40, scope: "request", status: 200, code: "stream_incomplete" };
}

export function cancelled(): Outcome {
  return { ...base, kind: "cancelled", row: 45, scope: "none", origin: "client", status: null, code: "" };
}

/** No descriptor, port or buffer was left for the connection. */
export function localLimit(): Outcome {
  return {
    ...base,
    kind: "local_limit",
    row: 0,
    scope: "none",
    origin: "local",
    status: null,
    code: "overloaded",
  };
}

/** A request that cannot be said in the provider's protocol: refused here, never sent. */
export function uncarried(): Outcome {
  return {
    ...base,
    kind: "request_fault",
    row: 2,
    scope: "request",
    origin: "local",
    status: 400,
    code: "invalid_request",
    state: "none",
  };
}
