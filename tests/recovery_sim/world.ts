/** The proxy's own handler over a scripted upstream: everything between a client's request and its answer is real. */
import { parseConfig } from "../../lib/config.ts";
import type { Config } from "../../lib/config_types.ts";
import { CODEX_PROVIDER } from "../../lib/core/model_resolution.ts";
import type { Account } from "../../lib/core/domain.ts";
import type { Credential, Ids } from "../../lib/ports.ts";
import { descriptorFor } from "../../lib/providers/registry.ts";
import { BodyWatch } from "../../lib/proxy/body_pace.ts";
import { DecisionLog } from "../../lib/proxy/decision_log.ts";
import type { Credentials, HandlerDeps, ProviderEntry, UsableCredential } from "../../lib/proxy/deps.ts";
import { createHandler } from "../../lib/proxy/handler.ts";
import { OpenSockets } from "../../lib/proxy/open_sockets.ts";
import { Traffic } from "../../lib/proxy/traffic.ts";
import { UsageRecorder } from "../../lib/proxy/usage_recorder.ts";
import { createDigest } from "../../lib/runtime/digest.ts";
import { createInflate } from "../../lib/runtime/inflate.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { memoryLog } from "../support/memory_log.ts";
import { MemoryAffinityStore, MemoryPoolStore } from "../support/memory_store.ts";
import type { Plant } from "./plants.ts";
import { CLIENT_KEY, configText, type Scene } from "./scene.ts";
import { type Playwright, ScriptedUpstream } from "./scripted_upstream.ts";
import { WatchedPool, WatchedSlots } from "./watched_parts.ts";
import type { Answer } from "../../lib/proxy/answer.ts";
import type { ClientRequest } from "../../lib/proxy/client_request.ts";

export interface World {
  readonly clock: FakeClock;
  readonly config: Config;
  readonly handler: (request: ClientRequest) => Promise<Answer>;
  readonly upstream: ScriptedUpstream;
  readonly pool: WatchedPool;
  readonly slots: WatchedSlots;
  readonly decisions: DecisionLog;
  readonly log: ReturnType<typeof memoryLog>;
  readonly running: ReadonlySet<AbortController>;
  /** What would have ended the process. */
  readonly fatal: unknown[];
  /** Ids of the requests, in the order in which the handler was asked. */
  readonly requestIds: readonly string[];
  close(): void;
}

export interface WorldOptions {
  readonly withRecovery: boolean;
  readonly plant: Plant | null;
  /** Number of the first request id; ids are in the text of answers. */
  readonly firstId?: number;
}

export function openWorld(scene: Scene, script: Playwright, options: WorldOptions): World {
  const { plant } = options;
  const clock = new FakeClock();
  const parsed = parseConfig(configText(scene, options.withRecovery), {
    homeDir: "/home/sim",
    get: () => undefined,
  });
  if (!parsed.ok) throw new Error(`The scene's configuration is wrong: ${JSON.stringify(parsed.mistakes)}`);
  const config = plant?.config?.(parsed.config) ?? parsed.config;
  const store = new MemoryPoolStore();
  const affinity = new MemoryAffinityStore();
  const digest = createDigest();
  const log = memoryLog();
  const slots = new (plant?.slots ?? WatchedSlots)(clock);
  const pool = new (plant?.pool ?? WatchedPool)({
    store,
    affinity,
    policy: config.retry,
    quota: { maxParkMs: config.quota.maxParkMs, recheck: false },
    routing: config.routing,
    seed: scene.seed,
    recovery: config.streaming.recovery,
    pools: [],
  }, slots);
  pool.restore(clock.now());
  pool.reconcile(scene.accounts.map((account) => accountOf(account)), clock.now());
  const upstream = new ScriptedUpstream(clock, script, plant?.body?.());
  const entries = providerEntries(config);
  const fatal: unknown[] = [];
  const decisions = new DecisionLog();
  const bodyWatch = new BodyWatch(clock);
  const running = new Set<AbortController>();
  const requestIds: string[] = [];
  const accounts = refusing<HandlerDeps["accounts"]>("account store");
  const deps: HandlerDeps = {
    config: () => config,
    clock,
    random: { next: () => 0.5 },
    ids: countingIds(options.firstId ?? 1, requestIds),
    digest,
    inflate: createInflate(),
    log,
    upstream,
    dialer: refusing("dialer"),
    pool,
    credentials: simulatedCredentials(scene),
    provider: (id) => entries.get(id) ?? null,
    affinity,
    accounts,
    decisions,
    bodyWatch,
    recoverySlots: slots,
    usage: new UsageRecorder(accounts, clock, () => false, (error) => void fatal.push(error)),
    traffic: new Traffic(),
    running,
    sockets: new OpenSockets(),
    instanceId: "sim",
    fatal: (error) => void fatal.push(error),
    admission: {
      digest,
      staticKeyHashes: () => new Set([digest.sha256(CLIENT_KEY)]),
      userByKeyHash: () => null,
      isOwnAccountToken: () => false,
    },
    local: () => null,
    isDraining: () => false,
    listedModels: () => new Map(),
  };
  const handler = createHandler(deps);
  return {
    clock,
    config,
    handler: async (request) => await handler(request),
    upstream,
    pool,
    slots,
    decisions,
    log,
    running,
    fatal,
    requestIds,
    close: () => {
      bodyWatch.close();
    },
  };
}

