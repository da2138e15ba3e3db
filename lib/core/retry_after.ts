/**
 * When an upstream says it may be tried again: headers, durations and prose, and which statement wins.
 *
 * Everything ends as UTC epoch ms or ms of delay; a moment that is not in the future is `null`, never a wait.
 * Sources: RFC 9110 sections 5.6.7 and 10.2.3, wire-facts 1.6, 6.3, 7.4 and 8.2, field cases B030 and B032.
 */
import type { StatedTime } from "./outcome.ts";

/** The longest stated wait that is believed; a Retry-After beyond it counts as this much. */
export const STATED_WAIT_LIMIT_MS = 366 * 86_400_000;
/** z.ai's windows (wire-facts 7.4): a parse that gives more is distrusted. One minute is for unequal clocks. */
export const FIVE_HOUR_RESET_LIMIT_MS = 5 * 3_600_000 + 60_000;
export const WEEKLY_RESET_LIMIT_MS = 7 * 86_400_000 + 60_000;
export const MONTHLY_RESET_LIMIT_MS = 31 * 86_400_000 + 60_000;

/** The last moment a date can name. */
const LAST_MOMENT_MS = 8.64e15;
const UTC_PLUS_8_MS = 8 * 3_600_000;

/**
 * The one time to obey among all that an answer states.
 *
 * Limits are AND-composed, so the latest valid one wins (C18); prose counts only where no header and no body
 * field says anything (B032). Moments beyond 366 days are unreadable units rather than times, except in
 * Retry-After, which means what it says and is cut there.
 *
 * @returns `null` when nothing valid was stated.
 */
export function laterOf(stated: readonly (StatedTime | null)[], nowMs: number): StatedTime | null {
  const lastMs = nowMs + STATED_WAIT_LIMIT_MS;
  let best: StatedTime | null = null;
  for (const time of stated) {
    if (time === null || !(time.untilMs > nowMs)) continue;
    if (time.untilMs > lastMs && time.source !== "retry_after") continue;
    const untilMs = Math.min(time.untilMs, lastMs);
    if (best === null || (best.source === "message") !== (time.source === "message")) {
      if (best === null || best.source === "message") best = { untilMs, source: time.source };
    } else if (untilMs > best.untilMs) {
      best = { untilMs, source: time.source };
    }
  }
  return best;
}

/**
 * @param value       Retry-After as received: seconds (also with a fraction, as some hosts send) or an HTTP-date.
 * @param dateHeader  the answer's own Date; an HTTP-date is measured against it, so that a wrong clock on either
 *                    side does not matter.
 * @returns UTC epoch ms; `null` when unreadable or not in the future. Never overflows.
 */
export function parseRetryAfter(
  value: string | null,
  nowMs: number,
  dateHeader: string | null,
): number | null {
  const text = value?.trim() ?? "";
  // A header sent twice arrives joined by a comma.
  if (/^\d+(?:\.\d+)?(?:\s*,\s*\d+(?:\.\d+)?)*$/.test(text)) {
    return momentAfter(nowMs, Math.max(...text.split(",").map(Number)) * 1000);
  }
  const date = parseHttpDate(text, nowMs);
  if (date === null) return null;
  const serverNow = dateHeader === null ? null : parseHttpDate(dateHeader.trim(), nowMs);
  return momentAfter(nowMs, date - (serverNow ?? nowMs));
}

/** @param value  `retry-after-ms` as received. @returns as `parseRetryAfter`. */
export function parseRetryAfterMs(value: string | null, nowMs: number): number | null {
  const text = value?.trim() ?? "";
  return /^\d+(?:\.\d+)?$/.test(text) ? momentAfter(nowMs, Number(text)) : null;
}

function momentAfter(nowMs: number, delayMs: number): number | null {
  const moment = Math.min(Math.ceil(nowMs + delayMs), LAST_MOMENT_MS);
  return moment > nowMs ? moment : null;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const LONG_DAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day";
const MONTH = `(${MONTHS.join("|")})`;
const TIME = "(\\d{2}):(\\d{2}):(\\d{2})";
const IMF_FIXDATE = new RegExp(`^${DAY}, (\\d{2}) ${MONTH} (\\d{4}) ${TIME} GMT$`);
const RFC_850 = new RegExp(`^${LONG_DAY}, (\\d{2})-${MONTH}-(\\d{2}) ${TIME} GMT$`);
const ASCTIME = new RegExp(`^${DAY} ${MONTH} ([ \\d]\\d) ${TIME} (\\d{4})$`);

/**
 * The three forms of RFC 9110 section 5.6.7.
 *
 * @param nowMs  decides the century of a two-digit year: never more than 50 years ahead.
 * @returns UTC epoch ms, or `null`.
 */
export function parseHttpDate(text: string, nowMs: number): number | null {
  let match = IMF_FIXDATE.exec(text);
  if (match !== null) {
    const [, day, month, year, hour, minute, second] = match;
    return utcMoment(Number(year), monthOf(month), Number(day), Number(hour), Number(minute), Number(second));
  }
  match = ASCTIME.exec(text);
  if (match !== null) {
    const [, month, day, hour, minute, second, year] = match;
    return utcMoment(Number(year), monthOf(month), Number(day), Number(hour), Number(minute), Number(second));
  }
  match = RFC_850.exec(text);
  if (match === null) return null;
  const [, day, month, shortYear, hour, minute, second] = match;
  const thisYear = new Date(nowMs).getUTCFullYear();
  let year = thisYear - thisYear % 100 + Number(shortYear);
  if (year > thisYear + 50) year -= 100;
  return utcMoment(year, monthOf(month), Number(day), Number(hour), Number(minute), Number(second));
}

function monthOf(name: string | undefined): number {
  return MONTHS.indexOf(name ?? "") + 1;
}

/** @returns `null` when the parts name no real moment (30 February, 25:00); second 60 is a leap second. */
function utcMoment(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): number | null {
  if (year < 1900 || hour > 23 || minute > 59 || second > 60) return null;
  const date = new Date(Date.UTC(year, month - 1, day));
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null;
  return date.getTime() + ((hour * 60 + minute) * 60 + second) * 1000;
}

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ...["ms", "millisecond", "milliseconds"].map((name) => [name, 1] as const),
  ...["s", "sec", "secs", "second", "seconds"].map((name) => [name, 1000] as const),
  ...["m", "min", "mins", "minute", "minutes"].map((name) => [name, 60_000] as const),
  ...["h", "hr", "hrs", "hour", "hours"].map((name) => [name, 3_600_000] as const),
  ...["d", "day", "days"].map((name) => [name, 86_400_000] as const),
]);

