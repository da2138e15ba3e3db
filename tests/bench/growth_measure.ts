/** Times one thing at several sizes, taking turns, so that a machine that slows down wrongs none of them. */
import { median } from "./report.ts";

/** One size of one thing: how large it is in words, and a function that does it once. */
export interface Subject {
  readonly size: string;
  readonly once: () => void;
}

export interface Timing {
  /** A batch is about as long as this. */
  readonly batchMs: number;
  readonly batches: number;
}

/** @returns the median over the batches of what one run costs, in µs; one value a subject, in their order. */
export function measureTurns(subjects: readonly Subject[], timing: Timing): number[] {
  const runs = subjects.map(({ once }) => runsPerBatch(once, timing.batchMs));
  const costs: number[][] = subjects.map(() => []);
  for (let batch = 0; batch < timing.batches; batch++) {
    for (const [at, { once }] of subjects.entries()) {
      costs[at]!.push(timeOf(once, runs[at]!) * 1_000 / runs[at]!);
    }
  }
  return costs.map(median);
}

/** Doubles until a batch is long enough, which also compiles what is measured. */
function runsPerBatch(once: () => void, batchMs: number): number {
  let runs = 1;
  for (;;) {
    const tookMs = timeOf(once, runs);
    if (tookMs >= batchMs) return Math.max(1, Math.round(runs * batchMs / tookMs));
    runs *= 2;
  }
}

function timeOf(once: () => void, runs: number): number {
  const beganAt = performance.now();
  for (let run = 0; run < runs; run++) once();
  return performance.now() - beganAt;
}
