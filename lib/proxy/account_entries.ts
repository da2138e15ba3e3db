/**
 * Accounts made of configuration and sightings: which files are one account, whose copy counts, what changed.
 *
 * Pure apart from the digest it is given; `account_directory.ts` keeps the result and tells others of changes.
 */
import type { ProviderConfig } from "../config_types.ts";
import {
  codexAccountId,
  compareCopies,
  credentialOwner,
  type CredentialRecord,
  fingerprintInput,
} from "../core/credential.ts";
import type { Account, AccountId, ProviderKind } from "../core/domain.ts";
import type { Validity } from "../core/token_lifetime.ts";
import type { Credential, Digest, RefreshCall } from "../ports.ts";
import type { Sighting } from "./credential_sightings.ts";

/** Everything the shell knows of one account: what the pool sees, and the credential the pool must not see. */
export interface AccountEntry {
  readonly account: Account;
  readonly kind: ProviderKind;
  readonly credential: Credential;
  /** Null: this account cannot be refreshed. */
  readonly refresh: Pick<RefreshCall, "kind" | "url" | "refreshToken"> | null;
  readonly validity: Validity;
  /** Workspace id as the provider names it; for lists shown to the operator. */
  readonly upstreamAccountId: string | null;
  /** Whole, to be compared with; what is shown of it is masked (`maskEmail`). */
  readonly email: string | null;
  readonly plan: string | null;
  /** Files that hold this account, the one in use first; empty for a configured key. */
  readonly paths: readonly string[];
  /** `<workspace>:<user>` where the credential names it. */
  readonly owner: string | null;
}

export interface AccountUpdate {
  readonly entry: AccountEntry;
  /** `refreshed`: new tokens of our own refresh; `replaced`: other material in the file; `details`: the rest. */
  readonly cause: "refreshed" | "replaced" | "details";
}

/** To be applied in this order: an id may be removed and added in one set, when its place went to somebody else. */
export interface AccountChanges {
  readonly removed: readonly AccountId[];
  readonly added: readonly AccountEntry[];
  readonly updated: readonly AccountUpdate[];
}

export interface AccountSources {
  readonly codexTokenUrl: string;
  readonly providers: readonly ProviderConfig[];
  /** Files of the auth directory. */
  readonly found: readonly Sighting[];
  /** Files named in the configuration, by path. */
  readonly named: (path: string) => Sighting | null;
  /** Validity measured at receipt, for tokens this process got itself. */
  readonly received: (accessToken: string) => Validity | null;
}

const NEVER: Validity = { expiresAtMs: null, refreshAtMs: null };

/** All accounts, sorted by id, each id once. */
export function makeEntries(sources: AccountSources, digest: Digest): AccountEntry[] {
  const entries = [...codexEntries(sources, digest), ...configuredEntries(sources, digest)];
  return entries.sort((a, b) => a.account.id < b.account.id ? -1 : 1);
}

type WithRecord = Sighting & { readonly record: CredentialRecord };

function codexEntries(sources: AccountSources, digest: Digest): AccountEntry[] {
  const copies = new Map<AccountId, WithRecord[]>();
  for (const sighting of sources.found) {
    if (!hasRecord(sighting) || sighting.record.kind !== "codex") continue;
    const named = credentialOwner(sighting.record) !== null;
    const id = codexAccountId(sighting.record, named ? "" : digest.sha256(sighting.path));
    const known = copies.get(id);
    if (known === undefined) copies.set(id, [sighting]);
    else known.push(sighting);
  }
  return [...copies].map(([id, files]) => {
    files.sort(compareCopies);
    return oauthEntry(id, "codex", "codex", sources.codexTokenUrl, files, sources);
  });
}

function configuredEntries(sources: AccountSources, digest: Digest): AccountEntry[] {
  const entries: AccountEntry[] = [];
  for (const provider of sources.providers) {
    for (const configured of provider.accounts) {
      const id = `${provider.id}:${configured.id}`;
      if (configured.apiKey !== null) {
        entries.push(apiKeyEntry(id, provider, configured.apiKey, digest));
        continue;
      }
      const sighting = configured.credentialsPath === null ? null : sources.named(configured.credentialsPath);
      if (sighting === null || !hasRecord(sighting) || sighting.record.kind !== provider.kind) continue;
      entries.push(
        oauthEntry(id, provider.id, provider.kind, anthropicTokenUrl(provider.baseUrl), [sighting], sources),
      );
    }
  }
  return entries;
}

