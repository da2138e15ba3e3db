/** Pictures of the status page for the documents: `deno task screenshots`. */
import type { BrowserContextOptions } from "playwright-core";
import { launchChromium } from "./chromium.ts";
import { fromFileUrl } from "./paths.ts";
import { logIn, openPage } from "./status_rig.ts";
import { startScene } from "./status_scene.ts";

interface Picture {
  readonly name: string;
  readonly options: BrowserContextOptions;
  readonly drawer: boolean;
}

const PICTURES: readonly Picture[] = [
  {
    name: "status-light",
    options: { viewport: { width: 1280, height: 1000 }, colorScheme: "light" },
    drawer: false,
  },
  {
    name: "status-dark",
    options: { viewport: { width: 1280, height: 860 }, colorScheme: "dark" },
    drawer: true,
  },
  {
    name: "status-narrow",
    options: { viewport: { width: 390, height: 1200 }, colorScheme: "light" },
    drawer: false,
  },
];

/** @param folder  ends with a slash; made when missing. @returns the files written. */
export async function takeScreenshots(folder: URL): Promise<URL[]> {
  await Deno.mkdir(folder, { recursive: true });
  await using scene = await startScene();
  await using browser = await launchChromium();
  const files: URL[] = [];
  for (const { name, options, drawer } of PICTURES) {
    await using opened = await openPage(browser, { ...options, reducedMotion: "reduce" });
    const { page } = opened;
    await logIn(page, scene.url);
    await page.locator("#account-rows tr").nth(2).waitFor();
    await page.locator("#request-rows tr").nth(2).waitFor();
    if (drawer) {
      await page.locator("#request-rows tr").filter({ has: page.locator(".unusual", { hasText: "3" }) })
        .first().click();
      await page.locator(".facts").waitFor();
    }
    const file = new URL(`${name}.png`, folder);
    await page.screenshot({ path: fromFileUrl(file) });
    files.push(file);
  }
  return files;
}

if (import.meta.main) {
  for (const file of await takeScreenshots(new URL("../../docs/images/", import.meta.url))) {
    console.log(`${file.pathname.split("/").at(-1)}  ${(await Deno.stat(file)).size} bytes`);
  }
}
