/** Usage pages against real traffic, on the whole app with a moved clock: parks end, success overrides, a 429 outranks. */
import { assert, assertEquals } from "@std/assert";
import { failure, json, ok, raw, usage } from "../../lib/demo/simulated_replies.ts";
import { type Rig, startRig } from "../support/rig.ts";

const MINUTE_MS = 60_000;

/** Moves on in steps small enough that every poll on the way happens, sockets included. */
async function passPolling(rig: Rig, ms: number): Promise<void> {
  const endMs = rig.clock.now() + ms;
  while (rig.clock.now() < endMs) {
    const before = rig.provider.hits.length;
    await rig.pass(Math.min(MINUTE_MS, endMs - rig.clock.now()));
    await rig.until(settled(rig, before));
  }
}

async function settled(rig: Rig, before: number): Promise<void> {
  for (let quiet = 0, seen = before; quiet < 3;) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    quiet = rig.provider.hits.length === seen ? quiet + 1 : 0;
    seen = rig.provider.hits.length;
  }
}

function spentPage(rig: Rig): ReturnType<typeof usage> {
  const resetAt = Math.floor(rig.clock.now() / 1000) + 4 * 86_400;
  return json({
    plan_type: "plus",
    rate_limit: {
      allowed: false,
      limit_reached: true,
      primary_window: {
        used_percent: 100,
        limit_window_seconds: 604_800,
        reset_after_seconds: 345_600,
        reset_at: resetAt,
      },
      secondary_window: null,
    },
  });
}

Deno.test("a spent page over a serving key: refused for 30 min at most, then never while it serves; a 429 re-parks for its own time (B002)", async () => {
  await using rig = await startRig({
    accounts: ["A"],
    config: { quota: { "poll-interval-seconds": 60 }, "request-retry": 0 },
  });
  rig.account("A").usage.otherwise(spentPage(rig));
  rig.account("A").otherwise(ok("A"));
  await rig.until(rig.provider.hitCount(1));
  await rig.eventually(async () => (await rig.accountState("A"))["state"] === "parked");
  const refused = await rig.responses();
  assertEquals(refused.status, 429);
  const seconds = Number(refused.headers.get("retry-after"));
  assert(seconds > 1_700 && seconds <= 1_800, `${seconds}`);
  assert(
    (await refused.json()).error.message.includes(
      "All accounts have exhausted their quota (cached quota state, no upstream attempt; earliest reset ",
    ),
  );
  const decision = await rig.lastDecision();
  assertEquals(decision.attempts.length, 0);
  assertEquals(decision.candidates.map(({ block }) => [block?.kind, block?.source]), [[
    "park",
    "usage_page",
  ]]);

  await passPolling(rig, 29 * MINUTE_MS);
  const later = await rig.responses();
  assertEquals(later.status, 429);
  assert(Number(later.headers.get("retry-after")) <= 60, "the polls moved the end of the park");
  await later.body?.cancel();
  assertEquals(rig.hits("A"), 0);

  await passPolling(rig, MINUTE_MS + 1_000);
  for (let minute = 31; minute < 120; minute += 9) {
    const served = await rig.responses();
    assertEquals([minute, served.status, (await served.json()).status], [minute, 200, "completed"]);
    await passPolling(rig, 9 * MINUTE_MS);
  }
  const state = await rig.accountState("A");
  assertEquals(state["state"], "healthy");
  assertEquals((state["quota"] as { windows: { used_percent: number }[] }).windows[0]!.used_percent, 100);

  rig.account("A").script(
    failure(429, { type: "usage_limit_reached", message: "The usage limit has been reached" }),
  );
  assertEquals((await (await rig.responses()).json()).error.code, "rate_limited");
  await passPolling(rig, 4 * MINUTE_MS);
  assertEquals((await (await rig.responses()).json()).error.code, "rate_limited");
  await passPolling(rig, 2 * MINUTE_MS);
  const answer = await rig.responses();
  assertEquals([answer.status, (await answer.json()).status], [200, "completed"]);
});

