/** `/status` in a real browser: what a person sees and does there. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { failure, ok } from "../../lib/demo/simulated_replies.ts";
import { launchChromium } from "../support/chromium.ts";
import { ADMIN_KEY } from "../support/rig.ts";
import { logIn, openPage, startStatusRig } from "../support/status_rig.ts";
import { takeScreenshots } from "../support/status_screenshots.ts";

Deno.test("the login takes the admin key by keyboard alone, says when it is wrong, and logs out again", async () => {
  await using scene = await startStatusRig({ accounts: ["A"] });
  await using browser = await launchChromium();
  await using opened = await openPage(browser);
  const { page, complaints } = opened;
  await page.goto(scene.url);
  assertEquals(await page.locator(":focus").getAttribute("id"), "key");
  await page.keyboard.type("SENT-not-the-key");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  assertEquals(await page.getByRole("alert").textContent(), "That is not the admin key.");
  await page.keyboard.type(ADMIN_KEY);
  await page.keyboard.press("Enter");
  await page.getByText("Live", { exact: true }).waitFor();
  assertEquals(page.url(), scene.url);
  assertEquals(await page.evaluate("document.cookie"), "");
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Admin key").waitFor();
  await page.goBack();
  await page.getByLabel("Admin key").waitFor();
  // The refused key is answered 401, which browsers log.
  assertEquals(complaints.filter((line) => !line.includes("401")), []);
});

Deno.test("a request is told in the drawer, opened and closed by keyboard, and the focus comes back", async () => {
  await using scene = await startStatusRig({ accounts: ["A", "B"] });
  const { rig } = scene;
  rig.account("A").script(failure(503, { code: "server_is_overloaded" })).otherwise(ok("A"));
  rig.account("B").otherwise(ok("B"));
  await (await rig.responses()).text();
  const decision = await rig.lastDecision();
  await using browser = await launchChromium();
  await using opened = await openPage(browser);
  const { page, complaints } = opened;
  await logIn(page, scene.url);
  const button = page.locator("#request-rows button").first();
  await button.focus();
  await page.keyboard.press("Enter");
  const drawer = page.getByRole("dialog", { name: `Served by ${scene.id("B")} at the second attempt` });
  await drawer.waitFor();
  assertEquals(await page.locator(":focus").getAttribute("id"), "drawer-title");
  const story = await drawer.locator(".story li").allTextContents();
  assertEquals(story.length, 2);
  assertMatch(
    story[0]!,
    /Sent to codex:acct-A:user-A; it failed \(503 server_is_overloaded\) after \d+ ms\.$/,
  );
  assertMatch(story[1]!, /Moved on to codex:acct-B:user-B; it answered after \d+ ms\.$/);
  assertEquals(await drawer.locator(".lane:not(.axis)").count(), 2);
  assertEquals(await drawer.getByText(decision.requestId).count(), 1);
  // The page behind is out of the keyboard's reach while the drawer is open.
  for (let nth = 0; nth < 6; nth++) {
    await page.keyboard.press("Tab");
    assertEquals(await page.locator("main :focus").count(), 0);
  }
  await page.keyboard.press("Escape");
  await drawer.waitFor({ state: "hidden" });
  await page.locator("#request-rows button:focus").waitFor();
  await page.locator("#request-rows tr").first().click();
  await drawer.waitFor();
  await page.mouse.click(20, 20);
  await drawer.waitFor({ state: "hidden" });
  assertEquals(complaints, []);
});

Deno.test("names that clients choose are shown as they are, wherever they appear", async () => {
  await using scene = await startStatusRig({ accounts: ["A"] });
  const own = "document.title='owned'";
  const evil = `<img src=x onerror="${own}">"'&\u202e</script><script>${own}</script>`;
  scene.record({ requestId: "req_evil", model: evil, attempts: [] });
  await using browser = await launchChromium();
  await using opened = await openPage(browser);
  const { page, complaints } = opened;
  await logIn(page, scene.url);
  assertEquals(await page.locator("#request-rows .c-model bdi").first().textContent(), evil);
  await page.locator("#request-rows tr").first().click();
  await page.locator(".facts").waitFor();
  assertEquals(await page.locator(".facts dd").nth(1).textContent(), evil);
  assertEquals([await page.locator("main img, dialog img").count(), await page.title()], [
    0,
    "Holdfast status",
  ]);
  assertEquals(complaints, []);
});

for (const scheme of ["light", "dark"] as const) {
  Deno.test(`the page follows the system's ${scheme} scheme, and keeps still where motion is unwanted`, async () => {
    await using scene = await startStatusRig({ accounts: ["A"] });
    scene.record({ requestId: "req_1" });
    await using browser = await launchChromium();
    await using opened = await openPage(browser, { colorScheme: scheme, reducedMotion: "reduce" });
    const { page } = opened;
    const lightness = async () => {
      const colour = await page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
      const [red = 0, green = 0, blue = 0] = colour.match(/\d+/g)!.map(Number);
      return (red + green + blue) / 3;
    };
    await page.goto(scene.url);
    const login = await lightness();
    await logIn(page, scene.url);
    for (const value of [login, await lightness()]) {
      assert(scheme === "dark" ? value < 60 : value > 200, `${value}`);
    }
    await page.locator("#request-rows tr").first().click();
    await page.locator(".facts").waitFor();
    const animation = "getComputedStyle(document.querySelector('#drawer')).animationName";
    assertEquals(await page.evaluate(animation), "none");
  });
}

Deno.test("the page fits every screen without scrolling sideways, and shows the countdowns on each", async (t) => {
  await using scene = await startStatusRig({ accounts: ["A", "B"] });
  const nowMs = scene.rig.clock.now();
  scene.observe(scene.id("A"), {
    limitReached: true,
    windows: [
      { name: "5h", usedPercent: 100, resetAtMs: nowMs + 7_200_000, modelFamily: null },
      { name: "7d", usedPercent: 40, resetAtMs: nowMs + 172_800_000, modelFamily: "a-long-model-family" },
    ],
  });
  scene.record({ requestId: "req_1", model: "an-unusually-long-model-name-".repeat(4), attempts: [] });
  await using browser = await launchChromium();
  for (const width of [320, 390, 600, 860, 1280]) {
    await t.step(`${width} px`, async () => {
      await using opened = await openPage(browser, { viewport: { width, height: 800 } });
      const { page } = opened;
      await logIn(page, scene.url);
      const sideways = () => page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      const countdown = page.locator("#account-rows .countdown").first();
      await countdown.waitFor();
      assert(await sideways() <= 0);
      assertMatch((await countdown.textContent())!, /^(2\d|30):\d\d$/);
      const box = (await countdown.boundingBox())!;
      assert(box.x >= 0 && box.x + box.width <= width);
      await page.locator("#request-rows tr").first().click();
      await page.locator(".facts").waitFor();
      assert(await page.locator("#drawer").evaluate((node) => node.scrollWidth <= node.clientWidth));
      assert(await sideways() <= 0);
    });
  }
});

Deno.test("accounts are found by state and by name, and many are shown when asked for", async () => {
  const names = Array.from({ length: 30 }, (_, at) => `N${at}`);
  await using scene = await startStatusRig({ accounts: names });
  scene.rig.app.pool.setEnabled(scene.id("N7"), false, scene.rig.clock.now());
  await using browser = await launchChromium();
  await using opened = await openPage(browser);
  const { page } = opened;
  await logIn(page, scene.url);
  const rows = page.locator("#account-rows tr");
  await rows.nth(11).waitFor();
  assertEquals(await rows.count(), 12);
  await page.getByRole("button", { name: "Show all 30 accounts" }).click();
  await rows.nth(29).waitFor();
  await page.getByRole("radio", { name: "Blocked" }).check();
  await rows.nth(1).waitFor({ state: "detached" });
  assertEquals(await rows.locator(".c-name .name").allTextContents(), [scene.id("N7")]);
  await page.locator("#account-filter").getByRole("radio", { name: "All" }).check();
  await rows.nth(29).waitFor();
  await page.getByLabel("Find an account").fill("n23");
  await rows.nth(1).waitFor({ state: "detached" });
  assertEquals(await rows.locator(".c-name .name").allTextContents(), [scene.id("N23")]);
  await page.getByLabel("Find an account").fill("nobody");
  await page.getByText("No account matches.").waitFor();
});

Deno.test("pictures of the page are small enough to keep", async () => {
  const folder = new URL("../../.cache/screenshots/", import.meta.url);
  for (const file of await takeScreenshots(folder)) {
    const { size } = await Deno.stat(file);
    assert(size > 10_000 && size < 200_000, `${file.pathname} has ${size} bytes`);
  }
});
