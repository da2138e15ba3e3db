/** An account directory and a token refresher on a disk in memory, a clock that moves when told, a scripted issuer. */
import type { ProviderConfig } from "../../lib/config_types.ts";
import type { Digest, RefreshCall, RefreshResult, TokenIssuer } from "../../lib/ports.ts";
import { AccountDirectory, type DirectoryConfig } from "../../lib/proxy/account_directory.ts";
import type { AccountChanges } from "../../lib/proxy/account_entries.ts";
import { TokenRefresher } from "../../lib/proxy/token_refresher.ts";
import { createDigest } from "../../lib/runtime/digest.ts";
import { createCredentialFiles } from "../../lib/store/credential_files.ts";
import { FakeClock } from "./fake_clock.ts";
import { type MemoryLog, memoryLog } from "./memory_log.ts";
import { MemoryDisk } from "./memory_disk.ts";

export const AUTH_DIR = "/auth";
export const TOKEN_URL = "http://127.0.0.1/oauth/token";

export interface HarnessOptions {
  readonly files?: Readonly<Record<string, string>>;
  readonly providers?: readonly ProviderConfig[];
  /** Left from an earlier process. */
  readonly disk?: MemoryDisk;
  readonly clock?: FakeClock;
  readonly digest?: Digest;
}

export interface AccountHarness extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly disk: MemoryDisk;
  readonly issuer: ScriptedIssuer;
  readonly directory: AccountDirectory;
  readonly refresher: TokenRefresher;
  readonly log: MemoryLog;
  readonly changes: AccountChanges[];
  readonly fatal: unknown[];
  config: DirectoryConfig;
}

/** Started: the first look is done, and its changes are not in `changes`. */
export async function accountHarness(options: HarnessOptions = {}): Promise<AccountHarness> {
  const clock = options.clock ?? new FakeClock();
  const disk = options.disk ?? new MemoryDisk(() => clock.now());
  for (const [path, text] of Object.entries(options.files ?? {})) disk.put(path, text);
  const config = { authDir: AUTH_DIR, providers: options.providers ?? [], codexRefreshTokenUrl: TOKEN_URL };
  const log = memoryLog();
  const fatal: unknown[] = [];
  const onFatal = (error: unknown) => void fatal.push(error);
  const files = createCredentialFiles(disk);
  const digest = options.digest ?? createDigest();
  const directory = new AccountDirectory({ config, files, clock, digest, log, onFatal });
  const issuer = new ScriptedIssuer();
  const refresher = new TokenRefresher({ directory, issuer, clock, log, onFatal });
  await directory.start();
  const changes: AccountChanges[] = [];
  directory.subscribe((change) => changes.push(change));
  return {
    clock,
    disk,
    issuer,
    directory,
    refresher,
    log,
    changes,
    fatal,
    config,
    async [Symbol.asyncDispose]() {
      await refresher.close();
      await directory.close();
      if (clock.pendingCount > 0) throw new Error(`${clock.pendingCount} callbacks were left behind`);
    },
  };
}

type Step = RefreshResult | ((call: RefreshCall) => RefreshResult | Promise<RefreshResult>);

/** Answers in the order of its script and refuses calls that nobody scripted. */
export class ScriptedIssuer implements TokenIssuer {
  readonly calls: RefreshCall[] = [];
  readonly #steps: Step[] = [];
  /** Set: every call beyond the script is answered so. */
  otherwise: Step | null = null;

  script(...steps: Step[]): void {
    this.#steps.push(...steps);
  }

  get unusedCount(): number {
    return this.#steps.length;
  }

  async refresh(call: RefreshCall, signal: AbortSignal): Promise<RefreshResult> {
    this.calls.push(call);
    const step = this.#steps.shift() ?? this.otherwise;
    if (step === null) throw new Error(`Call ${this.calls.length} of the token endpoint was not scripted`);
    await Promise.resolve();
    if (signal.aborted) return passing("cancelled", { sent: true });
    return typeof step === "function" ? await step(call) : step;
  }
}

export function refreshed(
  accessToken: string,
  refreshToken: string | null,
  expiresAtMs: number | null,
): RefreshResult {
  return {
    kind: "refreshed",
    tokens: { accessToken, ...refreshToken === null ? {} : { refreshToken }, expiresAtMs },
  };
}

export function passing(
  code: string,
  facts: Partial<Extract<RefreshResult, { kind: "retryable" }>> = {},
): RefreshResult {
  return {
    sent: true,
    repeatable: false,
    retryAtMs: null,
    refreshToken: null,
    ...facts,
    kind: "retryable",
    code,
  };
}

export function deadGrant(code = "invalid_grant"): RefreshResult {
  return { kind: "dead", reason: "invalid_grant", code };
}

export function claudeProvider(
  accounts: ProviderConfig["accounts"],
  baseUrl = "http://127.0.0.1:9",
): ProviderConfig {
  return { id: "claude", kind: "anthropic", baseUrl, plan: null, models: [], accounts };
}
