/** What usage pages and rate-limit headers claim: right, wrong, stale, contradictory, or from the future. */
import type { ModelId } from "../../../lib/core/domain.ts";
import type { QuotaReading, QuotaSource, QuotaWindow } from "../../../lib/core/records.ts";
import type { Dice } from "../dice.ts";

const SOURCES: readonly QuotaSource[] = [
  "usage_page",
  "response_headers",
  "stream_event",
  "websocket_frame",
  "snapshot",
];

export function drawPage(dice: Dice, models: readonly ModelId[], nowMs: number): QuotaReading {
  const windows: QuotaWindow[] = [];
  for (let at = dice.int(0, 3); at > 0; at--) {
    windows.push({
      name: dice.pick(["5h", "7d", "primary"]),
      usedPercent: dice.weighted([[3, 100], [1, 98], [1, 97], [3, dice.int(0, 96)], [1, null]]),
      resetAtMs: dice.chance(0.8)
        ? nowMs + dice.span(1_000, 5 * 86_400_000) - (dice.chance(0.1) ? 60_000 : 0)
        : null,
      modelFamily: dice.chance(0.2) ? dice.pick(models).split("-")[0]! : null,
    });
  }
  return {
    observedAtMs: nowMs + dice.weighted([
      [6, 0],
      [2, -dice.span(1_000, 120_000)],
      [1, -dice.span(120_000, 3_600_000)],
      [1, dice.span(1_000, 3_600_000)],
    ]),
    source: dice.pick(SOURCES),
    windows,
    limitReached: dice.weighted([[3, null], [1, true], [1, false]]),
    servesBeyondWindows: dice.chance(0.1),
    creditsAvailable: dice.weighted([[4, null], [1, true], [1, false]]),
    plan: null,
  };
}

/** A page of an account with nothing spent. */
export function emptyPage(nowMs: number): QuotaReading {
  return {
    observedAtMs: nowMs,
    source: "usage_page",
    windows: [{ name: "5h", usedPercent: 3, resetAtMs: nowMs + 3_600_000, modelFamily: null }],
    limitReached: false,
    servesBeyondWindows: false,
    creditsAvailable: true,
    plan: null,
  };
}
