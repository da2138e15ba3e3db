/** The short rests of one account after passing failures, and the longer one a paused workspace brings. */
import type { JudgedAttempt, LadderPolicy } from "./account_health.ts";
import { ladderMs } from "./backoff.ts";
import type { AttemptId } from "./domain.ts";
import type { Outcome } from "./outcome.ts";
import type { AccountHealth, LadderBlock } from "./records.ts";

/**
 * One step up, once per episode: a failure while the block runs, or of an attempt launched before it was
 * written, belongs to the same trouble and neither climbs nor moves the end. A stated minimum is kept (C10).
 */
export function climbLadder(
  health: AccountHealth,
  reason: LadderBlock["reason"],
  notBeforeMs: number | null,
  attempt: JudgedAttempt,
  policy: LadderPolicy,
  nowMs: number,
): AccountHealth {
  const current = health.ladder;
  const minimumMs = notBeforeMs ?? 0;
  if (current !== null && (current.untilMs > nowMs || attempt.launchedAtMs <= current.writtenAtMs)) {
    if (minimumMs <= current.untilMs) return health;
    return { ...health, ladder: { ...current, untilMs: minimumMs } };
  }
  // A dead egress proxy says nothing about the account: it rests a moment but does not climb.
  const climbs = reason !== "egress_proxy";
  const strikes = (current?.strikes ?? 0) + (climbs ? 1 : 0);
  const untilMs = nowMs + ladderMs(policy.seed, attempt.account, climbs ? strikes - 1 : 0, policy.capMs);
  return {
    ...health,
    ladder: {
      untilMs: Math.max(untilMs, minimumMs),
      strikes,
      reason,
      attempt: attempt.attempt,
      writtenAtMs: nowMs,
    },
  };
}

/** A workspace that is switched off rests for as long as the judge said (ruling 20); it does not climb. */
export function pauseAccount(
  health: AccountHealth,
  untilMs: number,
  attempt: JudgedAttempt,
  nowMs: number,
): AccountHealth {
  const current = health.ladder;
  if (current !== null && current.untilMs >= untilMs) return health;
  return {
    ...health,
    ladder: {
      untilMs,
      strikes: current?.strikes ?? 0,
      reason: "workspace",
      attempt: attempt.attempt,
      writtenAtMs: nowMs,
    },
  };
}

/** Withdraws a block that turned out to be an outage's, not the account's (C14). */
export function withdrawOutageBlock(
  health: AccountHealth,
  attempts: ReadonlySet<AttemptId>,
  nowMs: number,
): AccountHealth {
  const ladder = health.ladder;
  if (ladder === null || ladder.reason !== "no_response" || ladder.attempt === null) return health;
  if (!attempts.has(ladder.attempt)) return health;
  return {
    ...health,
    ladder: ladder.strikes > 1
      ? { ...ladder, strikes: ladder.strikes - 1, untilMs: Math.min(ladder.untilMs, nowMs) }
      : null,
  };
}

export function ladderReason(cause: (Outcome & { kind: "transient" })["cause"]): LadderBlock["reason"] {
  if (cause === "refresh") return "refresh";
  if (cause === "egress_proxy") return "egress_proxy";
  return "transient";
}
