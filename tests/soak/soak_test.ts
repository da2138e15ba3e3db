/** The checkers of the soak themselves: each mistake it is there for is one it sees. */
import { assertEquals, assertMatch } from "@std/assert";
import {
  chunkText,
  Deadlines,
  IN_FLIGHT_MS,
  Ledger,
  paddingOf,
  readAsked,
  readReceived,
  UNHEARD_MS,
  wordsOf,
} from "./ledger.ts";
import { type Footprint, judgeGrowth } from "./growth.ts";
import { LagBook, quantile, readLag } from "./lag.ts";

const CREATED = '{"type":"response.created"}\n';
const COMPLETED = '{"type":"response.completed"}\n';
const FAILED = '{"type":"response.failed"}\n';

function chunks(number: number, ...places: readonly number[]): string {
  return places.map((place) => `{"delta":"${chunkText(number, place)}"}\n`).join("");
}

const answers = [
  { name: "whole", text: CREATED + chunks(1, 1, 2, 3) + COMPLETED, problems: 0 },
  { name: "broken off and told so", text: CREATED + chunks(1, 1) + FAILED, served: "broken", problems: 0 },
  { name: "a chunk lost in the middle", text: CREATED + chunks(1, 1, 3) + COMPLETED, problems: 2 },
  { name: "the last chunk lost", text: CREATED + chunks(1, 1, 2) + COMPLETED, problems: 1 },
  { name: "a chunk doubled", text: CREATED + chunks(1, 1, 2, 2, 3) + COMPLETED, problems: 2 },
  { name: "somebody else's chunk", text: CREATED + chunks(2, 1) + FAILED, served: "broken", problems: 1 },
  { name: "two ends", text: CREATED + chunks(1, 1, 2, 3) + COMPLETED + FAILED, problems: 1 },
  { name: "no end", text: CREATED + chunks(1, 1), served: "broken", problems: 1 },
  { name: "a failure told of a whole answer", text: CREATED + chunks(1, 1, 2, 3) + FAILED, problems: 1 },
] as const;
for (const given of answers) {
  Deno.test(`Ledger.received() finds ${given.problems} problems in an answer: ${given.name}`, () => {
    const ledger = new Ledger();
    const asked = ledger.next(3, 0);
    ledger.arrived(asked);
    ledger.served(asked, "served" in given ? given.served : "whole");
    ledger.received(asked, readReceived(given.text));
    assertEquals(ledger.problems.length, given.problems, ledger.problems.join("; "));
    assertEquals(ledger.open, 0);
  });
}

Deno.test("Ledger.arrived() sees a request that comes again after it was served whole, and only then", () => {
  const ledger = new Ledger();
  const asked = ledger.next(3, 0);
  ledger.arrived(asked);
  ledger.served(asked, "broken");
  ledger.arrived(asked);
  assertEquals(ledger.problems, []);
  ledger.served(asked, "whole");
  ledger.arrived(asked);
  assertEquals(ledger.problems.length, 1);
});

Deno.test("Ledger.refused() sees an answer that was served whole and lost on the way", () => {
  const ledger = new Ledger();
  const asked = ledger.next(3, 0);
  ledger.served(asked, "whole");
  ledger.refused(asked, 502);
  assertEquals(ledger.problems.length, 1);
});

const askedAt = [
  { name: "by an attempt that was under way", atMs: IN_FLIGHT_MS, problems: 0, refuses: true },
  { name: "later", atMs: IN_FLIGHT_MS + 1, problems: 1, refuses: true },
  { name: "one ms before its end", atMs: 29_999, problems: 1, refuses: true },
  { name: "at its end", atMs: 30_000, problems: 0, refuses: false },
] as const;
for (const { name, atMs, problems, refuses } of askedAt) {
  Deno.test(`Deadlines.asked() counts ${problems} forgotten deadlines when it is asked ${name}`, () => {
    const ledger = new Ledger();
    const deadlines = new Deadlines(ledger);
    deadlines.state("A", 0, 30_000);
    assertEquals(deadlines.asked("A", atMs) !== null, refuses);
    assertEquals(ledger.problems.length, problems);
    assertEquals(deadlines.asked("B", atMs), null);
  });
}

for (
  const { killedAtMs, problems } of [
    { killedAtMs: UNHEARD_MS - 1, problems: 0 },
    { killedAtMs: UNHEARD_MS, problems: 1 },
  ]
) {
  Deno.test(`Deadlines.killed() holds what was stated ${killedAtMs} ms before to ${problems} promises`, () => {
    const ledger = new Ledger();
    const deadlines = new Deadlines(ledger);
    deadlines.state("A", 0, 30_000);
    deadlines.killed(killedAtMs);
    deadlines.asked("A", 10_000);
    assertEquals([ledger.problems.length, deadlines.overKills], [problems, problems]);
  });
}

