/**
 * What the pool keeps of one request between its steps. Opaque to the shell; `pool_runtime.ts` alone changes it.
 */
import type { DecisionRecord } from "../core/decision.ts";
import type { AccountId, AttemptId, Target } from "../core/domain.ts";
import type { Outcome } from "../core/outcome.ts";
import type { AccountSlot, ProviderSlot } from "../core/pool.ts";
import type { LedgerRow } from "../core/records.ts";
import type { Launch, RequestSpec, Step } from "../core/retry_plan.ts";
import type { RecoveryBudget } from "../core/sse_recovery.ts";

/** One provider as the request saw it when it began: accounts added later do not join. */
export interface PlanProvider {
  readonly slot: ProviderSlot;
  readonly accounts: readonly AccountSlot[];
  /** What may be asked of it in this request, fallbacks last. */
  readonly targets: Target[];
}

/** One entry of the request's route order. */
export interface PlanRoute {
  readonly provider: PlanProvider;
  readonly target: Target;
  readonly fallback: boolean;
}

/** A launch that was returned and not yet settled, or the one a repair belongs to. */
export interface LaunchState {
  readonly launch: Launch;
  readonly slot: AccountSlot;
  readonly route: PlanRoute;
  /** Credential material the account had at the launch. */
  readonly fingerprint: string;
}

/** What the slot still owes before the next account may be looked for. */
export type Pending =
  | { readonly kind: "repair"; readonly state: LaunchState }
  /** The same route once more, at once. */
  | {
    readonly kind: "again";
    readonly state: LaunchState;
    readonly cause: "repair" | "unpooled_repeat" | "strip_state";
  }
  /** The same route once more after a back-off; the outcome is booked only if that never happens. */
  | {
    readonly kind: "recovery";
    readonly state: LaunchState;
    readonly outcome: Outcome;
    readonly startAtMs: number;
    /** What is left once it is launched: an attempt that never was is not spent. */
    readonly budget: RecoveryBudget;
  };

/** A wait between two rounds. It may be slept in several stretches; together they never pass `capAtMs`. */
export interface RoundWait {
  readonly startedAtMs: number;
  readonly capAtMs: number;
  readonly untilMs: number;
  readonly reason: "cooldown" | "probe";
  /** The account waited for, whose waiters are counted to pace them. */
  readonly slot: AccountSlot;
}

export class RequestPlan {
  phase: "open" | "committed" | "cancelled" | "finished" = "open";
  /** Accounts in the snapshot. */
  readonly accountCount: number;
  ledger: LedgerRow;
  ledgerWritten = false;
  launchCount = 0;
  /** The last attempt that ended without an answer and was not charged yet. */
  uncharged: AttemptId | null = null;
  round = 0;
  slotsUsed = 0;
  /** Accounts that were a slot in this round. */
  readonly tried = new Set<AccountSlot>();
  /** Providers this round does not walk on through (ruling 4). */
  readonly leftThisRound = new Set<ProviderSlot>();
  /** Strikes this request booked on a provider since its last success. */
  readonly strikes = new Map<ProviderSlot, number>();
  /** The request's own failure times that no record of the pool holds. */
  readonly retryAtMs = new Map<ProviderSlot, number>();
  readonly outcomes = new Map<AccountSlot, Outcome>();
  readonly repaired = new Set<AccountSlot>();
  readonly repeated = new Set<AccountSlot>();
  stripped = false;
  recovery: RecoveryBudget | null = null;
  /** The request is no longer withheld: its budget, spent or not, says nothing any more. */
  recoveryEnded = false;
  /** The account that recovery asked again, until another one is asked. */
  recovering: AccountSlot | null = null;
  current: LaunchState | null = null;
  pending: Pending | null = null;
  wait: RoundWait | null = null;
  /** A probe of somebody else was waited for in vain. */
  probeHangs = false;
  /** The last word: an answer, a relay, or nothing more. */
  verdict: Step | null = null;
  /** Who holds the conversation, as far as this request knows. */
  holder: AccountId | null;
  readonly sessions: readonly string[];
  bindingKept = false;
  /** The holder nothing is heard of: the binding leaves it only when the replacement answered with a head (ruling 7). */
  unheard: AccountId | null = null;

  constructor(
    readonly spec: RequestSpec,
    readonly providers: readonly PlanProvider[],
    readonly routes: readonly PlanRoute[],
    ledger: LedgerRow,
    readonly record: DecisionRecord,
  ) {
    this.ledger = ledger;
    this.holder = spec.bound;
    this.sessions = spec.session === null ? [] : [spec.session, ...(spec.aliases ?? [])];
    let count = 0;
    for (const provider of providers) count += provider.accounts.length;
    this.accountCount = count;
  }

  get isReplayable(): boolean {
    return this.spec.replay === "replayable";
  }

  /** A new pass over the accounts with a fresh budget of slots. */
  openRound(): void {
    this.round++;
    this.slotsUsed = 0;
    this.tried.clear();
    this.leftThisRound.clear();
    this.record.rounds = this.round + 1;
  }

  strike(provider: ProviderSlot): void {
    this.strikes.set(provider, (this.strikes.get(provider) ?? 0) + 1);
  }
}
