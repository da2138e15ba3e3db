import { assertEquals } from "@std/assert";
import { startSimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import { encoded, failure, json, raw, type Reply, silence, usage } from "../../lib/demo/simulated_replies.ts";
import type { UsageAnswer } from "../../lib/ports.ts";
import { createUsageClient } from "../../lib/upstream/usage_client.ts";
import { FAKE_START_MS, FakeClock } from "../support/fake_clock.ts";
import { deadPort } from "../support/rude_sockets.ts";
import { KEY_A, testUpstream } from "../support/upstream_request.ts";

const HEADERS = new Headers({ authorization: `Bearer ${KEY_A}`, "chatgpt-account-id": "acct-a" });

function failed(reason: string, status: number | null = null, retryAtMs: number | null = null): UsageAnswer {
  return { ok: false, reason, status, retryAtMs };
}

const cases: { name: string; reply: Reply; want: UsageAnswer }[] = [
  {
    name: "the page as a value",
    reply: json({ rate_limit: { allowed: true } }),
    want: { ok: true, json: { rate_limit: { allowed: true } } },
  },
  { name: "a packed page", reply: encoded(json({ a: 1 }), "gzip"), want: { ok: true, json: { a: 1 } } },
  {
    name: "a packed page without a label",
    reply: encoded(json({ a: 1 }), "gzip", null),
    want: { ok: true, json: { a: 1 } },
  },
  { name: "a refusal", reply: failure(401, { code: "token_expired" }), want: failed("refused", 401) },
  {
    name: "a refusal with a time",
    reply: failure(429, { headers: { "retry-after": "90" } }),
    want: failed("refused", 429, FAKE_START_MS + 90_000),
  },
  {
    name: "a refusal with a time beyond a day, cut there",
    reply: failure(429, { headers: { "retry-after": "86401" } }),
    want: failed("refused", 429, FAKE_START_MS + 86_400_000),
  },
  {
    name: "a redirect, not followed",
    reply: raw(302, "", { location: "http://127.0.0.1:1/" }),
    want: failed("refused", 302),
  },
  { name: "a portal's page", reply: raw(200, "<html>Sign in</html>"), want: failed("not_json", 200) },
  { name: "an endless page", reply: raw(200, `"${"x".repeat(300_000)}"`), want: failed("not_json", 200) },
  { name: "an empty page", reply: raw(200, ""), want: failed("not_json", 200) },
];
for (const c of cases) {
  Deno.test(`UsageClient.read() gives ${c.name}`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    using upstream = testUpstream(clock);
    provider.account(KEY_A).usage.script(c.reply);
    const call = { url: `${provider.url}/backend-api/wham/usage`, headers: HEADERS };
    const answer = await createUsageClient(upstream, clock).read(call, new AbortController().signal);
    assertEquals(answer, c.want);
    assertEquals(provider.hits[0]!.headers.get("chatgpt-account-id"), "acct-a");
    provider.assertDone();
    assertEquals(clock.pendingCount, 0);
  });
}

Deno.test("UsageClient.read() says what stopped the call", async () => {
  const clock = new FakeClock();
  using upstream = testUpstream(clock);
  const client = createUsageClient(upstream, clock);
  const { signal } = new AbortController();
  const dead = await client.read({ url: `http://127.0.0.1:${deadPort()}/`, headers: HEADERS }, signal);
  assertEquals(dead, failed("refused"));
  assertEquals(
    await client.read({ url: "http://nothing.invalid/", headers: HEADERS }, signal),
    failed("dns"),
  );
});

Deno.test("UsageClient.read() is cancelled by its signal", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  provider.account(KEY_A).usage.script(silence());
  const controller = new AbortController();
  const call = { url: `${provider.url}/backend-api/wham/usage`, headers: HEADERS };
  const pending = createUsageClient(upstream, clock).read(call, controller.signal);
  await provider.hitCount(1);
  controller.abort();
  assertEquals(await pending, failed("cancelled"));
});

Deno.test("usage() is a page the reader understands", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  provider.anyone.usage.script(usage({ usedPercent: 40, resetAtSeconds: 1_800_000_600 }));
  const call = { url: `${provider.url}/backend-api/wham/usage`, headers: HEADERS };
  const answer = await createUsageClient(upstream, clock).read(call, new AbortController().signal);
  const page = answer.ok ? answer.json as { rate_limit: { primary_window: unknown } } : null;
  assertEquals(page?.rate_limit.primary_window, {
    used_percent: 40,
    limit_window_seconds: 18_000,
    reset_at: 1_800_000_600,
  });
});
