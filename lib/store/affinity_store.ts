/**
 * Which account a session stays with, for more sessions than fit in memory.
 *
 * First binds and moves are written at once; renewals, which every request makes, are gathered and written by `flush`.
 * Losing some with the power costs a warm cache, never an answer. One process owns the file, so the cache is right.
 */
import type { AccountId } from "../core/domain.ts";
import type { AffinityStore, BindingRow } from "../ports.ts";
import { decode, requireField, type Shape, text, TIME_MS } from "./codec.ts";
import type { Connection, Database } from "./database.ts";
import { LruMap } from "../core/lru.ts";
import { ACCOUNT } from "./pool_shapes.ts";

/** About 280 bytes each. Every request may bring a new session, so this is filled sooner or later: 5 MB. */
export const CACHED_BINDINGS = 16_384;
/** Renewals held back before they are written without being asked for. */
const PENDING_RENEWALS = 50_000;
/** Beyond this many, a new session takes the place of those that would end first. */
const BINDING_LIMIT = 2_000_000;
const MAKE_ROOM_BATCH = 1_000;

const SESSION = text(1, 512);

interface StoredBinding {
  readonly accountId: number;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

const STORED: Shape<StoredBinding> = {
  accountId: { ...TIME_MS, must: "an account number" },
  createdAtMs: TIME_MS,
  expiresAtMs: TIME_MS,
};

const PUT = `INSERT INTO binding (session, account_id, created_at_ms, expires_at_ms) VALUES (?, ?, ?, ?)
  ON CONFLICT (session) DO UPDATE SET account_id = excluded.account_id,
    created_at_ms = excluded.created_at_ms, expires_at_ms = excluded.expires_at_ms`;

export interface AffinityLimits {
  readonly cached?: number;
  readonly pending?: number;
  readonly bindings?: number;
}

export class SqliteAffinityStore implements AffinityStore {
  readonly #database: Database;
  readonly #cache: LruMap<string, BindingRow>;
  readonly #renewals = new Map<string, number>();
  readonly #pendingLimit: number;
  readonly #bindingLimit: number;
  /** Accounts that may be named by a binding; one that was dropped has no number any more. */
  readonly #numbers = new Map<AccountId, number>();
  readonly #accounts = new Map<number, { readonly account: AccountId; bindingCount: number }>();
  /** Sum of the binding counts. */
  #count = 0;

  constructor(database: Database, limits: AffinityLimits = {}) {
    this.#database = database;
    this.#cache = new LruMap(limits.cached ?? CACHED_BINDINGS);
    this.#pendingLimit = limits.pending ?? PENDING_RENEWALS;
    this.#bindingLimit = limits.bindings ?? BINDING_LIMIT;
    this.#loadAccounts();
  }

  get(session: string): BindingRow | null {
    const cached = this.#cache.get(session);
    if (cached !== undefined) return cached;
    const stored = this.#database.read("read a binding", (connection) => {
      const row = connection.wideRows("SELECT * FROM binding WHERE session = ?", session)[0];
      return row === undefined ? null : decode("binding", ["session"], STORED, row);
    });
    if (stored === null) return null;
    const { accountId, createdAtMs, expiresAtMs } = stored;
    const account = this.#accounts.get(accountId)?.account;
    if (account === undefined) return null;
    const row = { session, account, createdAtMs, expiresAtMs: this.#renewals.get(session) ?? expiresAtMs };
    this.#cache.set(session, row);
    return row;
  }

  /** A row that ended by `row.createdAtMs` holds no more. @throws RangeError, TypeError, StoreFailure */
  bind(row: BindingRow): BindingRow {
    const current = this.get(row.session);
    if (current !== null && current.expiresAtMs > row.createdAtMs) return current;
    return this.#put(row, current);
  }

  /** Where no live row is left, `to` is bound anew. */
  compareAndSet(
    session: string,
    from: AccountId,
    to: AccountId,
    nowMs: number,
    expiresAtMs: number,
  ): BindingRow {
    const current = this.get(session);
    if (current === null || current.expiresAtMs <= nowMs) {
      return this.#put({ session, account: to, createdAtMs: nowMs, expiresAtMs }, current);
    }
    if (current.account !== from) return current;
    return this.#put({ ...current, account: to, expiresAtMs }, current);
  }

