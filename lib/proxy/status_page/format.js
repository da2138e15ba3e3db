/** Times, spans and numbers as the page writes them. */

const LOCALE = "en-GB";
const clockFormat = new Intl.DateTimeFormat(LOCALE, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const secondsFormat = new Intl.DateTimeFormat(LOCALE, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const weekdayFormat = new Intl.DateTimeFormat(LOCALE, { weekday: "short" });
const dayFormat = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "short" });
const numberFormat = new Intl.NumberFormat(LOCALE);

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** `0:07`, `59:32`, `1:59:32`, `3 d 04 h`: seconds are shown while they matter. */
export function countdown(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  const two = (value) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3_600);
  if (hours >= 48) return `${Math.floor(hours / 24)} d ${two(hours % 24)} h`;
  const rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return hours > 0 ? `${hours}:${rest}` : rest.replace(/^0(\d:)/, "$1");
}

/** `40 s`, `12 min`, `2 h 10 min`, `3 d 4 h`: a distance to read, not to watch. */
export function distance(ms) {
  const spent = Math.max(0, ms);
  if (spent < MINUTE_MS) return `${Math.round(spent / 1_000)} s`;
  if (spent < HOUR_MS) return `${Math.round(spent / MINUTE_MS)} min`;
  const [big, small, bigWord, smallWord, unit] = spent < DAY_MS
    ? [HOUR_MS, MINUTE_MS, "h", "min", 60]
    : [DAY_MS, HOUR_MS, "d", "h", 24];
  const total = Math.round(spent / small);
  const rest = total % unit;
  const whole = Math.floor((total * small) / big);
  return rest === 0 ? `${whole} ${bigWord}` : `${whole} ${bigWord} ${rest} ${smallWord}`;
}

/** `just now`, `12 min ago`: nothing that changes every second. */
export function ago(ms) {
  return ms < MINUTE_MS ? "just now" : `${distance(ms)} ago`;
}

/** `40 ms`, `2.1 s`, `3 min 20 s`. */
export function duration(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** `14:30` today, `Tue 14:30` within a week, else `12 Mar 14:30`; in the reader's time zone. */
export function clockTime(atMs, nowMs) {
  const at = new Date(atMs);
  const time = clockFormat.format(at);
  if (at.toDateString() === new Date(nowMs).toDateString()) return time;
  const near = Math.abs(atMs - nowMs) < 6 * DAY_MS;
  return `${(near ? weekdayFormat : dayFormat).format(at)} ${time}`;
}

export function secondTime(atMs) {
  return secondsFormat.format(new Date(atMs));
}

export function number(value) {
  return numberFormat.format(value);
}

/** `1 account`, `3 accounts`. */
export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** Epoch ms of an ISO time, or null. */
export function timeOf(iso) {
  return iso === null || iso === undefined ? null : Date.parse(iso);
}

/** How people know the account. */
export function accountLabel(account) {
  return account.email ?? account.id;
}

/** An id as it is shown where there is little room: both ends tell more than the beginning. */
export function shorten(id, length = 34) {
  return id.length <= length ? id : `${id.slice(0, length - 13)}…${id.slice(-12)}`;
}
