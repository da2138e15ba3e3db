/**
 * The nouns every other file speaks of: ids, targets, accounts, attempts.
 *
 * Holds shapes and the functions that build or read ids; no rule of the machine lives here.
 */

export type ProviderId = string;
export type AccountId = string;
export type ModelId = string;
export type RequestId = string;

/** `<request id>:<counter>`; the counter starts at 1 and only grows. One id is one send, charged once. */
export type AttemptId = string;

export type ProviderKind = "codex" | "anthropic" | "zai" | "openai";

/** The dialect of a client's request. `raw` routes are relayed without looking at their meaning. */
export type ClientProtocol = "responses" | "chat" | "messages" | "raw";

/** What a launch is aimed at below the provider: `model` is null on routes that name none. */
export interface Target {
  readonly provider: ProviderId;
  readonly model: ModelId | null;
}

/** What the pool must know of an account. Credentials are never part of it. */
export interface Account {
  /** Stable over renames and token changes (design.md ruling 22). */
  readonly id: AccountId;
  readonly provider: ProviderId;
  /** SHA-256 (hex) over the credential material; changes when tokens are replaced. */
  readonly fingerprint: string;
  /** Set by an operator, kept in the database. */
  readonly enabled: boolean;
  /** False where there is no refresh token: such accounts skip repair (ruling 19). */
  readonly refreshable: boolean;
}

/** The three numbers of the retry layers (design.md 3), units as the machine uses them. */
export interface RetryPolicy {
  /** Additional rounds after round 0. */
  readonly requestRetry: number;
  /** Slots per round; 0 = every eligible account. */
  readonly maxRetryCredentials: number;
  /** Longest wait between rounds; 0 = no further round. */
  readonly maxRetryIntervalMs: number;
}

export const REPLAY_BODY_LIMIT_BYTES = 33_554_432;
/** Longest model id used as a key. */
export const MODEL_KEY_LIMIT_BYTES = 128;
/** The last moment a `Date` can hold; absurd times are kept as far as that. */
export const LATEST_TIME_MS = 8_640_000_000_000_000;

/** A time as records hold it: whole, and no later than any date. */
export function clampTimeMs(timeMs: number): number {
  return Math.min(LATEST_TIME_MS, Math.max(0, Math.ceil(timeMs)));
}

// deno-lint-ignore no-control-regex
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/;

/** True when a client's model name may become a key of our records: short, and plain text. */
export function isModelKey(model: string): boolean {
  return model.length > 0 && model.length <= MODEL_KEY_LIMIT_BYTES && model.isWellFormed() &&
    !CONTROL_CHARACTER.test(model);
}

const ATTEMPT_ID = /^([A-Za-z0-9_-]{1,80}):([1-9][0-9]{0,8})$/;

export function formatAttemptId(request: RequestId, counter: number): AttemptId {
  return `${request}:${counter}`;
}

/** @returns the two parts, or `null` when the text is not an attempt id. */
export function parseAttemptId(text: string): { request: RequestId; counter: number } | null {
  const match = ATTEMPT_ID.exec(text);
  return match === null ? null : { request: match[1]!, counter: Number(match[2]) };
}
