/**
 * Drives `PoolRuntime` through whole requests on a clock that moves when told.
 *
 * A script says how each launch ends; launches nobody scripted fail the test.
 */
import type { DecisionRecord } from "../../lib/core/decision.ts";
import type { Account, Target } from "../../lib/core/domain.ts";
import type { FinalAnswer } from "../../lib/core/final_error.ts";
import type { Outcome } from "../../lib/core/outcome.ts";
import type { Launch, RepairResult, RequestSpec, Step } from "../../lib/core/retry_plan.ts";
import { type PoolDeps, PoolRuntime, type RequestPlan } from "../../lib/proxy/pool_runtime.ts";
import { MemoryAffinityStore, MemoryPoolStore } from "./memory_store.ts";

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
/** Where test time begins: far from zero, so that "0 means none" cannot hide a mistake. */
export const START_MS = 1_700_000_000_000;

export function account(id: string, given: Partial<Account> = {}): Account {
  return { id, provider: "codex", fingerprint: `${id}-1`, enabled: true, refreshable: true, ...given };
}

/** How one launch ends, and what is seen on the way. */
export interface Ending {
  readonly outcome: Outcome;
  readonly afterMs?: number;
  readonly head?: boolean;
  readonly semantic?: boolean;
  readonly commit?: boolean;
}

export type Script = (launch: Launch, nowMs: number) => Outcome | Ending;

export interface Result {
  readonly launches: readonly Launch[];
  /** Launch moments relative to the request's begin. */
  readonly atMs: readonly number[];
  readonly answer: FinalAnswer | null;
  readonly relayed: Launch | null;
  readonly served: Launch | null;
  readonly waits: readonly { readonly fromMs: number; readonly untilMs: number; readonly reason: string }[];
  readonly record: DecisionRecord;
  readonly status: number;
  readonly plan: RequestPlan;
}

export class Driver {
  nowMs = START_MS;
  store = new MemoryPoolStore();
  affinity = new MemoryAffinityStore();
  pool: PoolRuntime;
  accounts: readonly Account[];
  /** Repairs succeed with new material unless a test says otherwise. */
  repair: (launch: Launch) => RepairResult = (launch) => ({
    kind: "fresh_token",
    fingerprint: `${launch.account}-2`,
  });
  repairs = 0;
  #requests = 0;
  readonly #deps: Partial<PoolDeps>;

  constructor(accounts: readonly (string | Account)[], deps: Partial<PoolDeps> = {}) {
    this.accounts = accounts.map((given) => typeof given === "string" ? account(given) : given);
    this.#deps = deps;
    this.pool = this.#start();
  }

  /** The process dies and starts again on the same disk. */
  restart(accounts: readonly Account[] = this.accounts): void {
    this.accounts = accounts;
    this.pool = this.#start();
  }

  advance(ms: number): void {
    this.nowMs += ms;
  }

  spec(given: Partial<RequestSpec> = {}): RequestSpec {
    const targets: Target[] = [{ provider: "codex", model: "m1" }];
    return {
      id: `req_${++this.#requests}`,
      route: "responses",
      tenant: "t",
      model: "m1",
      targets,
      fallbacks: [],
      replay: "replayable",
      bound: null,
      session: null,
      pinned: false,
      recoveryAttempts: 0,
      idempotency: null,
      attemptTimeoutMs: 600_000,
      ...given,
    };
  }

  begin(given: Partial<RequestSpec> = {}): RequestPlan {
    return this.pool.begin(this.spec(given), this.nowMs);
  }

  next(plan: RequestPlan): Step {
    return this.pool.next(plan, this.nowMs);
  }

  /** The next step, which must be a launch. */
  launch(plan: RequestPlan): Launch {
    const step = this.next(plan);
    if (step.kind !== "launch") throw new Error(`Expected a launch, got ${JSON.stringify(step)}`);
    return step.launch;
  }

