/** What each judged outcome does to an account: the columns A and AM of state-machine-facts 4, as an oracle. */
import type { AttemptId, ModelId } from "../../../lib/core/domain.ts";
import type { Outcome, StatedTime } from "../../../lib/core/outcome.ts";
import type { AccountOracle, LimitSpell, Spell } from "./account_oracle.ts";
import { isLive } from "./account_oracle.ts";

const RATE_MS = 60_000;
const QUOTA_MS = 300_000;
const HOUR_MS = 3_600_000;
const MODEL_RECORDS = 64;

/** What a judgement must know of its attempt. */
export interface Trial {
  readonly attempt: AttemptId | null;
  readonly model: ModelId | null;
  readonly launchedAtMs: number;
  readonly fingerprint: string;
}

export function bookAccount(
  account: AccountOracle,
  outcome: Outcome,
  trial: Trial,
  ladderCapMs: number,
  nowMs: number,
): void {
  account.version++;
  switch (outcome.kind) {
    case "success":
      bookSuccess(account, trial, nowMs);
      return;
    case "unauthorized":
    case "credential_dead":
      bookCredential(account, "unauthorized", trial, nowMs);
      return;
    case "refresh_dead":
      bookCredential(account, outcome.reason, trial, nowMs);
      return;
    case "credits":
      account.park.overrideUntilMs = 0;
      account.credits = {
        openedAtMs: account.credits?.openedAtMs ?? nowMs,
        refusedAtMs: nowMs,
        probeAtMs: nowMs + HOUR_MS,
      };
      return;
    case "account_pause":
      bookPause(account, outcome.untilMs, trial, nowMs);
      return;
    case "model_unsupported":
      bookUnsupported(account, trial, nowMs);
      return;
    case "limited":
      bookLimit(account, outcome, trial, nowMs);
      return;
    case "transient":
      climb(account, reasonOf(outcome.cause), outcome.notBeforeMs ?? 0, trial, ladderCapMs, nowMs);
      return;
    case "no_response":
      climb(account, "no_response", 0, trial, ladderCapMs, nowMs);
      return;
    case "request_fault":
    case "edge_block":
    case "incomplete":
    case "local_limit":
    case "cancelled":
      return;
    default:
      outcome satisfies never;
  }
}

/** Void when the account has other material by now. What lives in memory never replaces what is on disk. */
export function bookCredential(account: AccountOracle, kind: string, trial: Trial, nowMs: number): void {
  const { fingerprint } = account.account;
  if (trial.fingerprint !== fingerprint) return;
  const isKnown = account.credential !== null && account.credential.kind !== "credential_invalid";
  if (kind === "credential_invalid" && isKnown) return;
  account.version++;
  account.credential = { kind, fingerprint, writtenAtMs: nowMs };
}

function bookSuccess(account: AccountOracle, trial: Trial, nowMs: number): void {
  const { model, launchedAtMs } = trial;
  const endedBy = (spell: { writtenAtMs: number } | null) =>
    spell !== null && launchedAtMs > spell.writtenAtMs;
  if (endedBy(account.credential)) account.credential = null;
  if (account.credits !== null && launchedAtMs > account.credits.openedAtMs) account.credits = null;
  if (endedBy(account.inferred)) account.inferred = null;
  if (endedBy(account.ladder)) account.ladder = null;
  if (model !== null) {
    if (endedBy(account.modelInferred.get(model) ?? null)) account.modelInferred.delete(model);
    if (launchedAtMs > (account.exclusions.get(model) ?? Number.POSITIVE_INFINITY)) {
      account.exclusions.delete(model);
    }
  }
  if (account.limitedAtMs === 0 || launchedAtMs > account.limitedAtMs) account.park.served(model, nowMs);
}

function bookUnsupported(account: AccountOracle, trial: Trial, nowMs: number): void {
  const isNewer = (spell: { writtenAtMs: number } | null) =>
    spell !== null && trial.launchedAtMs > spell.writtenAtMs;
  if (isNewer(account.credential)) account.credential = null;
  if (isNewer(account.ladder)) account.ladder = null;
  if (trial.model !== null) remember(account.exclusions, trial.model, nowMs);
}

