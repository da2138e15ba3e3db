/** The worked answers of state-machine-facts 5.2 that live state decides, and the burst of B168. */
import { assert, assertEquals } from "@std/assert";
import type { FinalAnswer } from "../../lib/core/final_error.ts";
import { retryAfterSeconds } from "../../lib/core/final_error.ts";
import type { Outcome } from "../../lib/core/outcome.ts";
import * as outcomes from "../support/outcomes.ts";
import { account, Driver, type Ending, inOrder, perAccount } from "../support/pool_driver.ts";

const ONE_ROUND = { policy: { requestRetry: 0, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 } };

function said(driver: Driver, answer: FinalAnswer | null): readonly [number | undefined, number | null] {
  const retryAtMs = answer?.retryAtMs ?? null;
  return [answer?.status, retryAtMs === null ? null : retryAfterSeconds(retryAtMs, driver.nowMs)];
}

Deno.test("example 37: a live deadline counts although an earlier success armed the override", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  const late = driver.begin();
  const launch = driver.launch(late);
  driver.run(inOrder(outcomes.success()));
  driver.advance(1_000);
  driver.settle(late, launch, outcomes.limitedUntil(driver.nowMs + 600_000));
  driver.run(inOrder());
  driver.advance(1_000);
  assertEquals(said(driver, driver.run(inOrder()).answer), [429, 599]);
});

Deno.test("example 38: a silenced park says nothing, the ladder of a 503 does", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  driver.run(inOrder(outcomes.success()));
  driver.pool.observeQuota("a", {
    observedAtMs: driver.nowMs,
    source: "usage_page",
    windows: [{ name: "7d", usedPercent: 100, resetAtMs: driver.nowMs + 9e8, modelFamily: null }],
    limitReached: null,
    servesBeyondWindows: false,
    creditsAvailable: null,
    plan: null,
  }, driver.nowMs);
  assertEquals(said(driver, driver.run(inOrder(outcomes.unavailable())).answer), [502, null]);
});

Deno.test("example 39: a live deadline of round 1 beats the ladder of round 0", () => {
  const driver = new Driver(["a"]);
  const result = driver.run((launch, nowMs) =>
    launch.round === 0 ? outcomes.unavailable() : outcomes.limitedUntil(nowMs + 300_000)
  );
  assertEquals([result.launches.length, ...said(driver, result.answer)], [2, 429, 300]);
});

Deno.test("example 40: of a 429 whose time is over and a later 503 only the ladder is live", () => {
  const driver = new Driver(["a"], {
    policy: { requestRetry: 1, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 },
  });
  const result = driver.run(inOrder(outcomes.limitedUntil(driver.nowMs + 5_000), outcomes.unavailable()));
  assertEquals(said(driver, result.answer), [502, null]);
});

Deno.test("example 43: a client that leaves while waiting gets nothing, and nothing more is sent", () => {
  const driver = new Driver(["a"]);
  const plan = driver.begin();
  driver.settle(plan, driver.launch(plan), outcomes.unavailable());
  assertEquals(driver.next(plan).kind, "wait");
  driver.pool.cancel(plan, driver.nowMs);
  assertEquals(driver.next(plan), { kind: "stop" });
});

Deno.test("example 45: a deadline that ran out during the last round counts as now, told as one second", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  const slow: Ending = { outcome: outcomes.unavailable(), afterMs: 6_000 };
  const result = driver.run(perAccount({ a: [outcomes.limitedUntil(driver.nowMs + 5_000)], b: [slow] }));
  assertEquals(said(driver, result.answer), [429, 1]);
});

