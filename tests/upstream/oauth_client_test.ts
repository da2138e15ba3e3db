import { assert, assertEquals } from "@std/assert";
import type { RefreshResult, Upstream, UpstreamRequest, UpstreamResult } from "../../lib/ports.ts";
import { createClock } from "../../lib/runtime/clock.ts";
import { NO_PROXY_ENVIRONMENT } from "../../lib/upstream/egress_proxy.ts";
import { createUpstream } from "../../lib/upstream/http_client.ts";
import { createOauthClient, readAnswer } from "../../lib/upstream/oauth_client.ts";
import type { TransportCause } from "../../lib/core/evidence.ts";
import { fakeJwt } from "../support/credential_texts.ts";
import { FakeClock } from "../support/fake_clock.ts";

const NOW_MS = 1_800_000_000_000;
const HTML = "<html>Sign in to Wi-Fi</html>";

function answer(status: number, body: unknown, headers: Record<string, string> = {}): RefreshResult {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return readAnswer({ status, headers: new Headers(headers) }, text, NOW_MS);
}

const nested = (code: string) => ({
  error: { message: "SENT-REF", type: "invalid_request_error", param: null, code },
});

/** Wire-facts 4.3 and 6.8, field case B055: permanent, and known over restarts. */
const dead = [
  { status: 401, body: nested("refresh_token_reused"), code: "refresh_token_reused" },
  { status: 401, body: nested("refresh_token_expired"), code: "refresh_token_expired" },
  { status: 400, body: nested("refresh_token_expired"), code: "refresh_token_expired" },
  { status: 401, body: nested("refresh_token_invalidated"), code: "refresh_token_invalidated" },
  { status: 401, body: nested("token_expired"), code: "token_expired" },
  { status: 401, body: nested("token_invalidated"), code: "token_invalidated" },
  { status: 400, body: { error: "invalid_grant", error_description: "x" }, code: "invalid_grant" },
  { status: 401, body: { error: "INVALID_GRANT" }, code: "invalid_grant" },
  { status: 401, body: { code: "app_session_terminated" }, code: "app_session_terminated" },
  { status: 401, body: nested("account_session_expired"), code: "account_session_expired" },
  { status: 401, body: nested("account_auth_invalidated"), code: "account_auth_invalidated" },
  { status: 403, body: nested("account_deactivated"), code: "account_deactivated" },
  { status: 401, body: nested("account_suspended"), code: "account_suspended" },
  { status: 403, body: { code: "account_deleted" }, code: "account_deleted" },
] as const;
for (const c of dead) {
  Deno.test(`readAnswer() takes ${c.status} ${c.code} for a dead login`, () => {
    assertEquals(answer(c.status, c.body), { kind: "dead", reason: "invalid_grant", code: c.code });
  });
}

const refused = [
  { name: "401 with a code nobody knows", status: 401, body: nested("sent_secret_word") },
  { name: "401 in JSON without a code", status: 401, body: { detail: "Unauthorized" } },
  { name: "400 with a code nobody knows", status: 400, body: { error: "invalid_client" } },
] as const;
for (const c of refused) {
  Deno.test(`readAnswer() takes a ${c.name} for a refusal, in words of our own`, () => {
    assertEquals(answer(c.status, c.body), {
      kind: "dead",
      reason: "credential_invalid",
      code: "refresh_refused",
    });
  });
}

