/**
 * How long an access token is good, and when to ask for the next one.
 *
 * Three clocks disagree in practice: ours, the issuer's (inside the token) and whoever wrote the file. A token just
 * received is measured from its receipt; one found in a file is believed by its own `exp` before any stored figure.
 */
import { readJwtClaims } from "./jwt.ts";

/** A token is replaced this long before its end (state-machine-facts 2A.1) … */
export const REFRESH_MARGIN_MS = 300_000;
/** … but never in the first four fifths of its life: a token that lives 5 min would else be replaced on every request. */
const MARGIN_SHARE = 5;
/** Believed of an opaque token whose answer named no usable lifetime: shorter than any seen in the field. */
export const DEFAULT_LIFETIME_MS = 3_600_000;
/** A longer lifetime is a mistake of the issuer, not a promise. */
const LONGEST_LIFETIME_MS = 365 * 86_400_000;
/** Without any known end, a token is replaced when the last refresh is older than this (wire-facts 4.2). */
const UNKNOWN_END_REFRESH_MS = 8 * 86_400_000;

export interface Validity {
  /** UTC epoch ms by our clock; `null` when nothing tells. */
  readonly expiresAtMs: number | null;
  /** From this moment a refresh is due; `null`: only a 401 says so. */
  readonly refreshAtMs: number | null;
}

/**
 * Validity of a token that the issuer has just sent.
 *
 * @param expiresIn  the answer's `expires_in`, whatever it is: seconds as number or text, or nonsense.
 */
export function validityOnReceipt(accessToken: string, expiresIn: unknown, nowMs: number): Validity {
  const claims = readJwtClaims(accessToken);
  const expMs = claims?.expiresAtMs ?? null;
  const issuedMs = claims?.issuedAtMs ?? null;
  const stated = expMs !== null && issuedMs !== null && expMs > issuedMs ? expMs - issuedMs : null;
  const lifetimeMs = stated ?? readLifetimeMs(expiresIn) ??
    (expMs !== null && expMs > nowMs ? expMs - nowMs : DEFAULT_LIFETIME_MS);
  const measuredMs = nowMs + lifetimeMs;
  // An earlier `exp` wins (the issuer may hand out a token again), unless it makes the token look spent on arrival:
  // then our clock is ahead of the issuer's, and only the length can be trusted.
  const believesExp = expMs !== null && expMs < measuredMs && expMs > nowMs + refreshMarginMs(lifetimeMs);
  return validityUntil(believesExp ? expMs : measuredMs, lifetimeMs);
}

/**
 * Validity of a token found in a file.
 *
 * @param storedExpiryMs  what the file says; used only where the token itself says nothing.
 */
export function validityFromFile(
  accessToken: string,
  storedExpiryMs: number | null,
  lastRefreshAtMs: number | null,
): Validity {
  const claims = readJwtClaims(accessToken);
  const expiresAtMs = claims?.expiresAtMs ?? storedExpiryMs;
  if (expiresAtMs === null) {
    const refreshAtMs = lastRefreshAtMs === null ? null : lastRefreshAtMs + UNKNOWN_END_REFRESH_MS;
    return { expiresAtMs: null, refreshAtMs };
  }
  const bornMs = claims?.issuedAtMs ?? null;
  return validityUntil(expiresAtMs, bornMs !== null && bornMs < expiresAtMs ? expiresAtMs - bornMs : null);
}

/** @param lifetimeMs  whole life of the token, or `null` when only its end is known. */
export function validityUntil(expiresAtMs: number, lifetimeMs: number | null): Validity {
  return { expiresAtMs, refreshAtMs: expiresAtMs - refreshMarginMs(lifetimeMs) };
}

/** @returns ms, or `null` for anything that is not a positive, sane number of seconds. */
export function readLifetimeMs(expiresIn: unknown): number | null {
  const seconds = typeof expiresIn === "string" && /^\s*\d{1,12}(\.\d+)?\s*$/.test(expiresIn)
    ? Number(expiresIn)
    : expiresIn;
  if (typeof seconds !== "number" || !(seconds >= 1)) return null;
  const lifetimeMs = Math.floor(seconds) * 1_000;
  return lifetimeMs <= LONGEST_LIFETIME_MS ? lifetimeMs : null;
}

function refreshMarginMs(lifetimeMs: number | null): number {
  if (lifetimeMs === null) return REFRESH_MARGIN_MS;
  return Math.min(REFRESH_MARGIN_MS, Math.floor(lifetimeMs / MARGIN_SHARE));
}
