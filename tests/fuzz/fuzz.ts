/** One run over the targets, without anything around it: the worker of `deno task fuzz` and its short test use it. */
import { Source } from "./mutate.ts";
import { type Target, TARGETS } from "./targets.ts";

const SLOWEST_MS = 1_000;

export interface FuzzFailure {
  readonly target: string;
  readonly seed: number;
  readonly problem: string;
}

export interface FuzzResult {
  readonly inputs: number;
  readonly slowestMs: number;
  readonly failure: FuzzFailure | null;
}

/**
 * Runs `inputs` inputs, spread over the targets; input `i` is drawn from `seed + i`, so that one can be repeated.
 *
 * @param only  name of the one target, or null for all.
 * @param begun  told of each input before it runs.
 */
export async function fuzz(
  inputs: number,
  seed: number,
  only: string | null,
  begun: (index: number) => void = () => {},
  targets: readonly Target[] = TARGETS.filter(({ name }) => only === null || name === only),
): Promise<FuzzResult> {
  let slowestMs = 0;
  for (let index = 0; index < inputs; index++) {
    begun(index);
    const target = targets[index % targets.length]!;
    const failed = (problem: string): FuzzResult => ({
      inputs: index,
      slowestMs,
      failure: { target: target.name, seed: seed + index, problem },
    });
    let tookMs: number;
    try {
      tookMs = await timed(target, seed + index);
      // Other work on the machine takes a second now and then, but not from the same input twice.
      if (tookMs > SLOWEST_MS) tookMs = Math.min(tookMs, await timed(target, seed + index));
    } catch (error) {
      return failed(error instanceof Error ? `${error.message}\n${error.stack}` : String(error));
    }
    slowestMs = Math.max(slowestMs, tookMs);
    if (tookMs > SLOWEST_MS) return failed(`took ${tookMs} ms`);
  }
  return { inputs, slowestMs, failure: null };
}

async function timed(target: Target, seed: number): Promise<number> {
  const began = performance.now();
  const running = target.run(new Source(seed));
  // Most are over by then: waiting for nothing would cost more than they do.
  if (running !== undefined) await running;
  return performance.now() - began;
}