Deno.test("examples 46 and 47: while another request probes, quota stays quota and the rest is transient", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  driver.run(() => outcomes.unavailable());
  driver.advance(10_000);
  const probe = driver.begin({ attemptTimeoutMs: 22_000 });
  assertEquals(driver.launch(probe).probe, "provider");
  const refused = driver.run(inOrder());
  assertEquals(said(driver, refused.answer), [502, null]);
  assertEquals(refused.answer!.nextRetryAtMs! - driver.nowMs, 25_000);
  assertEquals(refused.record.candidates.map(({ block }) => block?.kind), [
    "provider_probe",
    "provider_probe",
  ]);

  const limited = new Driver(["a"], ONE_ROUND);
  const late = limited.begin();
  const lateLaunch = limited.launch(late);
  limited.run(() => outcomes.unavailable());
  limited.advance(10_000);
  limited.run(() => outcomes.unavailable());
  limited.advance(10_000);
  limited.launch(limited.begin({ attemptTimeoutMs: 22_000 }));
  limited.settle(late, lateLaunch, outcomes.limitedUntil(limited.nowMs + 60_000));
  assertEquals(said(limited, limited.run(inOrder()).answer), [429, 60]);
});

const shapes: readonly {
  name: string;
  fates: Readonly<Record<"a" | "b", (nowMs: number) => Outcome>>;
  want: "rate" | "quota";
}[] = [
  {
    name: "two rates, one of them with a time",
    fates: {
      a: (nowMs) => outcomes.limitedUntil(nowMs + 5_000, "account", "rate"),
      b: () => outcomes.limitedSomehow("rate"),
    },
    want: "rate",
  },
  {
    name: "a rate of the model",
    fates: {
      a: (nowMs) => outcomes.limitedUntil(nowMs + 5_000, "model", "rate"),
      b: () => outcomes.limitedSomehow("rate", "model"),
    },
    want: "rate",
  },
  {
    name: "a time that is over already",
    fates: {
      a: (nowMs) => outcomes.limitedUntil(nowMs, "account", "rate"),
      b: () => outcomes.limitedSomehow("rate"),
    },
    want: "rate",
  },
  {
    name: "a rate and a quota",
    fates: {
      a: (nowMs) => outcomes.limitedUntil(nowMs + 5_000, "account", "rate"),
      b: () => outcomes.limitedSomehow("quota"),
    },
    want: "quota",
  },
];
for (const c of shapes) {
  Deno.test(`the final answer names the limit ${c.want}: ${c.name}`, () => {
    const driver = new Driver(["a", "b"], ONE_ROUND);
    const result = driver.run((launch, nowMs) => c.fates[launch.account as "a" | "b"](nowMs));
    assertEquals([result.answer?.status, result.answer?.limit], [429, c.want]);
  });
}

Deno.test("a deadline of another request's answer is told as a quota: what it was is not kept", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  driver.run(perAccount({
    a: [outcomes.limitedUntil(driver.nowMs + 50_000, "account", "rate")],
    b: [outcomes.success()],
  }));
  const result = driver.run(perAccount({ b: [outcomes.limitedSomehow("rate")] }));
  assertEquals([result.answer?.status, result.answer?.limit], [429, "quota"]);
});

Deno.test("example 3: an exclusion is asked before the switch", () => {
  const driver = new Driver(["a", "b"], ONE_ROUND);
  driver.run(() => outcomes.modelUnsupported());
  driver.pool.setEnabled("b", false, driver.nowMs);
  const result = driver.run(inOrder());
  assertEquals([result.answer?.status, result.answer?.undispatched], [404, true]);
});

Deno.test("a day-long limit and a passing fault: waits for the one that may serve (B016)", () => {
  const driver = new Driver(["a", "b"]);
  const day = outcomes.limitedUntil(driver.nowMs + 83_220_000);
  const result = driver.run(perAccount({ a: [outcomes.unavailable(), outcomes.success()], b: [day] }));
  assertEquals([result.served?.account, result.launches.length], ["a", 3]);
});

