/** The request side of Codex: URL, headers and body (wire-facts 3.3, 5.1, 5.4-5.7). */
import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { scanTopLevel } from "../../lib/protocol/json_scan.ts";
import { HeaderFields } from "../../lib/core/header_fields.ts";
import fc from "fast-check";
import type { Credential } from "../../lib/ports.ts";
import { type RouteName, ROUTES } from "../../lib/protocol/route.ts";
import { CODEX } from "../../lib/providers/codex.ts";
import { usageUrl } from "../../lib/providers/codex_request.ts";
import type { OutgoingRequest, ProviderSettings } from "../../lib/providers/provider.ts";

const SETTINGS: ProviderSettings = {
  id: "codex",
  kind: "codex",
  baseUrl: "https://chatgpt.com/backend-api/codex",
  chatgptBaseUrl: "https://chatgpt.com/backend-api",
  plan: null,
  userAgent: "",
  betaFeatures: "",
};
const LOGIN: Credential = {
  kind: "oauth",
  tokens: { accessToken: "SENT-access", refreshToken: "SENT-refresh", idToken: null, expiresAtMs: null },
  accountHeader: "acc-1",
};

function outgoing(name: RouteName, more: Partial<OutgoingRequest> = {}): OutgoingRequest {
  const route = ROUTES.find((candidate) => candidate.name === name)!;
  return {
    route,
    upstreamPath: route.upstreamPath,
    search: "",
    method: route.methods[0]!,
    clientHeaders: new Headers(),
    protocol: route.protocol,
    streaming: false,
    keepTurnState: false,
    websocket: route.websocket,
    ...more,
  };
}

function sent(
  name: RouteName,
  client: Record<string, string>,
  more: Partial<OutgoingRequest> = {},
  settings: Partial<ProviderSettings> = {},
): HeaderFields {
  const request = outgoing(name, { clientHeaders: new Headers(client), ...more });
  return CODEX.headers(request, { ...SETTINGS, ...settings }, LOGIN);
}

// ---------------------------------------------------------------- url

const CODEX_BASE = "https://chatgpt.com/backend-api/codex";
const CHATGPT_BASE = "https://chatgpt.com/backend-api";
const urls: Record<RouteName, string> = {
  responses: `${CODEX_BASE}/responses`,
  responses_ws: "wss://chatgpt.com/backend-api/codex/responses",
  compact: `${CODEX_BASE}/responses/compact`,
  search: `${CODEX_BASE}/alpha/search`,
  images_generations: `${CODEX_BASE}/images/generations`,
  images_edits: `${CODEX_BASE}/images/edits`,
  trace_summarize: `${CODEX_BASE}/memories/trace_summarize`,
  realtime_calls: `${CODEX_BASE}/realtime/calls`,
  realtime_ws: "wss://chatgpt.com/backend-api/codex/realtime",
  files: `${CHATGPT_BASE}/files`,
  files_uploaded: `${CHATGPT_BASE}/files/file-1/uploaded`,
  wham_usage: `${CHATGPT_BASE}/wham/usage`,
  wham_profile: `${CHATGPT_BASE}/wham/profiles/me`,
  wham_accounts: `${CHATGPT_BASE}/wham/accounts/check`,
  wham_nudge: `${CHATGPT_BASE}/wham/accounts/send_add_credits_nudge_email`,
  wham_apps: `${CHATGPT_BASE}/wham/apps`,
  mcp: `${CHATGPT_BASE}/ps/mcp`,
  chat: `${CODEX_BASE}/responses`,
  messages: `${CODEX_BASE}/responses`,
  count_tokens: `${CODEX_BASE}/v1/messages/count_tokens`,
};
for (const route of ROUTES) {
  Deno.test(`url() of codex leads ${route.name} to its place`, () => {
    const upstreamPath = route.upstreamPath.replace("{id}", "file-1");
    assertEquals(CODEX.url(outgoing(route.name, { upstreamPath }), SETTINGS, LOGIN), urls[route.name]);
  });
}

