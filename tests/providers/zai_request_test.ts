/** The request side of z.ai and its quota page (wire-facts 7.1). */
import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { HeaderFields } from "../../lib/core/header_fields.ts";
import fc from "fast-check";
import type { ClientProtocol } from "../../lib/core/domain.ts";
import { familyCovers, readsExhausted } from "../../lib/core/quota_park.ts";
import { type RouteName, ROUTES } from "../../lib/protocol/route.ts";
import { ZAI } from "../../lib/providers/zai.ts";
import { KEY, LOGIN, outgoingAs, settingsOf } from "../support/outgoing.ts";

const NOW = 1_775_000_000_000;
const HOST = "https://api.z.ai";
const GENERAL = settingsOf("zai", HOST, { plan: "general" });
const CODING = settingsOf("zai", HOST, { plan: "coding" });

// ---------------------------------------------------------------- url

const urls: {
  route: RouteName;
  protocol: ClientProtocol;
  search: string;
  general: string;
  coding: string;
}[] = [
  {
    route: "chat",
    protocol: "chat",
    search: "",
    general: "/api/paas/v4/chat/completions",
    coding: "/api/coding/paas/v4/chat/completions",
  },
  {
    route: "chat",
    protocol: "chat",
    search: "?x=1",
    general: "/api/paas/v4/chat/completions?x=1",
    coding: "/api/coding/paas/v4/chat/completions?x=1",
  },
  {
    route: "responses",
    protocol: "chat",
    search: "?x=1",
    general: "/api/paas/v4/chat/completions",
    coding: "/api/coding/paas/v4/chat/completions",
  },
  {
    route: "messages",
    protocol: "messages",
    search: "?beta=true",
    general: "/api/anthropic/v1/messages?beta=true",
    coding: "/api/anthropic/v1/messages?beta=true",
  },
  {
    route: "count_tokens",
    protocol: "messages",
    search: "",
    general: "/api/anthropic/v1/messages/count_tokens",
    coding: "/api/anthropic/v1/messages/count_tokens",
  },
];
for (const c of urls) {
  Deno.test(`url() of zai leads ${c.route}${c.search} to the plan's address`, () => {
    const request = outgoingAs(c.route, c.protocol, { search: c.search });
    assertEquals(ZAI.url(request, GENERAL, KEY), HOST + c.general);
    assertEquals(ZAI.url(request, CODING, KEY), HOST + c.coding);
    const china = settingsOf("zai", "https://open.bigmodel.cn", { plan: "coding" });
    assertEquals(ZAI.url(request, china, KEY), "https://open.bigmodel.cn" + c.coding);
  });
}

Deno.test("zai speaks to each client at the endpoint made for it, and chat to Responses clients", () => {
  assertEquals(
    (["responses", "chat", "messages", "raw"] as const).map((client) => ZAI.upstreamProtocol(client, CODING)),
    ["chat", "chat", "messages", "raw"],
  );
  assertEquals(ROUTES.filter((route) => ZAI.serves(route)).map(({ name }) => name), [
    "responses",
    "chat",
    "messages",
    "count_tokens",
  ]);
  assertEquals(ROUTES.filter((route) => ZAI.alwaysStreams(route)), []);
});

Deno.test("fitBody() of zai leaves every byte of a body", () => {
  const body = new TextEncoder().encode(`{ "zz" : 1e2 }`);
  for (const protocol of ["chat", "messages"] as const) {
    assertStrictEquals(ZAI.fitBody(body, outgoingAs(protocol, protocol)), body);
  }
});

// ---------------------------------------------------------------- headers

const CLIENT = {
  accept: "application/json",
  "accept-language": "de",
  "anthropic-beta": "a,b",
  "anthropic-version": "2024-01-01",
  "user-agent": "claude-cli/2",
  traceparent: "t",
  // None of these is z.ai's business.
  authorization: "Bearer SENT-client",
  "x-api-key": "SENT-client",
  "x-app": "cli",
  "x-claude-code-session-id": "s",
  "x-codex-turn-state": "ts",
  "openai-organization": "org-client",
  cookie: "a=SENT-cookie",
  session_id: "s",
  "x-forwarded-for": "10.0.0.1",
};

Deno.test("headers() of zai keep what the endpoint reads and sign with a bearer", () => {
  const request = outgoingAs("messages", "messages", { clientHeaders: new Headers(CLIENT) });
  assertEquals(Object.fromEntries(ZAI.headers(request, CODING, KEY)), {
    accept: "application/json",
    "accept-language": "de",
    "anthropic-beta": "a,b",
    "anthropic-version": "2024-01-01",
    authorization: "Bearer SENT-own",
    "content-type": "application/json",
    traceparent: "t",
    "user-agent": "claude-cli/2",
  });
});

Deno.test("headers() of zai fill in what a client does not say, and nothing of Codex", () => {
  assertEquals(Object.fromEntries(ZAI.headers(outgoingAs("messages", "messages"), CODING, KEY)), {
    accept: "application/json",
    "anthropic-version": "2023-06-01",
    authorization: "Bearer SENT-own",
    "content-type": "application/json",
  });
  assertEquals(
    Object.fromEntries(ZAI.headers(outgoingAs("chat", "chat", { streaming: true }), CODING, KEY)),
    {
      accept: "text/event-stream",
      authorization: "Bearer SENT-own",
      "content-type": "application/json",
    },
  );
  const broken = { kind: "api_key" as const, apiKey: "SENT-a\nb" };
  assertEquals(ZAI.headers(outgoingAs("chat", "chat"), CODING, broken).get("authorization"), null);
});

