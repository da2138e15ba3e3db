/**
 * `deno task fuzz [--inputs N] [--seed S] [--target NAME]`: broken inputs into every parser, from a seed.
 *
 * Fails on a crash, on a broken promise, on an input that takes a second, on one that never ends, and on memory that
 * keeps growing. The inputs run in a worker, so that one that never ends can be named.
 */
import type { FuzzFailure, FuzzResult } from "./fuzz.ts";
import { TARGETS } from "./targets.ts";

/** Memory of the process beyond what it had when everything was loaded. The garbage of a busy heap stays below half. */
const GROWTH_LIMIT_BYTES = 500_000_000;
/** Without an end by then there is none: a machine that is busy with other things is not that busy. */
const STUCK_MS = 20_000;
const LOOK_MS = 250;

interface Options {
  readonly inputs: number;
  readonly seed: number;
  readonly target: string | null;
}

interface WatchedResult extends FuzzResult {
  readonly peakGrowthBytes: number;
}

/** Runs the inputs in a worker and watches how far it is and what it takes. */
function fuzzWatched({ inputs, seed, target }: Options): Promise<WatchedResult> {
  const progress = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  const names = TARGETS.map(({ name }) => name).filter((name) => target === null || name === target);
  const { promise, resolve, reject } = Promise.withResolvers<WatchedResult>();
  let loadedBytes = Infinity;
  let peakBytes = 0;
  let lastIndex = -1;
  let movedAtMs = performance.now();
  const growth = () => Math.max(0, peakBytes - loadedBytes);
  const stop = (index: number, problem: string): void => {
    const failure: FuzzFailure = { target: names[index % names.length]!, seed: seed + index, problem };
    finish({ inputs: index, slowestMs: performance.now() - movedAtMs, failure });
  };
  const look = setInterval(() => {
    const index = Atomics.load(progress, 0);
    const { rss } = Deno.memoryUsage();
    if (index > 0 && loadedBytes === Infinity) loadedBytes = rss;
    peakBytes = Math.max(peakBytes, rss);
    if (index !== lastIndex) {
      lastIndex = index;
      movedAtMs = performance.now();
    } else if (index > 0 && performance.now() - movedAtMs > STUCK_MS) stop(index, "does not end");
    if (growth() > GROWTH_LIMIT_BYTES) {
      stop(index, `memory grew by ${Math.round(growth() / 1e6)} MB up to about here`);
    }
  }, LOOK_MS);
  function finish(result: FuzzResult): void {
    clearInterval(look);
    worker.terminate();
    resolve({ ...result, peakGrowthBytes: growth() });
  }
  worker.onmessage = ({ data }: MessageEvent<FuzzResult>) => finish(data);
  worker.onerror = (event) => reject(event.error ?? new Error(event.message));
  worker.postMessage({ inputs, seed, target, progress });
  return promise;
}

function readOptions(words: readonly string[]): Options {
  const option = (name: string): string | null => {
    const at = words.indexOf(`--${name}`);
    return at < 0 ? null : words[at + 1] ?? null;
  };
  const target = option("target");
  if (target !== null && !TARGETS.some(({ name }) => name === target)) {
    const names = TARGETS.map(({ name }) => name).join(", ");
    throw new TypeError(`Cannot fuzz: there is no target ${target}; there are ${names}`);
  }
  return { inputs: Number(option("inputs") ?? 200_000), seed: Number(option("seed") ?? 1), target };
}

if (import.meta.main) {
  const options = readOptions(Deno.args);
  const began = performance.now();
  const { inputs, slowestMs, failure, peakGrowthBytes } = await fuzzWatched(options);
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  if (failure !== null) {
    const { target, seed, problem } = failure;
    console.error(`FAILED after ${inputs} inputs: ${target}\n${problem}`);
    console.error(`Repeat: deno task fuzz --inputs 1 --seed ${seed} --target "${target}"`);
    Deno.exit(1);
  }
  console.log(
    `ok: ${inputs} inputs from seed ${options.seed} in ${seconds} s, slowest ${slowestMs.toFixed(1)} ms, ` +
      `memory at most +${Math.round(peakGrowthBytes / 1e6)} MB`,
  );
}
