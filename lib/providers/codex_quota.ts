/** Codex's quota figures in response headers (wire-facts 3.1); the same names come inside WebSocket frames. */
import type { HeaderLookup } from "../core/evidence.ts";
import { isWalkable } from "../core/header_fields.ts";
import type { QuotaWindow } from "../core/records.ts";
import type { QuotaFigures } from "./provider.ts";
import { nameWindow } from "../protocol/window_name.ts";

/** Limit ids that cover the whole account; every other id is a family of models. */
const ACCOUNT_LIMITS = ["codex", "premium"] as const;
const SLOTS = ["primary", "secondary", "tertiary"] as const;
const FAMILY_HEADER = /^x-(.{1,64})-(?:primary|secondary|tertiary)-used-percent$/;
const LIMIT_ID = /^[a-z0-9][a-z0-9.-]{0,63}$/;
/** More families than any plan has; a foreign server must not make us keep thousands. */
const FAMILY_LIMIT = 16;

/**
 * Quota figures of one answer, or `null` when it carries none.
 *
 * Values may be empty strings, booleans are capitalised, a window of 0 minutes does not exist.
 *
 * @param nowMs  anchors `…-reset-after-seconds` where no absolute time is given.
 */
export function readCodexQuota(headers: HeaderLookup, nowMs: number): QuotaFigures | null {
  const windows = ACCOUNT_LIMITS.flatMap((id) => readWindows(headers, id, null, nowMs));
  for (const id of readFamilyIds(headers)) windows.push(...readWindows(headers, id, id, nowMs));
  const plan = readPlan(headers.get("x-codex-plan-type"));
  const hasCredits = readBoolean(headers.get("x-codex-credits-has-credits"));
  const unlimited = readBoolean(headers.get("x-codex-credits-unlimited"));
  const reached = readText(headers.get("x-codex-rate-limit-reached-type"));
  if (windows.length === 0 && hasCredits === null && reached === null) return null;
  return {
    windows,
    // The word comes with the limit the request was charged to; a family's limit is not the account's.
    limitReached: reached !== null && readModelFamily(headers) === null ? true : null,
    ...readCredits(hasCredits, unlimited, headers.get("x-codex-credits-balance")),
    plan,
  };
}

/** What credits mean: whether there are any, and whether they serve when a window is spent. */
export function readCredits(
  hasCredits: boolean | null,
  unlimited: boolean | null,
  balance: unknown,
): { creditsAvailable: boolean | null; servesBeyondWindows: boolean } {
  const serves = unlimited === true || (hasCredits === true && !isZero(balance));
  return {
    creditsAvailable: hasCredits === null && unlimited === null ? null : serves,
    servesBeyondWindows: serves,
  };
}

/** A plan's name as it may be shown to an operator: one word, whatever the upstream sent. */
export function readPlan(value: unknown): string | null {
  const plan = typeof value === "string" ? value.trim().toLowerCase() : "";
  return /^[a-z0-9_]{1,64}$/.test(plan) ? plan : null;
}

/** A limit's id in the spelling of the headers, with dashes; `null` for what is no id. */
export function readLimitId(value: unknown): string | null {
  const id = typeof value === "string" ? value.trim().toLowerCase().replace(/[_\s]+/g, "-") : "";
  return LIMIT_ID.test(id) ? id : null;
}

/**
 * The model family whose limit the request was charged to, with dashes, or `null` when it was the account's.
 * Source: wire-facts 1.4, header `x-codex-active-limit`.
 */
export function readModelFamily(headers: HeaderLookup): string | null {
  const id = readLimitId(headers.get("x-codex-active-limit"));
  return ACCOUNT_LIMITS.some((limit) => limit === id) ? null : id;
}

/**
 * Whether the limit that refused a request is used up by its windows' own account, and when it is over: the latest
 * of their resets, because every one of them must have room.
 *
 * @returns `null` when no window is used up; one whose reset has passed is old news. `resetAtMs` is null when no
 *   used-up window says when it ends.
 */
