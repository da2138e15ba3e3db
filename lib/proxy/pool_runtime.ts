/**
 * The pool at work: every request asks it for its next step, and every finished attempt is told to it.
 *
 * Synchronous and without clock or chance: time is an argument, and what a step decides is recorded, on disk
 * where it must be, before the step is returned. The shell and the simulation drive the same class.
 */
import type { CandidateRecord, DecisionRecord } from "../core/decision.ts";
import type { Account, AccountId, AttemptId, ProviderId, RetryPolicy, Target } from "../core/domain.ts";
import { launchBound, openLedger } from "../core/ledger.ts";
import type { Outcome } from "../core/outcome.ts";
import { type AccountSlot, findSlot } from "../core/pool.ts";
import type { QuotaReading } from "../core/records.ts";
import type { Launch, RepairResult, RequestSpec, Step } from "../core/retry_plan.ts";
import type { Strategy } from "../core/selector.ts";
import { DEFAULT_RECOVERY, type RecoveryPolicy } from "../core/sse_recovery.ts";
import type { AffinityStore, PoolStore } from "../ports.ts";
import { SessionBindings } from "./pool_affinity.ts";
import { bookHealth, leaveProvider, noteHead, noteOutput, settleLeases } from "./pool_booking.ts";
import type { PoolContext, RingConfig } from "./pool_context.ts";
import { PoolKeeper, type ReconcileResult } from "./pool_keeper.ts";
import { closeRecord } from "./pool_launch.ts";
import { PoolRecords } from "./pool_records.ts";
import { moveWithHead } from "./pool_sessions.ts";
import { bookTurn, closeSocket, type SocketTurn } from "./pool_sockets.ts";
import { continueSlot, nextSlot, recordCandidates } from "./pool_steps.ts";
import { judgeCommitted, judgeUncommitted, noteRecovered } from "./pool_verdicts.ts";
import {
  type AccountView,
  describeAccounts,
  describeNetwork,
  describeProvider,
  describeProviders,
  explainTargets,
  type NetworkView,
  nextChangeMs,
  type ProviderView,
} from "./pool_view.ts";
import { continueWait, endWait } from "./pool_waits.ts";
import { PoolWatch } from "./pool_watch.ts";
import { type PlanProvider, type PlanRoute, RequestPlan } from "./request_plan.ts";

export type { AccountView, NetworkView, ProviderView, ReconcileResult, RequestPlan, RingConfig };

export interface PoolDeps {
  readonly store: PoolStore;
  readonly affinity: AffinityStore;
  readonly policy: RetryPolicy;
  readonly quota: { readonly maxParkMs: number; readonly recheck: boolean };
  readonly routing: { readonly strategy: Strategy; readonly sessionTtlMs: number };
  /** Seeds jitter; the same seed and the same calls give the same steps. */
  readonly seed: number;
  readonly recovery?: RecoveryPolicy;
  readonly pools?: readonly RingConfig[];
}

/** The part of the settings a reload may replace. */
export interface PoolReload {
  readonly policy?: RetryPolicy;
  readonly quota?: PoolDeps["quota"];
  readonly routing?: PoolDeps["routing"];
  readonly recovery?: RecoveryPolicy;
  readonly pools?: readonly RingConfig[];
}

const STOP: Step = { kind: "stop" };

export class PoolRuntime {
  readonly #context: PoolContext;
  readonly #keeper: PoolKeeper;

