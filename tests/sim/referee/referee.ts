/**
 * The pool with somebody looking over its shoulder: each call is made, taken into the oracle, and compared.
 *
 * Throws `Violation` at the first difference, and lets `StoreFailure` pass: that ends the simulated process.
 */
import type { Account, AccountId, Target } from "../../../lib/core/domain.ts";
import type { DecisionRecord } from "../../../lib/core/decision.ts";
import type { Outcome } from "../../../lib/core/outcome.ts";
import type { QuotaReading } from "../../../lib/core/records.ts";
import type { Launch, RepairResult, RequestSpec, Step } from "../../../lib/core/retry_plan.ts";
import { StoreFailure } from "../../../lib/ports.ts";
import type {
  PoolReload,
  PoolRuntime,
  ReconcileResult,
  RequestPlan,
} from "../../../lib/proxy/pool_runtime.ts";
import { event, type PoolEvent, restarted } from "../checks/pool_event.ts";
import { bookAccount } from "../oracle/account_rules.ts";
import type { AccountOracle } from "../oracle/account_oracle.ts";
import type { Oracle } from "../oracle/oracle.ts";
import type { Pool, SocketTurn } from "../pool.ts";
import type { MirrorStore } from "../stores/mirror_store.ts";
import type { WatchedAffinityStore } from "../stores/watched_affinity.ts";
import { must, violate, Violation } from "../violation.ts";
import { Agreement } from "./agreement.ts";
import type { History } from "./history.ts";
import { RequestReferee } from "./request_referee.ts";

export class Referee implements Pool {
  readonly #pool: PoolRuntime;
  readonly #oracle: Oracle;
  readonly #disk: MirrorStore;
  readonly #affinity: WatchedAffinityStore;
  readonly #agreement: Agreement;
  readonly #requests: RequestReferee;
  #hasAccounts = false;

  constructor(
    pool: PoolRuntime,
    oracle: Oracle,
    disk: MirrorStore,
    affinity: WatchedAffinityStore,
    history: History,
  ) {
    this.#pool = pool;
    this.#oracle = oracle;
    this.#disk = disk;
    this.#affinity = affinity;
    this.#agreement = new Agreement(pool, oracle, disk);
    this.#requests = new RequestReferee(oracle, disk, affinity, history);
  }

  restore(nowMs: number): void {
    this.#oracle.restore(this.#disk, nowMs);
    this.#call(() => this.#pool.restore(nowMs));
  }

  reconcile(accounts: readonly Account[], nowMs: number): ReconcileResult {
    const wanted = this.#oracle.reconcile(accounts);
    const result = this.#call(() => this.#pool.reconcile(accounts, nowMs));
    const list = (ids: readonly AccountId[]) => [...ids].sort().join();
    for (const kind of ["added", "updated", "removed"] as const) {
      must(
        list(result[kind]) === list(wanted[kind]),
        "TABLE",
        () => `${kind} are said to be ${result[kind]}, not ${wanted[kind]}`,
      );
    }
    this.#check(this.#hasAccounts ? event("reconcile") : restarted("restart"), nowMs);
    this.#hasAccounts = true;
    return result;
  }

  reconfigure(reload: PoolReload): void {
    this.#call(() => this.#pool.reconfigure(reload));
    this.#oracle.reload(reload);
  }

  rotate(
    pool: string,
  ): { readonly targets: readonly Target[]; readonly fallbacks: readonly Target[] } | null {
    return this.#call(() => this.#pool.rotate(pool));
  }

  lookupBinding(sessions: readonly string[], nowMs: number): AccountId | null {
    const holder = this.#call(() => this.#pool.lookupBinding(sessions, nowMs));
    must(
      holder === null || !this.#oracle.removed.has(holder),
      "TABLE",
      () => `a session is bound to ${holder}, which was removed`,
    );
    return holder;
  }

