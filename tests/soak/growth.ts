/** What the process under test holds, and whether that grows over one of its lives. */
import type { HeapReading } from "../support/heap_probe.ts";

export interface Footprint {
  readonly atMs: number;
  readonly residentBytes: number;
  readonly descriptors: number;
  /** How long the process was ready to run and got no core, since its start. */
  readonly starvedMs: number;
}

/** From `/proc`. @throws Deno.errors.NotFound once the process is gone. */
export async function readFootprint(pid: number, atMs: number): Promise<Footprint> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  let descriptors = 0;
  for await (const _entry of Deno.readDir(`/proc/${pid}/fd`)) descriptors++;
  const schedule = await Deno.readTextFile(`/proc/${pid}/schedstat`);
  return {
    atMs,
    residentBytes: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1_024,
    descriptors,
    starvedMs: Number(schedule.split(" ")[1]) / 1e6,
  };
}

/** Without so many samples in each of the two windows nothing is said about growth. */
const LEAST_SAMPLES = 15;
/** Memory is read after a collection: what big bodies leave behind until then swings by more than a leak would show. */
export const GROWTH_LIMITS = { heap: 1.1, resident: 1.25, descriptors: 1.25 } as const;
/** Below these differences a ratio is noise: a client more under way, a cache not quite full. */
const HEAP_SLACK_BYTES = 3_000_000;
const DESCRIPTOR_SLACK = 15;

/** A reading of a moment at which everything that can be let go was. */
export interface Settled extends HeapReading {
  readonly atMs: number;
  readonly residentBytes: number;
}

export interface Growth {
  readonly heap: number;
  readonly resident: number;
  readonly descriptors: number;
  readonly problems: readonly string[];
}

/**
 * Compares the last quarter of a life with its second, under the same load; the first is warm-up.
 *
 * @param settled  readings spread over the same life.
 * @returns `null` when the life was too short to say.
 */
export function judgeGrowth(
  samples: readonly Footprint[],
  settled: readonly Settled[],
): Growth | null {
  const first = samples[0];
  const last = samples.at(-1);
  if (first === undefined || last === undefined) return null;
  const quarterMs = (last.atMs - first.atMs) / 4;
  const within = <T extends { readonly atMs: number }>(list: readonly T[], quarter: number): T[] =>
    list.filter(({ atMs }) =>
      atMs >= first.atMs + quarter * quarterMs &&
      (quarter === 3 || atMs < first.atMs + (quarter + 1) * quarterMs)
    );
  const [early, late] = [within(samples, 1), within(samples, 3)];
  const [earlySettled, lateSettled] = [within(settled, 1), within(settled, 3)];
  if (early.length < LEAST_SAMPLES || late.length < LEAST_SAMPLES) return null;
  if (earlySettled.length === 0 || lateSettled.length === 0) return null;
  const problems: string[] = [];
  const compare = (
    name: keyof typeof GROWTH_LIMITS,
    before: readonly number[],
    after: readonly number[],
    slack: number,
  ): number => {
    const [was, is] = [median(before), median(after)];
    if (is / was > GROWTH_LIMITS[name] && is - was > slack) {
      problems.push(`${name} grew from ${was} to ${is}`);
    }
    return Number((is / was).toFixed(3));
  };
  const live = ({ usedBytes, buffersBytes }: HeapReading): number => usedBytes + buffersBytes;
  return {
    heap: compare("heap", earlySettled.map(live), lateSettled.map(live), HEAP_SLACK_BYTES),
    resident: compare(
      "resident",
      earlySettled.map((one) => one.residentBytes),
      lateSettled.map((one) => one.residentBytes),
      0,
    ),
    descriptors: compare(
      "descriptors",
      early.map((one) => one.descriptors),
      late.map((one) => one.descriptors),
      DESCRIPTOR_SLACK,
    ),
    problems,
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
