import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  type FinalClass,
  type FinalMember,
  incompleteAnswer,
  resolveFinalError,
  retryAfterSeconds,
} from "../../lib/core/final_error.ts";

const NOW = 1_700_000_000_000;
const LETTERS: Record<string, FinalClass> = {
  M: "excluded",
  D: "disabled",
  C: "credential",
  B: "credits",
  Q: "quota",
  q: "inferred",
  T: "transient",
  I: "idle",
};

/** Reads the facts' notation: a letter, and seconds until ready. A park is a `q`. */
function read(text: string): FinalMember[] {
  return text.split(" ").filter((word) => word !== "").map((word) => ({
    class: LETTERS[word[0]!]!,
    readyAtMs: NOW + Math.round(Number(word.slice(1) || "0") * 1000),
  }));
}

function answer(members: readonly FinalMember[], maxRetryIntervalMs: number) {
  const final = resolveFinalError(members, { nowMs: NOW, maxRetryIntervalMs, undispatched: false });
  return {
    status: final.status,
    code: final.code,
    retryAfter: final.retryAtMs === null ? null : retryAfterSeconds(final.retryAtMs, NOW),
  };
}

/** state-machine-facts 5.2, all rows decided by the multiset alone; the others are driven in pool_runtime_test. */
const examples = [
  [1, "", 503, "auth_unavailable", null],
  [2, "M M", 404, "model_not_found", null],
  [3, "M M", 404, "model_not_found", null],
  [4, "M D", 503, "auth_unavailable", null],
  [5, "M C", 503, "auth_unavailable", null],
  [6, "M T4", 502, "upstream_unavailable", null],
  [7, "M Q600", 429, "rate_limited", 600],
  [8, "D D", 503, "auth_unavailable", null],
  [9, "C C", 503, "auth_unavailable", null],
  [10, "D C B", 503, "auth_unavailable", null],
  [11, "B", 503, "auth_unavailable", null],
  [12, "Q600 Q45", 429, "rate_limited", 45],
  [13, "Q0.2", 429, "rate_limited", 1],
  [14, "Q342000", 429, "rate_limited", 342_000],
  [15, "q60", 429, "rate_limited", 60],
  [16, "Q3600 q60", 429, "rate_limited", 60],
  [17, "q1800 q900", 429, "rate_limited", 900],
  [18, "C Q120", 429, "rate_limited", 120],
  [19, "D Q120 M", 429, "rate_limited", 120],
  [20, "T2 T60", 502, "upstream_unavailable", null],
  [21, "C T2", 502, "upstream_unavailable", null],
  [22, "Q10 T4", 429, "rate_limited", 10],
  [23, "Q30 T4", 429, "rate_limited", 30],
  [24, "Q30.001 T4", 502, "upstream_unavailable", null],
  [25, "Q120 T4", 502, "upstream_unavailable", null],
  [26, "q10 T4", 502, "upstream_unavailable", null],
  [27, "q10 T4", 502, "upstream_unavailable", null],
  [28, "Q10 T4", 502, "upstream_unavailable", null, 0],
  [29, "Q25 Q10 T4", 429, "rate_limited", 10],
  [30, "Q40 q5 T4", 502, "upstream_unavailable", null],
  [31, "Q12 T9 C M D", 429, "rate_limited", 12],
  [32, "Q50 T50", 502, "upstream_unavailable", null],
  [33, "Q20 T4", 429, "rate_limited", 20],
  [34, "I C", 502, "upstream_unavailable", null],
  [35, "I Q600", 429, "rate_limited", 600],
  [36, "Q60 T60 T60", 502, "upstream_unavailable", null],
  [45, "Q0 T4", 429, "rate_limited", 1],
  [46, "Q60", 429, "rate_limited", 60],
  [47, "T25", 502, "upstream_unavailable", null],
] as const;

