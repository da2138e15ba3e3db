/**
 * The pool and the slots of recovery, watched from outside: they do what they always do, and what it was is noted.
 *
 * Between a call and its return nothing else runs, so a change of anybody's health is this call's doing.
 */
import type { Outcome } from "../../lib/core/outcome.ts";
import type { Launch, RepairResult, RequestSpec, Step } from "../../lib/core/retry_plan.ts";
import type { DecisionRecord } from "../../lib/core/decision.ts";
import { type PoolDeps, PoolRuntime, type RequestPlan } from "../../lib/proxy/pool_runtime.ts";
import { type RecoverySlot, RecoverySlots } from "../../lib/proxy/recovery_slots.ts";
import type { MemoryPoolStore } from "../support/memory_store.ts";

export interface SlotTrace {
  readonly max: number;
  readonly acquiredAtMs: number;
  releasedAtMs: number | null;
  /** How often the slot went from taken to free. */
  releases: number;
  mostBytes: number;
  slot: RecoverySlot;
}

/** What the pool was told and said, in order; `booked`: whose health is another than before it. */
export type PoolEvent =
  & { readonly atMs: number; readonly booked: readonly string[] }
  & (
    | { readonly kind: "launch"; readonly launch: Launch }
    | { readonly kind: "step"; readonly step: Exclude<Step, { kind: "launch" }> }
    | {
      readonly kind: "settle";
      readonly launch: Launch;
      readonly outcome: Outcome;
      readonly phase: RequestPlan["phase"];
      /** A silent relaunch is planned now. */
      readonly recovers: boolean;
      /** The request was withheld when the outcome came. */
      readonly withheld: boolean;
      readonly attemptsLeft: number;
      readonly windowEndsAtMs: number;
    }
    | { readonly kind: "commit"; readonly launch: Launch; readonly withheld: boolean }
    | { readonly kind: "repaired" }
    | { readonly kind: "end_recovery"; readonly note: string }
    | { readonly kind: "cancel" }
    | { readonly kind: "finish" }
  );

export interface RequestTrace {
  readonly id: string;
  readonly spec: RequestSpec;
  readonly slot: SlotTrace | null;
  readonly events: PoolEvent[];
  record: DecisionRecord | null;
}

export class WatchedSlots extends RecoverySlots {
  readonly traces: SlotTrace[] = [];
  mostHeld = 0;
  readonly #clock: { now(): number };
  /** The slot of the request that is about to begin. */
  #fresh: SlotTrace | null = null;

  constructor(clock: { now(): number }) {
    super(clock);
    this.#clock = clock;
  }

  override tryAcquire(max: number): RecoverySlot | null {
    const inner = super.tryAcquire(max);
    if (inner === null) return null;
    const trace: SlotTrace = {
      max,
      acquiredAtMs: this.#clock.now(),
      releasedAtMs: null,
      releases: 0,
      mostBytes: 0,
      slot: inner,
    };
    const slot: RecoverySlot = {
      get live() {
        return inner.live;
      },
      hold: (bytes) => {
        if (inner.live) trace.mostBytes = Math.max(trace.mostBytes, bytes);
        inner.hold(bytes);
      },
      release: () => {
        const wasLive = inner.live;
        inner.release();
        if (!wasLive || inner.live) return;
        trace.releases++;
        trace.releasedAtMs = this.#clock.now();
      },
    };
    trace.slot = slot;
    this.traces.push(trace);
    this.mostHeld = Math.max(this.mostHeld, this.held);
    this.#fresh = trace;
    return slot;
  }

  /** A slot is taken right before its request begins. */
  takeFresh(): SlotTrace | null {
    const trace = this.#fresh;
    this.#fresh = null;
    return trace;
  }
}

export class WatchedPool extends PoolRuntime {
  readonly requests = new Map<string, RequestTrace>();
  readonly #store: MemoryPoolStore;
  readonly #slots: WatchedSlots;

  constructor(deps: PoolDeps & { readonly store: MemoryPoolStore }, slots: WatchedSlots) {
    super(deps);
    this.#store = deps.store;
    this.#slots = slots;
  }

  override begin(spec: RequestSpec, nowMs: number): RequestPlan {
    const slot = spec.recoveryAttempts > 0 ? this.#slots.takeFresh() : null;
    this.requests.set(spec.id, { id: spec.id, spec, slot, events: [], record: null });
    return super.begin(spec, nowMs);
  }