Deno.test("a page that cannot be read changes nothing, and costs no strike", async (t) => {
  const pages = {
    "a refusal": failure(401, { code: "token_expired" }),
    "a failing page": failure(503),
    "a limit of the page itself": failure(429, { headers: { "retry-after": "2895" } }),
    "a login page": raw(200, "<html>Sign in</html>", { "content-type": "text/html" }),
    "something else": json({ hello: "world" }),
  };
  for (const [name, page] of Object.entries(pages)) {
    await t.step(name, async () => {
      await using rig = await startRig({
        accounts: ["A"],
        config: { quota: { "poll-interval-seconds": 60 } },
      });
      rig.account("A").usage.otherwise(page);
      rig.account("A").otherwise(ok("A"));
      await rig.until(rig.provider.hitCount(1));
      await passPolling(rig, 3 * MINUTE_MS);
      assertEquals((await rig.accountState("A"))["state"], "healthy");
      assertEquals((await (await rig.responses()).json()).status, "completed");
      const { providers } = await (await rig.admin("providers")).json();
      assertEquals(providers[0].cooldown, null);
    });
  }
});

Deno.test("headers of a good answer park an account that has nothing left, and the next request goes elsewhere", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  const resetAt = String(Math.floor(rig.clock.now() / 1000) + 86_400);
  rig.account("A").otherwise(ok("A", {
    "x-codex-active-limit": "codex",
    "x-codex-primary-used-percent": "100",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-at": resetAt,
    "x-codex-secondary-used-percent": "100",
    "x-codex-secondary-window-minutes": "10080",
    "x-codex-secondary-reset-at": resetAt,
    "x-codex-credits-has-credits": "False",
  }));
  rig.account("B").otherwise(ok("B"));
  for (let turn = 0; turn < 2; turn++) await (await rig.responses()).text();
  const state = await rig.accountState("A");
  // It served just now: the figures are shown, but real traffic outranks them for half an hour.
  assert(state["override_until"] !== null);
  assertEquals((state["quota"] as { windows: unknown[] }).windows.length, 2);
});

Deno.test("with quota.recheck a newer page with headroom lets one probe through a far deadline (B003)", async () => {
  await using rig = await startRig({
    accounts: ["A"],
    config: { quota: { "poll-interval-seconds": 60, recheck: true }, "request-retry": 0 },
  });
  rig.account("A").usage.otherwise(usage({ usedPercent: 3 }));
  rig.account("A").script(
    failure(429, { type: "usage_limit_reached", extra: { resets_in_seconds: 561_600 } }),
  ).otherwise(ok("A"));
  assertEquals((await (await rig.responses()).json()).error.code, "rate_limited");
  await passPolling(rig, 10 * MINUTE_MS);
  const answer = await rig.responses();
  assertEquals([answer.status, (await answer.json()).status], [200, "completed"]);
  assertEquals((await rig.lastDecision()).attempts[0]!.probe, "recheck");
  assertEquals((await rig.accountState("A"))["state"], "healthy");
});

Deno.test("an operator's reset ends a deadline at once, also over a restart (B003)", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 0 } });
  rig.account("A").script(
    failure(429, { type: "usage_limit_reached", extra: { resets_in_seconds: 561_600 } }),
  ).otherwise(ok("A"));
  const first = await rig.responses();
  assertEquals([first.status, first.headers.get("retry-after")], [429, "561600"]);
  await first.body?.cancel();
  const id = encodeURIComponent(String((await rig.accountState("A"))["id"]));
  const reset = await rig.admin(`accounts/${id}/reset`, { method: "POST" });
  assertEquals((await reset.json()).state, "healthy");
  assertEquals((await (await rig.responses()).json()).status, "completed");
  await rig.restart();
  assertEquals((await (await rig.responses()).json()).status, "completed");
});
