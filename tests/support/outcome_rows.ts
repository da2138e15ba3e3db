/** Rows of the merged decision table (state-machine-facts 4), each judged by `classify()`. */
import { assertEquals } from "@std/assert";
import { classify, type Signal } from "../../lib/core/classify.ts";
import type { Evidence } from "../../lib/core/evidence.ts";
import type { Outcome } from "../../lib/core/outcome.ts";

export const NOW = 1_700_000_000_000;

export function judge(evidence: Evidence, signal: Signal | null = null): Outcome {
  return classify(evidence, signal, { nowMs: NOW, model: "gpt-5.1" });
}

export interface OutcomeRow {
  name: string;
  evidence: Evidence;
  signal?: Signal;
  /** Every field that the row fixes; the rest is checked by the rows that name it. */
  want: Record<string, unknown>;
}

/** One test a row. */
export function testOutcomes(rows: readonly OutcomeRow[]): void {
  for (const row of rows) {
    Deno.test(`classify() judges ${row.name}`, () => {
      const outcome: Record<string, unknown> = { ...judge(row.evidence, row.signal) };
      const seen = Object.fromEntries(Object.keys(row.want).map((key) => [key, outcome[key]]));
      assertEquals(seen, row.want);
    });
  }
}

export function retryAfter(seconds: number): Record<string, string> {
  return { "retry-after": String(seconds) };
}

export function at(seconds: number, source: string): { untilMs: number; source: string } {
  return { untilMs: NOW + seconds * 1_000, source };
}
