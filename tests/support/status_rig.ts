/**
 * The proxy with its status page, and a clock that runs as fast as the real one, for a real browser to look at.
 */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import type { DecisionRecord } from "../../lib/core/decision.ts";
import type { Target } from "../../lib/core/domain.ts";
import type { Outcome } from "../../lib/core/outcome.ts";
import type { QuotaReading } from "../../lib/core/records.ts";
import type { Launch } from "../../lib/core/retry_plan.ts";
import type { RequestPlan } from "../../lib/proxy/pool_runtime.ts";
import { ADMIN_KEY, type Rig, type RigOptions, startRig } from "./rig.ts";

/** How often the fake clock follows the real one. */
const PUMP_MS = 20;

export async function startStatusRig(options: RigOptions = {}): Promise<StatusRig> {
  return new StatusRig(await startRig(options));
}

export class StatusRig implements AsyncDisposable {
  readonly rig: Rig;
  #running = true;
  #attempts = 0;
  readonly #pumping: Promise<void>;

  constructor(rig: Rig) {
    this.rig = rig;
    this.#pumping = this.#pump();
  }

  get url(): string {
    return `${this.rig.app.url}/status`;
  }

  /** The id of the rig's codex account of that name. */
  id(name: string): string {
    return `codex:acct-${name}:user-${name}`;
  }

  /** What a usage page would have said. */
  observe(account: string, fields: Partial<QuotaReading>): void {
    const nowMs = this.rig.clock.now();
    this.rig.app.pool.observeQuota(account, {
      observedAtMs: nowMs,
      source: "usage_page",
      windows: [],
      limitReached: null,
      servesBeyondWindows: false,
      creditsAvailable: null,
      plan: null,
      ...fields,
    }, nowMs);
  }

  /** A finished request as the proxy would have recorded it. */
  record(fields: Partial<DecisionRecord> & { readonly requestId: string }): void {
    const nowMs = this.rig.clock.now();
    this.rig.app.decisions.add({
      atMs: nowMs - 800,
      route: "responses",
      model: "gpt-5.5",
      tenant: "key:0123456789ab",
      status: 200,
      code: null,
      rule: null,
      rounds: 1,
      endedAtMs: nowMs,
      waits: [],
      candidates: [],
      attempts: [],
      notes: [],
      movedTo: null,
      ...fields,
    });
  }

  /** One request, ended after its first attempt with this outcome, without anything on the wire. */
  attempt(target: Target, outcome: Outcome): void {
    const { pool } = this.rig.app;
    const nowMs = this.rig.clock.now();
    const { plan, launch } = this.launch(target);
    if (outcome.kind === "success") pool.progress(plan, launch, "semantic", nowMs);
    pool.settle(plan, launch, outcome, nowMs);
    pool.finish(plan, outcome.status ?? 502, outcome.kind === "success" ? null : outcome.code, nowMs);
  }

  /** The first attempt of a request that then waits for its answer. */
  launch(target: Target): { readonly plan: RequestPlan; readonly launch: Launch } {
    const { pool } = this.rig.app;
    const nowMs = this.rig.clock.now();
    const plan = pool.begin({
      id: `req_attempt_${this.#attempts++}`,
      route: "responses",
      tenant: "key:0123456789ab",
      model: target.model,
      targets: [target],
      fallbacks: [],
      replay: "once",
      bound: null,
      session: null,
      pinned: false,
      recoveryAttempts: 0,
      idempotency: null,
      attemptTimeoutMs: 60_000,
    }, nowMs);
    const step = pool.next(plan, nowMs);
    if (step.kind !== "launch") throw new Error(`Expected a launch, got ${step.kind}`);
    return { plan, launch: step.launch };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#running = false;
    await this.#pumping;
    await this.rig[Symbol.asyncDispose]();
  }

  async #pump(): Promise<void> {
    let lastMs = performance.now();
    while (this.#running) {
      await new Promise((resolve) => setTimeout(resolve, PUMP_MS));
      const nowMs = performance.now();
      await this.rig.clock.advance(Math.round(nowMs - lastMs));
      lastMs = nowMs;
    }
  }
}

export interface OpenPage extends AsyncDisposable {
  readonly page: Page;
  /** What the page complained about: script errors, refused sources, failed loads. */
  readonly complaints: string[];
}

/** A page of its own profile, not logged in. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const context = await browser.newContext({ locale: "en-GB", timezoneId: "UTC", ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => void complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() };
}

/** Logs in by the form, as a person does, and waits for the first state. */
export async function logIn(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.getByLabel("Admin key").fill(ADMIN_KEY);
  await page.keyboard.press("Enter");
  await page.getByText("Live", { exact: true }).waitFor();
}
