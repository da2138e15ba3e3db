/**
 * What every key is when the file does not name it. One object, in the file's own words and units.
 *
 * The schema takes its defaults from here; `config.example.yaml` and both documents are compared with it.
 */
import type { LogLevel } from "./ports.ts";

export const DEFAULT_CONFIG_VALUES = {
  "host": "127.0.0.1",
  "port": 8317,
  "auth-dir": "~/.codex",
  "database": { "path": "" },
  "admin-api-key": "",
  "api-keys": [] as string[],
  "proxy-url": "",
  "request-retry": 3,
  "max-retry-credentials": 0,
  "max-retry-interval": 30,
  "routing": { "strategy": "round-robin" as RoutingStrategy, "session-ttl-minutes": 60 },
  "codex-base-url": "https://chatgpt.com/backend-api/codex",
  "chatgpt-base-url": "https://chatgpt.com/backend-api",
  "codex-refresh-token-url": "https://auth.openai.com/oauth/token",
  "codex-user-agent": "",
  "codex-beta-features": "",
  "quota": { "poll-interval-seconds": 300, "max-park-minutes": 30, "recheck": false },
  "streaming": {
    "keepalive-seconds": 0,
    "bootstrap": { "max-events": 16, "max-bytes": 65_536, "max-hold-seconds": 10 },
    "recovery": {
      "attempts": 0,
      "max-buffer-bytes": 8_388_608,
      "max-retry-window-seconds": 20,
      "max-concurrent": 16,
      "initial-backoff-milliseconds": 250,
      "max-backoff-milliseconds": 2_000,
    },
  },
  "timeouts": {
    "connect-seconds": 15,
    "first-byte-seconds": 600,
    "idle-seconds": 300,
    "request-body-seconds": 60,
  },
  "providers": [] as never[],
  "models": [] as never[],
  "pools": [] as never[],
  "usage": { "enabled": true, "retention-days": 30 },
  "logging": { "level": "info" as LogLevel, "format": "auto" as LogFormat },
};

export type RoutingStrategy = "round-robin" | "fill-first";
export type LogFormat = "auto" | "pretty" | "json";

/** Where a provider of this kind is when `base-url` is absent; null: it has to be said. */
export const DEFAULT_BASE_URLS = {
  anthropic: "https://api.anthropic.com",
  zai: "https://api.z.ai",
  // No default: a forgotten base-url of a private host must not send its key to somebody else.
  openai: null,
} as const;

/** A zai key on the wrong plan's address is refused with code 1113; pay as you go is what a new key has. */
export const DEFAULT_ZAI_PLAN = "general";
export const DEFAULT_MEMBER_WEIGHT = 1;
/** Below the state folder, where `database.path` is empty. */
export const DEFAULT_DATABASE_NAME = "holdfast/holdfast.db";
