/** What the program is made of, and what is left of it once it runs. */
import type { Config } from "./config_types.ts";
import type { DecisionRecord } from "./core/decision.ts";
import type {
  Clock,
  CredentialFiles,
  Dialer,
  Digest,
  Ids,
  Inflate,
  Random,
  TokenIssuer,
  Upstream,
  UsageClient,
} from "./ports.ts";
import type { AccountDirectory } from "./proxy/account_directory.ts";
import type { DecisionLog } from "./proxy/decision_log.ts";
import type { PoolRuntime } from "./proxy/pool_runtime.ts";
import type { RecoverySlots } from "./proxy/recovery_slots.ts";
import type { RunningServer } from "./proxy/server.ts";
import type { ProcessLog } from "./runtime/log.ts";
import type { Database } from "./store/database.ts";

/** Everything the outside world lends; `main.ts` brings the real ones, tests and the demo their own. */
export interface Outside {
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: Ids;
  readonly digest: Digest;
  readonly inflate: Inflate;
  readonly log: ProcessLog;
  readonly upstream: Upstream;
  readonly dialer: Dialer;
  /** A reloaded configuration may name another egress proxy. */
  useProxy(proxyUrl: string): void;
  readonly issuer: TokenIssuer;
  readonly usagePages: UsageClient;
  readonly files: CredentialFiles;
  readonly database: Database;
  /** Told of every finished request; absent where nobody collects traces. */
  readonly trace?: (record: DecisionRecord) => void;
}

export interface App {
  readonly url: string;
  readonly server: RunningServer;
  readonly pool: PoolRuntime;
  readonly decisions: DecisionLog;
  readonly recoverySlots: RecoverySlots;
  readonly directory: AccountDirectory;
  /** Made at this very start and never shown again; null on later starts or with configured keys. */
  readonly firstRunKey: string | null;
  /** Resolves with the cause when the process must end by itself (ruling 9). */
  readonly failed: Promise<Error>;
  /** Takes over another configuration. @throws StartRefused; then the old one stays. @returns the keys that need a restart to change. */
  reload(config: Config): Promise<readonly string[]>;
  /** Drains for at most `graceMs`, then ends what is left. Leaves the database closed. */
  stop(graceMs: number): Promise<void>;
}
