/** The whole second machine: accounts, providers, network and settings, as the calls so far make them. */
import type { Account, AccountId, ProviderId } from "../../../lib/core/domain.ts";
import type { QuotaReading } from "../../../lib/core/records.ts";
import type { RequestSpec } from "../../../lib/core/retry_plan.ts";
import type { PoolDeps, PoolReload } from "../../../lib/proxy/pool_runtime.ts";
import type { MirrorStore } from "../stores/mirror_store.ts";
import { AccountOracle } from "./account_oracle.ts";
import { NetworkOracle } from "./network_oracle.ts";
import { ProviderOracle } from "./provider_oracle.ts";
import { RequestOracle, type RouteOracle } from "./request_oracle.ts";

const CREDITS_TEST_MS = 3_600_000;
const MINUTE_MS = 60_000;

export type OracleSettings = Required<Pick<PoolDeps, "policy" | "quota" | "routing" | "recovery">>;

export class Oracle {
  readonly accounts = new Map<AccountId, AccountOracle>();
  readonly #providers = new Map<ProviderId, ProviderOracle>();
  readonly network = new NetworkOracle();
  settings: OracleSettings;
  /** Switched off by an operator, for as long as the account exists. */
  readonly disabled = new Set<AccountId>();
  /** Accounts this process saw leave. */
  readonly removed = new Set<AccountId>();
  /** Read from the disk for accounts nobody has named yet. */
  #restored: MirrorStore | null = null;
  #restoredAtMs = 0;

  constructor(settings: OracleSettings) {
    this.settings = settings;
  }

  get providers(): Iterable<ProviderOracle> {
    return this.#providers.values();
  }

  /** Longest step of the account ladder. */
  get ladderCapMs(): number {
    const { maxRetryIntervalMs } = this.settings.policy;
    return maxRetryIntervalMs > 0 ? Math.min(60_000, maxRetryIntervalMs) : 60_000;
  }

  /** Longest wait between rounds. */
  get longestWaitMs(): number {
    return Math.max(0, Math.min(60_000, this.settings.policy.maxRetryIntervalMs));
  }

  provider(id: ProviderId): ProviderOracle {
    let provider = this.#providers.get(id);
    if (provider === undefined) {
      provider = new ProviderOracle(id);
      this.#providers.set(id, provider);
    }
    return provider;
  }

  /**
   * What a new process must know, all of it from the disk (P23 to P25, P29). On a clock set back nothing was written
   * later than now, and what is not stated by an upstream lasts no longer than it would if it began now.
   */
  restore(disk: MirrorStore, nowMs: number): void {
    this.#restored = disk;
    this.#restoredAtMs = nowMs;
    for (const account of disk.disabled) this.disabled.add(account);
    for (const { provider, cooldown } of disk.cooldowns.values()) {
      const { untilMs, openedAtMs, level, explicit, reason } = cooldown;
      this.provider(provider).cooldown = {
        untilMs: explicit ? untilMs : Math.min(untilMs, nowMs + MINUTE_MS),
        openedAtMs: Math.min(openedAtMs, nowMs),
        level,
        explicit,
        reason,
        derived: false,
        bounds: null,
      };
    }
    if (disk.network === null) return;
    const { evidence, lastSuccessAtMs, pause } = disk.network;
    const rows = (list: typeof evidence) =>
      list.map(({ provider, attempt, observedAtMs }) => ({ provider, attempt, atMs: observedAtMs }));
    this.network.evidence = rows(evidence).map((row) => ({ ...row, atMs: Math.min(row.atMs, nowMs) }));
    this.network.lastSuccessAtMs = Math.min(lastSuccessAtMs, nowMs);
    this.network.pause = pause === null ? null : {
      openedAtMs: Math.min(pause.openedAtMs, nowMs),
      untilMs: Math.min(pause.untilMs, nowMs + MINUTE_MS),
      evidence: rows(pause.evidence),
    };
  }

