/**
 * Time for the whole process: one clock that never goes back, and one timer that serves every deadline.
 *
 * A timer for each request costs about a tenth of the throughput, so deadlines are kept in ticks of 20 ms and one
 * `setTimeout` is armed for the earliest of them. Nothing fires early; a callback may be up to one tick late.
 */
import type { Clock, Scheduled } from "../ports.ts";

/** Deadlines are rounded up to this; it bounds both lateness and the wake-ups under load (50 a second). */
const TICK_MS = 20;
/** Longest sleep of the timer: how soon a forward step of the wall clock (a laptop waking up) is noticed. */
const LONGEST_NAP_MS = 1_000;
const NAP_TICKS = LONGEST_NAP_MS / TICK_MS;
/** Share of elapsed time given back while we are ahead of a wall clock that was moved back. */
const SLEW = 0.05;

/** Where time comes from; the real one by default, a scripted one in the tests of this file. */
export interface TimeSources {
  /** UTC epoch ms; may jump both ways. */
  wall(): number;
  /** Ms from any origin; never goes back, may stand still while the machine sleeps. */
  monotonic(): number;
  startTimer(callback: () => void, delayMs: number): Timer;
  stopTimer(timer: Timer): void;
}

export type Timer = ReturnType<typeof setTimeout> | number;

const SYSTEM: TimeSources = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  startTimer: (callback, delayMs) => setTimeout(callback, delayMs),
  stopTimer: (timer) => clearTimeout(timer),
};

interface Bucket {
  readonly tick: number;
  readonly entries: Set<Entry>;
}

interface Entry {
  readonly bucket: Bucket;
  readonly callback: () => void;
}

/**
 * The process clock.
 *
 * `now()` follows the wall clock forward at once. When the wall clock is moved back, `now()` keeps running at 95 % of
 * real speed until the wall has caught up: no deadline is frozen, none fires in a burst, none is early.
 */
export function createClock(sources: TimeSources = SYSTEM): Clock {
  const now = steadyTime(sources);
  const buckets = new Map<number, Bucket>();
  let entryCount = 0;
  /** Every bucket before this tick has been emptied. */
  let firedTick = 0;
  let timer: Timer | null = null;
  let armedTick = Infinity;

  function schedule(atMs: number, callback: () => void): Scheduled {
    if (Number.isNaN(atMs)) throw new RangeError("Cannot schedule a callback: the time is not a number");
    if (entryCount === 0) firedTick = Math.floor(now() / TICK_MS);
    // A time in the past goes into the bucket that is looked at next; the callback never runs inside `schedule`.
    const bucket = bucketAt(Math.max(Math.ceil(atMs / TICK_MS), firedTick));
    const entry: Entry = { bucket, callback };
    bucket.entries.add(entry);
    entryCount += 1;
    if (bucket.tick < armedTick) arm(bucket.tick);
    return { cancel: () => cancel(entry) };
  }

  function bucketAt(tick: number): Bucket {
    let bucket = buckets.get(tick);
    if (bucket === undefined) buckets.set(tick, bucket = { tick, entries: new Set() });
    return bucket;
  }

  function cancel(entry: Entry): void {
    const { tick, entries } = entry.bucket;
    if (!entries.delete(entry)) return;
    // A bucket that is being fired has left the map already, and another may have taken its place.
    if (entries.size === 0 && buckets.get(tick) === entry.bucket) buckets.delete(tick);
    entryCount -= 1;
    // An armed timer is left alone while others wait: a useless wake-up is cheaper than re-arming on every cancel.
    if (entryCount === 0) disarm();
  }

  function arm(tick: number): void {
    disarm();
    armedTick = Math.min(tick, Math.floor(now() / TICK_MS) + NAP_TICKS);
    timer = sources.startTimer(fire, Math.max(0, armedTick * TICK_MS - now()));
  }

  function disarm(): void {
    if (timer !== null) sources.stopTimer(timer);
    timer = null;
    armedTick = Infinity;
  }

  function fire(): void {
    timer = null;
    armedTick = Infinity;
    const nowTick = Math.floor(now() / TICK_MS);
    const due = dueTicks(nowTick);
    firedTick = nowTick;
    for (const tick of due) {
      const bucket = buckets.get(tick);
      if (bucket === undefined) continue;
      buckets.delete(tick);
      for (const entry of bucket.entries) {
        bucket.entries.delete(entry);
        entryCount -= 1;
        run(entry.callback);
      }
    }
    if (entryCount > 0) arm(nextTick());
  }

  /** Ascending. A step of days must not walk millions of empty ticks, so the shorter of the two ways is taken. */
  function dueTicks(nowTick: number): number[] {
    const ticks: number[] = [];
    if (nowTick - firedTick > buckets.size) {
      for (const tick of buckets.keys()) if (tick <= nowTick) ticks.push(tick);
      return ticks.sort((a, b) => a - b);
    }
    for (let tick = firedTick; tick <= nowTick; tick++) if (buckets.has(tick)) ticks.push(tick);
    return ticks;
  }

  function nextTick(): number {
    for (let tick = firedTick; tick < firedTick + NAP_TICKS; tick++) if (buckets.has(tick)) return tick;
    return Infinity;
  }

  return {
    now,
    schedule,
    sleepUntil: (untilMs, signal) => sleepOn({ now, schedule }, untilMs, signal),
  };
}

/**
 * The one way to sleep on a clock; the fake clock of the tests uses it too.
 *
 * @returns `true` at or after `untilMs`, `false` as soon as the signal aborts. Timer and listener are gone by then.
 */
export function sleepOn(
  clock: Pick<Clock, "now" | "schedule">,
  untilMs: number,
  signal: AbortSignal | null,
): Promise<boolean> {
  if (signal?.aborted) return Promise.resolve(false);
  if (untilMs <= clock.now()) return Promise.resolve(true);
  return new Promise((resolve) => {
    const leave = () => {
      scheduled.cancel();
      resolve(false);
    };
    const scheduled = clock.schedule(untilMs, () => {
      signal?.removeEventListener("abort", leave);
      resolve(true);
    });
    signal?.addEventListener("abort", leave, { once: true });
  });
}

/** Whole ms that never go back; see `createClock`. */
function steadyTime(sources: TimeSources): () => number {
  let wallAt = sources.wall();
  let shownMs = wallAt;
  let readAt = sources.monotonic();
  return () => {
    const wall = sources.wall();
    // The time is asked for many times in one millisecond, and no wall clock stands still for longer.
    if (wall === wallAt) return Math.floor(shownMs);
    wallAt = wall;
    const at = sources.monotonic();
    const elapsed = at - readAt;
    const free = shownMs + elapsed;
    // Ahead of the wall: give back a part of the elapsed time, never more than we are ahead.
    shownMs = wall >= free ? wall : free - Math.min(free - wall, elapsed * SLEW);
    readAt = at;
    return Math.floor(shownMs);
  };
}

/** One failing callback must not keep the others from running; the failure still reaches the process. */
function run(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    reportError(error);
  }
}
