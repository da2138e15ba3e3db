/** Rows of answers with a failure status, limits aside. */
import { assertEquals } from "@std/assert";
import { classify, type Signal } from "../../lib/core/classify.ts";
import { answer, EMPTY_BODY, facts, html, plainText } from "../support/evidence.ts";
import { judge, NOW, type OutcomeRow, retryAfter, testOutcomes } from "../support/outcome_rows.ts";

testOutcomes([
  {
    name: "row 2, 400 nobody knows",
    evidence: answer(400, facts({ code: "brand_new", message: "Nope" })),
    want: {
      kind: "request_fault",
      row: 2,
      scope: "request",
      origin: "upstream",
      status: 400,
      code: "invalid_request",
      state: "none",
    },
  },
  {
    name: "row 2, other 4xx",
    evidence: answer(418),
    want: { kind: "request_fault", row: 2, status: 418, code: "invalid_request" },
  },
  {
    name: "row 2, the upgrade is refused for good",
    evidence: answer(426),
    want: { kind: "request_fault", row: 2, status: 426, code: "upgrade_required" },
  },
  {
    name: "row 3, context too long",
    evidence: answer(400, facts({ code: "context_length_exceeded" })),
    want: { kind: "request_fault", row: 3, status: 400, code: "context_length_exceeded" },
  },
  {
    name: "row 3, context too long with any 4xx",
    evidence: answer(413, facts({ code: "Context-Length exceeded" })),
    want: { kind: "request_fault", row: 3, status: 413, code: "context_length_exceeded" },
  },
  { name: "row 4, 409", evidence: answer(409), want: { kind: "request_fault", row: 4, code: "conflict" } },
  {
    name: "row 4, 422",
    evidence: answer(422),
    want: { kind: "request_fault", row: 4, code: "unprocessable" },
  },
  {
    name: "row 4, previous response unknown",
    evidence: answer(400, facts({ code: "previous_response_not_found" })),
    want: { kind: "request_fault", row: 4, state: "previous_response" },
  },
  {
    name: "row 4, foreign encrypted content",
    evidence: answer(400, facts({ code: "invalid_encrypted_content" })),
    want: { kind: "request_fault", row: 4, state: "foreign_state" },
  },
  {
    name: "row 4, policy",
    evidence: answer(400, facts({ code: "cyber_policy", type: "invalid_request" })),
    want: { kind: "request_fault", row: 4, code: "cyber_policy", state: "none" },
  },
  {
    name: "row 5, 413",
    evidence: answer(413, html("<h1>413</h1>")),
    want: { kind: "request_fault", row: 5, status: 413, code: "request_too_large" },
  },
  {
    name: "row 6, 401 whatever its type",
    evidence: answer(401, facts({ type: "invalid_request_error", message: "Unsupported parameter: x" })),
    want: { kind: "unauthorized", row: 6, scope: "account", status: 401, code: "unauthorized" },
  },
  {
    name: "row 6, 401 with a revoked token",
    evidence: answer(401, facts({ code: "token_revoked" })),
    want: { kind: "unauthorized", row: 6, code: "token_revoked" },
  },
  {
    name: "ruling 19, a request-fault code wins over 401 (B040)",
    evidence: answer(401, facts({ type: "invalid_request_error", code: "invalid_parameter" })),
    want: { kind: "request_fault", row: 2, scope: "request", status: 401, code: "invalid_parameter" },
  },
  {
    name: "row 10, 402",
    evidence: answer(402, EMPTY_BODY),
    want: { kind: "credits", row: 10, scope: "account", status: 402, code: "payment_required" },
  },
  {
    name: "row 10, billing code with a 429",
    evidence: answer(429, facts({ type: "insufficient_quota", code: "insufficient_quota" }), retryAfter(5)),
    want: { kind: "credits", row: 10, status: 429, code: "insufficient_quota" },
  },
  {
    name: "row 10, billing code with a 403",
    evidence: answer(403, facts({ code: "billing_not_active" })),
    want: { kind: "credits", row: 10, status: 403 },
  },
  {
    name: "row 11, suspended",
    evidence: answer(403, facts({ code: "account_suspended" })),
    want: { kind: "credential_dead", row: 11, scope: "account", code: "account_suspended" },
  },
  {
    name: "row 12, the plan has not this model",
    evidence: answer(403, facts({ message: "The model gpt-x is not available for your plan" })),
    want: { kind: "model_unsupported", row: 12, scope: "model", status: 403, code: "model_not_supported" },
  },
  {
    name: "row 13, challenge page (B148)",
    evidence: answer(403, html("<title>Just a moment...</title>"), { "cf-mitigated": "challenge" }),
    want: { kind: "edge_block", row: 13, scope: "provider", status: 403, code: "edge_challenge" },
  },
  {
    name: "row 13, block page",
    evidence: answer(403, html("<title>Attention Required! | Cloudflare</title>")),
    want: { kind: "edge_block", row: 13, code: "edge_blocked" },
  },
  {
    name: "row 13, any HTML 403",
    evidence: answer(403, html("<h1>Forbidden</h1>")),
    want: { kind: "edge_block", row: 13, code: "edge_blocked" },
  },
  {
    name: "row 13, empty 403",
    evidence: answer(403, EMPTY_BODY),
    want: { kind: "edge_block", row: 13, code: "edge_empty" },
  },
  {
    name: "row 13, Cloudflare's one-line refusal",
    evidence: answer(403, plainText("error code: 1020\n")),
    want: { kind: "edge_block", row: 13, code: "edge_blocked" },
  },
  {
    name: "row 13, 503 with the challenge page (B148)",
    evidence: answer(503, html('<script src="/cdn-cgi/challenge-platform/x"></script>'), retryAfter(99)),
    want: { kind: "edge_block", row: 13, status: 503, code: "edge_challenge" },
  },
  {
    name: "row 13, empty 404 from the edge (B148)",
    evidence: answer(404, EMPTY_BODY, { server: "cloudflare" }),
    want: { kind: "edge_block", row: 13, status: 404, code: "edge_empty" },
  },
  {
    name: "row 13, empty 404 with the edge's own id (B148)",
    evidence: answer(404, EMPTY_BODY, { "cf-ray": "9abc" }),
    want: { kind: "edge_block", row: 13, code: "edge_empty" },
  },
  {
    name: "row 13, HTML 404 from the edge",
    evidence: answer(404, html("<h1>404</h1>"), { server: "CloudFront" }),
    want: { kind: "edge_block", row: 13, code: "edge_blocked" },
  },
  {
    name: "row 13, a challenge known by its header alone",
    evidence: answer(429, EMPTY_BODY, { "cf-mitigated": "challenge", "retry-after": "9" }),
    want: { kind: "edge_block", row: 13, status: 429, code: "edge_challenge" },
  },
  {
    name: "row 14, a plain JSON 403 keeps its own meaning",
    evidence: answer(403, facts({ code: "who_knows", message: "Just a moment..." }), {
      server: "cloudflare",
    }),
    want: { kind: "request_fault", row: 14, scope: "request", status: 403, code: "forbidden" },
  },
  {
    name: "row 14, a 403 in plain words",
    evidence: answer(403, plainText("Forbidden")),
    want: { kind: "request_fault", row: 14, code: "forbidden" },
  },
  {
    name: "row 15, region refused (B147)",
    evidence: answer(403, facts({ code: "unsupported_country_region_territory" })),
    want: { kind: "edge_block", row: 15, scope: "provider", code: "unsupported_country_region_territory" },
  },
  {
    name: "row 15, region refused in words",
    evidence: answer(403, facts({ message: "Country, region, or territory not supported" })),
    want: { kind: "edge_block", row: 15 },
  },
  {
    name: "row 15, refused for legal reasons",
    evidence: answer(451),
    want: { kind: "edge_block", row: 15, code: "region_blocked" },
  },
  ...([400, 404, 422] as const).map((status): OutcomeRow => ({
    name: `row 16, ${status} with a model code`,
    evidence: answer(status, facts({ code: "model-not found" })),
    want: { kind: "model_unsupported", row: 16, scope: "model", status, code: "model_not_found" },
  })),
  {
    name: "row 16 needs a status that can be the model's fault",
    evidence: answer(503, facts({ code: "model_unavailable" })),
    want: { kind: "transient", row: 26, code: "upstream_error" },
  },
  {
    name: "row 17, other 404 (B006)",
    evidence: answer(404, facts({ message: "Not Found" }), { server: "cloudflare" }),
    want: { kind: "request_fault", row: 17, scope: "request", status: 404, code: "not_found" },
  },
  {
    name: "row 17, empty 404 of no edge",
    evidence: answer(404, EMPTY_BODY, { server: "uvicorn" }),
    want: { kind: "request_fault", row: 17 },
  },
  {
    name: "row 18, HTTP 408",
    evidence: answer(408, EMPTY_BODY, retryAfter(60)),
    want: {
      kind: "transient",
      row: 18,
      cause: "status",
      status: 408,
      notBeforeMs: null,
      recoverable: true,
      strike: true,
    },
  },
  ...[500, 501, 502, 504, 520, 521, 522, 599].map((status): OutcomeRow => ({
    name: `row 25, ${status}`,
    evidence: answer(status, html("<h1>Bad gateway</h1>")),
    want: {
      kind: "transient",
      row: 25,
      scope: "provider",
      origin: "upstream",
      cause: "status",
      status,
      code: "upstream_error",
      notBeforeMs: null,
      recoverable: true,
      strike: true,
    },
  })),
  {
    name: "row 25, a day in a 504 is not believed (B034)",
    evidence: answer(504, EMPTY_BODY, retryAfter(86_400)),
    want: { kind: "transient", row: 25, notBeforeMs: null },
  },
  ...[421, 425].map((status): OutcomeRow => ({
    name: `row 25, ${status} is the connection's trouble`,
    evidence: answer(status),
    want: { kind: "transient", row: 25, status, recoverable: false, strike: true },
  })),
  {
    name: "row 25, a page's text is not searched for words",
    evidence: answer(502, html("<p>our servers are overloaded</p>"), {}),
    want: { kind: "transient", row: 25, cause: "status", code: "upstream_error" },
  },
  {
    name: "row 26, a page's text states no time",
    evidence: answer(503, html("<p>please try again in 20s</p>")),
    want: { kind: "transient", row: 26, notBeforeMs: null },
  },
  {
    name: "row 26, 503",
    evidence: answer(503, EMPTY_BODY),
    want: { kind: "transient", row: 26, cause: "status", notBeforeMs: null, recoverable: true, strike: true },
  },
  {
    name: "row 26, 503 keeps its stated time",
    evidence: answer(503, EMPTY_BODY, retryAfter(120)),
    want: { kind: "transient", row: 26, notBeforeMs: NOW + 120_000 },
  },
  {
    name: "row 26, 503 with an overload code",
    evidence: answer(503, facts({ code: "server_is_overloaded" }), retryAfter(3)),
    want: {
      kind: "transient",
      row: 26,
      cause: "overloaded",
      code: "server_is_overloaded",
      notBeforeMs: NOW + 3_000,
    },
  },
  {
    name: "row 27, 529",
    evidence: answer(529, EMPTY_BODY, retryAfter(4)),
    want: {
      kind: "transient",
      row: 27,
      cause: "overloaded",
      notBeforeMs: NOW + 4_000,
      recoverable: true,
      strike: true,
    },
  },
  {
    name: "407 comes from our own proxy (B152)",
    evidence: answer(407, html("<h1>407</h1>")),
    want: { kind: "transient", row: 28, cause: "egress_proxy", strike: false },
  },
  {
    name: "row 35, provider-reported network trouble",
    evidence: answer(500),
    signal: { kind: "provider_reported", code: "provider_network" },
    want: {
      kind: "transient",
      row: 35,
      cause: "provider_reported",
      code: "provider_network",
      recoverable: true,
      strike: true,
    },
  },
  {
    name: "row 42, a redirect is nobody's answer (B149)",
    evidence: answer(302, html("<a>portal</a>"), { location: "http://portal.test" }),
    want: { kind: "transient", row: 42, cause: "malformed", status: 502, code: "unexpected_status" },
  },
  {
    name: "ruling 20, a workspace is paused for a while",
    evidence: answer(402),
    signal: { kind: "account_pause", code: "deactivated_workspace", untilMs: NOW + 1 },
    want: {
      kind: "account_pause",
      row: 10,
      scope: "account",
      code: "deactivated_workspace",
      untilMs: NOW + 1,
    },
  },
  {
    name: "a pause with a 403 is row 11",
    evidence: answer(403),
    signal: { kind: "account_pause", code: "workspace_access_denied", untilMs: NOW + 1 },
    want: { kind: "account_pause", row: 11 },
  },
  {
    name: "a signal wins over the status",
    evidence: answer(500, facts({ code: "context_length_exceeded" }), retryAfter(9)),
    signal: { kind: "unauthorized", code: "token_revoked" },
    want: { kind: "unauthorized", row: 6, status: 500, code: "token_revoked" },
  },
  {
    name: "a signal wins over the edge's marks",
    evidence: answer(403, EMPTY_BODY),
    signal: { kind: "credential_dead", code: "oauth_org_not_allowed" },
    want: { kind: "credential_dead", row: 11 },
  },
]);

Deno.test("classify() excludes no model when the request named none", () => {
  const evidence = answer(404, facts({ code: "model_not_found" }));
  const nameless = classify(evidence, null, { nowMs: NOW, model: null });
  assertEquals([nameless.kind, nameless.row, nameless.scope], ["request_fault", 2, "request"]);
  const signal: Signal = { kind: "model_unsupported", code: "model_not_found" };
  assertEquals(classify(evidence, signal, { nowMs: NOW, model: null }).kind, "request_fault");
  assertEquals(classify(evidence, null, { nowMs: NOW }).kind, "model_unsupported");
});

Deno.test("classify() replaces a code that is no safe word", () => {
  for (const code of ["Bad Code", "", "x".repeat(65), "tok-SENT", "ümlaut"]) {
    assertEquals(judge(answer(500), { kind: "unauthorized", code }).code, "unauthorized");
    assertEquals(judge({ kind: "malformed", detail: code }).code, "malformed");
    const refresh = { kind: "refresh_failed", terminal: true, code, retryAtMs: null } as const;
    assertEquals(judge(refresh).code, "credential_invalid");
    assertEquals(judge({ ...refresh, terminal: false }).code, "refresh_failed");
  }
});
