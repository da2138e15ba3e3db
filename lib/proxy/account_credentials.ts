/**
 * The credentials of the accounts as requests ask for them: at hand, refreshed, or repaired.
 */
import type { AccountId } from "../core/domain.ts";
import type { Credential } from "../ports.ts";
import type { AccountDirectory } from "./account_directory.ts";
import type { AccountEntry } from "./account_entries.ts";
import type { Credentials, UsableCredential } from "./deps.ts";
import type { FreshResult, TokenRefresher } from "./token_refresher.ts";

export class AccountCredentials implements Credentials {
  readonly #directory: AccountDirectory;
  readonly #refresher: TokenRefresher;

  constructor(directory: AccountDirectory, refresher: TokenRefresher) {
    this.#directory = directory;
    this.#refresher = refresher;
  }

  ready(account: AccountId, nowMs: number): { credential: Credential; fingerprint: string } | null {
    if (this.#refresher.isDue(account, nowMs)) return null;
    const entry = this.#directory.get(account);
    const credential = this.#directory.credential(account);
    return entry === null || credential === null
      ? null
      : { credential, fingerprint: entry.account.fingerprint };
  }

  async prepare(account: AccountId, signal: AbortSignal | null): Promise<UsableCredential> {
    return present(await this.#refresher.ensureFresh(account, signal));
  }

  async repair(
    account: AccountId,
    failedFingerprint: string,
    signal: AbortSignal | null,
  ): Promise<UsableCredential> {
    return present(await this.#refresher.repair(account, failedFingerprint, signal));
  }

  isOwnAccountToken(token: string): boolean {
    return this.#directory.isOwnAccountToken(token);
  }
}

function present(result: FreshResult): UsableCredential {
  switch (result.kind) {
    case "ready":
      return usable(result.entry);
    case "failed":
      return { ok: false, evidence: result.evidence };
    case "cancelled":
      return { ok: false, evidence: { kind: "client_cancelled" } };
    case "gone":
      return { ok: false, evidence: GONE };
  }
}

/** The account left while it was about to be used: nothing was sent, others serve. */
const GONE = { kind: "refresh_failed", terminal: false, code: "account_removed", retryAtMs: null } as const;

function usable(entry: AccountEntry): UsableCredential {
  return { ok: true, credential: entry.credential, fingerprint: entry.account.fingerprint };
}
