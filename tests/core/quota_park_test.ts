/** What pages may block (state-machine-facts 2B, ruling 1): once, briefly, and never against real traffic. */
import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import fc from "fast-check";
import { HEALTHY } from "../../lib/core/account_health.ts";
import {
  applyReading,
  dropFamilyParks,
  familyCovers,
  holdFamilyParks,
  livePark,
  PARK_LIMIT_MS,
  PARK_WITHOUT_RESET_MS,
  readsExhausted,
} from "../../lib/core/quota_park.ts";
import type { AccountHealth, QuotaReading, QuotaWindow } from "../../lib/core/records.ts";

const NOW = 1_700_000_000_000;
const DAY_MS = 86_400_000;

function window(usedPercent: number | null, given: Partial<QuotaWindow> = {}): QuotaWindow {
  return { name: "7d", usedPercent, resetAtMs: NOW + 4 * DAY_MS, modelFamily: null, ...given };
}

function reading(windows: readonly QuotaWindow[], given: Partial<QuotaReading> = {}): QuotaReading {
  return {
    observedAtMs: NOW,
    source: "usage_page",
    windows,
    limitReached: null,
    servesBeyondWindows: false,
    creditsAvailable: null,
    plan: null,
    ...given,
  };
}

const SPENT = reading([window(100)]);

function read(health: AccountHealth, given: QuotaReading, nowMs = NOW): AccountHealth {
  return applyReading(health, given, PARK_LIMIT_MS, nowMs);
}

function later(given: QuotaReading, ms: number): QuotaReading {
  return { ...given, observedAtMs: given.observedAtMs + ms };
}

const verdicts: readonly { name: string; reading: QuotaReading; want: boolean | null }[] = [
  { name: "every window spent", reading: reading([window(100), window(99)]), want: true },
  { name: "exactly two percent left", reading: reading([window(98)]), want: true },
  { name: "a little more than two percent left", reading: reading([window(97.9)]), want: false },
  { name: "one window with room", reading: reading([window(100), window(40)]), want: false },
  {
    name: "windows that report nothing count neither way",
    reading: reading([window(null), window(100)]),
    want: true,
  },
  { name: "no window reports", reading: reading([window(null)]), want: null },
  { name: "no window at all", reading: reading([]), want: null },
  { name: "the upstream says reached", reading: reading([window(10)], { limitReached: true }), want: true },
  {
    name: "the upstream says not reached, no figures",
    reading: reading([], { limitReached: false }),
    want: false,
  },
  {
    name: "figures outweigh a bare no",
    reading: reading([window(100)], { limitReached: false }),
    want: true,
  },
  {
    name: "overage still serves",
    reading: reading([window(100)], { servesBeyondWindows: true }),
    want: false,
  },
  {
    name: "only a model family is spent",
    reading: reading([window(100, { modelFamily: "opus" })]),
    want: null,
  },
];
for (const c of verdicts) {
  Deno.test(`readsExhausted() says ${c.want}: ${c.name}`, () =>
    assertEquals(readsExhausted(c.reading), c.want));
}

const ends: readonly { name: string; reading: QuotaReading; wantMs: number | null }[] = [
  { name: "a far reset is capped", reading: SPENT, wantMs: PARK_LIMIT_MS },
  {
    name: "a near reset is kept",
    reading: reading([window(100, { resetAtMs: NOW + 60_000 })]),
    wantMs: 60_000,
  },
  {
    name: "all windows have to come back",
    reading: reading([window(100, { resetAtMs: NOW + 60_000 }), window(100, { resetAtMs: NOW + 90_000 })]),
    wantMs: 90_000,
  },
  {
    name: "no reset is known",
    reading: reading([window(100, { resetAtMs: null })]),
    wantMs: PARK_WITHOUT_RESET_MS,
  },
  {
    name: "one reset of two is known",
    reading: reading([window(100, { resetAtMs: null }), window(100, { resetAtMs: NOW + 60_000 })]),
    wantMs: PARK_LIMIT_MS,
  },
  {
    name: "ten minutes old: counted from then",
    reading: later(SPENT, -600_000),
    wantMs: PARK_LIMIT_MS - 600_000,
  },
  { name: "older than the cap: over already", reading: later(SPENT, -PARK_LIMIT_MS), wantMs: null },
  { name: "from the future: as of now", reading: later(SPENT, 600_000), wantMs: PARK_LIMIT_MS },
  { name: "reset in the past", reading: reading([window(100, { resetAtMs: NOW - 1 })]), wantMs: null },
];
for (const c of ends) {
  Deno.test(`applyReading() parks ${c.wantMs ?? "nobody"}: ${c.name}`, () => {
    const { park } = read(HEALTHY, c.reading);
    assertEquals(park === null ? null : park.untilMs - NOW, c.wantMs);
  });
}

