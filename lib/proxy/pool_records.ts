/**
 * The pool's records in memory and their durable half: every change passes here, and one call is one transaction.
 *
 * Knows nothing of requests. `flush` is called by `pool_runtime.ts` before anybody hears of a change; a write
 * that fails leaves the changes pending, so that memory and disk can never silently part.
 */
import type { AccountId, ProviderId } from "../core/domain.ts";
import { durableChanges } from "../core/durable_changes.ts";
import { certainlyBlockedUntilMs, strongestBlock } from "../core/eligibility.ts";
import { HEALTHY_NETWORK } from "../core/network_pause.ts";
import type { AccountSlot, ProviderSlot } from "../core/pool.ts";
import { isSelectable, newProviderSlot, readCircuit, readQuotaClosure } from "../core/pool.ts";
import { dropDerivedCooldown, isDurableCooldown, openDerivedCooldown } from "../core/provider_health.ts";
import type {
  AccountHealth,
  DurableChange,
  NetworkHealth,
  ProviderCooldown,
  ProviderHealth,
} from "../core/records.ts";
import type { PoolStore } from "../ports.ts";

/** The veto is on disk to this precision: a write for each success would cost more than it protects. */
const SUCCESS_PRECISION_MS = 1_000;

export class PoolRecords {
  readonly accounts = new Map<AccountId, AccountSlot>();
  readonly providers = new Map<ProviderId, ProviderSlot>();
  #network: NetworkHealth = HEALTHY_NETWORK;
  #storedSuccessAtMs = 0;
  readonly #store: PoolStore;
  #changes: DurableChange[] = [];

  constructor(store: PoolStore) {
    this.#store = store;
  }

  get network(): NetworkHealth {
    return this.#network;
  }

  provider(id: ProviderId): ProviderSlot {
    let slot = this.providers.get(id);
    if (slot === undefined) {
      slot = newProviderSlot(id);
      this.providers.set(id, slot);
    }
    return slot;
  }

  /** Takes over what was read from disk, without writing it back. */
  adoptNetwork(network: NetworkHealth): void {
    this.#network = network;
    this.#storedSuccessAtMs = network.lastSuccessAtMs;
  }

  setNetwork(next: NetworkHealth): void {
    const before = this.#network;
    if (before === next) return;
    this.#network = next;
    const moved = next.lastSuccessAtMs - this.#storedSuccessAtMs >= SUCCESS_PRECISION_MS;
    const sameEvidence = before.evidence === next.evidence ||
      before.evidence.length + next.evidence.length === 0;
    if (sameEvidence && before.pause === next.pause && !moved) return;
    this.#storedSuccessAtMs = next.lastSuccessAtMs;
    const { evidence, lastSuccessAtMs, pause, generation } = next;
    this.#changes.push({ kind: "put_network", network: { evidence, lastSuccessAtMs, pause, generation } });
  }

  setProvider(slot: ProviderSlot, next: ProviderHealth): void {
    const before = durableCooldown(slot.health);
    const after = durableCooldown(next);
    slot.health = next;
    if (before === after) return;
    this.#changes.push(
      after === null
        ? { kind: "drop_provider_cooldown", provider: slot.id }
        : { kind: "put_provider_cooldown", provider: slot.id, cooldown: after },
    );
  }

  /** Replaces the health of an account, and what is derived from it: cached block, quota closure, circuit. */
  setHealth(slot: AccountSlot, next: AccountHealth, nowMs: number): void {
    if (slot.health === next) return;
    if (slot.removed) {
      // A late attempt still ends; its rows would outlive what was forgotten, and meet the id's next life.
      slot.health = next;
      return;
    }
    const before = slot.health;
    const couldServe = isSelectable(slot, null, nowMs);
    this.#changes.push(...durableChanges(slot.account.id, before, next));
    slot.health = next;
    this.refreshSlot(slot, nowMs);
    const provider = this.provider(slot.account.provider);
    if (before.credential !== next.credential || before.credits !== next.credits) {
      this.noticeCircuit(provider);
    }
    const canServe = isSelectable(slot, null, nowMs);
    if (!couldServe && canServe) this.setProvider(provider, dropDerivedCooldown(provider.health));
    if (!canServe) this.#deriveClosure(slot, provider, nowMs);
  }

  /** Recomputes the cached block after anything but the health changed. */
  refreshSlot(slot: AccountSlot, nowMs: number): void {
    slot.blockedUntilMs = slot.removed
      ? Number.POSITIVE_INFINITY
      : certainlyBlockedUntilMs(slot.health, slot.account.enabled, nowMs);
  }

  /** Notes a circuit that opened or closed; the circuit itself is read from the accounts (C7, C8). */
  noticeCircuit(provider: ProviderSlot): void {
    const circuit = readCircuit(provider);
    if ((circuit !== null) === provider.circuitOpen) return;
    provider.circuitOpen = circuit !== null;
    this.push({
      kind: "audit",
      action: circuit === null ? "circuit_closed" : "circuit_opened",
      subject: provider.id,
      detail: circuit?.reason ?? "",
    });
  }

  push(change: DurableChange): void {
    this.#changes.push(change);
  }

  get hasChanges(): boolean {
    return this.#changes.length > 0;
  }

  /** Writes what is pending, in one transaction. @throws StoreFailure */
  flush(nowMs: number): void {
    if (this.#changes.length === 0) return;
    this.#store.apply(this.#changes, nowMs);
    this.#changes = [];
  }

  #deriveClosure(slot: AccountSlot, provider: ProviderSlot, nowMs: number): void {
    const { cooldown, derived } = provider.health;
    if (cooldown !== null && !derived) return;
    const block = strongestBlock(slot.health, slot.account.enabled, null, nowMs);
    if (block !== "deadline" && block !== "park" && block !== "inferred") return;
    const closure = readQuotaClosure(provider, nowMs);
    if (closure === null) return;
    const openedBy = slot.health.deadline?.attempt ?? "";
    this.setProvider(
      provider,
      openDerivedCooldown(provider.health, closure.untilMs, closure.reason, openedBy, nowMs),
    );
  }
}

function durableCooldown(health: ProviderHealth): ProviderCooldown | null {
  const { cooldown, derived } = health;
  return cooldown !== null && isDurableCooldown(cooldown, derived) ? cooldown : null;
}
