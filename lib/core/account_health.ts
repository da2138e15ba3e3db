/**
 * The health of one account: which record each judged outcome writes, and which it ends.
 *
 * All records live side by side; a weaker one never deletes a stronger one (state-machine-facts 3.2, 4).
 * Functions return the next value, or the same one when nothing changed. Parks are in `quota_park.ts`.
 */
import type { AccountId, AttemptId, ModelId } from "./domain.ts";
import { limitAccount, limitModel } from "./limits.ts";
import { bounded, without } from "./model_records.ts";
import type { Outcome } from "./outcome.ts";
import { CREDITS_PROBE_MS, dropFamilyParks, holdFamilyParks, OVERRIDE_MS } from "./quota_park.ts";
import type { AccountHealth, CredentialBlockKind } from "./records.ts";
import { climbLadder, ladderReason, pauseAccount } from "./transient_ladder.ts";

/** An exclusion nobody disproved ends by itself (C20). */
export const EXCLUSION_MS = 12 * 3_600_000;

/** One value for every account nothing is known of, so that the hot path compares a pointer. */
export const HEALTHY: AccountHealth = {
  deadline: null,
  credential: null,
  credits: null,
  inferred: null,
  ladder: null,
  park: null,
  probeOwed: false,
  overrideUntilMs: 0,
  limitedAtMs: 0,
  modelDeadlines: new Map(),
  modelInferred: new Map(),
  modelParks: new Map(),
  exclusions: new Map(),
  reading: null,
  lastSuccessAtMs: 0,
  recheckedAtMs: 0,
};

/** What a transition must know of the attempt it judges. */
export interface JudgedAttempt {
  readonly account: AccountId;
  readonly attempt: AttemptId | null;
  readonly model: ModelId | null;
  /** Evidence is older than a record written after this moment (C17, 3.2). */
  readonly launchedAtMs: number;
  /** Credential material the attempt used; a judgement on other material is void. */
  readonly fingerprint: string;
}

export interface LadderPolicy {
  readonly seed: number;
  readonly capMs: number;
}

/**
 * Applies what the decision table books on the account, rows 1 to 49, for one finished attempt.
 *
 * `unauthorized` is taken as final here; whether it may still be repaired is the plan's business.
 * @param currentFingerprint  the account's credential material now.
 */
export function applyOutcome(
  health: AccountHealth,
  outcome: Outcome,
  attempt: JudgedAttempt,
  currentFingerprint: string,
  policy: LadderPolicy,
  nowMs: number,
): AccountHealth {
  switch (outcome.kind) {
    case "success":
      return applySuccess(health, attempt, nowMs);
    case "unauthorized":
    case "credential_dead":
      return blockCredential(health, "unauthorized", outcome.code, attempt, currentFingerprint, nowMs);
    case "refresh_dead":
      return blockCredential(health, outcome.reason, outcome.code, attempt, currentFingerprint, nowMs);
    case "credits":
      return {
        ...health,
        overrideUntilMs: 0,
        credits: {
          openedAtMs: health.credits?.openedAtMs ?? nowMs,
          code: outcome.code,
          probeAtMs: nowMs + CREDITS_PROBE_MS,
        },
      };
    case "account_pause":
      return pauseAccount(health, outcome.untilMs, attempt, nowMs);
    case "model_unsupported":
      return applyModelUnsupported(health, attempt, nowMs);
    case "limited":
      return outcome.limiter === "model" && attempt.model !== null
        ? limitModel(health, outcome, attempt, attempt.model, nowMs)
        : limitAccount(health, outcome, attempt, nowMs);
    case "transient":
      return climbLadder(health, ladderReason(outcome.cause), outcome.notBeforeMs, attempt, policy, nowMs);
    case "no_response":
      return climbLadder(health, "no_response", null, attempt, policy, nowMs);
    case "request_fault":
    case "edge_block":
    case "incomplete":
    case "local_limit":
    case "cancelled":
      return health;
    default: {
      const missing: never = outcome;
      throw new Error(`Cannot apply outcome ${JSON.stringify(missing)}`);
    }
  }
}

/**
 * Row 1. A record is ended only by an attempt launched after it was written: an old stream ending well
 * proves nothing about what was refused since. A live deadline stays (C2); a 429's silence stays too.
 */
