/** The request side of Anthropic: URL, headers, and what of an answer's headers a client sees (wire-facts 6.8, 6.9). */
import { assertEquals, assertStrictEquals } from "@std/assert";
import { HeaderFields } from "../../lib/core/header_fields.ts";
import type { Credential } from "../../lib/ports.ts";
import { ROUTES } from "../../lib/protocol/route.ts";
import { CLAUDE } from "../../lib/providers/claude.ts";
import type { OutgoingRequest } from "../../lib/providers/provider.ts";
import { KEY, LOGIN, outgoingAs, settingsOf } from "../support/outgoing.ts";

const BASE = "https://api.anthropic.com";
const SETTINGS = settingsOf("anthropic", BASE);
const SETUP_TOKEN: Credential = { kind: "api_key", apiKey: "sk-ant-oat01-SENT-setup" };

function sent(
  client: Record<string, string>,
  credential: Credential = LOGIN,
  more: Partial<OutgoingRequest> = {},
): HeaderFields {
  return CLAUDE.headers(
    outgoingAs("messages", "messages", { clientHeaders: new Headers(client), ...more }),
    SETTINGS,
    credential,
  );
}

// ---------------------------------------------------------------- url

const urls: {
  name: string;
  route: "messages" | "count_tokens" | "chat" | "responses";
  search: string;
  credential: Credential;
  want: string;
}[] = [
  { name: "a key", route: "messages", search: "", credential: KEY, want: "/v1/messages" },
  {
    name: "a key, beta asked",
    route: "messages",
    search: "?beta=true",
    credential: KEY,
    want: "/v1/messages?beta=true",
  },
  { name: "a login", route: "messages", search: "", credential: LOGIN, want: "/v1/messages?beta=true" },
  {
    name: "a login, beta asked",
    route: "messages",
    search: "?beta=true",
    credential: LOGIN,
    want: "/v1/messages?beta=true",
  },
  {
    name: "a login, another query",
    route: "messages",
    search: "?x=%2F",
    credential: LOGIN,
    want: "/v1/messages?x=%2F&beta=true",
  },
  {
    name: "a login, an empty query",
    route: "messages",
    search: "?",
    credential: LOGIN,
    want: "/v1/messages?beta=true",
  },
  {
    name: "a setup token",
    route: "messages",
    search: "",
    credential: SETUP_TOKEN,
    want: "/v1/messages?beta=true",
  },
  {
    name: "counting with a key",
    route: "count_tokens",
    search: "",
    credential: KEY,
    want: "/v1/messages/count_tokens",
  },
  {
    name: "counting with a login",
    route: "count_tokens",
    search: "?beta=true",
    credential: LOGIN,
    want: "/v1/messages/count_tokens?beta=true",
  },
  {
    name: "a chat client",
    route: "chat",
    search: "?api-version=1",
    credential: KEY,
    want: "/v1/messages",
  },
  {
    name: "a Responses client",
    route: "responses",
    search: "?x=1",
    credential: LOGIN,
    want: "/v1/messages?beta=true",
  },
];
for (const c of urls) {
  Deno.test(`url() of anthropic: ${c.name}`, () => {
    const request = outgoingAs(c.route, "messages", { search: c.search });
    assertEquals(CLAUDE.url(request, SETTINGS, c.credential), BASE + c.want);
  });
}

Deno.test("anthropic serves what any kind may serve, and speaks Messages to all", () => {
  assertEquals(ROUTES.filter((route) => CLAUDE.serves(route)).map(({ name }) => name), [
    "responses",
    "chat",
    "messages",
    "count_tokens",
  ]);
  assertEquals(
    (["responses", "chat", "messages", "raw"] as const).map((client) =>
      CLAUDE.upstreamProtocol(client, SETTINGS)
    ),
    ["messages", "messages", "messages", "raw"],
  );
  assertEquals(ROUTES.filter((route) => CLAUDE.alwaysStreams(route)), []);
});

