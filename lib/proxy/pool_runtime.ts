/**
 * The pool at work: every request asks it for its next step, and every finished attempt is told to it.
 *
 * Synchronous and without clock or chance: time is an argument, and what a step decides is recorded, on disk
 * where it must be, before the step is returned. The shell and the simulation drive the same class.
 */
import { longestWaitMs, paceMs } from "../core/backoff.ts";
import type { AttemptRecord, CandidateRecord, DecisionRecord } from "../core/decision.ts";
import type { Account, AccountId, AttemptId, RetryPolicy, Target } from "../core/domain.ts";
import { incompleteAnswer, resolveFinalError } from "../core/final_error.ts";
import { charge, isLedgerFull, launchBound, mintAttempt, openLedger } from "../core/ledger.ts";
import { leaseNetworkProbe } from "../core/network_pause.ts";
import type { Outcome } from "../core/outcome.ts";
import { type AccountSlot, findSlot } from "../core/pool.ts";
import { hashUnit } from "../core/prng.ts";
import { leaseProviderProbe, leaseUntilMs } from "../core/provider_health.ts";
import type { QuotaReading } from "../core/records.ts";
import type { Launch, RepairResult, RequestSpec, Step } from "../core/retry_plan.ts";
import type { Strategy } from "../core/selector.ts";
import { DEFAULT_RECOVERY, openRecovery, planRecovery, type RecoveryPolicy } from "../core/sse_recovery.ts";
import type { AffinityStore, PoolStore } from "../ports.ts";
import { SessionBindings } from "./pool_affinity.ts";
import {
  bookHealth,
  bookOutcome,
  bookUnrepaired,
  leaveProvider,
  noteHead,
  noteOutput,
  settleLeases,
} from "./pool_booking.ts";
import {
  type Choice,
  clearestTarget,
  finalMembers,
  isModelExcluded,
  listCandidates,
  nearestReady,
  pickAgain,
  pickNext,
  pickThis,
  PROBE_POLL_MS,
  slotInPlan,
} from "./pool_choice.ts";
import type { PoolContext, RingConfig } from "./pool_context.ts";
import { PoolKeeper, type ReconcileResult } from "./pool_keeper.ts";
import { PoolRecords } from "./pool_records.ts";
import {
  type AccountView,
  describeAccounts,
  describeNetwork,
  describeProviders,
  explainTargets,
  type NetworkView,
  nextChangeMs,
  type ProviderView,
} from "./pool_view.ts";
import { type LaunchState, type PlanProvider, type PlanRoute, RequestPlan } from "./request_plan.ts";

export type { AccountView, NetworkView, ProviderView, ReconcileResult, RequestPlan, RingConfig };

