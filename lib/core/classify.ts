/**
 * The one place where what was seen of an attempt turns into an outcome; nobody downstream looks at a status.
 *
 * Providers translate their answers into the signals of one vocabulary; a signal wins over the status, and where a
 * provider has no word for it the common words, the edge's marks and the status decide, in that order. `row` is
 * the row of the merged decision table (state-machine-facts 4).
 */
import type { ModelId } from "./domain.ts";
import { readEdgeBlock } from "./edge_block.ts";
import { findMeaning, signalOf } from "./error_meaning.ts";
import { COMMON_WORDS } from "./error_words.ts";
import type { ErrorFacts, Evidence, HeaderLookup } from "./evidence.ts";
import { passing, refreshOutcome, safeCode, type Transient, transportOutcome } from "./local_outcome.ts";
import type { Outcome, StatedTime } from "./outcome.ts";
import { readStatedTime } from "./stated_time.ts";
import { readStatedStatus, signalOfStatus, statusOfErrorType } from "./status_signal.ts";

/** What an upstream's answer says, whatever words and status it used. `code` is a safe word of ours. */
export type Signal =
  /** The request is at fault. `row`: 2 invalid, 3 context, 4 state or policy, 5 too large, 14 policy/unknown 403, 17 other 404. */
  | {
    readonly kind: "request_fault";
    readonly row: 2 | 3 | 4 | 5 | 14 | 17;
    readonly code: string;
    readonly state: "none" | "foreign_state" | "previous_response";
  }
  | { readonly kind: "unauthorized"; readonly code: string }
  | { readonly kind: "credential_dead"; readonly code: string }
  | { readonly kind: "account_pause"; readonly code: string; readonly untilMs: number }
  | { readonly kind: "credits"; readonly code: string }
  | { readonly kind: "model_unsupported"; readonly code: string }
  | {
    readonly kind: "limited";
    readonly shape: "rate" | "quota";
    readonly limiter: "account" | "model";
    readonly code: string;
    readonly stated: StatedTime | null;
  }
  /** A 429 with neither limit words nor limit headers: nobody's quota (ruling 2). */
  | { readonly kind: "throttle"; readonly code: string; readonly stated: StatedTime | null }
  /** Capacity of the provider; with a stated time on a 429 it is a deadline (row 24), else a strike. */
  | { readonly kind: "overloaded"; readonly code: string; readonly stated: StatedTime | null }
  | { readonly kind: "edge_block"; readonly code: string }
  | { readonly kind: "provider_reported"; readonly code: string }
  | { readonly kind: "transient"; readonly code: string; readonly stated: StatedTime | null };

export interface ClassifyContext {
  readonly nowMs: number;
  /** Null when the request names no model: then none can be at fault. Left out: some model was named. */
  readonly model?: ModelId | null;
}

/**
 * Judges one attempt.
 *
 * @param signal  what the provider's descriptor read in it; `null` when it has no word for it.
 * @returns an outcome whose code is always one of our safe words; upstream text is never part of it.
 */
export function classify(evidence: Evidence, signal: Signal | null, context: ClassifyContext): Outcome {
  switch (evidence.kind) {
    case "success":
      return { kind: "success", row: 1, scope: "none", origin: "upstream", status: 200, code: "success" };
    case "http":
      return classifyAnswer(evidence, signal, context);
    case "in_stream":
      return classifyStreamFailure(evidence, signal, context);
    case "transport":
      return transportOutcome(evidence.cause, evidence.pooled);
    case "malformed":
      return passing("malformed", 42, "upstream", 502, safeCode(evidence.detail, "malformed"));
    case "incomplete":
      // Made here, not sent by the upstream: an HTTP 408 is row 18 (C12).
      return {
        kind: "incomplete",
        row: 40,
        scope: "request",
        origin: "local",
        status: 408,
        code: "stream_incomplete",
      };
    case "refresh_failed":
      return refreshOutcome(evidence);
    case "client_cancelled":
      return {
        kind: "cancelled",
        row: 45,
        scope: "request",
        origin: "client",
        status: null,
        code: "client_cancelled",
      };
    default:
      return evidence satisfies never;
  }
}

type FailedAnswer = Extract<Evidence, { kind: "http" }>;
type StreamFailure = Extract<Evidence, { kind: "in_stream" }>;

function classifyAnswer(evidence: FailedAnswer, signal: Signal | null, context: ClassifyContext): Outcome {
  const { status, headers, error } = evidence;
  // Only a proxy on our own way out may ask for proxy credentials (RFC 9110 section 15.5.8).
  if (status === 407) return transportOutcome("egress_proxy", false);
  // A redirect leads to another host, e.g. a captive portal; it is not followed and is nobody's answer (B149).
  if (status < 400 && signal === null) return passing("malformed", 42, "upstream", 502, "unexpected_status");
  const edge = readEdgeBlock(status, headers, error);
  const read = signal ?? (edge === null ? null : { kind: "edge_block" as const, code: edge }) ??
    readCommonSignal(evidence, status, context) ??
    signalOfStatus(status, error, headers, context.nowMs);
  return judge(read, status, false, context);
}

function classifyStreamFailure(
  evidence: StreamFailure,
  signal: Signal | null,
  context: ClassifyContext,
): Outcome {
  const { error, headers } = evidence;
  const stated = readStatedStatus(error);
  const worded = signal ?? readCommonSignal(evidence, stated, context);
  if (worded !== null) return judge(worded, stated ?? statusOfSignal(worded), true, context);
  const status = stated ?? statusOfErrorType(error);
  return judge(signalOfStatus(status, error, headers, context.nowMs), status, true, context);
}

