/** The command line of the simulation. */
import { parseArgs } from "node:util";
import type { StoreKind } from "./params.ts";

export interface Options {
  readonly mode: "campaign" | "replay" | "plant" | "plants" | "findings";
  readonly from: number;
  readonly seeds: number;
  /** Ends the campaign early once so many requests were simulated; null = all seeds. */
  readonly requests: number | null;
  readonly plant: string | null;
  readonly checkpoint: string | null;
  readonly store: StoreKind | "mixed";
  readonly strict: boolean;
  readonly workers: number;
}

export const USAGE = `deno task sim [options]
  --seeds N          runs N seeds (1,000 unless told otherwise)
  --from S           begins at seed S (1)
  --requests N       ends once N requests were simulated, however many seeds that takes
  --seed S           runs one seed and tells all of it
  --plant NAME       breaks one rule on purpose; succeeds only when that is found within 2,000 seeds
  --plants           every plant, one after the other
  --findings         shows that each open finding is still open
  --checkpoint FILE  keeps the place of a long run there, and goes on from it
  --store KIND       memory, sqlite or mixed (mixed)
  --strict           looks past no open finding
  --workers N        threads (one a core)`;

/** @returns the options, or what is wrong with the arguments. */
export function parseOptions(args: readonly string[]): Options | string {
  let values;
  try {
    values = parseArgs({
      args: [...args],
      options: {
        seeds: { type: "string" },
        from: { type: "string" },
        requests: { type: "string" },
        seed: { type: "string" },
        plant: { type: "string" },
        plants: { type: "boolean", default: false },
        findings: { type: "boolean", default: false },
        checkpoint: { type: "string" },
        store: { type: "string", default: "mixed" },
        strict: { type: "boolean", default: false },
        workers: { type: "string" },
      },
    }).values;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const mistakes: string[] = [];
  const count = (name: string, text: string | undefined, fallback: number): number => {
    if (text === undefined) return fallback;
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < 1) {
      mistakes.push(`--${name} must be a whole number above 0, got ${text}`);
    }
    return value;
  };
  const { store } = values;
  if (store !== "memory" && store !== "sqlite" && store !== "mixed") {
    return `--store must be memory, sqlite or mixed, got ${store}`;
  }
  const requests = values.requests === undefined ? null : count("requests", values.requests, 1);
  const options: Options = {
    mode: values.seed !== undefined
      ? "replay"
      : values.plant !== undefined
      ? "plant"
      : values.plants
      ? "plants"
      : values.findings
      ? "findings"
      : "campaign",
    from: count("seed", values.seed, count("from", values.from, 1)),
    seeds: count("seeds", values.seeds, requests === null ? 1_000 : Number.MAX_SAFE_INTEGER),
    requests,
    plant: values.plant ?? null,
    checkpoint: values.checkpoint ?? null,
    store,
    strict: values.strict,
    workers: count("workers", values.workers, Math.max(1, navigator.hardwareConcurrency)),
  };
  return mistakes.length === 0 ? options : mistakes.join("; ");
}
