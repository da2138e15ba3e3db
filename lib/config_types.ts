/**
 * The configuration as the program uses it: every value checked, every default filled in, times in ms.
 *
 * `config.ts` makes it from YAML; nothing else builds one by hand except tests.
 */
import type { LogLevel } from "./ports.ts";
import type { ModelId, ProviderId, RetryPolicy } from "./core/domain.ts";

export interface Config {
  readonly host: string;
  readonly port: number;
  /** Absolute, `~` expanded. */
  readonly authDir: string;
  readonly databasePath: string;
  /** Empty: management and /status are off. */
  readonly adminApiKey: string;
  readonly apiKeys: readonly string[];
  /** Empty: the environment's proxy variables; `direct`: none. */
  readonly proxyUrl: string;
  readonly retry: RetryPolicy;
  readonly routing: { readonly strategy: "round-robin" | "fill-first"; readonly sessionTtlMs: number };
  /** Without trailing slash. */
  readonly codexBaseUrl: string;
  readonly chatgptBaseUrl: string;
  readonly codexRefreshTokenUrl: string;
  readonly codexUserAgent: string;
  readonly codexBetaFeatures: string;
  readonly quota: { readonly pollIntervalMs: number; readonly maxParkMs: number; readonly recheck: boolean };
  readonly streaming: {
    readonly keepaliveMs: number;
    readonly bootstrap: { readonly maxEvents: number; readonly maxBytes: number; readonly maxHoldMs: number };
    readonly recovery: RecoveryConfig;
  };
  readonly timeouts: {
    readonly connectMs: number;
    readonly firstByteMs: number;
    readonly idleMs: number;
    /** 0 = no limit. */
    readonly requestBodyMs: number;
  };
  /** Configured ones only; codex from auth-dir is always there and never listed. */
  readonly providers: readonly ProviderConfig[];
  readonly models: readonly AliasConfig[];
  readonly pools: readonly PoolConfig[];
  readonly usage: { readonly enabled: boolean; readonly retentionMs: number };
  readonly logging: { readonly level: LogLevel; readonly format: "auto" | "pretty" | "json" };
}

export interface RecoveryConfig {
  readonly attempts: number;
  readonly maxBufferBytes: number;
  readonly maxRetryWindowMs: number;
  readonly maxConcurrent: number;
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
}

export interface ProviderConfig {
  readonly id: ProviderId;
  readonly kind: "anthropic" | "zai" | "openai";
  readonly baseUrl: string;
  /** zai only; null elsewhere. */
  readonly plan: "general" | "coding" | null;
  /** Models this provider is known to list; empty: unknown. */
  readonly models: readonly ModelId[];
  readonly accounts: readonly AccountConfig[];
}

export interface AccountConfig {
  readonly id: string;
  /** Resolved (`env:NAME` already read); null when `credentials` is used. */
  readonly apiKey: string | null;
  /** Absolute path of an OAuth credentials file, or null. */
  readonly credentialsPath: string | null;
}

export interface AliasConfig {
  readonly alias: string;
  readonly provider: ProviderId;
  readonly model: ModelId;
}

export interface PoolMember {
  readonly provider: ProviderId;
  readonly model: ModelId;
  readonly weight: number;
}

export interface PoolConfig {
  readonly name: string;
  readonly members: readonly PoolMember[];
  readonly fallback: readonly { readonly provider: ProviderId; readonly model: ModelId }[];
}
