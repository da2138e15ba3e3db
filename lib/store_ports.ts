/** What must survive the process, as interfaces; part of `ports.ts`, through which everybody imports them. */
import type { AccountId, ProviderId } from "./core/domain.ts";
import type { DurableChange, DurableState } from "./core/records.ts";

/** Thrown by every store when the disk or the database is gone; ends the process (ruling 9). */
export class StoreFailure extends Error {
  override readonly name = "StoreFailure";
  constructor(readonly action: string, readonly reason: string, options?: ErrorOptions) {
    super(`Cannot ${action}: ${reason}`, options);
  }
}

/** Thrown by a store when a row would break a rule of uniqueness: the caller's to answer, never fatal. */
export class StoreConflict extends Error {
  override readonly name = "StoreConflict";
}

export interface PoolStore {
  /** @throws StoreFailure on a row that does not parse, naming table and key. */
  load(): DurableState;
  /** All changes in one transaction, durable when it returns. @throws StoreFailure */
  apply(changes: readonly DurableChange[], nowMs: number): void;
  /** Removes closed ledgers older than one hour, in batches. */
  prune(nowMs: number): void;
}

export interface BindingRow {
  readonly session: string;
  readonly account: AccountId;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

export interface AffinityStore {
  get(session: string): BindingRow | null;
  /** First writer wins. @returns the row that holds now. */
  bind(row: BindingRow): BindingRow;
  /** Moves the row only while it still names `from`. @returns the row that holds now. */
  compareAndSet(
    session: string,
    from: AccountId,
    to: AccountId,
    nowMs: number,
    expiresAtMs: number,
  ): BindingRow;
  renew(session: string, expiresAtMs: number): void;
  /** Accounts that bindings name or named. */
  accounts(): readonly AccountId[];
  dropAccount(account: AccountId): void;
  /** @returns how many rows went; call again while it equals `limit`. */
  dropExpired(nowMs: number, limit: number): number;
  /** Live and expired rows together; those of dropped accounts do not count. */
  count(): number;
  /** Writes the renewals gathered since the last call; called at intervals and before the end. */
  flush(): void;
}

export interface ManagedUser {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly keyHash: string;
  readonly keyHint: string;
  readonly createdAtMs: number;
  readonly keyCreatedAtMs: number;
}

export interface UsageKey {
  readonly tenant: string;
  readonly keyHint: string;
  readonly provider: ProviderId;
  readonly model: string;
  readonly effort: string;
}

export interface UsageCount {
  readonly requests: number;
  readonly failures: number;
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

export interface UsageQuery {
  readonly fromMs: number;
  readonly toMs: number;
  /** Null: everybody's. */
  readonly tenant: string | null;
}

export interface AccountStore {
  /** Oldest first. */
  users(): readonly ManagedUser[];
  /** Does not grow with the number of users. */
  userByKeyHash(keyHash: string): ManagedUser | null;
  /** @throws StoreConflict when the id, the name or the key is taken */
  createUser(user: ManagedUser): void;
  /** @throws StoreConflict when the new name or key is taken; RangeError when there is no such user */
  updateUser(user: ManagedUser): void;
  /** Adds to the 10-minute UTC bucket of `atMs`. */
  addUsage(
    rows: readonly { readonly key: UsageKey; readonly atMs: number; readonly count: UsageCount }[],
  ): void;
  /** Buckets that begin before `toMs` and end after `fromMs`, oldest first; with a limit the newest of them. */
  usage(query: UsageQuery & { readonly limit?: number }): readonly {
    readonly bucketAtMs: number;
    readonly key: UsageKey;
    readonly count: UsageCount;
  }[];
  /** The same buckets added up, one row a key. */
  usageTotals(query: UsageQuery): readonly { readonly key: UsageKey; readonly count: UsageCount }[];
  dropUsageBefore(beforeMs: number, limit: number): number;
  /** SHA-256 of the client key made at first start, or null. */
  firstRunKeyHash(): string | null;
  saveFirstRunKeyHash(hash: string): void;
  /** File and call pins: an upstream resource id's hash -> account. */
  pin(resource: string, account: AccountId, expiresAtMs: number): void;
  pinned(resource: string, nowMs: number): AccountId | null;
  /** @returns how many pins went; call again while it equals `limit`. */
  dropExpiredPins(nowMs: number, limit: number): number;
}
