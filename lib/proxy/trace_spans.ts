/** A finished request as spans: one for the request, its attempts as children, its waits as events. */
import type { AttemptRecord, DecisionRecord } from "../core/decision.ts";
import { resultOf } from "./metrics.ts";

export interface RequestSpan {
  readonly name: string;
  readonly kind: "server" | "client";
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly error: string | null;
  readonly events: readonly {
    readonly name: string;
    readonly atMs: number;
    readonly attributes: Readonly<Record<string, string | number | boolean>>;
  }[];
}

export interface SpanRecorder {
  record(span: RequestSpan, children: readonly RequestSpan[]): void;
}

export function traceDecision(tracer: SpanRecorder, record: DecisionRecord): void {
  const endMs = record.endedAtMs ?? record.atMs;
  const result = resultOf(record);
  tracer.record({
    name: `request ${record.route}`,
    kind: "server",
    startMs: record.atMs,
    endMs,
    attributes: {
      "holdfast.request_id": record.requestId,
      "holdfast.route": record.route,
      "holdfast.tenant": record.tenant,
      "holdfast.result": result,
      "holdfast.rounds": record.rounds,
      "holdfast.attempts": record.attempts.length,
      ...(record.model === null ? {} : { "gen_ai.request.model": record.model }),
      ...(record.status === null || record.status === 0
        ? {}
        : { "http.response.status_code": record.status }),
      ...(record.rule === null ? {} : { "holdfast.rule": record.rule }),
    },
    error: result === "success" || result === "cancelled" ? null : result,
    events: record.waits.map(({ fromMs, untilMs, reason }) => ({
      name: "wait",
      atMs: fromMs,
      attributes: { "holdfast.reason": reason, "holdfast.wait_ms": untilMs - fromMs },
    })),
  }, record.attempts.map((attempt) => attemptSpan(attempt, endMs)));
}

function attemptSpan(attempt: AttemptRecord, requestEndMs: number): RequestSpan {
  const outcome = attempt.outcome?.split(":", 1)[0] ?? "unknown";
  return {
    name: `attempt ${attempt.provider}`,
    kind: "client",
    startMs: attempt.startedAtMs,
    endMs: attempt.endedAtMs ?? requestEndMs,
    attributes: {
      "holdfast.attempt_id": attempt.id,
      "holdfast.account": attempt.account,
      "holdfast.provider": attempt.provider,
      "holdfast.round": attempt.round,
      "holdfast.cause": attempt.cause,
      "holdfast.outcome": outcome,
      ...(attempt.probe === "none" ? {} : { "holdfast.probe": attempt.probe }),
      ...(attempt.model === null ? {} : { "gen_ai.request.model": attempt.model }),
      ...(attempt.status === null ? {} : { "http.response.status_code": attempt.status }),
    },
    error: outcome === "success" || outcome === "cancelled" ? null : outcome,
    events: [],
  };
}
