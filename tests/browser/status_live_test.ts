/** `/status` in a real browser while things happen: failover, recovery, loss of the connection or the session. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { failure, ok } from "../../lib/demo/simulated_replies.ts";
import { launchChromium } from "../support/chromium.ts";
import { noResponse, success } from "../support/outcomes.ts";
import { logIn, openPage, startStatusRig } from "../support/status_rig.ts";

Deno.test("a failover shows by itself: the account cools with a countdown, the request says it moved", async () => {
  await using scene = await startStatusRig({ accounts: ["A", "B"] });
  const { rig } = scene;
  rig.account("A").script(failure(429, {
    type: "usage_limit_reached",
    extra: { resets_in_seconds: 600 },
  })).otherwise(ok("A again"));
  rig.account("B").otherwise(ok("B"));
  await using browser = await launchChromium();
  await using opened = await openPage(browser);
  const { page, complaints } = opened;
  await logIn(page, scene.url);
  const row = page.locator("#account-rows tr", { hasText: scene.id("A") });
  await row.getByText("Healthy").waitFor();
  assertEquals(await page.locator("#serving").textContent(), "2");

  await (await rig.responses()).text();
  await row.getByText("Cooling").waitFor();
  await row.getByText("At a limit until the time the provider stated").waitFor();
  assertEquals(await page.locator("#serving").textContent(), "1");
  const countdown = row.locator(".countdown");
  const first = await countdown.textContent();
  assertMatch(first!, /^(9:[45]\d|10:00)$/);
  await row.locator(".countdown", { hasNotText: first! }).waitFor();
  const request = page.locator("#request-rows tr").first();
  assertEquals(await request.locator(".state").textContent(), "Served");
  assertEquals(await request.locator(".c-account").textContent(), scene.id("B"));
  assertEquals(await request.locator(".unusual").textContent(), "2");
  await page.locator("#chart-requests .figure", { hasText: "1 in the last hour" }).waitFor();

  await rig.pass(600_000);
  await row.getByText("Healthy").waitFor();
  assertEquals(complaints, []);
});

Deno.test("a provider whose accounts are all out of quota shows its rest and when it ends", async () => {
  await using scene = await startStatusRig({ accounts: ["A"], config: { "request-retry": 0 } });
  const { rig } = scene;
  rig.account("A").script(failure(429, { type: "usage_limit_reached", extra: { resets_in_seconds: 90 } }));
  await using browser = await launchChromium();
  await using opened = await openPage(browser);
  const { page } = opened;
  await logIn(page, scene.url);
  const row = page.locator("#provider-rows tr");
  await row.getByText("Closed").waitFor();
  await (await rig.responses()).text();
  await row.getByText("Open", { exact: true }).waitFor();
  await row.getByText("It rests: every account is out of quota.").waitFor();
  assertMatch((await row.locator(".countdown").first().textContent())!, /^1:[0-3]\d$/);
  await page.locator("#request-rows .state", { hasText: "Failed" }).waitFor();
  await rig.pass(90_000);
  await page.locator("#serving", { hasText: "1" }).waitFor();
  await row.getByText("Half-open").waitFor();
  await row.getByText("The next request tests it.").waitFor();
  await row.getByText("Now", { exact: true }).waitFor();
});

Deno.test("a provider without an account is there, and is not said to let requests through", async () => {
  await using scene = await startStatusRig({ accounts: [] });
  await using browser = await launchChromium();
  await using opened = await openPage(browser);
  const { page } = opened;
  await logIn(page, scene.url);
  const row = page.locator("#provider-rows tr");
  await row.getByText("It has no account.").waitFor();
  assertEquals(await row.locator(".c-next").textContent(), "–");
});

Deno.test("a network pause stands above everything until a request has tested the network", async () => {
  const lab = { id: "lab", kind: "openai", "base-url": "http://127.0.0.1:9/v1", models: ["m2"] };
  await using scene = await startStatusRig({
    accounts: ["A"],
    config: { providers: [{ ...lab, accounts: [{ id: "k", "api-key": "none" }] }] },
  });
  await using browser = await launchChromium();
  await using opened = await openPage(browser);
  const { page } = opened;
  await logIn(page, scene.url);
  assert(await page.locator("#pause").isHidden());
  for (const [provider, model] of [["codex", "m1"], ["lab", "m2"]] as const) {
    scene.attempt({ provider, model }, noResponse());
  }
  await page.getByText(/^The network is paused for \d+:\d\d: codex and lab could not be reached\.$/)
    .waitFor();
  await scene.rig.pass(60_000);
  await page.getByText(/^The network is paused until the next request has tested it/).waitFor();
  const { plan } = scene.launch({ provider: "codex", model: "m1" });
  await page.getByText(
    /^The network is paused while one request tests it, for \d+:\d\d at most: codex and lab could not be reached\.$/,
  ).waitFor();
  scene.rig.app.pool.cancel(plan, scene.rig.clock.now());
  await page.getByText(/^The network is paused until the next request has tested it/).waitFor();
  scene.attempt({ provider: "codex", model: "m1" }, success());
  await page.locator("#pause").waitFor({ state: "hidden" });
});

Deno.test("rows stand still while they are held, pointed at or focused, and what is new waits", async () => {
  await using scene = await startStatusRig({ accounts: ["A"] });
  scene.record({ requestId: "req_first", model: "first" });
  await using browser = await launchChromium();
  await using opened = await openPage(browser);
  const { page } = opened;
  await logIn(page, scene.url);
  const top = page.locator("#request-rows tr").first().locator(".c-model");
  await top.getByText("first").waitFor();

  const hold = page.getByRole("button", { name: "Hold" });
  await hold.click();
  for (const nth of [1, 2]) scene.record({ requestId: `req_held${nth}`, model: `held-${nth}` });
  const fresh = page.locator("#show-new");
  await fresh.getByText("Show 2 new").waitFor();
  assertEquals(await top.textContent(), "first");
  await fresh.click();
  await top.getByText("held-2").waitFor();
  await hold.click();

  await page.locator("#request-rows tr").nth(1).hover();
  scene.record({ requestId: "req_hover", model: "hover" });
  await fresh.getByText("Show 1 new").waitFor();
  await page.mouse.move(5, 5);
  await top.getByText("hover").waitFor();

  await page.locator("#request-rows button").first().focus();
  scene.record({ requestId: "req_focus", model: "focus" });
  await fresh.getByText("Show 1 new").waitFor();
  await hold.focus();
  await top.getByText("focus").waitFor();

  await page.getByRole("radio", { name: "Not served" }).check();
  await page.getByText("No request matches.").waitFor();
  await page.mouse.move(5, 5);
  const bad = { status: 502, code: "upstream_unavailable", rule: "transient" };
  scene.record({ requestId: "req_bad", model: "bad", ...bad });
  await top.getByText("bad").waitFor();
  assertEquals(await page.locator("#request-rows tr").count(), 1);
});

Deno.test("the page says when the connection is lost, and asks for the key again when the session is over", async () => {
  await using scene = await startStatusRig({ accounts: ["A"] });
  await using browser = await launchChromium();
  await using opened = await openPage(browser);
  const { page } = opened;
  await logIn(page, scene.url);
  scene.rig.listenOn(Number(new URL(scene.url).port));
  await scene.rig.stop();
  await page.locator("#link", { hasText: "Connection lost, trying again" }).waitFor();
  // A proxy that came back on its port knows no sessions.
  await scene.rig.start();
  await page.getByLabel("Admin key").waitFor();

  await logIn(page, scene.url);
  await using other = await openPage(browser);
  await logIn(other.page, scene.url);
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Admin key").waitFor();
  // Another browser's session is another one.
  scene.record({ requestId: "req_after" });
  await other.page.locator("#request-rows tr").first().waitFor();
  assert(await other.page.getByText("Live", { exact: true }).isVisible());
});
