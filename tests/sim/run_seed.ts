/** One seed: its run, and where its turn has come the same run again, to compare. */
import { type SimOptions, type SimOutcome, simulate } from "./drive/simulation.ts";
import { drawParams, type SimParams, type StoreKind } from "./params.ts";
import type { Plant } from "./plants/plant.ts";
import { Violation } from "./violation.ts";

export interface SeedReport {
  readonly seed: number;
  readonly params: SimParams;
  readonly outcome: SimOutcome;
  readonly violation: Violation | null;
}

export interface SeedTask {
  readonly seed: number;
  readonly store: StoreKind | "mixed";
  readonly plant: Plant | null;
  /** `sometimes`: every fourth seed is run again. */
  readonly compare: "sometimes" | "always" | "never";
  readonly verbose: boolean;
}

/** One in this many seeds writes to real SQLite when stores are mixed. */
const SQLITE_SHARE = 25;

export function runSeed(task: SeedTask): SeedReport {
  const { seed, plant, verbose } = task;
  const store = task.store === "mixed" ? seed % SQLITE_SHARE === 0 ? "sqlite" : "memory" : task.store;
  const params = drawParams(seed, store);
  const options: SimOptions = { plant, shuffle: 0, verbose };
  const outcome = simulate(params, options);
  const compares = task.compare === "always" || (task.compare === "sometimes" && seed % 4 === 0);
  const violation = outcome.violation ?? (compares ? findDifference(params, options, outcome) : null);
  return { seed, params, outcome, violation };
}

/** P33: the same again is the same. P32: so it is with the accounts in any other order of the configuration. */
function findDifference(params: SimParams, options: SimOptions, outcome: SimOutcome): Violation | null {
  const isRepeat = params.seed % 16 === 0 && options.plant === null;
  const other: SimOptions = { ...options, shuffle: isRepeat ? 0 : params.seed + 1 };
  const again = simulate(params, other);
  if (again.fingerprint === outcome.fingerprint) return null;
  const told = simulate(params, { ...options, verbose: true }).lines;
  const toldAgain = simulate(params, { ...other, verbose: true }).lines;
  const at = told.findIndex((line, index) => line !== toldAgain[index]);
  const what = isRepeat ? "the same run again" : "the accounts in another order";
  return new Violation(isRepeat ? "P33" : "P32", `${what} gives "${toldAgain[at]}", not "${told[at]}"`);
}