Deno.test("url() of codex keeps the query, except of a protocol that was translated", () => {
  const search = "?client_version=0.171.0&x=%2F";
  assertEquals(
    CODEX.url(outgoing("responses", { search }), SETTINGS, LOGIN),
    `${CODEX_BASE}/responses${search}`,
  );
  assertEquals(
    CODEX.url(outgoing("wham_usage", { search }), SETTINGS, LOGIN),
    `${CHATGPT_BASE}/wham/usage${search}`,
  );
  assertEquals(
    CODEX.url(outgoing("messages", { search: "?beta=true" }), SETTINGS, LOGIN),
    `${CODEX_BASE}/responses`,
  );
});

Deno.test("url() of codex dials a plain base with ws", () => {
  const settings = { ...SETTINGS, baseUrl: "http://127.0.0.1:9/codex" };
  assertEquals(CODEX.url(outgoing("responses_ws"), settings, LOGIN), "ws://127.0.0.1:9/codex/responses");
});

Deno.test("usageUrl() takes the newer path when the base has no /backend-api", () => {
  assertEquals(usageUrl({ chatgptBaseUrl: "https://chatgpt.com" }), "https://chatgpt.com/api/codex/usage");
  assertEquals(usageUrl(SETTINGS), `${CHATGPT_BASE}/wham/usage`);
  const settings = { ...SETTINGS, chatgptBaseUrl: "http://127.0.0.1:9" };
  assertEquals(
    CODEX.url(outgoing("wham_usage", { search: "?a" }), settings, LOGIN),
    "http://127.0.0.1:9/api/codex/usage?a",
  );
});

// ---------------------------------------------------------------- headers

const kept = [
  "originator",
  "user-agent",
  "version",
  "session_id",
  "session-id",
  "thread_id",
  "thread-id",
  "conversation_id",
  "x-client-request-id",
  "x-codex-turn-metadata",
  "x-codex-window-id",
  "x-codex-parent-thread-id",
  "x-codex-root-turn-id",
  "x-codex-installation-id",
  "x-codex-beta-features",
  "x-codex-inference-call-id",
  "x-codex-routing-hint",
  "x-codex-never-seen-before",
  "x-openai-subagent",
  "x-openai-memgen-request",
  "x-openai-internal-codex-responses-lite",
  "x-openai-internal-codex-residency",
  "x-openai-fedramp",
  "x-oai-attestation",
  "x-openai-product-sku",
  "x-openai-actor-authorization",
  "x-openai-account-routing-override",
  "x-responsesapi-include-timing-metrics",
  "openai-beta",
  "content-type",
];
for (const name of kept) {
  Deno.test(`headers() of codex keeps ${name}`, () => {
    assertEquals(sent("responses", { [name]: "value-1" }).get(name), "value-1");
  });
}

const stripped: [string, string][] = [
  ["cookie", "a=SENT-cookie"],
  ["x-api-key", "SENT-key"],
  ["api-key", "SENT-key"],
  ["proxy-authorization", "SENT-key"],
  ["x-forwarded-for", "10.0.0.1"],
  ["x-forwarded-proto", "http"],
  ["forwarded", "for=10.0.0.1"],
  ["x-real-ip", "10.0.0.1"],
  ["cf-ray", "x"],
  ["cf-connecting-ip", "10.0.0.1"],
  ["x-stainless-lang", "js"],
  ["accept-encoding", "zstd"],
  ["content-encoding", "zstd"],
  ["content-length", "4"],
  ["host", "127.0.0.1"],
  ["te", "trailers"],
  ["keep-alive", "1"],
  ["upgrade", "websocket"],
  ["sec-websocket-key", "x"],
  ["sec-fetch-site", "cross-site"],
  ["origin", "http://a.test"],
  ["referer", "http://a.test"],
  ["idempotency-key", "i"],
  ["openai-organization", "org-client"],
  ["openai-project", "proj-client"],
  ["x-base-url", "http://127.0.0.1:1"],
  ["x-some-tool-secret", "SENT-key"],
  ["x-openai-api-key", "SENT-key"],
  ["x-codex-access-token", "SENT-key"],
];
for (const [name, value] of stripped) {
  Deno.test(`headers() of codex strips ${name}`, () => {
    assertEquals(sent("responses", { [name]: value }).get(name), null);
  });
}