  override next(plan: RequestPlan, nowMs: number): Step {
    const before = this.#health();
    const step = super.next(plan, nowMs);
    const booked = changed(before, this.#health());
    this.#note(
      plan,
      step.kind === "launch"
        ? { kind: "launch", launch: step.launch, atMs: nowMs, booked }
        : { kind: "step", step, atMs: nowMs, booked },
    );
    return step;
  }

  override settle(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): void {
    const { phase } = plan;
    const withheld = this.#isWithheld(plan);
    const attemptsLeft = plan.recovery?.attemptsLeft ?? 0;
    const windowEndsAtMs = plan.recovery?.windowEndsAtMs ?? 0;
    const before = this.#health();
    this.settleNow(plan, launch, outcome, nowMs);
    this.#note(plan, {
      kind: "settle",
      launch,
      outcome,
      phase,
      withheld,
      attemptsLeft,
      windowEndsAtMs,
      recovers: plan.pending?.kind === "recovery",
      atMs: nowMs,
      booked: changed(before, this.#health()),
    });
  }

  override commit(plan: RequestPlan, launch: Launch, nowMs: number): void {
    const before = this.#health();
    super.commit(plan, launch, nowMs);
    const withheld = this.#isWithheld(plan);
    this.#note(plan, {
      kind: "commit",
      launch,
      withheld,
      atMs: nowMs,
      booked: changed(before, this.#health()),
    });
  }

  override repaired(plan: RequestPlan, launch: Launch, result: RepairResult, nowMs: number): void {
    const before = this.#health();
    super.repaired(plan, launch, result, nowMs);
    this.#note(plan, { kind: "repaired", atMs: nowMs, booked: changed(before, this.#health()) });
  }

  override endRecovery(plan: RequestPlan, note: string): void {
    super.endRecovery(plan, note);
    this.#note(plan, { kind: "end_recovery", note, atMs: 0, booked: [] });
  }

  override cancel(plan: RequestPlan, nowMs: number): void {
    const before = this.#health();
    this.cancelNow(plan, nowMs);
    this.#note(plan, { kind: "cancel", atMs: nowMs, booked: changed(before, this.#health()) });
  }

  override finish(
    plan: RequestPlan,
    status: number,
    code: string | null,
    nowMs: number,
  ): DecisionRecord {
    const before = this.#health();
    const record = super.finish(plan, status, code, nowMs);
    this.#note(plan, { kind: "finish", atMs: nowMs, booked: changed(before, this.#health()) });
    this.requests.get(plan.spec.id)!.record = record;
    return record;
  }

  /** Between the two looks at everybody's health; plants break it here. */
  protected settleNow(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): void {
    super.settle(plan, launch, outcome, nowMs);
  }

  protected cancelNow(plan: RequestPlan, nowMs: number): void {
    super.cancel(plan, nowMs);
  }

  #isWithheld(plan: RequestPlan): boolean {
    const trace = this.requests.get(plan.spec.id)!;
    return trace.slot !== null && trace.slot.slot.live && !plan.recoveryEnded;
  }

  #note(plan: RequestPlan, event: PoolEvent): void {
    this.requests.get(plan.spec.id)!.events.push(event);
  }

  /** All that is remembered of accounts, providers and the network, apart from who is being asked right now. */
  #health(): Map<string, string> {
    const health = new Map<string, string>();
    for (const { account, health: all } of this.describeAccounts(0)) {
      const { modelDeadlines, modelInferred, modelParks, exclusions, ...rest } = all;
      const lists = [[...modelDeadlines], [...modelInferred], [...modelParks], [...exclusions]];
      health.set(account.id, JSON.stringify([rest, lists]));
    }
    for (const { id, circuit, cooldown, strikes } of this.describeProviders(0)) {
      health.set(id, JSON.stringify([circuit, cooldown, strikes]));
    }
    const network = this.#store.log.flatMap(({ changes }) => changes).filter(({ kind }) =>
      kind === "put_network"
    );
    health.set("network", JSON.stringify([this.describeNetwork(0), network.length]));
    return health;
  }
}

function changed(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [...after].filter(([key, text]) => before.get(key) !== text).map(([key]) => key);
}
