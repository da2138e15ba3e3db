/** Watches the calls of one request each: what the pool decides is checked before it is believed. */
import type { AccountId } from "../../../lib/core/domain.ts";
import type { Outcome } from "../../../lib/core/outcome.ts";
import type { Launch, RepairResult, RequestSpec, Step } from "../../../lib/core/retry_plan.ts";
import type { PoolRuntime, RequestPlan } from "../../../lib/proxy/pool_runtime.ts";
import { noteUnheard, requireBindingWritesAllowed, requireBoundFirst } from "../checks/binding_checks.ts";
import { requireFinalAnswer } from "../checks/final_answer.ts";
import { requireLaunchAllowed } from "../checks/launch_checks.ts";
import { requirePaid } from "../checks/ledger_checks.ts";
import { event, framed, type PoolEvent } from "../checks/pool_event.ts";
import {
  mayRecheck,
  requireNobodyPassedOver,
  requireNoRoundLeft,
  requireWaitAllowed,
} from "../checks/wait_checks.ts";
import { bookAccountOnly, bookOutcome, settleLeases } from "../oracle/booking.ts";
import type { Oracle } from "../oracle/oracle.ts";
import { strikeOf } from "../oracle/provider_oracle.ts";
import type { OpenLaunch, RequestOracle } from "../oracle/request_oracle.ts";
import type { SocketTurn } from "../pool.ts";
import type { MirrorStore } from "../stores/mirror_store.ts";
import type { WatchedAffinityStore } from "../stores/watched_affinity.ts";
import { must, violate } from "../violation.ts";
import { takeEnd } from "./attempts.ts";
import type { History } from "./history.ts";

const CANCELLED: Outcome = {
  kind: "cancelled",
  row: 45,
  scope: "none",
  origin: "client",
  status: null,
  code: "client_cancelled",
};

export class RequestReferee {
  readonly #oracle: Oracle;
  readonly #disk: MirrorStore;
  readonly #affinity: WatchedAffinityStore;
  readonly #history: History;
  readonly #requests = new Map<RequestPlan, RequestOracle>();

  constructor(oracle: Oracle, disk: MirrorStore, affinity: WatchedAffinityStore, history: History) {
    this.#oracle = oracle;
    this.#disk = disk;
    this.#affinity = affinity;
    this.#history = history;
  }

  begun(plan: RequestPlan, spec: RequestSpec, nowMs: number): void {
    const request = this.#oracle.begin(spec, nowMs);
    this.#requests.set(plan, request);
    const { ledger } = plan;
    if (ledger.request === spec.id) {
      must(
        ledger.maxLaunches === request.bound,
        "P5",
        () => `${spec.id} may launch ${ledger.maxLaunches}, not ${request.bound}`,
      );
      return;
    }
    const row = this.#disk.ledgers.get(ledger.request);
    const isOpen = row !== undefined && !row.closed && row.idempotency !== null &&
      row.idempotency === spec.idempotency;
    must(
      isOpen,
      "P27",
      () => `${spec.id} resumes ${ledger.request}, which is not open on disk under its key`,
    );
    this.#history.resume(ledger.request);
    must(
      ledger.counter === row.counter,
      "P27",
      () => `${spec.id} resumes at ${ledger.counter}, the disk says ${row.counter}`,
    );
    request.counter = row.counter;
    request.bound = row.maxLaunches;
  }

  of(plan: RequestPlan): RequestOracle {
    const request = this.#requests.get(plan);
    if (request === undefined) throw new Error("Cannot find the request of a plan nobody began");
    return request;
  }