Deno.test("fitBody() of anthropic leaves every byte of a body", () => {
  const body = new TextEncoder().encode(`{ "thinking" : "\\u00e9", "max_tokens": 1e2 }`);
  assertStrictEquals(CLAUDE.fitBody(body, outgoingAs("messages", "messages")), body);
});

// ---------------------------------------------------------------- headers

const kept = [
  "user-agent",
  "content-type",
  "x-app",
  "anthropic-version",
  "anthropic-dangerous-direct-browser-access",
  "x-claude-code-session-id",
  "x-claude-code-agent-id",
  "x-claude-remote-session-id",
  "x-anthropic-additional-protection",
  "x-client-request-id",
  "traceparent",
];
for (const name of kept) {
  Deno.test(`headers() of anthropic keeps ${name}`, () => {
    assertEquals(sent({ [name]: "value-1" }).get(name), "value-1");
    assertEquals(sent({ [name]: "value-1" }, KEY).get(name), "value-1");
  });
}

const stripped: [string, string][] = [
  ["cookie", "a=SENT-cookie"],
  ["api-key", "SENT-key"],
  ["anthropic-api-key", "SENT-key"],
  ["x-anthropic-token", "SENT-key"],
  ["x-claude-code-secret", "SENT-key"],
  ["x-organization-uuid", "org-client"],
  ["openai-organization", "org-client"],
  ["chatgpt-account-id", "acc-client"],
  ["x-codex-turn-state", "ts"],
  ["session_id", "s"],
  ["originator", "codex_cli_rs"],
  ["x-stainless-lang", "js"],
  ["x-forwarded-for", "10.0.0.1"],
  ["origin", "http://a.test"],
  ["accept-encoding", "zstd"],
  ["content-encoding", "zstd"],
  ["content-length", "4"],
  ["host", "127.0.0.1"],
  ["idempotency-key", "i"],
];
for (const [name, value] of stripped) {
  Deno.test(`headers() of anthropic strips ${name}`, () => {
    assertEquals(sent({ [name]: value }).get(name), null);
  });
}

const CLIENT_KEYS = { authorization: "Bearer SENT-client", "x-api-key": "SENT-client" };
const credentials: {
  name: string;
  credential: Credential;
  authorization: string | null;
  key: string | null;
}[] = [
  { name: "a login", credential: LOGIN, authorization: "Bearer SENT-access", key: null },
  { name: "a key", credential: KEY, authorization: null, key: "SENT-own" },
  {
    name: "a setup token",
    credential: SETUP_TOKEN,
    authorization: "Bearer sk-ant-oat01-SENT-setup",
    key: null,
  },
  {
    name: "a key that cannot be a header",
    credential: { kind: "api_key", apiKey: "SENT-a\r\nx: 1" },
    authorization: null,
    key: null,
  },
];
for (const c of credentials) {
  Deno.test(`headers() of anthropic signs with ${c.name}, never with the client's key`, () => {
    for (const headers of [sent(CLIENT_KEYS, c.credential), CLAUDE.pageHeaders(SETTINGS, c.credential)]) {
      assertEquals(headers.get("authorization"), c.authorization);
      assertEquals(headers.get("x-api-key"), c.key);
    }
  });
}

const betas: { name: string; client: string | null; login: string; key: string | null }[] = [
  { name: "none", client: null, login: "oauth-2025-04-20", key: null },
  {
    name: "Claude Code's",
    client: "claude-code-20250219,interleaved-thinking-2025-05-14",
    login: "claude-code-20250219,interleaved-thinking-2025-05-14,oauth-2025-04-20",
    key: "claude-code-20250219,interleaved-thinking-2025-05-14",
  },
  {
    name: "its own word on OAuth",
    client: "oauth-2025-04-20, context-1m-2025-08-07 ,oauth-2025-04-20,",
    login: "context-1m-2025-08-07,oauth-2025-04-20",
    key: "context-1m-2025-08-07",
  },
  { name: "one twice", client: "a, a", login: "a,oauth-2025-04-20", key: "a" },
];
for (const c of betas) {
  Deno.test(`headers() of anthropic merges the betas, client sent ${c.name}`, () => {
    const client: Record<string, string> = c.client === null ? {} : { "anthropic-beta": c.client };
    assertEquals(sent(client).get("anthropic-beta"), c.login);
    assertEquals(sent(client, KEY).get("anthropic-beta"), c.key);
  });
}

