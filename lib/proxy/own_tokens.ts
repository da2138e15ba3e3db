/**
 * Access tokens of our own accounts, kept as digests: Codex sends them as its key on a few routes (ruling 14).
 *
 * A digest is compared, never the token, so the time a look-up takes says nothing about a token's characters.
 */
import type { AccountId } from "../core/domain.ts";
import type { Digest } from "../ports.ts";

/** A client may hold the token of the refresh before ours, or of the one before that, and it is still good. */
const KEPT_PER_ACCOUNT = 4;

interface Kept {
  readonly digest: string;
  /** Null: nothing tells when it ends. */
  expiresAtMs: number | null;
}

export class OwnTokens {
  readonly #digest: Digest;
  readonly #byAccount = new Map<AccountId, Kept[]>();
  readonly #byDigest = new Map<string, Kept>();

  constructor(digest: Digest) {
    this.#digest = digest;
  }

  add(account: AccountId, token: string, expiresAtMs: number | null): void {
    const digest = this.#digest.sha256(token);
    const known = this.#byDigest.get(digest);
    if (known !== undefined) {
      known.expiresAtMs = expiresAtMs;
      return;
    }
    const kept = { digest, expiresAtMs };
    const all = this.#byAccount.get(account) ?? [];
    all.unshift(kept);
    this.#byAccount.set(account, all);
    this.#byDigest.set(digest, kept);
    for (const old of all.splice(KEPT_PER_ACCOUNT)) this.#byDigest.delete(old.digest);
  }

  drop(account: AccountId): void {
    for (const kept of this.#byAccount.get(account) ?? []) this.#byDigest.delete(kept.digest);
    this.#byAccount.delete(account);
  }

  has(token: string, nowMs: number): boolean {
    if (token === "") return false;
    const kept = this.#byDigest.get(this.#digest.sha256(token));
    return kept !== undefined && (kept.expiresAtMs === null || nowMs < kept.expiresAtMs);
  }
}
