/**
 * The health of one account: which record each judged outcome writes, and which it ends.
 *
 * All records live side by side; a weaker one never deletes a stronger one (state-machine-facts 3.2, 4).
 * Functions return the next value, or the same one when nothing changed. Parks are in `quota_park.ts`.
 */
import { ladderMs } from "./backoff.ts";
import type { AccountId, AttemptId, ModelId } from "./domain.ts";
import type { Outcome, StatedTime } from "./outcome.ts";
import { dropFamilyParks, holdFamilyParks, OVERRIDE_MS } from "./quota_park.ts";
import type {
  AccountHealth,
  CredentialBlock,
  CredentialBlockKind,
  Deadline,
  DurableChange,
  InferredLimit,
  LadderBlock,
} from "./records.ts";

/** A 429 without a time (ruling 2). */
export const INFERRED_RATE_MS = 60_000;
export const INFERRED_QUOTA_MS = 300_000;
/** One real request per hour tests an account without credits (ruling 20). */
export const CREDITS_PROBE_MS = 3_600_000;
/** Model records of one kind per account; the oldest goes first (2A.1). */
export const MODEL_RECORD_LIMIT = 64;
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

/** The durable part of a transition: what must be on disk before anybody hears of it. */
export function durableChanges(
  account: AccountId,
  before: AccountHealth,
  after: AccountHealth,
): DurableChange[] {
  const changes: DurableChange[] = [];
  if (before === after) return changes;
  if (before.deadline !== after.deadline) {
    changes.push(deadlineChange(account, null, after.deadline));
  }
  if (before.modelDeadlines !== after.modelDeadlines) {
    for (const model of before.modelDeadlines.keys()) {
      if (!after.modelDeadlines.has(model)) changes.push({ kind: "drop_deadline", account, model });
    }
    for (const [model, deadline] of after.modelDeadlines) {
      if (before.modelDeadlines.get(model) !== deadline) {
        changes.push({ kind: "put_deadline", account, model, deadline });
      }
    }
  }
  const credentialBefore = durableCredential(before.credential);
  const credentialAfter = durableCredential(after.credential);
  if (credentialBefore !== credentialAfter) {
    changes.push(
      credentialAfter === null
        ? { kind: "drop_credential", account }
        : { kind: "put_credential", account, block: credentialAfter },
    );
  }
  if (before.credits !== after.credits) {
    changes.push(
      after.credits === null
        ? { kind: "drop_credits", account }
        : { kind: "put_credits", account, block: after.credits },
    );
  }
  return changes;
}

function deadlineChange(account: AccountId, model: ModelId | null, deadline: Deadline | null): DurableChange {
  return deadline === null
    ? { kind: "drop_deadline", account, model }
    : { kind: "put_deadline", account, model, deadline };
}

function durableCredential(block: CredentialBlock | null): CredentialBlock | null {
  return block === null || block.kind === "credential_invalid" ? null : block;
}

/** Rows 19 to 22: a genuine 429 outranks every page, so override and park go and pages stay silent (ruling 1). */
function limitAccount(
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
function limitModel(
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
    untilMs: stated.untilMs,
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

function pauseAccount(
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

/**
 * One step up, once per episode: a failure while the block runs, or of an attempt launched before it was
 * written, belongs to the same trouble and neither climbs nor moves the end. A stated minimum is kept (C10).
 */
function climbLadder(
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

function ladderReason(cause: (Outcome & { kind: "transient" })["cause"]): LadderBlock["reason"] {
  if (cause === "refresh") return "refresh";
  if (cause === "egress_proxy") return "egress_proxy";
  return "transient";
}

function without<V>(map: ReadonlyMap<string, V>, key: string): ReadonlyMap<string, V> {
  const next = new Map(map);
  next.delete(key);
  return next;
}

/** Sets the key as the newest entry; at the limit the oldest goes. */
function bounded<V>(map: ReadonlyMap<string, V>, key: string, value: V): ReadonlyMap<string, V> {
  const next = new Map(map);
  next.delete(key);
  next.set(key, value);
  for (const oldest of next.keys()) {
    if (next.size <= MODEL_RECORD_LIMIT) break;
    next.delete(oldest);
  }
  return next;
}