Deno.test("headers() of codex strips what Connection lists, even a header it would keep", () => {
  const headers = sent("responses", { connection: "close, X-Codex-Hop", "x-codex-hop": "1", version: "1" });
  assertEquals([headers.get("x-codex-hop"), headers.get("connection"), headers.get("version")], [
    null,
    null,
    "1",
  ]);
});

Deno.test("headers() of codex signs with the account's own login and never with the client's", () => {
  const client = { authorization: "Bearer SENT-client", "chatgpt-account-id": "acc-client" };
  const headers = sent("responses", client);
  assertEquals(headers.get("authorization"), "Bearer SENT-access");
  assertEquals(headers.get("chatgpt-account-id"), "acc-1");
  const request = outgoing("responses", { clientHeaders: new Headers(client) });
  const anonymous = CODEX.headers(request, SETTINGS, { ...LOGIN, accountHeader: null });
  assertEquals(anonymous.get("chatgpt-account-id"), null);
  const key = CODEX.headers(request, SETTINGS, { kind: "api_key", apiKey: "SENT-own" });
  assertEquals([key.get("authorization"), key.get("chatgpt-account-id")], ["Bearer SENT-own", null]);
});

Deno.test("headers() of codex survives a token that cannot be a header", () => {
  const broken: Credential = { kind: "api_key", apiKey: "SENT-a\r\nx: 1" };
  assertEquals(CODEX.headers(outgoing("responses"), SETTINGS, broken).get("authorization"), null);
});

Deno.test("headers() of codex lets the turn state go to its own account only", () => {
  const client = { "x-codex-turn-state": "ts-A1" };
  assertEquals(sent("responses", client).get("x-codex-turn-state"), null);
  assertEquals(sent("responses", client, { keepTurnState: true }).get("x-codex-turn-state"), "ts-A1");
});

Deno.test("headers() of codex fills in what a foreign client does not say", () => {
  const bare = sent("responses", {});
  assertEquals(bare.get("originator"), "codex_cli_rs");
  assert(bare.get("user-agent")!.startsWith("codex_cli_rs/"));
  assertEquals(bare.get("x-codex-beta-features"), null);
  const settings = { userAgent: "mine/1", betaFeatures: "a,b" };
  const configured = sent("responses", {}, {}, settings);
  assertEquals(configured.get("user-agent"), "mine/1");
  assertEquals(configured.get("x-codex-beta-features"), "a,b");
  const client = { "user-agent": "codex_exec/1", originator: "codex_exec", "x-codex-beta-features": "c" };
  const own = sent("responses", client, {}, settings);
  assertEquals(own.get("user-agent"), "codex_exec/1");
  assertEquals(own.get("originator"), "codex_exec");
  assertEquals(own.get("x-codex-beta-features"), "c");
});

const accepts: { name: string; route: RouteName; more: Partial<OutgoingRequest>; want: string | null }[] = [
  { name: "a streaming post", route: "responses", more: { streaming: true }, want: "text/event-stream" },
  {
    name: "a translated streaming post",
    route: "chat",
    more: { streaming: true },
    want: "text/event-stream",
  },
  { name: "a post that is answered at once", route: "compact", more: {}, want: "application/json" },
  { name: "a read", route: "wham_usage", more: {}, want: "application/json" },
  { name: "a handshake", route: "responses_ws", more: { streaming: true }, want: null },
];
for (const c of accepts) {
  Deno.test(`headers() of codex asks for ${c.want ?? "nothing"} with ${c.name}`, () => {
    assertEquals(sent(c.route, {}, c.more).get("accept"), c.want);
  });
}

