/** Anthropic's quota figures: response headers (wire-facts 6.4, 6.5) and the usage page (6.8). */
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { QuotaReading } from "../../lib/core/records.ts";
import { readsExhausted } from "../../lib/core/quota_park.ts";
import { CLAUDE } from "../../lib/providers/claude.ts";
import type { QuotaFigures } from "../../lib/providers/provider.ts";
import { KEY, LOGIN, settingsOf } from "../support/outgoing.ts";

const NOW = 1_775_000_000_000;
const UNIFIED = "anthropic-ratelimit-unified-";
const read = (headers: Record<string, string>) => CLAUDE.readQuotaHeaders(new Headers(headers), NOW);
const unified = (values: Record<string, string>) =>
  read(Object.fromEntries(Object.entries(values).map(([name, value]) => [UNIFIED + name, value])));
const parse = (page: unknown) => CLAUDE.usage!.parse(page, NOW);
const window = (
  name: string,
  usedPercent: number | null,
  resetAtMs: number | null,
  modelFamily: string | null = null,
) => ({ name, usedPercent, resetAtMs, modelFamily });

function exhausts(figures: QuotaFigures | null): boolean | null {
  const reading: QuotaReading = { ...figures!, observedAtMs: NOW, source: "response_headers" };
  return readsExhausted(reading);
}

// ---------------------------------------------------------------- headers

Deno.test("readQuotaHeaders() of anthropic reads a whole set", () => {
  assertEquals(
    unified({
      status: "allowed",
      reset: "1775010000",
      "representative-claim": "five_hour",
      "5h-status": "allowed",
      "5h-reset": "1775010000",
      "5h-utilization": "0.28",
      "7d-status": "allowed_warning",
      "7d-reset": "1775500000",
      "7d-utilization": "0.91",
      "7d-surpassed-threshold": "0.9",
      "7d_oi-status": "allowed",
      "7d_oi-reset": "1775600000",
      "7d_oi-utilization": "0.5",
      "overage-status": "rejected",
      "overage-disabled-reason": "org_level_disabled",
      "fallback-percentage": "0.5",
      "upgrade-paths": "x",
    }),
    {
      windows: [
        window("5h", 28, 1_775_010_000_000),
        window("7d", 91, 1_775_500_000_000),
        window("7d", 50, 1_775_600_000_000, "fable"),
      ],
      limitReached: false,
      servesBeyondWindows: false,
      creditsAvailable: false,
      plan: null,
    },
  );
});

const verdicts: {
  name: string;
  headers: Record<string, string>;
  reached: boolean | null;
  serves: boolean;
  credits: boolean | null;
  exhausted: boolean | null;
}[] = [
  {
    name: "a 200 out of paid overage: reached, and still serving",
    headers: {
      status: "rejected",
      "5h-status": "rejected",
      "5h-utilization": "1.08",
      "overage-status": "allowed",
      "overage-in-use": "true",
    },
    reached: true,
    serves: true,
    credits: true,
    exhausted: false,
  },
  {
    name: "a rejected window without overage",
    headers: { status: "rejected", "5h-status": "rejected", "7d-status": "allowed", "7d-utilization": "0.2" },
    reached: true,
    serves: false,
    credits: null,
    exhausted: true,
  },
  {
    name: "overage in use although its own status is unknown",
    headers: { status: "rejected", "overage-in-use": "TRUE" },
    reached: true,
    serves: true,
    credits: null,
    exhausted: false,
  },
  {
    name: "overage that would serve later",
    headers: { status: "allowed", "overage-status": "allowed_warning" },
    reached: false,
    serves: true,
    credits: true,
    exhausted: false,
  },
  {
    name: "extra usage turned off is no block",
    headers: {
      status: "allowed",
      "overage-status": "rejected",
      "5h-status": "allowed",
      "5h-utilization": "0",
    },
    reached: false,
    serves: false,
    credits: false,
    exhausted: false,
  },
  {
    name: "a model's bucket spent is not the account's",
    headers: {
      status: "rejected",
      "5h-status": "allowed",
      "5h-utilization": "0.1",
      "7d-status": "allowed",
      "7d-utilization": "0.2",
      "7d_oi-status": "rejected",
      "7d_oi-utilization": "1",
    },
    reached: false,
    serves: false,
    credits: null,
    exhausted: false,
  },
  {
    name: "figures without any status",
    headers: { "5h-utilization": "0.5" },
    reached: null,
    serves: false,
    credits: null,
    exhausted: false,
  },
];
for (const c of verdicts) {
  Deno.test(`readQuotaHeaders() of anthropic gives a verdict: ${c.name}`, () => {
    const figures = unified(c.headers);
    assertEquals(
      [figures?.limitReached, figures?.servesBeyondWindows, figures?.creditsAvailable, exhausts(figures)],
      [c.reached, c.serves, c.credits, c.exhausted],
    );
  });
}

