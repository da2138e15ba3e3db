/**
 * The ledger of one request: which failed attempts were paid for, and how many launches there may be.
 *
 * The first launch is free; every further one charges the attempt it follows, once, in the same write
 * (state-machine-facts 2C.5, 3.5). It counts our launches, not what an upstream does inside.
 */
import type { AttemptId, RequestId, RetryPolicy } from "./domain.ts";
import { formatAttemptId, parseAttemptId } from "./domain.ts";
import type { LedgerRow } from "./records.ts";

/** A ledger that a crash left open may be resumed by its Idempotency-Key for this long. */
export const LEDGER_RESUME_MS = 3_600_000;

/**
 * B: launches one request may make at most.
 *
 * @param accountCount  accounts of the request's snapshot.
 * @param recoveryAttempts  relaunches recovery may add.
 */
export function launchBound(policy: RetryPolicy, accountCount: number, recoveryAttempts: number): number {
  const slots = policy.maxRetryCredentials === 0
    ? accountCount
    : Math.min(policy.maxRetryCredentials, accountCount);
  return (1 + policy.requestRetry) * slots + accountCount + recoveryAttempts;
}

export function openLedger(
  request: RequestId,
  idempotency: string | null,
  maxLaunches: number,
  nowMs: number,
): LedgerRow {
  return { request, idempotency, counter: 0, charged: [], maxLaunches, openedAtMs: nowMs, closed: false };
}

/** Mints the next attempt id. */
export function mintAttempt(ledger: LedgerRow): { readonly ledger: LedgerRow; readonly attempt: AttemptId } {
  const counter = ledger.counter + 1;
  return { ledger: { ...ledger, counter }, attempt: formatAttemptId(ledger.request, counter) };
}

/** True when nothing more may be launched: the free launch and every charge are spent. */
export function isLedgerFull(ledger: LedgerRow): boolean {
  return ledger.closed || ledger.counter >= ledger.maxLaunches || ledger.charged.length >= ledger.maxLaunches;
}

export type ChargeRefusal = "malformed" | "foreign" | "future" | "duplicate" | "full";

/** Charges a failed attempt. A refusal changes nothing, and nothing may be launched for it. */
export function charge(
  ledger: LedgerRow,
  attempt: AttemptId,
): { readonly ok: true; readonly ledger: LedgerRow } | {
  readonly ok: false;
  readonly reason: ChargeRefusal;
} {
  const parsed = parseAttemptId(attempt);
  if (parsed === null) return { ok: false, reason: "malformed" };
  if (parsed.request !== ledger.request) return { ok: false, reason: "foreign" };
  if (parsed.counter > ledger.counter) return { ok: false, reason: "future" };
  if (ledger.charged.includes(attempt)) return { ok: false, reason: "duplicate" };
  if (ledger.charged.length >= ledger.maxLaunches - 1) return { ok: false, reason: "full" };
  return { ok: true, ledger: { ...ledger, charged: [...ledger.charged, attempt] } };
}

/** @returns what is wrong with a stored ledger, or `null`. A wrong one launches nothing: the start is refused. */
export function findLedgerFault(ledger: LedgerRow): string | null {
  if (!Number.isSafeInteger(ledger.counter) || ledger.counter < 0) {
    return `counter must be a whole number, got ${ledger.counter}`;
  }
  let checked: LedgerRow = { ...ledger, charged: [] };
  if (ledger.charged.length > Math.max(0, ledger.maxLaunches - 1)) {
    return `charges must be at most ${ledger.maxLaunches - 1}, got ${ledger.charged.length}`;
  }
  for (const attempt of ledger.charged) {
    const result = charge(checked, attempt);
    if (!result.ok) return `charge ${attempt} is ${result.reason}`;
    checked = result.ledger;
  }
  return null;
}
