/**
 * What changes between two configurations, and whether a running process can take it over.
 */
import type { FileConfig } from "./config_schema.ts";
import type { Config } from "./config_types.ts";

export interface ConfigChanges {
  /** Changed keys that the next request finds in effect. */
  readonly reloadable: readonly string[];
  /** Changed keys that stay as they were until the process starts again. */
  readonly needsRestart: readonly string[];
}

type ChangeKey = Exclude<keyof FileConfig, "logging"> | "logging.level" | "logging.format";

/**
 * Every key with its part of the configuration. Those in effect by being read for each request, or by whoever
 * is told of a reload, are reloadable. The others are held open from the start: the listening socket, the
 * locked database, the watched folder (its accounts' states are restored once), the log's sinks.
 */
const KEYS: Readonly<Record<ChangeKey, { read: (config: Config) => unknown; reloadable: boolean }>> = {
  "host": { read: (config) => config.host, reloadable: false },
  "port": { read: (config) => config.port, reloadable: false },
  "auth-dir": { read: (config) => config.authDir, reloadable: false },
  "database": { read: (config) => config.databasePath, reloadable: false },
  "admin-api-key": { read: (config) => config.adminApiKey, reloadable: true },
  "api-keys": { read: (config) => config.apiKeys, reloadable: true },
  "proxy-url": { read: (config) => config.proxyUrl, reloadable: true },
  "request-retry": { read: (config) => config.retry.requestRetry, reloadable: true },
  "max-retry-credentials": { read: (config) => config.retry.maxRetryCredentials, reloadable: true },
  "max-retry-interval": { read: (config) => config.retry.maxRetryIntervalMs, reloadable: true },
  "routing": { read: (config) => config.routing, reloadable: true },
  "codex-base-url": { read: (config) => config.codexBaseUrl, reloadable: true },
  "chatgpt-base-url": { read: (config) => config.chatgptBaseUrl, reloadable: true },
  "codex-refresh-token-url": { read: (config) => config.codexRefreshTokenUrl, reloadable: true },
  "codex-user-agent": { read: (config) => config.codexUserAgent, reloadable: true },
  "codex-beta-features": { read: (config) => config.codexBetaFeatures, reloadable: true },
  "quota": { read: (config) => config.quota, reloadable: true },
  "streaming": { read: (config) => config.streaming, reloadable: true },
  "timeouts": { read: (config) => config.timeouts, reloadable: true },
  "providers": { read: (config) => config.providers, reloadable: true },
  "models": { read: (config) => config.models, reloadable: true },
  "pools": { read: (config) => config.pools, reloadable: true },
  "usage": { read: (config) => config.usage, reloadable: true },
  "logging.level": { read: (config) => config.logging.level, reloadable: true },
  "logging.format": { read: (config) => config.logging.format, reloadable: false },
};

/**
 * The keys, in the file's words, whose effective values differ. Values are never part of the answer.
 *
 * A variable behind `env:NAME` that changed counts as a change of its key.
 */
export function diffConfig(before: Config, after: Config): ConfigChanges {
  const changed = Object.entries(KEYS).filter(([, { read }]) => !isEqual(read(before), read(after)));
  return {
    reloadable: changed.filter(([, key]) => key.reloadable).map(([name]) => name),
    needsRestart: changed.filter(([, key]) => !key.reloadable).map(([name]) => name),
  };
}

/** Plain data; keys may come in any order, as they do in a file. */
function isEqual(a: unknown, b: unknown): boolean {
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return Object.is(a, b);
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && Array.isArray(a) === Array.isArray(b) &&
    keys.every((key) =>
      Object.hasOwn(b, key) &&
      isEqual((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key])
    );
}