const windows: { name: string; headers: Record<string, string>; want: unknown[] }[] = [
  {
    name: "more than the whole",
    headers: { "5h-utilization": "1.08" },
    want: [window("5h", 108, null)],
  },
  {
    name: "a figure without rounding noise",
    headers: { "5h-utilization": "0.2857" },
    want: [window("5h", 28.57, null)],
  },
  {
    name: "a rejected window is spent, whatever its figure",
    headers: { "5h-status": "rejected", "5h-utilization": "0.97" },
    want: [window("5h", 100, null)],
  },
  {
    name: "a rejected window without a figure",
    headers: { "7d-status": "rejected", "7d-reset": "1775000001.5" },
    want: [window("7d", 100, 1_775_000_001_500)],
  },
  {
    name: "a reset in ms",
    headers: { "5h-utilization": "0", "5h-reset": "1775000001000" },
    want: [window("5h", 0, 1_775_000_001_000)],
  },
  {
    name: "a reset as a date",
    headers: { "5h-utilization": "0", "5h-reset": "2026-04-01T00:00:00Z" },
    want: [window("5h", 0, Date.UTC(2026, 3, 1))],
  },
  {
    name: "a reset as an HTTP-date",
    headers: { "5h-utilization": "0", "5h-reset": "Wed, 01 Apr 2026 00:00:00 GMT" },
    want: [window("5h", 0, Date.UTC(2026, 3, 1))],
  },
  {
    name: "a reset that cannot be read",
    headers: { "5h-utilization": "0", "5h-reset": "soon", "7d-utilization": "0", "7d-reset": "0" },
    want: [window("5h", 0, null), window("7d", 0, null)],
  },
  {
    name: "a family nobody knew before",
    headers: { "7d_new_model-utilization": "0.5", status: "allowed" },
    want: [window("7d", 50, null, "new-model")],
  },
  {
    name: "a window of the account nobody knew before",
    headers: { "30d-utilization": "0.5" },
    want: [window("30d", 50, null)],
  },
  {
    name: "a window that reports a status only",
    headers: { "5h-status": "allowed" },
    want: [window("5h", null, null)],
  },
  {
    name: "values that are no figures",
    headers: { "5h-utilization": "-1", "7d-utilization": "NaN", status: "allowed" },
    want: [],
  },
];
for (const c of windows) {
  Deno.test(`readQuotaHeaders() of anthropic sees windows: ${c.name}`, () => {
    assertEquals(unified(c.headers)?.windows as unknown, c.want);
  });
}

Deno.test("readQuotaHeaders() of anthropic reads known windows of headers that cannot be walked", () => {
  const figures = CLAUDE.readQuotaHeaders({
    get: (name) => name === `${UNIFIED}7d_opus-utilization` ? "0.5" : null,
  }, NOW);
  assertEquals(figures?.windows, [window("7d", 50, null, "opus")]);
});

Deno.test("readQuotaHeaders() of anthropic keeps a bounded number of windows", () => {
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`7d_m${i}-utilization`, "0"]));
  assertEquals(unified(many)!.windows.length <= 16, true);
});

Deno.test("readQuotaHeaders() of anthropic counts a key's buckets and parks nobody for them", () => {
  const figures = read({
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "0",
    "anthropic-ratelimit-requests-reset": "2026-04-01T00:00:01Z",
    "anthropic-ratelimit-input-tokens-limit": "30000",
    "anthropic-ratelimit-input-tokens-remaining": "29000",
    "anthropic-ratelimit-output-tokens-limit": "0",
    "anthropic-ratelimit-output-tokens-remaining": "0",
    "anthropic-ratelimit-tokens-limit": "10",
    "anthropic-ratelimit-tokens-remaining": "20",
  });
  assertEquals(figures, {
    windows: [
      window("requests", 100, Date.UTC(2026, 3, 1, 0, 0, 1)),
      window("tokens", 0, null),
      window("input_tokens", 3.33, null),
    ],
    limitReached: null,
    servesBeyondWindows: true,
    creditsAvailable: null,
    plan: null,
  });
  assertEquals(exhausts(figures), false);
});

Deno.test("readQuotaHeaders() of anthropic is null without figures", () => {
  assertEquals(read({}), null);
  assertEquals(read({ "retry-after": "5", "anthropic-organization-id": "o" }), null);
  assertEquals(unified({ reset: "1775000000", "overage-reset": "1775000000" }), null);
});