Deno.test("headers() of anthropic fills in what a foreign client does not say, and nothing of Codex", () => {
  assertEquals(Object.fromEntries(sent({}, KEY)), {
    accept: "application/json",
    "anthropic-version": "2023-06-01",
    "content-type": "application/json",
    "x-api-key": "SENT-own",
  });
  assertEquals(sent({ "anthropic-version": "2024-01-01" }).get("anthropic-version"), "2024-01-01");
  assertEquals(sent({}, KEY, { streaming: true }).get("accept"), "text/event-stream");
  assertEquals(sent({}, KEY, { bodyCoding: "gzip" }).get("content-encoding"), "gzip");
});

Deno.test("pageHeaders() of anthropic carry the account's login and nothing of a client", () => {
  assertEquals(Object.fromEntries(CLAUDE.pageHeaders(SETTINGS, LOGIN)), {
    accept: "application/json",
    "anthropic-beta": "oauth-2025-04-20",
    "anthropic-version": "2023-06-01",
    authorization: "Bearer SENT-access",
  });
});

// ---------------------------------------------------------------- answer

const UNIFIED = "anthropic-ratelimit-unified-";
const answers: { name: string; headers: Record<string, string>; want: string[] }[] = [
  {
    name: "windows that allow are the client's to see",
    headers: {
      [`${UNIFIED}status`]: "allowed_warning",
      [`${UNIFIED}5h-status`]: "allowed_warning",
      [`${UNIFIED}overage-status`]: "rejected",
    },
    want: [`${UNIFIED}5h-status`, `${UNIFIED}overage-status`, `${UNIFIED}status`],
  },
  {
    name: "a rejected window would stop Claude Code although another account serves it next",
    headers: {
      [`${UNIFIED}status`]: "rejected",
      [`${UNIFIED}5h-status`]: "rejected",
      [`${UNIFIED}overage-in-use`]: "true",
      [`${UNIFIED}reset`]: "1",
      "retry-after": "5",
    },
    want: ["retry-after"],
  },
  {
    name: "so would a model's",
    headers: { [`${UNIFIED}7d_oi-status`]: "rejected", [`${UNIFIED}status`]: "allowed", "x-a": "1" },
    want: ["x-a"],
  },
  {
    name: "a key's buckets stay, the owner's organisation goes",
    headers: { "anthropic-organization-id": "org-1", "anthropic-ratelimit-requests-remaining": "0" },
    want: ["anthropic-ratelimit-requests-remaining"],
  },
];
for (const c of answers) {
  Deno.test(`answerHeaders() of anthropic: ${c.name}`, () => {
    const headers = HeaderFields.from(c.headers);
    assertEquals([...CLAUDE.answerHeaders(headers)].map(([name]) => name).sort(), c.want);
  });
}

const shared: { name: string; header: string | null; credential: Credential; want: string | null }[] = [
  { name: "keys of one organisation", header: "0000-1111", credential: KEY, want: "0000-1111" },
  { name: "no organisation named", header: null, credential: KEY, want: null },
  { name: "what is no id", header: "a b", credential: KEY, want: null },
  { name: "logins, which have windows of their own", header: "0000-1111", credential: LOGIN, want: null },
  { name: "setup tokens, as logins", header: "0000-1111", credential: SETUP_TOKEN, want: null },
];
for (const c of shared) {
  Deno.test(`sharedLimitKey() of anthropic: ${c.name}`, () => {
    const headers = new Headers(c.header === null ? {} : { "anthropic-organization-id": c.header });
    assertEquals(CLAUDE.sharedLimitKey(headers, c.credential), c.want);
  });
}
