/**
 * Quota notices of Codex: the `codex.rate_limits` event, and the naming rules its headers share.
 *
 * Source: wire-facts 3.1, 3.2. Slots are not stable by plan, so a window is named after its length.
 */
import type { QuotaReading, QuotaWindow } from "../core/records.ts";
import { nameWindow } from "./window_name.ts";
import { type JsonObject, readObject, readString } from "./event_data.ts";

/** A reading whose moment and source the caller fills in. */
export type QuotaNotice = Omit<QuotaReading, "observedAtMs" | "source">;

const SLOTS = ["primary", "secondary", "tertiary"] as const;
/** Limits that cover the whole account; every other id is a family of models. */
const ACCOUNT_LIMITS: ReadonlySet<string> = new Set(["codex", "premium"]);

/** @returns `null` when the event states nothing readable. */
export function readRateLimitsEvent(json: unknown): QuotaNotice | null {
  const event = readObject(json);
  if (event === null) return null;
  const limits = readObject(event["rate_limits"]);
  const family = modelFamilyOf(
    readString(event["limit_id"]) ?? readString(event["metered_limit_name"]) ??
      readString(event["limit_name"]),
  );
  const windows = SLOTS.flatMap((slot) => readWindow(slot, readObject(limits?.[slot]), family));
  const credits = readObject(event["credits"]);
  const limitReached = readBoolean(limits?.["limit_reached"]) ?? readBoolean(event["limit_reached"]) ??
    negate(readBoolean(limits?.["allowed"]) ?? readBoolean(event["allowed"]));
  if (windows.length === 0 && credits === null && limitReached === null) return null;
  const creditsAvailable = readCredits(credits);
  return {
    windows,
    limitReached,
    servesBeyondWindows: creditsAvailable === true,
    creditsAvailable,
    plan: readString(event["plan_type"]),
  };
}

/** The model family a limit id stands for, spelled with dashes as in the headers; `null`: the whole account. */
export function modelFamilyOf(limitId: string | null): string | null {
  const id = (limitId ?? "").trim().toLowerCase().replaceAll(/[_\s]+/g, "-");
  return id === "" || ACCOUNT_LIMITS.has(id) ? null : id;
}

function readWindow(slot: string, window: JsonObject | null, family: string | null): QuotaWindow[] {
  if (window === null) return [];
  const minutes = readNumber(window["window_minutes"]);
  // Zero minutes is how a plan without this window says so.
  if (minutes === 0) return [];
  const resetAt = readNumber(window["reset_at"]) ?? readNumber(window["resets_at"]);
  return [{
    name: nameWindow(minutes === null ? null : minutes * 60_000, slot),
    usedPercent: readNumber(window["used_percent"]),
    resetAtMs: resetAt === null || resetAt <= 0 ? null : Math.ceil(resetAt * 1000),
    modelFamily: family,
  }];
}

function readCredits(credits: JsonObject | null): boolean | null {
  if (credits === null) return null;
  if (credits["unlimited"] === true) return true;
  return readBoolean(credits["has_credits"]);
}

function readBoolean(value: unknown): boolean | null {
  return typeof value === "boolean" ? value : null;
}

function negate(value: boolean | null): boolean | null {
  return value === null ? null : !value;
}

function readNumber(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
