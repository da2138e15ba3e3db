/** Many seeds over the cores of the machine, until one fails, all are done or enough requests were made. */
import { add, type Block, type BlockReport, type Failure, runBlock, type Totals } from "./block.ts";
import { Place, readCheckpoint, writeCheckpoint } from "./checkpoint.ts";
import { beStrict } from "./findings.ts";
import type { Options } from "./options.ts";

/** Seeds handed to a thread at once. */
const BLOCK_SEEDS = 20;
/** Below this many seeds threads cost more than they save. */
const THREADED_FROM_SEEDS = 60;

export interface CampaignResult {
  /** With what earlier runs of the same checkpoint did. */
  readonly totals: Totals;
  /** Simulated requests of this run alone. */
  readonly requestsHere: number;
  readonly failure: Failure | null;
  readonly nextSeed: number;
}

export async function runCampaign(
  options: Options,
  progress: (totals: Totals, requestsHere: number) => void,
): Promise<CampaignResult> {
  const place = new Place(readCheckpoint(options.checkpoint, options));
  const from = place.checkpoint.nextSeed;
  const endSeed = options.from + options.seeds;
  // What this run has seen, gaps or not; only what has none is kept.
  let { totals } = place.checkpoint;
  const requestsBefore = requestsOf(totals);
  let failure: Failure | null = null;
  let nextSeed = from;

  const takeBlock = (): Block | null => {
    const isEnough = options.requests !== null && totals.requests >= options.requests;
    if (failure !== null || isEnough || nextSeed >= endSeed) return null;
    const count = Math.min(BLOCK_SEEDS, endSeed - nextSeed);
    const block = { from: nextSeed, count, store: options.store, strict: options.strict };
    nextSeed += count;
    return block;
  };
  const noteReport = (report: BlockReport) => {
    const { totals: more, failure: failed } = report;
    totals = add(totals, more);
    if (failed !== null && (failure === null || failed.seed < failure.seed)) failure = failed;
    place.note(report);
    writeCheckpoint(options.checkpoint, place.checkpoint);
    progress(totals, requestsOf(totals) - requestsBefore);
  };

  if (options.workers === 1 || endSeed - from < THREADED_FROM_SEEDS) {
    if (options.strict) beStrict();
    for (let block = takeBlock(); block !== null; block = takeBlock()) noteReport(runBlock(block));
  } else await runThreads(options.workers, takeBlock, noteReport);
  const requestsHere = requestsOf(totals) - requestsBefore;
  return { totals, requestsHere, failure, nextSeed: place.checkpoint.nextSeed };
}

function requestsOf({ requests, calmRequests }: Totals): number {
  return requests + calmRequests;
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