Deno.test("headers() of codex keeps the client's own accept where it does not know better", () => {
  assertEquals(
    sent("mcp", { accept: "application/json, text/event-stream" }).get("accept"),
    "application/json, text/event-stream",
  );
  assertEquals(
    sent("responses", { accept: "application/json" }, { streaming: true }).get("accept"),
    "text/event-stream",
  );
});

Deno.test("headers() of codex labels the body it sends", () => {
  assertEquals(sent("responses", {}).get("content-type"), "application/json");
  assertEquals(
    sent("realtime_calls", { "content-type": "application/sdp" }).get("content-type"),
    "application/sdp",
  );
  assertEquals(sent("files", {}).get("content-type"), null);
  assertEquals(sent("responses", {}).get("content-encoding"), null);
  const coded = sent("responses", { "content-encoding": "gzip" }, { bodyCoding: "zstd" });
  assertEquals(coded.get("content-encoding"), "zstd");
  assertEquals(sent("responses", {}, { bodyCoding: null }).get("content-encoding"), null);
});

const betas: { name: string; client: string | null; want: string }[] = [
  { name: "none", client: null, want: "responses_websockets=2026-02-06" },
  { name: "the older HTTP one", client: "responses=experimental", want: "responses_websockets=2026-02-06" },
  {
    name: "others beside it",
    client: "a=1, responses=experimental ,b=2",
    want: "a=1, b=2, responses_websockets=2026-02-06",
  },
  {
    name: "a newer revision",
    client: "responses_websockets=2027-01-01",
    want: "responses_websockets=2027-01-01",
  },
];
for (const c of betas) {
  Deno.test(`headers() of codex opens a socket with the right beta, client sent ${c.name}`, () => {
    const client: Record<string, string> = c.client === null ? {} : { "openai-beta": c.client };
    const headers = sent("responses_ws", { ...client, "content-type": "x/y" });
    assertEquals(headers.get("openai-beta"), c.want);
    assertEquals(headers.get("content-type"), null);
  });
}

Deno.test("headers() of codex leaves the betas of HTTP and of realtime sockets alone", () => {
  const client = { "openai-beta": "responses=experimental" };
  assertEquals(sent("responses", client).get("openai-beta"), "responses=experimental");
  assertEquals(sent("realtime_ws", { "openai-beta": "realtime=v1" }).get("openai-beta"), "realtime=v1");
  assertEquals(sent("realtime_ws", {}).get("openai-beta"), null);
});

Deno.test("pageHeaders() of codex says who asks and for which account", () => {
  const headers = CODEX.pageHeaders({ ...SETTINGS, betaFeatures: "a" }, LOGIN);
  assertEquals(Object.fromEntries(headers), {
    accept: "application/json",
    authorization: "Bearer SENT-access",
    "chatgpt-account-id": "acc-1",
    originator: "codex_cli_rs",
    "user-agent": headers.get("user-agent"),
    "x-codex-beta-features": "a",
  });
  assert(headers.get("user-agent")!.startsWith("codex_cli_rs/"));
  assertEquals(
    CODEX.pageHeaders({ ...SETTINGS, userAgent: "mine/1" }, LOGIN).get("user-agent"),
    "mine/1",
  );
});

Deno.test("usage of codex is a page of ChatGPT logins only", () => {
  assertEquals(CODEX.usage?.url(SETTINGS, LOGIN), `${CHATGPT_BASE}/wham/usage`);
  assertEquals(CODEX.usage?.url(SETTINGS, { kind: "api_key", apiKey: "SENT-own" }), null);
  assertEquals(CODEX.usage?.parse({ plan_type: "plus" }, 0)?.plan, "plus");
});

