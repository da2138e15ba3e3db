/**
 * Small HTTP calls of commands: one request, a bounded JSON or text answer, and what went wrong in a word.
 */
import type { HeaderLookup } from "../core/evidence.ts";
import type { Evidence } from "../core/evidence.ts";
import { formatAttemptId } from "../core/domain.ts";
import type { Clock, Upstream } from "../ports.ts";
import { readErrorBody } from "../upstream/error_body.ts";

export interface SmallCall {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly timeoutMs?: number;
  /** Where an answer is cut; left out: 64 KiB, far above what a token endpoint or a model list answers. */
  readonly limitBytes?: number;
}

export type SmallAnswer =
  | {
    readonly ok: true;
    readonly status: number;
    readonly headers: HeaderLookup;
    readonly text: string;
    /** Null when the body is not a JSON object. */
    readonly json: Record<string, unknown> | null;
  }
  | {
    readonly ok: false;
    /** `dns`, `refused`, `connect_timeout`, `tls_certificate`, `egress_proxy`, `malformed` … */
    readonly cause: string;
  };

const DEFAULT_TIMEOUT_MS = 20_000;
const CONNECT_TIMEOUT_MS = 10_000;
const DEFAULT_LIMIT_BYTES = 65_536;

/** Never throws. */
export async function callOnce(upstream: Upstream, clock: Clock, call: SmallCall): Promise<SmallAnswer> {
  const body = call.body === undefined ? null : new TextEncoder().encode(call.body);
  const result = await upstream.send({
    method: call.method,
    url: call.url,
    headers: new Headers({ accept: "application/json", ...call.headers }),
    body,
    bodyLength: body?.length ?? null,
    // Commands end soon; a pooled connection would only be one more thing that can be stale.
    fresh: true,
    connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, call.timeoutMs ?? CONNECT_TIMEOUT_MS),
    firstByteTimeoutMs: call.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    attempt: formatAttemptId("command", 1),
  }, new AbortController().signal);
  if (!result.ok) return { ok: false, cause: causeOf(result.evidence) };
  const { response } = result;
  const bytes = await readErrorBody(response, call.limitBytes ?? DEFAULT_LIMIT_BYTES, clock);
  const text = new TextDecoder().decode(bytes);
  return { ok: true, status: response.status, headers: response.headers, text, json: readObject(text) };
}

function causeOf(evidence: Evidence): string {
  return evidence.kind === "transport" ? evidence.cause : evidence.kind;
}

/** What a failed call means to a person. */
export function describeCause(cause: string, host: string): string {
  switch (cause) {
    case "dns":
      return `the name ${host} cannot be resolved (DNS)`;
    case "refused":
      return `${host} refuses connections`;
    case "connect_timeout":
      return `${host} does not answer (connection timed out)`;
    case "first_byte_timeout":
      return `${host} takes the request but does not answer in time`;
    case "tls_certificate":
      return `the certificate of ${host} is not trusted here`;
    case "tls":
      return `${host} does not speak TLS as expected`;
    case "egress_proxy":
      return `the outbound proxy refuses or cannot be reached on the way to ${host}`;
    default:
      return `the connection to ${host} broke (${cause})`;
  }
}

export function readObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? value as Record<string, unknown>
      : null;
  } catch {
    return null;
  }
}
