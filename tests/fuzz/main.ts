/**
 * `deno task fuzz [--inputs N] [--seed S] [--target NAME]`: broken inputs into every parser, from a seed.
 *
 * Fails on a crash, on a broken promise, on an input that takes a second, and on memory that keeps growing.
 */
import { Source } from "./mutate.ts";
import { TARGETS } from "./targets.ts";

const SLOWEST_MS = 1_000;
const GROWTH_LIMIT_BYTES = 300_000_000;

export interface FuzzResult {
  readonly inputs: number;
  readonly slowestMs: number;
  readonly failure: { readonly target: string; readonly seed: number; readonly problem: string } | null;
}

/** Runs `inputs` inputs, spread over the targets; input `i` is drawn from `seed + i`, so that one can be repeated. */
export function fuzz(inputs: number, seed: number, only: string | null): FuzzResult {
  const targets = TARGETS.filter(({ name }) => only === null || name === only);
  if (targets.length === 0) {
    throw new TypeError(
      `There is no target ${only}; there are ${TARGETS.map(({ name }) => name).join(", ")}`,
    );
  }
  let slowestMs = 0;
  for (let index = 0; index < inputs; index++) {
    const target = targets[index % targets.length]!;
    const began = performance.now();
    try {
      target.run(new Source(seed + index));
    } catch (error) {
      const problem = error instanceof Error ? `${error.message}\n${error.stack}` : String(error);
      return { inputs: index, slowestMs, failure: { target: target.name, seed: seed + index, problem } };
    }
    const tookMs = performance.now() - began;
    if (tookMs > SLOWEST_MS) {
      return {
        inputs: index,
        slowestMs: tookMs,
        failure: { target: target.name, seed: seed + index, problem: `took ${tookMs} ms` },
      };
    }
    slowestMs = Math.max(slowestMs, tookMs);
  }
  return { inputs, slowestMs, failure: null };
}

if (import.meta.main) {
  const option = (name: string, fallback: number): number => {
    const at = Deno.args.indexOf(`--${name}`);
    return at < 0 ? fallback : Number(Deno.args[at + 1]);
  };
  const at = Deno.args.indexOf("--target");
  const inputs = option("inputs", 200_000);
  const seed = option("seed", 1);
  const began = performance.now();
  const before = Deno.memoryUsage().rss;
  const result = fuzz(inputs, seed, at < 0 ? null : Deno.args[at + 1] ?? null);
  const seconds = (performance.now() - began) / 1000;
  const grown = Deno.memoryUsage().rss - before;
  if (result.failure !== null) {
    const { target, seed: failed, problem } = result.failure;
    console.error(
      `FAILED after ${result.inputs} inputs: ${target}\n${problem}\nRepeat: deno task fuzz --inputs 1 --seed ${failed} --target "${target}"`,
    );
    Deno.exit(1);
  }
  if (grown > GROWTH_LIMIT_BYTES) {
    console.error(`FAILED: memory grew by ${Math.round(grown / 1e6)} MB`);
    Deno.exit(1);
  }
  console.log(
    `ok: ${result.inputs} inputs from seed ${seed} in ${seconds.toFixed(1)} s, slowest ${
      result.slowestMs.toFixed(1)
    } ms, ` +
      `memory ${grown > 0 ? "+" : ""}${Math.round(grown / 1e6)} MB`,
  );
}