Deno.test("applyReading() never moves a live park, however often the page repeats itself (B-I2)", () => {
  let health = read(HEALTHY, SPENT);
  const { park } = health;
  for (let minute = 1; minute < 30; minute++) {
    health = read(health, later(SPENT, minute * 60_000), NOW + minute * 60_000);
    assertStrictEquals(health.park, park);
  }
});

Deno.test("applyReading() arms no second park before a real answer, once one ended by time", () => {
  let health = read(HEALTHY, SPENT);
  const endMs = health.park!.untilMs;
  assertEquals(livePark(health, null, endMs - 1) !== null, true);
  assertEquals(livePark(health, null, endMs), null);
  for (let minute = 0; minute < 120; minute++) {
    health = read(health, later(SPENT, endMs - NOW + minute * 60_000), endMs + minute * 60_000);
    assertEquals([health.park, health.probeOwed], [null, true]);
  }
  const served: AccountHealth = { ...health, probeOwed: false };
  const again = read(served, later(SPENT, 4 * 3_600_000), NOW + 4 * 3_600_000);
  assert(again.park !== null);
});

Deno.test("applyReading() ends a park at better news, and contradicting news does not re-arm it", () => {
  const parked = read(HEALTHY, SPENT);
  const better = read(parked, later(reading([window(20)]), 1_000), NOW + 1_000);
  assertEquals(better.park, null);
  assertEquals(read(better, later(SPENT, 2_000), NOW + 2_000).park, null);
});

Deno.test("applyReading() ignores news older than what is known", () => {
  const known = read(HEALTHY, reading([window(20)]));
  assertStrictEquals(read(known, later(SPENT, -1)), known);
});

Deno.test("applyReading() with nothing to report changes no park", () => {
  const parked = read(HEALTHY, SPENT);
  const after = read(parked, later(reading([window(null)]), 1_000), NOW + 1_000);
  assertStrictEquals(after.park, parked.park);
});

Deno.test("applyReading() obeys the configured cap", () => {
  const { park } = applyReading(HEALTHY, SPENT, 60_000, NOW);
  assertEquals(park!.untilMs, NOW + 60_000);
});

Deno.test("applyReading() makes the credits test due at once when newer news shows credits (ruling 20)", () => {
  const poor: AccountHealth = {
    ...HEALTHY,
    credits: { openedAtMs: NOW - 10, code: "", probeAtMs: NOW - 10 + 3_600_000 },
  };
  const rich = reading([], { creditsAvailable: true });
  assertEquals(read(poor, rich).credits!.probeAtMs, NOW);
  assertStrictEquals(read(poor, later(rich, -10)).credits, poor.credits);
  assertStrictEquals(read(poor, reading([], { creditsAvailable: false })).credits, poor.credits);
});

Deno.test("livePark() is silenced by the override, until exactly its end", () => {
  const parked = { ...read(HEALTHY, SPENT), overrideUntilMs: NOW + 1_000 };
  assertEquals(livePark(parked, null, NOW + 999), null);
  assertStrictEquals(livePark(parked, null, NOW + 1_000), parked.park);
});

const families = [
  { family: "opus", model: "claude-opus-4-8", want: true },
  { family: "Opus", model: "claude-OPUS-4.8", want: true },
  { family: "opus-4", model: "claude-opus-4-8", want: true },
  { family: "pus", model: "claude-opus-4-8", want: false },
  { family: "opus", model: "claude-sonnet-4", want: false },
  { family: "gpt-5.5", model: "gpt-5.5", want: true },
] as const;
for (const c of families) {
  Deno.test(`familyCovers() says ${c.want} for ${c.family} and ${c.model}`, () => {
    assertEquals(familyCovers(c.family, c.model), c.want);
  });
}

