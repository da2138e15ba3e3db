/**
 * A decision record as management shows it (design.md 7): ISO times, nothing that is not already safe.
 */
import type { Block, DecisionRecord } from "../core/decision.ts";

export function viewDecision(record: DecisionRecord): Record<string, unknown> {
  return {
    request_id: record.requestId,
    at: isoTime(record.atMs),
    ended_at: isoTime(record.endedAtMs),
    route: record.route,
    model: record.model,
    tenant: record.tenant,
    status: record.status,
    code: record.code,
    rule: record.rule,
    rounds: record.rounds,
    waits: record.waits.map((wait) => ({
      from: isoTime(wait.fromMs),
      until: isoTime(wait.untilMs),
      reason: wait.reason,
    })),
    candidates: record.candidates.map(({ account, block }) => ({ account, ...viewBlock(block) })),
    attempts: record.attempts.map((attempt) => ({
      id: attempt.id,
      account: attempt.account,
      provider: attempt.provider,
      model: attempt.model,
      round: attempt.round,
      cause: attempt.cause,
      probe: attempt.probe,
      started_at: isoTime(attempt.startedAtMs),
      ended_at: isoTime(attempt.endedAtMs),
      outcome: attempt.outcome,
      status: attempt.status,
      row: attempt.row,
    })),
    notes: record.notes,
  };
}

export function viewBlock(block: Block | null): Record<string, unknown> {
  return {
    block: block?.kind ?? null,
    until: isoTime(block?.untilMs ?? null),
    source: block?.source ?? null,
    observed_at: isoTime(block?.observedAtMs ?? null),
  };
}

/** ISO 8601 UTC, or null; also for times no calendar holds. */
export function isoTime(atMs: number | null): string | null {
  if (atMs === null || atMs === 0 || !Number.isFinite(atMs) || Math.abs(atMs) > 8.64e15) return null;
  return new Date(atMs).toISOString();
}
