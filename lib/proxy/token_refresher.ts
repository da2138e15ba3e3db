/**
 * Fresh access tokens: one refresh an account at a time, whoever asks and however many.
 *
 * Order of every refresh: read the file again (another program may have done the work), make sure that it can be
 * written, ask the issuer, save, publish.
 * A refresh token is used up by its first answer, so only what certainly had no effect is sent again, and a token
 * found dead is not sent any more until the credential changes.
 */
import type { Evidence } from "../core/evidence.ts";
import type { AccountId } from "../core/domain.ts";
import { REFRESH_LOCAL_LIMIT } from "../core/local_outcome.ts";
import type { Clock, Log, RefreshResult, TokenIssuer } from "../ports.ts";
import type { AccountDirectory } from "./account_directory.ts";
import type { AccountEntry } from "./account_entries.ts";
import { Flight } from "./flight.ts";

/** All calls and waits of one refresh together (state-machine-facts 2A.1). */
const REFRESH_LIMIT_MS = 30_000;
const CALL_LIMIT = 3;
/** Pause before the second and the third call, where the issuer names none. */
const BACKOFF_MS = [250, 1_000] as const;
/** A longer wait is not sat out here: the account rests and others serve (B054). */
const LONGEST_WAIT_MS = 2_000;
/** After a failed refresh of a token that is still good: when it is tried again. */
const NEXT_TRY_MS = 30_000;
/** Another program that used the token first may not have written its answer yet. */
const REUSED_LOOK_AGAIN_MS = 1_000;

export type RefreshFailure = Extract<Evidence, { kind: "refresh_failed" }>;

export type FreshResult =
  | { readonly kind: "ready"; readonly entry: AccountEntry }
  | { readonly kind: "failed"; readonly evidence: RefreshFailure }
  /** The account went away meanwhile. */
  | { readonly kind: "gone" }
  | { readonly kind: "cancelled" };

export interface TokenRefresherOptions {
  readonly directory: AccountDirectory;
  readonly issuer: TokenIssuer;
  readonly clock: Clock;
  readonly log: Log;
  /** Tokens could not be saved: the process has to end (ruling 9). Waiters are rejected with the same error. */
  readonly onFatal: (error: unknown) => void;
}

type Settled = Exclude<FreshResult, { kind: "cancelled" }>;

/** What the last refresh of an account taught, as long as its credential is the same. */
interface Lesson {
  readonly fingerprint: string;
  readonly evidence: RefreshFailure;
  /** No call before; `Infinity` for a dead login. */
  readonly untilMs: number;
  /** False: only a proactive refresh waits for it; an expired token is tried again earlier. */
  readonly binding: boolean;
}

export class TokenRefresher {
  readonly #directory: AccountDirectory;
  readonly #issuer: TokenIssuer;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #onFatal: (error: unknown) => void;
  readonly #flights = new Map<AccountId, Flight<Settled>>();
  readonly #lessons = new Map<AccountId, Lesson>();
  readonly #closing = new AbortController();
  readonly #unsubscribe: () => void;

