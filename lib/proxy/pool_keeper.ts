/**
 * Everything that changes the pool apart from requests: start-up, hot reload, usage pages, operators, refreshes.
 *
 * What was read from disk waits here until the accounts it belongs to are known (state-machine-facts 3.6).
 */
import {
  applyNewMaterial,
  applyOutcome,
  applyRefreshed,
  clearCredits,
  clearTimeBlocks,
  HEALTHY,
  releaseUnproven,
} from "../core/account_health.ts";
import { accountLadderCapMs } from "../core/backoff.ts";
import type { Account, AccountId, Target } from "../core/domain.ts";
import { durableChanges } from "../core/durable_changes.ts";
import { findLedgerFault, LEDGER_RESUME_MS } from "../core/ledger.ts";
import type { Outcome } from "../core/outcome.ts";
import { type AccountSlot, newAccountSlot, readQuotaClosure } from "../core/pool.ts";
import { dropDerivedCooldown, HEALTHY_PROVIDER, openDerivedCooldown } from "../core/provider_health.ts";
import { applyReading } from "../core/quota_park.ts";
import type { AccountHealth, DurableState, LedgerRow, QuotaReading } from "../core/records.ts";
import { fitCooldown, fitHealth, fitLedger, fitNetwork, fitReading } from "../core/restored_times.ts";
import { expandRing, readRing } from "../core/ring.ts";
import { type PoolStore, StoreFailure } from "../ports.ts";
import type { PoolContext } from "./pool_context.ts";

/** Unchanged pages are written again after this time only; a restart then anchors a park a little earlier. */
const READING_WRITE_SPACING_MS = 60_000;
/** Turns of a ring between two writes of its cursor. */
const RING_WRITE_SPACING = 64;

export interface ReconcileResult {
  readonly added: readonly AccountId[];
  readonly updated: readonly AccountId[];
  readonly removed: readonly AccountId[];
}

interface Ring {
  readonly slots: readonly Target[];
  readonly fallback: readonly Target[];
  cursor: number;
  /** Turns since the cursor was written. */
  unwritten: number;
}

export class PoolKeeper {
  readonly #context: PoolContext;
  readonly #store: PoolStore;
  /** Health read from disk, of accounts not seen yet. */
  readonly #restored = new Map<AccountId, AccountHealth>();
  readonly #disabled = new Set<AccountId>();
  readonly #openLedgers = new Map<string, LedgerRow>();
  readonly #rings = new Map<string, Ring>();
  readonly #readingWrittenAtMs = new Map<AccountId, number>();
  #restoring = false;

  constructor(context: PoolContext, store: PoolStore) {
    this.#context = context;
    this.#store = store;
    this.loadRings();
  }

  /**
   * Reads the durable state. Expired times are dropped; leases were never stored, so every one is idle. What does
   * not fit this clock is fitted to it, on disk as well: memory and disk must not part before the first request.
   */
  restore(nowMs: number): void {
    const { records } = this.#context;
    const state = this.#store.load();
    this.#restoring = true;
    this.#restoreHealth(state, nowMs);
    for (const account of state.disabled) this.#disabled.add(account);
    for (const { provider, cooldown } of state.providerCooldowns) {
      const slot = records.provider(provider);
      slot.health = { ...HEALTHY_PROVIDER, cooldown, generation: cooldown.generation };
      records.setProvider(slot, { ...slot.health, cooldown: fitCooldown(cooldown, nowMs) });
    }
    if (state.network !== null) {
      records.adoptNetwork({ ...state.network, probe: null });
      const network = fitNetwork(state.network, nowMs);
      if (network !== state.network) records.setNetwork({ ...network, probe: null });
    }
    for (const { pool, cursor } of state.ringCursors) {
      const ring = this.#rings.get(pool);
      if (ring !== undefined) ring.cursor = cursor % ring.slots.length;
    }
    this.#restoreLedgers(state.openLedgers, nowMs);
    records.flush(nowMs);
  }

