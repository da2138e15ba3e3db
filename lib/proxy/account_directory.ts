/**
 * The accounts there are: files of the auth directory and configured ones, kept up to date while the process runs.
 *
 * Every change arrives as one set of removals, additions and updates. A request that is under way keeps the credential
 * it was given; credentials are values and are never changed in place. Saving refreshed tokens goes through here too,
 * because looking at files and writing them must not overlap.
 */
import type { Config } from "../config_types.ts";
import { credentialOwner, parseCredentialFile, type TokenSet } from "../core/credential.ts";
import { mergeTokens } from "../core/credential_merge.ts";
import type { Account, AccountId } from "../core/domain.ts";
import { type Validity, validityUntil } from "../core/token_lifetime.ts";
import {
  type Clock,
  type Credential,
  type CredentialFiles,
  type Digest,
  type Log,
  type Scheduled,
  StoreFailure,
} from "../ports.ts";
import { type AccountChanges, type AccountEntry, compareEntries, makeEntries } from "./account_entries.ts";
import { CredentialSightings, UNREADABLE_GRACE_MS } from "./credential_sightings.ts";
import { type FileNote, isExpected, makeNotes } from "./file_notes.ts";
import { OwnTokens } from "./own_tokens.ts";

/** With the grace for a missing file this stays within the promised 2 s, also where nothing can be watched. */
const LOOK_EVERY_MS = 1_500;
/** A folder so large that looking takes long is looked at less often: at most a twentieth of the time. */
const LOOK_SHARE = 20;
/** Programs write a file in several steps; one look serves them all. */
const HINT_DELAY_MS = 50;
/** How often a file that somebody is writing is tried again when tokens are to be saved into it. */
const BROKEN_RETRY_MS = 200;

export type DirectoryConfig = Pick<Config, "authDir" | "providers" | "codexRefreshTokenUrl">;

export interface AccountDirectoryOptions {
  readonly config: DirectoryConfig;
  readonly files: CredentialFiles;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly log: Log;
  /** The disk failed while the directory was at work by itself; the process has to end (ruling 9). */
  readonly onFatal: (error: unknown) => void;
}

export type SaveResult =
  /** On disk and published. */
  | { readonly kind: "saved"; readonly entry: AccountEntry }
  /** Somebody else put other tokens there meanwhile: theirs are in use now. */
  | { readonly kind: "superseded"; readonly entry: AccountEntry }
  | { readonly kind: "gone" };

export class AccountDirectory {
  readonly #files: CredentialFiles;
  readonly #clock: Clock;
  readonly #digest: Digest;
  readonly #log: Log;
  readonly #onFatal: (error: unknown) => void;
  readonly #sightings: CredentialSightings;
  readonly #ownTokens: OwnTokens;
  readonly #listeners = new Set<(changes: AccountChanges) => void>();
  /** The access token we received last, and its validity by our own clock. */
  readonly #received = new Map<AccountId, { accessToken: string; validity: Validity }>();
  /** Files that were found not to be ours to write when it last mattered. */
  readonly #readOnly = new Set<string>();
  #noted: ReadonlyMap<string, string> = new Map();
  #config: DirectoryConfig;
  #entries: ReadonlyMap<AccountId, AccountEntry> = new Map();
  #accounts: readonly Account[] = [];
  #foundPaths: ReadonlySet<string> = new Set();
  #turn: Promise<unknown> = Promise.resolve();
  #nextLook: { readonly atMs: number; readonly scheduled: Scheduled } | null = null;
  #watching: { close(): void } | null = null;
  #watchedCount = -1;
  /** Change count and configuration the present entries were made from. */
  #madeFrom: { readonly changeCount: number; readonly config: DirectoryConfig } | null = null;
  #truncated = false;
  readonly #closing = new AbortController();

  constructor(options: AccountDirectoryOptions) {
    this.#config = options.config;
    this.#files = options.files;
    this.#clock = options.clock;
    this.#digest = options.digest;
    this.#log = options.log;
    this.#onFatal = options.onFatal;
    this.#sightings = new CredentialSightings(options.files, options.digest);
    this.#ownTokens = new OwnTokens(options.digest);
  }

