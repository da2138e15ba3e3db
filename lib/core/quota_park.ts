/**
 * Parks: what usage pages, snapshots and headers of a 2xx may block, and for how long.
 *
 * A page is believed for at most 30 minutes from its own observation and never twice in a row: once a park
 * ended, only a real success lets a page arm the next one (`probeOwed`; state-machine-facts 2B, ruling 1).
 */
import { clampTimeMs, type ModelId } from "./domain.ts";
import type { AccountHealth, CreditsBlock, Park, QuotaReading, QuotaWindow } from "./records.ts";

/** Silences parks after a real success; sliding. */
export const OVERRIDE_MS = 30 * 60_000;
/** No configuration lets a park last longer. */
export const PARK_LIMIT_MS = 30 * 60_000;
/** Believed when the page names no reset at all (2B.1, exhausted entry without reset). */
export const PARK_WITHOUT_RESET_MS = 5 * 60_000;
/**
 * One real request per hour tests an account without credits, counted from the last refusal (ruling 20). A page
 * older than that refusal is refuted by it.
 */
export const CREDITS_PROBE_MS = 3_600_000;
/** Windows of one page kept at most, and characters of one word of it. */
const WINDOW_LIMIT = 64;
const WORD_LIMIT = 128;
/** A window with this share or less left counts as spent (2B.1, preflight minimum). */
export const SPENT_PERCENT = 98;

/**
 * Takes one reading. Older than what is known: ignored. From the future: taken as of now.
 *
 * @param maxParkMs  configured longest park, at most `PARK_LIMIT_MS`.
 */
export function applyReading(
  health: AccountHealth,
  given: QuotaReading,
  maxParkMs: number,
  nowMs: number,
): AccountHealth {
  const observedAtMs = Math.min(given.observedAtMs, nowMs);
  if (health.reading !== null && observedAtMs < health.reading.observedAtMs) return health;
  const reading = boundReading({ ...given, observedAtMs });
  const capMs = Math.min(maxParkMs, PARK_LIMIT_MS);
  const next = applyAccountWindows(health, reading, capMs, nowMs);
  return {
    ...next,
    reading,
    modelParks: familyParks(health.modelParks, reading, capMs, nowMs),
    credits: next.credits !== null && reading.creditsAvailable === true &&
        observedAtMs > lastRefusalMs(next.credits) && next.credits.probeAtMs > nowMs
      ? { ...next.credits, probeAtMs: nowMs }
      : next.credits,
  };
}

/** An hour before the next test, but a test that was brought forward says less than the first refusal. */
function lastRefusalMs(credits: CreditsBlock): number {
  return Math.max(credits.openedAtMs, credits.probeAtMs - CREDITS_PROBE_MS);
}

/**
 * Fits an upstream's page to what records hold: whole times, finite figures, short plain words. A page is advice,
 * and nothing in it may grow without bound or stop a write.
 */
function boundReading(reading: QuotaReading): QuotaReading {
  return {
    ...reading,
    observedAtMs: clampTimeMs(reading.observedAtMs),
    windows: reading.windows.slice(0, WINDOW_LIMIT).map((window) => ({
      name: boundWord(window.name),
      usedPercent: window.usedPercent !== null && Number.isFinite(window.usedPercent)
        ? window.usedPercent
        : null,
      resetAtMs: window.resetAtMs !== null && Number.isFinite(window.resetAtMs)
        ? clampTimeMs(window.resetAtMs)
        : null,
      modelFamily: window.modelFamily === null ? null : boundWord(window.modelFamily),
    })),
    plan: reading.plan === null ? null : boundWord(reading.plan),
  };
}

function boundWord(word: string): string {
  // deno-lint-ignore no-control-regex
  return word.slice(0, WORD_LIMIT).toWellFormed().replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "");
}

/** Whether a page says the account still serves; `null` when it says nothing either way. */
export function readsExhausted(reading: QuotaReading): boolean | null {
  if (reading.servesBeyondWindows) return false;
  if (reading.limitReached === true) return true;
  const reporting = reading.windows.filter((window) =>
    window.modelFamily === null && window.usedPercent !== null
  );
  if (reporting.length === 0) return reading.limitReached === false ? false : null;
  return reporting.every(isSpent);
}

/** True when a family of limits (`opus`, `spark` …) covers the model: its words appear in the model's name. */
export function familyCovers(family: string, model: ModelId): boolean {
  return wordsOf(model).includes(wordsOf(family));
}