  /** Makes the pool hold exactly these accounts. Requests under way keep the ones they know, without the removed. */
  reconcile(accounts: readonly Account[], nowMs: number): ReconcileResult {
    const { records, bindings } = this.#context;
    const added: AccountId[] = [];
    const updated: AccountId[] = [];
    const removed: AccountId[] = [];
    const wanted = new Map(accounts.map((account) => [account.id, account]));
    for (const [id, slot] of records.accounts) {
      const next = wanted.get(id);
      if (next !== undefined && next.provider === slot.account.provider) continue;
      this.#forget(slot, nowMs);
      bindings.dropAccount(id);
      removed.push(id);
    }
    const touched = new Set(removed.length > 0 ? [...records.providers.keys()] : []);
    for (const given of wanted.values()) {
      // Read only now: an id that moved to another provider left its switch behind with the rest.
      const account = this.#withSwitch(given);
      const slot = records.accounts.get(account.id);
      if (slot === undefined) {
        this.#add(account, nowMs);
        added.push(account.id);
        touched.add(account.provider);
      } else if (this.#update(slot, account, nowMs)) updated.push(account.id);
    }
    for (const provider of touched) this.#listAccounts(provider);
    if (this.#restoring) this.#dropUnknown();
    for (const provider of touched) this.#derive(provider, nowMs);
    records.flush(nowMs);
    return { added, updated, removed };
  }

  observeQuota(slot: AccountSlot, reading: QuotaReading, nowMs: number): void {
    const { records, settings } = this.#context;
    const before = slot.health;
    const after = applyReading(before, reading, settings.quota.maxParkMs, nowMs);
    if (after === before) return;
    records.setHealth(slot, after, nowMs);
    const writtenAtMs = this.#readingWrittenAtMs.get(slot.account.id) ?? Number.NEGATIVE_INFINITY;
    const news = (before.park === null) !== (after.park === null) || before.reading === null;
    if (news || nowMs - writtenAtMs >= READING_WRITE_SPACING_MS) {
      this.#readingWrittenAtMs.set(slot.account.id, nowMs);
      records.push({ kind: "put_reading", account: slot.account.id, reading: after.reading! });
    }
    records.flush(nowMs);
  }

  refreshed(slot: AccountSlot, fingerprint: string, nowMs: number): void {
    const { records } = this.#context;
    slot.account = { ...slot.account, fingerprint };
    records.setHealth(slot, applyRefreshed(slot.health), nowMs);
    records.flush(nowMs);
  }

  refreshFailed(slot: AccountSlot, outcome: Outcome, nowMs: number): void {
    const { records, settings, seed } = this.#context;
    const { id, fingerprint } = slot.account;
    const provesNothing = outcome.kind === "transient" || outcome.kind === "local_limit";
    const health = provesNothing ? releaseUnproven(slot.health) : slot.health;
    const attempt = { account: id, attempt: null, model: null, launchedAtMs: nowMs, fingerprint };
    const policy = { seed, capMs: accountLadderCapMs(settings.policy.maxRetryIntervalMs) };
    records.setHealth(slot, applyOutcome(health, outcome, attempt, fingerprint, policy, nowMs), nowMs);
    records.flush(nowMs);
  }

  setEnabled(slot: AccountSlot, enabled: boolean, nowMs: number): void {
    const { records } = this.#context;
    const { id, provider } = slot.account;
    if (enabled) this.#disabled.delete(id);
    else this.#disabled.add(id);
    slot.account = { ...slot.account, enabled };
    records.refreshSlot(slot, nowMs);
    records.noticeCircuit(records.provider(provider));
    this.#derive(provider, nowMs);
    records.push({ kind: "set_enabled", account: id, enabled });
    records.push({ kind: "audit", action: enabled ? "enabled" : "disabled", subject: id, detail: "" });
    records.flush(nowMs);
  }

  /** Clears the time blocks of an account and the cooldown of its provider; nothing else (C35). */
  resetAccount(slot: AccountSlot, nowMs: number): void {
    const { records } = this.#context;
    const provider = records.provider(slot.account.provider);
    const until = slot.health.deadline?.untilMs ?? null;
    records.setHealth(slot, clearTimeBlocks(slot.health), nowMs);
    records.setProvider(provider, { ...HEALTHY_PROVIDER, generation: provider.health.generation + 1 });
    records.push({
      kind: "audit",
      action: "time_blocks_cleared",
      subject: slot.account.id,
      detail: until === null ? "" : `deadline ${new Date(until).toISOString()}`,
    });
    records.flush(nowMs);
  }

  toppedUp(slot: AccountSlot, nowMs: number): void {
    const { records } = this.#context;
    records.setHealth(slot, clearCredits(slot.health), nowMs);
    records.push({ kind: "audit", action: "topped_up", subject: slot.account.id, detail: "" });
    records.flush(nowMs);
  }

  /** Hands out the ledger a crash left open under this key, once. */
  takeOpenLedger(idempotency: string | null, nowMs: number): LedgerRow | null {
    if (idempotency === null || this.#openLedgers.size === 0) return null;
    const ledger = this.#openLedgers.get(idempotency);
    if (ledger === undefined) return null;
    this.#openLedgers.delete(idempotency);
    if (ledger.openedAtMs + LEDGER_RESUME_MS > nowMs) return ledger;
    this.#context.records.push({ kind: "put_ledger", row: { ...ledger, closed: true } });
    return null;
  }

  /** The order in which a pool name is served now; turns its ring by one. `null` when there is no such pool. */
  rotate(
    name: string,
  ): { readonly targets: readonly Target[]; readonly fallbacks: readonly Target[] } | null {
    const ring = this.#rings.get(name);
    if (ring === undefined) return null;
    const targets = readRing(ring.slots, ring.cursor);
    ring.cursor = (ring.cursor + 1) % ring.slots.length;
    ring.unwritten++;
    return { targets, fallbacks: ring.fallback };
  }

  /** Writes ring cursors along with other changes, or alone once they ran far ahead. */
  flushRings(): void {
    const { records } = this.#context;
    for (const [pool, ring] of this.#rings) {
      if (ring.unwritten === 0 || (!records.hasChanges && ring.unwritten < RING_WRITE_SPACING)) continue;
      ring.unwritten = 0;
      records.push({ kind: "put_ring_cursor", pool, cursor: ring.cursor });
    }
  }

  loadRings(): void {
    const known = new Map(this.#rings);
    this.#rings.clear();
    for (const { name, members, fallback } of this.#context.settings.rings) {
      const slots = expandRing(members);
      const cursor = (known.get(name)?.cursor ?? 0) % slots.length;
      this.#rings.set(name, { slots, fallback, cursor, unwritten: 0 });
    }
  }

  #restoreHealth(state: DurableState, nowMs: number): void {
    const { records, settings } = this.#context;
    const stored = new Map<AccountId, AccountHealth>();
    const patch = (account: AccountId, change: (health: AccountHealth) => Partial<AccountHealth>) => {
      const known = stored.get(account) ?? HEALTHY;
      stored.set(account, { ...known, ...change(known) });
    };
    for (const { account, model, deadline } of state.deadlines) {
      if (deadline.untilMs <= nowMs) records.push({ kind: "drop_deadline", account, model });
      else if (model === null) patch(account, () => ({ deadline }));
      else {
        patch(account, ({ modelDeadlines }) => ({
          modelDeadlines: new Map([...modelDeadlines, [model, deadline]]),
        }));
      }
    }
    for (const { account, block } of state.credentials) patch(account, () => ({ credential: block }));
    for (const { account, block } of state.credits) patch(account, () => ({ credits: block }));
    const readings = new Map(state.readings.map(({ account, reading }) => [account, reading]));
    for (const account of new Set([...stored.keys(), ...readings.keys()])) {
      const before = stored.get(account) ?? HEALTHY;
      const given = readings.get(account);
      let health = fitHealth(before, nowMs);
      if (given !== undefined) {
        const reading = fitReading(given, nowMs);
        health = applyReading(health, reading, settings.quota.maxParkMs, nowMs);
        if (reading !== given) records.push({ kind: "put_reading", account, reading });
      }
      this.#restored.set(account, health);
      for (const change of durableChanges(account, before, health)) records.push(change);
    }
  }

  /** A ledger without a key can never be resumed; attempts it charged are lost, without refund (P27). */
  #restoreLedgers(ledgers: readonly LedgerRow[], nowMs: number): void {
    for (const stored of ledgers) {
      const fault = findLedgerFault(stored);
      if (fault !== null) {
        throw new StoreFailure("restore the pool", `ledger of ${stored.request}: ${fault}`);
      }
      const ledger = fitLedger(stored, nowMs);
      if (ledger.idempotency !== null && ledger.openedAtMs + LEDGER_RESUME_MS > nowMs) {
        this.#openLedgers.set(ledger.idempotency, ledger);
        if (ledger !== stored) this.#context.records.push({ kind: "put_ledger", row: ledger });
      } else {
        this.#context.records.push({ kind: "put_ledger", row: { ...ledger, closed: true } });
      }
    }
  }

  #withSwitch(account: Account): Account {
    return this.#disabled.has(account.id) ? { ...account, enabled: false } : account;
  }

  #add(account: Account, nowMs: number): void {
    const { records } = this.#context;
    const slot = newAccountSlot(account);
    records.accounts.set(account.id, slot);
    const restored = this.#restored.get(account.id);
    if (restored !== undefined) {
      this.#restored.delete(account.id);
      // The mark was of other material (a new login while we were away): it ended with it.
      const stale = restored.credential !== null && restored.credential.fingerprint !== account.fingerprint;
      slot.health = stale ? { ...restored, credential: null } : restored;
      if (stale) records.push({ kind: "drop_credential", account: account.id });
    }
    records.refreshSlot(slot, nowMs);
  }

