/** Many seeds over the cores of the machine, until one fails, all are done or enough requests were made. */
import {
  add,
  type Block,
  type BlockReport,
  type Failure,
  NO_TOTALS,
  runBlock,
  type Totals,
} from "./block.ts";
import { beStrict } from "./findings.ts";
import type { Options } from "./options.ts";

/** Seeds handed to a thread at once. */
const BLOCK_SEEDS = 20;
/** Below this many seeds threads cost more than they save. */
const THREADED_FROM_SEEDS = 60;

export interface CampaignResult {
  readonly totals: Totals;
  readonly failure: Failure | null;
  readonly nextSeed: number;
}

interface Checkpoint {
  readonly nextSeed: number;
  readonly totals: Totals;
}

export async function runCampaign(
  options: Options,
  progress: (totals: Totals) => void,
): Promise<CampaignResult> {
  const saved = readCheckpoint(options.checkpoint);
  const from = saved?.nextSeed ?? options.from;
  const endSeed = options.from + options.seeds;
  let totals = saved?.totals ?? NO_TOTALS;
  let failure: Failure | null = null;
  let nextSeed = from;
  const done = new Set<number>();
  let doneUntil = from;

  const takeBlock = (): Block | null => {
    const isEnough = options.requests !== null && totals.requests >= options.requests;
    if (failure !== null || isEnough || nextSeed >= endSeed) return null;
    const count = Math.min(BLOCK_SEEDS, endSeed - nextSeed);
    const block = { from: nextSeed, count, store: options.store, strict: options.strict };
    nextSeed += count;
    return block;
  };
  const noteReport = ({ block, totals: more, failure: failed }: BlockReport) => {
    totals = add(totals, more);
    if (failed !== null && (failure === null || failed.seed < failure.seed)) failure = failed;
    done.add(block.from);
    // Only what is done without a gap may be skipped by a later run.
    while (failure === null && done.delete(doneUntil)) doneUntil = Math.min(doneUntil + BLOCK_SEEDS, endSeed);
    writeCheckpoint(options.checkpoint, { nextSeed: doneUntil, totals });
    progress(totals);
  };

  if (options.workers === 1 || endSeed - from < THREADED_FROM_SEEDS) {
    if (options.strict) beStrict();
    for (let block = takeBlock(); block !== null; block = takeBlock()) noteReport(runBlock(block));
  } else await runThreads(options.workers, takeBlock, noteReport);
  return { totals, failure, nextSeed: doneUntil };
}

async function runThreads(
  count: number,
  takeBlock: () => Block | null,
  noteReport: (report: BlockReport) => void,
): Promise<void> {
  await Promise.all(Array.from({ length: count }, async () => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    try {
      for (let block = takeBlock(); block !== null; block = takeBlock()) {
        noteReport(await ask(worker, block));
      }
    } finally {
      worker.terminate();
    }
  }));
}

function ask(worker: Worker, block: Block): Promise<BlockReport> {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<BlockReport>) => resolve(data);
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(`Cannot run seeds ${block.from} and following: ${event.message}`));
    };
    worker.postMessage(block);
  });
}

function readCheckpoint(path: string | null): Checkpoint | null {
  if (path === null) return null;
  try {
    return JSON.parse(Deno.readTextFileSync(path)) as Checkpoint;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

function writeCheckpoint(path: string | null, checkpoint: Checkpoint): void {
  if (path !== null) Deno.writeTextFileSync(path, JSON.stringify(checkpoint));
}
