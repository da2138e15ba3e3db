/**
 * Parks as state-machine-facts 2B and ruling 1 describe them, written a second time and for one account.
 *
 * Nothing of `lib/core/quota_park.ts` is used here: what both forget the same way would never be found.
 */
import type { QuotaReading, QuotaWindow } from "../../../lib/core/records.ts";

const HALF_HOUR_MS = 30 * 60_000;
const UNDATED_PARK_MS = 5 * 60_000;
const SPENT_FROM_PERCENT = 98;

export class ParkOracle {
  /** End of the park; 0 = none was armed since the last one ended. */
  untilMs = 0;
  observedAtMs = 0;
  /** A park is known to have ended, or a 429 came: pages arm nothing before a real success. */
  isOwed = false;
  overrideUntilMs = 0;
  reading: QuotaReading | null = null;
  /** Family -> end; an entry that is over still forbids a new one. */
  readonly families = new Map<string, { untilMs: number; observedAtMs: number }>();

  read(page: QuotaReading, maxParkMs: number, nowMs: number): void {
    const observedAtMs = Math.min(page.observedAtMs, nowMs);
    if (this.reading !== null && observedAtMs < this.reading.observedAtMs) return;
    this.reading = { ...page, observedAtMs };
    const capMs = Math.min(maxParkMs, HALF_HOUR_MS);
    this.#readAccount(this.reading, capMs, nowMs);
    this.#readFamilies(this.reading, capMs, nowMs);
  }

  /** A real success, of an attempt younger than the last 429. */
  served(model: string | null, nowMs: number): void {
    this.untilMs = 0;
    this.isOwed = false;
    this.overrideUntilMs = nowMs + HALF_HOUR_MS;
    for (const family of this.families.keys()) {
      if (model !== null && covers(family, model)) this.families.delete(family);
    }
  }

  /** A genuine 429 of the account. */
  refused(): void {
    this.untilMs = 0;
    this.isOwed = true;
    this.overrideUntilMs = 0;
  }

  refusedModel(model: string): void {
    for (const [family, park] of this.families) if (covers(family, model)) park.untilMs = 0;
  }

  cleared(): void {
    this.untilMs = 0;
    this.isOwed = true;
    for (const park of this.families.values()) park.untilMs = 0;
  }

  /** End of the park that blocks this model now, or 0. */
  liveUntilMs(model: string | null, nowMs: number): number {
    if (this.overrideUntilMs > nowMs) return 0;
    let latest = this.untilMs > nowMs ? this.untilMs : 0;
    for (const [family, park] of this.families) {
      if (model !== null && park.untilMs > nowMs && covers(family, model)) {
        latest = Math.max(latest, park.untilMs);
      }
    }
    return latest;
  }

  #readAccount(page: QuotaReading, capMs: number, nowMs: number): void {
    const isOver = this.untilMs > 0 && this.untilMs <= nowMs;
    if (isOver) {
      this.untilMs = 0;
      this.isOwed = true;
    }
    const spent = saysSpent(page);
    if (spent === null) return;
    if (!spent) {
      if (this.untilMs > 0) this.isOwed = true;
      this.untilMs = 0;
      return;
    }
    if (this.untilMs > 0 || this.isOwed) return;
    this.untilMs = parkEnd(page, page.windows.filter((window) => window.modelFamily === null), capMs, nowMs);
    this.observedAtMs = page.observedAtMs;
  }

  #readFamilies(page: QuotaReading, capMs: number, nowMs: number): void {
    const families = new Map<string, QuotaWindow[]>();
    for (const window of page.windows) {
      if (window.modelFamily === null || window.usedPercent === null) continue;
      families.set(window.modelFamily, [...families.get(window.modelFamily) ?? [], window]);
    }
    for (const [family, windows] of families) {
      const known = this.families.get(family);
      if (!windows.every(isSpent)) {
        if (known !== undefined) known.untilMs = Math.min(known.untilMs, nowMs);
        continue;
      }
      if (known !== undefined) continue;
      const untilMs = parkEnd(page, windows, capMs, nowMs);
      if (untilMs > 0) this.families.set(family, { untilMs, observedAtMs: page.observedAtMs });
    }
  }
}

/** `null`: the page says nothing either way. */
export function saysSpent(page: QuotaReading): boolean | null {
  if (page.servesBeyondWindows) return false;
  if (page.limitReached === true) return true;
  const reporting = page.windows.filter((window) =>
    window.modelFamily === null && window.usedPercent !== null
  );
  if (reporting.length > 0) return reporting.every(isSpent);
  return page.limitReached === false ? false : null;
}

/** 0 = the page is too old to block anything. */
function parkEnd(page: QuotaReading, windows: readonly QuotaWindow[], capMs: number, nowMs: number): number {
  const spent = windows.filter(isSpent);
  const asked = spent.length > 0 ? spent : windows;
  const resets = asked.flatMap((window) => window.resetAtMs === null ? [] : [window.resetAtMs]);
  let untilMs = page.observedAtMs + (resets.length === 0 ? Math.min(UNDATED_PARK_MS, capMs) : capMs);
  if (resets.length > 0 && resets.length === asked.length) untilMs = Math.min(untilMs, Math.max(...resets));
  return untilMs > nowMs ? untilMs : 0;
}

function isSpent(window: QuotaWindow): boolean {
  return window.usedPercent !== null && window.usedPercent >= SPENT_FROM_PERCENT;
}

/** The family's words stand next to each other in the model's name. */
function covers(family: string, model: string): boolean {
  const words = (name: string) =>
    name.toLowerCase().split(/[^a-z0-9]+/).filter((word) => word !== "").join(" ");
  return ` ${words(model)} `.includes(` ${words(family)} `);
}
