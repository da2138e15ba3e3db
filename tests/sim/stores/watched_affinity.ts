/** The affinity store with every bind and move noted, for the one call of the pool that made them. */
import type { AccountId } from "../../../lib/core/domain.ts";
import { type AffinityStore, type BindingRow, StoreFailure } from "../../../lib/ports.ts";

export interface BindingWrite {
  readonly kind: "bind" | "move";
  readonly session: string;
  /** Whose binding it was to be taken from; null for a first one. */
  readonly from: AccountId | null;
  readonly to: AccountId;
  /** Who holds the session now. */
  readonly holder: AccountId;
}

export class WatchedAffinityStore implements AffinityStore {
  readonly #store: AffinityStore;
  readonly writes: BindingWrite[] = [];
  /** The next bind or move fails, and nothing of it is kept. */
  isBroken = false;

  constructor(store: AffinityStore) {
    this.#store = store;
  }

  get(session: string): BindingRow | null {
    return this.#store.get(session);
  }

  bind(row: BindingRow): BindingRow {
    this.#requireDisk();
    const held = this.#store.bind(row);
    this.writes.push({
      kind: "bind",
      session: row.session,
      from: null,
      to: row.account,
      holder: held.account,
    });
    return held;
  }

  compareAndSet(
    session: string,
    from: AccountId,
    to: AccountId,
    nowMs: number,
    expiresAtMs: number,
  ): BindingRow {
    this.#requireDisk();
    const before = this.#store.get(session);
    const held = this.#store.compareAndSet(session, from, to, nowMs, expiresAtMs);
    const live = before !== null && before.expiresAtMs > nowMs ? before.account : null;
    this.writes.push({ kind: "move", session, from: live, to, holder: held.account });
    return held;
  }

  renew(session: string, expiresAtMs: number): void {
    this.#store.renew(session, expiresAtMs);
  }

  accounts(): readonly AccountId[] {
    return this.#store.accounts();
  }

  dropAccount(account: AccountId): void {
    this.#store.dropAccount(account);
  }

  dropExpired(nowMs: number, limit: number): number {
    return this.#store.dropExpired(nowMs, limit);
  }

  count(): number {
    return this.#store.count();
  }

  flush(): void {
    this.#store.flush();
  }

  #requireDisk(): void {
    if (!this.isBroken) return;
    this.isBroken = false;
    throw new StoreFailure("bind a session", "the simulated disk is full");
  }
}