/** The live park that blocks this model longest, or null. The override silences account and family alike. */
export function livePark(health: AccountHealth, model: ModelId | null, nowMs: number): Park | null {
  if (health.overrideUntilMs > nowMs) return null;
  let latest = health.park !== null && health.park.untilMs > nowMs ? health.park : null;
  if (health.modelParks.size === 0 || model === null) return latest;
  for (const [family, park] of health.modelParks) {
    if (park.untilMs > nowMs && familyCovers(family, model)) {
      if (latest === null || park.untilMs > latest.untilMs) latest = park;
    }
  }
  return latest;
}

/** A real success of the model: its families may be parked again by the next page. */
export function dropFamilyParks(
  parks: ReadonlyMap<string, Park>,
  model: ModelId | null,
): ReadonlyMap<string, Park> {
  if (parks.size === 0 || model === null) return parks;
  return new Map([...parks].filter(([family]) => !familyCovers(family, model)));
}

/**
 * Ends family parks but keeps their entries: an entry that is over means "no page arms this again before a
 * real success", the families' form of `probeOwed`.
 */
export function holdFamilyParks(
  parks: ReadonlyMap<string, Park>,
  model: ModelId | null = null,
): ReadonlyMap<string, Park> {
  if (parks.size === 0) return parks;
  return new Map(
    [...parks].map(([family, park]) =>
      model === null || familyCovers(family, model) ? [family, { ...park, untilMs: 0 }] : [family, park]
    ),
  );
}

function applyAccountWindows(
  health: AccountHealth,
  reading: QuotaReading,
  capMs: number,
  nowMs: number,
): AccountHealth {
  const exhausted = readsExhausted(reading);
  const ended = health.park !== null && health.park.untilMs <= nowMs;
  if (exhausted === null) return ended ? { ...health, park: null, probeOwed: true } : health;
  if (!exhausted) {
    // A park that ends by better news has ended all the same: contradicting pages must not re-arm it for ever.
    return health.park === null ? health : { ...health, park: null, probeOwed: true };
  }
  if (health.park !== null && !ended) return health;
  if (ended || health.probeOwed) {
    return health.park === null && health.probeOwed ? health : { ...health, park: null, probeOwed: true };
  }
  const park = armPark(reading, reading.windows.filter((w) => w.modelFamily === null), capMs, nowMs);
  return park === null ? health : { ...health, park };
}

function familyParks(
  parks: ReadonlyMap<string, Park>,
  reading: QuotaReading,
  capMs: number,
  nowMs: number,
): ReadonlyMap<string, Park> {
  const families = new Set<string>();
  for (const window of reading.windows) {
    if (window.modelFamily !== null && window.usedPercent !== null) families.add(window.modelFamily);
  }
  let next: Map<string, Park> | null = null;
  for (const family of families) {
    const windows = reading.windows.filter((window) =>
      window.modelFamily === family && window.usedPercent !== null
    );
    const current = parks.get(family);
    if (!windows.every(isSpent)) {
      if (current !== undefined && current.untilMs > nowMs) {
        next = next ?? new Map(parks);
        next.set(family, { ...current, untilMs: 0 });
      }
      continue;
    }
    if (current !== undefined) continue;
    const park = armPark(reading, windows, capMs, nowMs);
    if (park !== null) {
      next = next ?? new Map(parks);
      next.set(family, park);
    }
  }
  return next ?? parks;
}

/** Anchored at the observation, not at its arrival; a page already too old blocks nothing. */
function armPark(
  reading: QuotaReading,
  windows: readonly QuotaWindow[],
  capMs: number,
  nowMs: number,
): Park | null {
  // Spent windows all have to come back, so the last reset counts. One that is unknown leaves the cap.
  const spent = windows.filter(isSpent);
  const relevant = spent.length > 0 ? spent : windows;
  const resets = relevant.map((window) => window.resetAtMs).filter((reset) => reset !== null);
  const believedMs = resets.length === 0 ? Math.min(PARK_WITHOUT_RESET_MS, capMs) : capMs;
  const capAtMs = reading.observedAtMs + believedMs;
  const untilMs = resets.length === 0 || resets.length < relevant.length
    ? capAtMs
    : Math.min(capAtMs, Math.max(...resets));
  if (untilMs <= nowMs) return null;
  return { untilMs, observedAtMs: reading.observedAtMs, source: reading.source };
}

function isSpent(window: QuotaWindow): boolean {
  return window.usedPercent !== null && window.usedPercent >= SPENT_PERCENT;
}

/** `Claude-Opus_4.8` reads `-claude-opus-4-8-`, so that `opus` matches and `pus` does not. */
function wordsOf(name: string): string {
  return `-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}-`;
}