// ---------------------------------------------------------------- usage page

const PAGE = {
  five_hour: { utilization: 16.0, resets_at: "2026-04-01T01:00:00.771647+00:00" },
  seven_day: { utilization: 4, resets_at: "2026-04-05T00:00:00Z" },
  seven_day_opus: { utilization: 0, resets_at: null },
  seven_day_sonnet: null,
  seven_day_oauth_apps: null,
  extra_usage: { is_enabled: true, monthly_limit: 5_000, used_credits: 120, utilization: 2.4 },
  limits: [
    { group: "session", percent: 16, resets_at: "2026-04-01T01:00:00Z", scope: null },
    {
      group: "weekly",
      percent: 91,
      resets_at: "2026-04-06T00:00:00Z",
      scope: { model: { display_name: "Fable" } },
    },
  ],
};

Deno.test("usage of anthropic is a page of logins only", () => {
  const settings = settingsOf("anthropic", "https://api.anthropic.com");
  assertEquals(CLAUDE.usage!.url(settings, LOGIN), "https://api.anthropic.com/api/oauth/usage");
  assertEquals(CLAUDE.usage!.url(settings, KEY), null);
  assertEquals(CLAUDE.usage!.url(settings, { kind: "api_key", apiKey: "sk-ant-oat01-SENT" }), null);
});

Deno.test("parse() of anthropic's usage reads a whole page, in percent", () => {
  assertEquals(parse(PAGE), {
    windows: [
      window("5h", 16, Date.UTC(2026, 3, 1, 1, 0, 0, 771)),
      window("7d", 4, Date.UTC(2026, 3, 5)),
      window("7d", 0, null, "opus"),
      window("7d", 91, Date.UTC(2026, 3, 6), "fable"),
    ],
    limitReached: false,
    servesBeyondWindows: true,
    creditsAvailable: true,
    plan: null,
  });
});

Deno.test("parse() of anthropic's usage takes one window that is used up for the verdict", () => {
  const spent = parse({ five_hour: { utilization: 100 }, seven_day: { utilization: 40 } });
  assertEquals([spent?.limitReached, exhausts(spent)], [true, true]);
  const nearly = parse({ five_hour: { utilization: 99.9 }, seven_day: { utilization: 40 } });
  assertEquals([nearly?.limitReached, exhausts(nearly)], [false, false]);
  const family = parse({ seven_day_opus: { utilization: 100 } });
  assertEquals([family?.limitReached, exhausts(family)], [null, null]);
});

const extras: { name: string; extra: unknown; want: boolean | null }[] = [
  { name: "off", extra: { is_enabled: false, monthly_limit: null }, want: false },
  { name: "on, without a limit", extra: { is_enabled: true, monthly_limit: null }, want: true },
  {
    name: "on, one cent left",
    extra: { is_enabled: true, monthly_limit: 500, used_credits: 499 },
    want: true,
  },
  { name: "on and used up", extra: { is_enabled: true, monthly_limit: 500, used_credits: 500 }, want: false },
  { name: "on and used up by its figure", extra: { is_enabled: true, utilization: 100 }, want: false },
  { name: "no word", extra: null, want: null },
];
for (const c of extras) {
  Deno.test(`parse() of anthropic's usage sees extra usage: ${c.name}`, () => {
    const figures = parse({ five_hour: { utilization: 1 }, extra_usage: c.extra });
    assertEquals([figures?.creditsAvailable, figures?.servesBeyondWindows], [c.want, c.want === true]);
  });
}

Deno.test("parse() of anthropic's usage learns nothing from what is no usage page", () => {
  const error = { type: "error", error: { type: "rate_limit_error", message: "Rate limited." } };
  for (const page of [null, [], "x", 5, {}, error, { five_hour: null, seven_day: null }]) {
    assertEquals(parse(page), null);
  }
});

Deno.test("parse() of anthropic's usage never throws and gives finite, bounded figures", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), fc.array(fc.jsonValue()), (window, extra, limits) => {
      const figures = parse({
        five_hour: window,
        seven_day_x: window,
        extra_usage: extra,
        limits: [...limits, { percent: 1, scope: { model: { display_name: window } } }],
      });
      for (const { usedPercent, resetAtMs } of figures?.windows ?? []) {
        assert(usedPercent === null || Number.isFinite(usedPercent));
        assert(resetAtMs === null || Number.isInteger(resetAtMs));
      }
      assert((figures?.windows.length ?? 0) <= 16);
    }),
  );
});
