/** Codex's quota figures: response headers (wire-facts 3.1) and the usage page (3.3). */
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { CODEX } from "../../lib/providers/codex.ts";
import { readLimitId, readPlan } from "../../lib/providers/codex_quota.ts";
import { parseUsage } from "../../lib/providers/codex_usage.ts";
import { nameWindow } from "../../lib/protocol/window_name.ts";

const NOW = 1_775_000_000_000;
const read = (headers: Record<string, string>) => CODEX.readQuotaHeaders(new Headers(headers), NOW);
const account = (name: string, usedPercent: number | null, resetAtMs: number | null) => ({
  name,
  usedPercent,
  resetAtMs,
  modelFamily: null,
});
const CALM = { limitReached: null, servesBeyondWindows: false, creditsAvailable: null, plan: null };

Deno.test("readQuotaHeaders() of codex reads a whole set", () => {
  assertEquals(
    read({
      "x-codex-active-limit": "codex",
      "x-codex-plan-type": "plus",
      "x-codex-primary-used-percent": "12.5",
      "x-codex-primary-window-minutes": "300",
      "x-codex-primary-reset-at": "1775001000",
      "x-codex-primary-reset-after-seconds": "1000",
      "x-codex-secondary-used-percent": "98",
      "x-codex-secondary-window-minutes": "10080",
      "x-codex-secondary-reset-at": "1775100000",
      "x-codex-primary-over-secondary-limit-percent": "0",
      "x-codex-credits-has-credits": "False",
      "x-codex-credits-unlimited": "False",
      "x-codex-credits-balance": "",
      "x-codex-promo-message": "buy",
    }),
    {
      windows: [account("5h", 12.5, 1_775_001_000_000), account("7d", 98, 1_775_100_000_000)],
      limitReached: null,
      servesBeyondWindows: false,
      creditsAvailable: false,
      plan: "plus",
    },
  );
});

const windowCases: { name: string; headers: Record<string, string>; want: unknown[] }[] = [
  {
    name: "a free plan: the week in the first slot, no second window",
    headers: {
      "x-codex-primary-used-percent": "3",
      "x-codex-primary-window-minutes": "10080",
      "x-codex-primary-reset-at": "1775001000",
      "x-codex-secondary-used-percent": "0",
      "x-codex-secondary-window-minutes": "0",
      "x-codex-secondary-reset-at": "",
    },
    want: [account("7d", 3, 1_775_001_000_000)],
  },
  {
    name: "an empty reset falls to reset-after-seconds",
    headers: {
      "x-codex-primary-used-percent": "3",
      "x-codex-primary-reset-at": "",
      "x-codex-primary-reset-after-seconds": "60",
    },
    want: [account("primary", 3, NOW + 60_000)],
  },
  {
    name: "no reset at all",
    headers: { "x-codex-secondary-used-percent": "100" },
    want: [account("secondary", 100, null)],
  },
  {
    name: "a third window",
    headers: { "x-codex-tertiary-used-percent": "1", "x-codex-tertiary-window-minutes": "90" },
    want: [account("90m", 1, null)],
  },
  {
    name: "a window that reports no figure",
    headers: { "x-codex-primary-used-percent": "", "x-codex-primary-window-minutes": "300" },
    want: [account("5h", null, null)],
  },
  {
    name: "the extra family of a model, known to nobody before",
    headers: {
      "x-codex-bengalfox-primary-used-percent": "50",
      "x-codex-bengalfox-primary-window-minutes": "300",
      "x-codex-bengalfox-limit-name": "Spark",
    },
    want: [{ name: "5h", usedPercent: 50, resetAtMs: null, modelFamily: "codex-bengalfox" }],
  },
  {
    name: "the premium limit covers the account",
    headers: { "x-premium-primary-used-percent": "50" },
    want: [account("primary", 50, null)],
  },
  {
    name: "values that are no numbers",
    headers: { "x-codex-primary-used-percent": "-5", "x-codex-secondary-used-percent": "NaN" },
    want: [],
  },
];
for (const c of windowCases) {
  Deno.test(`readQuotaHeaders() of codex sees the windows: ${c.name}`, () => {
    assertEquals(read({ ...c.headers, "x-codex-credits-has-credits": "False" })?.windows as unknown, c.want);
  });
}

