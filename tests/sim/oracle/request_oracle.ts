/** What is known of one request, from its calls alone. */
import type { RetryPolicy, Target } from "../../../lib/core/domain.ts";
import type { Outcome } from "../../../lib/core/outcome.ts";
import type { Launch, RequestSpec } from "../../../lib/core/retry_plan.ts";
import type { AccountOracle } from "./account_oracle.ts";
import type { ProviderOracle } from "./provider_oracle.ts";

export interface RouteOracle {
  readonly provider: ProviderOracle;
  readonly target: Target;
  readonly fallback: boolean;
}

export interface OpenLaunch {
  readonly launch: Launch;
  readonly account: AccountOracle;
  readonly provider: ProviderOracle;
  readonly fingerprint: string;
}

export class RequestOracle {
  readonly spec: RequestSpec;
  readonly routes: readonly RouteOracle[];
  /** Accounts known when it began, by provider; one added later is another object. */
  readonly snapshot: ReadonlyMap<ProviderOracle, readonly AccountOracle[]>;
  readonly beganAtMs: number;
  /** B: launches the ledger allows. */
  bound: number;
  /** Highest attempt counter; a resumed ledger does not begin at zero. */
  counter = 0;
  /** Loosest policy met so far: a reload in mid-request may have allowed more. */
  loosest: RetryPolicy;
  phase: "open" | "committed" | "cancelled" | "finished" = "open";
  round = 0;
  readonly slots = new Set<AccountOracle>();
  readonly launches: Launch[] = [];
  current: OpenLaunch | null = null;
  last: OpenLaunch | null = null;
  readonly outcomes = new Map<AccountOracle, Outcome>();
  readonly repaired = new Set<AccountOracle>();
  readonly repeated = new Set<AccountOracle>();
  readonly strikes = new Map<ProviderOracle, number>();
  readonly left = new Set<ProviderOracle>();
  readonly retryAtMs = new Map<ProviderOracle, { readonly fromMs: number; readonly toMs: number }>();
  /** Accounts that were out of reach when this request went round them. */
  readonly unheard = new Set<AccountOracle>();
  repair: OpenLaunch | null = null;
  /** Ended in a way that may be made good on the same route; booked only if it is not. */
  deferred: { readonly open: OpenLaunch; readonly outcome: Outcome } | null = null;
  recoveries = 0;
  /** It is no longer withheld. */
  isRecoveryEnded = false;
  stripped = false;
  /** The last word was given. */
  isAnswered = false;
  isServed = false;
  wait: { readonly startedAtMs: number; readonly untilMs: number } | null = null;

  constructor(
    spec: RequestSpec,
    routes: readonly RouteOracle[],
    snapshot: ReadonlyMap<ProviderOracle, readonly AccountOracle[]>,
    policy: RetryPolicy,
    beganAtMs: number,
  ) {
    this.spec = spec;
    this.routes = routes;
    this.snapshot = snapshot;
    this.loosest = policy;
    this.beganAtMs = beganAtMs;
    const accounts = this.accountCount;
    const { requestRetry, maxRetryCredentials } = policy;
    const slots = maxRetryCredentials === 0 ? accounts : Math.min(maxRetryCredentials, accounts);
    this.bound = (1 + requestRetry) * slots + accounts + spec.recoveryAttempts;
  }

  get accountCount(): number {
    let count = 0;
    for (const accounts of this.snapshot.values()) count += accounts.length;
    return count;
  }

  get isReplayable(): boolean {
    return this.spec.replay === "replayable";
  }

  /** Meets a policy that a reload brought. */
  meet(policy: RetryPolicy): void {
    const widest = (a: number, b: number) => a === 0 || b === 0 ? 0 : Math.max(a, b);
    this.loosest = {
      requestRetry: Math.max(this.loosest.requestRetry, policy.requestRetry),
      maxRetryCredentials: widest(this.loosest.maxRetryCredentials, policy.maxRetryCredentials),
      maxRetryIntervalMs: Math.max(this.loosest.maxRetryIntervalMs, policy.maxRetryIntervalMs),
    };
  }

  /** Enters the round a launch or a wait belongs to. */
  enterRound(round: number): void {
    if (round === this.round) return;
    this.round = round;
    this.wait = null;
    this.slots.clear();
    this.left.clear();
  }

  find(account: string): AccountOracle | null {
    for (const accounts of this.snapshot.values()) {
      for (const known of accounts) if (known.id === account) return known;
    }
    return null;
  }
}
