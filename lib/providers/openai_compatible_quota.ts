/** What is left of a key's limits, as the platform and hosts like it say in headers (wire-facts 8.2). */
import type { HeaderLookup } from "../core/evidence.ts";
import type { QuotaWindow } from "../core/records.ts";
import { parseGoDuration } from "../core/retry_after.ts";
import type { QuotaFigures } from "./provider.ts";

const BUCKETS = ["requests", "tokens", "project-tokens", "tokens_usage_based"] as const;

/**
 * Figures of one answer, or `null` when it carries none.
 *
 * Buckets refill all the time and `reset` is when they are full again: an empty one is no reason for a park, and
 * the 429 of a request that did not fit says when to come back.
 */
export function readOpenAiQuota(headers: HeaderLookup, nowMs: number): QuotaFigures | null {
  const windows = BUCKETS.flatMap((bucket): QuotaWindow[] => {
    const limit = readCount(headers.get(`x-ratelimit-limit-${bucket}`));
    const remaining = readCount(headers.get(`x-ratelimit-remaining-${bucket}`));
    if (limit === null || remaining === null || limit === 0) return [];
    const fullInMs = parseGoDuration(headers.get(`x-ratelimit-reset-${bucket}`));
    return [{
      name: bucket.replace("-", "_"),
      usedPercent: Math.round(Math.max(0, 1 - remaining / limit) * 10_000) / 100,
      resetAtMs: fullInMs === null ? null : nowMs + fullInMs,
      modelFamily: null,
    }];
  });
  if (windows.length === 0) return null;
  return { windows, limitReached: null, servesBeyondWindows: true, creditsAvailable: null, plan: null };
}

function readCount(value: string | null): number | null {
  const text = value?.trim() ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}
