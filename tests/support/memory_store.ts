/**
 * The pool's and the affinity's store in memory, behaving like the real ones where the machine can tell:
 * a transaction is applied whole, `load` gives back only what was written, and the Nth write can be made to fail.
 */
import type { AccountId } from "../../lib/core/domain.ts";
import type { DurableChange, DurableState, LedgerRow } from "../../lib/core/records.ts";
import { type AffinityStore, type BindingRow, type PoolStore, StoreFailure } from "../../lib/ports.ts";

type Row<K extends DurableChange["kind"]> = Extract<DurableChange, { kind: K }>;

export class MemoryPoolStore implements PoolStore {
  readonly #deadlines = new Map<string, Row<"put_deadline">>();
  readonly #credentials = new Map<AccountId, Row<"put_credential">>();
  readonly #credits = new Map<AccountId, Row<"put_credits">>();
  readonly #disabled = new Set<AccountId>();
  readonly #readings = new Map<AccountId, Row<"put_reading">>();
  readonly #cooldowns = new Map<string, Row<"put_provider_cooldown">>();
  #network: DurableState["network"] = null;
  readonly ledgers = new Map<string, LedgerRow>();
  readonly #cursors = new Map<string, number>();
  readonly audits: Row<"audit">[] = [];
  /** Every transaction, in order. */
  readonly log: { readonly nowMs: number; readonly changes: readonly DurableChange[] }[] = [];
  /** Fails the write with this number (1 = the next one); 0 = none. */
  failWriteIn = 0;

  load(): DurableState {
    return structuredClone({
      deadlines: [...this.#deadlines.values()].map(({ account, model, deadline }) => ({
        account,
        model,
        deadline,
      })),
      credentials: [...this.#credentials.values()].map(({ account, block }) => ({ account, block })),
      credits: [...this.#credits.values()].map(({ account, block }) => ({ account, block })),
      disabled: [...this.#disabled],
      readings: [...this.#readings.values()].map(({ account, reading }) => ({ account, reading })),
      providerCooldowns: [...this.#cooldowns.values()].map(({ provider, cooldown }) => ({
        provider,
        cooldown,
      })),
      network: this.#network,
      openLedgers: [...this.ledgers.values()].filter((row) => !row.closed),
      ringCursors: [...this.#cursors].map(([pool, cursor]) => ({ pool, cursor })),
    });
  }

  apply(changes: readonly DurableChange[], nowMs: number): void {
    if (this.failWriteIn > 0 && --this.failWriteIn === 0) {
      throw new StoreFailure("write the pool", "disk is full");
    }
    this.log.push({ nowMs, changes: [...changes] });
    for (const change of changes) this.#applyOne(change);
  }

  prune(): void {
    for (const [request, row] of this.ledgers) {
      if (row.closed) this.ledgers.delete(request);
    }
  }

  /** Kinds of all changes written so far, for counting. */
  get kinds(): string[] {
    return this.log.flatMap(({ changes }) => changes.map((change) => change.kind));
  }

  #applyOne(change: DurableChange): void {
    switch (change.kind) {
      case "put_deadline":
        this.#deadlines.set(`${change.account}\n${change.model ?? ""}`, change);
        break;
      case "drop_deadline":
        this.#deadlines.delete(`${change.account}\n${change.model ?? ""}`);
        break;
      case "put_credential":
        this.#credentials.set(change.account, change);
        break;
      case "drop_credential":
        this.#credentials.delete(change.account);
        break;
      case "put_credits":
        this.#credits.set(change.account, change);
        break;
      case "drop_credits":
        this.#credits.delete(change.account);
        break;
      case "set_enabled":
        if (change.enabled) this.#disabled.delete(change.account);
        else this.#disabled.add(change.account);
        break;
      case "forget_account":
        this.#forget(change.account);
        break;
      case "put_reading":
        this.#readings.set(change.account, change);
        break;
      case "put_provider_cooldown":
        this.#cooldowns.set(change.provider, change);
        break;
      case "drop_provider_cooldown":
        this.#cooldowns.delete(change.provider);
        break;
      case "put_network":
        this.#network = change.network;
        break;
      case "put_ledger":
        this.ledgers.set(change.row.request, change.row);
        break;
      case "put_ring_cursor":
        this.#cursors.set(change.pool, change.cursor);
        break;
      case "audit":
        this.audits.push(change);
        break;
      default: {
        const missing: never = change;
        throw new Error(`Cannot apply change ${JSON.stringify(missing)}`);
      }
    }
  }

  #forget(account: AccountId): void {
    for (const [key, row] of this.#deadlines) {
      if (row.account === account) this.#deadlines.delete(key);
    }
    this.#credentials.delete(account);
    this.#credits.delete(account);
    this.#disabled.delete(account);
    this.#readings.delete(account);
  }
}

export class MemoryAffinityStore implements AffinityStore {
  readonly #rows = new Map<string, BindingRow>();
  /** Called before each write, so that a test can let somebody else win the race. */
  beforeWrite: ((session: string) => void) | null = null;
  readonly writes: string[] = [];

  get(session: string): BindingRow | null {
    return this.#rows.get(session) ?? null;
  }

  bind(row: BindingRow): BindingRow {
    this.#announce(`bind ${row.session} ${row.account}`, row.session);
    const held = this.#rows.get(row.session);
    if (held !== undefined && held.expiresAtMs > row.createdAtMs) return held;
    this.#rows.set(row.session, row);
    return row;
  }

  compareAndSet(
    session: string,
    from: AccountId,
    to: AccountId,
    nowMs: number,
    expiresAtMs: number,
  ): BindingRow {
    this.#announce(`move ${session} ${from} ${to}`, session);
    const held = this.#rows.get(session);
    if (held === undefined || held.expiresAtMs <= nowMs) {
      const row = { session, account: to, createdAtMs: nowMs, expiresAtMs };
      this.#rows.set(session, row);
      return row;
    }
    if (held.account !== from) return held;
    const moved = { ...held, account: to, expiresAtMs };
    this.#rows.set(session, moved);
    return moved;
  }

  renew(session: string, expiresAtMs: number): void {
    this.writes.push(`renew ${session}`);
    const held = this.#rows.get(session);
    if (held !== undefined) this.#rows.set(session, { ...held, expiresAtMs });
  }

  accounts(): readonly AccountId[] {
    return [...new Set([...this.#rows.values()].map(({ account }) => account))];
  }

  dropAccount(account: AccountId): void {
    for (const [session, row] of this.#rows) {
      if (row.account === account) this.#rows.delete(session);
    }
  }

  dropExpired(nowMs: number, limit: number): number {
    let dropped = 0;
    for (const [session, row] of this.#rows) {
      if (dropped >= limit) break;
      if (row.expiresAtMs > nowMs) continue;
      this.#rows.delete(session);
      dropped++;
    }
    return dropped;
  }

  count(): number {
    return this.#rows.size;
  }

  flush(): void {}

  #announce(write: string, session: string): void {
    const hook = this.beforeWrite;
    this.beforeWrite = null;
    hook?.(session);
    this.writes.push(write);
  }
}