function readCommonSignal(
  evidence: { readonly error: ErrorFacts; readonly headers: HeaderLookup },
  status: number | null,
  context: ClassifyContext,
): Signal | null {
  const found = findMeaning(evidence.error, status, COMMON_WORDS);
  if (found === null) return null;
  return signalOf(found, {
    nowMs: context.nowMs,
    namesModel: context.model !== null,
    limiter: "account",
    stated: readStatedTime(evidence.error, evidence.headers, context.nowMs),
  });
}

function judge(signal: Signal, status: number, inStream: boolean, context: ClassifyContext): Outcome {
  const code = safeCode(signal.code, signal.kind);
  const base = { origin: "upstream", status, code } as const;
  switch (signal.kind) {
    case "request_fault":
      return { ...base, kind: "request_fault", row: signal.row, scope: "request", state: signal.state };
    case "unauthorized":
      return { ...base, kind: "unauthorized", row: 6, scope: "account" };
    case "credential_dead":
      return { ...base, kind: "credential_dead", row: 11, scope: "account" };
    case "account_pause":
      return {
        ...base,
        kind: "account_pause",
        row: status === 403 ? 11 : 10,
        scope: "account",
        untilMs: signal.untilMs,
      };
    case "credits":
      return { ...base, kind: "credits", row: 10, scope: "account" };
    case "model_unsupported":
      // Without a model there is nothing to exclude, and nothing another account could do better.
      if (context.model === null) {
        return { ...base, kind: "request_fault", row: 2, scope: "request", state: "none" };
      }
      return { ...base, kind: "model_unsupported", row: status === 403 ? 12 : 16, scope: "model" };
    case "limited":
      return limited(signal, base);
    case "throttle":
      // Row 24 without a time, but the provider is not to blame: other accounts are served meanwhile.
      return {
        ...passing("throttle", 24, "upstream", status, code),
        scope: "account",
        notBeforeMs: signal.stated?.untilMs ?? null,
        recoverable: false,
        strike: false,
      };
    case "overloaded":
      if (status === 429 && signal.stated !== null) {
        return {
          ...base,
          kind: "limited",
          row: 24,
          scope: "account",
          shape: "rate",
          limiter: "account",
          stated: signal.stated,
          strike: true,
        };
      }
      return upstreamFailure("overloaded", status, code, signal.stated, inStream);
    case "edge_block":
      return {
        ...base,
        kind: "edge_block",
        row: REGION_CODES.has(code) ? 15 : 13,
        scope: "provider",
      };
    case "provider_reported":
      return {
        ...passing("provider_reported", 35, "upstream", status, code),
        recoverable: isRecoverable(status),
      };
    case "transient":
      return upstreamFailure(inStream ? "stream_failure" : "status", status, code, signal.stated, inStream);
    default:
      return signal satisfies never;
  }
}

const REGION_CODES: ReadonlySet<string> = new Set(["region_blocked", "unsupported_country_region_territory"]);

function limited(
  signal: Extract<Signal, { kind: "limited" }>,
  base: { readonly origin: "upstream"; readonly status: number; readonly code: string },
): Outcome {
  const { shape, limiter, stated } = signal;
  return { ...base, kind: "limited", row: limitRow(signal), scope: limiter, shape, limiter, stated };
}

function limitRow({ shape, limiter, stated }: Extract<Signal, { kind: "limited" }>): number {
  if (limiter === "model") return 23;
  if (stated === null) return shape === "rate" ? 21 : 22;
  return stated.source === "retry_after" ? 19 : 20;
}

/** Rows 18, 24 to 27 and 36: the provider failed, the account may try again in a moment. */
function upstreamFailure(
  cause: "status" | "overloaded" | "stream_failure",
  status: number,
  code: string,
  stated: StatedTime | null,
  inStream: boolean,
): Transient {
  return {
    ...passing(cause, failureRow(status, inStream), "upstream", status, code),
    // A time stated with any other failure is a proxy's default more often than a promise: a 504 with a day in it
    // froze accounts (B034).
    notBeforeMs: status === 503 || status === 529 ? stated?.untilMs ?? null : null,
    recoverable: isRecoverable(status),
  };
}

function failureRow(status: number, inStream: boolean): number {
  if (status === 429) return 24;
  if (inStream) return 36;
  if (status === 408) return 18;
  if (status === 503) return 26;
  return status === 529 ? 27 : 25;
}

/** state-machine-facts 2D.2: a refusal for the account's sake is never relaunched on the same account. */
function isRecoverable(status: number): boolean {
  return status === 408 || status >= 500;
}

/** The status an in-stream failure would have had as an answer. */
function statusOfSignal(signal: Signal): number {
  switch (signal.kind) {
    case "request_fault":
      return { 2: 400, 3: 400, 4: 400, 5: 413, 14: 403, 17: 404 }[signal.row];
    case "unauthorized":
      return 401;
    case "credential_dead":
    case "account_pause":
    case "edge_block":
      return 403;
    case "credits":
      return 402;
    case "model_unsupported":
      return 404;
    case "limited":
    case "throttle":
      return 429;
    case "overloaded":
      return 503;
    case "provider_reported":
    case "transient":
      return 502;
    default:
      return signal satisfies never;
  }
}