const creditCases: {
  name: string;
  headers: Record<string, string>;
  available: boolean | null;
  serves: boolean;
}[] = [
  { name: "none", headers: { "x-codex-credits-has-credits": "False" }, available: false, serves: false },
  {
    name: "some",
    headers: { "x-codex-credits-has-credits": "True", "x-codex-credits-balance": "12.5" },
    available: true,
    serves: true,
  },
  {
    name: "some, balance empty",
    headers: { "x-codex-credits-has-credits": "True", "x-codex-credits-balance": "" },
    available: true,
    serves: true,
  },
  {
    name: "a balance of zero",
    headers: { "x-codex-credits-has-credits": "True", "x-codex-credits-balance": "0" },
    available: false,
    serves: false,
  },
  {
    name: "a balance of 0.00",
    headers: { "x-codex-credits-has-credits": "true", "x-codex-credits-balance": "0.00" },
    available: false,
    serves: false,
  },
  {
    name: "unlimited",
    headers: { "x-codex-credits-has-credits": "False", "x-codex-credits-unlimited": "TRUE" },
    available: true,
    serves: true,
  },
  { name: "no word", headers: { "x-codex-primary-used-percent": "1" }, available: null, serves: false },
];
for (const c of creditCases) {
  Deno.test(`readQuotaHeaders() of codex sees the credits: ${c.name}`, () => {
    const figures = read(c.headers);
    assertEquals([figures?.creditsAvailable, figures?.servesBeyondWindows], [c.available, c.serves]);
  });
}

Deno.test("readQuotaHeaders() of codex takes a reached limit for the account's, a family's not", () => {
  const reached = { "x-codex-rate-limit-reached-type": "rate_limit_reached" };
  assertEquals(read(reached)?.limitReached, true);
  assertEquals(read({ ...reached, "x-codex-active-limit": "codex_bengalfox" })?.limitReached, null);
});

Deno.test("readQuotaHeaders() of codex is null without figures", () => {
  assertEquals(read({}), null);
  assertEquals(
    read({ "x-codex-turn-state": "t", "content-type": "text/event-stream", "x-codex-plan-type": "plus" }),
    null,
  );
});

Deno.test("readQuotaHeaders() of codex reads a frame's headers, which cannot be walked", () => {
  const values: Record<string, string> = {
    "x-codex-active-limit": "codex_bengalfox",
    "x-codex-primary-used-percent": "7",
    "x-codex-bengalfox-primary-used-percent": "100",
  };
  const figures = CODEX.readQuotaHeaders({ get: (name) => values[name] ?? null }, NOW);
  assertEquals(figures, {
    ...CALM,
    windows: [
      account("primary", 7, null),
      { name: "primary", usedPercent: 100, resetAtMs: null, modelFamily: "codex-bengalfox" },
    ],
  });
});

Deno.test("readQuotaHeaders() of codex keeps a bounded number of families", () => {
  const headers = Object.fromEntries(
    Array.from({ length: 500 }, (_, i) => [`x-f${i}-primary-used-percent`, "1"]),
  );
  assert(read(headers)!.windows.length <= 16);
});

Deno.test("readPlan() and readLimitId() let through words only", () => {
  assertEquals([" Plus ", "self_serve_business_usage_based", "a b", "<b>", "", 5, null].map(readPlan), [
    "plus",
    "self_serve_business_usage_based",
    null,
    null,
    null,
    null,
    null,
  ]);
  assertEquals(["codex_bengalfox", "GPT-5.3 Spark", "<b>", "-x", "x".repeat(65), null].map(readLimitId), [
    "codex-bengalfox",
    "gpt-5.3-spark",
    null,
    null,
    null,
    null,
  ]);
});

Deno.test("nameWindow() names a window by its length", () => {
  const cases: [number | null, string][] = [
    [18_000_000, "5h"],
    [604_800_000, "7d"],
    [86_400_000, "1d"],
    [5_400_000, "90m"],
    [2_592_000_000, "30d"],
    [null, "primary"],
  ];
  for (const [lengthMs, want] of cases) assertEquals(nameWindow(lengthMs, "primary"), want);
});

// ---------------------------------------------------------------- usage page

