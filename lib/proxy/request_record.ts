/**
 * What is kept of a finished request: its decision, its tokens, its lines in the log.
 */
import type { DecisionRecord } from "../core/decision.ts";
import type { Launch } from "../core/retry_plan.ts";
import type { TokenUsage } from "../protocol/stream_dialect.ts";
import { isoTime } from "./decision_view.ts";
import type { ProxyDeps } from "./deps.ts";
import type { RequestContext } from "./request_context.ts";

export function countUsage(
  deps: ProxyDeps,
  context: RequestContext,
  record: DecisionRecord,
  usage: TokenUsage | null,
  launch: Launch | null,
): void {
  deps.usage.add(
    {
      tenant: context.tenant.id,
      keyHint: context.tenant.keyHint,
      provider: launch?.provider ?? context.spec.targets[0]?.provider ?? "",
      model: launch?.model ?? context.spec.model ?? "",
      effort: context.fields?.effort ?? "",
    },
    usage,
    record.code !== null,
    deps.clock.now(),
  );
}

/** The lines are written when the request is over, so each attempt says itself when it was. */
export function recordDone(
  deps: Pick<ProxyDeps, "decisions" | "clock" | "log">,
  context: Pick<RequestContext, "id" | "receivedAtMs">,
  record: DecisionRecord,
  usage: TokenUsage | null,
  launch: Launch | null,
): void {
  deps.decisions.add(record);
  const nowMs = deps.clock.now();
  const failed = record.code !== null;
  deps.log.write(failed ? "warn" : "info", "request_done", {
    request_id: context.id,
    route: record.route,
    model: record.model,
    tenant: record.tenant,
    status: record.status,
    code: record.code,
    rule: record.rule,
    account: launch?.account ?? null,
    attempts: record.attempts.length,
    rounds: record.rounds,
    waited_ms: record.waits.reduce((sum, wait) => sum + wait.untilMs - wait.fromMs, 0),
    duration_ms: nowMs - context.receivedAtMs,
    input_tokens: usage?.inputTokens,
    output_tokens: usage?.outputTokens,
  });
  for (const attempt of record.attempts) {
    if (attempt.outcome === "success" && record.attempts.length === 1) continue;
    deps.log.write("info", "attempt", {
      request_id: context.id,
      attempt: attempt.id,
      account: attempt.account,
      round: attempt.round,
      cause: attempt.cause,
      outcome: attempt.outcome,
      status: attempt.status,
      started_at: isoTime(attempt.startedAtMs),
      duration_ms: attempt.endedAtMs === null ? null : attempt.endedAtMs - attempt.startedAtMs,
    });
  }
  for (const candidate of failed ? record.candidates : []) {
    deps.log.write("info", "candidate_blocked", {
      request_id: context.id,
      account: candidate.account,
      block: candidate.block?.kind ?? null,
      source: candidate.block?.source ?? null,
      until: isoTime(candidate.block?.untilMs ?? null),
    });
  }
}
