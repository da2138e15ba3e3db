/** What the parts of the pool runtime share: records, bindings, and settings that a reload may replace. */
import type { RetryPolicy, Target } from "../core/domain.ts";
import type { RingMember } from "../core/ring.ts";
import type { Strategy } from "../core/selector.ts";
import type { RecoveryPolicy } from "../core/sse_recovery.ts";
import type { SessionBindings } from "./pool_affinity.ts";
import type { PoolRecords } from "./pool_records.ts";

/** A pool name's members, as the configuration gives them. */
export interface RingConfig {
  readonly name: string;
  readonly members: readonly RingMember[];
  readonly fallback: readonly Target[];
}

export interface PoolSettings {
  readonly policy: RetryPolicy;
  readonly quota: { readonly maxParkMs: number; readonly recheck: boolean };
  readonly routing: { readonly strategy: Strategy; readonly sessionTtlMs: number };
  readonly recovery: RecoveryPolicy;
  readonly rings: readonly RingConfig[];
}

export interface PoolContext {
  readonly records: PoolRecords;
  readonly bindings: SessionBindings;
  readonly seed: number;
  /** When this process read the durable state. */
  startedAtMs: number;
  settings: PoolSettings;
}
