import { assertEquals } from "@std/assert";
import { EXCLUSION_MS, HEALTHY } from "../../lib/core/account_health.ts";
import type { BlockKind } from "../../lib/core/decision.ts";
import {
  accountReadyAtMs,
  certainlyBlockedUntilMs,
  classOfBlock,
  classOfOutcome,
  contradictsDeadline,
  creditsProbeDue,
  describeBlock,
  RECHECK_SPACING_MS,
  recheckDue,
  strongestBlock,
} from "../../lib/core/eligibility.ts";
import type { FinalClass } from "../../lib/core/final_error.ts";
import type { Outcome } from "../../lib/core/outcome.ts";
import type { AccountHealth, Deadline, QuotaReading } from "../../lib/core/records.ts";
import * as outcomes from "../support/outcomes.ts";

const NOW = 1_700_000_000_000;

function deadline(untilMs: number): Deadline {
  return {
    untilMs,
    source: "body",
    status: 429,
    code: "usage_limit",
    attempt: "req_0:1",
    launchedAtMs: NOW - 20,
    writtenAtMs: NOW - 10,
  };
}

/** One record of each kind that ends a second from now, weakest first. */
const RECORDS: readonly {
  kind: BlockKind;
  health: Partial<AccountHealth>;
  timed: boolean;
  source: string;
}[] = [
  {
    kind: "ladder",
    health: {
      ladder: { untilMs: NOW + 1_000, strikes: 1, reason: "no_response", attempt: null, writtenAtMs: NOW },
    },
    timed: true,
    source: "no_response",
  },
  {
    kind: "inferred",
    health: { inferred: { untilMs: NOW + 1_000, shape: "quota", writtenAtMs: NOW } },
    timed: true,
    source: "quota_limit",
  },
  {
    kind: "inferred",
    health: { modelInferred: new Map([["m1", { untilMs: NOW + 1_000, shape: "rate", writtenAtMs: NOW }]]) },
    timed: true,
    source: "rate_limit",
  },
  {
    kind: "park",
    health: { park: { untilMs: NOW + 1_000, observedAtMs: NOW, source: "usage_page" } },
    timed: true,
    source: "usage_page",
  },
  {
    kind: "park",
    health: {
      modelParks: new Map([["m1", { untilMs: NOW + 1_000, observedAtMs: NOW, source: "snapshot" }]]),
    },
    timed: true,
    source: "snapshot",
  },
  {
    kind: "model_deadline",
    health: { modelDeadlines: new Map([["m1", deadline(NOW + 1_000)]]) },
    timed: true,
    source: "body",
  },
  { kind: "deadline", health: { deadline: deadline(NOW + 1_000) }, timed: true, source: "body" },
  {
    kind: "credits",
    health: { credits: { openedAtMs: NOW, code: "", probeAtMs: NOW + 1_000 } },
    timed: false,
    source: "credits",
  },
  {
    kind: "credential",
    health: { credential: { kind: "invalid_grant", fingerprint: "f", code: "", writtenAtMs: NOW } },
    timed: false,
    source: "invalid_grant",
  },
];

for (const { kind, health: part, timed, source } of RECORDS) {
  const health: AccountHealth = { ...HEALTHY, ...part };
  Deno.test(`strongestBlock() is ${kind} up to the last millisecond: ${source}`, () => {
    assertEquals(strongestBlock(health, true, "m1", NOW + 999), kind);
    assertEquals(strongestBlock(health, true, "m1", NOW + 1_000), timed ? null : kind);
    const block = describeBlock(health, true, "m1", NOW)!;
    assertEquals([block.kind, block.untilMs, block.source], [kind, timed ? NOW + 1_000 : null, source]);
    assertEquals(accountReadyAtMs(health, "m1", NOW), timed ? NOW + 1_000 : NOW);
  });
}

