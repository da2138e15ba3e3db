import { assert, assertEquals } from "@std/assert";
import {
  accountLadderCapMs,
  ladderMs,
  longestWaitMs,
  PACE_LIMIT_MS,
  paceMs,
} from "../../lib/core/backoff.ts";

Deno.test("ladderMs() doubles from two seconds, jitter below two more, capped", () => {
  for (const [level, baseMs] of [2_000, 4_000, 8_000, 16_000, 32_000].entries()) {
    for (let seed = 0; seed < 50; seed++) {
      const restMs = ladderMs(seed, "a", level, 60_000);
      assert(restMs >= baseMs && restMs < baseMs + 2_000, `${restMs} at level ${level}`);
    }
  }
  assertEquals([ladderMs(1, "a", 5, 60_000), ladderMs(1, "a", 99, 60_000)], [60_000, 60_000]);
});

Deno.test("ladderMs() depends on seed, id and level alone, never on who asked before", () => {
  const first = ladderMs(1, "a", 0, 60_000);
  ladderMs(1, "b", 0, 60_000);
  assertEquals(ladderMs(1, "a", 0, 60_000), first);
  const drawn = new Set(["a", "b", "c", "d", "e"].map((id) => ladderMs(1, id, 0, 60_000)));
  assert(drawn.size > 1);
});

const caps = [
  { intervalMs: 30_000, cap: 30_000, wait: 30_000 },
  { intervalMs: 60_000, cap: 60_000, wait: 60_000 },
  { intervalMs: 90_000, cap: 60_000, wait: 60_000 },
  { intervalMs: 0, cap: 60_000, wait: 0 },
  { intervalMs: -1, cap: 60_000, wait: 0 },
] as const;
for (const c of caps) {
  Deno.test(`accountLadderCapMs() ${c.cap} and longestWaitMs() ${c.wait} for an interval of ${c.intervalMs}`, () => {
    assertEquals([accountLadderCapMs(c.intervalMs), longestWaitMs(c.intervalMs)], [c.cap, c.wait]);
  });
}

Deno.test("paceMs() delays nobody who waits alone, and never past the room left", () => {
  assertEquals(paceMs(1, "req_1", 0, 30_000), 0);
  assertEquals(paceMs(1, "req_1", 500, 0), 0);
  assertEquals(paceMs(1, "req_1", 500, -5), 0);
  for (let at = 0; at < 500; at++) {
    assert(paceMs(1, `req_${at}`, at, 1_000) < 1_000);
    assert(paceMs(1, `req_${at}`, 100_000, 60_000) < PACE_LIMIT_MS);
  }
});

Deno.test("paceMs() spreads a dozen over more than 20 ms (B014), and a thousand over no single tick (B166)", () => {
  const dozen = Array.from({ length: 12 }, (_, at) => paceMs(7, `req_${at}`, at, 26_000));
  assert(Math.max(...dozen) - Math.min(...dozen) > 20);
  const thousand = Array.from({ length: 1_000 }, (_, at) => paceMs(7, `req_${at}`, at, 10_000));
  const perTick = new Map<number, number>();
  for (const ms of thousand) perTick.set(ms, (perTick.get(ms) ?? 0) + 1);
  assert(Math.max(...perTick.values()) < 20);
});