const window = (used: number, seconds: number, resetAt: number) => ({
  used_percent: used,
  limit_window_seconds: seconds,
  reset_after_seconds: 10,
  reset_at: resetAt,
});
const PAGE = {
  email: "SENT-mail@example.test",
  plan_type: "pro",
  rate_limit: {
    allowed: true,
    limit_reached: false,
    primary_window: window(40, 18_000, 1_775_001_000),
    secondary_window: window(99, 604_800, 1_775_100_000),
    tertiary_window: null,
  },
  additional_rate_limits: [{
    limit_name: "GPT-5.3-Codex-Spark",
    metered_feature: "codex_bengalfox",
    rate_limit: {
      allowed: true,
      limit_reached: false,
      primary_window: window(5, 18_000, 1_775_001_000),
      secondary_window: null,
    },
  }],
  credits: { has_credits: true, unlimited: false, balance: "3.2", approx_local_messages: [1, 2] },
  rate_limit_reset_credits: { available_count: 1 },
  rate_limit_reached_type: null,
  spend_control: null,
};

Deno.test("parseUsage() reads a whole page, without what names a person", () => {
  const figures = parseUsage(PAGE, NOW);
  assertEquals(figures, {
    windows: [
      account("5h", 40, 1_775_001_000_000),
      account("7d", 99, 1_775_100_000_000),
      { name: "5h", usedPercent: 5, resetAtMs: 1_775_001_000_000, modelFamily: "codex-bengalfox" },
    ],
    limitReached: false,
    servesBeyondWindows: true,
    creditsAvailable: true,
    plan: "pro",
  });
  assert(!JSON.stringify(figures).includes("SENT-"));
});

const verdicts: { name: string; limit: unknown; want: boolean | null }[] = [
  { name: "reached", limit: { allowed: true, limit_reached: true }, want: true },
  { name: "not allowed", limit: { allowed: false, limit_reached: false }, want: true },
  { name: "not allowed, nothing else said", limit: { allowed: false }, want: true },
  { name: "allowed", limit: { allowed: true }, want: false },
  { name: "no word", limit: {}, want: null },
  { name: "words that are no booleans", limit: { allowed: "no", limit_reached: 1 }, want: null },
  { name: "no limit at all", limit: null, want: null },
];
for (const c of verdicts) {
  Deno.test(`parseUsage() gives the page's own verdict: ${c.name}`, () => {
    assertEquals(parseUsage({ plan_type: "plus", rate_limit: c.limit }, NOW)?.limitReached, c.want);
  });
}

const pageWindows: { name: string; window: unknown; want: unknown[] }[] = [
  { name: "absent", window: null, want: [] },
  { name: "of no length", window: window(0, 0, 0), want: [] },
  { name: "empty", window: {}, want: [] },
  {
    name: "without an absolute reset",
    window: { used_percent: 1, limit_window_seconds: 18_000, reset_after_seconds: 60 },
    want: [account("5h", 1, NOW + 60_000)],
  },
  {
    name: "without any reset",
    window: { used_percent: 1, limit_window_seconds: 18_000 },
    want: [account("5h", 1, null)],
  },
  { name: "without a length", window: { used_percent: 1 }, want: [account("primary", 1, null)] },
  {
    name: "that reports nothing",
    window: { limit_window_seconds: 18_000 },
    want: [account("5h", null, null)],
  },
  {
    name: "with odd figures",
    window: { used_percent: "5", limit_window_seconds: 18_000, reset_at: -1 },
    want: [account("5h", null, null)],
  },
];
for (const c of pageWindows) {
  Deno.test(`parseUsage() sees a window ${c.name}`, () => {
    const page = { plan_type: "plus", rate_limit: { primary_window: c.window } };
    assertEquals(parseUsage(page, NOW)?.windows as unknown, c.want);
  });
}

Deno.test("parseUsage() learns nothing from what is no usage page", () => {
  for (const page of [null, [], "x", 5, {}, { error: { code: "x" } }, { detail: "Unauthorized" }]) {
    assertEquals(parseUsage(page, NOW), null);
  }
});

Deno.test("parseUsage() never throws and gives finite figures only", () => {
  fc.assert(fc.property(fc.jsonValue(), fc.jsonValue(), (limit, credits) => {
    const figures = parseUsage(
      { plan_type: "x", rate_limit: limit, credits, additional_rate_limits: limit },
      NOW,
    );
    for (const { usedPercent, resetAtMs } of figures!.windows) {
      assert(usedPercent === null || Number.isFinite(usedPercent));
      assert(resetAtMs === null || Number.isInteger(resetAtMs));
    }
  }));
});
