/**
 * What Anthropic's answers say about limits in their headers (wire-facts 6.4, 6.5).
 *
 * Subscriptions have windows (`anthropic-ratelimit-unified-*`: fractions and unix seconds), keys have buckets that
 * refill all the time (`anthropic-ratelimit-requests-*` …: counts and RFC 3339).
 */
import { readTimeMs } from "../core/credential.ts";
import type { HeaderLookup } from "../core/evidence.ts";
import { isWalkable } from "../core/header_fields.ts";
import type { QuotaWindow } from "../core/records.ts";
import { parseHttpDate } from "../core/retry_after.ts";
import type { QuotaFigures } from "./provider.ts";

export const UNIFIED_PREFIX = "anthropic-ratelimit-unified-";
/** `5h` covers the account; a window with a suffix covers some of its models only. */
const UNIFIED_WINDOW =
  /^anthropic-ratelimit-unified-(\d{1,3}[mhd](?:_[a-z0-9_]{1,32})?)-(?:status|reset|utilization)$/;
const KNOWN_WINDOWS = ["5h", "7d", "7d_oi", "7d_opus", "7d_sonnet"] as const;
/** More windows than any plan has; a foreign server must not make us keep thousands. */
const WINDOW_LIMIT = 16;
/** The bucket "overage included" is the one of this family (seen since 2026-08); other suffixes are family names. */
const FAMILY_OF_SUFFIX: ReadonlyMap<string, string> = new Map([["oi", "fable"]]);
/** Claims that stand for a window of the whole account. */
const ACCOUNT_CLAIMS: ReadonlySet<string> = new Set(["five_hour", "seven_day"]);
const BUCKETS = ["requests", "tokens", "input-tokens", "output-tokens"] as const;

interface UnifiedWindow extends QuotaWindow {
  /** Null where the window states no status. */
  readonly rejected: boolean | null;
}

export interface Refusal {
  readonly limiter: "account" | "model";
  /** When the last of the rejected windows is over; null where none says so, and for a model (see below). */
  readonly resetAtMs: number | null;
}

/**
 * Whose quota the windows say is used up, or `null` when they refuse nothing.
 *
 * A model's bucket resets up to a week later, yet the model was served again after the Retry-After (field case
 * B005): its reset is not given. `overage-status: rejected` alone is how an account without extra usage looks.
 */
export function readRefusal(headers: HeaderLookup, nowMs: number): Refusal | null {
  const windows = readWindows(headers, nowMs);
  const ofAccount = windows.filter(({ modelFamily }) => modelFamily === null);
  const rejected = ofAccount.filter((window) => window.rejected);
  const stated = readWord(headers, "status");
  const claim = readWord(headers, "representative-claim");
  const ofModel: Refusal = { limiter: "model", resetAtMs: null };
  if (rejected.length === 0) {
    const modelRejected = windows.some((window) => window.rejected);
    if (stated !== "rejected") return modelRejected ? ofModel : null;
    if (claim !== null ? !ACCOUNT_CLAIMS.has(claim) : modelRejected || isCleared(ofAccount)) return ofModel;
  }
  const resets = rejected.flatMap(({ resetAtMs }) => resetAtMs ?? []);
  return {
    limiter: "account",
    resetAtMs: resets.length > 0 ? Math.max(...resets) : readReset(readUnified(headers, "reset"), nowMs),
  };
}

/** True when windows of the account report, and all of them allow: then something narrower was refused. */
function isCleared(ofAccount: readonly UnifiedWindow[]): boolean {
  return ofAccount.length > 1 && ofAccount.every(({ rejected }) => rejected === false);
}

/** True when the answer counts a key's buckets: then a limit of the organisation may have refused it. */
export function hasBuckets(headers: HeaderLookup): boolean {
  return BUCKETS.some((bucket) => headers.get(`anthropic-ratelimit-${bucket}-remaining`) !== null);
}

