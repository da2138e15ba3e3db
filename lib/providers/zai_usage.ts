/** Reads the quota page of z.ai's coding plan, `GET /api/monitor/usage/quota/limit` (wire-facts 7.1). */
import { readTimeMs } from "../core/credential.ts";
import type { QuotaWindow } from "../core/records.ts";
import { readNumber, readObject, readText } from "./page_values.ts";
import type { QuotaFigures } from "./provider.ts";
import { nameWindow } from "../protocol/window_name.ts";

/** A `unit` in ms: 3 counts hours, 6 weeks; the page's others are not known. */
const UNIT_MS: ReadonlyMap<number, number> = new Map([[3, 3_600_000], [6, 604_800_000]]);
const MODEL_LIMITS: ReadonlySet<string> = new Set(["TOKENS_LIMIT", "CREDIT_LIMIT"]);
/** Counts calls of hosted tools, which no request for a model needs: kept apart under a name no model has. */
const TOOL_LIMIT = "TIME_LIMIT";
const TOOL_FAMILY = "hosted-tools";
/** More than any plan has. */
const LIMIT_COUNT = 16;

/**
 * Figures of one quota page.
 *
 * @returns `null` when this is no quota page, also when it says that it failed.
 */
export function parseZaiUsage(json: unknown, _nowMs: number): QuotaFigures | null {
  const page = readObject(json);
  if (page === null || page["success"] === false) return null;
  const limits = readObject(page["data"])?.["limits"];
  if (!Array.isArray(limits)) return null;
  const windows = limits.slice(0, LIMIT_COUNT).flatMap(readWindow);
  if (windows.length === 0) return null;
  const ofModels = windows.filter(({ modelFamily }) => modelFamily === null);
  return {
    windows,
    // The 5-hour and the weekly limit must both have room.
    limitReached: ofModels.length === 0 ? null : ofModels.some(({ usedPercent }) => usedPercent! >= 100),
    servesBeyondWindows: false,
    creditsAvailable: null,
    plan: null,
  };
}

function readWindow(value: unknown): QuotaWindow[] {
  const limit = readObject(value);
  const type = readText(limit?.["type"]) ?? "";
  if (!MODEL_LIMITS.has(type) && type !== TOOL_LIMIT) return [];
  const usedPercent = readNumber(limit?.["percentage"]) ??
    shareOf(readNumber(limit?.["currentValue"]), readNumber(limit?.["usage"]));
  if (usedPercent === null) return [];
  const unitMs = UNIT_MS.get(readNumber(limit?.["unit"]) ?? 0);
  const count = readNumber(limit?.["number"]);
  const lengthMs = unitMs === undefined || count === null || count < 1 || count > 1_000
    ? null
    : unitMs * count;
  return [{
    name: nameWindow(lengthMs, type.toLowerCase()),
    usedPercent,
    resetAtMs: readTimeMs(limit?.["nextResetTime"]),
    modelFamily: type === TOOL_LIMIT ? TOOL_FAMILY : null,
  }];
}

/** @param whole  called `usage` there, and the allowance it is. */
function shareOf(used: number | null, whole: number | null): number | null {
  if (used === null || whole === null || whole === 0) return null;
  return Math.round((used / whole) * 10_000) / 100;
}
