import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { StatedTime } from "../../lib/core/outcome.ts";
import {
  FIVE_HOUR_RESET_LIMIT_MS,
  laterOf,
  MONTHLY_RESET_LIMIT_MS,
  parseGoDuration,
  parseHttpDate,
  parseMessageDelay,
  parseRegainAccess,
  parseRetryAfter,
  parseRetryAfterMs,
  parseUtcPlus8ResetText,
  STATED_WAIT_LIMIT_MS,
} from "../../lib/core/retry_after.ts";

/** Tue, 28 Apr 2026 12:00:00 GMT. */
const NOW = Date.UTC(2026, 3, 28, 12, 0, 0);
const LAST = 8.64e15;

const retryAfter: { name: string; value: string | null; date?: string; want: number | null }[] = [
  { name: "seconds", value: "29", want: NOW + 29_000 },
  { name: "one second", value: "1", want: NOW + 1_000 },
  { name: "zero", value: "0", want: null },
  { name: "a fraction", value: "0.5", want: NOW + 500 },
  { name: "space around", value: " 30 ", want: NOW + 30_000 },
  { name: "sent twice", value: "30, 120", want: NOW + 120_000 },
  { name: "30 days (B034)", value: "2592000", want: NOW + 2_592_000_000 },
  { name: "seconds without end", value: "9".repeat(400), want: LAST },
  { name: "negative", value: "-5", want: null },
  { name: "a word", value: "soon", want: null },
  { name: "a number with a unit", value: "30s", want: null },
  { name: "hexadecimal", value: "0x10", want: null },
  { name: "empty", value: "", want: null },
  { name: "absent", value: null, want: null },
  { name: "IMF-fixdate 90 s ahead", value: "Tue, 28 Apr 2026 12:01:30 GMT", want: NOW + 90_000 },
  { name: "RFC 850", value: "Tuesday, 28-Apr-26 12:01:30 GMT", want: NOW + 90_000 },
  { name: "asctime", value: "Tue Apr 28 12:01:30 2026", want: NOW + 90_000 },
  { name: "a date 90 s ago", value: "Tue, 28 Apr 2026 11:58:30 GMT", want: null },
  { name: "a date that is now", value: "Tue, 28 Apr 2026 12:00:00 GMT", want: null },
  {
    name: "a date measured against a Date 5 min behind our clock",
    value: "Tue, 28 Apr 2026 11:56:30 GMT",
    date: "Tue, 28 Apr 2026 11:55:00 GMT",
    want: NOW + 90_000,
  },
  {
    name: "a date in our past by our clock, but over by the Date as well",
    value: "Tue, 28 Apr 2026 11:54:00 GMT",
    date: "Tue, 28 Apr 2026 11:55:00 GMT",
    want: null,
  },
  { name: "an unreadable Date", value: "Tue, 28 Apr 2026 12:01:30 GMT", date: "now", want: NOW + 90_000 },
  {
    name: "seconds beside a wrong Date",
    value: "10",
    date: "Tue, 28 Apr 2020 11:55:00 GMT",
    want: NOW + 10_000,
  },
  { name: "an ISO date, which is no HTTP-date", value: "2026-04-28T12:01:30Z", want: null },
];
for (const c of retryAfter) {
  Deno.test(`parseRetryAfter() reads ${c.name}`, () => {
    assertEquals(parseRetryAfter(c.value, NOW, c.date ?? null), c.want);
  });
}

for (
  const [value, want] of [
    ["1500", NOW + 1500],
    ["0.2", NOW + 1],
    ["0", null],
    ["-1", null],
    ["x", null],
    [null, null],
    ["9".repeat(400), LAST],
  ] as const
) {
  Deno.test(`parseRetryAfterMs() reads ${value?.slice(0, 20)}`, () =>
    assertEquals(parseRetryAfterMs(value, NOW), want));
}