function oauthEntry(
  id: AccountId,
  provider: string,
  kind: ProviderKind,
  tokenUrl: string,
  files: readonly WithRecord[],
  sources: AccountSources,
): AccountEntry {
  const { record, fingerprint, writable } = files[0]!;
  const validity = sources.received(record.tokens.accessToken) ??
    { expiresAtMs: record.tokens.expiresAtMs, refreshAtMs: record.refreshAtMs };
  // A rotated token that cannot be written back would be lost, and the login with it: such a file is only read.
  const refreshToken = writable ? record.tokens.refreshToken : null;
  return {
    account: { id, provider, fingerprint, enabled: !record.disabled, refreshable: refreshToken !== null },
    kind,
    credential: {
      kind: "oauth",
      tokens: { ...record.tokens, expiresAtMs: validity.expiresAtMs },
      accountHeader: record.kind === "codex" ? record.accountId : null,
    },
    refresh: refreshToken === null ? null : { kind: record.kind, url: tokenUrl, refreshToken },
    validity,
    upstreamAccountId: record.accountId,
    email: record.email,
    plan: record.plan,
    paths: files.map((file) => file.path),
    owner: credentialOwner(record),
  };
}

function apiKeyEntry(id: AccountId, provider: ProviderConfig, apiKey: string, digest: Digest): AccountEntry {
  return {
    account: {
      id,
      provider: provider.id,
      fingerprint: digest.sha256(fingerprintInput({ apiKey })),
      enabled: true,
      refreshable: false,
    },
    kind: provider.kind,
    credential: { kind: "api_key", apiKey },
    refresh: null,
    validity: NEVER,
    upstreamAccountId: null,
    email: null,
    plan: null,
    paths: [],
    owner: null,
  };
}

/** The public API takes refreshes at a host of its own; anything else is asked below its base (wire-facts 6.8). */
export function anthropicTokenUrl(baseUrl: string): string {
  return baseUrl === "https://api.anthropic.com"
    ? "https://platform.claude.com/v1/oauth/token"
    : `${baseUrl}/v1/oauth/token`;
}

/**
 * What became of the accounts.
 *
 * @param isOurs  tells material that our own refresh brought from material somebody put there.
 */
export function compareEntries(
  before: ReadonlyMap<AccountId, AccountEntry>,
  after: readonly AccountEntry[],
  isOurs: (entry: AccountEntry) => boolean,
): AccountChanges {
  const removed: AccountId[] = [];
  const added: AccountEntry[] = [];
  const updated: AccountUpdate[] = [];
  const present = new Set<AccountId>();
  for (const entry of after) {
    const { id } = entry.account;
    present.add(id);
    const old = before.get(id);
    if (old === undefined) {
      added.push(entry);
    } else if (old.owner !== entry.owner && old.owner !== null && entry.owner !== null) {
      removed.push(id);
      added.push(entry);
    } else if (old.account.fingerprint !== entry.account.fingerprint) {
      updated.push({ entry, cause: isOurs(entry) ? "refreshed" : "replaced" });
    } else if (!sameDetails(old, entry)) {
      updated.push({ entry, cause: "details" });
    }
  }
  for (const id of before.keys()) if (!present.has(id)) removed.push(id);
  return { removed: removed.sort(), added, updated };
}

function sameDetails(a: AccountEntry, b: AccountEntry): boolean {
  return a.account.provider === b.account.provider && a.account.enabled === b.account.enabled &&
    a.account.refreshable === b.account.refreshable && a.refresh?.url === b.refresh?.url &&
    a.validity.expiresAtMs === b.validity.expiresAtMs && a.plan === b.plan && a.kind === b.kind &&
    a.upstreamAccountId === b.upstreamAccountId && a.email === b.email &&
    a.paths.length === b.paths.length && a.paths.every((path, i) => path === b.paths[i]);
}

function hasRecord(sighting: Sighting): sighting is WithRecord {
  return sighting.record !== null;
}
