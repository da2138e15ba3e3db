/** Runs the inputs it is told, and says which one it is at: whoever waits for it can name the one that never ends. */
import { fuzz, type FuzzResult } from "./fuzz.ts";
import { TARGETS } from "./targets.ts";

interface Order {
  readonly inputs: number;
  readonly seed: number;
  readonly target: string | null;
  /** One number on shared memory: the input under way. */
  readonly progress: Int32Array;
}

/** What a worker is given beside what a page has. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<Order>) => void) | null;
  postMessage(message: unknown): void;
}

/** Whole rounds over the targets, so that an input has the same target in every slice. */
const SLICE = TARGETS.length * 32;

/** What is left after a collection counts, not what waits for one. */
const COLLECT_EVERY = 16;
const collect = (globalThis as { gc?: () => void }).gc;

const scope = self as unknown as WorkerScope;
scope.onmessage = ({ data }) => void run(data).then((result) => scope.postMessage(result));

/** In slices: what the runtime frees between two turns of its loop, decoders above all, would pile up without them. */
async function run({ inputs, seed, target, progress }: Order): Promise<FuzzResult> {
  let slowestMs = 0;
  for (let done = 0; done < inputs; done += SLICE) {
    const count = Math.min(SLICE, inputs - done);
    const slice = await fuzz(count, seed + done, target, (index) => Atomics.store(progress, 0, done + index));
    slowestMs = Math.max(slowestMs, slice.slowestMs);
    if (slice.failure !== null) return { inputs: done + slice.inputs, slowestMs, failure: slice.failure };
    await new Promise((resolve) => setTimeout(resolve, 0));
    if ((done / SLICE) % COLLECT_EVERY === 0) collect?.();
  }
  return { inputs, slowestMs, failure: null };
}
