/**
 * A decision record as management shows it (design.md 7): ISO times, nothing that is not already safe.
 */
import type { Block, DecisionRecord } from "../core/decision.ts";
import { judgeDecision } from "./decision_words.ts";

/** A client may name a model as long as it likes. */
const SHOWN_MODEL_LENGTH = 120;

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
    moved_to: record.movedTo,
  };
}

/** One line of a list: what a feed of fifty a second can afford, and what a person takes in at a glance. */
export function summariseDecision(record: DecisionRecord): Record<string, unknown> {
  return {
    request_id: record.requestId,
    at: isoTime(record.atMs),
    ended_at: isoTime(record.endedAtMs),
    route: record.route,
    model: record.model === null ? null : record.model.slice(0, SHOWN_MODEL_LENGTH),
    status: record.status,
    code: record.code,
    result: judgeDecision(record),
    account: record.attempts.at(-1)?.account ?? null,
    attempts: record.attempts.length,
    rounds: record.rounds,
    waited_ms: record.waits.reduce((sum, wait) => sum + wait.untilMs - wait.fromMs, 0),
    took_ms: record.endedAtMs === null ? null : record.endedAtMs - record.atMs,
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
