/** Strikes, the cooldown they open, and the lease table of state-machine-facts 3.4 for providers. */
import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import type { Outcome } from "../../lib/core/outcome.ts";
import {
  applyStrike,
  closeProviderGate,
  dropDerivedCooldown,
  forgetStrikes,
  HEALTHY_PROVIDER,
  isDurableCooldown,
  leaseProviderProbe,
  leaseUntilMs,
  openCooldown,
  openDerivedCooldown,
  readProviderGate,
  readStrike,
  settleProviderProbe,
  shouldCool,
} from "../../lib/core/provider_health.ts";
import type { ProviderHealth } from "../../lib/core/records.ts";
import * as outcomes from "../support/outcomes.ts";

const NOW = 1_700_000_000_000;
const STRIKE = { reason: "overloaded", notBeforeMs: 0 } as const;

function struck(times: number, notBeforeMs = 0): ProviderHealth {
  let health = HEALTHY_PROVIDER;
  for (let at = 0; at < times; at++) health = applyStrike(health, { ...STRIKE, notBeforeMs }, "req_1:1");
  return health;
}

/** A cooldown of two strikes, opened at NOW. */
function cooled(): ProviderHealth {
  return openCooldown(struck(2), "codex", "req_1:2", 1, NOW);
}

/** The same, over and leased to `req_2:1`. */
function leased(): ProviderHealth {
  const health = cooled();
  const nowMs = health.cooldown!.untilMs;
  return leaseProviderProbe(health, "req_2:1", nowMs + 123_000, nowMs);
}

const strikes: readonly { name: string; outcome: Outcome; want: string | null }[] = [
  { name: "5xx", outcome: outcomes.unavailable(), want: "overloaded" },
  { name: "no response", outcome: outcomes.noResponse(), want: "network" },
  { name: "edge block", outcome: outcomes.edgeBlock(), want: "edge_block" },
  { name: "capacity with a stated time", outcome: capacity(), want: "overloaded" },
  { name: "throttle", outcome: outcomes.transient("throttle", { strike: false }), want: null },
  { name: "refresh failure: another host", outcome: outcomes.refreshFailed(), want: null },
  { name: "429", outcome: outcomes.limitedUntil(NOW + 1), want: null },
  { name: "401", outcome: outcomes.unauthorized(), want: null },
  { name: "402", outcome: outcomes.noCredits(), want: null },
  { name: "403 of the credential", outcome: outcomes.credentialDead(), want: null },
  { name: "model", outcome: outcomes.modelUnsupported(), want: null },
  { name: "request fault", outcome: outcomes.requestFault(), want: null },
  { name: "incomplete", outcome: outcomes.incomplete(), want: null },
  { name: "cancelled", outcome: outcomes.cancelled(), want: null },
  { name: "a limit of this machine", outcome: outcomes.localLimit(), want: null },
];
for (const c of strikes) {
  Deno.test(`readStrike() is ${c.want ?? "none"}: ${c.name} (P15)`, () => {
    assertEquals(readStrike(c.outcome)?.reason ?? null, c.want);
  });
}

function capacity(): Outcome {
  return { ...outcomes.limitedUntil(NOW + 90_000), row: 24, strike: true } as Outcome;
}

const cools = [
  { name: "no strike", health: struck(0), want: false },
  { name: "one strike", health: struck(1), want: false },
  { name: "two strikes", health: struck(2), want: true },
  { name: "one strike that stated a minute", health: struck(1, NOW + 60_000), want: false },
  { name: "one strike that stated more", health: struck(1, NOW + 60_001), want: true },
  { name: "cooled already", health: cooled(), want: false },
];
for (const c of cools) {
  Deno.test(`shouldCool() is ${c.want}: ${c.name} (C6)`, () =>
    assertEquals(shouldCool(c.health, NOW), c.want));
}

Deno.test("openCooldown() lasts the first step, or the latest minimum a strike stated (3.4)", () => {
  const first = cooled().cooldown!;
  assert(first.untilMs - NOW >= 2_000 && first.untilMs - NOW < 4_000);
  assertEquals([first.level, first.explicit, first.reason], [0, false, "overloaded"]);
  let health = applyStrike(HEALTHY_PROVIDER, { ...STRIKE, notBeforeMs: NOW + 40_000 }, "req_1:1");
  health = openCooldown(applyStrike(health, STRIKE, "req_9:1"), "codex", "req_1:2", 1, NOW);
  assertEquals([health.cooldown!.untilMs, health.cooldown!.explicit], [NOW + 40_000, true]);
});