/** Figures of one answer, or `null` when it carries none. */
export function readClaudeQuota(headers: HeaderLookup, nowMs: number): QuotaFigures | null {
  const windows = readWindows(headers, nowMs);
  const status = readWord(headers, "status");
  if (windows.length === 0 && status === null) return readBuckets(headers, nowMs);
  const overage = readWord(headers, "overage-status");
  return {
    windows: windows.map(({ rejected: _, ...window }) => window),
    limitReached: status === null && windows.every(({ rejected }) => rejected === null)
      ? null
      : readRefusal(headers, nowMs)?.limiter === "account",
    servesBeyondWindows: readWord(headers, "overage-in-use") === "true" || isAllowed(overage),
    creditsAvailable: overage === null ? null : isAllowed(overage),
    plan: null,
  };
}

/** A key's buckets refill while one looks: an empty one is a matter of seconds and never reason for a park. */
function readBuckets(headers: HeaderLookup, nowMs: number): QuotaFigures | null {
  const windows = BUCKETS.flatMap((bucket): QuotaWindow[] => {
    const read = (name: string) => headers.get(`anthropic-ratelimit-${bucket}-${name}`);
    const limit = readNumber(read("limit"));
    const remaining = readNumber(read("remaining"));
    if (limit === null || remaining === null || limit === 0) return [];
    return [{
      name: bucket.replace("-", "_"),
      usedPercent: toPercent(Math.max(0, 1 - remaining / limit)),
      resetAtMs: readReset(read("reset"), nowMs),
      modelFamily: null,
    }];
  });
  if (windows.length === 0) return null;
  return { windows, limitReached: null, servesBeyondWindows: true, creditsAvailable: null, plan: null };
}

function readWindows(headers: HeaderLookup, nowMs: number): UnifiedWindow[] {
  return [...readWindowIds(headers)].flatMap((id): UnifiedWindow[] => {
    const status = readWord(headers, `${id}-status`);
    const used = readNumber(readUnified(headers, `${id}-utilization`));
    if (status === null && used === null) return [];
    const rejected = status === null ? null : status === "rejected";
    const [name = id, suffix] = splitOnce(id);
    return [{
      name,
      // A refused window is spent, whatever its rounded figure.
      usedPercent: rejected === true
        ? Math.max(100, toPercent(used ?? 1))
        : used === null
        ? null
        : toPercent(used),
      resetAtMs: readReset(readUnified(headers, `${id}-reset`), nowMs),
      modelFamily: suffix === undefined ? null : FAMILY_OF_SUFFIX.get(suffix) ?? suffix.replaceAll("_", "-"),
      rejected,
    }];
  });
}

/** Only a collection that can be walked shows windows nobody knew before. */
function readWindowIds(headers: HeaderLookup): ReadonlySet<string> {
  const ids = new Set<string>(KNOWN_WINDOWS);
  if (!isWalkable(headers)) return ids;
  headers.forEach((_, name) => {
    const id = UNIFIED_WINDOW.exec(name)?.[1];
    if (id !== undefined && ids.size < WINDOW_LIMIT) ids.add(id);
  });
  return ids;
}

function splitOnce(id: string): [string, string?] {
  const at = id.indexOf("_");
  return at < 0 ? [id] : [id.slice(0, at), id.slice(at + 1)];
}

function readUnified(headers: HeaderLookup, name: string): string | null {
  const text = headers.get(UNIFIED_PREFIX + name)?.trim() ?? "";
  return text === "" ? null : text;
}

function readWord(headers: HeaderLookup, name: string): string | null {
  return readUnified(headers, name)?.toLowerCase() ?? null;
}

function isAllowed(status: string | null): boolean {
  return status === "allowed" || status === "allowed_warning";
}

/** Unix seconds, also with a fraction or in ms, RFC 3339 or an HTTP-date. */
function readReset(value: string | null, nowMs: number): number | null {
  const text = value?.trim() ?? "";
  const number = readNumber(text);
  if (number !== null) return number <= 0 ? null : Math.ceil(number > 1e12 ? number : number * 1_000);
  return readTimeMs(text) ?? parseHttpDate(text, nowMs);
}

function readNumber(value: string | null): number | null {
  const text = value?.trim() ?? "";
  return /^\d{1,15}(?:\.\d{1,15})?$/.test(text) ? Number(text) : null;
}

/** To a hundredth of a percent; utilization may exceed 1. */
function toPercent(fraction: number): number {
  return Math.round(fraction * 10_000) / 100;
}
