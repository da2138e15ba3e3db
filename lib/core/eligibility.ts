/**
 * Why an account may not be selected now, and when it may (state-machine-facts 3.3 step 4, 5.1).
 *
 * Looks only; a state whose time is over is noticed here, by comparing, and by nobody's timer.
 */
import { EXCLUSION_MS } from "./account_health.ts";
import type { Block, BlockKind } from "./decision.ts";
import type { ModelId } from "./domain.ts";
import type { FinalClass } from "./final_error.ts";
import type { Outcome } from "./outcome.ts";
import { livePark, readsExhausted } from "./quota_park.ts";
import type { AccountHealth, InferredLimit } from "./records.ts";

/** One `quota.recheck` probe per account in this time (ruling 1). */
export const RECHECK_SPACING_MS = 30 * 60_000;

/**
 * The strongest reason against this account and model, or `null`. Allocates nothing: the hot path asks it
 * of every account that is not simply healthy.
 */
export function strongestBlock(
  health: AccountHealth,
  enabled: boolean,
  model: ModelId | null,
  nowMs: number,
): BlockKind | null {
  if (model !== null && isExcluded(health, model, nowMs)) return "model_excluded";
  if (!enabled) return "disabled";
  if (health.credential !== null) return "credential";
  if (health.credits !== null) return "credits";
  if (health.deadline !== null && health.deadline.untilMs > nowMs) return "deadline";
  if (model !== null && (health.modelDeadlines.get(model)?.untilMs ?? 0) > nowMs) return "model_deadline";
  if (livePark(health, model, nowMs) !== null) return "park";
  if (health.inferred !== null && health.inferred.untilMs > nowMs) return "inferred";
  if (model !== null && (health.modelInferred.get(model)?.untilMs ?? 0) > nowMs) return "inferred";
  if (health.ladder !== null && health.ladder.untilMs > nowMs) return "ladder";
  return null;
}

/** Latest end of all live time blocks of the account; `nowMs` when none is live. */
export function accountReadyAtMs(health: AccountHealth, model: ModelId | null, nowMs: number): number {
  let readyAtMs = nowMs;
  readyAtMs = Math.max(readyAtMs, health.deadline?.untilMs ?? 0);
  readyAtMs = Math.max(readyAtMs, health.inferred?.untilMs ?? 0);
  readyAtMs = Math.max(readyAtMs, health.ladder?.untilMs ?? 0);
  readyAtMs = Math.max(readyAtMs, livePark(health, model, nowMs)?.untilMs ?? 0);
  if (model !== null) {
    readyAtMs = Math.max(readyAtMs, health.modelDeadlines.get(model)?.untilMs ?? 0);
    readyAtMs = Math.max(readyAtMs, health.modelInferred.get(model)?.untilMs ?? 0);
  }
  return readyAtMs;
}

/**
 * A moment before which the account is certainly blocked for every model, for the hot path's first look.
 * `Infinity` for blocks without a clock, 0 when a closer look is needed. The override may lapse before a park
 * does, so a park counts only while no override is armed.
 */
export function certainlyBlockedUntilMs(health: AccountHealth, enabled: boolean, nowMs: number): number {
  if (!enabled || health.credential !== null) return Number.POSITIVE_INFINITY;
  return Math.max(
    health.inferred?.untilMs ?? 0,
    health.ladder?.untilMs ?? 0,
    health.credits?.probeAtMs ?? 0,
    health.deadline?.untilMs ?? 0,
    health.overrideUntilMs > nowMs ? 0 : health.park?.untilMs ?? 0,
  );
}