  observeQuota(account: AccountId, reading: QuotaReading, nowMs: number): void {
    this.#call(() => this.#pool.observeQuota(account, reading, nowMs));
    const known = this.#oracle.accounts.get(account);
    if (known !== undefined) this.#oracle.readPage(known, reading, nowMs);
    this.#check(event(`page of ${account}`), nowMs);
  }

  noteLimitGroup(account: AccountId, group: string): void {
    this.#call(() => this.#pool.noteLimitGroup(account, group));
    const known = this.#oracle.accounts.get(account);
    if (known !== undefined) known.limitGroup = group;
  }

  refreshed(account: AccountId, fingerprint: string, nowMs: number): void {
    this.#call(() => this.#pool.refreshed(account, fingerprint, nowMs));
    const known = this.#oracle.accounts.get(account);
    if (known !== undefined) this.#oracle.refreshed(known, fingerprint);
    this.#check(event(`refresh of ${account}`), nowMs);
  }

  backgroundRefreshFailed(account: AccountId, outcome: Outcome, nowMs: number): void {
    this.#call(() => this.#pool.backgroundRefreshFailed(account, outcome, nowMs));
    const known = this.#oracle.accounts.get(account);
    if (known !== undefined) {
      // A mark that waited for this refresh is void when the refresh failed for reasons of its own (ruling 19).
      if (outcome.kind === "transient" && known.credential?.kind === "credential_invalid") {
        known.credential = null;
      }
      const trial = {
        attempt: null,
        model: null,
        launchedAtMs: nowMs,
        fingerprint: known.account.fingerprint,
      };
      bookAccount(known, outcome, trial, this.#oracle.ladderCapMs, nowMs);
    }
    this.#check(event(`failed refresh of ${account}`), nowMs);
  }

  setEnabled(account: AccountId, enabled: boolean, nowMs: number): boolean {
    return this.#operate(
      account,
      enabled ? "enabling" : "disabling",
      nowMs,
      () => this.#pool.setEnabled(account, enabled, nowMs),
      (known) => this.#oracle.setEnabled(known, enabled),
    );
  }

