/**
 * What was seen of one attempt, before anybody judged it.
 *
 * Evidence is made at the edges (`upstream/`, `protocol/`) and read by `classify.ts` alone.
 */

/** Facts read from an error body of any shape (wire-facts 1.1). Strings are the upstream's: never shown to a client. */
export interface ErrorFacts {
  /** How the body looked: `json` (an error object was found), `other_json`, `html`, `text`, `empty`. */
  readonly form: "json" | "other_json" | "html" | "text" | "empty";
  /** First of `error.code`, `detail.code`, `code`; numbers as text; lower-cased. */
  readonly code: string | null;
  readonly type: string | null;
  readonly message: string | null;
  readonly param: string | null;
  /** Status stated inside the body or frame, if any. */
  readonly status: number | null;
  /** `resets_at` as UTC epoch ms (values above 1e12 are taken as ms already). */
  readonly resetsAtMs: number | null;
  readonly resetsInMs: number | null;
  /** `error.details.error_code` (Anthropic), else null. */
  readonly detailCode: string | null;
}

/** Case-insensitive header access; `Headers` satisfies it. */
export interface HeaderLookup {
  get(name: string): string | null;
}

export const NO_RESPONSE_CAUSES = [
  "refused",
  "connect_timeout",
  "dns",
  "tls",
  "tls_certificate",
  "reset_before_head",
] as const;
/** Local-path failures: nothing of a response head arrived (glossary "no_response"). */
export type NoResponseCause = (typeof NO_RESPONSE_CAUSES)[number];

export type TransportCause =
  | NoResponseCause
  /** Our own first-byte limit ended the attempt. */
  | "first_byte_timeout"
  /** The connection broke inside the body. */
  | "reset_in_body"
  /** Our own idle limit ended the body. */
  | "idle_timeout"
  /** The configured egress proxy refused or could not be reached. */
  | "egress_proxy"
  /** This machine had no descriptor, port or buffer left for the connection: nothing was sent. */
  | "local_limit";

export type Evidence =
  /** A complete response head with a failure status, and the first 64 KiB of its body. */
  | {
    readonly kind: "http";
    readonly status: number;
    readonly headers: HeaderLookup;
    readonly error: ErrorFacts;
  }
  /** A failure event inside a 2xx stream, or an error object inside a 2xx body. */
  | { readonly kind: "in_stream"; readonly error: ErrorFacts; readonly headers: HeaderLookup }
  | {
    readonly kind: "transport";
    readonly cause: TransportCause;
    /** True when the dead connection may have been a pooled idle one: a repeat is nobody's fault (ruling 15). */
    readonly pooled: boolean;
  }
  /** 2xx, but the body is not what the protocol allows (bad SSE, HTML page, no event at all, cut JSON). */
  | { readonly kind: "malformed"; readonly detail: string }
  /** At least one valid event, then a clean end without a terminal. */
  | { readonly kind: "incomplete" }
  /** The token endpoint refused or failed before this attempt could be sent (another host than the provider's). */
  | {
    readonly kind: "refresh_failed";
    readonly terminal: boolean;
    readonly code: string;
    /** The issuer's own verdict, where it gave one; else the code decides. */
    readonly reason?: "invalid_grant" | "credential_invalid";
    readonly retryAtMs: number | null;
  }
  | { readonly kind: "success" }
  | { readonly kind: "client_cancelled" };