Deno.test("codex changes no answer header, and its accounts share no limits", () => {
  const headers = HeaderFields.from({ "x-codex-primary-used-percent": "5" });
  assertStrictEquals(CODEX.answerHeaders(headers), headers);
  assertEquals(CODEX.sharedLimitKey(headers, LOGIN), null);
});

Deno.test("codex serves every route but the counting of tokens", () => {
  assertEquals(ROUTES.filter((route) => !CODEX.serves(route)).map(({ name }) => name), ["count_tokens"]);
});

// ---------------------------------------------------------------- body

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (body: Uint8Array) => new TextDecoder().decode(body);

/** Whoever knows the members of a body gets what a fresh look at it gives. */
function fitBothWays(body: Uint8Array<ArrayBuffer>, request: OutgoingRequest): Uint8Array<ArrayBuffer> {
  const fitted = CODEX.fitBody(body, request);
  const scan = scanTopLevel(body);
  if (scan.ok) assertEquals(CODEX.fitBody(body, request, scan.members), fitted);
  return fitted;
}

const fit = (name: RouteName, body: string, more: Partial<OutgoingRequest> = {}) =>
  text(fitBothWays(bytes(body), outgoing(name, more)));

const FIT = `{"model":"m","instructions":"","input":[],"stream":true,"store":false}`;
const USER =
  `[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi \\"x\\" \\u00e9"}]}]`;
const bodies: { name: string; body: string; want: string }[] = [
  {
    name: "sets stream, store and instructions when they are missing",
    body: `{"model":"m","input":[]}`,
    want: `{"model":"m","input":[],"stream":true,"store":false,"instructions":""}`,
  },
  {
    name: "corrects stream and store",
    body: `{"stream":false,"store":true,"instructions":"i"}`,
    want: `{"stream":true,"store":false,"instructions":"i"}`,
  },
  {
    name: "replaces instructions of null",
    body: `{"stream":true,"store":false,"instructions":null}`,
    want: `{"stream":true,"store":false,"instructions":""}`,
  },
  {
    name: "keeps instructions of another form, for the upstream to judge",
    body: `{"stream":true,"store":false,"instructions":[{"a":1}]}`,
    want: `{"stream":true,"store":false,"instructions":[{"a":1}]}`,
  },
  {
    name: "spells out an input of one text, escapes as they came",
    body: `{"instructions":"","stream":true,"store":false,"input":"hi \\"x\\" \\u00e9"}`,
    want: `{"instructions":"","stream":true,"store":false,"input":${USER}}`,
  },
  {
    name: "corrects doubled fields, whichever a reader takes",
    body: `{"stream":true,"instructions":"","store":false,"stream":false}`,
    want: `{"stream":true,"instructions":"","store":false,"stream":true}`,
  },
  {
    name: "keeps fields nobody knows, their spacing and their numbers",
    body: `{ "zz" : [1e2, 12345678901234567890 ],"stream":true,"store":false,"instructions":"\\/"}`,
    want: `{ "zz" : [1e2, 12345678901234567890 ],"stream":true,"store":false,"instructions":"\\/"}`,
  },
  {
    name: "keeps client_metadata, tools and text",
    body: `{"client_metadata":{"a":"b"},"tools":[],"text":{},"stream":true,"store":false,"instructions":""}`,
    want: `{"client_metadata":{"a":"b"},"tools":[],"text":{},"stream":true,"store":false,"instructions":""}`,
  },
  {
    name: "keeps previous_response_id, which must not vanish in silence (ruling 8)",
    body: `{"previous_response_id":"resp_1","stream":true,"store":false,"instructions":""}`,
    want: `{"previous_response_id":"resp_1","stream":true,"store":false,"instructions":""}`,
  },
];
for (const c of bodies) {
  Deno.test(`fitBody() of codex ${c.name}`, () => {
    assertEquals(fit("responses", c.body), c.want);
    assertEquals(fit("chat", c.body), c.want);
  });
}

