/**
 * What changed in the pool since the last look, for whoever shows it live.
 *
 * Records are replaced, never mutated, so a change is a different reference: nothing is hooked into the path of
 * requests, and a pool nobody watches pays nothing. A look costs one comparison an account.
 */
import type { Account, AccountId, ProviderId } from "../core/domain.ts";
import type { AccountHealth, NetworkHealth, ProviderHealth } from "../core/records.ts";
import type { PoolContext } from "./pool_context.ts";
import { type AccountView, describeAccount } from "./pool_view.ts";

export interface PoolChanges {
  /** New ones, and those whose health, switch, load or block changed; a block that ran out is a change. */
  readonly accounts: readonly AccountView[];
  readonly removed: readonly AccountId[];
  /** A provider's gate or the network's pause changed; one whose time ran out is half-open, which is a change. */
  readonly gates: boolean;
}

interface Seen {
  account: Account;
  health: AccountHealth;
  inFlight: number;
  /** End of the block that was shown; `Infinity` when there was none, or none with a clock. */
  untilMs: number;
}

interface SeenGate {
  readonly health: ProviderHealth;
  readonly circuitOpen: boolean;
  /** End of the rest that was shown; `Infinity` when none ran. */
  readonly untilMs: number;
}

export class PoolWatch {
  readonly #context: PoolContext;
  readonly #accounts = new Map<AccountId, Seen>();
  readonly #gates = new Map<ProviderId, SeenGate>();
  #network: NetworkHealth | null = null;
  #pausedUntilMs = Number.POSITIVE_INFINITY;

  constructor(context: PoolContext) {
    this.#context = context;
  }

  look(nowMs: number): PoolChanges {
    const accounts: AccountView[] = [];
    const { records } = this.#context;
    for (const [id, slot] of records.accounts) {
      const seen = this.#accounts.get(id);
      if (
        seen !== undefined && seen.health === slot.health && seen.account === slot.account &&
        seen.inFlight === slot.inFlight && seen.untilMs > nowMs
      ) continue;
      const view = describeAccount(slot, nowMs);
      accounts.push(view);
      this.#accounts.set(id, {
        account: slot.account,
        health: slot.health,
        inFlight: slot.inFlight,
        untilMs: view.block?.untilMs ?? Number.POSITIVE_INFINITY,
      });
    }
    return { accounts, removed: this.#dropRemoved(), gates: this.#lookAtGates(nowMs) };
  }

  #dropRemoved(): AccountId[] {
    const { records } = this.#context;
    if (this.#accounts.size === records.accounts.size) return [];
    const removed = [...this.#accounts.keys()].filter((id) => !records.accounts.has(id));
    for (const id of removed) this.#accounts.delete(id);
    return removed;
  }

  #lookAtGates(nowMs: number): boolean {
    const { records } = this.#context;
    const before = this.#network;
    const { network } = records;
    let changed = this.#pausedUntilMs <= nowMs ||
      (before !== network && (before?.pause !== network.pause || before?.probe !== network.probe));
    this.#network = network;
    this.#pausedUntilMs = laterThan(network.pause?.untilMs, nowMs);
    for (const [id, { health, circuitOpen }] of records.providers) {
      const seen = this.#gates.get(id);
      if (seen?.health === health && seen.circuitOpen === circuitOpen && seen.untilMs > nowMs) continue;
      this.#gates.set(id, { health, circuitOpen, untilMs: laterThan(health.cooldown?.untilMs, nowMs) });
      changed = true;
    }
    return changed;
  }
}

/** The end of something timed, if it lies ahead; `Infinity` when nothing more is to come. */
function laterThan(untilMs: number | undefined, nowMs: number): number {
  return untilMs !== undefined && untilMs > nowMs ? untilMs : Number.POSITIVE_INFINITY;
}