  /** Never shortens; does nothing for a session without a row. */
  renew(session: string, expiresAtMs: number): void {
    requireField("expiresAtMs", TIME_MS, expiresAtMs);
    const current = this.get(session);
    if (current === null || current.expiresAtMs >= expiresAtMs) return;
    this.#cache.set(session, { ...current, expiresAtMs });
    this.#renewals.set(session, expiresAtMs);
    if (this.#renewals.size >= this.#pendingLimit) this.flush();
  }

  flush(): void {
    if (this.#renewals.size === 0) return;
    this.#database.write("normal", "renew bindings", (connection) => {
      for (const [session, expiresAtMs] of this.#renewals) {
        connection.run("UPDATE binding SET expires_at_ms = ? WHERE session = ?", expiresAtMs, session);
      }
    });
    this.#renewals.clear();
  }

  accounts(): readonly AccountId[] {
    return [...this.#numbers.keys()];
  }

  /** One row, however many sessions: theirs name a number that no longer exists, and go when they end. */
  dropAccount(account: AccountId): void {
    const number = this.#numbers.get(account);
    if (number === undefined) return;
    this.#database.write("normal", "drop the bindings of an account", (connection) => {
      connection.run("DELETE FROM bound_account WHERE id = ?", number);
    });
    this.#count -= this.#accounts.get(number)!.bindingCount;
    this.#numbers.delete(account);
    this.#accounts.delete(number);
    this.#cache.deleteWhere((row) => row.account === account);
  }

  dropExpired(nowMs: number, limit: number): number {
    requireField("nowMs", TIME_MS, nowMs);
    this.flush();
    const removed = this.#database.write(
      "normal",
      "drop expired bindings",
      (connection) => removeFirstEnding(connection, nowMs, limit),
    );
    this.#forget(removed);
    return removed.length;
  }

  count(): number {
    return this.#count;
  }

  #put(row: BindingRow, replaced: BindingRow | null): BindingRow {
    requireField("session", SESSION, row.session);
    requireField("account", ACCOUNT, row.account);
    requireField("createdAtMs", TIME_MS, row.createdAtMs);
    requireField("expiresAtMs", TIME_MS, row.expiresAtMs);
    const isFull = replaced === null && this.#count >= this.#bindingLimit;
    if (isFull) this.flush();
    const { number, removed } = this.#database.write("normal", "bind a session", (connection) => {
      const removed = isFull ? removeFirstEnding(connection, null, MAKE_ROOM_BATCH) : [];
      const number = this.#numbers.get(row.account) ?? addAccount(connection, row.account);
      connection.run(PUT, row.session, number, row.createdAtMs, row.expiresAtMs);
      return { number, removed };
    });
    // Memory follows only what was kept.
    this.#forget(removed);
    this.#numbers.set(row.account, number);
    if (!this.#accounts.has(number)) this.#accounts.set(number, { account: row.account, bindingCount: 0 });
    if (replaced !== null) this.#addToCount(this.#numbers.get(replaced.account)!, -1);
    this.#addToCount(number, 1);
    this.#renewals.delete(row.session);
    this.#cache.set(row.session, row);
    return row;
  }

  #forget(removed: readonly RemovedBinding[]): void {
    for (const { session, account_id } of removed) {
      this.#cache.delete(session);
      this.#addToCount(account_id, -1);
    }
  }

  #addToCount(number: number, change: number): void {
    const entry = this.#accounts.get(number);
    if (entry === undefined) return;
    entry.bindingCount += change;
    this.#count += change;
  }

  #loadAccounts(): void {
    const rows = this.#database.read("load the bound accounts", (connection) =>
      connection.all(
        `SELECT a.id, a.account, coalesce(b.held, 0) AS held FROM bound_account AS a
         LEFT JOIN (SELECT account_id, count(*) AS held FROM binding GROUP BY account_id) AS b
         ON b.account_id = a.id`,
      ));
    for (const row of rows) {
      const number = row.id as number;
      const account = row.account as string;
      this.#numbers.set(account, number);
      this.#accounts.set(number, { account, bindingCount: 0 });
      this.#addToCount(number, row.held as number);
    }
  }
}

interface RemovedBinding {
  readonly session: string;
  readonly account_id: number;
}

/** @param nowMs  removes only rows that have ended by then; null removes in any case */
function removeFirstEnding(connection: Connection, nowMs: number | null, limit: number): RemovedBinding[] {
  const rows = connection.all(
    `SELECT session, account_id FROM binding WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?`,
    nowMs ?? Number.MAX_SAFE_INTEGER,
    limit,
  ) as unknown as RemovedBinding[];
  for (const { session } of rows) connection.run("DELETE FROM binding WHERE session = ?", session);
  return rows;
}

function addAccount(connection: Connection, account: AccountId): number {
  connection.run("INSERT INTO bound_account (account) VALUES (?)", account);
  return connection.get("SELECT id FROM bound_account WHERE account = ?", account)!.id as number;
}