function applySuccess(health: AccountHealth, attempt: JudgedAttempt, nowMs: number): AccountHealth {
  const newer = (record: { readonly writtenAtMs: number } | null) =>
    record !== null && attempt.launchedAtMs > record.writtenAtMs;
  const afterLimit = health.limitedAtMs === 0 || attempt.launchedAtMs > health.limitedAtMs;
  const model = attempt.model;
  const inferred = model === null ? undefined : health.modelInferred.get(model);
  const excludedAtMs = model === null ? undefined : health.exclusions.get(model);
  return {
    ...health,
    credential: newer(health.credential) ? null : health.credential,
    credits: health.credits !== null && attempt.launchedAtMs > health.credits.openedAtMs
      ? null
      : health.credits,
    inferred: newer(health.inferred) ? null : health.inferred,
    ladder: newer(health.ladder) ? null : health.ladder,
    park: afterLimit ? null : health.park,
    probeOwed: afterLimit ? false : health.probeOwed,
    overrideUntilMs: afterLimit ? nowMs + OVERRIDE_MS : health.overrideUntilMs,
    modelInferred: model !== null && inferred !== undefined && newer(inferred)
      ? without(health.modelInferred, model)
      : health.modelInferred,
    modelParks: afterLimit ? dropFamilyParks(health.modelParks, model) : health.modelParks,
    exclusions: model !== null && excludedAtMs !== undefined && attempt.launchedAtMs > excludedAtMs
      ? without(health.exclusions, model)
      : health.exclusions,
    lastSuccessAtMs: Math.max(health.lastSuccessAtMs, nowMs),
  };
}

/** The success of a `quota.recheck` probe: the one thing besides time and operator that ends a deadline (ruling 1). */
export function endDeadline(health: AccountHealth): AccountHealth {
  return health.deadline === null ? health : { ...health, deadline: null };
}

/**
 * Marks the credential refused. Void when the material changed since the launch: the refusal was of the old one.
 * A memory-only mark never replaces a durable one for the same material.
 */
export function blockCredential(
  health: AccountHealth,
  kind: CredentialBlockKind,
  code: string,
  attempt: JudgedAttempt,
  currentFingerprint: string,
  nowMs: number,
): AccountHealth {
  if (attempt.fingerprint !== currentFingerprint) return health;
  const current = health.credential;
  if (kind === "credential_invalid" && current !== null && current.kind !== "credential_invalid") {
    return health;
  }
  return { ...health, credential: { kind, fingerprint: currentFingerprint, code, writtenAtMs: nowMs } };
}

/** Drops a mark that waited for a refresh to decide: it failed for reasons that say nothing about the credential. */
export function releaseUnproven(health: AccountHealth): AccountHealth {
  return health.credential?.kind === "credential_invalid" ? { ...health, credential: null } : health;
}

/** A refresh succeeded: credential marks end, and so does a rest that only the token endpoint caused. */
export function applyRefreshed(health: AccountHealth): AccountHealth {
  const ladder = health.ladder?.reason === "refresh" ? null : health.ladder;
  if (health.credential === null && ladder === health.ladder) return health;
  return { ...health, credential: null, ladder };
}

/** New credential material: credential marks and model exclusions end, a deadline never does (2A.3). */
export function applyNewMaterial(health: AccountHealth): AccountHealth {
  if (health.credential === null && health.exclusions.size === 0) return health;
  return { ...health, credential: null, exclusions: HEALTHY.exclusions };
}

/** An operator clears every time block (C35). Pages may not park it again before a real answer. */
export function clearTimeBlocks(health: AccountHealth): AccountHealth {
  return {
    ...health,
    deadline: null,
    inferred: null,
    ladder: null,
    park: null,
    probeOwed: true,
    modelDeadlines: HEALTHY.modelDeadlines,
    modelInferred: HEALTHY.modelInferred,
    modelParks: holdFamilyParks(health.modelParks),
  };
}

/** Credits were topped up, an operator says. */
export function clearCredits(health: AccountHealth): AccountHealth {
  return health.credits === null ? health : { ...health, credits: null };
}

/** Rows 12 and 16: the model is refused, and so the credential was accepted. */
function applyModelUnsupported(health: AccountHealth, attempt: JudgedAttempt, nowMs: number): AccountHealth {
  const newer = (record: { readonly writtenAtMs: number } | null) =>
    record !== null && attempt.launchedAtMs > record.writtenAtMs;
  return {
    ...health,
    credential: newer(health.credential) ? null : health.credential,
    ladder: newer(health.ladder) ? null : health.ladder,
    exclusions: attempt.model === null ? health.exclusions : bounded(health.exclusions, attempt.model, nowMs),
  };
}