  /**
   * Completes what a crash left behind, reads everything once, and keeps watching.
   *
   * @throws StoreFailure
   */
  async start(): Promise<void> {
    await this.#exclusively(async () => {
      for (const path of await this.#candidatePaths()) {
        if (await this.#files.recover(path)) {
          this.#log.write("warn", "credential_file_completed", { file: this.#shown(path) });
        }
      }
    });
    await this.rescan();
  }

  /** Sorted by id. */
  accounts(): readonly Account[] {
    return this.#accounts;
  }

  get(id: AccountId): AccountEntry | null {
    return this.#entries.get(id) ?? null;
  }

  /** @returns null when there is no such account, or its file holds no access token yet. */
  credential(id: AccountId): Credential | null {
    const credential = this.#entries.get(id)?.credential ?? null;
    return credential?.kind === "oauth" && credential.tokens.accessToken === "" ? null : credential;
  }

  /** Whether a client key is a live access token of one of our accounts (ruling 14). */
  isOwnAccountToken(token: string): boolean {
    return this.#ownTokens.has(token, this.#clock.now());
  }

  /** Called with every change after `start`'s first look too. @returns a function that ends the subscription. */
  subscribe(listener: (changes: AccountChanges) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Files that give no account, and why; sorted. */
  notes(): readonly FileNote[] {
    return makeNotes(
      this.#sightings.all(),
      this.#entries.values(),
      this.#truncated,
      (path) => this.#shown(path),
    );
  }

  /** Looks at every file now. */
  rescan(): Promise<void> {
    return this.#exclusively(async () => {
      if (this.#closing.signal.aborted) return;
      const startedAtMs = this.#clock.now();
      await this.#lookAtAll();
      this.#publish();
      this.#watch();
      const nowMs = this.#clock.now();
      const pauseMs = Math.max(LOOK_EVERY_MS, (nowMs - startedAtMs) * LOOK_SHARE);
      this.#planLook(Math.min(nowMs + pauseMs, this.#sightings.nextDeadlineMs()));
    });
  }

  /** Reads the files of one account again, whatever their dates say. */
  lookAgain(id: AccountId): Promise<AccountEntry | null> {
    return this.#exclusively(async () => {
      await this.#readPaths(this.#entries.get(id)?.paths ?? []);
      this.#publish();
      return this.get(id);
    });
  }

  /**
   * Whether new tokens of an account could be saved now. Asked before each refresh, because the refresh token is used
   * up by it: where the answer cannot be kept, the login would be lost.
   *
   * @returns `busy` when this process has no descriptor left to try with.
   * @throws StoreFailure when the disk is full or fails
   */
  canSave(id: AccountId): Promise<"yes" | "no" | "busy"> {
    return this.#exclusively(async () => {
      const paths = this.#entries.get(id)?.paths ?? [];
      for (const path of this.#readOnly) if (this.#sightings.get(path) === null) this.#readOnly.delete(path);
      for (const path of paths) {
        if (this.#sightings.get(path)?.writable === false) continue;
        const room = await this.#files.tryRoom(path).catch((error) => {
          if (isOutOfDescriptors(error)) return "busy" as const;
          throw error;
        });
        if (room === "busy") return room;
        if (room === "read_only") this.#readOnly.add(path);
        else this.#readOnly.delete(path);
      }
      return paths[0] === undefined || !this.#readOnly.has(paths[0]) ? "yes" : "no";
    });
  }

  /**
   * Saves what the issuer answered, then publishes it (state-machine-facts 2A.8: save first, then share).
   *
   * @param usedRefreshToken  the token the answer replaces: only files that still hold it are written, so that a
   * login somebody made meanwhile stays. Copies that shared the token get the new one too.
   * @throws StoreFailure
   */
  saveTokens(
    id: AccountId,
    usedRefreshToken: string,
    tokens: { readonly [Name in keyof TokenSet]?: TokenSet[Name] },
  ): Promise<SaveResult> {
    return this.#exclusively(async () => {
      const before = this.#entries.get(id);
      if (before === undefined) return { kind: "gone" };
      const nowMs = this.#clock.now();
      let savedCount = 0;
      for (const path of before.paths) {
        if (this.#sightings.get(path)?.writable === false || this.#readOnly.has(path)) continue;
        const merge = (text: string) =>
          holdsLogin(text, before.owner, usedRefreshToken) ? mergeTokens(text, tokens, nowMs) : null;
        if (await this.#save(path, merge)) savedCount += 1;
      }
      if (savedCount > 0 && tokens.accessToken && tokens.expiresAtMs) {
        const validity = validityUntil(tokens.expiresAtMs, tokens.expiresAtMs - nowMs);
        this.#received.set(id, { accessToken: tokens.accessToken, validity });
      }
      if (savedCount === 0) await this.#readPaths(before.paths);
      this.#publish();
      const entry = this.get(id);
      if (savedCount > 0 && entry !== null) return { kind: "saved", entry };
      const unchanged = entry?.account.fingerprint === before.account.fingerprint;
      return entry === null || unchanged ? { kind: "gone" } : { kind: "superseded", entry };
    });
  }

  /**
   * Merges into one file. While somebody is writing it (it does not parse), we wait; if it stays broken for the whole
   * grace, the text read before the refresh is taken as the base: that heals the file and keeps the tokens.
   */
  async #save(path: string, merge: (text: string) => string | null): Promise<boolean> {
    const giveUpAtMs = this.#clock.now() + UNREADABLE_GRACE_MS;
    for (;;) {
      let broken = false;
      let written = "";
      const isLast = this.#closing.signal.aborted || this.#clock.now() >= giveUpAtMs;
      const result = await this.#files.update(path, (text) => {
        broken = parseCredentialFile(text).kind === "unfinished";
        const next = merge(broken && isLast ? this.#sightings.get(path)?.text ?? text : text);
        written = next ?? "";
        return next;
      }).catch((error) => {
        // A process too busy to open a file would otherwise lose the only copy of a login.
        if (isLast || !isOutOfDescriptors(error)) throw error;
        return "blocked" as const;
      });
      if (result === "replaced") this.#sightings.wrote(path, written);
      const tryAgain = (broken && result !== "replaced") || result === "blocked";
      if (!tryAgain || isLast) return result === "replaced";
      await this.#clock.sleepUntil(this.#clock.now() + BROKEN_RETRY_MS, this.#closing.signal);
    }
  }

  /** Takes over another configuration; accounts it no longer names are removed at once. */
  async reconfigure(config: DirectoryConfig): Promise<void> {
    await this.#exclusively(() => {
      if (config.authDir !== this.#config.authDir) this.#foundPaths = new Set();
      this.#config = config;
      this.#watchedCount = -1;
      const named = this.#namedPaths();
      this.#sightings.keepOnly((path) => this.#foundPaths.has(path) || named.has(path));
      return Promise.resolve();
    });
    await this.rescan();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#nextLook?.scheduled.cancel();
    this.#nextLook = null;
    await this.#turn;
    this.#watching?.close();
    this.#watching = null;
  }

  /** One after the other: a look that overlaps a save could bring back the tokens that were just replaced. */
  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
    return result;
  }

  async #candidatePaths(): Promise<string[]> {
    const listing = await this.#files.list(this.#config.authDir);
    return [
      ...listing?.files.filter((file) => file.writable).map((file) => file.path) ?? [],
      ...this.#namedPaths(),
    ];
  }

  async #lookAtAll(): Promise<void> {
    const nowMs = this.#clock.now();
    const listing = await this.#files.list(this.#config.authDir);
    const named = this.#namedPaths();
    // A folder that cannot be read right now says nothing about its files.
    if (listing !== null) {
      this.#truncated = listing.truncated;
      for (const file of listing.files) await this.#sightings.look(file, nowMs);
      const listed = new Set(listing.files.map((file) => file.path));
      for (const path of this.#foundPaths) {
        if (!listed.has(path) && !named.has(path)) this.#sightings.miss(path, nowMs);
      }
      this.#foundPaths = new Set([
        ...listed,
        ...[...this.#foundPaths].filter((path) => this.#sightings.get(path) !== null),
      ]);
    }
    for (const path of named) await this.#lookAtNamed(path, nowMs, false);
  }

  async #readPaths(paths: readonly string[]): Promise<void> {
    const nowMs = this.#clock.now();
    for (const path of paths) await this.#lookAtNamed(path, nowMs, true);
  }

  async #lookAtNamed(path: string, nowMs: number, force: boolean): Promise<void> {
    const state = await this.#files.look(path);
    if (state === null) return this.#sightings.miss(path, nowMs);
    // Whether a file of the auth directory may be written is known from its listing.
    const writable = this.#foundPaths.has(path) ? this.#sightings.get(path)?.writable ?? true : true;
    await this.#sightings.look({ ...state, writable }, nowMs, force);
  }

  #namedPaths(): Set<string> {
    const paths = this.#config.providers.flatMap((one) =>
      one.accounts.map((account) => account.credentialsPath)
    );
    return new Set(paths.filter((path) => path !== null));
  }

  #publish(): void {
    const { changeCount } = this.#sightings;
    if (this.#madeFrom?.changeCount === changeCount && this.#madeFrom.config === this.#config) return;
    this.#madeFrom = { changeCount, config: this.#config };
    const found = [...this.#foundPaths].map((path) => this.#sightings.get(path)).filter((one) =>
      one !== null
    );
    const receivedByToken = new Map(
      [...this.#received.values()].map((one) => [one.accessToken, one.validity]),
    );
    const entries = makeEntries({
      codexTokenUrl: this.#config.codexRefreshTokenUrl,
      providers: this.#config.providers,
      found,
      named: (path) => this.#sightings.get(path),
      received: (accessToken) => receivedByToken.get(accessToken) ?? null,
    }, this.#digest);
    const isOurs = ({ account, credential }: AccountEntry) =>
      credential.kind === "oauth" &&
      this.#received.get(account.id)?.accessToken === credential.tokens.accessToken;
    const changes = compareEntries(this.#entries, entries, isOurs);
    const isChanged = changes.removed.length + changes.added.length + changes.updated.length > 0;
    if (isChanged) {
      this.#entries = new Map(entries.map((entry) => [entry.account.id, entry]));
      this.#accounts = entries.map((entry) => entry.account);
    }
    // Whether a file is used is read from the entries, so only now.
    this.#noteTroubles();
    if (!isChanged) return;
    for (const id of changes.removed) this.#forget(id);
    for (const entry of [...changes.added, ...changes.updated.map((one) => one.entry)]) this.#remember(entry);
    this.#report(changes);
    for (const listener of this.#listeners) listener(changes);
  }

  #remember({ account, credential }: AccountEntry): void {
    if (credential.kind !== "oauth" || credential.tokens.accessToken === "") return;
    this.#ownTokens.add(account.id, credential.tokens.accessToken, credential.tokens.expiresAtMs);
  }

  #forget(id: AccountId): void {
    this.#ownTokens.drop(id);
    this.#received.delete(id);
  }

  #report(changes: AccountChanges): void {
    for (const account of changes.removed) this.#log.write("info", "account_removed", { account });
    for (const entry of changes.added) {
      this.#log.write("info", "account_added", {
        account: entry.account.id,
        provider: entry.account.provider,
      });
    }
    for (const { entry, cause } of changes.updated) {
      this.#log.write(cause === "details" ? "debug" : "info", "account_updated", {
        account: entry.account.id,
        cause,
      });
    }
  }

  /** Each trouble is told once, when it begins. */
  #noteTroubles(): void {
    const noted = new Map<string, string>();
    for (const { file, reason } of this.notes()) {
      noted.set(file, reason);
      if (this.#noted.get(file) === reason) continue;
      this.#log.write(isExpected(reason) ? "debug" : "info", "credential_file_noted", { file, reason });
    }
    this.#noted = noted;
  }

  #shown(path: string): string {
    const { authDir } = this.#config;
    return path.startsWith(authDir) ? path.slice(authDir.length).replace(/^[/\\]+/, "") : path;
  }

  #watch(): void {
    const named = [...this.#namedPaths()];
    // A folder or file that did not exist when the watch began is not watched: begin again when there is more.
    const count = this.#foundPaths.size + named.filter((path) => this.#sightings.get(path) !== null).length;
    if (this.#watching !== null && (this.#watchedCount > 0 || count === this.#watchedCount)) return;
    this.#watching?.close();
    this.#watchedCount = count;
    this.#watching = this.#files.watch([this.#config.authDir, ...named], () => {
      this.#planLook(this.#clock.now() + HINT_DELAY_MS);
    });
  }

  #planLook(atMs: number): void {
    if (this.#closing.signal.aborted || (this.#nextLook !== null && this.#nextLook.atMs <= atMs)) return;
    this.#nextLook?.scheduled.cancel();
    const scheduled = this.#clock.schedule(atMs, () => {
      this.#nextLook = null;
      this.rescan().catch(this.#onFatal);
    });
    this.#nextLook = { atMs, scheduled };
  }
}

function isOutOfDescriptors(error: unknown): boolean {
  return error instanceof StoreFailure && (error.reason === "EMFILE" || error.reason === "ENFILE");
}

function holdsLogin(text: string, owner: string | null, refreshToken: string): boolean {
  const parsed = parseCredentialFile(text);
  return parsed.kind === "credential" && parsed.record.tokens.refreshToken === refreshToken &&
    credentialOwner(parsed.record) === owner;
}
