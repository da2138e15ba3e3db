/** Failure evidence of any oddness, for properties. */
import fc from "fast-check";
import type { ErrorFacts, Evidence } from "../../lib/core/evidence.ts";

/** A word no dictionary has; found in an outcome it would be upstream text. */
export const MARK = "sent_upstream_word";

const words = fc.oneof(
  fc.constantFrom(null, MARK, `Model ${MARK} is not supported when using Codex`, `${MARK} try again in 5s`),
  fc.constantFrom(
    "usage_limit_reached",
    "rate_limit_exceeded",
    "server_is_overloaded",
    "model_not_found",
    "token_revoked",
    "entitlement_missing",
    "image_x",
    "rate_limit_error",
    "permission_error",
    "credits_required",
    "thread_not_found",
    `You will regain access on 2024-04-01 at 00:00 UTC. ${MARK}`,
    `out of extra usage ${MARK}`,
    "1113",
    "1234",
    "1302",
    "1308",
    "1311",
    "429",
    `[1308][${MARK} reset at 2023-11-15 09:00:00][x]`,
    `Rate limit reached for ${MARK} in organization ${MARK}`,
    "network_error",
    "slow_down",
  ),
  fc.string().map((text) => text + MARK),
);
const moment = fc.oneof(fc.constant(null), fc.double(), fc.integer());
const error: fc.Arbitrary<ErrorFacts> = fc.record({
  form: fc.constantFrom("json", "other_json", "html", "text", "empty"),
  code: words,
  type: words,
  message: words,
  param: words,
  status: fc.oneof(fc.constantFrom(null, 401, 403, 429), fc.integer()),
  resetsAtMs: moment,
  resetsInMs: moment,
  detailCode: words,
});
const headers = fc.array(fc.tuple(
  fc.constantFrom(
    "retry-after",
    "retry-after-ms",
    "date",
    "server",
    "cf-mitigated",
    "x-ratelimit-remaining",
    "x-error-json",
    "x-openai-authorization-error",
    "x-codex-active-limit",
    "x-codex-rate-limit-reached-type",
    "x-codex-primary-used-percent",
    "x-codex-primary-reset-at",
    "x-codex-primary-reset-after-seconds",
    "anthropic-ratelimit-unified-status",
    "anthropic-ratelimit-unified-5h-status",
    "anthropic-ratelimit-unified-5h-reset",
    "anthropic-ratelimit-unified-7d_oi-status",
    "anthropic-ratelimit-unified-representative-claim",
    "anthropic-ratelimit-requests-remaining",
    "x-ratelimit-reset-requests",
  ),
  fc.oneof(
    fc.constantFrom(MARK, "1", "100", "-1", "1e400", "99999999999999999999", "9007199254740991"),
    fc.constantFrom(
      "workspace_owner_credits_depleted",
      "codex",
      "codex_bengalfox",
      "1775000000.5",
      "rejected",
    ),
    fc.string(),
  ),
)).map((pairs) => {
  const map = new Map<string, string>(pairs);
  return { get: (name: string) => map.get(name) ?? null };
});

export const failureEvidence: fc.Arbitrary<Evidence> = fc.oneof(
  fc.record({
    kind: fc.constant("http" as const),
    status: fc.oneof(fc.constantFrom(400, 401, 403, 404, 429, 503), fc.integer({ min: 0, max: 700 })),
    headers,
    error,
  }),
  fc.record({ kind: fc.constant("in_stream" as const), headers, error }),
);