Deno.test("the final answer is the same for every order of accounts and configuration (P32)", () => {
  const fates: Readonly<Record<string, (nowMs: number) => Outcome>> = {
    a: (nowMs) => outcomes.limitedUntil(nowMs + 12_000),
    b: () => outcomes.unavailable(),
    c: () => outcomes.credentialDead(),
    d: () => outcomes.modelUnsupported(),
  };
  const seen = new Set<string>();
  for (const order of permutations(Object.keys(fates))) {
    // Ids decide the order of attempts, so each order of fates gets ids of its own.
    const driver = new Driver(order.map((_, at) => account(`x${at}`)), ONE_ROUND);
    const result = driver.run((launch, nowMs) => fates[order[Number(launch.account.slice(1))]!]!(nowMs));
    seen.add(JSON.stringify([said(driver, result.answer), result.answer!.rule]));
    const shuffled = new Driver(order.map((_, at) => account(`x${at}`)).reverse(), ONE_ROUND);
    const same = shuffled.run((launch, nowMs) => fates[order[Number(launch.account.slice(1))]!]!(nowMs));
    assertEquals(
      same.launches.map((launch) => launch.account),
      result.launches.map((launch) => launch.account),
    );
  }
  assertEquals([...seen], [JSON.stringify([[429, 12], "mixed_near_deadline"])]);
});

Deno.test("refusals stay exact while time passes: 29 s, then 19 s after 10.4 s (B029)", () => {
  const driver = new Driver(["a"], ONE_ROUND);
  const first = driver.run(inOrder(outcomes.limitedUntil(driver.nowMs + 29_000)));
  assertEquals(said(driver, first.answer), [429, 29]);
  driver.advance(10_400);
  assertEquals(said(driver, driver.run(inOrder()).answer), [429, 19]);
});

Deno.test("a burst beyond what eight accounts admit still serves nearly everybody (B168)", () => {
  const driver = new Driver(Array.from({ length: 8 }, (_, at) => `a${at}`));
  const admitted = new Map<string, number[]>();
  const waiting: { plan: ReturnType<Driver["begin"]>; wakeAtMs: number }[] = [];
  const done: number[] = [];
  const begun = driver.nowMs;
  let opened = 0;
  // Offered more than eight accounts serve between their two-second rests; the rest is worked off afterwards.
  for (; driver.nowMs - begun < 60_000 || waiting.length > 0; driver.advance(20)) {
    const sinceMs = driver.nowMs - begun;
    const wanted = sinceMs < 60_000 ? 40 + Math.floor(sinceMs / 100) : opened;
    for (; opened < wanted; opened++) waiting.push({ plan: driver.begin(), wakeAtMs: driver.nowMs });
    for (const entry of waiting.filter(({ wakeAtMs }) => wakeAtMs <= driver.nowMs)) {
      const ended = serve(driver, entry, admitted);
      if (ended === null) continue;
      done.push(ended);
      waiting.splice(waiting.indexOf(entry), 1);
    }
  }
  const served = done.filter((status) => status === 200).length;
  assert(served / done.length >= 0.9, `${served} of ${done.length} served`);
  assertEquals(done.filter((status) => status !== 200 && status !== 429), []);
});

/** Runs a request as far as it goes now. Each account admits two in any second and limits the rest for 2 s. */
function serve(
  driver: Driver,
  entry: { readonly plan: ReturnType<Driver["begin"]>; wakeAtMs: number },
  admitted: Map<string, number[]>,
): number | null {
  for (;;) {
    const step = driver.next(entry.plan);
    if (step.kind === "wait") {
      entry.wakeAtMs = step.untilMs;
      return null;
    }
    if (step.kind === "launch") {
      const recent = (admitted.get(step.launch.account) ?? []).filter((atMs) => driver.nowMs - atMs < 1_000);
      const fits = recent.length < 2;
      if (fits) recent.push(driver.nowMs);
      admitted.set(step.launch.account, recent);
      driver.settle(
        entry.plan,
        step.launch,
        fits ? outcomes.success() : outcomes.limitedUntil(driver.nowMs + 2_000),
      );
      continue;
    }
    const status = step.kind === "answer" ? step.answer.status : 200;
    driver.pool.finish(entry.plan, status, null, driver.nowMs);
    return status;
  }
}

function permutations<T>(list: readonly T[]): T[][] {
  if (list.length <= 1) return [[...list]];
  return list.flatMap((item, at) =>
    permutations([...list.slice(0, at), ...list.slice(at + 1)]).map((rest) => [item, ...rest])
  );
}
