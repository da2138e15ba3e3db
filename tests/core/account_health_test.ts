/** Columns A and AM of the merged decision table (state-machine-facts 4), one row of the table a test row. */
import { assertEquals, assertStrictEquals } from "@std/assert";
import {
  applyNewMaterial,
  applyOutcome,
  applyRefreshed,
  blockCredential,
  clearCredits,
  clearTimeBlocks,
  endDeadline,
  HEALTHY,
  type JudgedAttempt,
  releaseUnproven,
} from "../../lib/core/account_health.ts";
import { MODEL_RECORD_LIMIT } from "../../lib/core/model_records.ts";
import type { Outcome } from "../../lib/core/outcome.ts";
import { CREDITS_PROBE_MS, OVERRIDE_MS } from "../../lib/core/quota_park.ts";
import type { AccountHealth, Deadline, Park } from "../../lib/core/records.ts";
import * as outcomes from "../support/outcomes.ts";

const NOW = 1_700_000_000_000;
const BEFORE = NOW - 60_000;
const POLICY = { seed: 1, capMs: 30_000 };

function attempt(given: Partial<JudgedAttempt> = {}): JudgedAttempt {
  return {
    account: "a",
    attempt: "req_1:1",
    model: "m1",
    launchedAtMs: NOW - 1_000,
    fingerprint: "f1",
    ...given,
  };
}

function apply(health: AccountHealth, outcome: Outcome, given: Partial<JudgedAttempt> = {}): AccountHealth {
  return applyOutcome(health, outcome, attempt(given), "f1", POLICY, NOW);
}

function deadline(untilMs: number): Deadline {
  return {
    untilMs,
    source: "retry_after",
    status: 429,
    code: "usage_limit",
    attempt: "req_0:1",
    launchedAtMs: BEFORE,
    writtenAtMs: BEFORE,
  };
}

const PARK: Park = { untilMs: NOW + 600_000, observedAtMs: BEFORE, source: "usage_page" };

/** Everything at once, all of it written before the attempt under test was launched. */
const TROUBLED: AccountHealth = {
  ...HEALTHY,
  deadline: deadline(NOW + 3_600_000),
  credential: { kind: "unauthorized", fingerprint: "f1", code: "", writtenAtMs: BEFORE },
  credits: { openedAtMs: BEFORE, code: "", probeAtMs: NOW },
  inferred: { untilMs: NOW + 10_000, shape: "rate", writtenAtMs: BEFORE },
  ladder: { untilMs: NOW + 1_000, strikes: 3, reason: "transient", attempt: null, writtenAtMs: BEFORE },
  park: PARK,
  probeOwed: true,
  limitedAtMs: BEFORE,
  modelInferred: new Map([["m1", { untilMs: NOW + 9_000, shape: "rate", writtenAtMs: BEFORE }]]),
  exclusions: new Map([["m1", BEFORE], ["m2", BEFORE]]),
};

/** Which records a transition leaves changed. */
function changed(before: AccountHealth, after: AccountHealth): string[] {
  return Object.keys(after).filter((key) =>
    before[key as keyof AccountHealth] !== after[key as keyof AccountHealth]
  ).sort();
}

