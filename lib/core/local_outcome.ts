/**
 * Outcomes that no answer of a provider stands behind: the way there, the token endpoint, our own limits.
 */
import type { Evidence, TransportCause } from "./evidence.ts";
import type { Outcome } from "./outcome.ts";

export type Transient = Extract<Outcome, { kind: "transient" }>;

/** Rows 28 to 33: what happened on the way, before or without an answer. */
export function transportOutcome(cause: TransportCause, pooled: boolean): Outcome {
  if (cause === "local_limit") return LOCAL_LIMIT;
  const row = TRANSPORT_ROWS[cause];
  switch (cause) {
    case "refused":
    case "connect_timeout":
    case "dns":
    case "tls":
    case "tls_certificate":
    case "reset_before_head":
      return {
        kind: "no_response",
        row,
        scope: "network",
        origin: "local",
        status: null,
        code: cause,
        cause,
        // A certificate that does not match stays so; everything else may be a moment's trouble.
        recoverable: cause !== "tls_certificate",
        pooled,
      };
    case "first_byte_timeout":
    case "idle_timeout":
      // Our own limits: never relaunched by recovery, which would wait as long again.
      return { ...passing(cause, row, "local", null, cause), recoverable: false };
    case "reset_in_body":
      return passing("body_reset", row, "local", null, "body_reset");
    case "egress_proxy":
      // The way out is our own: neither the provider's strike nor outage evidence against it.
      return {
        ...passing("egress_proxy", row, "local", null, "egress_proxy"),
        scope: "network",
        recoverable: false,
        strike: false,
      };
    default:
      return cause satisfies never;
  }
}

/** No answer of anybody: the decision table has no row for it. */
const LOCAL_LIMIT: Outcome = {
  kind: "local_limit",
  row: 0,
  scope: "none",
  origin: "local",
  status: null,
  code: "overloaded",
};

/** How a refresh that could not be sent for want of our own means is told (`oauth_client.ts`). */
export const REFRESH_LOCAL_LIMIT = "token_endpoint_local_limit";

const TRANSPORT_ROWS: Record<Exclude<TransportCause, "local_limit">, number> = {
  refused: 28,
  connect_timeout: 28,
  egress_proxy: 28,
  dns: 29,
  tls: 30,
  tls_certificate: 30,
  reset_before_head: 31,
  first_byte_timeout: 32,
  idle_timeout: 32,
  reset_in_body: 33,
};

/** Rows 8 and 9: the token endpoint would not give a new token. */
export function refreshOutcome(evidence: Extract<Evidence, { kind: "refresh_failed" }>): Outcome {
  if (evidence.terminal) {
    const code = safeCode(evidence.code, "credential_invalid");
    const reason = evidence.reason ?? (DEAD_GRANTS.has(code) ? "invalid_grant" : "credential_invalid");
    return { kind: "refresh_dead", row: 8, scope: "account", origin: "upstream", status: null, code, reason };
  }
  if (evidence.code === REFRESH_LOCAL_LIMIT) return LOCAL_LIMIT;
  return {
    ...passing("refresh", 9, "upstream", null, safeCode(evidence.code, "refresh_failed")),
    scope: "account",
    notBeforeMs: evidence.retryAtMs,
    recoverable: false,
    // The token endpoint is another host: its trouble says nothing about the provider.
    strike: false,
  };
}

/** What a token endpoint says when the login is over for good (wire-facts 4.3); known over restarts. */
export const DEAD_GRANTS: ReadonlySet<string> = new Set([
  "invalid_grant",
  "refresh_token_reused",
  "refresh_token_expired",
  "refresh_token_invalidated",
  "token_expired",
  "token_invalidated",
  "app_session_terminated",
  "account_session_expired",
  "account_auth_invalidated",
  "account_deactivated",
  "account_suspended",
  "account_deleted",
]);

/** A passing failure with the usual consequences: ladder, strike, recovery. */
export function passing(
  cause: Transient["cause"],
  row: number,
  origin: "upstream" | "local",
  status: number | null,
  code: string,
): Transient {
  return {
    kind: "transient",
    row,
    scope: "provider",
    origin,
    status,
    code,
    cause,
    notBeforeMs: null,
    recoverable: true,
    strike: true,
  };
}

const SAFE_CODE = /^[a-z0-9_]{1,64}$/;

/** A code from elsewhere, unless it is no safe word of ours. */
export function safeCode(code: string, fallback: string): string {
  return SAFE_CODE.test(code) ? code : fallback;
}