Deno.test("readAsked() reads what wordsOf() wrote, inside a body", () => {
  const asked = { number: 17, chunks: 5, everyMs: 9 };
  assertEquals(readAsked(JSON.stringify({ instructions: wordsOf(asked), input: "hi" })), asked);
  assertEquals(readAsked("{}"), null);
});

Deno.test("paddingOf() is as long as asked for, and another one for each number", () => {
  assertEquals([paddingOf(1, 25).length, paddingOf(123_456, 25).length], [25, 25]);
  assertEquals(paddingOf(1, 25) === paddingOf(2, 25), false);
});

const LAG_METRICS = `# TYPE holdfast_event_loop_lag_seconds histogram
holdfast_event_loop_lag_seconds_bucket{le="0.025"} 90
holdfast_event_loop_lag_seconds_bucket{le="0.05"} 95
holdfast_event_loop_lag_seconds_bucket{le="0.1"} 100
holdfast_event_loop_lag_seconds_bucket{le="+Inf"} 100
holdfast_event_loop_lag_seconds_count 100
`;

Deno.test("quantile() draws a straight line through the bucket it falls into", () => {
  const lag = readLag(LAG_METRICS);
  assertEquals(lag.size, 4);
  assertEquals([quantile(lag, 0.9), quantile(lag, 0.95)], [0.025, 0.05]);
  assertEquals(quantile(lag, 0.99).toFixed(3), "0.090");
  assertEquals(quantile(new Map(), 0.99), NaN);
});

function footprint(atMs: number, given: Partial<Footprint> = {}): Footprint {
  return { atMs, residentBytes: 100e6, descriptors: 50, starvedMs: 0, ...given };
}

const lateness = [
  { name: "in time", late: 10, starvedMs: 0, verdict: /^ok$/ },
  { name: "in time although others had the core", late: 10, starvedMs: 9_000, verdict: /^ok$/ },
  { name: "late by itself", late: 50, starvedMs: 0, verdict: /5\.00 %/ },
  { name: "late with no more waiting than there always is", late: 50, starvedMs: 1_000, verdict: /5\.00 %/ },
  { name: "late because others had the core", late: 50, starvedMs: 1_001, verdict: /^not judged/ },
];
for (const { name, late, starvedMs, verdict } of lateness) {
  Deno.test(`LagBook judges a loop that is ${name}`, () => {
    const book = new LagBook();
    book.add(new Map([[0.05, 0], [Infinity, 0]]), footprint(0));
    book.add(new Map([[0.05, 1_000 - late], [Infinity, 1_000]]), footprint(10_000, { starvedMs }));
    assertMatch(String(book.report()["verdict"]), verdict);
    assertEquals(book.problem !== null, verdict.source.startsWith("5"));
  });
}

Deno.test("LagBook adds up the lives of a process, each of which counts from zero", () => {
  const book = new LagBook();
  for (let life = 0; life < 2; life++) {
    book.add(new Map([[0.05, 1], [Infinity, 1]]), footprint(0));
    book.add(new Map([[0.05, 301], [Infinity, 301]]), footprint(10_000));
    book.endLife();
  }
  assertEquals([book.report()["samples"], book.report()["fed_samples"]], [602, 600]);
});

/** A life of 400 s, sampled every 2 s, whose values are told by the time. */
function life(residentAt: (atMs: number) => number, heapAt: (atMs: number) => number) {
  const samples = Array.from(
    { length: 201 },
    (_, at) => footprint(at * 2_000, { residentBytes: residentAt(at * 2_000) }),
  );
  const settled = Array.from({ length: 9 }, (_, at) => ({
    atMs: at * 50_000,
    usedBytes: heapAt(at * 50_000),
    buffersBytes: 0,
    residentBytes: residentAt(at * 50_000),
  }));
  return { samples, settled };
}

const lives = [
  { name: "level", heapAt: () => 30e6, problems: 0 },
  // A cache that fills in the first quarter is warm-up.
  { name: "level once it is warm", heapAt: (atMs: number) => atMs < 90_000 ? 10e6 : 30e6, problems: 0 },
  { name: "a leak of 50 KB a second", heapAt: (atMs: number) => 30e6 + atMs * 50, problems: 1 },
  { name: "within the noise", heapAt: (atMs: number) => 10e6 + atMs * 10, problems: 0 },
];
for (const { name, heapAt, problems } of lives) {
  Deno.test(`judgeGrowth() finds ${problems} problems in a life that is ${name}`, () => {
    const { samples, settled } = life(() => 100e6, heapAt);
    assertEquals(judgeGrowth(samples, settled)?.problems.length, problems);
  });
}

Deno.test("judgeGrowth() sees resident memory grow, and says nothing of a short life", () => {
  const { samples, settled } = life((atMs) => 100e6 + atMs * 200, () => 30e6);
  assertEquals(judgeGrowth(samples, settled)?.problems.length, 1);
  assertEquals(judgeGrowth(samples.slice(0, 40), settled), null);
  assertEquals(judgeGrowth(samples, []), null);
});