function accountOf({ name, provider, refreshable }: Scene["accounts"][number]): Account {
  return { id: `${provider}:${name}`, provider, fingerprint: `${name}#0`, enabled: true, refreshable };
}

/** Tokens that are always fresh, and after a repair of another version. */
function simulatedCredentials(scene: Scene): Credentials {
  const versions = new Map(scene.accounts.map(({ name, provider }) => [`${provider}:${name}`, 0]));
  const ready = (account: string) => {
    const name = account.slice(account.indexOf(":") + 1);
    const version = versions.get(account)!;
    const provider = account.slice(0, account.indexOf(":"));
    const token = `SENT-tok-${name}-${version}`;
    const credential: Credential = provider === "codex"
      ? {
        kind: "oauth",
        tokens: {
          accessToken: token,
          refreshToken: null,
          idToken: null,
          expiresAtMs: null,
        },
        accountHeader: null,
      }
      : { kind: "api_key", apiKey: token };
    return { credential, fingerprint: `${name}#${version}` };
  };
  return {
    ready,
    prepare: (account): Promise<UsableCredential> => Promise.resolve({ ok: true, ...ready(account) }),
    repair: (account): Promise<UsableCredential> => {
      versions.set(account, versions.get(account)! + 1);
      return Promise.resolve({ ok: true, ...ready(account) });
    },
    isOwnAccountToken: () => false,
  };
}

function providerEntries(config: Config): Map<string, ProviderEntry> {
  const common = { chatgptBaseUrl: config.chatgptBaseUrl, userAgent: "", betaFeatures: "" };
  const entries = new Map<string, ProviderEntry>([[CODEX_PROVIDER, {
    descriptor: descriptorFor("codex")!,
    settings: { ...common, id: CODEX_PROVIDER, kind: "codex", baseUrl: config.codexBaseUrl, plan: null },
  }]]);
  for (const { id, kind, baseUrl, plan } of config.providers) {
    entries.set(id, { descriptor: descriptorFor(kind)!, settings: { ...common, id, kind, baseUrl, plan } });
  }
  return entries;
}

/** Ids that say nothing but their number; those inside answers can be told from everything else. */
function countingIds(first: number, requestIds: string[]): Ids {
  let secret = 0;
  return {
    requestId: () => {
      const id = `req_${String(first + requestIds.length).padStart(24, "0")}`;
      requestIds.push(id);
      return id;
    },
    secret: () => `simid${String(++secret).padStart(8, "0")}`,
  };
}

/** A port that no scene has a use for. */
function refusing<T extends object>(name: string): T {
  return new Proxy({}, {
    get: (_, key) => {
      throw new Error(`Cannot use the ${name} (${String(key)}): nobody scripted it`);
    },
  }) as T;
}
