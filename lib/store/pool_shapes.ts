/** What each durable record of the pool must be; the types are those of `core/records.ts`. */
import { parseAttemptId } from "../core/domain.ts";
import type {
  CreditsBlock,
  Deadline,
  NetworkEvidence,
  NetworkHealth,
  NetworkPause,
  ProviderCooldown,
  QuotaReading,
  QuotaWindow,
} from "../core/records.ts";
import {
  COUNT,
  FINITE,
  FLAG,
  integer,
  listOf,
  nullable,
  oneOf,
  parsed,
  record,
  type Shape,
  text,
  TIME_MS,
} from "./codec.ts";

/** Account ids may be normalized paths. */
export const ACCOUNT = text(1, 4_096);
export const MODEL = text(1, 1_024);
export const PROVIDER = text(1, 256);
export const POOL = text(1, 256);
/** Safe words of ours. */
const CODE = text(0, 128);
const ATTEMPT = parsed("an attempt id (<request>:<counter>)", (value) => parseAttemptId(value) !== null);

export const DEADLINE: Shape<Deadline> = {
  untilMs: TIME_MS,
  source: oneOf("retry_after", "body", "headers", "message"),
  status: integer(0, 999),
  code: CODE,
  attempt: ATTEMPT,
  launchedAtMs: TIME_MS,
  writtenAtMs: TIME_MS,
};

/** `credential_invalid` lives in memory only (state-machine-facts 3.2). */
export interface DurableCredentialBlock {
  readonly kind: "unauthorized" | "invalid_grant";
  readonly fingerprint: string;
  readonly code: string;
  readonly writtenAtMs: number;
}

export const CREDENTIAL: Shape<DurableCredentialBlock> = {
  kind: oneOf("unauthorized", "invalid_grant"),
  fingerprint: text(1, 256),
  code: CODE,
  writtenAtMs: TIME_MS,
};

export const CREDITS: Shape<CreditsBlock> = { openedAtMs: TIME_MS, code: CODE, probeAtMs: TIME_MS };

const WINDOW: Shape<QuotaWindow> = {
  name: text(0, 256),
  usedPercent: nullable(FINITE),
  resetAtMs: nullable(TIME_MS),
  modelFamily: nullable(text(0, 256)),
};

export const READING: Shape<QuotaReading> = {
  observedAtMs: TIME_MS,
  source: oneOf("usage_page", "response_headers", "stream_event", "websocket_frame", "snapshot"),
  windows: listOf(WINDOW, 1_000),
  limitReached: nullable(FLAG),
  servesBeyondWindows: FLAG,
  creditsAvailable: nullable(FLAG),
  plan: nullable(text(0, 256)),
};

export const COOLDOWN: Shape<ProviderCooldown> = {
  untilMs: TIME_MS,
  reason: oneOf("rate_limited", "overloaded", "usage_window_exhausted", "network", "edge_block"),
  openedAtMs: TIME_MS,
  openedBy: ATTEMPT,
  generation: COUNT,
  level: COUNT,
  explicit: FLAG,
};

const EVIDENCE: Shape<NetworkEvidence> = { provider: PROVIDER, attempt: ATTEMPT, observedAtMs: TIME_MS };

const PAUSE: Shape<NetworkPause> = {
  openedAtMs: TIME_MS,
  untilMs: TIME_MS,
  evidence: listOf(EVIDENCE, 10_000),
  generation: COUNT,
};

export type DurableNetwork = Pick<NetworkHealth, "evidence" | "lastSuccessAtMs" | "pause" | "generation">;

export const NETWORK: Shape<DurableNetwork> = {
  evidence: listOf(EVIDENCE, 10_000),
  lastSuccessAtMs: TIME_MS,
  pause: nullable(record(PAUSE)),
  generation: COUNT,
};

/** @returns what is wrong between the fields of a cooldown, or null */
export function cooldownProblem(cooldown: ProviderCooldown): string | null {
  return cooldown.untilMs < cooldown.openedAtMs
    ? `"until_ms" must not be before "opened_at_ms" (${cooldown.openedAtMs}), got ${cooldown.untilMs}`
    : null;
}

/** @returns what is wrong between the fields of the network record, or null */
export function networkProblem(network: DurableNetwork): string | null {
  const { pause, evidence, generation } = network;
  if (repeatsEvidence(evidence) || (pause !== null && repeatsEvidence(pause.evidence))) {
    return `"evidence" must name each provider and attempt once`;
  }
  if (pause === null) return null;
  if (pause.untilMs < pause.openedAtMs) {
    return `"pause" must not end (${pause.untilMs}) before it opened (${pause.openedAtMs})`;
  }
  return pause.generation > generation
    ? `"pause" must not be of a later generation (${pause.generation}) than the network (${generation})`
    : null;
}

function repeatsEvidence(evidence: readonly NetworkEvidence[]): boolean {
  return new Set(evidence.map((entry) => JSON.stringify([entry.provider, entry.attempt]))).size <
    evidence.length;
}