for (const [number, members, status, code, retryAfter, intervalSeconds = 30] of examples) {
  Deno.test(`resolveFinalError() answers ${status}, example ${number}: ${members || "nothing configured"}`, () => {
    assertEquals(answer(read(members), intervalSeconds * 1000), { status, code, retryAfter });
  });
}

Deno.test("incompleteAnswer() is 408 without a time, example 42", () => {
  const { status, code, retryAtMs } = incompleteAnswer();
  assertEquals({ status, code, retryAtMs }, { status: 408, code: "stream_incomplete", retryAtMs: null });
});

const limits: readonly { name: string; members: readonly FinalMember[]; want: "rate" | "quota" | null }[] = [
  { name: "a rate alone", members: [{ class: "quota", readyAtMs: NOW, isRate: true }], want: "rate" },
  { name: "a quota alone", members: read("Q600"), want: "quota" },
  {
    name: "a near rate beside a far quota",
    members: [...read("Q600"), { class: "inferred", readyAtMs: NOW, isRate: true }],
    want: "quota",
  },
  {
    name: "a rate beside the dead and a passing fault",
    members: [...read("C D M T4"), { class: "quota", readyAtMs: NOW, isRate: true }],
    want: "rate",
  },
  {
    name: "no 429",
    members: [...read("T4"), { class: "inferred", readyAtMs: NOW, isRate: true }],
    want: null,
  },
];
for (const c of limits) {
  Deno.test(`resolveFinalError() names the limit ${c.want}: ${c.name}`, () => {
    const context = { nowMs: NOW, maxRetryIntervalMs: 30_000, undispatched: false };
    assertEquals(resolveFinalError(c.members, context).limit, c.want);
  });
}

const member = fc.record({
  class: fc.constantFrom(...Object.values(LETTERS)),
  readyAtMs: fc.integer({ min: NOW - 5_000, max: NOW + 90_000 }),
  isRate: fc.boolean(),
});

Deno.test("resolveFinalError() gives one answer for every order of the accounts", () => {
  fc.assert(
    fc.property(fc.array(member, { maxLength: 8 }), fc.nat(60_000), (
      members,
      intervalMs,
    ) => {
      const context = { nowMs: NOW, maxRetryIntervalMs: intervalMs, undispatched: true };
      const want = resolveFinalError(members, context);
      for (let turn = 1; turn < members.length; turn++) {
        const rotated = [...members.slice(turn), ...members.slice(0, turn)];
        assertEquals(resolveFinalError(rotated, context), want);
      }
      assertEquals(resolveFinalError(members.toReversed(), context), want);
    }),
  );
});

Deno.test("resolveFinalError() names a time with 429 alone, and a next try only when somebody may serve", () => {
  fc.assert(fc.property(fc.array(member, { maxLength: 8 }), (members) => {
    const final = resolveFinalError(members, {
      nowMs: NOW,
      maxRetryIntervalMs: 30_000,
      undispatched: false,
    });
    assertEquals(final.retryAtMs !== null, final.status === 429);
    const serviceable = members.some(({ class: c }) =>
      c === "quota" || c === "inferred" || c === "transient" || c === "idle"
    );
    assertEquals(final.nextRetryAtMs !== null, serviceable);
    if (final.retryAtMs !== null) assertEquals(retryAfterSeconds(final.retryAtMs, NOW) >= 1, true);
  }));
});

const seconds = [
  { name: "over already", aheadMs: -5_000, want: 1 },
  { name: "now", aheadMs: 0, want: 1 },
  { name: "a whole second", aheadMs: 1_000, want: 1 },
  { name: "a millisecond more", aheadMs: 1_001, want: 2 },
  { name: "beyond a 32-bit timer", aheadMs: 2_592_000_000, want: 2_592_000 },
] as const;
for (const c of seconds) {
  Deno.test(`retryAfterSeconds() is ${c.want}: ${c.name}`, () => {
    assertEquals(retryAfterSeconds(NOW + c.aheadMs, NOW), c.want);
  });
}