Deno.test("readProviderGate() closes, then opens halfway exactly at the end, and is leased to one", () => {
  const health = cooled();
  const untilMs = health.cooldown!.untilMs;
  assertEquals(readProviderGate(HEALTHY_PROVIDER, NOW), { state: "open" });
  assertEquals(readProviderGate(health, untilMs - 1), { state: "closed", untilMs });
  assertEquals(readProviderGate(health, untilMs), { state: "half_open" });
  assertEquals(readProviderGate(leased(), untilMs), { state: "leased", untilMs: untilMs + 123_000 });
});

Deno.test("applyStrike() moves a cooldown nobody probes only to a later stated minimum (G3)", () => {
  const health = cooled();
  assertStrictEquals(applyStrike(health, STRIKE, "req_9:1"), health);
  const moved = applyStrike(health, { ...STRIKE, notBeforeMs: NOW + 50_000 }, "req_9:1");
  assertEquals([moved.cooldown!.untilMs, moved.strikes], [NOW + 50_000, 2]);
  assertEquals([moved.cooldown!.openedBy, moved.cooldown!.explicit], ["req_9:1", true]);
});

Deno.test("applyStrike() leaves a leased cooldown alone: late failures are not the probe's (G3)", () => {
  const health = leased();
  assertStrictEquals(applyStrike(health, { ...STRIKE, notBeforeMs: NOW + 500_000 }, "req_9:1"), health);
});

const settles: readonly { result: string; outcome: Outcome; want: "removed" | "longer" | "idle" }[] = [
  { result: "success", outcome: outcomes.success(), want: "removed" },
  { result: "provider-scoped transient", outcome: outcomes.unavailable(), want: "longer" },
  { result: "no response", outcome: outcomes.noResponse(), want: "longer" },
  { result: "provider reported", outcome: outcomes.transient("provider_reported"), want: "longer" },
  { result: "edge block", outcome: outcomes.edgeBlock(), want: "longer" },
  { result: "first-byte timeout", outcome: outcomes.transient("first_byte_timeout"), want: "longer" },
  { result: "capacity with a time", outcome: capacity(), want: "longer" },
  { result: "429", outcome: outcomes.limitedUntil(NOW + 1), want: "removed" },
  { result: "throttle", outcome: outcomes.transient("throttle", { strike: false }), want: "removed" },
  { result: "401", outcome: outcomes.unauthorized(), want: "removed" },
  { result: "402", outcome: outcomes.noCredits(), want: "removed" },
  { result: "403", outcome: outcomes.credentialDead(), want: "removed" },
  { result: "404 model", outcome: outcomes.modelUnsupported(), want: "removed" },
  { result: "400", outcome: outcomes.requestFault(), want: "removed" },
  { result: "paused workspace", outcome: outcomes.workspacePaused(NOW + 1), want: "removed" },
  { result: "client cancel", outcome: outcomes.cancelled(), want: "idle" },
  { result: "incomplete", outcome: outcomes.incomplete(), want: "idle" },
  { result: "a limit of this machine", outcome: outcomes.localLimit(), want: "idle" },
  { result: "a request that was never sent", outcome: outcomes.uncarried(), want: "idle" },
  { result: "refresh failed before the send", outcome: outcomes.refreshFailed(), want: "idle" },
  { result: "refresh dead before the send", outcome: outcomes.refreshDead(), want: "idle" },
  {
    result: "egress proxy down",
    outcome: outcomes.transient("egress_proxy", { strike: false }),
    want: "idle",
  },
];
for (const c of settles) {
  Deno.test(`settleProviderProbe() leaves the cooldown ${c.want} after ${c.result} (3.4)`, () => {
    const before = leased();
    const nowMs = before.probe!.leasedAtMs + 500;
    const after = settleProviderProbe(before, "codex", "req_2:1", c.outcome, 1, nowMs);
    assertEquals(after.probe, null);
    switch (c.want) {
      case "removed":
        assertEquals([after.cooldown, after.strikes], [null, 0]);
        break;
      case "idle":
        assertEquals(after.cooldown, before.cooldown);
        assertEquals(readProviderGate(after, nowMs).state, "half_open");
        break;
      case "longer":
        assertEquals(after.cooldown!.level, 1);
        assert(after.cooldown!.untilMs - nowMs >= 4_000);
    }
  });
}

