/** What holds for every evidence, however odd, with and without a descriptor's reading. */
import { assert, assertMatch } from "@std/assert";
import fc from "fast-check";
import { classify } from "../../lib/core/classify.ts";
import type { Evidence } from "../../lib/core/evidence.ts";
import type { Outcome } from "../../lib/core/outcome.ts";
import { descriptorFor } from "../../lib/providers/registry.ts";
import { failureEvidence, MARK } from "../support/evidence_arbitrary.ts";

const CONTEXT = { nowMs: 1_700_000_000_000, model: "gpt-5.1" };
const judges: { name: string; judge: (evidence: Evidence) => Outcome }[] = [
  { name: "by itself", judge: (evidence) => classify(evidence, null, CONTEXT) },
  ...(["codex", "anthropic", "zai", "openai"] as const).map((kind) => ({
    name: `after ${kind} read it`,
    judge: (evidence: Evidence) =>
      classify(evidence, descriptorFor(kind).readSignal(evidence, CONTEXT), CONTEXT),
  })),
];

for (const { name, judge } of judges) {
  Deno.test(`classify() never throws and its code is a safe word, ${name}`, () => {
    fc.assert(
      fc.property(failureEvidence, (evidence) => {
        const outcome = judge(evidence);
        assertMatch(outcome.code, /^[a-z0-9_]{1,64}$/);
        assert(outcome.row >= 1 && outcome.row <= 52);
      }),
      { numRuns: 2_000 },
    );
  });

  Deno.test(`classify() lets no upstream text into an outcome, ${name}`, () => {
    fc.assert(
      fc.property(failureEvidence, (evidence) => {
        assert(!JSON.stringify(judge(evidence)).includes(MARK));
      }),
      { numRuns: 2_000 },
    );
  });

  Deno.test(`classify() states only times that lie ahead, at most 366 days, ${name}`, () => {
    fc.assert(
      fc.property(failureEvidence, (evidence) => {
        const untilMs = statedTime(judge(evidence));
        if (untilMs === null) return;
        assert(Number.isInteger(untilMs));
        assert(untilMs > CONTEXT.nowMs && untilMs <= CONTEXT.nowMs + 366 * 86_400_000);
      }),
      { numRuns: 2_000 },
    );
  });
}

function statedTime(outcome: Outcome): number | null {
  if (outcome.kind === "limited") return outcome.stated?.untilMs ?? null;
  return outcome.kind === "transient" ? outcome.notBeforeMs : null;
}