/** Blocks recorded with one decision; more would fill memory with a big pool's refusals. */
export const CANDIDATE_RECORD_LIMIT = 200;
/** Sessions remembered as moved since the start, for ruling 8. */
const MOVED_SESSION_LIMIT = 10_000;

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
  /** Sessions whose binding moved; their history may hold another account's sealed state. */
  readonly #movedSessions = new Set<string>();
  #startedAtMs = 0;

  constructor(deps: PoolDeps) {
    this.#context = {
      records: new PoolRecords(deps.store),
      bindings: new SessionBindings(deps.affinity, deps.routing.sessionTtlMs),
      seed: deps.seed,
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
    this.#startedAtMs = nowMs;
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

  describeNetwork(_nowMs: number): NetworkView | null {
    return describeNetwork(this.#context);
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
      notes: [],
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
    const step = plan.verdict ?? this.#continueWait(plan, nowMs) ?? this.#continueSlot(plan, nowMs) ??
      this.#nextSlot(plan, nowMs);
    this.#flush(nowMs);
    return step;
  }

  /** The upstream answered `launch` with a complete head, or with first real output. */
  progress(plan: RequestPlan, launch: Launch, event: "head" | "semantic", nowMs: number): void {
    const state = plan.current;
    if (state === null || state.launch.attempt !== launch.attempt) return;
    noteHead(this.#context, state);
    if (event === "semantic") noteOutput(this.#context, state);
    this.#moveWithHead(plan, state, nowMs);
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
    endAttempt(plan, launch, outcome, nowMs);
    const heldLease = state.route.provider.slot.health.probe?.attempt === launch.attempt;
    settleLeases(this.#context, state, outcome, nowMs);
    if (outcome.kind === "cancelled") {
      if (plan.phase === "open") plan.phase = "cancelled";
    } else {
      plan.outcomes.set(state.slot, outcome);
      if (outcome.kind === "success") this.#moveWithHead(plan, state, nowMs);
      else plan.uncharged = launch.attempt;
      if (plan.phase === "committed") this.#bookCommitted(plan, state, outcome, nowMs, heldLease);
      else this.#judge(plan, state, outcome, nowMs, heldLease);
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

  /** The client has its first byte, or its upgrade: nothing of this request is ever sent again. */
  commit(plan: RequestPlan, launch: Launch, _nowMs: number): void {
    if (plan.phase !== "open" || plan.current?.launch.attempt !== launch.attempt) return;
    plan.phase = "committed";
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
    if (record.attempts.length > 1) this.#recordCandidates(plan, nowMs);
    this.#keeper.flushRings();
    this.#flush(nowMs);
    return record;
  }

  // ------------------------------------------------------------ after an attempt

  /** What an uncommitted outcome leads to; the order is the order of "must never" before "may". */
  #judge(plan: RequestPlan, state: LaunchState, outcome: Outcome, nowMs: number, heldLease: boolean): void {
    const { slot, launch } = state;
    const wasProbe = launch.probe !== "none" || launch.trial !== "none";
    if (outcome.kind === "success") {
      bookOutcome(this.#context, plan, state, outcome, nowMs, heldLease);
      plan.verdict = STOP;
      return;
    }
    if (!plan.isReplayable) {
      this.#bookOnce(plan, state, outcome, nowMs, heldLease);
      return;
    }
    if (outcome.kind === "request_fault") {
      if (outcome.state === "foreign_state" && !plan.stripped && this.#isAfterFailover(plan, slot)) {
        plan.stripped = true;
        plan.pending = { kind: "again", state, cause: "strip_state" };
      } else plan.verdict = { kind: "relay", launch };
      return;
    }
    if (outcome.kind === "no_response" && outcome.pooled && !plan.repeated.has(slot)) {
      plan.repeated.add(slot);
      plan.pending = { kind: "again", state, cause: "unpooled_repeat" };
      return;
    }
    if (outcome.kind === "unauthorized" && slot.account.refreshable && !plan.repaired.has(slot)) {
      plan.repaired.add(slot);
      plan.pending = { kind: "repair", state };
      return;
    }
    if (!wasProbe && this.#planRecovery(plan, state, outcome, nowMs)) return;
    if (outcome.kind === "incomplete") plan.verdict = { kind: "answer", answer: incompleteAnswer() };
    else this.#book(plan, state, outcome, nowMs, heldLease);
  }

  /** Row 52: one launch, and its own answer is the answer where there is one. */
  #bookOnce(
    plan: RequestPlan,
    state: LaunchState,
    outcome: Outcome,
    nowMs: number,
    heldLease: boolean,
  ): void {
    if (outcome.kind === "incomplete") {
      plan.verdict = { kind: "answer", answer: incompleteAnswer() };
      return;
    }
    if (outcome.kind === "unauthorized" && state.slot.account.refreshable) {
      bookUnrepaired(this.#context, state, outcome.code, nowMs);
    } else if (outcome.kind !== "request_fault") this.#book(plan, state, outcome, nowMs, heldLease);
    plan.verdict = hasUpstreamAnswer(outcome)
      ? { kind: "relay", launch: state.launch }
      : this.#finalAnswer(plan, nowMs);
  }

  /** Rows 34, 38, 41, 49: health only. A first 401 stays pending; the next request repairs it. */
  #bookCommitted(
    plan: RequestPlan,
    state: LaunchState,
    outcome: Outcome,
    nowMs: number,
    heldLease: boolean,
  ): void {
    if (outcome.kind === "unauthorized" && state.slot.account.refreshable) return;
    bookOutcome(this.#context, plan, state, outcome, nowMs, heldLease);
  }

  #book(plan: RequestPlan, state: LaunchState, outcome: Outcome, nowMs: number, heldLease: boolean): void {
    bookOutcome(this.#context, plan, state, outcome, nowMs, heldLease);
    if (plan.holder !== state.slot.account.id) return;
    // Nothing was heard, or a wall in front of everybody was: that is no reason to lose a warm cache (ruling 7).
    plan.moveOnHead = outcome.kind === "no_response" || outcome.kind === "edge_block";
  }

  #planRecovery(plan: RequestPlan, state: LaunchState, outcome: Outcome, nowMs: number): boolean {
    if (plan.recovery === null) return false;
    const { seed, settings } = this.#context;
    const planned = planRecovery(plan.recovery, outcome, plan.spec.id, seed, nowMs, settings.recovery);
    if (planned === null) return false;
    plan.recovery = planned.budget;
    plan.pending = { kind: "recovery", state, outcome, startAtMs: planned.startAtMs };
    if (planned.startAtMs > nowMs) {
      plan.record.waits.push({ fromMs: nowMs, untilMs: planned.startAtMs, reason: "recovery_backoff" });
    }
    return true;
  }

  /**
   * True when the history this request carries may hold state sealed for another account: it went to two
   * accounts, or its conversation moved, or moved before this process can tell (ruling 8).
   */
  #isAfterFailover(plan: RequestPlan, slot: AccountSlot): boolean {
    if (plan.record.attempts.some((attempt) => attempt.account !== slot.account.id)) return true;
    if (plan.spec.bound !== null && plan.spec.bound !== slot.account.id) return true;
    return plan.sessions.some((session) => {
      if (this.#movedSessions.has(session)) return true;
      const createdAtMs = this.#context.bindings.createdAtMs(session);
      return createdAtMs !== null && createdAtMs < this.#startedAtMs;
    });
  }

  // ------------------------------------------------------------ before an attempt

  /** What the slot still owes; `null` when the next account may be looked for. */
  #continueSlot(plan: RequestPlan, nowMs: number): Step | null {
    const { pending } = plan;
    if (pending === null) return null;
    const { state } = pending;
    if (pending.kind === "repair") {
      return { kind: "repair", account: state.slot.account.id, launch: state.launch };
    }
    if (pending.kind === "recovery" && nowMs < pending.startAtMs) {
      return { kind: "wait", untilMs: pending.startAtMs, reason: "recovery_backoff" };
    }
    plan.pending = null;
    const open = pending.kind !== "recovery" || nowMs <= (plan.recovery?.windowEndsAtMs ?? nowMs);
    const choice = open && !isLedgerFull(plan.ledger) ? pickAgain(this.#context, state, nowMs) : null;
    if (choice !== null) {
      return this.#launch(plan, choice, pending.kind === "recovery" ? "recovery" : pending.cause, nowMs);
    }
    if (pending.kind === "recovery") {
      // It will not be tried again after all, so what it ended with counts.
      if (pending.outcome.kind === "incomplete") {
        plan.verdict = { kind: "answer", answer: incompleteAnswer() };
        return plan.verdict;
      }
      this.#book(plan, state, pending.outcome, nowMs, false);
    }
    if (pending.kind === "again" && pending.cause === "strip_state") {
      plan.verdict = { kind: "relay", launch: state.launch };
      return plan.verdict;
    }
    return null;
  }

  #nextSlot(plan: RequestPlan, nowMs: number): Step {
    const { policy } = this.#context.settings;
    // Each turn of the loop opens a round, of which there are at most 1 + R.
    for (;;) {
      if (isLedgerFull(plan.ledger) || (!plan.isReplayable && plan.launchCount > 0)) break;
      const spent = policy.maxRetryCredentials > 0 && plan.slotsUsed >= policy.maxRetryCredentials;
      const choice = spent ? null : pickNext(this.#context, plan, nowMs);
      this.#leaveProviders(plan, choice, spent, nowMs);
      if (choice !== null) return this.#launchSlot(plan, choice, nowMs);
      if (!plan.isReplayable || plan.round >= policy.requestRetry) break;
      const limitMs = longestWaitMs(policy.maxRetryIntervalMs);
      const ready = limitMs > 0 ? nearestReady(this.#context, plan, nowMs) : null;
      if (ready === null || ready.readyAtMs - nowMs > limitMs) break;
      if (ready.readyAtMs > nowMs) return this.#startWait(plan, ready, limitMs, nowMs);
      plan.openRound();
    }
    plan.verdict = this.#finalAnswer(plan, nowMs);
    return plan.verdict;
  }

  /** Providers this request struck and now leaves open their cooldown (C6). */
  #leaveProviders(plan: RequestPlan, choice: Choice | null, spent: boolean, nowMs: number): void {
    for (const provider of plan.strikes.keys()) {
      if (choice?.route.provider.slot === provider) continue;
      // Out of slots is not out of accounts: the next round goes on inside the provider.
      if (choice === null && spent && plan.round < this.#context.settings.policy.requestRetry) {
        const rest = plan.providers.find((entry) => entry.slot === provider)!;
        if (rest.accounts.some((slot) => slot.blockedUntilMs <= nowMs && !plan.tried.has(slot))) continue;
      }
      leaveProvider(this.#context, plan, provider, nowMs);
    }
  }

  #launchSlot(plan: RequestPlan, choice: Choice, nowMs: number): Step {
    const placed = this.#placeSession(plan, choice, nowMs);
    const cause = plan.launchCount === 0
      ? "first"
      : plan.slotsUsed === 0 && plan.round > 0
      ? "round"
      : "failover";
    plan.slotsUsed++;
    plan.tried.add(placed.slot);
    if (placed === choice && choice.cursor >= 0) choice.route.provider.slot.cursor = choice.cursor;
    return this.#launch(plan, placed, cause, nowMs);
  }

  /** Mints the attempt, pays for it, takes its leases. Everything durable is flushed before it is returned. */
  #launch(plan: RequestPlan, choice: Choice, cause: Launch["cause"], nowMs: number): Step {
    const { records, settings } = this.#context;
    const { slot, route } = choice;
    const minted = mintAttempt(plan.ledger);
    plan.ledger = minted.ledger;
    this.#charge(plan);
    const gated = choice.network || choice.provider || choice.trial !== "none";
    const untilMs = gated ? leaseUntilMs(plan.spec.attemptTimeoutMs, nowMs) : null;
    const { attempt } = minted;
    if (choice.network) {
      records.setNetwork(leaseNetworkProbe(records.network, attempt, untilMs!, nowMs));
    } else if (choice.provider) {
      const provider = route.provider.slot;
      records.setProvider(provider, leaseProviderProbe(provider.health, attempt, untilMs!, nowMs));
    }
    if (choice.trial !== "none") {
      slot.trial = attempt;
      if (choice.trial === "recheck") {
        records.setHealth(slot, { ...slot.health, recheckedAtMs: nowMs }, nowMs);
      }
    }
    const launch: Launch = {
      attempt,
      counter: plan.ledger.counter,
      account: slot.account.id,
      provider: route.provider.slot.id,
      model: route.target.model,
      round: plan.round,
      cause,
      probe: choice.network ? "network" : choice.provider ? "provider" : choice.trial,
      trial: choice.trial,
      fresh: !plan.isReplayable || gated || cause === "unpooled_repeat",
      launchedAtMs: nowMs,
      leaseUntilMs: untilMs,
    };
    slot.inFlight++;
    plan.launchCount++;
    if (plan.recovery === null && plan.spec.recoveryAttempts > 0) {
      plan.recovery = openRecovery(plan.spec.recoveryAttempts, nowMs, settings.recovery);
    }
    plan.current = { launch, slot, route, fingerprint: slot.account.fingerprint };
    plan.record.attempts.push(openAttempt(launch));
    return { kind: "launch", launch };
  }

  #charge(plan: RequestPlan): void {
    const failed = plan.uncharged;
    if (failed === null) return;
    plan.uncharged = null;
    const charged = charge(plan.ledger, failed);
    if (!charged.ok) throw new Error(`Cannot charge ${failed}: ${charged.reason}`);
    plan.ledger = charged.ledger;
    plan.ledgerWritten = true;
    this.#context.records.push({ kind: "put_ledger", row: plan.ledger });
  }

  // ------------------------------------------------------------ conversations

  /** Binds or moves the conversation to the chosen account; the loser of a race adopts the winner (C22). */
  #placeSession(plan: RequestPlan, choice: Choice, nowMs: number): Choice {
    const { bindings } = this.#context;
    const { sessions, holder } = plan;
    const chosen = choice.slot.account.id;
    if (sessions.length === 0) return choice;
    if (holder === chosen) {
      if (!plan.bindingKept) bindings.keep(sessions, chosen, nowMs);
      plan.bindingKept = true;
      return choice;
    }
    if (choice.route.fallback) return choice;
    if (holder === null) {
      plan.holder = bindings.bind(sessions, chosen, nowMs);
      plan.bindingKept = true;
    } else if (this.#mayMove(plan, holder, nowMs)) {
      this.#move(plan, holder, chosen, nowMs);
    } else return choice;
    return plan.holder === chosen ? choice : this.#adopt(plan, choice, nowMs);
  }

  #adopt(plan: RequestPlan, choice: Choice, nowMs: number): Choice {
    const winner = slotInPlan(plan, plan.holder!);
    const adopted = winner === null ? null : pickThis(this.#context, plan, winner, nowMs);
    if (adopted !== null) return adopted;
    if (this.#mayMove(plan, plan.holder!, nowMs)) {
      this.#move(plan, plan.holder!, choice.slot.account.id, nowMs);
    }
    return choice;
  }

  /** Whether what keeps the conversation from its account is a reason to leave it for good. */
  #mayMove(plan: RequestPlan, holder: AccountId, nowMs: number): boolean {
    const { records } = this.#context;
    const slot = slotInPlan(plan, holder);
    // Not of this request's providers: another model of the same conversation is being asked for.
    if (slot === null) return !records.accounts.has(holder);
    if (slot.removed) return true;
    if (isModelExcluded(plan, slot, nowMs)) return false;
    const own = plan.outcomes.get(slot);
    if (own !== undefined) return !plan.moveOnHead;
    const unheard = slot.health.ladder !== null && slot.health.ladder.untilMs > nowMs &&
      slot.health.ladder.reason === "no_response";
    const gate = records.provider(slot.account.provider).health.cooldown?.reason;
    plan.moveOnHead = unheard || gate === "network" || gate === "edge_block";
    return !plan.moveOnHead;
  }

  /** The replacement answered: now the conversation may follow (ruling 7). */
  #moveWithHead(plan: RequestPlan, state: LaunchState, nowMs: number): void {
    const { holder } = plan;
    const account = state.slot.account.id;
    if (!plan.moveOnHead || holder === null || holder === account || state.route.fallback) return;
    plan.moveOnHead = false;
    this.#move(plan, holder, account, nowMs);
  }

  #move(plan: RequestPlan, from: AccountId, to: AccountId, nowMs: number): void {
    plan.holder = this.#context.bindings.move(plan.sessions, from, to, nowMs);
    if (plan.holder === from) return;
    plan.record.notes.push("bound_moved");
    for (const session of plan.sessions) {
      this.#movedSessions.delete(session);
      this.#movedSessions.add(session);
    }
    for (const oldest of this.#movedSessions) {
      if (this.#movedSessions.size <= MOVED_SESSION_LIMIT) break;
      this.#movedSessions.delete(oldest);
    }
  }

  // ------------------------------------------------------------ waiting

  #startWait(
    plan: RequestPlan,
    ready: NonNullable<ReturnType<typeof nearestReady>>,
    limitMs: number,
    nowMs: number,
  ): Step {
    const capAtMs = nowMs + limitMs;
    plan.wait = {
      startedAtMs: nowMs,
      capAtMs,
      untilMs: this.#wakeMs(plan, ready, capAtMs),
      reason: ready.probed ? "probe" : "cooldown",
      slot: ready.slot,
    };
    ready.slot.waiting++;
    return this.#waitStep(plan);
  }

  /** A wait under way: go on sleeping, sleep another stretch, or open the next round (`null`). */
  #continueWait(plan: RequestPlan, nowMs: number): Step | null {
    const { wait } = plan;
    if (wait === null) return null;
    if (nowMs < wait.untilMs) return this.#waitStep(plan);
    const ready = nearestReady(this.#context, plan, nowMs);
    if (ready !== null && ready.readyAtMs > nowMs && ready.readyAtMs <= wait.capAtMs) {
      // Somebody who woke earlier found it closed: still the same wait, within the same limit.
      plan.wait = {
        ...wait,
        untilMs: this.#wakeMs(plan, ready, wait.capAtMs),
        reason: ready.probed ? "probe" : "cooldown",
      };
      return this.#waitStep(plan);
    }
    this.#endWait(plan, nowMs);
    plan.openRound();
    return null;
  }

  #waitStep(plan: RequestPlan): Step {
    const { untilMs, reason } = plan.wait!;
    return { kind: "wait", untilMs, reason };
  }

  #wakeMs(plan: RequestPlan, ready: NonNullable<ReturnType<typeof nearestReady>>, capAtMs: number): number {
    const { seed } = this.#context;
    if (ready.probed) {
      const spread = Math.floor(hashUnit(seed, "poll", plan.spec.id) * PROBE_POLL_MS);
      return Math.min(ready.readyAtMs + spread, capAtMs);
    }
    return ready.readyAtMs + paceMs(seed, plan.spec.id, ready.slot.waiting, capAtMs - ready.readyAtMs);
  }

  #endWait(plan: RequestPlan, nowMs: number): void {
    const { wait } = plan;
    if (wait === null) return;
    plan.wait = null;
    wait.slot.waiting--;
    plan.record.waits.push({ fromMs: wait.startedAtMs, untilMs: nowMs, reason: wait.reason });
  }

  // ------------------------------------------------------------ ends

  #finalAnswer(plan: RequestPlan, nowMs: number): Step {
    const answer = resolveFinalError(finalMembers(this.#context, plan, nowMs), {
      nowMs,
      maxRetryIntervalMs: this.#context.settings.policy.maxRetryIntervalMs,
      undispatched: plan.launchCount === 0,
    });
    plan.record.rule = answer.rule;
    this.#recordCandidates(plan, nowMs);
    return { kind: "answer", answer };
  }

  #recordCandidates(plan: RequestPlan, nowMs: number): void {
    const { candidates } = plan.record;
    if (candidates.length > 0) return;
    const targetOf = (slot: AccountSlot, provider: unknown) =>
      clearestTarget(plan.providers.find((entry) => entry.slot === provider)!, slot, nowMs);
    candidates.push(
      ...listCandidates(
        this.#context,
        plan.providers,
        (provider, slot) => targetOf(slot, provider),
        CANDIDATE_RECORD_LIMIT,
        nowMs,
      ),
    );
    if (plan.accountCount > CANDIDATE_RECORD_LIMIT) plan.record.notes.push("candidates_cut");
  }

  /** Ends whatever is still open of a request nobody waits for any more. */
  #abandon(plan: RequestPlan, nowMs: number): void {
    this.#endWait(plan, nowMs);
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
    endAttempt(plan, state.launch, gone, nowMs);
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

