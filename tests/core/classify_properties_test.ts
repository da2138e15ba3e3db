/** What holds for every evidence, however odd. */
import { assert, assertMatch } from "@std/assert";
import fc from "fast-check";
import type { ErrorFacts, Evidence } from "../../lib/core/evidence.ts";
import { judge, NOW } from "../support/outcome_rows.ts";

/** A word no dictionary has; found in an outcome it would be upstream text. */
const MARK = "sent_upstream_word";
const words = fc.oneof(
  fc.constantFrom(null, MARK, `Model ${MARK} is not supported when using Codex`, `${MARK} try again in 5s`),
  fc.constantFrom(
    "usage_limit_reached",
    "server_is_overloaded",
    "model_not_found",
    "token_revoked",
    "image_x",
  ),
  fc.string().map((text) => text + MARK),
);
const moment = fc.oneof(fc.constant(null), fc.double(), fc.integer());
const errorFacts: fc.Arbitrary<ErrorFacts> = fc.record({
  form: fc.constantFrom("json", "other_json", "html", "text", "empty"),
  code: words,
  type: words,
  message: words,
  param: words,
  status: fc.oneof(fc.constant(null), fc.integer()),
  resetsAtMs: moment,
  resetsInMs: moment,
  detailCode: words,
});
const headers = fc.array(fc.tuple(
  fc.constantFrom("retry-after", "retry-after-ms", "date", "server", "cf-mitigated", "x-ratelimit-remaining"),
  fc.oneof(fc.constantFrom(MARK, "1", "-1", "1e400", "99999999999999999999"), fc.string()),
)).map((pairs) => {
  const map = new Map<string, string>(pairs);
  return { get: (name: string) => map.get(name) ?? null };
});
const evidence: fc.Arbitrary<Evidence> = fc.oneof(
  fc.record({
    kind: fc.constant("http" as const),
    status: fc.integer({ min: 0, max: 700 }),
    headers,
    error: errorFacts,
  }),
  fc.record({ kind: fc.constant("in_stream" as const), headers, error: errorFacts }),
);

Deno.test("classify() never throws, and its code is always a safe word", () => {
  fc.assert(
    fc.property(evidence, (seen) => {
      const outcome = judge(seen);
      assertMatch(outcome.code, /^[a-z0-9_]{1,64}$/);
      assert(outcome.row >= 1 && outcome.row <= 52);
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("classify() lets no upstream text into an outcome", () => {
  fc.assert(
    fc.property(evidence, (seen) => {
      assert(!JSON.stringify(judge(seen)).includes("sent_"));
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("classify() states only times that lie ahead, at most 366 days", () => {
  fc.assert(
    fc.property(evidence, (seen) => {
      const outcome = judge(seen);
      const untilMs = outcome.kind === "limited"
        ? outcome.stated?.untilMs
        : outcome.kind === "transient"
        ? outcome.notBeforeMs
        : null;
      if (untilMs == null) return;
      assert(Number.isInteger(untilMs));
      assert(untilMs > NOW && untilMs <= NOW + 366 * 86_400_000);
    }),
    { numRuns: 2_000 },
  );
});
