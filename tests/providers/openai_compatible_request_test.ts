/** The request side of OpenAI-compatible hosts, and their limit headers (wire-facts 8.2). */
import { assertEquals, assertStrictEquals } from "@std/assert";
import { HeaderFields } from "../../lib/core/header_fields.ts";
import type { ClientProtocol } from "../../lib/core/domain.ts";
import { readsExhausted } from "../../lib/core/quota_park.ts";
import type { Credential } from "../../lib/ports.ts";
import { type RouteName, ROUTES } from "../../lib/protocol/route.ts";
import { OPENAI_COMPATIBLE } from "../../lib/providers/openai_compatible.ts";
import { KEY, LOGIN, outgoingAs, settingsOf } from "../support/outgoing.ts";

const NOW = 1_775_000_000_000;
const PLATFORM = settingsOf("openai", "https://api.openai.com/v1");
const LAB = settingsOf("openai", "http://127.0.0.1:8000/v1");
const NONE: Credential = { kind: "api_key", apiKey: "none" };

const urls: { route: RouteName; protocol: ClientProtocol; search: string; want: string }[] = [
  { route: "chat", protocol: "chat", search: "", want: "/chat/completions" },
  { route: "chat", protocol: "chat", search: "?x=1", want: "/chat/completions?x=1" },
  { route: "responses", protocol: "responses", search: "?x=1", want: "/responses?x=1" },
  { route: "responses", protocol: "chat", search: "?x=1", want: "/chat/completions" },
  { route: "messages", protocol: "chat", search: "?beta=true", want: "/chat/completions" },
  { route: "messages", protocol: "responses", search: "?beta=true", want: "/responses" },
];
for (const c of urls) {
  Deno.test(`url() of openai leads ${c.route}${c.search} in ${c.protocol} form to ${c.want}`, () => {
    const request = outgoingAs(c.route, c.protocol, { search: c.search });
    assertEquals(OPENAI_COMPATIBLE.url(request, LAB, KEY), LAB.baseUrl + c.want);
  });
}

const platforms: { baseUrl: string; want: ClientProtocol }[] = [
  { baseUrl: "https://api.openai.com/v1", want: "responses" },
  { baseUrl: "https://eu.api.openai.com/v1", want: "responses" },
  { baseUrl: "https://api.openai.com.evil.test/v1", want: "chat" },
  { baseUrl: "http://api.openai.com/v1", want: "chat" },
  { baseUrl: "https://openrouter.ai/api/v1", want: "chat" },
  { baseUrl: "http://127.0.0.1:11434/v1", want: "chat" },
];
for (const c of platforms) {
  Deno.test(`upstreamProtocol() of openai speaks ${c.want} to a Responses client at ${c.baseUrl}`, () => {
    const settings = settingsOf("openai", c.baseUrl);
    assertEquals(OPENAI_COMPATIBLE.upstreamProtocol("responses", settings), c.want);
    assertEquals(OPENAI_COMPATIBLE.upstreamProtocol("messages", settings), c.want);
    assertEquals(OPENAI_COMPATIBLE.upstreamProtocol("chat", settings), "chat");
  });
}

Deno.test("openai serves what any kind may serve, but counts no tokens", () => {
  assertEquals(ROUTES.filter((route) => OPENAI_COMPATIBLE.serves(route)).map(({ name }) => name), [
    "responses",
    "chat",
    "messages",
  ]);
  assertEquals(ROUTES.filter((route) => OPENAI_COMPATIBLE.alwaysStreams(route)), []);
  assertEquals(OPENAI_COMPATIBLE.usage, null);
});

Deno.test("fitBody() of openai leaves every field to the host (B116)", () => {
  const body = new TextEncoder().encode(
    `{"temperature":1,"top_p":1,"max_output_tokens":5,"metadata":{},"truncation":"auto","user":"u","store":true,"zz":1}`,
  );
  for (const protocol of ["chat", "responses"] as const) {
    assertStrictEquals(OPENAI_COMPATIBLE.fitBody(body, outgoingAs(protocol, protocol)), body);
  }
});

// ---------------------------------------------------------------- headers

Deno.test("headers() of openai keep what the protocol knows and nothing of other providers", () => {
  const clientHeaders = new Headers({
    "user-agent": "mine/1",
    "openai-beta": "assistants=v2",
    "x-client-request-id": "r",
    traceparent: "t",
    "content-type": "application/json",
    // None of these leaves.
    authorization: "Bearer SENT-client",
    "x-api-key": "SENT-client",
    "openai-organization": "org-client",
    "openai-project": "proj-client",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "a",
    "x-codex-turn-state": "ts",
    "chatgpt-account-id": "acc-client",
    session_id: "s",
    cookie: "a=SENT-cookie",
    "x-stainless-lang": "js",
    "idempotency-key": "i",
  });
  const request = outgoingAs("chat", "chat", { clientHeaders });
  assertEquals(Object.fromEntries(OPENAI_COMPATIBLE.headers(request, PLATFORM, KEY)), {
    accept: "application/json",
    authorization: "Bearer SENT-own",
    "content-type": "application/json",
    "openai-beta": "assistants=v2",
    traceparent: "t",
    "user-agent": "mine/1",
    "x-client-request-id": "r",
  });
});