  constructor(deps: PoolDeps) {
    this.#context = {
      records: new PoolRecords(deps.store),
      bindings: new SessionBindings(deps.affinity, deps.routing.sessionTtlMs),
      seed: deps.seed,
      startedAtMs: 0,
      settings: {
        policy: deps.policy,
        quota: deps.quota,
        routing: deps.routing,
        recovery: deps.recovery ?? DEFAULT_RECOVERY,
        rings: deps.pools ?? [],
      },
    };
    this.#keeper = new PoolKeeper(this.#context, deps.store);
  }

  // ------------------------------------------------------------ the pool itself

  /** Reads the durable state; call once, before `reconcile`. @throws StoreFailure on rows that cannot be true. */
  restore(nowMs: number): void {
    this.#context.startedAtMs = nowMs;
    this.#keeper.restore(nowMs);
  }

  /** Makes the pool hold exactly these accounts: start-up and hot reload alike. */
  reconcile(accounts: readonly Account[], nowMs: number): ReconcileResult {
    return this.#keeper.reconcile(accounts, nowMs);
  }

  /** Takes new settings. Requests under way meet them at their next step; their launch bound stays. */
  reconfigure(reload: PoolReload): void {
    const { pools, ...rest } = reload;
    this.#context.settings = { ...this.#context.settings, ...rest, ...(pools && { rings: pools }) };
    this.#context.bindings.setTtl(this.#context.settings.routing.sessionTtlMs);
    if (pools !== undefined) this.#keeper.loadRings();
  }

  /** The order in which a pool name is served now; `null` when there is no such pool. Turns the ring. */
  rotate(
    pool: string,
  ): { readonly targets: readonly Target[]; readonly fallbacks: readonly Target[] } | null {
    return this.#keeper.rotate(pool);
  }

  /** Who holds a conversation, by any of its digests. */
  lookupBinding(sessions: readonly string[], nowMs: number): AccountId | null {
    return this.#context.bindings.lookup(sessions, nowMs);
  }

  /** A usage page, a header on a 2xx or a notice in a stream: may park, never a deadline, never a strike. */
  observeQuota(account: AccountId, reading: QuotaReading, nowMs: number): void {
    this.#change(account, (slot) => this.#keeper.observeQuota(slot, reading, nowMs));
  }

  /** An answer named the organisation whose limits this account shares with others of its provider. */
  noteLimitGroup(account: AccountId, group: string): void {
    const slot = this.#context.records.accounts.get(account);
    if (slot !== undefined) slot.limitGroup = group;
  }

  /** A refresh outside of any request succeeded. */
  refreshed(account: AccountId, fingerprint: string, nowMs: number): void {
    this.#change(account, (slot) => this.#keeper.refreshed(slot, fingerprint, nowMs));
  }

  /** A refresh outside of any request failed: `refresh_dead`, or a transient outcome of cause `refresh`. */
  backgroundRefreshFailed(account: AccountId, outcome: Outcome, nowMs: number): void {
    this.#change(account, (slot) => this.#keeper.refreshFailed(slot, outcome, nowMs));
  }

  /** @returns false when the account is unknown. */
  setEnabled(account: AccountId, enabled: boolean, nowMs: number): boolean {
    return this.#change(account, (slot) => this.#keeper.setEnabled(slot, enabled, nowMs));
  }

  /** An operator clears time blocks (C35). @returns false when the account is unknown. */
  resetAccount(account: AccountId, nowMs: number): boolean {
    return this.#change(account, (slot) => this.#keeper.resetAccount(slot, nowMs));
  }

  /** An operator says credits are back. @returns false when the account is unknown. */
  toppedUp(account: AccountId, nowMs: number): boolean {
    return this.#change(account, (slot) => this.#keeper.toppedUp(slot, nowMs));
  }

  describeAccounts(nowMs: number): AccountView[] {
    return describeAccounts(this.#context, nowMs);
  }

  describeProviders(nowMs: number): ProviderView[] {
    return describeProviders(this.#context, nowMs);
  }

  /** One provider, also where the pool never met it. */
  describeProvider(id: ProviderId, nowMs: number): ProviderView {
    return describeProvider(this.#context, id, nowMs);
  }

  describeNetwork(_nowMs: number): NetworkView | null {
    return describeNetwork(this.#context);
  }

  /** Looks at what changed between one look and the next; each watch has a memory of its own. */
  watch(): PoolWatch {
    return new PoolWatch(this.#context);
  }

  explain(targets: readonly Target[], nowMs: number): CandidateRecord[] {
    return explainTargets(this.#context, targets, nowMs);
  }

  /** The next moment at which some block, gate or lease runs out; `null` when nothing is timed. */
  nextWakeMs(nowMs: number): number | null {
    return nextChangeMs(this.#context, nowMs);
  }

  // ------------------------------------------------------------ one request

  /** Opens a request: the accounts known now are the ones it may use. */
  begin(spec: RequestSpec, nowMs: number): RequestPlan {
    const routes = this.#routesOf(spec);
    const providers = [...new Set(routes.map((route) => route.provider))];
    const record: DecisionRecord = {
      requestId: spec.id,
      atMs: nowMs,
      route: spec.route,
      model: spec.model,
      tenant: spec.tenant,
      status: null,
      code: null,
      rule: null,
      rounds: 1,
      endedAtMs: null,
      waits: [],
      candidates: [],
      attempts: [],
      notes: [...spec.notes ?? []],
      movedTo: null,
    };
    const resumed = this.#keeper.takeOpenLedger(spec.idempotency, nowMs);
    const count = providers.reduce((sum, provider) => sum + provider.accounts.length, 0);
    const bound = launchBound(this.#context.settings.policy, count, spec.recoveryAttempts);
    const ledger = resumed ?? openLedger(spec.id, spec.idempotency, bound, nowMs);
    const plan = new RequestPlan(spec, providers, routes, ledger, record);
    if (resumed !== null) {
      // The crash lost the last attempt: a launch now follows it, and is charged for it.
      plan.ledgerWritten = true;
      plan.uncharged = lastUncharged(resumed.request, resumed.counter, resumed.charged);
      record.notes.push("ledger_resumed");
    }
    return plan;
  }

  /**
   * Decides what the request does next. Call it after `begin`, and again after each `settle`, `repaired` or wait.
   *
   * @throws Error when a launch of this request is still unsettled: that would be two at once.
   */
  next(plan: RequestPlan, nowMs: number): Step {
    if (plan.phase !== "open") return STOP;
    if (plan.current !== null) {
      throw new Error(`Cannot decide: ${plan.current.launch.attempt} is not settled`);
    }
    const context = this.#context;
    const step = plan.verdict ?? continueWait(context, plan, nowMs) ?? continueSlot(context, plan, nowMs) ??
      nextSlot(context, plan, nowMs);
    this.#flush(nowMs);
    return step;
  }

  /** The upstream answered `launch` with a complete head, or with first real output. */
  progress(plan: RequestPlan, launch: Launch, event: "head" | "semantic", nowMs: number): void {
    const state = plan.current;
    if (state === null || state.launch.attempt !== launch.attempt) return;
    noteHead(this.#context, state);
    if (event === "semantic") noteOutput(this.#context, state);
    moveWithHead(this.#context, plan, state, nowMs);
    this.#flush(nowMs);
  }

  /**
   * Tells how an attempt ended. Late, repeated and unknown attempts change nothing; after `commit` only health
   * is booked.
   */
  settle(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): void {
    const state = plan.current;
    if (state === null || state.launch.attempt !== launch.attempt) return;
    plan.current = null;
    state.slot.inFlight--;
    closeRecord(plan, launch, outcome, nowMs);
    const heldLease = state.route.provider.slot.health.probe?.attempt === launch.attempt;
    settleLeases(this.#context, state, outcome, nowMs);
    if (outcome.kind === "cancelled") {
      if (plan.phase === "open") plan.phase = "cancelled";
    } else {
      plan.outcomes.set(state.slot, outcome);
      if (outcome.kind === "success") {
        moveWithHead(this.#context, plan, state, nowMs);
        noteRecovered(plan, state);
      } else plan.uncharged = launch.attempt;
      const judge = plan.phase === "committed" ? judgeCommitted : judgeUncommitted;
      judge(this.#context, plan, state, outcome, heldLease, nowMs);
    }
    this.#flush(nowMs);
  }

  /** Tells how the repair asked for by a `repair` step ended. */
  repaired(plan: RequestPlan, launch: Launch, result: RepairResult, nowMs: number): void {
    const { pending } = plan;
    if (plan.phase !== "open" || pending?.kind !== "repair") return;
    if (pending.state.launch.attempt !== launch.attempt) return;
    const { state } = pending;
    if (result.kind === "fresh_token") {
      this.#keeper.refreshed(state.slot, result.fingerprint, nowMs);
      plan.pending = { kind: "again", state, cause: "repair" };
    } else {
      plan.pending = null;
      plan.outcomes.set(state.slot, result.outcome);
      bookHealth(this.#context, state, result.outcome, nowMs);
    }
    this.#flush(nowMs);
  }

  /** The request is not withheld any longer (row 43): nothing of it is recovered from now on. */
  endRecovery(plan: RequestPlan, note: string): void {
    plan.recoveryEnded = true;
    plan.record.notes.push(note);
  }

  /** The client has its first byte, or its upgrade: nothing of this request is ever sent again. */
  commit(plan: RequestPlan, launch: Launch, _nowMs: number): void {
    if (plan.phase !== "open" || plan.current?.launch.attempt !== launch.attempt) return;
    plan.phase = "committed";
  }

  /** A turn over the upgraded connection of `launch` ended (rows 48, 49); the launch goes on. */
  turnEnded(plan: RequestPlan, launch: Launch, turn: SocketTurn, nowMs: number): void {
    bookTurn(this.#context, plan, launch, turn, nowMs);
    this.#flush(nowMs);
  }

  /** The upgraded connection of `launch` is closed; `outcome` is for the record alone. */
  socketClosed(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): void {
    closeSocket(this.#context, plan, launch, outcome, nowMs);
    this.#flush(nowMs);
  }

  /** The client is gone: its leases are idle again, nobody is blamed, nothing is refunded. */
  cancel(plan: RequestPlan, nowMs: number): void {
    if (plan.phase === "finished") return;
    plan.phase = "cancelled";
    this.#abandon(plan, nowMs);
    this.#flush(nowMs);
  }

  /**
   * Closes the request. The plan is dead afterwards.
   *
   * @param status  what the client was told; 0 when it left first.
   * @param code  safe code of the answer; `null` for a success.
   */
  finish(plan: RequestPlan, status: number, code: string | null, nowMs: number): DecisionRecord {
    const { record } = plan;
    if (plan.phase === "finished") return record;
    const cancelled = plan.phase === "cancelled";
    this.#abandon(plan, nowMs);
    if (!cancelled) {
      for (const provider of plan.strikes.keys()) leaveProvider(this.#context, plan, provider, nowMs);
    }
    plan.phase = "finished";
    if (plan.ledgerWritten) {
      plan.ledger = { ...plan.ledger, closed: true };
      this.#context.records.push({ kind: "put_ledger", row: plan.ledger });
    }
    record.status = status;
    record.code = code;
    record.endedAtMs = nowMs;
    if (record.attempts.length > 1) recordCandidates(this.#context, plan, nowMs);
    this.#keeper.flushRings();
    this.#flush(nowMs);
    return record;
  }

  // ------------------------------------------------------------ inside

  /** Ends whatever is still open of a request nobody waits for any more. */
  #abandon(plan: RequestPlan, nowMs: number): void {
    endWait(plan, nowMs);
    plan.pending = null;
    const state = plan.current;
    if (state === null) return;
    plan.current = null;
    state.slot.inFlight--;
    const gone: Outcome = {
      kind: "cancelled",
      row: 45,
      scope: "none",
      origin: "client",
      status: null,
      code: "client_cancelled",
    };
    closeRecord(plan, state.launch, gone, nowMs);
    settleLeases(this.#context, state, gone, nowMs);
  }

  #routesOf(spec: RequestSpec): PlanRoute[] {
    const { records } = this.#context;
    const providers = new Map<string, PlanProvider>();
    const routes: PlanRoute[] = [];
    const add = (target: Target, fallback: boolean) => {
      let provider = providers.get(target.provider);
      if (provider === undefined) {
        const slot = records.provider(target.provider);
        provider = { slot, accounts: this.#snapshot(spec, slot.accounts), targets: [] };
        providers.set(target.provider, provider);
      }
      provider.targets.push(target);
      routes.push({ provider, target, fallback });
    };
    for (const target of spec.targets) add(target, false);
    for (const target of spec.fallbacks) add(target, true);
    return routes;
  }

  #snapshot(spec: RequestSpec, accounts: readonly AccountSlot[]): readonly AccountSlot[] {
    if (!spec.pinned) return accounts;
    const slot = spec.bound === null ? null : findSlot(accounts, spec.bound);
    return slot === null ? [] : [slot];
  }

  #change(account: AccountId, change: (slot: AccountSlot) => void): boolean {
    const slot = this.#context.records.accounts.get(account);
    if (slot === undefined) return false;
    change(slot);
    return true;
  }

  #flush(nowMs: number): void {
    if (!this.#context.records.hasChanges) return;
    this.#keeper.flushRings();
    this.#context.records.flush(nowMs);
  }
}

function lastUncharged(
  request: string,
  counter: number,
  charged: readonly AttemptId[],
): AttemptId | null {
  const attempt = `${request}:${counter}`;
  return counter === 0 || charged.includes(attempt) ? null : attempt;
}