  #update(slot: AccountSlot, account: Account, nowMs: number): boolean {
    const { records } = this.#context;
    const old = slot.account;
    const changed = old.fingerprint !== account.fingerprint;
    if (!changed && old.enabled === account.enabled && old.refreshable === account.refreshable) return false;
    slot.account = account;
    if (changed) records.setHealth(slot, applyNewMaterial(slot.health), nowMs);
    records.refreshSlot(slot, nowMs);
    if (old.enabled !== account.enabled) {
      records.noticeCircuit(records.provider(account.provider));
      this.#derive(account.provider, nowMs);
    }
    return true;
  }

  #forget(slot: AccountSlot, nowMs: number): void {
    const { records } = this.#context;
    slot.removed = true;
    records.refreshSlot(slot, nowMs);
    records.accounts.delete(slot.account.id);
    this.#readingWrittenAtMs.delete(slot.account.id);
    this.#disabled.delete(slot.account.id);
    records.push({ kind: "forget_account", account: slot.account.id });
  }

  #listAccounts(id: string): void {
    const { records } = this.#context;
    const provider = records.provider(id);
    provider.accounts = [...records.accounts.values()]
      .filter((slot) => slot.account.provider === id)
      .sort((a, b) => a.account.id < b.account.id ? -1 : 1);
    records.noticeCircuit(provider);
  }

  /** Rows of accounts that no longer exist, once the accounts are known for the first time. */
  #dropUnknown(): void {
    const { records, bindings } = this.#context;
    this.#restoring = false;
    const unknown = new Set([...this.#restored.keys(), ...this.#disabled]);
    for (const account of unknown) {
      if (records.accounts.has(account)) continue;
      this.#disabled.delete(account);
      records.push({ kind: "forget_account", account });
    }
    this.#restored.clear();
    // Not only of accounts with rows of their own: a healthy one has none.
    for (const account of bindings.accounts()) {
      if (!records.accounts.has(account)) bindings.dropAccount(account);
    }
    for (const provider of records.providers.values()) {
      if (provider.accounts.length === 0) records.setProvider(provider, HEALTHY_PROVIDER);
    }
  }

  /** Opens or drops the closure that stands for accounts all out of quota (C4). */
  #derive(id: string, nowMs: number): void {
    const { records } = this.#context;
    const provider = records.provider(id);
    const closure = readQuotaClosure(provider, nowMs);
    if (closure === null) records.setProvider(provider, dropDerivedCooldown(provider.health));
    else {
      records.setProvider(
        provider,
        openDerivedCooldown(provider.health, closure.untilMs, closure.reason, "", nowMs),
      );
    }
  }
}
