import { assertEquals } from "@std/assert";
import { HourStats, STATS_MINUTES } from "../../lib/proxy/hour_stats.ts";
import { attempt, decision } from "../support/decisions.ts";

/** A full minute. */
const START_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;

Deno.test("HourStats.read() gives sixty minutes without gaps, oldest first, empty ones too", () => {
  const stats = new HourStats();
  stats.add(decision({ endedAtMs: START_MS + 5 * MINUTE_MS }));
  const minutes = stats.read(START_MS + 7 * MINUTE_MS + 12_345);
  assertEquals(minutes.length, STATS_MINUTES);
  assertEquals(minutes.map(({ atMs }) => atMs), [
    ...Array.from({ length: STATS_MINUTES }, (_, at) => START_MS + (at - 52) * MINUTE_MS),
  ]);
  assertEquals(minutes.map(({ served }) => served).indexOf(1), 57);
  assertEquals(stats.read(START_MS + 7 * MINUTE_MS, 2).map(({ served }) => served), [0, 0]);
});

Deno.test("HourStats.add() counts by outcome, and adds up what moved and waited", () => {
  const stats = new HourStats();
  stats.add(decision({ endedAtMs: START_MS }));
  stats.add(decision({
    endedAtMs: START_MS + 59_999,
    attempts: [attempt({ outcome: "transient:status" }), attempt()],
    waits: [
      { fromMs: START_MS, untilMs: START_MS + 700, reason: "cooldown" },
      { fromMs: START_MS + 800, untilMs: START_MS + 1_100, reason: "probe" },
    ],
  }));
  stats.add(decision({ endedAtMs: START_MS, status: 429, code: "rate_limited", rule: "all_quota" }));
  stats.add(decision({ endedAtMs: START_MS, status: 400, code: "relayed" }));
  stats.add(decision({ endedAtMs: START_MS, status: 0, code: "client_gone" }));
  assertEquals(stats.read(START_MS, 1), [
    { atMs: START_MS, served: 2, refused: 1, failed: 1, left: 1, moved: 1, waits: 2, waitedMs: 1_000 },
  ]);
  assertEquals(stats.version, 5);
});

Deno.test("HourStats forgets after an hour, and a clock set back wipes nothing out", () => {
  const stats = new HourStats();
  stats.add(decision({ endedAtMs: START_MS }));
  assertEquals(stats.read(START_MS + 59 * MINUTE_MS)[0]!.served, 1);
  assertEquals(stats.read(START_MS + 60 * MINUTE_MS).every(({ served }) => served === 0), true);
  stats.add(decision({ endedAtMs: START_MS - 60 * MINUTE_MS }));
  assertEquals(stats.read(START_MS, 1)[0]!.served, 1);
});