/** The block as records and `why` show it. */
export function describeBlock(
  health: AccountHealth,
  enabled: boolean,
  model: ModelId | null,
  nowMs: number,
): Block | null {
  const kind = strongestBlock(health, enabled, model, nowMs);
  const block = (untilMs: number | null, source: string, observedAtMs: number | null): Block => ({
    kind: kind!,
    untilMs,
    source,
    observedAtMs,
  });
  switch (kind) {
    case null:
      return null;
    case "model_excluded": {
      const atMs = health.exclusions.get(model!)!;
      return block(atMs + EXCLUSION_MS, "model_unsupported", atMs);
    }
    case "disabled":
      return block(null, "operator", null);
    case "credential":
      return block(null, health.credential!.kind, health.credential!.writtenAtMs);
    case "credits":
      return block(null, "credits", health.credits!.openedAtMs);
    case "deadline":
      return block(health.deadline!.untilMs, health.deadline!.source, health.deadline!.writtenAtMs);
    case "model_deadline": {
      const deadline = health.modelDeadlines.get(model!)!;
      return block(deadline.untilMs, deadline.source, deadline.writtenAtMs);
    }
    case "park": {
      const park = livePark(health, model, nowMs)!;
      return block(park.untilMs, park.source, park.observedAtMs);
    }
    case "inferred": {
      const inferred = liveInferred(health, model, nowMs)!;
      return block(inferred.untilMs, `${inferred.shape}_limit`, inferred.writtenAtMs);
    }
    case "ladder":
      return block(health.ladder!.untilMs, health.ladder!.reason, health.ladder!.writtenAtMs);
    default:
      throw new Error(`Cannot describe block of an account: ${kind}`);
  }
}

/** The limit without a stated time that blocks now, the account's own before the model's; `null` when none does. */
export function liveInferred(
  health: AccountHealth,
  model: ModelId | null,
  nowMs: number,
): InferredLimit | null {
  if (health.inferred !== null && health.inferred.untilMs > nowMs) return health.inferred;
  const ofModel = model === null ? undefined : health.modelInferred.get(model);
  return ofModel !== undefined && ofModel.untilMs > nowMs ? ofModel : null;
}

/** The class an account block gives its account in the final answer (5.1). */
export function classOfBlock(kind: BlockKind): FinalClass {
  switch (kind) {
    case "model_excluded":
    case "not_listed":
      return "excluded";
    case "disabled":
      return "disabled";
    case "credential":
      return "credential";
    case "credits":
      return "credits";
    case "deadline":
    case "model_deadline":
      return "quota";
    case "park":
    case "inferred":
      return "inferred";
    case "ladder":
    case "provider_circuit":
    case "provider_cooldown":
    case "provider_probe":
    case "network_pause":
    case "network_probe":
      return "transient";
    default: {
      const missing: never = kind;
      throw new Error(`Cannot classify block ${missing}`);
    }
  }
}

/** The class of an account with nothing live, from the request's own latest outcome of it (5.1). */
export function classOfOutcome(outcome: Outcome | null): FinalClass {
  if (outcome === null) return "idle";
  if (outcome.kind === "limited") return outcome.stated === null ? "inferred" : "quota";
  if (outcome.kind === "model_unsupported") return "excluded";
  return "transient";
}

/** True when the hourly test of an account without credits is due (ruling 20). */
export function creditsProbeDue(health: AccountHealth, model: ModelId | null, nowMs: number): boolean {
  if (health.credits === null || health.credits.probeAtMs > nowMs) return false;
  return strongestBlock({ ...health, credits: null }, true, model, nowMs) === null;
}

/**
 * True when a live deadline is contradicted by a page read after it was written, and no probe went out for
 * half an hour. Whether anybody else can serve is the caller's question (ruling 1).
 */
export function recheckDue(health: AccountHealth, model: ModelId | null, nowMs: number): boolean {
  if (!contradictsDeadline(health, nowMs)) return false;
  if (health.recheckedAtMs > 0 && health.recheckedAtMs + RECHECK_SPACING_MS > nowMs) return false;
  return strongestBlock({ ...health, deadline: null }, true, model, nowMs) === null;
}

/** True when a newer reading shows headroom although the deadline runs: shown to operators, believed only by a recheck. */
export function contradictsDeadline(health: AccountHealth, nowMs: number): boolean {
  const { deadline, reading } = health;
  return deadline !== null && deadline.untilMs > nowMs && reading !== null &&
    reading.observedAtMs > deadline.writtenAtMs && readsExhausted(reading) === false;
}

function isExcluded(health: AccountHealth, model: ModelId, nowMs: number): boolean {
  const atMs = health.exclusions.get(model);
  return atMs !== undefined && atMs + EXCLUSION_MS > nowMs;
}