  settle(plan: RequestPlan, launch: Launch, outcome: Outcome): void {
    this.pool.settle(plan, launch, outcome, this.nowMs);
  }

  /** A whole request of a session: looked up, run to its end, finished. */
  session(session: string, script: Script, given: Partial<RequestSpec> = {}): Result {
    const bound = this.pool.lookupBinding([session], this.nowMs);
    return this.run(script, { session, bound, ...given });
  }

  /** A whole request, from begin to finish; waits move the clock. */
  run(script: Script, given: Partial<RequestSpec> = {}): Result {
    const plan = this.begin(given);
    const startMs = this.nowMs;
    const launches: Launch[] = [];
    const atMs: number[] = [];
    let answer: FinalAnswer | null = null;
    let relayed: Launch | null = null;
    let served: Launch | null = null;
    let status = 0;
    for (let steps = 0;; steps++) {
      if (steps > 1_000) throw new Error("Request does not end");
      const step = this.next(plan);
      if (step.kind === "launch") {
        launches.push(step.launch);
        atMs.push(this.nowMs - startMs);
        if (this.#play(plan, step.launch, script)) {
          served = step.launch;
          status = 200;
        }
        continue;
      }
      if (step.kind === "wait") {
        this.nowMs = Math.max(this.nowMs, step.untilMs);
        continue;
      }
      if (step.kind === "repair") {
        this.repairs++;
        this.pool.repaired(plan, step.launch, this.repair(step.launch), this.nowMs);
        continue;
      }
      if (step.kind === "answer") {
        answer = step.answer;
        status = answer.status;
      }
      if (step.kind === "relay") {
        relayed = step.launch;
        status = 1;
      }
      break;
    }
    const record = this.pool.finish(plan, status, answer?.code ?? null, this.nowMs);
    return { launches, atMs, answer, relayed, served, waits: record.waits, record, status, plan };
  }

  #play(plan: RequestPlan, launch: Launch, script: Script): boolean {
    const given = script(launch, this.nowMs);
    const ending: Ending = "outcome" in given ? given : { outcome: given };
    this.nowMs += ending.afterMs ?? 0;
    const succeeds = ending.outcome.kind === "success";
    if (ending.head ?? succeeds) this.pool.progress(plan, launch, "head", this.nowMs);
    if (ending.semantic ?? succeeds) this.pool.progress(plan, launch, "semantic", this.nowMs);
    if (ending.commit ?? false) this.pool.commit(plan, launch, this.nowMs);
    this.settle(plan, launch, ending.outcome);
    return succeeds;
  }

  #start(): PoolRuntime {
    const pool = new PoolRuntime({
      store: this.store,
      affinity: this.affinity,
      policy: { requestRetry: 3, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 },
      quota: { maxParkMs: 30 * MINUTE_MS, recheck: false },
      routing: { strategy: "round-robin", sessionTtlMs: HOUR_MS },
      seed: 7,
      ...this.#deps,
    });
    pool.restore(this.nowMs);
    pool.reconcile(this.accounts, this.nowMs);
    return pool;
  }
}

/** Ends the launches of each account in turn by the given list; the last entry repeats. */
export function perAccount(lists: Readonly<Record<string, readonly (Outcome | Ending)[]>>): Script {
  const used = new Map<string, number>();
  return (launch) => {
    const list = lists[launch.account];
    if (list === undefined) throw new Error(`Nobody scripted a launch on ${launch.account}`);
    const at = used.get(launch.account) ?? 0;
    used.set(launch.account, at + 1);
    return list[Math.min(at, list.length - 1)]!;
  };
}

/** Ends the launches in order, whatever the account. */
export function inOrder(...list: readonly (Outcome | Ending)[]): Script {
  let at = 0;
  return (launch) => {
    const ending = list[at++];
    if (ending === undefined) throw new Error(`Nobody scripted launch ${launch.attempt}`);
    return ending;
  };
}