Deno.test("applyReading() parks a model family alone", () => {
  const after = read(HEALTHY, reading([window(10), window(100, { modelFamily: "opus" })]));
  assertEquals(after.park, null);
  assertEquals(livePark(after, "claude-opus-4-8", NOW)?.untilMs, NOW + PARK_LIMIT_MS);
  assertEquals([livePark(after, "claude-sonnet-4", NOW), livePark(after, null, NOW)], [null, null]);
});

Deno.test("applyReading() arms a family's park once, until a success of the family", () => {
  const spent = reading([window(100, { modelFamily: "opus" })]);
  const parked = read(HEALTHY, spent);
  const endMs = NOW + PARK_LIMIT_MS;
  const later31 = read(parked, later(spent, PARK_LIMIT_MS + 60_000), endMs + 60_000);
  assertEquals(livePark(later31, "opus", endMs + 60_000), null);
  const served = { ...later31, modelParks: dropFamilyParks(later31.modelParks, "claude-opus-4-8") };
  assertEquals(served.modelParks.size, 0);
  const again = read(served, later(spent, PARK_LIMIT_MS + 120_000), endMs + 120_000);
  assert(livePark(again, "opus", endMs + 120_000) !== null);
});

Deno.test("applyReading() ends a family's park at better news", () => {
  const parked = read(HEALTHY, reading([window(100, { modelFamily: "opus" })]));
  const after = read(parked, later(reading([window(5, { modelFamily: "opus" })]), 1), NOW + 1);
  assertEquals(livePark(after, "opus", NOW + 1), null);
});

Deno.test("holdFamilyParks() ends the parks of one model's families, or all", () => {
  const parked = read(
    HEALTHY,
    reading([window(100, { modelFamily: "opus" }), window(100, { modelFamily: "sonnet" })]),
  );
  const one = holdFamilyParks(parked.modelParks, "claude-opus-4-8");
  assertEquals([one.get("opus")!.untilMs, one.get("sonnet")!.untilMs], [0, NOW + PARK_LIMIT_MS]);
  assertEquals([...holdFamilyParks(parked.modelParks).values()].map((park) => park.untilMs), [0, 0]);
});

Deno.test("applyReading() keeps every park within 30 minutes of its observation, whatever pages say (P18)", () => {
  const page = fc.record({
    usedPercent: fc.option(fc.integer({ min: 0, max: 120 }), { nil: null }),
    reset: fc.option(fc.integer({ min: -DAY_MS, max: 7 * DAY_MS }), { nil: null }),
    skew: fc.integer({ min: -7_200_000, max: 7_200_000 }),
    step: fc.integer({ min: 0, max: 1_200_000 }),
  });
  fc.assert(fc.property(fc.array(page, { maxLength: 30 }), (pages) => {
    let health = HEALTHY;
    let nowMs = NOW;
    let parks = 0;
    for (const { usedPercent, reset, skew, step } of pages) {
      nowMs += step;
      const before = health;
      health = read(
        health,
        reading([window(usedPercent, { resetAtMs: reset === null ? null : nowMs + reset })], {
          observedAtMs: nowMs + skew,
        }),
        nowMs,
      );
      const { park } = health;
      if (park === null || park === before.park) continue;
      parks++;
      assert(park.untilMs <= park.observedAtMs + PARK_LIMIT_MS && park.observedAtMs <= nowMs);
    }
    // Nothing but pages was seen, so at most one park was ever armed.
    assert(parks <= 1);
  }));
});

Deno.test("applyReading() keeps of a page only what a record can hold", () => {
  const wild = reading(
    Array.from(
      { length: 100 },
      () =>
        window(Number.NaN, { name: `x\u0000${"y".repeat(500)}`, resetAtMs: 1e300, modelFamily: "\ud800" }),
    ),
    { plan: "pro\n", observedAtMs: NOW - 0.5 },
  );
  const kept = read(HEALTHY, wild).reading!;
  assertEquals([kept.windows.length, kept.plan, kept.observedAtMs], [64, "pro", NOW]);
  assertEquals(kept.windows[0], {
    name: `x${"y".repeat(126)}`,
    usedPercent: null,
    resetAtMs: 8_640_000_000_000_000,
    modelFamily: "\ufffd",
  });
});
