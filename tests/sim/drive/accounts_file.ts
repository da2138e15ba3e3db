/** The accounts as configuration and credential files name them: what `reconcile` is given. */
import type { Account, AccountId } from "../../../lib/core/domain.ts";
import type { Dice } from "../dice.ts";

export class AccountFiles {
  readonly #accounts: Map<AccountId, Account>;
  /** Order of the configuration; must not matter. */
  readonly #order: (accounts: Account[]) => Account[];

  constructor(accounts: readonly Account[], order: (accounts: Account[]) => Account[]) {
    this.#accounts = new Map(accounts.map((account) => [account.id, account]));
    this.#order = order;
  }

  get list(): Account[] {
    return this.#order([...this.#accounts.values()].sort((a, b) => a.id < b.id ? -1 : 1));
  }

  get ids(): AccountId[] {
    return [...this.#accounts.keys()].sort();
  }

  get(id: AccountId): Account | undefined {
    return this.#accounts.get(id);
  }

  /** A refresh wrote new tokens. */
  refresh(id: AccountId): string {
    const account = this.#accounts.get(id);
    const [stem, count] = (account?.fingerprint ?? `${id}.0`).split(".");
    const fingerprint = `${stem}.${Number(count) + 1}`;
    if (account !== undefined) this.#accounts.set(id, { ...account, fingerprint });
    return fingerprint;
  }

  /** Somebody logged in anew, added, removed or renamed a file. @returns what was done, for the journal. */
  change(dice: Dice, providers: readonly string[]): string {
    const ids = this.ids;
    const what = dice.weighted([[4, "login"], [2, "remove"], [2, "add"], [1, "rename"], [1, "move"], [
      1,
      "switch",
    ]]);
    const id = ids.length === 0 ? null : dice.pick(ids);
    if (id === null || what === "add" || (what === "remove" && ids.length < 2)) {
      return this.#add(dice, providers);
    }
    const account = this.#accounts.get(id)!;
    switch (what) {
      case "login":
        return `login ${id} ${this.refresh(id)}`;
      case "remove":
        this.#accounts.delete(id);
        return `remove ${id}`;
      case "rename":
        // Another file of the same account: nothing the pool may notice.
        this.#accounts.delete(id);
        this.#accounts.set(id, { ...account });
        return `rename ${id}`;
      case "move":
        this.#accounts.set(id, { ...account, provider: dice.pick(providers) });
        return `move ${id}`;
      default:
        this.#accounts.set(id, { ...account, refreshable: !account.refreshable });
        return `switch refresh of ${id}`;
    }
  }

  #add(dice: Dice, providers: readonly string[]): string {
    const provider = dice.pick(providers);
    // Some come back under a name that was known before.
    const id = `${provider}-${dice.int(10, 30)}x`;
    this.#accounts.set(id, {
      id,
      provider,
      fingerprint: `${id}.1`,
      enabled: true,
      refreshable: dice.chance(0.75),
    });
    return `add ${id}`;
  }
}
