/**
 * What the shell is wired with. `app.ts` builds it once; tests build it with their own parts.
 */
import type { Config } from "../config_types.ts";
import type { AccountId, ProviderId } from "../core/domain.ts";
import type { ProviderDescriptor, ProviderSettings } from "../providers/provider.ts";
import type {
  AccountStore,
  AffinityStore,
  Clock,
  Credential,
  Dialer,
  Digest,
  Ids,
  Inflate,
  Log,
  Random,
  Upstream,
} from "../ports.ts";
import type { AdmissionSources } from "./admission.ts";
import type { PoolRuntime } from "./pool_runtime.ts";
import type { DecisionLog } from "./decision_log.ts";
import type { BodyWatch } from "./body_pace.ts";
import type { Evidence } from "../core/evidence.ts";
import type { LocalRoutes } from "./local_routes.ts";
import type { OpenSockets } from "./open_sockets.ts";
import type { RecoverySlots } from "./recovery_slots.ts";
import type { Traffic } from "./traffic.ts";
import type { UsageRecorder } from "./usage_recorder.ts";

export interface ProviderEntry {
  readonly descriptor: ProviderDescriptor;
  readonly settings: ProviderSettings;
}

export type UsableCredential =
  | { readonly ok: true; readonly credential: Credential; readonly fingerprint: string }
  | { readonly ok: false; readonly evidence: Evidence };

/** The credentials of the accounts, as the shell asks for them. */
export interface Credentials {
  /** The credential when it needs no refresh now, else null: the hot path, no promise. */
  ready(
    account: AccountId,
    nowMs: number,
  ): { readonly credential: Credential; readonly fingerprint: string } | null;
  /** Refreshes first when the token is about to expire. */
  prepare(account: AccountId, signal: AbortSignal | null): Promise<UsableCredential>;
  /** After a 401: another token than the one that failed, by one shared refresh. */
  repair(
    account: AccountId,
    failedFingerprint: string,
    signal: AbortSignal | null,
  ): Promise<UsableCredential>;
  isOwnAccountToken(token: string): boolean;
}

export interface ProxyDeps {
  readonly config: () => Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: Ids;
  readonly digest: Digest;
  readonly inflate: Inflate;
  readonly log: Log;
  readonly upstream: Upstream;
  readonly dialer: Dialer;
  readonly pool: PoolRuntime;
  readonly credentials: Credentials;
  readonly provider: (id: ProviderId) => ProviderEntry | null;
  readonly affinity: AffinityStore;
  readonly accounts: AccountStore;
  readonly decisions: DecisionLog;
  readonly bodyWatch: BodyWatch;
  readonly recoverySlots: RecoverySlots;
  readonly usage: UsageRecorder;
  readonly traffic: Traffic;
  /** Requests under way, so that a shutdown can end them. */
  readonly running: Set<AbortController>;
  readonly sockets: OpenSockets;
  /** Marks our requests to plain-http hosts, so that two proxies pointing at each other notice (B142). */
  readonly instanceId: string;
  /** Ends the process: the store is gone (ruling 9). */
  readonly fatal: (error: unknown) => void;
}

export interface HandlerDeps extends ProxyDeps {
  readonly admission: AdmissionSources;
  /** `/healthz`, `/v0/…` and the like; null when the path is not local. */
  readonly local: LocalRoutes;
  readonly isDraining: () => boolean;
  /** Models each provider is known to list. */
  readonly listedModels: () => ReadonlyMap<string, ReadonlySet<string>>;
}
