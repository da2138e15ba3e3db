/** Rows of attempts without an answer of their own, and of failures inside a stream. */
import type { Evidence, TransportCause } from "../../lib/core/evidence.ts";
import { facts, inStream } from "../support/evidence.ts";
import { at, NOW, type OutcomeRow, testOutcomes } from "../support/outcome_rows.ts";

const transport = (cause: TransportCause, pooled = false): Evidence => ({ kind: "transport", cause, pooled });

testOutcomes([
  {
    name: "row 1, success",
    evidence: { kind: "success" },
    want: { kind: "success", row: 1, scope: "none", origin: "upstream", status: 200, code: "success" },
  },
  {
    name: "row 3, context too long inside a stream",
    evidence: inStream(facts({ code: "context_length_exceeded" })),
    want: { kind: "request_fault", row: 3, status: 400 },
  },
  {
    name: "row 8, the grant is over",
    evidence: { kind: "refresh_failed", terminal: true, code: "refresh_token_reused", retryAtMs: null },
    want: {
      kind: "refresh_dead",
      row: 8,
      scope: "account",
      status: null,
      code: "refresh_token_reused",
      reason: "invalid_grant",
    },
  },
  {
    name: "row 8, nothing to refresh with",
    evidence: { kind: "refresh_failed", terminal: true, code: "no_refresh_token", retryAtMs: null },
    want: { kind: "refresh_dead", reason: "credential_invalid" },
  },
  {
    name: "row 8, the issuer's own verdict wins",
    evidence: {
      kind: "refresh_failed",
      terminal: true,
      code: "invalid_grant",
      reason: "credential_invalid",
      retryAtMs: null,
    },
    want: { kind: "refresh_dead", reason: "credential_invalid" },
  },
  {
    name: "row 9, the token endpoint rests",
    evidence: { kind: "refresh_failed", terminal: false, code: "refresh_busy", retryAtMs: NOW + 20_000 },
    want: {
      kind: "transient",
      row: 9,
      scope: "account",
      cause: "refresh",
      code: "refresh_busy",
      notBeforeMs: NOW + 20_000,
      recoverable: false,
      strike: false,
    },
  },
  ...([["refused", 28], ["connect_timeout", 28], ["dns", 29], ["tls", 30], [
    "reset_before_head",
    31,
  ]] as const).map((
    [cause, row],
  ): OutcomeRow => ({
    name: `row ${row}, ${cause}`,
    evidence: transport(cause),
    want: {
      kind: "no_response",
      row,
      scope: "network",
      origin: "local",
      status: null,
      code: cause,
      cause,
      recoverable: true,
      pooled: false,
    },
  })),
  {
    name: "row 30, a certificate that does not match stays so",
    evidence: transport("tls_certificate"),
    want: { kind: "no_response", row: 30, recoverable: false },
  },
  {
    name: "row 31, a pooled connection died (ruling 15)",
    evidence: transport("reset_before_head", true),
    want: { kind: "no_response", row: 31, pooled: true },
  },
  {
    name: "row 32, first-byte timeout",
    evidence: transport("first_byte_timeout"),
    want: {
      kind: "transient",
      row: 32,
      origin: "local",
      status: null,
      cause: "first_byte_timeout",
      recoverable: false,
      strike: true,
    },
  },
  {
    name: "row 32, silence before commit (ruling 17)",
    evidence: transport("idle_timeout"),
    want: { kind: "transient", row: 32, cause: "idle_timeout", recoverable: false, strike: true },
  },
  {
    name: "row 33, reset in the body",
    evidence: transport("reset_in_body"),
    want: { kind: "transient", row: 33, cause: "body_reset", recoverable: true, strike: true },
  },
  {
    name: "our own way out is nobody's strike (B152)",
    evidence: transport("egress_proxy"),
    want: {
      kind: "transient",
      row: 28,
      scope: "network",
      cause: "egress_proxy",
      recoverable: false,
      strike: false,
    },
  },
  {
    name: "a limit of this machine is nobody's, whatever it kept from being sent",
    evidence: transport("local_limit"),
    want: {
      kind: "local_limit",
      row: 0,
      scope: "none",
      origin: "local",
      status: null,
      code: "overloaded",
    },
  },
  {
    name: "a refresh that this machine could not send",
    evidence: {
      kind: "refresh_failed",
      terminal: false,
      code: "token_endpoint_local_limit",
      retryAtMs: null,
    },
    want: { kind: "local_limit", code: "overloaded" },
  },
  {
    name: "row 36, failure event nobody knows",
    evidence: inStream(facts({ code: "brand_new" })),
    want: {
      kind: "transient",
      row: 36,
      cause: "stream_failure",
      status: 502,
      recoverable: true,
      strike: true,
    },
  },
  {
    name: "row 36, overload inside a stream",
    evidence: inStream(facts({ type: "service_unavailable_error", code: "server_is_overloaded" })),
    want: { kind: "transient", row: 36, cause: "overloaded", status: 503, recoverable: true },
  },
  {
    name: "row 36, a typed failure keeps its status",
    evidence: inStream(facts({ type: "timeout_error" })),
    want: { kind: "transient", row: 36, cause: "stream_failure", status: 504 },
  },
  {
    name: "row 37, 401 inside a stream",
    evidence: inStream(facts({ status: 401 })),
    want: { kind: "unauthorized", row: 6, status: 401 },
  },
  {
    name: "row 37, 402 inside a stream",
    evidence: inStream(facts({ code: "insufficient_quota" })),
    want: { kind: "credits", row: 10, status: 402 },
  },
  {
    name: "row 37, 403 inside a stream",
    evidence: inStream(facts({ type: "permission_error" })),
    want: { kind: "request_fault", row: 14, status: 403 },
  },
  {
    name: "row 37, 429 inside a stream with its wait (B044)",
    evidence: inStream(facts({ code: "rate_limit_exceeded", message: "Please try again in 11s" })),
    want: { kind: "limited", row: 20, status: 429, shape: "rate", stated: at(11, "message") },
  },
  {
    name: "row 37, 400 by type inside a stream",
    evidence: inStream(facts({ type: "invalid_request_error", message: "x" })),
    want: { kind: "request_fault", row: 2, status: 400 },
  },
  {
    name: "row 37, 404 by code inside a stream",
    evidence: inStream(facts({ code: "model_not_found" })),
    want: { kind: "model_unsupported", row: 16, status: 404 },
  },
  {
    name: "row 40, clean end without a terminal",
    evidence: { kind: "incomplete" },
    want: {
      kind: "incomplete",
      row: 40,
      scope: "request",
      origin: "local",
      status: 408,
      code: "stream_incomplete",
    },
  },
  {
    name: "row 42, a body the protocol does not allow",
    evidence: { kind: "malformed", detail: "no_event" },
    want: {
      kind: "transient",
      row: 42,
      cause: "malformed",
      status: 502,
      code: "no_event",
      recoverable: true,
      strike: true,
    },
  },
  {
    name: "row 45, client cancel",
    evidence: { kind: "client_cancelled" },
    want: {
      kind: "cancelled",
      row: 45,
      scope: "request",
      origin: "client",
      status: null,
      code: "client_cancelled",
    },
  },
]);