function bookLimit(
  account: AccountOracle,
  outcome: Extract<Outcome, { kind: "limited" }>,
  trial: Trial,
  nowMs: number,
): void {
  const { stated, shape } = outcome;
  const { model } = trial;
  if (outcome.limiter === "model" && model !== null) {
    account.park.refusedModel(model);
    if (stated === null) {
      remember(account.modelInferred, model, guess(account.modelInferred.get(model) ?? null, shape, nowMs));
      return;
    }
    const known = account.modelDeadlines.get(model) ?? null;
    const next = corrected(known, stated, trial, nowMs);
    if (next === null) account.modelDeadlines.delete(model);
    else if (next !== known) remember(account.modelDeadlines, model, next);
    return;
  }
  account.park.refused();
  account.limitedAtMs = nowMs;
  if (stated === null) account.inferred = guess(account.inferred, shape, nowMs);
  else account.deadline = corrected(account.deadline, stated, trial, nowMs);
}

/** C17: the later of two stated times, unless the newer one answers an attempt launched after the older was known. */
function corrected(known: Spell | null, stated: StatedTime, trial: Trial, nowMs: number): Spell | null {
  if (isLive(known, nowMs)) {
    const mayShorten = trial.launchedAtMs > known!.writtenAtMs;
    if (!mayShorten && stated.untilMs <= known!.untilMs) return known;
  }
  return stated.untilMs > nowMs ? { untilMs: stated.untilMs, writtenAtMs: nowMs } : null;
}

/** A running block keeps its anchor; only a longer kind of news moves its end. */
function guess(known: LimitSpell | null, shape: "rate" | "quota", nowMs: number): LimitSpell {
  const untilMs = nowMs + (shape === "quota" ? QUOTA_MS : RATE_MS);
  if (known !== null && known.untilMs > nowMs && (known.shape === shape || known.untilMs >= untilMs)) {
    return known;
  }
  return { untilMs, shape, writtenAtMs: nowMs };
}

function bookPause(account: AccountOracle, untilMs: number, trial: Trial, nowMs: number): void {
  if (account.ladder !== null && account.ladder.untilMs >= untilMs) return;
  account.ladder = {
    untilMs,
    writtenAtMs: nowMs,
    strikes: account.ladder?.strikes ?? 0,
    reason: "workspace",
    attempt: trial.attempt,
    bounds: null,
  };
}

/** 2, 4, 8 … s with up to 2 s more, once for each episode of trouble; a stated minimum is always kept. */
function climb(
  account: AccountOracle,
  reason: string,
  minimumMs: number,
  trial: Trial,
  capMs: number,
  nowMs: number,
): void {
  const known = account.ladder;
  if (known !== null && (known.untilMs > nowMs || trial.launchedAtMs <= known.writtenAtMs)) {
    if (minimumMs > known.untilMs) account.ladder = { ...known, untilMs: minimumMs, bounds: null };
    return;
  }
  const climbs = reason !== "egress_proxy";
  const strikes = (known?.strikes ?? 0) + (climbs ? 1 : 0);
  const bounds = ladderBounds(climbs ? strikes - 1 : 0, minimumMs, capMs, nowMs);
  account.ladder = {
    untilMs: bounds.fromMs,
    writtenAtMs: nowMs,
    strikes,
    reason,
    attempt: trial.attempt,
    bounds,
  };
}

/** Between which moments a step of this level ends. */
export function ladderBounds(
  level: number,
  minimumMs: number,
  capMs: number,
  nowMs: number,
): { readonly fromMs: number; readonly toMs: number } {
  const stepMs = 2_000 * 2 ** Math.min(level, 10);
  return {
    fromMs: Math.max(minimumMs, nowMs + Math.min(capMs, stepMs)),
    toMs: Math.max(minimumMs, nowMs + Math.min(capMs, stepMs + 2_000)),
  };
}

function reasonOf(cause: Extract<Outcome, { kind: "transient" }>["cause"]): string {
  return cause === "refresh" || cause === "egress_proxy" ? cause : "transient";
}

function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MODEL_RECORDS) map.delete(map.keys().next().value!);
}
