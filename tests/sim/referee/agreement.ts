/** After every call: pool, oracle and disk say the same. */
import type { PoolRuntime } from "../../../lib/proxy/pool_runtime.ts";
import type { AccountHealth } from "../../../lib/core/records.ts";
import type { Account } from "../../../lib/core/domain.ts";
import { adoptLadder, requireAccountAgreement } from "../checks/account_agreement.ts";
import { requireDiskAgreement } from "../checks/disk_agreement.ts";
import { requireNetworkAgreement } from "../checks/network_agreement.ts";
import type { PoolEvent } from "../checks/pool_event.ts";
import { adoptCooldown, requireProviderAgreement } from "../checks/provider_agreement.ts";
import type { AccountOracle } from "../oracle/account_oracle.ts";
import type { Oracle } from "../oracle/oracle.ts";
import type { MirrorStore } from "../stores/mirror_store.ts";
import { must } from "../violation.ts";

/** What of an account was compared last; while all of it is the same there is nothing new to compare. */
interface Seen {
  readonly health: AccountHealth;
  readonly account: Account;
  readonly oracle: AccountOracle;
  readonly version: number;
}

export class Agreement {
  readonly #pool: PoolRuntime;
  readonly #oracle: Oracle;
  readonly #disk: MirrorStore;
  readonly #seen = new Map<string, Seen>();

  constructor(pool: PoolRuntime, oracle: Oracle, disk: MirrorStore) {
    this.#pool = pool;
    this.#oracle = oracle;
    this.#disk = disk;
  }

  /** What `next` decided, it decided knowing the ladders and cooldowns it began. */
  adopt(event: PoolEvent, nowMs: number): void {
    for (const { account, health } of this.#pool.describeAccounts(nowMs)) {
      const ladder = this.#oracle.accounts.get(account.id)?.ladder ?? null;
      if (ladder !== null && ladder.bounds !== null && health.ladder !== null) {
        adoptLadder(ladder, health.ladder);
      }
    }
    for (const view of this.#pool.describeProviders(nowMs)) {
      adoptCooldown(view, this.#oracle.provider(view.id), event, nowMs);
    }
  }

  check(event: PoolEvent, nowMs: number): void {
    // The widest verdict first: a wrong pause explains what is then wrong with accounts.
    requireNetworkAgreement(this.#pool.describeNetwork(nowMs), this.#oracle.network, event);
    this.#checkAccounts(event, nowMs);
    for (const view of this.#pool.describeProviders(nowMs)) {
      requireProviderAgreement(view, this.#oracle.provider(view.id), event, nowMs);
    }
    requireDiskAgreement(this.#disk, this.#oracle, event.name, nowMs);
    const wakeMs = this.#pool.nextWakeMs(nowMs);
    must(
      wakeMs === null || wakeMs > nowMs,
      "P38",
      () => `the next change is said to be at ${wakeMs}, which is over`,
    );
  }

  #checkAccounts(event: PoolEvent, nowMs: number): void {
    const { accounts } = this.#oracle;
    const views = this.#pool.describeAccounts(nowMs);
    must(
      views.length === accounts.size,
      "TABLE",
      () => `the pool holds ${views.length} accounts, not ${accounts.size}`,
    );
    for (const view of views) {
      const { id } = view.account;
      const oracle = accounts.get(id);
      must(oracle !== undefined, "TABLE", () => `the pool still holds ${id} after ${event.name}`);
      must(
        view.inFlight === oracle.inFlight,
        "P11",
        () => `${id} has ${view.inFlight} attempts in flight, not ${oracle.inFlight}, after ${event.name}`,
      );
      const seen = this.#seen.get(id);
      const { health, account } = view;
      if (
        seen?.health === health && seen.account === account && seen.oracle === oracle &&
        seen.version === oracle.version
      ) continue;
      requireAccountAgreement(view, oracle, event, nowMs);
      this.#seen.set(id, { health, account, oracle, version: oracle.version });
    }
  }
}