/** True when there is an answer of the upstream to pass through: a status, and a body that ended by itself. */
function hasUpstreamAnswer(outcome: Outcome): boolean {
  if (outcome.origin !== "upstream" || outcome.status === null) return false;
  if (outcome.kind === "no_response" || outcome.kind === "incomplete") return false;
  if (outcome.kind !== "transient") return true;
  return outcome.cause !== "body_reset" && outcome.cause !== "idle_timeout" &&
    outcome.cause !== "malformed" && outcome.cause !== "first_byte_timeout";
}

function lastUncharged(
  request: string,
  counter: number,
  charged: readonly AttemptId[],
): AttemptId | null {
  const attempt = `${request}:${counter}`;
  return counter === 0 || charged.includes(attempt) ? null : attempt;
}

function openAttempt(launch: Launch): AttemptRecord {
  return {
    id: launch.attempt,
    account: launch.account,
    provider: launch.provider,
    model: launch.model,
    round: launch.round,
    cause: launch.cause,
    probe: launch.probe,
    startedAtMs: launch.launchedAtMs,
    endedAtMs: null,
    outcome: null,
    status: null,
    row: null,
  };
}

function endAttempt(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): void {
  const record = plan.record.attempts.findLast((attempt) => attempt.id === launch.attempt);
  if (record === undefined) return;
  record.endedAtMs = nowMs;
  record.outcome = outcome.code === "" || outcome.code === outcome.kind
    ? outcome.kind
    : `${outcome.kind}:${outcome.code}`;
  record.status = outcome.status;
  record.row = outcome.row;
}