  constructor(options: TokenRefresherOptions) {
    this.#directory = options.directory;
    this.#issuer = options.issuer;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#onFatal = options.onFatal;
    this.#unsubscribe = options.directory.subscribe((changes) => {
      for (const id of changes.removed) this.#lessons.delete(id);
    });
  }

  /** Whether `ensureFresh` would do anything. Cheap: asked before every launch. */
  isDue(id: AccountId, nowMs: number): boolean {
    const entry = this.#directory.get(id);
    if (entry === null || !isDue(entry, nowMs)) return false;
    const lesson = this.#lessonOf(entry);
    return lesson === null || nowMs >= lesson.untilMs || !isUsable(entry, nowMs);
  }

  /**
   * A credential good for a request now: refreshed when its end is near.
   *
   * A failed refresh of a token that is still good is no failure: the token is used to its end.
   * @throws StoreFailure
   */
  async ensureFresh(id: AccountId, signal: AbortSignal | null): Promise<FreshResult> {
    const entry = this.#directory.get(id);
    if (entry === null) return { kind: "gone" };
    if (!this.isDue(id, this.#clock.now())) return { kind: "ready", entry };
    const result = await this.#join(entry, signal);
    if (result.kind !== "failed") return result;
    const current = this.#directory.get(id);
    return current !== null && isUsable(current, this.#clock.now())
      ? { kind: "ready", entry: current }
      : result;
  }

  /**
   * After a 401: another credential than the one that failed. No call is made when there is one already.
   *
   * @param failedFingerprint  of the account as it was when the failed attempt was launched.
   * @throws StoreFailure
   */
  async repair(id: AccountId, failedFingerprint: string, signal: AbortSignal | null): Promise<FreshResult> {
    const entry = this.#directory.get(id);
    if (entry === null) return { kind: "gone" };
    if (entry.account.fingerprint !== failedFingerprint) return await this.ensureFresh(id, signal);
    return await this.#join(entry, signal);
  }

  /** For a login known to be dead from before a restart: no call until its credential changes (B053). */
  markDead(
    id: AccountId,
    fingerprint: string,
    reason: "invalid_grant" | "credential_invalid",
    code: string,
  ): void {
    const evidence = { kind: "refresh_failed", terminal: true, code, reason, retryAtMs: null } as const;
    this.#lessons.set(id, { fingerprint, evidence, untilMs: Infinity, binding: true });
  }

  /** Starts no further call; resolves when those under way have answered and are saved. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#unsubscribe();
    await Promise.allSettled([...this.#flights.values()].map((flight) => flight.ended));
  }

  async #join(entry: AccountEntry, signal: AbortSignal | null): Promise<FreshResult> {
    const { id } = entry.account;
    const known = this.#knownFailure(entry);
    if (known !== null) return known;
    let flight = this.#flights.get(id);
    if (flight === undefined) {
      flight = new Flight(() => this.#refresh(entry));
      this.#flights.set(id, flight);
      flight.ended.then(() => this.#flights.delete(id), (error) => {
        this.#flights.delete(id);
        this.#onFatal(error);
      });
    }
    return await flight.wait(signal) ?? { kind: "cancelled" };
  }

  #knownFailure(entry: AccountEntry): Settled | null {
    const lesson = this.#lessonOf(entry);
    if (lesson === null || !lesson.binding || this.#clock.now() >= lesson.untilMs) return null;
    return { kind: "failed", evidence: lesson.evidence };
  }

  #lessonOf({ account }: AccountEntry): Lesson | null {
    const lesson = this.#lessons.get(account.id);
    return lesson?.fingerprint === account.fingerprint ? lesson : null;
  }

  /** One flight. Calls and waits are bounded; every way out is a result. */
  async #refresh(asked: AccountEntry): Promise<Settled> {
    const { id } = asked.account;
    const endAtMs = this.#clock.now() + REFRESH_LIMIT_MS;
    let entry = await this.#directory.lookAgain(id);
    let lookedAgain = false;
    for (let callCount = 0;;) {
      if (entry === null) return { kind: "gone" };
      if (entry.account.fingerprint !== asked.account.fingerprint && !isDue(entry, this.#clock.now())) {
        return { kind: "ready", entry };
      }
      if (entry.refresh === null) return this.#failed(entry, dead("no_refresh_token", "credential_invalid"));
      if (callCount === 0) {
        const room = await this.#directory.canSave(id);
        if (room === "busy") return this.#failed(entry, passing(REFRESH_LOCAL_LIMIT, null));
        if (room === "no") {
          return this.#failed(entry, dead("credential_file_read_only", "credential_invalid"));
        }
      }
      if (callCount === CALL_LIMIT) return this.#failed(entry, passing("token_endpoint_no_answer", null));
      callCount += 1;
      const { refreshToken } = entry.refresh;
      const result = await this.#call(entry.refresh, endAtMs);
      if (result.kind === "refreshed") return await this.#save(entry, refreshToken, result.tokens);
      if (result.kind === "dead") {
        entry = await this.#directory.lookAgain(id);
        if (entry?.refresh?.refreshToken !== refreshToken) continue;
        if (result.code === "refresh_token_reused" && !lookedAgain) {
          lookedAgain = true;
          const lookAtMs = this.#clock.now() + REUSED_LOOK_AGAIN_MS;
          if (!await this.#clock.sleepUntil(lookAtMs, this.#closing.signal)) {
            return this.#failed(entry, passing("shutting_down", null));
          }
          entry = await this.#directory.lookAgain(id);
          if (entry?.refresh?.refreshToken !== refreshToken) continue;
        }
        return this.#failed(entry, dead(result.code, result.reason));
      }
      if (result.refreshToken !== null) {
        await this.#directory.saveTokens(id, refreshToken, { refreshToken: result.refreshToken });
        entry = this.#directory.get(id) ?? entry;
      }
      const again = result.repeatable && callCount < CALL_LIMIT &&
        await this.#pause(result, callCount, endAtMs);
      if (!again) return this.#failed(entry, passing(result.code, result.retryAtMs));
    }
  }

  async #call(refresh: NonNullable<AccountEntry["refresh"]>, endAtMs: number): Promise<RefreshResult> {
    const controller = new AbortController();
    const limit = this.#clock.schedule(endAtMs, () => controller.abort());
    try {
      // Not tied to any waiter or to our own shutdown: an answer that nobody takes is a lost login.
      return await this.#issuer.refresh({ ...refresh, nowMs: this.#clock.now() }, controller.signal);
    } finally {
      limit.cancel();
    }
  }

  async #save(
    entry: AccountEntry,
    usedRefreshToken: string,
    tokens: Extract<RefreshResult, { kind: "refreshed" }>["tokens"],
  ): Promise<Settled> {
    const { id } = entry.account;
    const saved = await this.#directory.saveTokens(id, usedRefreshToken, tokens);
    this.#log.write(saved.kind === "gone" ? "warn" : "info", "token_refreshed", {
      account: id,
      saved: saved.kind,
    });
    if (saved.kind === "gone") return { kind: "gone" };
    this.#lessons.delete(id);
    return { kind: "ready", entry: saved.entry };
  }

  /** @returns false when the wait would be too long, or we are closing. */
  async #pause(
    { retryAtMs }: Extract<RefreshResult, { kind: "retryable" }>,
    callCount: number,
    endAtMs: number,
  ): Promise<boolean> {
    const nowMs = this.#clock.now();
    const againAtMs = Math.max(retryAtMs ?? 0, nowMs + BACKOFF_MS[callCount === 1 ? 0 : 1]);
    if (againAtMs - nowMs > LONGEST_WAIT_MS || againAtMs >= endAtMs) return false;
    return await this.#clock.sleepUntil(againAtMs, this.#closing.signal);
  }

  #failed(entry: AccountEntry, evidence: RefreshFailure): Settled {
    const { id, fingerprint } = entry.account;
    const untilMs = evidence.terminal ? Infinity : evidence.retryAtMs ?? this.#clock.now() + NEXT_TRY_MS;
    const binding = evidence.terminal || evidence.retryAtMs !== null;
    this.#lessons.set(id, { fingerprint, evidence, untilMs, binding });
    this.#log.write("warn", "token_refresh_failed", {
      account: id,
      code: evidence.code,
      terminal: evidence.terminal,
    });
    return { kind: "failed", evidence };
  }
}

function isDue(entry: AccountEntry, nowMs: number): boolean {
  if (entry.refresh === null || entry.credential.kind !== "oauth") return false;
  const { refreshAtMs } = entry.validity;
  return entry.credential.tokens.accessToken === "" || (refreshAtMs !== null && nowMs >= refreshAtMs);
}

/** The access token may still be sent. */
function isUsable(entry: AccountEntry, nowMs: number): boolean {
  if (entry.credential.kind !== "oauth") return true;
  const { expiresAtMs } = entry.validity;
  return entry.credential.tokens.accessToken !== "" && (expiresAtMs === null || nowMs < expiresAtMs);
}

function dead(code: string, reason: "invalid_grant" | "credential_invalid"): RefreshFailure {
  return { kind: "refresh_failed", terminal: true, code, reason, retryAtMs: null };
}

function passing(code: string, retryAtMs: number | null): RefreshFailure {
  return { kind: "refresh_failed", terminal: false, code, retryAtMs };
}
