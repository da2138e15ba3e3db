import { assert, assertEquals } from "@std/assert";
import type { Outcome } from "../../lib/core/outcome.ts";
import {
  DEFAULT_RECOVERY,
  isRecoverable,
  openRecovery,
  planRecovery,
  RECOVERY_ATTEMPT_LIMIT,
} from "../../lib/core/sse_recovery.ts";
import * as outcomes from "../support/outcomes.ts";

const NOW = 1_700_000_000_000;
const FAILED = outcomes.unavailable({ recoverable: true });

function plan(outcome: Outcome, attempts = 2, atMs = NOW, request = "req_1") {
  return planRecovery(
    openRecovery(attempts, NOW, DEFAULT_RECOVERY),
    outcome,
    request,
    1,
    atMs,
    DEFAULT_RECOVERY,
  );
}

const kinds: readonly { name: string; outcome: Outcome; want: boolean }[] = [
  { name: "a recoverable failure", outcome: FAILED, want: true },
  { name: "a failure judged not recoverable", outcome: outcomes.unavailable(), want: false },
  { name: "no response", outcome: outcomes.noResponse({ recoverable: true }), want: true },
  { name: "a certificate mismatch", outcome: outcomes.noResponse(), want: false },
  { name: "an incomplete stream", outcome: outcomes.incomplete(), want: true },
  { name: "401: repair instead", outcome: outcomes.unauthorized(), want: false },
  { name: "403", outcome: outcomes.credentialDead(), want: false },
  { name: "429", outcome: outcomes.limitedUntil(NOW), want: false },
  { name: "400", outcome: outcomes.requestFault(), want: false },
  { name: "client cancel", outcome: outcomes.cancelled(), want: false },
];
for (const c of kinds) {
  Deno.test(`isRecoverable() is ${c.want}: ${c.name} (2D.2)`, () => {
    assertEquals(isRecoverable(c.outcome), c.want);
    assertEquals(plan(c.outcome) !== null, c.want);
  });
}

Deno.test("planRecovery() draws full jitter under a doubling ceiling", () => {
  const seen = new Set<number>();
  for (let at = 0; at < 300; at++) {
    let budget = openRecovery(5, NOW, DEFAULT_RECOVERY);
    for (const ceiling of [250, 500, 1_000, 2_000, 2_000]) {
      const planned = planRecovery(budget, FAILED, `req_${at}`, 1, NOW, DEFAULT_RECOVERY)!;
      const backoffMs = planned.startAtMs - NOW;
      assert(backoffMs >= 0 && backoffMs <= ceiling);
      if (ceiling === 250) seen.add(backoffMs);
      budget = planned.budget;
    }
  }
  assert(seen.size > 100, "jitter is full, not a few steps");
});

Deno.test("planRecovery() ends with the attempts, ten at most whatever is configured", () => {
  let budget = openRecovery(99, NOW, DEFAULT_RECOVERY);
  let launches = 0;
  for (;;) {
    const planned = planRecovery(budget, FAILED, "req_1", 1, NOW, DEFAULT_RECOVERY);
    if (planned === null) break;
    budget = planned.budget;
    launches++;
  }
  assertEquals(launches, RECOVERY_ATTEMPT_LIMIT);
  assertEquals(plan(FAILED, 0), null);
});

const windows = [
  { name: "well inside", afterMs: 1_000, want: true },
  { name: "after its end", afterMs: 20_001, want: false },
] as const;
for (const c of windows) {
  Deno.test(`planRecovery() ${c.want ? "relaunches" : "gives up"} ${c.name} of the window`, () => {
    assertEquals(plan(FAILED, 2, NOW + c.afterMs) !== null, c.want);
  });
}

Deno.test("planRecovery() never starts past the window: a backoff that ends there is not begun", () => {
  for (let at = 0; at < 200; at++) {
    const planned = plan(FAILED, 2, NOW + 19_900, `req_${at}`);
    if (planned !== null) assert(planned.startAtMs <= NOW + 20_000);
  }
});

Deno.test("planRecovery() keeps a stated minimum inside the window, and gives up beyond it (row 26)", () => {
  const near = outcomes.unavailable({ recoverable: true, notBeforeMs: NOW + 20_000 });
  assertEquals(plan(near)!.startAtMs, NOW + 20_000);
  assertEquals(plan(outcomes.unavailable({ recoverable: true, notBeforeMs: NOW + 20_001 })), null);
});
