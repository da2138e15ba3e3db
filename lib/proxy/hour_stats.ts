/**
 * What happened in each of the last 60 minutes, for the small charts of the status page.
 *
 * A ring of counters: one request costs a few additions, and an hour takes the same memory busy or idle.
 */
import type { DecisionRecord } from "../core/decision.ts";
import { type DecisionResult, judgeDecision } from "./decision_words.ts";

export const STATS_MINUTES = 60;
const MINUTE_MS = 60_000;

export interface MinuteStats {
  /** When the minute began, UTC epoch ms. */
  readonly atMs: number;
  readonly served: number;
  readonly refused: number;
  readonly failed: number;
  readonly left: number;
  /** Requests that needed more than one attempt. */
  readonly moved: number;
  readonly waits: number;
  readonly waitedMs: number;
}

type Counters = { -readonly [key in keyof MinuteStats]: number };

export class HourStats {
  readonly #ring: Counters[] = Array.from({ length: STATS_MINUTES }, () => emptyMinute(0));
  #added = 0;

  /** Grows with every request: whoever shows the counters compares it with what was shown last. */
  get version(): number {
    return this.#added;
  }

  /** Counts a finished request in the minute of its end. */
  add(record: DecisionRecord): void {
    const atMs = minuteOf(record.endedAtMs ?? record.atMs);
    const slot = (atMs / MINUTE_MS) % STATS_MINUTES;
    let minute = this.#ring[slot]!;
    if (minute.atMs !== atMs) {
      // A clock that was set back must not wipe out a newer minute.
      if (minute.atMs > atMs) return;
      minute = this.#ring[slot] = emptyMinute(atMs);
    }
    this.#added++;
    const result: DecisionResult = judgeDecision(record);
    minute[result]++;
    if (record.attempts.length > 1) minute.moved++;
    minute.waits += record.waits.length;
    for (const wait of record.waits) minute.waitedMs += wait.untilMs - wait.fromMs;
  }

  /** The last `count` minutes up to the one under way, oldest first, without gaps. */
  read(nowMs: number, count: number = STATS_MINUTES): MinuteStats[] {
    const last = minuteOf(nowMs);
    return Array.from({ length: count }, (_, at) => {
      const atMs = last - (count - 1 - at) * MINUTE_MS;
      const minute = this.#ring[(atMs / MINUTE_MS) % STATS_MINUTES]!;
      return minute.atMs === atMs ? { ...minute } : emptyMinute(atMs);
    });
  }
}

function minuteOf(atMs: number): number {
  return Math.floor(atMs / MINUTE_MS) * MINUTE_MS;
}

function emptyMinute(atMs: number): Counters {
  return { atMs, served: 0, refused: 0, failed: 0, left: 0, moved: 0, waits: 0, waitedMs: 0 };
}
