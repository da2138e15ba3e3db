/** Reads ChatGPT's usage page, `GET /backend-api/wham/usage` (wire-facts 3.3). */
import type { QuotaWindow } from "../core/records.ts";
import { readCredits, readLimitId, readPlan } from "./codex_quota.ts";
import { type JsonObject, readBoolean, readNumber, readObject } from "./page_values.ts";
import type { QuotaFigures } from "./provider.ts";
import { nameWindow } from "../protocol/window_name.ts";

const SLOTS = ["primary_window", "secondary_window", "tertiary_window"] as const;
/** As with headers: no plan has so many families. */
const FAMILY_LIMIT = 16;

/**
 * Figures of one usage page.
 *
 * The slot of a window differs from plan to plan, so windows are named by their length, which is in seconds here
 * and in minutes in the headers.
 *
 * @param json  the parsed body.
 * @param nowMs  anchors `reset_after_seconds` where no absolute time is given.
 * @returns `null` when this is no usage page: then nothing was learned, good or bad.
 */
export function parseUsage(json: unknown, nowMs: number): QuotaFigures | null {
  const page = readObject(json);
  if (page === null) return null;
  const limit = readObject(page["rate_limit"]);
  const credits = readObject(page["credits"]);
  const plan = readPlan(page["plan_type"]);
  if (limit === null && credits === null && plan === null) return null;
  return {
    windows: [...readWindows(limit, null, nowMs), ...readFamilies(page["additional_rate_limits"], nowMs)],
    limitReached: readVerdict(limit),
    ...readCredits(
      readBoolean(credits?.["has_credits"]),
      readBoolean(credits?.["unlimited"]),
      credits?.["balance"],
    ),
    plan,
  };
}

/** Either word against serving counts; `null` when the page gives neither. */
function readVerdict(limit: JsonObject | null): boolean | null {
  const reached = readBoolean(limit?.["limit_reached"]);
  const allowed = readBoolean(limit?.["allowed"]);
  if (reached === true || allowed === false) return true;
  return reached === null && allowed === null ? null : false;
}

function readFamilies(value: unknown, nowMs: number): QuotaWindow[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, FAMILY_LIMIT).flatMap((entry) => {
    const family = readObject(entry);
    const id = readLimitId(family?.["metered_feature"]) ?? readLimitId(family?.["limit_name"]);
    return id === null ? [] : readWindows(readObject(family?.["rate_limit"]), id, nowMs);
  });
}

function readWindows(limit: JsonObject | null, modelFamily: string | null, nowMs: number): QuotaWindow[] {
  return SLOTS.flatMap((slot): QuotaWindow[] => {
    const window = readObject(limit?.[slot]);
    if (window === null) return [];
    const lengthS = readNumber(window["limit_window_seconds"]);
    const usedPercent = readNumber(window["used_percent"]);
    if (lengthS === 0 || (lengthS === null && usedPercent === null)) return [];
    const resetAtS = readNumber(window["reset_at"]);
    const resetAfterS = readNumber(window["reset_after_seconds"]);
    const resetAtMs = resetAtS !== null && resetAtS > 0
      ? resetAtS * 1_000
      : resetAfterS === null
      ? null
      : nowMs + resetAfterS * 1_000;
    return [{
      name: nameWindow(lengthS === null ? null : lengthS * 1_000, slot.replace("_window", "")),
      usedPercent,
      resetAtMs: resetAtMs === null ? null : Math.ceil(resetAtMs),
      modelFamily,
    }];
  });
}