/** Field cases B055 (last), B147, B149: never dead. */
const passing = [
  { name: "400 that is no JSON", status: 400, body: "not json" },
  { name: "400 with a JSON list", status: 400, body: [] },
  {
    name: "400 in JSON without a code",
    status: 400,
    body: { type: "error", error: { type: "invalid_request_error" } },
  },
  { name: "400 that says not now", status: 400, body: { error: "temporarily_unavailable" } },
  { name: "401 that says not now", status: 401, body: { error: { type: "overloaded_error" } } },
  { name: "401 page", status: 401, body: HTML },
  { name: "403 page", status: 403, body: HTML },
  { name: "empty 403", status: 403, body: "" },
  { name: "403 with a code nobody knows", status: 403, body: nested("policy") },
  { name: "region refusal", status: 403, body: nested("unsupported_country_region_territory") },
  { name: "region refusal as 401", status: 401, body: nested("unsupported_country_region_territory") },
  { name: "404", status: 404, body: { error: "not_found" } },
  { name: "redirect to a portal", status: 302, body: "" },
  { name: "200 portal page", status: 200, body: HTML },
  { name: "200 empty", status: 200, body: "" },
  { name: "200 without access token", status: 200, body: { id_token: "SENT-I" } },
  { name: "200 with an empty access token", status: 200, body: { access_token: "" } },
  { name: "200 with an access token that is no text", status: 200, body: { access_token: { a: 1 } } },
  { name: "200 cut in the middle", status: 200, body: '{"access_token":"SENT-A","refresh_tok' },
] as const;
for (const c of passing) {
  Deno.test(`readAnswer() takes a ${c.name} for a passing failure that is not repeated at once`, () => {
    const result = answer(c.status, c.body);
    assertEquals(result.kind === "retryable" && [result.sent, result.repeatable, result.refreshToken], [
      true,
      false,
      null,
    ]);
    assert(result.kind === "retryable" && /^token_endpoint_[a-z0-9_]+$/.test(result.code));
  });
}

const repeatable = [
  { status: 408, headers: {}, waitMs: null },
  { status: 429, headers: { "retry-after": "20" }, waitMs: 20_000 },
  { status: 429, headers: { "retry-after": "20", "retry-after-ms": "1500" }, waitMs: 1_500 },
  { status: 429, headers: {}, waitMs: null },
  { status: 500, headers: { "retry-after": "nonsense" }, waitMs: null },
  { status: 502, headers: {}, waitMs: null },
  { status: 503, headers: { "retry-after": "Fri, 15 Jan 2027 08:00:07 GMT" }, waitMs: 7_000 },
  { status: 504, headers: {}, waitMs: null },
  { status: 529, headers: {}, waitMs: null },
] as const;
for (const c of repeatable) {
  Deno.test(`readAnswer() lets ${c.status} ${JSON.stringify(c.headers)} be repeated, whatever its body says`, () => {
    assertEquals(answer(c.status, { error: "invalid_grant" }, { ...c.headers }), {
      kind: "retryable",
      code: `token_endpoint_${c.status}`,
      sent: true,
      repeatable: true,
      retryAtMs: c.waitMs === null ? null : NOW_MS + c.waitMs,
      refreshToken: null,
    });
  });
}

Deno.test("readAnswer() reads the tokens and leaves out what is absent or empty", () => {
  const token = fakeJwt({ issuedAtMs: NOW_MS, expiresAtMs: NOW_MS + 3_600_000 });
  assertEquals(
    answer(200, { access_token: token, refresh_token: "SENT-R2", id_token: "SENT-I2", expires_in: 5 }),
    {
      kind: "refreshed",
      tokens: {
        accessToken: token,
        refreshToken: "SENT-R2",
        idToken: "SENT-I2",
        expiresAtMs: NOW_MS + 3_600_000,
      },
    },
  );
  assertEquals(answer(200, { access_token: "SENT-A", refresh_token: "", expires_in: 28_800 }), {
    kind: "refreshed",
    tokens: { accessToken: "SENT-A", expiresAtMs: NOW_MS + 28_800_000 },
  });
});

Deno.test("readAnswer() does not lose a refresh token that comes without an access token", () => {
  const result = answer(200, { refresh_token: "SENT-R2" });
  assertEquals(result.kind === "retryable" && result.refreshToken, "SENT-R2");
});

function upstreamGiving(result: UpstreamResult): Upstream & { requests: UpstreamRequest[] } {
  const requests: UpstreamRequest[] = [];
  return {
    requests,
    send: (request) => {
      requests.push(request);
      return Promise.resolve(result);
    },
    forget: () => {},
    bodyFailure: () => ({ kind: "malformed", detail: "" }),
    readErrorBody: () => Promise.resolve(new Uint8Array()),
    undoMissingLabel: (whole) => whole,
    close: () => {},
  };
}