  /** First after a step: what it decided was decided with this booked. */
  stepping(plan: RequestPlan, step: Step, nowMs: number): PoolEvent {
    const request = this.of(plan);
    // A reload is met by every open request at its next step.
    request.meet(this.#oracle.settings.policy);
    this.#bookDeferred(request, step, nowMs);
    return event(`next of ${request.spec.id}: ${step.kind}`, request);
  }

  stepped(pool: PoolRuntime, plan: RequestPlan, step: Step, nowMs: number): void {
    const request = this.of(plan);
    const writes = this.#affinity.writes.splice(0);
    const launch = step.kind === "launch" ? step.launch : null;
    if (launch === null) request.enterRound(plan.round);
    requireBindingWritesAllowed(this.#oracle, request, writes, launch, false, nowMs);
    switch (step.kind) {
      case "launch":
        this.#launched(request, step.launch, nowMs);
        break;
      case "wait":
        this.#waits(request, step, nowMs);
        break;
      case "repair":
        must(
          request.repair?.launch.attempt === step.launch.attempt,
          "P5",
          () => `${step.launch.attempt} is repaired unasked`,
        );
        break;
      case "answer":
        this.#answered(pool, request, plan, step, nowMs);
        break;
      case "relay":
        requireRelayAllowed(request, step.launch);
        request.isAnswered = true;
        break;
      case "stop":
        must(
          request.phase !== "open" || request.isServed,
          "P36",
          () => `${request.spec.id} is stopped unserved`,
        );
        break;
      default:
        step satisfies never;
    }
  }

  progressed(plan: RequestPlan, launch: Launch, progress: "head" | "semantic", nowMs: number): PoolEvent {
    const request = this.of(plan);
    const name = `${launch.attempt} saw ${progress}`;
    const open = request.current;
    if (open?.launch.attempt !== launch.attempt) return framed(name, "P20");
    this.#oracle.network.head(launch.attempt);
    if (progress === "semantic") open.provider.open(launch.attempt);
    requireBindingWritesAllowed(this.#oracle, request, this.#affinity.writes.splice(0), null, true, nowMs);
    return event(name);
  }

  settled(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): PoolEvent {
    const request = this.of(plan);
    const open = request.current;
    if (open?.launch.attempt !== launch.attempt) {
      return framed(`late end of ${launch.attempt}: ${outcome.kind}`, "P20");
    }
    const held = this.#end(request, open, outcome, nowMs);
    const recovers = plan.pending?.kind === "recovery";
    const result = takeEnd(this.#oracle, request, open, outcome, held, recovers, nowMs);
    requireBindingWritesAllowed(this.#oracle, request, this.#affinity.writes.splice(0), null, true, nowMs);
    return result;
  }

  repaired(plan: RequestPlan, launch: Launch, result: RepairResult, nowMs: number): PoolEvent {
    const request = this.of(plan);
    const name = `repair of ${launch.attempt}: ${result.kind}`;
    const open = request.repair;
    if (request.phase !== "open" || open?.launch.attempt !== launch.attempt) return framed(name, "P20");
    request.repair = null;
    requireBindingWritesAllowed(this.#oracle, request, this.#affinity.writes.splice(0), null, false, nowMs);
    if (result.kind === "failed") {
      request.outcomes.set(open.account, result.outcome);
      bookAccountOnly(this.#oracle, open, result.outcome, nowMs);
      return event(name);
    }
    this.#oracle.refreshed(open.account, result.fingerprint);
    return event(name);
  }

  committed(plan: RequestPlan, launch: Launch): PoolEvent {
    const request = this.of(plan);
    const isCurrent = request.phase === "open" && request.current?.launch.attempt === launch.attempt;
    if (isCurrent) request.phase = "committed";
    return framed(`commit of ${launch.attempt}`, "P20");
  }

  /** A turn is a request of its own to the account's health, asked when it began (rows 48, 49). */
  turnEnded(plan: RequestPlan, launch: Launch, turn: SocketTurn, nowMs: number): PoolEvent {
    const request = this.of(plan);
    const { outcome, startedAtMs, model } = turn;
    const name = `turn of ${launch.attempt} ended: ${outcome.kind}`;
    const open = request.current;
    if (open?.launch.attempt !== launch.attempt || request.phase !== "committed") return framed(name, "P20");
    const trial = open.account.trial === launch.attempt ? launch.trial : "none";
    const held = settleLeases(this.#oracle, open, outcome, nowMs);
    if (outcome.kind === "cancelled") return framed(name, "P11");
    const asked = { ...open, launch: { ...launch, launchedAtMs: startedAtMs, model, trial } };
    if (outcome.kind !== "unauthorized" || !open.account.account.refreshable) {
      bookOutcome(this.#oracle, request, asked, outcome, held, nowMs);
    }
    return event(name, request);
  }

  /** Each turn leaves the provider by itself; one that was broken off leaves nothing, and what was struck before stays. */
  turnOver(plan: RequestPlan, launch: Launch, outcome: Outcome): void {
    const request = this.of(plan);
    if (request.phase !== "committed" || outcome.kind === "cancelled") return;
    if (request.current?.launch.attempt !== launch.attempt) return;
    this.requireCooled(plan);
    request.strikes.clear();
  }

  socketClosed(plan: RequestPlan, launch: Launch, nowMs: number): PoolEvent {
    const request = this.of(plan);
    const open = request.current;
    if (open?.launch.attempt === launch.attempt) this.#end(request, open, CANCELLED, nowMs);
    return framed(`socket of ${launch.attempt} closed`, "P11");
  }

  recoveryEnded(plan: RequestPlan): void {
    this.of(plan).isRecoveryEnded = true;
  }

  cancelled(plan: RequestPlan, nowMs: number): PoolEvent {
    const request = this.of(plan);
    if (request.phase !== "finished") {
      request.phase = "cancelled";
      this.#abandon(request, nowMs);
    }
    return framed(`cancel of ${request.spec.id}`, "P11");
  }

  finished(plan: RequestPlan, nowMs: number): PoolEvent {
    const request = this.of(plan);
    const name = `finish of ${request.spec.id}`;
    if (request.phase === "finished") return framed(name, "P20");
    const wasCancelled = request.phase === "cancelled";
    this.#abandon(request, nowMs);
    request.phase = "finished";
    if (wasCancelled) return framed(name, "P11");
    return event(name, request);
  }

  /** C6: a request that struck a provider often enough leaves it cooling. */
  requireCooled(plan: RequestPlan): void {
    const request = this.of(plan);
    for (const provider of request.strikes.keys()) {
      must(
        provider.strikes < 2 || provider.cooldown !== null,
        "TABLE",
        () => `${request.spec.id} left ${provider.id} with ${provider.strikes} strikes and no cooldown`,
      );
    }
  }

  #launched(request: RequestOracle, launch: Launch, nowMs: number): void {
    const oracle = this.#oracle;
    this.#history.mint(launch.attempt);
    requireBoundFirst(oracle, request, launch, nowMs);
    noteUnheard(oracle, request, nowMs);
    const route = requireLaunchAllowed(oracle, request, launch, nowMs);
    requirePaid(this.#disk, launch, request.bound);
    const account = request.find(launch.account)!;
    request.enterRound(launch.round);
    request.wait = null;
    switch (launch.cause) {
      case "first":
      case "failover":
      case "round":
        request.slots.add(account);
        break;
      case "recovery":
        request.recoveries++;
        break;
      case "strip_state":
        request.stripped = true;
        break;
    }
    const lease = launch.leaseUntilMs === null
      ? null
      : { attempt: launch.attempt, untilMs: launch.leaseUntilMs };
    if (launch.probe === "network") oracle.network.lease = lease;
    if (launch.probe === "provider") route.provider.lease = lease;
    if (launch.trial !== "none") account.trial = launch.attempt;
    if (launch.trial === "recheck") account.recheckedAtMs = nowMs;
    const open = { launch, account, provider: route.provider, fingerprint: account.account.fingerprint };
    request.current = open;
    request.last = open;
    request.launches.push(launch);
    request.counter = launch.counter;
    account.inFlight++;
  }

  #waits(request: RequestOracle, step: Extract<Step, { kind: "wait" }>, nowMs: number): void {
    requireWaitAllowed(this.#oracle, request, step, nowMs);
    if (step.reason === "recovery_backoff") return;
    const isNews = request.wait === null || nowMs >= request.wait.untilMs;
    if (isNews) requireNobodyPassedOver(this.#oracle, request, "wait", nowMs);
    request.wait = { startedAtMs: request.wait?.startedAtMs ?? nowMs, untilMs: step.untilMs };
  }

  #answered(
    pool: PoolRuntime,
    request: RequestOracle,
    plan: RequestPlan,
    step: Extract<Step, { kind: "answer" }>,
    nowMs: number,
  ): void {
    if (request.isAnswered) return;
    const { answer } = step;
    must(request.phase === "open", "P7", () => `${request.spec.id} is answered after ${request.phase}`);
    requireFinalAnswer(this.#oracle, request, answer, nowMs);
    request.isAnswered = true;
    if (answer.rule === "incomplete") return;
    requireNobodyPassedOver(this.#oracle, request, "give up", nowMs);
    if (!mayRecheck(this.#oracle, request, nowMs)) {
      requireNoRoundLeft(this.#oracle, request, plan.round, nowMs);
    }
    if (answer.retryAtMs !== null) requireServedAt(pool, request, answer.retryAtMs, nowMs);
  }

  /** An attempt that could have been made good on its route and was not counts after all. */
  #bookDeferred(request: RequestOracle, step: Step, nowMs: number): void {
    const { deferred } = request;
    if (deferred === null || (step.kind === "wait" && step.reason === "recovery_backoff")) return;
    request.deferred = null;
    const isMadeGood = step.kind === "launch" && step.launch.cause === "recovery";
    if (isMadeGood || deferred.outcome.kind === "incomplete") return;
    bookOutcome(this.#oracle, request, deferred.open, deferred.outcome, false, nowMs);
  }

  #abandon(request: RequestOracle, nowMs: number): void {
    request.repair = null;
    request.deferred = null;
    if (request.current !== null) this.#end(request, request.current, CANCELLED, nowMs);
  }

  #end(request: RequestOracle, open: OpenLaunch, outcome: Outcome, nowMs: number): boolean {
    request.current = null;
    open.account.inFlight--;
    const held = settleLeases(this.#oracle, open, outcome, nowMs);
    if (held && strikeOf(outcome) !== null) {
      this.#history.probeFailed(open.provider, open.launch.launchedAtMs);
    }
    return held;
  }
}

/** Only the upstream's own verdict on the request, or on what is sent once, is passed on. */
function requireRelayAllowed(request: RequestOracle, launch: Launch): void {
  const { last } = request;
  const outcome = last === null ? undefined : request.outcomes.get(last.account);
  must(
    last?.launch.attempt === launch.attempt && outcome !== undefined,
    "P14",
    () => `${launch.attempt} is relayed, but is not the last`,
  );
  const isVerdict = outcome.kind === "request_fault" ||
    (!request.isReplayable && outcome.origin === "upstream");
  must(isVerdict, "P14", () => `${launch.attempt} is relayed, but ended ${outcome.kind}`);
}

/** P34: a client that comes back exactly then finds an account. */
function requireServedAt(pool: PoolRuntime, request: RequestOracle, retryAtMs: number, nowMs: number): void {
  if (!Number.isInteger(retryAtMs) || retryAtMs < nowMs) {
    violate("P34", `${request.spec.id} may retry at ${retryAtMs}`);
  }
  const targets = request.routes.map(({ target }) => target);
  const known = new Set<AccountId>([...request.snapshot.values()].flat().map(({ id }) => id));
  const candidates = pool.explain(targets, retryAtMs).filter(({ account }) => known.has(account));
  // A probe that is under way now has ended by then, one way or the other.
  const isFree = ({ block }: (typeof candidates)[number]) =>
    block === null ||
    ((block.kind === "provider_probe" || block.kind === "network_probe") &&
      (block.untilMs ?? 0) <= retryAtMs);
  must(
    candidates.some(isFree),
    "P34",
    () =>
      `${request.spec.id} is told to retry in ${retryAtMs - nowMs} ms, when ${
        candidates.map(({ account, block }) => `${account} has ${block?.kind}`)
      }`,
  );
}
