/** What one seed plays: a configuration, some accounts, some clients and how each of them behaves. */
import { Dice } from "../sim/dice.ts";
import type { WireProtocol } from "./wire_events.ts";

export interface Weather {
  /** Share of attempts that end well. */
  readonly good: number;
  /** Weight of refusals among those that do not; low where few accounts should be lost. */
  readonly refusals: number;
}

export interface SceneConfig {
  readonly attempts: number;
  readonly maxBufferBytes: number;
  readonly windowSeconds: number;
  readonly maxConcurrent: number;
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
  readonly requestRetry: number;
  readonly maxRetryIntervalSeconds: number;
  readonly idleSeconds: number;
  readonly keepaliveSeconds: number;
}

export interface SceneAccount {
  readonly name: string;
  readonly provider: ProviderName;
  /** May be repaired after a 401. */
  readonly refreshable: boolean;
}

export const PROVIDERS = ["codex", "claude", "lab", "zai"] as const;
export type ProviderName = (typeof PROVIDERS)[number];

/** When a client leaves: never, so long after it asked, or once it has so many bytes. */
export type Leaving =
  | { readonly kind: "never" }
  | { readonly kind: "after"; readonly ms: number }
  | { readonly kind: "at_bytes"; readonly bytes: number };

export interface SceneStream {
  /** Counts from 1 in the scene. */
  readonly number: number;
  readonly client: WireProtocol;
  readonly provider: ProviderName;
  readonly wantsStream: boolean;
  readonly arrivesAtMs: number;
  readonly leaving: Leaving;
  /** Pause of the client between two reads. */
  readonly readPauseMs: number;
}

export interface Scene {
  readonly seed: number;
  readonly config: SceneConfig;
  readonly accounts: readonly SceneAccount[];
  readonly streams: readonly SceneStream[];
  readonly weather: Weather;
  /** Played a second time with every body in one piece: one quiet client, no window to run out of. */
  readonly isRecut: boolean;
}

/** Whole scenes of many clients at most, so that no single seed takes long. */
const MOST_STREAMS = 12;

export function drawScene(seed: number): Scene {
  const dice = new Dice(seed, "scene");
  const isRecut = dice.chance(0.25);
  const count = isRecut || dice.chance(0.3) ? 1 : dice.int(2, MOST_STREAMS);
  return {
    seed,
    config: drawConfig(dice, count, isRecut),
    accounts: drawAccounts(dice, isRecut ? 1 : 3),
    streams: Array.from(
      { length: count },
      (_, at) => drawOne(new Dice(seed, "stream", at + 1), at + 1, isRecut),
    ),
    weather: {
      good: dice.pick([0.2, 0.4, 0.4, 0.7]),
      refusals: dice.pick([2, 10, 30]),
    },
    isRecut,
  };
}

function drawConfig(dice: Dice, streams: number, isRecut: boolean): SceneConfig {
  const initialBackoffMs = dice.chance(0.2) ? 0 : dice.span(1, 1_000);
  return {
    attempts: dice.weighted([[3, 0], [4, 1], [6, 2], [4, 3], [2, 10]] as const),
    maxBufferBytes: dice.chance(0.6) ? 8_388_608 : dice.span(40, 6_000),
    windowSeconds: isRecut || dice.chance(0.5) ? 3_600 : dice.int(1, 20),
    maxConcurrent: dice.chance(0.5) ? 16 : dice.int(1, streams),
    initialBackoffMs,
    maxBackoffMs: initialBackoffMs + (dice.chance(0.3) ? 0 : dice.span(1, 2_000)),
    requestRetry: dice.pick([0, 0, 1, 2]),
    maxRetryIntervalSeconds: dice.pick([2, 10, 30]),
    idleSeconds: dice.int(5, 40),
    keepaliveSeconds: dice.chance(0.7) ? 0 : dice.int(1, 4),
  };
}

/** @param most  a provider's; one where nothing may depend on how long an attempt took. */
function drawAccounts(dice: Dice, most: number): SceneAccount[] {
  const of = (provider: ProviderName, count: number): SceneAccount[] =>
    Array.from({ length: count }, (_, at) => ({
      name: `${provider}${at + 1}`,
      provider,
      // Keys cannot be refreshed; hosts of the openai and zai kind have nothing else.
      refreshable: (provider === "codex" || provider === "claude") && dice.chance(0.7),
    }));
  return PROVIDERS.flatMap((provider) => of(provider, dice.int(1, most)));
}

function drawOne(dice: Dice, number: number, isRecut: boolean): SceneStream {
  const wantsStream = dice.chance(0.85);
  return {
    number,
    client: dice.pick(["responses", "chat", "messages"] as const),
    provider: dice.pick(PROVIDERS),
    wantsStream,
    arrivesAtMs: isRecut || dice.chance(0.6) ? 0 : dice.span(1, 5_000),
    leaving: isRecut ? { kind: "never" } : drawLeaving(dice),
    readPauseMs: isRecut || dice.chance(0.7) ? 0 : dice.span(1, 400),
  };
}

function drawLeaving(dice: Dice): Leaving {
  switch (dice.weighted<Leaving["kind"]>([[75, "never"], [15, "after"], [10, "at_bytes"]])) {
    case "never":
      return { kind: "never" };
    case "after":
      return { kind: "after", ms: dice.span(1, 20_000) };
    case "at_bytes":
      return { kind: "at_bytes", bytes: dice.span(1, 3_000) };
  }
}

/** The configuration file of a scene; without its recovery block where the build is to be as if there were none. */
export function configText(scene: Scene, withRecovery: boolean): string {
  const { config } = scene;
  const keyed = (provider: ProviderName) =>
    scene.accounts.filter((account) => account.provider === provider).map(({ name }) => ({
      id: name,
      "api-key": `SENT-tok-${name}`,
    }));
  const url = "http://127.0.0.1:9";
  return JSON.stringify({
    "api-keys": [CLIENT_KEY],
    "proxy-url": "direct",
    "codex-base-url": `${url}/backend-api/codex`,
    "request-retry": config.requestRetry,
    "max-retry-interval": config.maxRetryIntervalSeconds,
    quota: { "poll-interval-seconds": 0 },
    usage: { enabled: false },
    timeouts: { "idle-seconds": config.idleSeconds },
    streaming: {
      "keepalive-seconds": config.keepaliveSeconds,
      ...(withRecovery
        ? {
          recovery: {
            attempts: config.attempts,
            "max-buffer-bytes": config.maxBufferBytes,
            "max-retry-window-seconds": config.windowSeconds,
            "max-concurrent": config.maxConcurrent,
            "initial-backoff-milliseconds": config.initialBackoffMs,
            "max-backoff-milliseconds": config.maxBackoffMs,
          },
        }
        : {}),
    },
    providers: [
      { id: "claude", kind: "anthropic", "base-url": url, accounts: keyed("claude") },
      { id: "lab", kind: "openai", "base-url": `${url}/v1`, models: ["qwen3"], accounts: keyed("lab") },
      { id: "zai", kind: "zai", "base-url": url, plan: "coding", accounts: keyed("zai") },
    ],
  });
}

export const CLIENT_KEY = "SENT-key-client-1";

export const MODELS: Readonly<Record<ProviderName, string>> = {
  codex: "codex/gpt-5.5",
  claude: "claude/claude-opus-4-8",
  lab: "lab/qwen3",
  zai: "zai/glm-5.2",
};
