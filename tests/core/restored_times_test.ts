import { assertEquals, assertStrictEquals } from "@std/assert";
import { HEALTHY } from "../../lib/core/account_health.ts";
import type { AccountHealth, Deadline, ProviderCooldown } from "../../lib/core/records.ts";
import { fitCooldown, fitHealth, fitLedger, fitNetwork, fitReading } from "../../lib/core/restored_times.ts";

const NOW_MS = 1_700_000_000_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

function deadline(writtenAtMs: number): Deadline {
  return {
    untilMs: NOW_MS + 100 * HOUR_MS,
    source: "retry_after",
    status: 429,
    code: "rate_limited",
    attempt: "req_1:1",
    launchedAtMs: writtenAtMs,
    writtenAtMs,
  };
}

function health(atMs: number): AccountHealth {
  return {
    ...HEALTHY,
    deadline: deadline(atMs),
    credential: { kind: "unauthorized", fingerprint: "f", code: "c", writtenAtMs: atMs },
    credits: { openedAtMs: atMs, code: "no_credits", probeAtMs: atMs + HOUR_MS },
    modelDeadlines: new Map([["m", deadline(atMs)]]),
  };
}

const cases = [
  { name: "written a moment ago: as it was", atMs: NOW_MS - 1, wantMs: NOW_MS - 1 },
  { name: "written now: as it was", atMs: NOW_MS, wantMs: NOW_MS },
  { name: "written in the future: now", atMs: NOW_MS + 1, wantMs: NOW_MS },
] as const;
for (const { name, atMs, wantMs } of cases) {
  Deno.test(`fitHealth() takes what was ${name}`, () => {
    assertEquals(fitHealth(health(atMs), NOW_MS), health(wantMs));
  });

  Deno.test(`fitReading(), fitLedger() and fitNetwork() take what was ${name}`, () => {
    const reading = {
      observedAtMs: atMs,
      source: "usage_page" as const,
      windows: [],
      limitReached: null,
      servesBeyondWindows: false,
      creditsAvailable: null,
      plan: null,
    };
    assertEquals(fitReading(reading, NOW_MS), { ...reading, observedAtMs: wantMs });
    const ledger = {
      request: "req_1",
      idempotency: "k",
      counter: 0,
      charged: [],
      maxLaunches: 1,
      openedAtMs: atMs,
      closed: false,
    };
    assertEquals(fitLedger(ledger, NOW_MS), { ...ledger, openedAtMs: wantMs });
    const network = (observedAtMs: number) => {
      const evidence = [{ provider: "p", attempt: "req_1:1", observedAtMs }];
      const pause = {
        openedAtMs: observedAtMs,
        untilMs: observedAtMs + MINUTE_MS,
        evidence: [],
        generation: 1,
      };
      return { evidence, lastSuccessAtMs: observedAtMs, pause, generation: 1 };
    };
    assertEquals(fitNetwork(network(atMs), NOW_MS), network(wantMs));
  });
}

Deno.test("the fit functions return the same value when nothing lies in the future: nothing is written then", () => {
  const old = health(NOW_MS - HOUR_MS);
  const fitted = fitHealth(old, NOW_MS);
  for (const key of ["deadline", "credential", "credits", "modelDeadlines"] as const) {
    assertStrictEquals(fitted[key], old[key]);
  }
  const network = { evidence: [], lastSuccessAtMs: NOW_MS, pause: null, generation: 3 };
  assertStrictEquals(fitNetwork(network, NOW_MS), network);
});

const COOLDOWN: ProviderCooldown = {
  untilMs: NOW_MS + MINUTE_MS,
  reason: "overloaded",
  openedAtMs: NOW_MS,
  openedBy: "req_1:1",
  generation: 1,
  level: 6,
  explicit: false,
};
const cooldowns = [
  { name: "our own minute from now stays", untilMs: NOW_MS + MINUTE_MS, explicit: false, wantMs: MINUTE_MS },
  {
    name: "one ms more is more than any step",
    untilMs: NOW_MS + MINUTE_MS + 1,
    explicit: false,
    wantMs: MINUTE_MS,
  },
  { name: "a stated end stays", untilMs: NOW_MS + HOUR_MS, explicit: true, wantMs: HOUR_MS },
  { name: "one that is over stays over", untilMs: NOW_MS - 1, explicit: false, wantMs: -1 },
] as const;
for (const { name, untilMs, explicit, wantMs } of cooldowns) {
  Deno.test(`fitCooldown(): ${name}`, () => {
    const openedAtMs = Math.min(untilMs, NOW_MS);
    const fitted = fitCooldown({ ...COOLDOWN, openedAtMs, untilMs, explicit }, NOW_MS);
    assertEquals([fitted.untilMs - NOW_MS, fitted.openedAtMs], [wantMs, openedAtMs]);
  });
}