Deno.test("zai changes no answer header, and its accounts share no limits", () => {
  const headers = HeaderFields.from({ "x-a": "1" });
  assertStrictEquals(ZAI.answerHeaders(headers), headers);
  assertEquals(ZAI.sharedLimitKey(headers, KEY), null);
  assertEquals(ZAI.readQuotaHeaders(headers, NOW), null);
});

// ---------------------------------------------------------------- quota page

const parse = (page: unknown) => ZAI.usage!.parse(page, NOW);
const page = (...limits: unknown[]) => ({
  code: 200,
  msg: "ok",
  success: true,
  data: { limits, level: "pro" },
});

Deno.test("usage of zai is a page of the coding plan, read with the key", () => {
  assertEquals(ZAI.usage!.url(CODING, KEY), `${HOST}/api/monitor/usage/quota/limit`);
  assertEquals(ZAI.usage!.url(GENERAL, KEY), null);
  assertEquals(Object.fromEntries(ZAI.pageHeaders(CODING, KEY)), {
    accept: "application/json",
    authorization: "Bearer SENT-own",
  });
  assertEquals(ZAI.pageHeaders(CODING, LOGIN).get("authorization"), "Bearer SENT-access");
});

Deno.test("parse() of zai's usage reads a whole page", () => {
  assertEquals(
    parse(page(
      { type: "TOKENS_LIMIT", unit: 3, number: 5, percentage: 44, nextResetTime: NOW + 60_000 },
      { type: "TOKENS_LIMIT", unit: 6, number: 1, percentage: 7, nextResetTime: NOW + 600_000 },
      {
        type: "TIME_LIMIT",
        unit: 5,
        number: 1,
        percentage: 100,
        currentValue: 1_000,
        usage: 1_000,
        remaining: 0,
        nextResetTime: NOW + 900_000,
      },
    )),
    {
      windows: [
        { name: "5h", usedPercent: 44, resetAtMs: NOW + 60_000, modelFamily: null },
        { name: "7d", usedPercent: 7, resetAtMs: NOW + 600_000, modelFamily: null },
        { name: "time_limit", usedPercent: 100, resetAtMs: NOW + 900_000, modelFamily: "hosted-tools" },
      ],
      limitReached: false,
      servesBeyondWindows: false,
      creditsAvailable: null,
      plan: null,
    },
  );
});

Deno.test("parse() of zai's usage keeps the calls of hosted tools away from every model", () => {
  for (const model of ["glm-5.2", "glm-4.5-air", "cogview-4"]) {
    assert(!familyCovers("hosted-tools", model));
  }
  assertEquals(parse(page({ type: "TIME_LIMIT", percentage: 100 }))?.limitReached, null);
});

const limits: { name: string; limit: Record<string, unknown>; want: unknown[] }[] = [
  {
    name: "a share that must be worked out",
    limit: { type: "CREDIT_LIMIT", unit: 6, number: 2, currentValue: 1, usage: 3 },
    want: [{ name: "14d", usedPercent: 33.33, resetAtMs: null, modelFamily: null }],
  },
  {
    name: "a unit nobody knows",
    limit: { type: "TOKENS_LIMIT", unit: 9, number: 5, percentage: 1 },
    want: [{ name: "tokens_limit", usedPercent: 1, resetAtMs: null, modelFamily: null }],
  },
  {
    name: "a length that is none",
    limit: { type: "TOKENS_LIMIT", unit: 3, number: 0, percentage: 1 },
    want: [{ name: "tokens_limit", usedPercent: 1, resetAtMs: null, modelFamily: null }],
  },
];
for (const c of limits) {
  Deno.test(`parse() of zai's usage sees ${c.name}`, () => {
    assertEquals(parse(page(c.limit))?.windows as unknown, c.want);
  });
}

const verdicts: { name: string; percentages: number[]; want: boolean }[] = [
  { name: "both have room", percentages: [99.9, 99.9], want: false },
  { name: "the short one is used up", percentages: [100, 3], want: true },
  { name: "the long one is used up", percentages: [3, 100], want: true },
];
for (const c of verdicts) {
  Deno.test(`parse() of zai's usage gives a verdict: ${c.name}`, () => {
    const figures = parse(page(
      ...c.percentages.map((percentage, at) => ({
        type: "TOKENS_LIMIT",
        unit: 3,
        number: at + 1,
        percentage,
      })),
    ));
    assertEquals(figures?.limitReached, c.want);
    if (c.want) {
      assertEquals(readsExhausted({ ...figures!, observedAtMs: NOW, source: "usage_page" }), true);
    }
  });
}

Deno.test("parse() of zai's usage learns nothing from what is no quota page", () => {
  const useless = [
    null,
    [],
    "x",
    {},
    { success: false, code: 401, msg: "token expired or incorrect" },
    { success: false, data: { limits: [{ type: "TOKENS_LIMIT", percentage: 1 }] } },
    { success: true, data: null },
    page(),
    page({ type: "OTHER_LIMIT", percentage: 1 }),
    page({ type: "TOKENS_LIMIT" }),
    page({ type: "TOKENS_LIMIT", currentValue: 1, usage: 0 }),
    page(null, 5),
  ];
  for (const json of useless) assertEquals(parse(json), null);
});

Deno.test("parse() of zai's usage never throws and gives finite, bounded figures", () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.jsonValue(), (others, value) => {
      const figures = parse(page(
        { type: "TOKENS_LIMIT", percentage: 1, unit: value, number: value, nextResetTime: value },
        ...others,
        ...Array.from({ length: 40 }, () => ({ type: "TOKENS_LIMIT", percentage: value })),
      ));
      for (const { usedPercent, resetAtMs } of figures!.windows) {
        assert(Number.isFinite(usedPercent));
        assert(resetAtMs === null || Number.isInteger(resetAtMs));
      }
      assert(figures!.windows.length <= 16);
    }),
  );
});
