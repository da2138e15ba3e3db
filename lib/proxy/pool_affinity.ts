/**
 * Binds conversations to accounts and moves them, for all aliases of one request together.
 *
 * Rules of when to move are the runtime's; this file only keeps the rows of one group in step
 * (state-machine-facts 2A.8 #5, C22).
 */
import type { AccountId } from "../core/domain.ts";
import { needsRenewal, winningBinding } from "../core/session_affinity.ts";
import type { AffinityStore } from "../ports.ts";

/** Sessions remembered as moved since the start, newest kept. */
const MOVED_LIMIT = 10_000;

export class SessionBindings {
  readonly #store: AffinityStore;
  #ttlMs: number;
  readonly #moved = new Set<string>();

  constructor(store: AffinityStore, ttlMs: number) {
    this.#store = store;
    this.#ttlMs = ttlMs;
  }

  setTtl(ttlMs: number): void {
    this.#ttlMs = ttlMs;
  }

  /** The account the conversation is bound to, by any of its digests; `null` when none is live. */
  lookup(sessions: readonly string[], nowMs: number): AccountId | null {
    return winningBinding(sessions.map((session) => this.#store.get(session)), nowMs)?.account ?? null;
  }

  /** When the binding of one digest was made, or `null`. */
  createdAtMs(session: string): number | null {
    return this.#store.get(session)?.createdAtMs ?? null;
  }

  /** First writer wins. @returns who holds the conversation now. */
  bind(sessions: readonly string[], account: AccountId, nowMs: number): AccountId {
    const [first, ...aliases] = sessions;
    if (first === undefined) return account;
    const holder = this.#bindOne(first, account, nowMs);
    for (const alias of aliases) this.#bindOne(alias, holder, nowMs);
    return holder;
  }

  /** A turn on the bound account: renews rows past half their life and binds digests seen for the first time. */
  keep(sessions: readonly string[], account: AccountId, nowMs: number): void {
    for (const session of sessions) {
      const row = this.#store.get(session);
      if (row === null || row.expiresAtMs <= nowMs) this.#bindOne(session, account, nowMs);
      else if (row.account === account && needsRenewal(row, this.#ttlMs, nowMs)) {
        this.#store.renew(session, nowMs + this.#ttlMs);
      }
    }
  }

  /** Moves every digest that still names `from`. @returns who holds the conversation now. */
  move(sessions: readonly string[], from: AccountId, to: AccountId, nowMs: number): AccountId {
    const [first, ...aliases] = sessions;
    if (first === undefined) return to;
    const holder = this.#moveOne(first, from, to, nowMs);
    for (const alias of aliases) this.#moveOne(alias, from, holder, nowMs);
    if (holder !== from) this.#rememberMove(sessions);
    return holder;
  }

  /** True when the session's binding moved since the start: its history may hold another account's state. */
  hasMoved(session: string): boolean {
    return this.#moved.has(session);
  }

  /** Accounts that bindings name or named. */
  accounts(): readonly AccountId[] {
    return this.#store.accounts();
  }

  dropAccount(account: AccountId): void {
    this.#store.dropAccount(account);
  }

  #rememberMove(sessions: readonly string[]): void {
    for (const session of sessions) {
      this.#moved.delete(session);
      this.#moved.add(session);
    }
    for (const oldest of this.#moved) {
      if (this.#moved.size <= MOVED_LIMIT) break;
      this.#moved.delete(oldest);
    }
  }

  #bindOne(session: string, account: AccountId, nowMs: number): AccountId {
    return this.#store.bind({
      session,
      account,
      createdAtMs: nowMs,
      expiresAtMs: nowMs + this.#ttlMs,
    }).account;
  }

  #moveOne(session: string, from: AccountId, to: AccountId, nowMs: number): AccountId {
    return this.#store.compareAndSet(session, from, to, nowMs, nowMs + this.#ttlMs).account;
  }
}
