/** Looks for a planted mistake: found means a seed within the limit broke an invariant that the plant is about. */
import type { Plant } from "./plants/plant.ts";
import { runSeed } from "./run_seed.ts";
import type { Violation } from "./violation.ts";

/** Every plant must be found within so many seeds. */
export const HUNT_SEEDS = 2_000;

export interface Catch {
  readonly seed: number;
  readonly requests: number;
  readonly violation: Violation;
}

export function huntPlant(plant: Plant, from: number): Catch | null {
  let requests = 0;
  const compare = plant.machineSeed === undefined ? "never" : "always";
  for (let seed = from; seed < from + HUNT_SEEDS; seed++) {
    const { violation, outcome } = runSeed({ seed, store: "memory", plant, compare, verbose: false });
    requests += outcome.counts.requests;
    if (violation !== null && plant.caughtBy.includes(violation.id)) return { seed, requests, violation };
  }
  return null;
}