Deno.test("strongestBlock() names the strongest of several, in the order of the records", () => {
  let health: AccountHealth = HEALTHY;
  for (const { kind, health: part } of RECORDS) {
    health = { ...health, ...part };
    // A park is asked before the weaker inferred block.
    assertEquals(strongestBlock(health, true, "m1", NOW), kind);
  }
  assertEquals(strongestBlock(health, false, "m1", NOW), "disabled");
  const excluded = { ...health, exclusions: new Map([["m1", NOW]]) };
  assertEquals(strongestBlock(excluded, false, "m1", NOW), "model_excluded");
  assertEquals(describeBlock(excluded, false, "m1", NOW)?.untilMs, NOW + EXCLUSION_MS);
  assertEquals(describeBlock(health, false, "m1", NOW)?.source, "operator");
});

Deno.test("strongestBlock() of a model's records leaves other models and routes without one alone", () => {
  const health: AccountHealth = {
    ...HEALTHY,
    exclusions: new Map([["m1", NOW]]),
    modelDeadlines: new Map([["m1", deadline(NOW + 1_000)]]),
  };
  assertEquals([strongestBlock(health, true, "m2", NOW), strongestBlock(health, true, null, NOW)], [
    null,
    null,
  ]);
});

Deno.test("strongestBlock() lets an exclusion end by itself after twelve hours (C20)", () => {
  const health: AccountHealth = { ...HEALTHY, exclusions: new Map([["m1", NOW]]) };
  assertEquals(strongestBlock(health, true, "m1", NOW + EXCLUSION_MS - 1), "model_excluded");
  assertEquals(strongestBlock(health, true, "m1", NOW + EXCLUSION_MS), null);
});

Deno.test("accountReadyAtMs() is the latest end of all live blocks", () => {
  const health: AccountHealth = {
    ...HEALTHY,
    deadline: deadline(NOW + 10_000),
    ladder: { untilMs: NOW + 20_000, strikes: 1, reason: "transient", attempt: null, writtenAtMs: NOW },
  };
  assertEquals(accountReadyAtMs(health, null, NOW), NOW + 20_000);
  assertEquals(accountReadyAtMs(health, null, NOW + 30_000), NOW + 30_000);
});

Deno.test("certainlyBlockedUntilMs() never hides an account that may serve", () => {
  for (const { health: part } of RECORDS) {
    const health: AccountHealth = { ...HEALTHY, ...part };
    const until = certainlyBlockedUntilMs(health, true, NOW);
    for (const atMs of [NOW, NOW + 999, NOW + 1_000, NOW + 2_000]) {
      if (until > atMs) assertEquals(strongestBlock(health, true, "m2", atMs) !== null, true);
    }
  }
  assertEquals(certainlyBlockedUntilMs(HEALTHY, true, NOW), 0);
  assertEquals(certainlyBlockedUntilMs(HEALTHY, false, NOW), Number.POSITIVE_INFINITY);
});

Deno.test("certainlyBlockedUntilMs() leaves a silenced park to the closer look", () => {
  const park = { untilMs: NOW + 9_000, observedAtMs: NOW, source: "usage_page" } as const;
  assertEquals(certainlyBlockedUntilMs({ ...HEALTHY, park }, true, NOW), NOW + 9_000);
  assertEquals(certainlyBlockedUntilMs({ ...HEALTHY, park, overrideUntilMs: NOW + 1 }, true, NOW), 0);
});

const classes: readonly [BlockKind, FinalClass][] = [
  ["model_excluded", "excluded"],
  ["not_listed", "excluded"],
  ["disabled", "disabled"],
  ["credential", "credential"],
  ["credits", "credits"],
  ["deadline", "quota"],
  ["model_deadline", "quota"],
  ["park", "inferred"],
  ["inferred", "inferred"],
  ["ladder", "transient"],
  ["provider_circuit", "transient"],
  ["provider_cooldown", "transient"],
  ["provider_probe", "transient"],
  ["network_pause", "transient"],
  ["network_probe", "transient"],
];
for (const [kind, want] of classes) {
  Deno.test(`classOfBlock() counts ${kind} as ${want}`, () => assertEquals(classOfBlock(kind), want));
}

