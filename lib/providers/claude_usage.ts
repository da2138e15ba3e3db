/** Reads the usage page of a Claude subscription, `GET /api/oauth/usage` (wire-facts 6.8). */
import { readTimeMs } from "../core/credential.ts";
import type { QuotaWindow } from "../core/records.ts";
import { type JsonObject, readBoolean, readNumber, readObject, readText } from "./page_values.ts";
import type { QuotaFigures } from "./provider.ts";

const ACCOUNT_WINDOWS: ReadonlyMap<string, string> = new Map([["five_hour", "5h"], ["seven_day", "7d"]]);
/** `seven_day_opus`, `seven_day_sonnet`, …: what stands behind covers only that family of models. */
const FAMILY_WINDOW = /^seven_day_([a-z0-9_]{1,32})$/;
const FAMILY_NAME = /^[a-z0-9][a-z0-9 ._-]{0,63}$/;
/** More than any plan has. */
const WINDOW_LIMIT = 16;

/**
 * Figures of one usage page; here utilization is in percent, in the headers it is a fraction.
 *
 * @returns `null` when this is no usage page.
 */
export function parseClaudeUsage(json: unknown, _nowMs: number): QuotaFigures | null {
  const page = readObject(json);
  if (page === null) return null;
  const windows = [...readNamedWindows(page), ...readScopedLimits(page["limits"])].slice(0, WINDOW_LIMIT);
  const extra = readObject(page["extra_usage"]);
  if (windows.length === 0 && extra === null) return null;
  const ofAccount = windows.filter(({ modelFamily }) => modelFamily === null);
  const serves = readExtraUsage(extra);
  return {
    windows,
    // Every window must have room, so one that is used up is the page's verdict.
    limitReached: ofAccount.length === 0
      ? null
      : ofAccount.some(({ usedPercent }) => (usedPercent ?? 0) >= 100),
    servesBeyondWindows: serves === true,
    creditsAvailable: serves,
    plan: null,
  };
}

function readNamedWindows(page: JsonObject): QuotaWindow[] {
  return Object.entries(page).flatMap(([key, value]): QuotaWindow[] => {
    const family = FAMILY_WINDOW.exec(key)?.[1] ?? null;
    const name = ACCOUNT_WINDOWS.get(key) ?? (family === null ? null : "7d");
    if (name === null) return [];
    return readWindow(readObject(value), "utilization", name, family?.replaceAll("_", "-") ?? null);
  });
}

/** A newer list beside the named windows; only what it says about single models is not in those. */
function readScopedLimits(value: unknown): QuotaWindow[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, WINDOW_LIMIT).flatMap((entry): QuotaWindow[] => {
    const limit = readObject(entry);
    const model = readObject(readObject(limit?.["scope"])?.["model"]);
    const family = readText(model?.["display_name"])?.toLowerCase() ?? "";
    if (!FAMILY_NAME.test(family)) return [];
    return readWindow(limit, "percent", limit?.["group"] === "weekly" ? "7d" : "model", family);
  });
}

function readWindow(
  window: JsonObject | null,
  figure: "utilization" | "percent",
  name: string,
  modelFamily: string | null,
): QuotaWindow[] {
  const usedPercent = readNumber(window?.[figure]);
  return usedPercent === null
    ? []
    : [{ name, usedPercent, resetAtMs: readTimeMs(window?.["resets_at"]), modelFamily }];
}

/** Whether extra usage would serve; `null` when the page does not say. Amounts are in cents. */
function readExtraUsage(extra: JsonObject | null): boolean | null {
  const enabled = readBoolean(extra?.["is_enabled"]);
  if (enabled !== true) return enabled;
  if ((readNumber(extra?.["utilization"]) ?? 0) >= 100) return false;
  const limit = readNumber(extra?.["monthly_limit"]);
  return limit === null || (readNumber(extra?.["used_credits"]) ?? 0) < limit;
}