const credentials: { name: string; credential: Credential; want: string | null }[] = [
  { name: "a key", credential: KEY, want: "Bearer SENT-own" },
  { name: "none", credential: NONE, want: null },
  {
    name: "a key that begins like none",
    credential: { kind: "api_key", apiKey: "none-SENT" },
    want: "Bearer none-SENT",
  },
  { name: "a key that cannot be a header", credential: { kind: "api_key", apiKey: "SENT\na" }, want: null },
  { name: "a token", credential: LOGIN, want: "Bearer SENT-access" },
];
for (const c of credentials) {
  Deno.test(`headers() of openai sign with ${c.name}`, () => {
    const client = { clientHeaders: new Headers({ authorization: "Bearer SENT-client" }) };
    const request = outgoingAs("chat", "chat", { ...client, streaming: true });
    assertEquals(OPENAI_COMPATIBLE.headers(request, LAB, c.credential).get("authorization"), c.want);
    assertEquals(OPENAI_COMPATIBLE.headers(request, LAB, c.credential).get("accept"), "text/event-stream");
    assertEquals(OPENAI_COMPATIBLE.pageHeaders(LAB, c.credential).get("authorization"), c.want);
  });
}

Deno.test("answerHeaders() of openai hide whose key it was and keep the rest", () => {
  const headers = HeaderFields.from({
    "openai-organization": "org-1",
    "openai-project": "proj_1",
    "openai-processing-ms": "5",
    "x-ratelimit-remaining-requests": "1",
  });
  assertEquals([...OPENAI_COMPATIBLE.answerHeaders(headers)].map(([name]) => name), [
    "openai-processing-ms",
    "x-ratelimit-remaining-requests",
  ]);
});

const shared: [string | null, string | null][] = [
  ["org-1", "org-1"],
  [" user-abc_1 ", "user-abc_1"],
  ["a b", null],
  ["", null],
  [null, null],
];
for (const [header, want] of shared) {
  Deno.test(`sharedLimitKey() of openai is ${want} for ${header}`, () => {
    const headers = new Headers(header === null ? {} : { "openai-organization": header });
    assertEquals(OPENAI_COMPATIBLE.sharedLimitKey(headers, KEY), want);
  });
}

// ---------------------------------------------------------------- limits

const read = (headers: Record<string, string>) =>
  OPENAI_COMPATIBLE.readQuotaHeaders(new Headers(headers), NOW);
const window = (name: string, usedPercent: number, resetAtMs: number | null) => ({
  name,
  usedPercent,
  resetAtMs,
  modelFamily: null,
});

Deno.test("readQuotaHeaders() of openai reads a whole set and parks nobody for it", () => {
  const figures = read({
    "x-ratelimit-limit-requests": "500",
    "x-ratelimit-remaining-requests": "0",
    "x-ratelimit-reset-requests": "6m0s",
    "x-ratelimit-limit-tokens": "30000",
    "x-ratelimit-remaining-tokens": "29999",
    "x-ratelimit-reset-tokens": "1h2m3.5s",
    "x-ratelimit-limit-project-tokens": "100",
    "x-ratelimit-remaining-project-tokens": "50",
    "x-ratelimit-reset-project-tokens": "12ms",
    "x-ratelimit-limit-tokens_usage_based": "10",
    "x-ratelimit-remaining-tokens_usage_based": "20",
  });
  assertEquals(figures, {
    windows: [
      window("requests", 100, NOW + 360_000),
      window("tokens", 0, NOW + 3_723_500),
      window("project_tokens", 50, NOW + 12),
      window("tokens_usage_based", 0, null),
    ],
    limitReached: null,
    servesBeyondWindows: true,
    creditsAvailable: null,
    plan: null,
  });
  const empty = read({ "x-ratelimit-limit-requests": "1", "x-ratelimit-remaining-requests": "0" });
  assertEquals(readsExhausted({ ...empty!, observedAtMs: NOW, source: "response_headers" }), false);
});

const useless: Record<string, string>[] = [
  {},
  { "x-ratelimit-remaining-requests": "1" },
  { "x-ratelimit-limit-requests": "0", "x-ratelimit-remaining-requests": "0" },
  { "x-ratelimit-limit-requests": "many", "x-ratelimit-remaining-requests": "1" },
  { "x-ratelimit-limit-requests": "1", "x-ratelimit-remaining-requests": "-1" },
  { "x-ratelimit-reset-requests": "1s", "retry-after": "5" },
];
for (const headers of useless) {
  Deno.test(`readQuotaHeaders() of openai is null for ${JSON.stringify(headers)}`, () => {
    assertEquals(read(headers), null);
  });
}