const rows: readonly { row: string; outcome: Outcome; writes: readonly string[] }[] = [
  { row: "2 to 5, 14, 17: request fault", outcome: outcomes.requestFault(), writes: [] },
  { row: "7: unauthorized after repair", outcome: outcomes.unauthorized(), writes: ["credential"] },
  { row: "8: invalid_grant", outcome: outcomes.refreshDead(), writes: ["credential"] },
  {
    row: "8: other terminal refresh failure",
    outcome: outcomes.refreshDead("credential_invalid"),
    writes: ["credential"],
  },
  { row: "9: refresh failed for now", outcome: outcomes.refreshFailed(), writes: ["ladder"] },
  { row: "10: no credits", outcome: outcomes.noCredits(), writes: ["credits"] },
  { row: "11: suspended", outcome: outcomes.credentialDead(), writes: ["credential"] },
  { row: "12, 16: model unsupported", outcome: outcomes.modelUnsupported(), writes: ["exclusions"] },
  { row: "13, 15: edge block", outcome: outcomes.edgeBlock(), writes: [] },
  { row: "18, 25 to 27: status", outcome: outcomes.unavailable(), writes: ["ladder"] },
  {
    row: "19, 20: stated limit",
    outcome: outcomes.limitedUntil(NOW + 60_000),
    writes: ["deadline", "limitedAtMs", "probeOwed"],
  },
  {
    row: "21: rate, no time",
    outcome: outcomes.limitedSomehow("rate"),
    writes: ["inferred", "limitedAtMs", "probeOwed"],
  },
  {
    row: "22: quota, no time",
    outcome: outcomes.limitedSomehow("quota"),
    writes: ["inferred", "limitedAtMs", "probeOwed"],
  },
  {
    row: "23: model limiter, stated",
    outcome: outcomes.limitedUntil(NOW + 60_000, "model"),
    writes: ["modelDeadlines"],
  },
  {
    row: "23: model limiter, no time",
    outcome: outcomes.limitedSomehow("rate", "model"),
    writes: ["modelInferred"],
  },
  { row: "24: throttle", outcome: outcomes.transient("throttle", { strike: false }), writes: ["ladder"] },
  { row: "28 to 31: no response", outcome: outcomes.noResponse(), writes: ["ladder"] },
  { row: "32: first-byte timeout", outcome: outcomes.transient("first_byte_timeout"), writes: ["ladder"] },
  { row: "33, 34: reset in body", outcome: outcomes.transient("body_reset"), writes: ["ladder"] },
  { row: "35: provider reported", outcome: outcomes.transient("provider_reported"), writes: ["ladder"] },
  { row: "36, 38: stream failure", outcome: outcomes.transient("stream_failure"), writes: ["ladder"] },
  { row: "40, 41: incomplete", outcome: outcomes.incomplete(), writes: [] },
  { row: "42: malformed", outcome: outcomes.transient("malformed"), writes: ["ladder"] },
  { row: "45: cancelled", outcome: outcomes.cancelled(), writes: [] },
  { row: "paused workspace", outcome: outcomes.workspacePaused(NOW + 3_600_000), writes: ["ladder"] },
];

for (const { row, outcome, writes } of rows) {
  Deno.test(`applyOutcome() writes ${writes.join(", ") || "nothing"}, row ${row}`, () => {
    assertEquals(changed(HEALTHY, apply(HEALTHY, outcome)), [...writes]);
  });
}

Deno.test("applyOutcome() of a success ends what was written before its launch, row 1; the deadline stays", () => {
  const after = apply(TROUBLED, outcomes.success());
  assertEquals(
    { ...after, reading: null },
    {
      ...HEALTHY,
      deadline: TROUBLED.deadline,
      limitedAtMs: BEFORE,
      overrideUntilMs: NOW + OVERRIDE_MS,
      exclusions: new Map([["m2", BEFORE]]),
      lastSuccessAtMs: NOW,
    },
  );
});

Deno.test("applyOutcome() of an old stream's success leaves every record written since its launch", () => {
  const after = apply(TROUBLED, outcomes.success(), { launchedAtMs: BEFORE });
  assertEquals(changed(TROUBLED, after), ["lastSuccessAtMs"]);
});

Deno.test("applyOutcome() of a success arms the override although parks alone are silenced by it", () => {
  const after = apply({ ...HEALTHY, park: PARK }, outcomes.success());
  assertEquals([after.park, after.overrideUntilMs], [null, NOW + OVERRIDE_MS]);
});

Deno.test("applyOutcome() of a genuine 429 drops override and park and owes a real answer, rows 19 to 22", () => {
  for (
    const outcome of [
      outcomes.limitedUntil(NOW + 60_000),
      outcomes.limitedSomehow("rate"),
      outcomes.limitedSomehow("quota"),
    ]
  ) {
    const after = apply({ ...HEALTHY, park: PARK, overrideUntilMs: NOW + OVERRIDE_MS }, outcome);
    assertEquals([after.park, after.overrideUntilMs, after.probeOwed], [null, 0, true]);
  }
});

Deno.test("applyOutcome() of missing credits drops the override and is tested again in an hour, row 10", () => {
  const after = apply({ ...HEALTHY, overrideUntilMs: NOW + 1 }, outcomes.noCredits());
  assertEquals(after.overrideUntilMs, 0);
  assertEquals(after.credits, { openedAtMs: NOW, code: "credits", probeAtMs: NOW + CREDITS_PROBE_MS });
  const again = applyOutcome(
    after,
    outcomes.noCredits(),
    attempt(),
    "f1",
    POLICY,
    NOW + CREDITS_PROBE_MS,
  );
  assertEquals(again.credits?.openedAtMs, NOW);
  assertEquals(again.credits?.probeAtMs, NOW + 2 * CREDITS_PROBE_MS);
});