  resetAccount(account: AccountId, nowMs: number): boolean {
    return this.#operate(
      account,
      "reset",
      nowMs,
      () => this.#pool.resetAccount(account, nowMs),
      (known) => this.#oracle.clearTimes(known),
    );
  }

  toppedUp(account: AccountId, nowMs: number): boolean {
    return this.#operate(account, "top-up", nowMs, () => this.#pool.toppedUp(account, nowMs), (known) => {
      known.credits = null;
      known.version++;
    });
  }

  explain(targets: readonly Target[], nowMs: number): ReturnType<Pool["explain"]> {
    return this.#call(() => this.#pool.explain(targets, nowMs));
  }

  begin(spec: RequestSpec, nowMs: number): RequestPlan {
    const plan = this.#call(() => this.#pool.begin(spec, nowMs));
    this.#requests.begun(plan, spec, nowMs);
    return plan;
  }

  next(plan: RequestPlan, nowMs: number): Step {
    this.#affinity.writes.length = 0;
    const step = this.#call(() => this.#pool.next(plan, nowMs));
    const happened = this.#requests.stepping(plan, step, nowMs);
    this.#agreement.adopt(happened, nowMs);
    this.#requests.stepped(this.#pool, plan, step, nowMs);
    this.#check(happened, nowMs);
    return step;
  }

  progress(plan: RequestPlan, launch: Launch, progress: "head" | "semantic", nowMs: number): void {
    this.#affinity.writes.length = 0;
    this.#call(() => this.#pool.progress(plan, launch, progress, nowMs));
    this.#check(this.#requests.progressed(plan, launch, progress, nowMs), nowMs);
  }

  settle(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): void {
    this.#affinity.writes.length = 0;
    this.#call(() => this.#pool.settle(plan, launch, outcome, nowMs));
    this.#check(this.#requests.settled(plan, launch, outcome, nowMs), nowMs);
  }

  repaired(plan: RequestPlan, launch: Launch, result: RepairResult, nowMs: number): void {
    this.#affinity.writes.length = 0;
    this.#call(() => this.#pool.repaired(plan, launch, result, nowMs));
    this.#check(this.#requests.repaired(plan, launch, result, nowMs), nowMs);
  }

  commit(plan: RequestPlan, launch: Launch, nowMs: number): void {
    this.#call(() => this.#pool.commit(plan, launch, nowMs));
    this.#check(this.#requests.committed(plan, launch), nowMs);
  }

  turnEnded(plan: RequestPlan, launch: Launch, turn: SocketTurn, nowMs: number): void {
    this.#call(() => this.#pool.turnEnded(plan, launch, turn, nowMs));
    this.#check(this.#requests.turnEnded(plan, launch, turn, nowMs), nowMs);
    this.#requests.turnOver(plan, launch, turn.outcome);
  }

  socketClosed(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): void {
    this.#call(() => this.#pool.socketClosed(plan, launch, outcome, nowMs));
    this.#check(this.#requests.socketClosed(plan, launch, nowMs), nowMs);
  }

  endRecovery(plan: RequestPlan, note: string): void {
    this.#call(() => this.#pool.endRecovery(plan, note));
    this.#requests.recoveryEnded(plan);
  }

  cancel(plan: RequestPlan, nowMs: number): void {
    this.#affinity.writes.length = 0;
    this.#call(() => this.#pool.cancel(plan, nowMs));
    must(this.#affinity.writes.length === 0, "P11", () => "a cancelled request writes bindings");
    this.#check(this.#requests.cancelled(plan, nowMs), nowMs);
  }

  finish(plan: RequestPlan, status: number, code: string | null, nowMs: number): DecisionRecord {
    const { phase } = this.#requests.of(plan);
    const record = this.#call(() => this.#pool.finish(plan, status, code, nowMs));
    this.#check(this.#requests.finished(plan, nowMs), nowMs);
    if (phase === "open" || phase === "committed") this.#requests.requireCooled(plan);
    this.#requireRecord(plan, record);
    return record;
  }

  /** What is remembered of a request is safe to show, and whole. */
  #requireRecord(plan: RequestPlan, record: DecisionRecord): void {
    const request = this.#requests.of(plan);
    must(
      record.attempts.length === request.launches.length,
      "P33",
      () => `${record.requestId} records ${record.attempts.length} attempts`,
    );
    must(
      record.attempts.every(({ endedAtMs }) => endedAtMs !== null),
      "P35",
      () => `${record.requestId} records an open attempt`,
    );
    const text = JSON.stringify(record);
    must(!text.includes("SENT-"), "P22", () => `${record.requestId} records a session or a token`);
    const ledger = this.#disk.ledgers.get(plan.ledger.request);
    must(
      ledger === undefined || ledger.closed,
      "P26",
      () => `${plan.ledger.request} is finished with an open ledger`,
    );
  }

  #operate(
    account: AccountId,
    name: string,
    nowMs: number,
    call: () => boolean,
    apply: (known: AccountOracle) => void,
  ): boolean {
    const found = this.#call(call);
    const known = this.#oracle.accounts.get(account);
    must(found === (known !== undefined), "TABLE", () => `${name} of ${account} is said to be ${found}`);
    if (known !== undefined) apply(known);
    this.#check(event(`${name} of ${account}`), nowMs);
    return found;
  }

  #check(poolEvent: PoolEvent, nowMs: number): void {
    this.#agreement.check(poolEvent, nowMs);
  }

  #call<T>(call: () => T): T {
    try {
      return call();
    } catch (error) {
      if (error instanceof StoreFailure || error instanceof Violation) throw error;
      return violate("THROWS", error instanceof Error ? error.stack ?? error.message : String(error));
    }
  }
}
