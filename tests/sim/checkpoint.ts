/**
 * The place of a long run: how far everything is done without a gap, and what that came to.
 *
 * Blocks end in any order where there are several threads. What lies behind a gap is run again by the next run, so it
 * is not counted before the gap is closed.
 */
import { add, type BlockReport, NO_TOTALS, type Totals } from "./block.ts";
import type { Options } from "./options.ts";

export interface Checkpoint {
  /** What the run was asked for: a place says nothing about another run. */
  readonly from: number;
  readonly store: Options["store"];
  /** Every seed before this one is done. */
  readonly nextSeed: number;
  /** Of exactly those. */
  readonly totals: Totals;
}

/**
 * @returns the place kept there, of this very run; its beginning when there is no file.
 * @throws Error when the file is of another run, SyntaxError when it is no checkpoint.
 */
export function readCheckpoint(path: string | null, { from, store }: Options): Checkpoint {
  const start: Checkpoint = { from, store, nextSeed: from, totals: NO_TOTALS };
  if (path === null) return start;
  let saved: Checkpoint;
  try {
    saved = JSON.parse(Deno.readTextFileSync(path));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return start;
    throw error;
  }
  if (saved.from === from && saved.store === store) return saved;
  throw new Error(
    `Cannot go on from ${path}: it is of a run with --from ${saved.from} --store ${saved.store}, ` +
      `got --from ${from} --store ${store}`,
  );
}

/** Whole or not at all: the run may be stopped at any moment. */
export function writeCheckpoint(path: string | null, checkpoint: Checkpoint): void {
  if (path === null) return;
  Deno.writeTextFileSync(`${path}.new`, JSON.stringify(checkpoint));
  Deno.renameSync(`${path}.new`, path);
}

export class Place {
  #checkpoint: Checkpoint;
  /** Done behind a gap, by their first seeds; as many as there are threads. */
  readonly #waiting = new Map<number, BlockReport>();

  constructor(checkpoint: Checkpoint) {
    this.#checkpoint = checkpoint;
  }

  get checkpoint(): Checkpoint {
    return this.#checkpoint;
  }

  /** A block is done. One that failed is not: the next run meets its failure again. */
  note(report: BlockReport): void {
    if (report.failure !== null) return;
    this.#waiting.set(report.block.from, report);
    for (;;) {
      const { nextSeed, totals } = this.#checkpoint;
      const next = this.#waiting.get(nextSeed);
      if (next === undefined) return;
      this.#waiting.delete(nextSeed);
      this.#checkpoint = {
        ...this.#checkpoint,
        nextSeed: nextSeed + next.block.count,
        totals: add(totals, next.totals),
      };
    }
  }
}