const refused = [
  "max_output_tokens",
  "metadata",
  "prompt_cache_retention",
  "safety_identifier",
  "temperature",
  "top_p",
  "truncation",
  "user",
  "prompt_cache_options",
  "stream_options",
  "background",
  "generate",
];
for (const name of refused) {
  Deno.test(`fitBody() of codex drops ${name} from responses and compaction, and nowhere else (B116)`, () => {
    assertEquals(fit("responses", FIT.replace(`"model"`, `"${name}":{"a":[1]},"model"`)), FIT);
    assertEquals(
      fit("compact", `{"instructions":"","${name}":1,"input":[]}`),
      `{"instructions":"","input":[]}`,
    );
    const body = `{"${name}":1}`;
    for (const route of ["search", "images_generations", "trace_summarize", "files", "mcp"] as const) {
      assertEquals(fit(route, body), body);
    }
  });
}

for (const name of ["stream", "store", "text", "tools", "tool_choice", "client_metadata"]) {
  Deno.test(`fitBody() of codex drops ${name} from compaction`, () => {
    assertEquals(
      fit("compact", `{"input":[],"instructions":"","${name}":true}`),
      `{"input":[],"instructions":""}`,
    );
  });
}

Deno.test("fitBody() of codex gives compaction its instructions and its list", () => {
  assertEquals(
    fit("compact", `{"input":"hi"}`),
    `{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"instructions":""}`,
  );
});

Deno.test("fitBody() of codex returns the same object when nothing has to change", () => {
  const untouched: [RouteName, string, Partial<OutgoingRequest>?][] = [
    ["responses", FIT],
    ["compact", `{"instructions":"i","input":[]}`],
    ["responses", "not json"],
    ["responses", ""],
    ["responses", "[1]"],
    ["responses", `{"stream":false`],
    ["search", `{"max_output_tokens":5}`],
    ["images_edits", `{"stream":1}`],
    ["responses_ws", `{"type":"response.create"}`],
    ["wham_usage", `{"store":true}`],
  ];
  for (const [name, body, more] of untouched) {
    const given = bytes(body);
    assertStrictEquals(CODEX.fitBody(given, outgoing(name, more)), given);
  }
});

Deno.test("fitBody() of codex gives a fitting body, and fitting twice changes nothing", () => {
  const value = fc.jsonValue({ maxDepth: 2 });
  const key = fc.oneof(
    fc.constantFrom(...refused, "stream", "store", "instructions", "input", "zz"),
    fc.string(),
  );
  fc.assert(
    fc.property(
      fc.dictionary(key, value),
      fc.constantFrom("responses", "compact" as const),
      (fields, name) => {
        const request = outgoing(name);
        const once = CODEX.fitBody(bytes(JSON.stringify(fields)), request);
        const parsed = JSON.parse(text(once));
        for (const gone of refused) assert(!Object.hasOwn(parsed, gone));
        assert(parsed.instructions !== undefined && parsed.instructions !== null);
        if (name === "responses") assertEquals([parsed.stream, parsed.store], [true, false]);
        assert(typeof parsed.input !== "string");
        assertStrictEquals(CODEX.fitBody(once, request), once);
      },
    ),
  );
});

// ---------------------------------------------------------------- protocol

Deno.test("codex is spoken to in the Responses form, raw routes aside", () => {
  assertEquals(
    (["responses", "chat", "messages", "raw"] as const).map((client) =>
      CODEX.upstreamProtocol(client, SETTINGS)
    ),
    ["responses", "responses", "responses", "raw"],
  );
});

Deno.test("codex always streams what ends at /responses, and only that", () => {
  const streaming = ROUTES.filter((route) => CODEX.alwaysStreams(route)).map((route) => route.name);
  assertEquals(streaming, ["responses", "chat", "messages"]);
});