Deno.test("applyOutcome() of an unsupported model proves the credential, row 16", () => {
  const after = apply(TROUBLED, outcomes.modelUnsupported(), { model: "m9" });
  assertEquals([after.credential, after.ladder], [null, null]);
  assertEquals(after.exclusions.get("m9"), NOW);
  assertEquals([after.deadline, after.inferred], [TROUBLED.deadline, TROUBLED.inferred]);
});

Deno.test("applyOutcome() keeps weaker and stronger records side by side", () => {
  let health = apply(HEALTHY, outcomes.unavailable());
  health = apply(health, outcomes.limitedUntil(NOW + 60_000));
  health = apply(health, outcomes.credentialDead());
  assertEquals([health.ladder !== null, health.deadline !== null, health.credential !== null], [
    true,
    true,
    true,
  ]);
});

Deno.test("applyOutcome() keeps at most 64 exclusions, the oldest goes", () => {
  let health = HEALTHY;
  for (let at = 0; at <= MODEL_RECORD_LIMIT; at++) {
    health = apply(health, outcomes.modelUnsupported(), { model: `m${at}` });
  }
  assertEquals(health.exclusions.size, MODEL_RECORD_LIMIT);
  assertEquals([health.exclusions.has("m0"), health.exclusions.has("m1")], [false, true]);
  const renewed = apply(health, outcomes.modelUnsupported(), { model: "m1" });
  const next = apply(renewed, outcomes.modelUnsupported(), { model: "m99" });
  assertEquals([next.exclusions.has("m1"), next.exclusions.has("m2")], [true, false]);
});

Deno.test("applyOutcome() ignores a refusal of material that was replaced since the launch", () => {
  for (const outcome of [outcomes.unauthorized(), outcomes.credentialDead(), outcomes.refreshDead()]) {
    assertStrictEquals(apply(HEALTHY, outcome, { fingerprint: "f0" }), HEALTHY);
  }
});

Deno.test("blockCredential() never lets a memory-only mark replace a durable one", () => {
  const durable = apply(HEALTHY, outcomes.refreshDead());
  const after = blockCredential(durable, "credential_invalid", "x", attempt(), "f1", NOW);
  assertStrictEquals(after, durable);
});

Deno.test("applyRefreshed() ends credential marks and rests the token endpoint caused, nothing else", () => {
  const resting = apply(TROUBLED, outcomes.refreshFailed());
  assertEquals(applyRefreshed(resting).ladder, TROUBLED.ladder);
  const refused = apply(HEALTHY, outcomes.refreshFailed());
  assertEquals(applyRefreshed(refused).ladder, null);
  const after = applyRefreshed(TROUBLED);
  assertEquals(changed(TROUBLED, after), ["credential"]);
  assertStrictEquals(applyRefreshed(HEALTHY), HEALTHY);
});

Deno.test("applyNewMaterial() ends credential marks and exclusions, never a deadline or missing credits", () => {
  assertEquals(changed(TROUBLED, applyNewMaterial(TROUBLED)), ["credential", "exclusions"]);
  assertStrictEquals(applyNewMaterial(HEALTHY), HEALTHY);
});

Deno.test("releaseUnproven() ends a memory-only mark alone", () => {
  const waiting = blockCredential(HEALTHY, "credential_invalid", "x", attempt(), "f1", NOW);
  assertEquals(releaseUnproven(waiting).credential, null);
  assertStrictEquals(releaseUnproven(TROUBLED), TROUBLED);
});

Deno.test("clearTimeBlocks() ends every time block and no other, and lets no page re-arm at once (C35)", () => {
  const after = clearTimeBlocks(TROUBLED);
  assertEquals(changed(TROUBLED, after), [
    "deadline",
    "inferred",
    "ladder",
    "modelInferred",
    "park",
  ]);
  assertEquals(after.probeOwed, true);
});

Deno.test("clearCredits() and endDeadline() end one record each", () => {
  assertEquals(changed(TROUBLED, clearCredits(TROUBLED)), ["credits"]);
  assertEquals(changed(TROUBLED, endDeadline(TROUBLED)), ["deadline"]);
  assertStrictEquals(clearCredits(HEALTHY), HEALTHY);
  assertStrictEquals(endDeadline(HEALTHY), HEALTHY);
});

Deno.test("applyOutcome() mutates nothing it was given", () => {
  const frozen = structuredClone(TROUBLED);
  for (const { outcome } of rows) apply(TROUBLED, outcome);
  assertEquals(TROUBLED, frozen);
});
