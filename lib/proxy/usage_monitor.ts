/**
 * Reads the usage page of every account now and then (ruling 23), so that a spent one is known before a call fails.
 *
 * A reading may park an account; a page that cannot be read changes nothing at all (ruling 12).
 */
import type { AccountId } from "../core/domain.ts";
import type { Clock, Log, Random, Scheduled, UsageClient } from "../ports.ts";
import type { Credentials, ProviderEntry } from "./deps.ts";
import type { AccountView, PoolRuntime } from "./pool_runtime.ts";

/** First reading after start or after an account appears. */
const FIRST_READ_MS = 2_000;
/** Accounts neither used in this time nor blocked are left alone. */
const USED_WITHIN_MS = 3_600_000;
/** Spread around the interval, so that many accounts are not read in one moment. */
const SPREAD = 0.1;
const READ_LIMIT_MS = 30_000;
const READS_AT_ONCE = 4;

export interface UsageMonitorDeps {
  readonly pool: PoolRuntime;
  readonly credentials: Credentials;
  readonly provider: (id: string) => ProviderEntry | null;
  readonly client: UsageClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** 0 = off. */
  readonly intervalMs: () => number;
  readonly onFatal: (error: unknown) => void;
}

export class UsageMonitor {
  readonly #deps: UsageMonitorDeps;
  readonly #closing = new AbortController();
  /** When an account is read next; absent: not yet known. */
  readonly #dueAtMs = new Map<AccountId, number>();
  readonly #reading = new Set<AccountId>();
  #running: Promise<void> = Promise.resolve();
  #next: Scheduled | null = null;

  constructor(deps: UsageMonitorDeps) {
    this.#deps = deps;
  }

  /** Call at start, and whenever accounts or the interval changed. */
  refresh(): void {
    if (this.#closing.signal.aborted) return;
    const { clock, pool } = this.#deps;
    const nowMs = clock.now();
    const intervalMs = this.#deps.intervalMs();
    const known = new Set<AccountId>();
    for (const { account } of pool.describeAccounts(nowMs)) {
      known.add(account.id);
      if (!this.#dueAtMs.has(account.id)) {
        this.#dueAtMs.set(account.id, nowMs + Math.min(FIRST_READ_MS, intervalMs));
      }
    }
    for (const id of this.#dueAtMs.keys()) if (!known.has(id)) this.#dueAtMs.delete(id);
    this.#arm();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#next?.cancel();
    await this.#running;
  }

  #arm(): void {
    this.#next?.cancel();
    this.#next = null;
    if (this.#deps.intervalMs() === 0 || this.#dueAtMs.size === 0 || this.#closing.signal.aborted) return;
    let earliestMs = Infinity;
    for (const [id, dueAtMs] of this.#dueAtMs) {
      if (!this.#reading.has(id)) earliestMs = Math.min(earliestMs, dueAtMs);
    }
    if (earliestMs === Infinity) return;
    this.#next = this.#deps.clock.schedule(earliestMs, () => {
      this.#next = null;
      this.#running = this.#readDue().catch(this.#deps.onFatal);
    });
  }

  async #readDue(): Promise<void> {
    const nowMs = this.#deps.clock.now();
    const due: AccountView[] = [];
    for (const view of this.#deps.pool.describeAccounts(nowMs)) {
      const dueAtMs = this.#dueAtMs.get(view.account.id);
      if (dueAtMs === undefined || dueAtMs > nowMs || this.#reading.has(view.account.id)) continue;
      this.#plan(view.account.id, nowMs, null);
      if (isWorthReading(view, nowMs)) due.push(view);
    }
    const workers = Array.from({ length: Math.min(READS_AT_ONCE, due.length) }, async () => {
      for (let view = due.shift(); view !== undefined; view = due.shift()) await this.#read(view);
    });
    this.#arm();
    await Promise.all(workers);
  }

  async #read(view: AccountView): Promise<void> {
    const { account } = view;
    const { clock, credentials, client, pool, log } = this.#deps;
    const entry = this.#deps.provider(account.provider);
    const reader = entry?.descriptor.usage ?? null;
    if (entry === null || reader === null) return;
    this.#reading.add(account.id);
    try {
      const usable = await credentials.prepare(account.id, this.#closing.signal);
      if (!usable.ok) return;
      const url = reader.url(entry.settings, usable.credential);
      if (url === null) return;
      const limit = new AbortController();
      const end = (): void => limit.abort();
      const scheduled = clock.schedule(clock.now() + READ_LIMIT_MS, end);
      this.#closing.signal.addEventListener("abort", end, { once: true });
      // Anchored before the call: what the page says was true no later than its answer.
      const askedAtMs = clock.now();
      const answer = await client.read({
        url,
        headers: entry.descriptor.pageHeaders(entry.settings, usable.credential),
      }, limit.signal);
      scheduled.cancel();
      this.#closing.signal.removeEventListener("abort", end);
      if (!answer.ok) {
        log.write("debug", "usage_page_unread", {
          account: account.id,
          reason: answer.reason,
          status: answer.status,
        });
        this.#plan(account.id, clock.now(), answer.retryAtMs);
        return;
      }
      const figures = reader.parse(answer.json, clock.now());
      if (figures === null) return;
      pool.observeQuota(
        account.id,
        { ...figures, observedAtMs: askedAtMs, source: "usage_page" },
        clock.now(),
      );
    } finally {
      this.#reading.delete(account.id);
      this.#arm();
    }
  }

  #plan(account: AccountId, nowMs: number, notBeforeMs: number | null): void {
    const intervalMs = Math.round(
      this.#deps.intervalMs() * (1 + SPREAD * (2 * this.#deps.random.next() - 1)),
    );
    this.#dueAtMs.set(account, Math.max(nowMs + intervalMs, notBeforeMs ?? 0));
  }
}

/** Once after it appeared (it has no reading yet), then while used in the last hour or blocked. */
function isWorthReading(view: AccountView, nowMs: number): boolean {
  if (!view.account.enabled || view.state === "unavailable") return false;
  return view.reading === null || view.state !== "healthy" ||
    nowMs - (view.lastSuccessAtMs ?? 0) < USED_WITHIN_MS;
}
