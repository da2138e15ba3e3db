/** A block of seeds, run in one thread; what it came to, as a value that can be sent. */
import type { StoreKind } from "./params.ts";
import { runSeed, type SeedReport } from "./run_seed.ts";

export interface Block {
  readonly from: number;
  readonly count: number;
  readonly store: StoreKind | "mixed";
  readonly strict: boolean;
}

export interface Totals {
  readonly seeds: number;
  /** While things broke. */
  readonly requests: number;
  /** After everything was mended. */
  readonly calmRequests: number;
  readonly launches: number;
  readonly restarts: number;
  readonly virtualMs: number;
}

export const NO_TOTALS: Totals = {
  seeds: 0,
  requests: 0,
  calmRequests: 0,
  launches: 0,
  restarts: 0,
  virtualMs: 0,
};

/** A failure, told for people. */
export interface Failure {
  readonly seed: number;
  readonly invariant: string;
  readonly story: string;
}

export interface BlockReport {
  readonly block: Block;
  readonly totals: Totals;
  /** The first seed that failed; the rest of the block was not run. */
  readonly failure: Failure | null;
}

export function runBlock(block: Block): BlockReport {
  let totals = NO_TOTALS;
  for (let seed = block.from; seed < block.from + block.count; seed++) {
    const report = runSeed({ seed, store: block.store, plant: null, compare: "sometimes", verbose: false });
    totals = add(totals, totalsOf(report));
    if (report.violation !== null) return { block, totals, failure: failureOf(report) };
  }
  return { block, totals, failure: null };
}

export function add(a: Totals, b: Totals): Totals {
  return {
    seeds: a.seeds + b.seeds,
    requests: a.requests + b.requests,
    calmRequests: a.calmRequests + b.calmRequests,
    launches: a.launches + b.launches,
    restarts: a.restarts + b.restarts,
    virtualMs: a.virtualMs + b.virtualMs,
  };
}

export function failureOf({ seed, params, outcome, violation }: SeedReport): Failure {
  return {
    seed,
    invariant: violation!.id,
    story: [
      ...outcome.lines,
      "",
      `parameters: ${JSON.stringify(params)}`,
      `seed ${seed} breaks ${violation!.message}`,
      `replay: deno task sim --seed ${seed} --store ${params.store}`,
    ].join("\n"),
  };
}

function totalsOf({ outcome }: SeedReport): Totals {
  const { counts, launches, virtualMs } = outcome;
  const { requests, calmRequests, restarts } = counts;
  return { seeds: 1, requests, calmRequests, launches, restarts, virtualMs };
}
