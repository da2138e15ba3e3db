/** `/status` under load: 200 accounts on show, fifty requests and as many account changes a second. */
import { assert, assertEquals } from "@std/assert";
import type { CDPSession, Page } from "playwright-core";
import { launchChromium } from "../support/chromium.ts";
import { logIn, openPage, startStatusRig, type StatusRig } from "../support/status_rig.ts";

const ACCOUNTS = 200;
const SECONDS = 6;
const PER_SECOND = 50;

Deno.test("the page stays responsive with 200 accounts and fifty events a second", async () => {
  const names = Array.from({ length: ACCOUNTS }, (_, at) => `N${String(at).padStart(3, "0")}`);
  await using scene = await startStatusRig({ accounts: names });
  for (const [at, name] of names.entries()) observe(scene, scene.id(name), at);
  await using browser = await launchChromium();
  await using opened = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  const { page, complaints } = opened;
  await logIn(page, scene.url);
  await page.getByRole("button", { name: `Show all ${ACCOUNTS} accounts` }).click();
  await page.locator("#account-rows tr").nth(ACCOUNTS - 1).waitFor();
  const session = await page.context().newCDPSession(page);
  // Processor time, so that a busy machine does not count against the page.
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const busyBefore = await busySeconds(session);
  await watchFrames(page);

  let told = 0;
  const endMs = performance.now() + SECONDS * 1_000;
  while (performance.now() < endMs) {
    for (let nth = 0; nth < PER_SECOND / 10; nth++, told++) tellOne(scene, names, told);
    // Somebody uses the page meanwhile.
    if (told % PER_SECOND === 0) {
      await page.getByLabel("Find an account").fill(told % (2 * PER_SECOND) === 0 ? "n1" : "");
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const busyShare = (await busySeconds(session) - busyBefore) / SECONDS;
  const gaps = (await readGaps(page)).toSorted((a, b) => a - b);
  const p95 = gaps[Math.floor(gaps.length * 0.95)]!;
  const line = `${told} events: main thread ${(busyShare * 100).toFixed(0)} % busy, ${gaps.length} frames, ` +
    `gaps p50 ${Math.round(gaps[gaps.length >> 1]!)} ms, p95 ${Math.round(p95)} ms, ` +
    `longest ${Math.round(gaps.at(-1)!)} ms`;
  console.log(line);
  assert(busyShare < 0.4, line);
  assert(p95 < 100, line);
  await page.locator("#chart-requests .figure", { hasText: `${told} in the last hour` }).waitFor();
  assertEquals(await page.locator("#request-rows tr").count(), 80);
  assertEquals(complaints, []);
});

function tellOne(scene: StatusRig, names: readonly string[], nth: number): void {
  const account = scene.id(names[(nth * 7) % names.length]!);
  const nowMs = scene.rig.clock.now();
  scene.record({
    requestId: `req_${nth}`,
    attempts: [{
      id: `req_${nth}:1`,
      account,
      provider: "codex",
      model: "gpt-5.5",
      round: 0,
      cause: "first",
      probe: "none",
      startedAtMs: nowMs - 800,
      endedAtMs: nowMs,
      outcome: "success",
      status: 200,
      row: 1,
    }],
  });
  observe(scene, account, nth);
}

function observe(scene: StatusRig, account: string, nth: number): void {
  const nowMs = scene.rig.clock.now();
  const window = (name: string, usedPercent: number, inMs: number) => ({
    name,
    usedPercent,
    resetAtMs: nowMs + inMs,
    modelFamily: null,
  });
  scene.observe(account, {
    limitReached: nth % 5 === 0,
    windows: [window("5h", nth % 5 === 0 ? 100 : nth % 97, 3_600_000), window("7d", nth % 89, 259_200_000)],
  });
}

async function busySeconds(session: CDPSession): Promise<number> {
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "TaskDuration")!.value;
}

/** Notes the time between frames from now on. */
function watchFrames(page: Page): Promise<void> {
  return page.evaluate(`
    globalThis.gaps = [];
    let lastMs = performance.now();
    requestAnimationFrame(function frame() {
      const nowMs = performance.now();
      gaps.push(nowMs - lastMs);
      lastMs = nowMs;
      requestAnimationFrame(frame);
    });
  `);
}

function readGaps(page: Page): Promise<number[]> {
  return page.evaluate<number[]>("globalThis.gaps");
}
