/**
 * One request's decisions told to a person: how it ended, why, and step by step in the order of time.
 */
import type { AttemptRecord, DecisionRecord, WaitRecord } from "../core/decision.ts";
import type { AccountId } from "../core/domain.ts";
import type { FinalAnswer } from "../core/final_error.ts";
import type { OutcomeKind } from "../core/outcome.ts";
import type { Launch } from "../core/retry_plan.ts";

/**
 * `served`: the client has its answer. `refused`: the request itself was at fault, or a once-only answer was passed
 * on. `failed`: nobody could serve it, or the answer broke off. `left`: the client went first.
 */
export type DecisionResult = "served" | "refused" | "failed" | "left";

export interface StoryLine {
  readonly atMs: number;
  readonly text: string;
  readonly tone: "good" | "bad" | "wait" | "plain";
}

export interface Story {
  readonly result: DecisionResult;
  readonly title: string;
  /** One sentence more, where the title does not say it all. */
  readonly because: string | null;
  readonly lines: readonly StoryLine[];
}

export function judgeDecision(record: DecisionRecord): DecisionResult {
  if (record.status === 0) return "left";
  if (record.code === null) return "served";
  if (record.rule !== null) return "failed";
  const last = record.attempts.at(-1)?.outcome ?? "";
  return record.code === "relayed" || kindOf(last) === "request_fault" ? "refused" : "failed";
}

/** @param label  how an account is called on the page. */
export function tellDecision(record: DecisionRecord, label: (account: AccountId) => string): Story {
  const result = judgeDecision(record);
  const lines = [
    ...record.attempts.map((attempt) => tellAttempt(attempt, label)),
    ...record.waits.map(tellWait),
  ].sort((a, b) => a.atMs - b.atMs);
  const endedAtMs = record.endedAtMs ?? record.atMs;
  for (const note of record.notes) {
    const text = note === "bound_moved" ? tellMove(record, label) : tellNote(note);
    lines.push({ atMs: endedAtMs, text, tone: "plain" });
  }
  return { result, title: tellTitle(record, result, label), because: tellReason(record, result), lines };
}

// ---------------------------------------------------------------- the end

function tellTitle(
  record: DecisionRecord,
  result: DecisionResult,
  label: (account: AccountId) => string,
): string {
  const last = record.attempts.at(-1);
  switch (result) {
    case "served": {
      const before = record.attempts.length - 1;
      const after = before < 1
        ? ""
        : before === 1
        ? " at the second attempt"
        : ` after ${before} other attempts`;
      return last === undefined ? "Served" : `Served by ${label(last.account)}${after}`;
    }
    case "refused":
      return `The upstream's own answer was passed on: ${record.status} ${record.code}`;
    case "left":
      return record.code === "client_cancelled"
        ? "The client left in the middle of its answer"
        : "The client left before it was answered";
    case "failed":
      return record.rule === null && record.status === 200
        ? `The answer broke off: ${record.code}`
        : `The client was told ${record.status} ${record.code}`;
    default:
      return result satisfies never;
  }
}

const RULES: Readonly<Record<FinalAnswer["rule"], string>> = {
  no_accounts: "No account could ever serve this request",
  all_excluded: "No account has this model",
  all_dead: "Every account is switched off, logged out or without credits",
  all_quota: "Every account is at a limit; the client was told when the first one is back",
  mixed_near_deadline:
    "Some accounts fail and the others are at a limit that ends soon; the client was told when",
  mixed: "Some accounts fail and the others are at a limit that does not end soon",
  transient: "Every account fails for the moment",
  incomplete: "The answer ended without its last event; nobody was blamed",
};

function tellReason(record: DecisionRecord, result: DecisionResult): string | null {
  if (record.rule !== null) {
    const rule = RULES[record.rule as FinalAnswer["rule"]] ?? record.rule.replaceAll("_", " ");
    return record.attempts.length === 0 ? `${rule}. Nothing was sent` : rule;
  }
  if (result === "refused") {
    return "Every account would answer the same, so nobody else was asked and nobody blamed";
  }
  if (result === "failed") return "The client already had the first byte, so nothing was sent again";
  return null;
}

// ---------------------------------------------------------------- the steps

const CAUSES: Readonly<Record<Launch["cause"], string>> = {
  first: "Sent to",
  failover: "Moved on to",
  round: "A new round began with",
  repair: "With a fresh token, sent again to",
  recovery: "Started over, since the client had seen nothing, on",
  unpooled_repeat: "An idle connection had died; sent again on a new one to",
  strip_state: "Without the state of another account, sent again to",
};