const causes: readonly { cause: TransportCause; sent: boolean }[] = [
  { cause: "refused", sent: false },
  { cause: "dns", sent: false },
  { cause: "connect_timeout", sent: false },
  { cause: "tls", sent: false },
  { cause: "tls_certificate", sent: false },
  { cause: "egress_proxy", sent: false },
  { cause: "local_limit", sent: false },
  { cause: "reset_before_head", sent: true },
  { cause: "first_byte_timeout", sent: true },
];
for (const { cause, sent } of causes) {
  Deno.test(`refresh() that ends with ${cause} ${sent ? "may have" : "cannot have"} reached the issuer`, async () => {
    const upstream = upstreamGiving({ ok: false, evidence: { kind: "transport", cause, pooled: false } });
    const result = await createOauthClient(upstream, new FakeClock()).refresh({
      kind: "codex",
      url: "http://127.0.0.1/",
      refreshToken: "SENT-R",
      nowMs: NOW_MS,
    }, new AbortController().signal);
    assertEquals(result, {
      kind: "retryable",
      code: `token_endpoint_${cause}`,
      sent,
      repeatable: !sent,
      retryAtMs: null,
      refreshToken: null,
    });
  });
}

Deno.test("refresh() never uses a pooled connection: a refresh token is good for one use", async () => {
  const upstream = upstreamGiving({ ok: false, evidence: { kind: "client_cancelled" } });
  const client = createOauthClient(upstream, new FakeClock());
  const call = { kind: "codex", url: "http://127.0.0.1/", refreshToken: "SENT-R", nowMs: NOW_MS } as const;
  const result = await client.refresh(call, new AbortController().signal);
  assertEquals(result.kind === "retryable" && [result.sent, result.repeatable], [true, false]);
  await client.refresh(call, new AbortController().signal);
  assertEquals(upstream.requests.map(({ fresh, attempt }) => [fresh, attempt]), [[true, "refresh:1"], [
    true,
    "refresh:2",
  ]]);
});

const wire = [
  {
    kind: "codex",
    body: { client_id: "app_EMoamEEZ73f0CkXaXp7hrann", grant_type: "refresh_token", refresh_token: "SENT-R" },
    beta: null,
  },
  {
    kind: "anthropic",
    body: {
      client_id: "9d1c250a-e61b-44d9-88ed-5944d1962f5e",
      grant_type: "refresh_token",
      refresh_token: "SENT-R",
    },
    beta: "oauth-2025-04-20",
  },
] as const;
for (const c of wire) {
  Deno.test(`refresh() of ${c.kind} posts the official JSON body over a real socket, once`, async () => {
    const seen: unknown[] = [];
    await using server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      async (request) => {
        const { headers, method } = request;
        seen.push([
          method,
          new URL(request.url).pathname,
          headers.get("content-type"),
          headers.get("anthropic-beta"),
          await request.json(),
        ]);
        return Response.json({ access_token: "SENT-A", expires_in: 600 });
      },
    );
    const clock = createClock();
    const upstream = createUpstream({ clock, proxyUrl: "direct", environment: NO_PROXY_ENVIRONMENT });
    const url = `http://127.0.0.1:${server.addr.port}/oauth/token`;
    const result = await createOauthClient(upstream, clock).refresh(
      { kind: c.kind, url, refreshToken: "SENT-R", nowMs: clock.now() },
      new AbortController().signal,
    );
    upstream.close();
    assertEquals(result.kind === "refreshed" && result.tokens.accessToken, "SENT-A");
    assertEquals(seen, [["POST", "/oauth/token", "application/json", c.beta, c.body]]);
  });
}

Deno.test("refresh() against a portal that redirects does not follow it", async () => {
  let hitCount = 0;
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    hitCount += 1;
    return new Response(null, { status: 302, headers: { location: new URL("/portal", request.url).href } });
  });
  const clock = createClock();
  const upstream = createUpstream({ clock, proxyUrl: "direct", environment: NO_PROXY_ENVIRONMENT });
  const result = await createOauthClient(upstream, clock).refresh(
    {
      kind: "codex",
      url: `http://127.0.0.1:${server.addr.port}/`,
      refreshToken: "SENT-R",
      nowMs: clock.now(),
    },
    new AbortController().signal,
  );
  upstream.close();
  assertEquals([result.kind, hitCount], ["retryable", 1]);
});
