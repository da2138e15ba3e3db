/**
 * The checked file -> {@link Config}: keys resolved, paths absolute, times in ms.
 *
 * Runs only on a file without mistakes; a value that cannot be read here is a fault of ours.
 */
import { DEFAULT_BASE_URLS, DEFAULT_ZAI_PLAN } from "./config_defaults.ts";
import type { FileConfig } from "./config_schema.ts";
import type { AccountConfig, Config, ProviderConfig } from "./config_types.ts";
import {
  type ConfigEnvironment,
  readBaseUrl,
  type Reading,
  readListenHost,
  readPath,
  readProxyUrl,
  readSecret,
  resolveDatabasePath,
} from "./config_values.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

export function resolveConfig(file: FileConfig, environment: ConfigEnvironment): Config {
  const { routing, quota, streaming, timeouts, usage, logging } = file;
  const { bootstrap, recovery } = streaming;
  return {
    host: sure(readListenHost(file.host)),
    port: file.port,
    authDir: sure(readPath(file["auth-dir"], environment)),
    databasePath: sure(resolveDatabasePath(file.database.path, environment)),
    adminApiKey: file["admin-api-key"] === "" ? "" : sure(readSecret(file["admin-api-key"], environment)),
    apiKeys: file["api-keys"].map((text) => sure(readSecret(text, environment))),
    proxyUrl: sure(readProxyUrl(file["proxy-url"], environment)),
    retry: {
      requestRetry: file["request-retry"],
      maxRetryCredentials: file["max-retry-credentials"],
      maxRetryIntervalMs: file["max-retry-interval"] * SECOND_MS,
    },
    routing: { strategy: routing.strategy, sessionTtlMs: routing["session-ttl-minutes"] * MINUTE_MS },
    codexBaseUrl: sure(readBaseUrl(file["codex-base-url"])),
    chatgptBaseUrl: sure(readBaseUrl(file["chatgpt-base-url"])),
    codexRefreshTokenUrl: sure(readBaseUrl(file["codex-refresh-token-url"])),
    codexUserAgent: file["codex-user-agent"],
    codexBetaFeatures: file["codex-beta-features"],
    quota: {
      pollIntervalMs: quota["poll-interval-seconds"] * SECOND_MS,
      maxParkMs: quota["max-park-minutes"] * MINUTE_MS,
      recheck: quota.recheck,
    },
    streaming: {
      keepaliveMs: streaming["keepalive-seconds"] * SECOND_MS,
      bootstrap: {
        maxEvents: bootstrap["max-events"],
        maxBytes: bootstrap["max-bytes"],
        maxHoldMs: bootstrap["max-hold-seconds"] * SECOND_MS,
      },
      recovery: {
        attempts: recovery.attempts,
        maxBufferBytes: recovery["max-buffer-bytes"],
        maxRetryWindowMs: recovery["max-retry-window-seconds"] * SECOND_MS,
        maxConcurrent: recovery["max-concurrent"],
        initialBackoffMs: recovery["initial-backoff-milliseconds"],
        maxBackoffMs: recovery["max-backoff-milliseconds"],
      },
    },
    timeouts: {
      connectMs: timeouts["connect-seconds"] * SECOND_MS,
      firstByteMs: timeouts["first-byte-seconds"] * SECOND_MS,
      idleMs: timeouts["idle-seconds"] * SECOND_MS,
      requestBodyMs: timeouts["request-body-seconds"] * SECOND_MS,
    },
    providers: file.providers.map((provider) => resolveProvider(provider, environment)),
    models: file.models,
    pools: file.pools,
    usage: { enabled: usage.enabled, retentionMs: usage["retention-days"] * DAY_MS },
    logging: { level: logging.level, format: logging.format },
  };
}

function resolveProvider(
  provider: FileConfig["providers"][number],
  environment: ConfigEnvironment,
): ProviderConfig {
  const { kind } = provider;
  return {
    id: provider.id,
    kind,
    baseUrl: sure(readBaseUrl(provider["base-url"] ?? DEFAULT_BASE_URLS[kind] ?? "")),
    plan: kind === "zai" ? provider.plan ?? DEFAULT_ZAI_PLAN : null,
    models: provider.models,
    accounts: provider.accounts.map((account): AccountConfig => ({
      id: account.id,
      apiKey: account["api-key"] === undefined ? null : sure(readSecret(account["api-key"], environment)),
      credentialsPath: account.credentials === undefined
        ? null
        : sure(readPath(account.credentials, environment)),
    })),
  };
}

function sure<T>(reading: Reading<T>): T {
  if (!reading.ok) throw new Error(`Cannot resolve config: a checked value ${reading.problem}`);
  return reading.value;
}