const PROBES: Readonly<Record<Launch["probe"], string>> = {
  none: "",
  provider: " as the one request that tests the provider",
  network: " as the one request that tests the network",
  recheck: " to test its deadline, which a newer reading contradicts",
  credits: " to test whether its credits are back",
};

const OUTCOMES: Readonly<Record<OutcomeKind, string>> = {
  success: "it answered",
  request_fault: "it refused the request itself",
  unauthorized: "it refused the credential",
  credential_dead: "it refused the credential for good",
  account_pause: "its workspace is deactivated",
  credits: "it has no credits left",
  model_unsupported: "it does not have the model",
  limited: "it is at a limit",
  transient: "it failed",
  no_response: "it could not be reached",
  local_limit: "this machine was at a limit of its own, and nothing was sent",
  edge_block: "a block page stood in front of the provider",
  incomplete: "its answer ended without its last event",
  refresh_dead: "its login has ended",
  cancelled: "the client left meanwhile",
};

function tellAttempt(attempt: AttemptRecord, label: (account: AccountId) => string): StoryLine {
  const cause = CAUSES[attempt.cause as Launch["cause"]] ?? CAUSES.failover;
  const probe = PROBES[attempt.probe as Launch["probe"]] ?? "";
  const sent = `${cause} ${label(attempt.account)}${probe}`;
  if (attempt.outcome === null) {
    return { atMs: attempt.startedAtMs, text: `${sent}; under way`, tone: "plain" };
  }
  const kind = kindOf(attempt.outcome);
  const took = attempt.endedAtMs === null
    ? ""
    : ` after ${tellDuration(attempt.endedAtMs - attempt.startedAtMs)}`;
  return {
    atMs: attempt.startedAtMs,
    text: `${sent}; ${OUTCOMES[kind as OutcomeKind] ?? "it failed"}${tellDetail(attempt)}${took}`,
    tone: kind === "success" ? "good" : kind === "cancelled" ? "plain" : "bad",
  };
}

function tellDetail(attempt: AttemptRecord): string {
  if (attempt.outcome === "success" || attempt.outcome === null) return "";
  const colon = attempt.outcome.indexOf(":");
  const parts = [attempt.status, colon < 0 ? null : attempt.outcome.slice(colon + 1)];
  const known = parts.filter((part) => part !== null);
  return known.length === 0 ? "" : ` (${known.join(" ")})`;
}

const WAITS: Readonly<Record<string, string>> = {
  cooldown: "until the first account was free again",
  probe: "while another request tested the way",
  recovery_backoff: "before starting over",
};

function tellWait(wait: WaitRecord): StoryLine {
  const why = WAITS[wait.reason] ?? wait.reason.replaceAll("_", " ");
  return {
    atMs: wait.fromMs,
    text: `Waited ${tellDuration(wait.untilMs - wait.fromMs)} ${why}`,
    tone: "wait",
  };
}

const NOTES: Readonly<Record<string, string>> = {
  provider_cooled: "The provider was given a rest",
  network_paused: "The network was paused",
  ledger_resumed: "Went on with the attempts counted before a restart",
  candidates_cut: "Only the first accounts were written down",
  released_held_failure: "The failure was passed on inside the stream, as the client understands it",
  recovered: "The stream was started over unseen",
  recovery_exhausted: "It was not started over again: the attempts or the time for that were spent",
  recovery_blocked: "It was not started over: the account could not be asked by then",
};

/** Not always to whom answered: perhaps nobody did, or a fallback, which never takes a conversation over. */
function tellMove({ attempts, movedTo }: DecisionRecord, label: (account: AccountId) => string): string {
  const last = attempts.at(-1);
  if (movedTo === null) return "The conversation moved to another account";
  return last?.outcome === "success" && last.account === movedTo
    ? "The conversation now belongs to the account that answered"
    : `The conversation now belongs to ${label(movedTo)}`;
}

function tellNote(note: string): string {
  const words = note.replaceAll("_", " ");
  return NOTES[note] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

/** Short and in one unit: `40 ms`, `2.1 s`, `3 min 20 s`. */
export function tellDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function kindOf(outcome: string): string {
  const colon = outcome.indexOf(":");
  return colon < 0 ? outcome : outcome.slice(0, colon);
}
