/**
 * How late the event loop of the process under test is, as the process measures it itself and tells on `/metrics`.
 *
 * Seen from a load generator that is busy itself, its own lateness would be measured.
 */
import type { Footprint } from "./growth.ts";

const LAG_METRIC = "holdfast_event_loop_lag_seconds_bucket";

/** Upper bounds in seconds with the count of observations up to each, from the smallest bound on. */
export type Histogram = ReadonlyMap<number, number>;

export function readLag(metrics: string): Histogram {
  const buckets = new Map<number, number>();
  for (const match of metrics.matchAll(new RegExp(`^${LAG_METRIC}\\{le="([^"]+)"\\} (\\d+)$`, "gm"))) {
    buckets.set(match[1] === "+Inf" ? Infinity : Number(match[1]), Number(match[2]));
  }
  return buckets;
}

/** What `b` holds beyond `a`, an earlier reading of the same process. */
export function differenceOf(a: Histogram, b: Histogram): Histogram {
  return new Map([...b].map(([bound, count]) => [bound, count - (a.get(bound) ?? 0)]));
}

export function countOf(histogram: Histogram): number {
  return Math.max(0, ...histogram.values());
}

export function addHistograms(a: Histogram, b: Histogram): Histogram {
  const sum = new Map(a);
  for (const [bound, count] of b) sum.set(bound, (sum.get(bound) ?? 0) + count);
  return sum;
}

/** The bound by which this share of the observations lies, drawn straight through its bucket; NaN without any. */
export function quantile(histogram: Histogram, share: number): number {
  const total = countOf(histogram);
  if (total === 0) return NaN;
  let lower = 0;
  let below = 0;
  for (const [bound, count] of [...histogram].sort(([a], [b]) => a - b)) {
    if (count >= total * share) {
      if (bound === Infinity) return lower;
      return count === below ? bound : lower + (bound - lower) * (total * share - below) / (count - below);
    }
    lower = bound;
    below = count;
  }
  return lower;
}

/** Share of the observations up to this bound, which must be one of the buckets'; NaN without any. */
export function shareWithin(histogram: Histogram, bound: number): number {
  return (histogram.get(bound) ?? NaN) / countOf(histogram);
}

/** Longer than this share of an interval without a core says more about the machine than about the process. */
const STARVED_SHARE = 0.1;
/** Below so many observations their 99th percentile is one or two of them. */
const LEAST_LAGS = 400;
const LAG_LIMIT_SECONDS = 0.05;
const LAG_SHARE = 0.99;

/**
 * Gathers the lag over all lives, and apart from it that of the intervals in which the process got the core it wanted.
 *
 * On a machine that others use, too, a loop is late because somebody else ran: where all of it is beyond the limit, the
 * second is judged. A loop that is late because it is busy has the core, and is not left out.
 */
export class LagBook {
  #all: Histogram = new Map();
  #fed: Histogram = new Map();
  #last: { readonly histogram: Histogram; readonly footprint: Footprint } | null = null;

  add(histogram: Histogram, footprint: Footprint): void {
    const before = this.#last;
    this.#last = { histogram, footprint };
    const more = before === null ? histogram : differenceOf(before.histogram, histogram);
    this.#all = addHistograms(this.#all, more);
    if (before === null) return;
    const starvedMs = footprint.starvedMs - before.footprint.starvedMs;
    const tookMs = footprint.atMs - before.footprint.atMs;
    if (starvedMs <= tookMs * STARVED_SHARE) this.#fed = addHistograms(this.#fed, more);
  }

  /** The process ended; the next one counts from zero. */
  endLife(): void {
    this.#last = null;
  }

  /** What is wrong with the process; null when nothing is, or when the machine lets nobody say. */
  get problem(): string | null {
    return this.#judge().problem;
  }

  report(): Record<string, number | string> {
    const { verdict } = this.#judge();
    const ms = (histogram: Histogram): number => Number((quantile(histogram, LAG_SHARE) * 1_000).toFixed(1));
    const share = (histogram: Histogram): number =>
      Number(shareWithin(histogram, LAG_LIMIT_SECONDS).toFixed(5));
    return {
      p99_ms: ms(this.#all),
      within_50_ms: share(this.#all),
      samples: countOf(this.#all),
      fed_p99_ms: ms(this.#fed),
      fed_within_50_ms: share(this.#fed),
      fed_samples: countOf(this.#fed),
      verdict,
    };
  }

  #judge(): { readonly verdict: string; readonly problem: string | null } {
    if (isInTime(this.#all)) return { verdict: "ok", problem: null };
    if (countOf(this.#fed) < LEAST_LAGS) {
      return { verdict: "not judged: others had the core for too long", problem: null };
    }
    if (isInTime(this.#fed)) {
      return { verdict: "ok while it had the core it wanted; late where others had it", problem: null };
    }
    const late = 1 - shareWithin(this.#fed, LAG_LIMIT_SECONDS);
    const problem = `the event loop was more than 50 ms late in ${(late * 100).toFixed(2)} % of cases`;
    return { verdict: problem, problem };
  }
}

function isInTime(histogram: Histogram): boolean {
  return shareWithin(histogram, LAG_LIMIT_SECONDS) >= LAG_SHARE;
}
