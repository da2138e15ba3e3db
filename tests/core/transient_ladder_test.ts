import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { HEALTHY, type JudgedAttempt } from "../../lib/core/account_health.ts";
import type { AccountHealth } from "../../lib/core/records.ts";
import { climbLadder, pauseAccount, withdrawOutageBlock } from "../../lib/core/transient_ladder.ts";

const NOW = 1_700_000_000_000;
const POLICY = { seed: 1, capMs: 60_000 };

function attempt(launchedAtMs: number, id = "req_1:1"): JudgedAttempt {
  return { account: "a", attempt: id, model: "m1", launchedAtMs, fingerprint: "f1" };
}

function fail(health: AccountHealth, launchedAtMs: number, nowMs: number, notBeforeMs: number | null = null) {
  return climbLadder(health, "transient", notBeforeMs, attempt(launchedAtMs), POLICY, nowMs);
}

Deno.test("climbLadder() doubles with each failure after the rest, up to the cap (ruling 3)", () => {
  let health = HEALTHY;
  let nowMs = NOW;
  for (const baseMs of [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
    health = fail(health, nowMs, nowMs);
    const restMs = health.ladder!.untilMs - nowMs;
    assert(restMs >= baseMs && restMs <= Math.min(60_000, baseMs + 2_000), `${restMs} after ${baseMs}`);
    nowMs = health.ladder!.untilMs + 1;
  }
  assertEquals(health.ladder!.strikes, 7);
});

Deno.test("climbLadder() never rests longer than the cap, jitter included", () => {
  for (let seed = 0; seed < 200; seed++) {
    const after = climbLadder(HEALTHY, "transient", null, attempt(NOW), { seed, capMs: 2_500 }, NOW);
    assert(after.ladder!.untilMs - NOW <= 2_500);
  }
});

Deno.test("climbLadder() keeps its anchor for a burst: one step, however many failed together (B014)", () => {
  const first = fail(HEALTHY, NOW, NOW + 50);
  for (let at = 0; at < 12; at++) assertStrictEquals(fail(first, NOW, NOW + 60 + at), first);
});

Deno.test("climbLadder() does not climb for an attempt launched before the rest was written, after it ended", () => {
  const first = fail(HEALTHY, NOW, NOW + 50);
  const late = fail(first, NOW + 50, first.ladder!.untilMs + 1);
  assertStrictEquals(late, first);
  const fresh = fail(first, NOW + 51, first.ladder!.untilMs + 1);
  assertEquals(fresh.ladder!.strikes, 2);
});

Deno.test("climbLadder() keeps a stated minimum, first and later ones alike (C10)", () => {
  const first = fail(HEALTHY, NOW, NOW, NOW + 45_000);
  assertEquals(first.ladder!.untilMs, NOW + 45_000);
  const longer = fail(first, NOW, NOW + 1, NOW + 90_000);
  assertEquals([longer.ladder!.untilMs, longer.ladder!.strikes], [NOW + 90_000, 1]);
  assertStrictEquals(fail(longer, NOW, NOW + 2, NOW + 10_000), longer);
});

Deno.test("climbLadder() rests for a dead egress proxy without climbing", () => {
  let health = HEALTHY;
  for (let at = 0; at < 4; at++) {
    const nowMs = NOW + at * 10_000;
    health = climbLadder(health, "egress_proxy", null, attempt(nowMs), POLICY, nowMs);
    assertEquals(health.ladder!.strikes, 0);
    assert(health.ladder!.untilMs - nowMs < 4_000);
  }
});

Deno.test("pauseAccount() rests until the stated hour is over and leaves the strikes (ruling 20)", () => {
  const struck = fail(HEALTHY, NOW, NOW);
  const paused = pauseAccount(struck, NOW + 3_600_000, attempt(NOW), NOW + 10);
  assertEquals(
    [paused.ladder!.untilMs, paused.ladder!.strikes, paused.ladder!.reason],
    [NOW + 3_600_000, 1, "workspace"],
  );
  assertStrictEquals(pauseAccount(paused, NOW + 1_000, attempt(NOW), NOW + 20), paused);
});

const outages = [
  { name: "named in the evidence", reason: "no_response", id: "req_1:1", strikes: 1, left: null },
  { name: "of an attempt not in it", reason: "no_response", id: "req_9:9", strikes: 1, left: 1 },
  { name: "for another reason", reason: "transient", id: "req_1:1", strikes: 1, left: 1 },
  { name: "with earlier strikes of its own", reason: "no_response", id: "req_1:1", strikes: 3, left: 2 },
] as const;
for (const c of outages) {
  Deno.test(`withdrawOutageBlock() leaves ${c.left ?? "no"} strikes of a rest ${c.name} (C14)`, () => {
    const ladder = {
      untilMs: NOW + 4_000,
      strikes: c.strikes,
      reason: c.reason,
      attempt: c.id,
      writtenAtMs: NOW - 1,
    };
    const after = withdrawOutageBlock({ ...HEALTHY, ladder }, new Set(["req_1:1"]), NOW);
    assertEquals(after.ladder?.strikes ?? null, c.left);
    if (c.left === 2) assertEquals(after.ladder!.untilMs, NOW);
  });
}