  /** @returns what must have been reported as added, updated and removed. */
  reconcile(accounts: readonly Account[]): { added: string[]; updated: string[]; removed: string[] } {
    const added: string[] = [];
    const updated: string[] = [];
    const removed: string[] = [];
    const wanted = new Map(accounts.map((account) => [account.id, account]));
    for (const [id, known] of this.accounts) {
      if (wanted.get(id)?.provider === known.account.provider) continue;
      known.isRemoved = true;
      this.removed.add(id);
      this.disabled.delete(id);
      this.accounts.delete(id);
      removed.push(id);
    }
    for (const given of wanted.values()) {
      const account = this.disabled.has(given.id) ? { ...given, enabled: false } : given;
      const known = this.accounts.get(account.id);
      if (known === undefined) {
        this.accounts.set(account.id, this.#newAccount(account));
        this.removed.delete(account.id);
        added.push(account.id);
      } else if (updateAccount(known, account)) updated.push(account.id);
    }
    this.#listAccounts();
    if (this.#restored !== null) {
      // A provider nobody has an account at any more has nothing to wait for.
      for (const provider of this.#providers.values()) if (provider.accounts.length === 0) provider.reset();
      // An account that went while the process was down is as gone as one that goes before its eyes.
      for (const id of this.disabled) if (!this.accounts.has(id)) this.disabled.delete(id);
    }
    this.#restored = null;
    return { added, updated, removed };
  }

  setEnabled(account: AccountOracle, enabled: boolean): void {
    account.account = { ...account.account, enabled };
    account.version++;
    if (enabled) this.disabled.delete(account.id);
    else this.disabled.add(account.id);
  }

  readPage(account: AccountOracle, page: QuotaReading, nowMs: number): void {
    account.version++;
    account.park.read(page, this.settings.quota.maxParkMs, nowMs);
    const { reading } = account.park;
    const { credits } = account;
    // Ruling 20: a newer reading with credit lets the next request test at once.
    if (credits === null || page.creditsAvailable !== true || reading === null) return;
    const isTaken = Math.min(page.observedAtMs, nowMs) === reading.observedAtMs;
    if (isTaken && reading.observedAtMs > credits.refusedAtMs) {
      credits.probeAtMs = Math.min(credits.probeAtMs, nowMs);
    }
  }

  /** New material from a refresh: credential marks end, and a rest that only the token endpoint caused. */
  refreshed(account: AccountOracle, fingerprint: string): void {
    account.version++;
    account.account = { ...account.account, fingerprint };
    account.credential = null;
    if (account.ladder?.reason === "refresh") account.ladder = null;
  }

  /** C35: an operator clears time blocks of the account and its provider's cooldown; nothing else. */
  clearTimes(account: AccountOracle): void {
    account.version++;
    account.deadline = null;
    account.inferred = null;
    account.ladder = null;
    account.modelDeadlines.clear();
    account.modelInferred.clear();
    account.park.cleared();
    this.provider(account.account.provider).reset();
  }

  reload(reload: PoolReload): void {
    const { policy, quota, routing, recovery } = reload;
    this.settings = {
      policy: policy ?? this.settings.policy,
      quota: quota ?? this.settings.quota,
      routing: routing ?? this.settings.routing,
      recovery: recovery ?? this.settings.recovery,
    };
  }

  begin(spec: RequestSpec, nowMs: number): RequestOracle {
    const routes: RouteOracle[] = [
      ...spec.targets.map((target) => ({
        target,
        provider: this.provider(target.provider),
        fallback: false,
      })),
      ...spec.fallbacks.map((target) => ({
        target,
        provider: this.provider(target.provider),
        fallback: true,
      })),
    ];
    const snapshot = new Map<ProviderOracle, readonly AccountOracle[]>();
    for (const { provider } of routes) {
      const accounts = spec.pinned
        ? provider.accounts.filter(({ id }) => id === spec.bound)
        : provider.accounts;
      snapshot.set(provider, accounts);
    }
    return new RequestOracle(spec, routes, snapshot, this.settings.policy, nowMs);
  }

  #newAccount(account: Account): AccountOracle {
    const known = new AccountOracle(account);
    const disk = this.#restored;
    if (disk === null) return known;
    const nowMs = this.#restoredAtMs;
    for (const row of disk.deadlines.values()) {
      if (row.account !== account.id || row.deadline.untilMs <= nowMs) continue;
      const spell = {
        untilMs: row.deadline.untilMs,
        writtenAtMs: Math.min(row.deadline.writtenAtMs, nowMs),
      };
      if (row.model === null) known.deadline = spell;
      else known.modelDeadlines.set(row.model, spell);
    }
    const credential = disk.credentials.get(account.id)?.block;
    if (credential?.fingerprint === account.fingerprint) {
      known.credential = { ...credential, writtenAtMs: Math.min(credential.writtenAtMs, nowMs) };
    }
    const credits = disk.credits.get(account.id)?.block;
    if (credits !== undefined) {
      const openedAtMs = Math.min(credits.openedAtMs, nowMs);
      const probeAtMs = Math.min(credits.probeAtMs, nowMs + CREDITS_TEST_MS);
      known.credits = {
        openedAtMs,
        probeAtMs,
        refusedAtMs: Math.max(openedAtMs, probeAtMs - CREDITS_TEST_MS),
      };
    }
    const reading = disk.readings.get(account.id)?.reading;
    if (reading !== undefined) this.readPage(known, reading, nowMs);
    return known;
  }

  #listAccounts(): void {
    for (const account of this.accounts.values()) this.provider(account.account.provider);
    for (const provider of this.#providers.values()) {
      provider.accounts = [...this.accounts.values()]
        .filter(({ account }) => account.provider === provider.id)
        .sort((a, b) => a.id < b.id ? -1 : 1);
    }
  }
}

/** New material ends credential marks and exclusions, never a deadline (2A.3). */
function updateAccount(known: AccountOracle, account: Account): boolean {
  const before = known.account;
  const isNew = before.fingerprint !== account.fingerprint;
  if (!isNew && before.enabled === account.enabled && before.refreshable === account.refreshable) {
    return false;
  }
  known.account = account;
  known.version++;
  if (isNew) {
    known.credential = null;
    known.exclusions.clear();
  }
  return true;
}
