/** `/status` for everybody: axe-core on each view, in both schemes, wide and narrow. */
import { assertEquals } from "@std/assert";
import { findViolations } from "../support/axe.ts";
import { launchChromium } from "../support/chromium.ts";
import { logIn, openPage } from "../support/status_rig.ts";
import { startScene } from "../support/status_scene.ts";

Deno.test("axe-core finds nothing against the login, the page and the drawer", async (t) => {
  await using scene = await startScene();
  await using browser = await launchChromium();
  for (const colorScheme of ["light", "dark"] as const) {
    for (const width of [1280, 390]) {
      await t.step(`${colorScheme}, ${width} px`, async () => {
        await using opened = await openPage(browser, {
          colorScheme,
          viewport: { width, height: 900 },
          // A drawer still sliding in is half transparent: its contrast is not yet what people see.
          reducedMotion: "reduce",
        });
        const { page, complaints } = opened;
        await page.goto(scene.url);
        assertEquals(await findViolations(page), []);
        await page.getByLabel("Admin key").fill("SENT-wrong");
        await page.keyboard.press("Enter");
        await page.getByRole("alert").waitFor();
        assertEquals(await findViolations(page), []);
        await logIn(page, scene.url);
        await page.locator("#request-rows tr").nth(20).waitFor();
        assertEquals(await findViolations(page), []);
        await page.locator("#request-rows tr").first().click();
        await page.locator(".facts").waitFor();
        assertEquals(await findViolations(page), []);
        assertEquals(complaints.filter((line) => !line.includes("401")), []);
      });
    }
  }
});