const lasts: readonly { name: string; outcome: Outcome | null; want: FinalClass }[] = [
  { name: "untried", outcome: null, want: "idle" },
  { name: "limited until a stated time", outcome: outcomes.limitedUntil(NOW), want: "quota" },
  { name: "limited without a time", outcome: outcomes.limitedSomehow("rate"), want: "inferred" },
  { name: "model unsupported", outcome: outcomes.modelUnsupported(), want: "excluded" },
  { name: "a passing failure", outcome: outcomes.unavailable(), want: "transient" },
  { name: "no response", outcome: outcomes.noResponse(), want: "transient" },
  { name: "an edge block", outcome: outcomes.edgeBlock(), want: "transient" },
];
for (const c of lasts) {
  Deno.test(`classOfOutcome() is ${c.want}: ${c.name}`, () =>
    assertEquals(classOfOutcome(c.outcome), c.want));
}

Deno.test("creditsProbeDue() waits for its hour, and for every other block", () => {
  const poor: AccountHealth = { ...HEALTHY, credits: { openedAtMs: NOW, code: "", probeAtMs: NOW + 10 } };
  assertEquals(creditsProbeDue(poor, "m1", NOW + 9), false);
  assertEquals(creditsProbeDue(poor, "m1", NOW + 10), true);
  assertEquals(creditsProbeDue({ ...poor, deadline: deadline(NOW + 99) }, "m1", NOW + 10), false);
  assertEquals(creditsProbeDue(HEALTHY, "m1", NOW), false);
});

function page(observedAtMs: number, usedPercent: number): QuotaReading {
  return {
    observedAtMs,
    source: "usage_page",
    windows: [{ name: "7d", usedPercent, resetAtMs: null, modelFamily: null }],
    limitReached: null,
    servesBeyondWindows: false,
    creditsAvailable: null,
    plan: null,
  };
}

const LIMITED: AccountHealth = { ...HEALTHY, deadline: deadline(NOW + 3_600_000), limitedAtMs: NOW - 10 };
const rechecks: readonly { name: string; health: AccountHealth; want: boolean }[] = [
  { name: "newer news with headroom", health: { ...LIMITED, reading: page(NOW - 9, 3) }, want: true },
  { name: "news as old as the 429", health: { ...LIMITED, reading: page(NOW - 10, 3) }, want: false },
  { name: "newer news, spent", health: { ...LIMITED, reading: page(NOW, 100) }, want: false },
  { name: "no news", health: LIMITED, want: false },
  { name: "no deadline", health: { ...HEALTHY, reading: page(NOW, 3) }, want: false },
  {
    name: "rechecked just under half an hour ago",
    health: { ...LIMITED, reading: page(NOW, 3), recheckedAtMs: NOW - RECHECK_SPACING_MS + 1 },
    want: false,
  },
  {
    name: "rechecked half an hour ago",
    health: { ...LIMITED, reading: page(NOW, 3), recheckedAtMs: NOW - RECHECK_SPACING_MS },
    want: true,
  },
  {
    name: "another block besides",
    health: {
      ...LIMITED,
      reading: page(NOW, 3),
      ladder: { untilMs: NOW + 1, strikes: 1, reason: "transient", attempt: null, writtenAtMs: NOW },
    },
    want: false,
  },
];
for (const c of rechecks) {
  Deno.test(`recheckDue() is ${c.want}: ${c.name}`, () =>
    assertEquals(recheckDue(c.health, "m1", NOW), c.want));
}

Deno.test("contradictsDeadline() stays true while a recheck is spaced out: operators are told either way", () => {
  const health = { ...LIMITED, reading: page(NOW, 3), recheckedAtMs: NOW };
  assertEquals([contradictsDeadline(health, NOW), contradictsDeadline(health, NOW + 3_600_000)], [
    true,
    false,
  ]);
});
