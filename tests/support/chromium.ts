/**
 * A real headless Chromium for tests of pages. Never skipped in silence: without a browser the tests fail and say so.
 */
import { type Browser, chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** No traffic of its own, no first-run pages; the profile is fresh for every launch. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** @throws Error naming what to install when there is no browser. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: findChromium(), headless: true, args: FLAGS });
}

function findChromium(): string {
  const configured = Deno.env.get("CHROMIUM");
  for (const path of configured === undefined ? PLACES : [configured]) {
    try {
      if (Deno.statSync(path).isFile) return path;
    } catch {
      continue;
    }
  }
  throw new Error(
    "Cannot test in a browser: no Chromium found. Install it (Debian: apt-get install chromium) or set CHROMIUM to its path",
  );
}