Deno.test("settleProviderProbe() climbs to a minute and stays there (P42)", () => {
  let health = leased();
  let nowMs = health.probe!.leasedAtMs;
  for (const baseMs of [4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
    health = settleProviderProbe(health, "codex", health.probe!.attempt, outcomes.unavailable(), 1, nowMs);
    const restMs = health.cooldown!.untilMs - nowMs;
    assert(restMs >= baseMs && restMs <= Math.min(60_000, baseMs + 2_000), `${restMs}`);
    nowMs = health.cooldown!.untilMs;
    health = leaseProviderProbe(health, `req_3:${baseMs}`, nowMs + 1, nowMs);
  }
});

Deno.test("settleProviderProbe() keeps a probe's stated minimum in full, for hours", () => {
  const stated = outcomes.unavailable({ notBeforeMs: NOW + 7_200_000 });
  const after = settleProviderProbe(leased(), "codex", "req_2:1", stated, 1, NOW + 4_000);
  assertEquals([after.cooldown!.untilMs, after.cooldown!.explicit], [NOW + 7_200_000, true]);
});

Deno.test("settleProviderProbe() and closeProviderGate() ignore every attempt but the owner (P20)", () => {
  const health = leased();
  for (const outcome of [outcomes.success(), outcomes.unavailable(), outcomes.cancelled()]) {
    assertStrictEquals(settleProviderProbe(health, "codex", "req_9:1", outcome, 1, NOW), health);
  }
  assertStrictEquals(closeProviderGate(health, "req_9:1"), health);
});

Deno.test("closeProviderGate() starts anew at the owner's first output, generation kept (C26)", () => {
  const health = leased();
  assertEquals(closeProviderGate(health, "req_2:1"), { ...HEALTHY_PROVIDER, generation: health.generation });
});

Deno.test("forgetStrikes() ends strikes and stated minimum, not a cooldown: that is its probe's business", () => {
  const after = forgetStrikes(cooled());
  assertEquals([after.strikes, after.notBeforeMs, after.cooldown !== null], [0, 0, true]);
  assertStrictEquals(forgetStrikes(HEALTHY_PROVIDER), HEALTHY_PROVIDER);
});

Deno.test("openDerivedCooldown() never replaces a cooldown of strikes, and is dropped when an account is back", () => {
  const health = cooled();
  assertStrictEquals(openDerivedCooldown(health, NOW + 9, "rate_limited", "", NOW), health);
  const derived = openDerivedCooldown(HEALTHY_PROVIDER, NOW + 9, "rate_limited", "", NOW);
  assertEquals([derived.derived, derived.cooldown!.untilMs], [true, NOW + 9]);
  assertEquals(dropDerivedCooldown(derived).cooldown, null);
  assertStrictEquals(dropDerivedCooldown(health), health);
  const probed = leaseProviderProbe(derived, "req_2:1", NOW + 99, NOW + 9);
  assertStrictEquals(dropDerivedCooldown(probed), probed);
});

const leases = [
  { timeoutMs: 600_000, want: 123_000 },
  { timeoutMs: 120_000, want: 123_000 },
  { timeoutMs: 20_000, want: 23_000 },
  { timeoutMs: 0, want: 123_000 },
] as const;
for (const c of leases) {
  Deno.test(`leaseUntilMs() runs out ${c.want} ms after a launch limited to ${c.timeoutMs} (ruling 12)`, () => {
    assertEquals(leaseUntilMs(c.timeoutMs, NOW) - NOW, c.want);
  });
}

const durables = [
  { name: "short and computed", lengthMs: 59_999, explicit: false, derived: false, want: false },
  { name: "a minute", lengthMs: 60_000, explicit: false, derived: false, want: true },
  { name: "short and stated", lengthMs: 5_000, explicit: true, derived: false, want: true },
  {
    name: "derived: its accounts' rows tell it again",
    lengthMs: 90_000,
    explicit: false,
    derived: true,
    want: false,
  },
] as const;
for (const c of durables) {
  Deno.test(`isDurableCooldown() is ${c.want}: ${c.name} (C16)`, () => {
    const cooldown = { ...cooled().cooldown!, untilMs: NOW + c.lengthMs, explicit: c.explicit };
    assertEquals(isDurableCooldown(cooldown, c.derived), c.want);
  });
}
