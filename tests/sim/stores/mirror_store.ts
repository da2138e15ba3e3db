/**
 * What must be on the disk by now: every change that was acknowledged, kept apart from the store under test.
 *
 * Can fail the next write before it is kept or after, which is where a crash hurts most.
 */
import type { AccountId } from "../../../lib/core/domain.ts";
import type { DurableChange, DurableState, LedgerRow } from "../../../lib/core/records.ts";
import { type PoolStore, StoreFailure } from "../../../lib/ports.ts";

type Row<K extends DurableChange["kind"]> = Extract<DurableChange, { kind: K }>;

export class MirrorStore implements PoolStore {
  readonly #store: PoolStore;
  readonly deadlines = new Map<string, Row<"put_deadline">>();
  readonly credentials = new Map<AccountId, Row<"put_credential">>();
  readonly credits = new Map<AccountId, Row<"put_credits">>();
  readonly disabled = new Set<AccountId>();
  readonly readings = new Map<AccountId, Row<"put_reading">>();
  readonly cooldowns = new Map<string, Row<"put_provider_cooldown">>();
  readonly ledgers = new Map<string, LedgerRow>();
  network: DurableState["network"] = null;
  /** Grows with every acknowledged transaction. */
  version = 0;
  fault: "none" | "before" | "after" = "none";

  /** @param before  the mirror of the process that died, over the same disk. */
  constructor(store: PoolStore, before: MirrorStore | null) {
    this.#store = store;
    if (before === null) return;
    copy(before.deadlines, this.deadlines);
    copy(before.credentials, this.credentials);
    copy(before.credits, this.credits);
    copy(before.readings, this.readings);
    copy(before.cooldowns, this.cooldowns);
    copy(before.ledgers, this.ledgers);
    for (const account of before.disabled) this.disabled.add(account);
    this.network = before.network;
  }

  load(): DurableState {
    return this.#store.load();
  }

  apply(changes: readonly DurableChange[], nowMs: number): void {
    const fault = this.fault;
    this.fault = "none";
    if (fault === "before") throw new StoreFailure("save pool changes", "the simulated disk is full");
    this.#store.apply(changes, nowMs);
    for (const change of changes) this.#note(change);
    this.version++;
    if (fault === "after") throw new StoreFailure("save pool changes", "the simulated disk went away");
  }

  prune(nowMs: number): void {
    this.#store.prune(nowMs);
  }

  deadline(account: AccountId, model: string | null): Row<"put_deadline"> | null {
    return this.deadlines.get(keyOf(account, model)) ?? null;
  }

  #note(change: DurableChange): void {
    switch (change.kind) {
      case "put_deadline":
        this.deadlines.set(keyOf(change.account, change.model), change);
        break;
      case "drop_deadline":
        this.deadlines.delete(keyOf(change.account, change.model));
        break;
      case "put_credential":
        this.credentials.set(change.account, change);
        break;
      case "drop_credential":
        this.credentials.delete(change.account);
        break;
      case "put_credits":
        this.credits.set(change.account, change);
        break;
      case "drop_credits":
        this.credits.delete(change.account);
        break;
      case "set_enabled":
        if (change.enabled) this.disabled.delete(change.account);
        else this.disabled.add(change.account);
        break;
      case "forget_account":
        this.#forget(change.account);
        break;
      case "put_reading":
        this.readings.set(change.account, change);
        break;
      case "put_provider_cooldown":
        this.cooldowns.set(change.provider, change);
        break;
      case "drop_provider_cooldown":
        this.cooldowns.delete(change.provider);
        break;
      case "put_network":
        this.network = change.network;
        break;
      case "put_ledger":
        this.ledgers.set(change.row.request, change.row);
        break;
      case "put_ring_cursor":
      case "audit":
        break;
      default:
        change satisfies never;
    }
  }

  #forget(account: AccountId): void {
    for (const [key, row] of this.deadlines) if (row.account === account) this.deadlines.delete(key);
    this.credentials.delete(account);
    this.credits.delete(account);
    this.disabled.delete(account);
    this.readings.delete(account);
  }
}

function keyOf(account: AccountId, model: string | null): string {
  return `${account}\n${model ?? ""}`;
}

function copy<K, V>(from: ReadonlyMap<K, V>, to: Map<K, V>): void {
  for (const [key, value] of from) to.set(key, value);
}
