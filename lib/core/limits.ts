/**
 * Limits an upstream states in the answer to a real request: deadlines, and blocks inferred from a 429 without a time.
 *
 * Usage pages never reach this file; what they say is a park (`quota_park.ts`).
 */
import type { JudgedAttempt } from "./account_health.ts";
import { clampTimeMs, type ModelId } from "./domain.ts";
import { bounded, without } from "./model_records.ts";
import type { Outcome, StatedTime } from "./outcome.ts";
import { holdFamilyParks } from "./quota_park.ts";
import type { AccountHealth, Deadline, InferredLimit } from "./records.ts";

/** A 429 without a time (ruling 2). */
export const INFERRED_RATE_MS = 60_000;
export const INFERRED_QUOTA_MS = 300_000;

/** Rows 19 to 22: a genuine 429 outranks every page, so override and park go and pages stay silent (ruling 1). */
export function limitAccount(
  health: AccountHealth,
  outcome: Outcome & { kind: "limited" },
  attempt: JudgedAttempt,
  nowMs: number,
): AccountHealth {
  const limited: AccountHealth = {
    ...health,
    overrideUntilMs: 0,
    park: null,
    probeOwed: true,
    limitedAtMs: nowMs,
  };
  return outcome.stated === null
    ? { ...limited, inferred: laterInferred(health.inferred, outcome.shape, nowMs) }
    : { ...limited, deadline: laterDeadline(health.deadline, outcome, outcome.stated, attempt, nowMs) };
}

/** Row 23: the upstream named a limiter of this model alone. */
export function limitModel(
  health: AccountHealth,
  outcome: Outcome & { kind: "limited" },
  attempt: JudgedAttempt,
  model: ModelId,
  nowMs: number,
): AccountHealth {
  const modelParks = holdFamilyParks(health.modelParks, model);
  if (outcome.stated === null) {
    const inferred = laterInferred(health.modelInferred.get(model) ?? null, outcome.shape, nowMs);
    return { ...health, modelParks, modelInferred: bounded(health.modelInferred, model, inferred) };
  }
  const current = health.modelDeadlines.get(model) ?? null;
  const deadline = laterDeadline(current, outcome, outcome.stated, attempt, nowMs);
  if (deadline === current) return { ...health, modelParks };
  return {
    ...health,
    modelParks,
    modelDeadlines: deadline === null
      ? without(health.modelDeadlines, model)
      : bounded(health.modelDeadlines, model, deadline),
  };
}

/**
 * C17: of two stated times the later one holds, except that an attempt launched after the older record was
 * written corrects it in either direction. A time already over leaves no record.
 */
function laterDeadline(
  current: Deadline | null,
  outcome: Outcome & { kind: "limited" },
  stated: StatedTime,
  attempt: JudgedAttempt,
  nowMs: number,
): Deadline | null {
  const live = current !== null && current.untilMs > nowMs ? current : null;
  const corrects = live !== null && attempt.launchedAtMs > live.writtenAtMs;
  if (live !== null && !corrects && stated.untilMs <= live.untilMs) return current;
  if (stated.untilMs <= nowMs) return null;
  return {
    untilMs: clampTimeMs(stated.untilMs),
    source: stated.source,
    status: outcome.status ?? 429,
    code: outcome.code,
    attempt: attempt.attempt ?? "",
    launchedAtMs: attempt.launchedAtMs,
    writtenAtMs: nowMs,
  };
}

/** A running block keeps its anchor; only a longer kind of the same news moves its end. */
function laterInferred(current: InferredLimit | null, shape: "rate" | "quota", nowMs: number): InferredLimit {
  const untilMs = nowMs + (shape === "quota" ? INFERRED_QUOTA_MS : INFERRED_RATE_MS);
  if (current !== null && current.untilMs > nowMs) {
    if (current.shape === shape || current.untilMs >= untilMs) return current;
  }
  return { untilMs, shape, writtenAtMs: nowMs };
}