export function readExhaustion(
  headers: HeaderLookup,
  nowMs: number,
): { readonly resetAtMs: number | null } | null {
  const family = readModelFamily(headers);
  const ids = family === null ? ACCOUNT_LIMITS : [family, `codex-${family}`];
  const exhausted = ids.flatMap((id) => readWindows(headers, id, family, nowMs))
    .filter(({ usedPercent, resetAtMs }) => (usedPercent ?? 0) >= 100 && (resetAtMs ?? Infinity) > nowMs);
  if (exhausted.length === 0) return null;
  const resets = exhausted.flatMap(({ resetAtMs }) => resetAtMs ?? []);
  return { resetAtMs: resets.length === 0 ? null : Math.max(...resets) };
}

function readWindows(
  headers: HeaderLookup,
  id: string,
  modelFamily: string | null,
  nowMs: number,
): QuotaWindow[] {
  const windows: QuotaWindow[] = [];
  for (const { slot, names } of slotsOf(id)) {
    const usedPercent = readNumber(headers.get(names.usedPercent));
    const minutes = readNumber(headers.get(names.windowMinutes));
    if (minutes === 0 || (usedPercent === null && minutes === null)) continue;
    const resetAtS = readNumber(headers.get(names.resetAt));
    const resetAfterS = readNumber(headers.get(names.resetAfter));
    const resetAtMs = resetAtS !== null && resetAtS > 0
      ? resetAtS * 1_000
      : resetAfterS === null
      ? null
      : nowMs + resetAfterS * 1_000;
    const name = nameWindow(minutes === null ? null : minutes * 60_000, slot);
    windows.push({
      name,
      usedPercent,
      resetAtMs: resetAtMs === null ? null : Math.ceil(resetAtMs),
      modelFamily,
    });
  }
  return windows;
}

interface SlotHeaders {
  readonly slot: typeof SLOTS[number];
  readonly names: Readonly<Record<"usedPercent" | "windowMinutes" | "resetAt" | "resetAfter", string>>;
}

/** The accounts' own limits are read from every answer. */
const ACCOUNT_SLOTS = new Map<string, readonly SlotHeaders[]>(
  ACCOUNT_LIMITS.map((id) => [id, nameSlots(id)]),
);

function slotsOf(id: string): readonly SlotHeaders[] {
  return ACCOUNT_SLOTS.get(id) ?? nameSlots(id);
}

function nameSlots(id: string): SlotHeaders[] {
  return SLOTS.map((slot) => {
    const prefix = `x-${id}-${slot}`;
    return {
      slot,
      names: {
        usedPercent: `${prefix}-used-percent`,
        windowMinutes: `${prefix}-window-minutes`,
        resetAt: `${prefix}-reset-at`,
        resetAfter: `${prefix}-reset-after-seconds`,
      },
    };
  });
}

/** Ids of the extra families; only a collection that can be walked shows names nobody knew before. */
function readFamilyIds(headers: HeaderLookup): ReadonlySet<string> {
  const ids = new Set<string>();
  if (!isWalkable(headers)) {
    const active = readModelFamily(headers);
    return active === null ? ids : ids.add(active);
  }
  headers.forEach((_, name) => {
    const id = readLimitId(FAMILY_HEADER.exec(name)?.[1]);
    if (id === null || ACCOUNT_LIMITS.some((limit) => limit === id)) return;
    if (ids.size < FAMILY_LIMIT) ids.add(id);
  });
  return ids;
}

function readText(value: string | null): string | null {
  const text = value?.trim() ?? "";
  return text === "" ? null : text;
}

function readNumber(value: string | null): number | null {
  const text = value?.trim() ?? "";
  return /^\d{1,15}(?:\.\d{1,15})?$/.test(text) ? Number(text) : null;
}

function readBoolean(value: string | null): boolean | null {
  const text = value?.trim().toLowerCase();
  return text === "true" ? true : text === "false" ? false : null;
}

function isZero(balance: unknown): boolean {
  const text = typeof balance === "string" ? balance.trim() : balance;
  return text === 0 || (typeof text === "string" && /^-?0+(?:\.0+)?$/.test(text));
}