/**
 * The wait in "… try again in 6m0s": compounds (`1h2m3s`, `1 hour and 5 minutes`), fractions, short and long units.
 *
 * A letter after a unit voids the match, so `1 month` is no minute.
 *
 * @returns ms, or `null` when the text states no readable wait.
 */
export function parseMessageDelay(text: string | null): number | null {
  for (const match of (text ?? "").matchAll(/\btry again in\s+/gi)) {
    const delayMs = readDelay(text!, match.index + match[0].length);
    if (delayMs !== null) return delayMs;
  }
  return null;
}

function readDelay(text: string, start: number): number | null {
  const part = /(\d+(?:\.\d+)?)\s*([a-zµ]+)/iy;
  const joiner = /(?:\s*,\s*|\s+and\s+|\s*)(?=\d)/iy;
  let totalMs = 0;
  let at = start;
  // True where what follows must still belong to the wait: at its beginning, and directly behind a unit.
  let bound = true;
  for (;;) {
    part.lastIndex = at;
    const match = part.exec(text);
    const unitMs = match === null ? undefined : UNIT_MS.get(match[2]!.toLowerCase());
    if (match === null || unitMs === undefined) {
      if (bound) return null;
      break;
    }
    totalMs += Number(match[1]) * unitMs;
    at = joiner.lastIndex = part.lastIndex;
    const joined = joiner.exec(text);
    if (joined === null) break;
    bound = joined[0] === "";
    at = joiner.lastIndex;
  }
  return totalMs > 0 ? Math.min(Math.ceil(totalMs), LAST_MOMENT_MS) : null;
}

const GO_UNIT_MS: ReadonlyMap<string, number> = new Map([
  ["ns", 1e-6],
  ["us", 1e-3],
  ["µs", 1e-3],
  ["μs", 1e-3],
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
]);

/** A Go duration as in `x-ratelimit-reset-*` (`6m0s`, `12ms`, `1h2m3.5s`). @returns ms, or `null`. */
export function parseGoDuration(value: string | null): number | null {
  const text = value?.trim() ?? "";
  if (text === "0") return 0;
  if (!/^(?:\d+(?:\.\d+)?(?:ns|us|µs|μs|ms|s|m|h))+$/.test(text)) return null;
  let totalMs = 0;
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)([a-zµμ]+)/g)) {
    totalMs += Number(number) * GO_UNIT_MS.get(unit!)!;
  }
  return Math.min(Math.ceil(totalMs), LAST_MOMENT_MS);
}

const STAMP = "(\\d{4})-(\\d{2})-(\\d{2})[ T](\\d{2}):(\\d{2}):(\\d{2})";
const RESET_TEXTS = [
  new RegExp(`\\bresets? (?:at|on) ${STAMP}`, "i"),
  new RegExp(`将在\\s*${STAMP}\\s*重置`),
];

/**
 * z.ai's reset time in its message, English or Chinese: without a zone, and meant as UTC+8 on every host.
 *
 * @param maxAheadMs  longest believable wait for that limit (`FIVE_HOUR_RESET_LIMIT_MS` …).
 * @returns UTC epoch ms; `null` when there is none, or it is over or too far ahead to be true.
 */
export function parseUtcPlus8ResetText(
  text: string | null,
  nowMs: number,
  maxAheadMs: number,
): number | null {
  const match = RESET_TEXTS.map((pattern) => pattern.exec(text ?? "")).find((found) => found !== null);
  if (!match) return null;
  const [year, month, day, hour, minute, second] = match.slice(1).map(Number);
  const local = utcMoment(year!, month!, day!, hour!, minute!, second!);
  if (local === null) return null;
  const moment = local - UTC_PLUS_8_MS;
  return moment > nowMs && moment <= nowMs + maxAheadMs ? moment : null;
}

const REGAIN_ACCESS = /\bregain access on (\d{4})-(\d{2})-(\d{2}) at (\d{2}):(\d{2}) UTC\b/i;

/** Anthropic's "You will regain access on 2026-04-01 at 00:00 UTC". @returns UTC epoch ms if ahead, else `null`. */
export function parseRegainAccess(text: string | null, nowMs: number): number | null {
  const match = REGAIN_ACCESS.exec(text ?? "");
  if (match === null) return null;
  const [year, month, day, hour, minute] = match.slice(1).map(Number);
  const moment = utcMoment(year!, month!, day!, hour!, minute!, 0);
  return moment !== null && moment > nowMs ? moment : null;
}
