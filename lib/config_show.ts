/**
 * The configuration in effect, as people may see it: the file's words and units, secrets hidden.
 */
import type { FileConfig } from "./config_schema.ts";
import { HIDDEN, redactUrl } from "./config_mistakes.ts";
import type { Config } from "./config_types.ts";
import { writeYaml } from "./config_yaml.ts";

/**
 * The effective configuration in the form of the file.
 *
 * Without secrets in it, parsing it again gives the same configuration. Keys, and what a proxy URL knows of its
 * user, are `(hidden)`; where nothing is set, that can be seen.
 */
export function describeConfig(config: Config): FileConfig {
  const { retry, routing, quota, streaming, timeouts, usage, logging } = config;
  const { bootstrap, recovery } = streaming;
  return {
    "host": config.host,
    "port": config.port,
    "auth-dir": config.authDir,
    "database": { "path": config.databasePath },
    "admin-api-key": config.adminApiKey === "" ? "" : HIDDEN,
    "api-keys": config.apiKeys.map(() => HIDDEN),
    "proxy-url": redactUrl(config.proxyUrl),
    "request-retry": retry.requestRetry,
    "max-retry-credentials": retry.maxRetryCredentials,
    "max-retry-interval": retry.maxRetryIntervalMs / 1_000,
    "routing": { "strategy": routing.strategy, "session-ttl-minutes": routing.sessionTtlMs / 60_000 },
    "codex-base-url": config.codexBaseUrl,
    "chatgpt-base-url": config.chatgptBaseUrl,
    "codex-refresh-token-url": config.codexRefreshTokenUrl,
    "codex-user-agent": config.codexUserAgent,
    "codex-beta-features": config.codexBetaFeatures,
    "quota": {
      "poll-interval-seconds": quota.pollIntervalMs / 1_000,
      "max-park-minutes": quota.maxParkMs / 60_000,
      "recheck": quota.recheck,
    },
    "streaming": {
      "keepalive-seconds": streaming.keepaliveMs / 1_000,
      "bootstrap": {
        "max-events": bootstrap.maxEvents,
        "max-bytes": bootstrap.maxBytes,
        "max-hold-seconds": bootstrap.maxHoldMs / 1_000,
      },
      "recovery": {
        "attempts": recovery.attempts,
        "max-buffer-bytes": recovery.maxBufferBytes,
        "max-retry-window-seconds": recovery.maxRetryWindowMs / 1_000,
        "max-concurrent": recovery.maxConcurrent,
        "initial-backoff-milliseconds": recovery.initialBackoffMs,
        "max-backoff-milliseconds": recovery.maxBackoffMs,
      },
    },
    "timeouts": {
      "connect-seconds": timeouts.connectMs / 1_000,
      "first-byte-seconds": timeouts.firstByteMs / 1_000,
      "idle-seconds": timeouts.idleMs / 1_000,
      "request-body-seconds": timeouts.requestBodyMs / 1_000,
    },
    "providers": config.providers.map((provider) => ({
      "id": provider.id,
      "kind": provider.kind,
      "base-url": provider.baseUrl,
      ...(provider.plan === null ? {} : { "plan": provider.plan }),
      "models": [...provider.models],
      "accounts": provider.accounts.map((account) => ({
        "id": account.id,
        ...(account.apiKey === null ? {} : { "api-key": HIDDEN }),
        ...(account.credentialsPath === null ? {} : { "credentials": account.credentialsPath }),
      })),
    })),
    "models": config.models.map((alias) => ({ ...alias })),
    "pools": config.pools.map((pool) => ({
      "name": pool.name,
      "members": pool.members.map((member) => ({ ...member })),
      "fallback": pool.fallback.map((target) => ({ ...target })),
    })),
    "usage": { "enabled": usage.enabled, "retention-days": usage.retentionMs / 86_400_000 },
    "logging": { "level": logging.level, "format": logging.format },
  };
}

/** {@link describeConfig} as YAML text. */
export function formatConfig(config: Config): string {
  return writeYaml(describeConfig(config));
}