const dates: [string, number | null][] = [
  ["Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000],
  ["Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777_000],
  ["Sun Nov  6 08:49:37 1994", 784_111_777_000],
  ["Sunday, 06-Nov-76 08:49:37 GMT", Date.UTC(2076, 10, 6, 8, 49, 37)],
  ["Sunday, 06-Nov-77 08:49:37 GMT", Date.UTC(1977, 10, 6, 8, 49, 37)],
  ["Sat, 31 Dec 2016 23:59:60 GMT", Date.UTC(2017, 0, 1)],
  ["Thu, 29 Feb 2024 00:00:00 GMT", Date.UTC(2024, 1, 29)],
  ["Sat, 29 Feb 2025 00:00:00 GMT", null],
  ["Sun, 31 Apr 2026 00:00:00 GMT", null],
  ["Sun, 00 Nov 1994 08:49:37 GMT", null],
  ["Sun, 06 Nov 1994 24:00:00 GMT", null],
  ["Sun, 06 Nov 1994 08:60:37 GMT", null],
  ["Sun, 06 Nov 1994 08:49:61 GMT", null],
  ["Sun, 06 Nov 0094 08:49:37 GMT", null],
  ["Sun, 6 Nov 1994 08:49:37 GMT", null],
  ["Sun, 06 Nov 1994 08:49:37 UTC", null],
  ["Sun, 06 Foo 1994 08:49:37 GMT", null],
  ["Xyz, 06 Nov 1994 08:49:37 GMT", null],
  ["Sun, 06 Nov 1994 08:49:37", null],
];
for (const [text, want] of dates) {
  Deno.test(`parseHttpDate() reads ${text} as ${want === null ? "nothing" : "a date"}`, () => {
    assertEquals(parseHttpDate(text, NOW), want);
  });
}

Deno.test("parseHttpDate() reads back what toUTCString writes", () => {
  const seconds = fc.integer({ min: Date.UTC(1970, 0) / 1000, max: Date.UTC(9999, 11, 31) / 1000 });
  fc.assert(
    fc.property(seconds, (s) => assertEquals(parseHttpDate(new Date(s * 1000).toUTCString(), NOW), s * 1000)),
  );
});

const messages: [string, number | null][] = [
  // B032
  ["Rate limit reached. Please try again in 6m0s", 360_000],
  ["try again in 20m", 1_200_000],
  ["try again in 1h2m3s", 3_723_000],
  ["try again in 350ms", 350],
  ["try again in 1 month", null],
  ["try again in 5 minutes and then some", 300_000],
  // wire-facts 1.4, 1.6, 8.1
  ["Limit 30000, Used 22999, Requested 12528. Please try again in 11.054s. Visit us.", 11_054],
  ["try again in 28ms", 28],
  ["try again in 2 seconds", 2_000],
  ["Please try again in 20s", 20_000],
  ["try again in 1 second.", 1_000],
  ["TRY AGAIN IN 3S", 3_000],
  ["try again in 1 hour 30 minutes", 5_400_000],
  ["try again in 1 hour and 30 minutes.", 5_400_000],
  ["try again in 1 hour, 5 seconds", 3_605_000],
  ["try again in 2 days", 172_800_000],
  ["try again in 5 minutes 3 times", 300_000],
  ["try again in 5 minutes and 3 accounts", 300_000],
  ["try again in 5s (or 6 retries)", 5_000],
  ["please try again in a while, or try again in 7s", 7_000],
  // A letter following a unit voids the match.
  ["try again in 5mx", null],
  ["try again in 5monkeys", null],
  ["try again in 1h2x", null],
  ["try again in 20m30", null],
  ["try again in 5", null],
  ["try again in five minutes", null],
  ["try again in 0s", null],
  ["try again in -5s", null],
  ["retry after 5s", null],
  ["Please try again later.", null],
  ["", null],
  [`try again in ${"9".repeat(400)}s`, LAST],
];
for (const [text, want] of messages) {
  Deno.test(`parseMessageDelay() reads ${want} from "${text.slice(-50)}"`, () => {
    assertEquals(parseMessageDelay(text), want);
  });
}

Deno.test("parseMessageDelay() reads null from no message, and any text without fault", () => {
  assertEquals(parseMessageDelay(null), null);
  fc.assert(fc.property(fc.string(), (text) => {
    const delay = parseMessageDelay(`try again in ${text}`);
    assert(delay === null || (Number.isInteger(delay) && delay > 0));
  }));
});

const durations: [string | null, number | null][] = [
  ["6m0s", 360_000],
  ["12ms", 12],
  ["1s", 1_000],
  ["1h2m3.5s", 3_723_500],
  ["250us", 1],
  ["5µs", 1],
  ["3ns", 1],
  ["0s", 0],
  ["0", 0],
  ["1.5", null],
  ["1d", null],
  ["-1s", null],
  ["1s ago", null],
  ["", null],
  [null, null],
];
for (const [text, want] of durations) {
  Deno.test(`parseGoDuration() reads ${text} as ${want}`, () => assertEquals(parseGoDuration(text), want));
}

/** 2026-08-27 20:00:00 in UTC+8. */
const ZAI_NOW = Date.UTC(2026, 7, 27, 12, 0, 0);
const at = (hour: number, minute: number, second: number) => Date.UTC(2026, 7, 27, hour, minute, second);
const resets: { name: string; text: string | null; limit?: number; want: number | null }[] = [
  {
    name: "English",
    text: "Usage limit reached for 5 hour. Your limit will reset at 2026-08-27 21:31:39",
    want: at(13, 31, 39),
  },
  {
    name: "English in brackets, before a request id that begins with a time",
    text:
      "[1308][Usage limit reached for 5 hour. Your limit will reset at 2026-08-27 21:31:39][20260827200001]",
    want: at(13, 31, 39),
  },
  {
    name: "Chinese",
    text: "已达到 5 小时的使用上限。您的限额将在 2026-08-27 21:31:39 重置。",
    want: at(13, 31, 39),
  },
  { name: "one second ahead", text: "reset at 2026-08-27 20:00:01", want: at(12, 0, 1) },
  { name: "now", text: "reset at 2026-08-27 20:00:00", want: null },
  { name: "the last believable second", text: "reset at 2026-08-28 01:01:00", want: at(17, 1, 0) },
  { name: "one second beyond", text: "reset at 2026-08-28 01:01:01", want: null },
  {
    name: "a monthly limit",
    text: "reset at 2026-09-20 00:00:00",
    limit: MONTHLY_RESET_LIMIT_MS,
    want: Date.UTC(2026, 8, 19, 16),
  },
  { name: "no real date", text: "reset at 2026-02-30 21:31:39", limit: MONTHLY_RESET_LIMIT_MS, want: null },
  { name: "a time that is no reset", text: "started at 2026-08-27 21:31:39", want: null },
  { name: "no time", text: "Your limit will reset soon", want: null },
  { name: "no text", text: null, want: null },
];
for (const c of resets) {
  Deno.test(`parseUtcPlus8ResetText() reads ${c.name}`, () => {
    assertEquals(parseUtcPlus8ResetText(c.text, ZAI_NOW, c.limit ?? FIVE_HOUR_RESET_LIMIT_MS), c.want);
  });
}

const REGAIN =
  "You have reached your specified API usage limits. You will regain access on 2026-05-01 at 00:30 UTC.";
for (
  const [name, text, want] of [
    ["the sentence", REGAIN, Date.UTC(2026, 4, 1, 0, 30)],
    ["a time that is over", REGAIN.replace("2026-05", "2026-04"), null],
    ["no real date", REGAIN.replace("05-01", "02-30"), null],
    ["another zone", REGAIN.replace("UTC", "PST"), null],
    ["no text", null, null],
  ] as const
) {
  Deno.test(`parseRegainAccess() reads ${name}`, () => assertEquals(parseRegainAccess(text, NOW), want));
}

const time = (seconds: number, source: StatedTime["source"]): StatedTime => ({
  untilMs: NOW + seconds * 1000,
  source,
});
const YEAR_S = STATED_WAIT_LIMIT_MS / 1000;
const statements: { name: string; stated: (StatedTime | null)[]; want: StatedTime | null }[] = [
  { name: "nothing", stated: [], want: null },
  { name: "nothing readable", stated: [null, null], want: null },
  { name: "the only one", stated: [null, time(5, "body")], want: time(5, "body") },
  {
    name: "the later of header and body (C18)",
    stated: [time(5, "retry_after"), time(9, "body")],
    want: time(9, "body"),
  },
  {
    name: "the later of body and header (C18)",
    stated: [time(5, "body"), time(9, "headers")],
    want: time(9, "headers"),
  },
  {
    name: "the valid one when the other is over",
    stated: [time(-5, "body"), time(3, "retry_after")],
    want: time(3, "retry_after"),
  },
  { name: "nothing that ends now", stated: [time(0, "body")], want: null },
  {
    name: "a header before later prose (B032)",
    stated: [time(90, "message"), time(3, "retry_after")],
    want: time(3, "retry_after"),
  },
  {
    name: "a header before earlier prose",
    stated: [time(3, "retry_after"), time(1, "message")],
    want: time(3, "retry_after"),
  },
  {
    name: "prose when the header is over",
    stated: [time(-1, "retry_after"), time(4, "message")],
    want: time(4, "message"),
  },
  {
    name: "the later of two prose times",
    stated: [time(4, "message"), time(6, "message")],
    want: time(6, "message"),
  },
  { name: "a body time 366 days ahead", stated: [time(YEAR_S, "body")], want: time(YEAR_S, "body") },
  {
    name: "no body time beyond",
    stated: [time(YEAR_S + 1, "body"), time(2, "headers")],
    want: time(2, "headers"),
  },
  {
    name: "Retry-After beyond, cut there",
    stated: [time(YEAR_S + 1, "retry_after")],
    want: time(YEAR_S, "retry_after"),
  },
  { name: "no time that is no number", stated: [{ untilMs: NaN, source: "body" }], want: null },
];
for (const c of statements) {
  Deno.test(`laterOf() takes ${c.name}`, () => assertEquals(laterOf(c.stated, NOW), c.want));
}

Deno.test("laterOf() gives the same moment in every order", () => {
  const statement = fc.record({
    untilMs: fc.integer({ min: -10, max: 10 }).map((s) => NOW + s * 1000),
    source: fc.constantFrom("retry_after", "body", "headers", "message") as fc.Arbitrary<
      StatedTime["source"]
    >,
  });
  fc.assert(fc.property(fc.array(statement, { maxLength: 5 }), (list) => {
    assertEquals(laterOf(list, NOW)?.untilMs, laterOf(list.toReversed(), NOW)?.untilMs);
  }));
});
