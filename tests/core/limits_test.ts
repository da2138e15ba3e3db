/** What a 429 leaves behind: the later of two times, the correction by a fresh attempt, blocks without a time. */
import { assertEquals, assertStrictEquals } from "@std/assert";
import fc from "fast-check";
import { HEALTHY, type JudgedAttempt } from "../../lib/core/account_health.ts";
import { INFERRED_QUOTA_MS, INFERRED_RATE_MS, limitAccount, limitModel } from "../../lib/core/limits.ts";
import type { Outcome } from "../../lib/core/outcome.ts";
import type { AccountHealth } from "../../lib/core/records.ts";
import { limitedSomehow, limitedUntil } from "../support/outcomes.ts";

const NOW = 1_700_000_000_000;

type Limited = Extract<Outcome, { kind: "limited" }>;

function attempt(launchedAtMs: number): JudgedAttempt {
  return { account: "a", attempt: "req_1:1", model: "m1", launchedAtMs, fingerprint: "f1" };
}

function limit(health: AccountHealth, outcome: Outcome, launchedAtMs: number, nowMs: number): AccountHealth {
  return limitAccount(health, outcome as Limited, attempt(launchedAtMs), nowMs);
}

/** A deadline until NOW + 60 s, written at NOW by an attempt launched a second before. */
const LIMITED = limit(HEALTHY, limitedUntil(NOW + 60_000), NOW - 1_000, NOW);

const corrections = [
  { name: "a later time of an attempt as old", ahead: 90_000, launched: NOW - 900, want: 90_000 },
  { name: "an earlier time of an attempt as old", ahead: 30_000, launched: NOW - 900, want: 60_000 },
  { name: "an earlier time launched in the same millisecond", ahead: 30_000, launched: NOW, want: 60_000 },
  {
    name: "an earlier time of an attempt launched after it was written",
    ahead: 30_000,
    launched: NOW + 1,
    want: 30_000,
  },
  {
    name: "a later time of an attempt launched after it was written",
    ahead: 90_000,
    launched: NOW + 1,
    want: 90_000,
  },
] as const;
for (const c of corrections) {
  Deno.test(`limitAccount() keeps +${c.want} ms of a live +60000 ms: ${c.name} (C17)`, () => {
    const after = limit(LIMITED, limitedUntil(NOW + c.ahead), c.launched, NOW + 5);
    assertEquals(after.deadline!.untilMs - NOW, c.want);
  });
}

Deno.test("limitAccount() lets a fresh attempt end a deadline: its time is over already", () => {
  assertEquals(limit(LIMITED, limitedUntil(NOW), NOW + 1, NOW + 5).deadline, null);
});

Deno.test("limitAccount() writes no deadline for a time that is over, and still counts as a 429", () => {
  const after = limit(HEALTHY, limitedUntil(NOW), NOW - 1, NOW);
  assertEquals([after.deadline, after.probeOwed, after.limitedAtMs], [null, true, NOW]);
});

Deno.test("limitAccount() replaces a deadline that ran out, whatever its length", () => {
  const after = limit(LIMITED, limitedUntil(NOW + 61_000), NOW - 1, NOW + 60_000);
  assertEquals(after.deadline!.untilMs, NOW + 61_000);
});

Deno.test("limitAccount() keeps a time of thirty days in full (C19)", () => {
  const after = limit(HEALTHY, limitedUntil(NOW + 2_592_000_000), NOW, NOW);
  assertEquals(after.deadline!.untilMs - NOW, 2_592_000_000);
});

Deno.test("limitAccount() ends where the latest of concurrent statements says, in every order (B013)", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 600_000 }), { minLength: 1, maxLength: 6 }), (aheads) => {
      const after = aheads.reduce(
        (health, ahead, at) => limit(health, limitedUntil(NOW + 1_000 + ahead), NOW - 1, NOW + at),
        HEALTHY,
      );
      assertEquals(after.deadline!.untilMs, NOW + 1_000 + Math.max(...aheads));
    }),
  );
});

const inferred = [
  { name: "rate", first: "rate", second: null, want: INFERRED_RATE_MS },
  { name: "quota", first: "quota", second: null, want: INFERRED_QUOTA_MS },
  { name: "rate again: keeps its anchor", first: "rate", second: "rate", want: INFERRED_RATE_MS },
  { name: "quota after rate: longer news", first: "rate", second: "quota", want: INFERRED_QUOTA_MS + 500 },
  { name: "rate after quota: the longer stays", first: "quota", second: "rate", want: INFERRED_QUOTA_MS },
] as const;
for (const c of inferred) {
  Deno.test(`limitAccount() infers ${c.want} ms: ${c.name}`, () => {
    let after = limit(HEALTHY, limitedSomehow(c.first), NOW, NOW);
    if (c.second !== null) after = limit(after, limitedSomehow(c.second), NOW, NOW + 500);
    assertEquals(after.inferred!.untilMs - NOW, c.want);
  });
}

Deno.test("limitAccount() writes an inferred block beside a live deadline, which stays", () => {
  const after = limit(LIMITED, limitedSomehow("rate"), NOW, NOW + 1);
  assertStrictEquals(after.deadline, LIMITED.deadline);
  assertEquals(after.inferred!.untilMs, NOW + 1 + INFERRED_RATE_MS);
});

Deno.test("limitModel() limits one model and leaves account, override and other models alone, row 23", () => {
  const before: AccountHealth = { ...HEALTHY, overrideUntilMs: NOW + 1_000 };
  const stated = limitModel(before, limitedUntil(NOW + 9_000, "model") as Limited, attempt(NOW), "m1", NOW);
  assertEquals([...stated.modelDeadlines.keys()], ["m1"]);
  assertEquals([stated.deadline, stated.overrideUntilMs, stated.probeOwed], [null, NOW + 1_000, false]);
  const guessed = limitModel(before, limitedSomehow("rate", "model") as Limited, attempt(NOW), "m1", NOW);
  assertEquals(guessed.modelInferred.get("m1")!.untilMs, NOW + INFERRED_RATE_MS);
});

Deno.test("limitModel() drops a model's deadline when a fresh attempt states a time that is over", () => {
  const before = limitModel(
    HEALTHY,
    limitedUntil(NOW + 9_000, "model") as Limited,
    attempt(NOW - 1),
    "m1",
    NOW,
  );
  const after = limitModel(before, limitedUntil(NOW, "model") as Limited, attempt(NOW + 1), "m1", NOW + 2);
  assertEquals(after.modelDeadlines.size, 0);
});
