/** One client request, run the way the shell runs it: step, do it, tell how it ended, step again. */
import type { Target } from "../../../lib/core/domain.ts";
import type { Outcome } from "../../../lib/core/outcome.ts";
import type { Launch, RequestSpec, Step } from "../../../lib/core/retry_plan.ts";
import type { RequestPlan } from "../../../lib/proxy/pool_runtime.ts";
import { classify } from "../../../lib/core/classify.ts";
import { Dice } from "../dice.ts";
import { play, type Playback, type Sending } from "../world/answers.ts";
import { SocketRun } from "./socket_run.ts";
import { organisationOf } from "../params.ts";
import type { Stage } from "./stage.ts";

/** How the client behaves, apart from what it asks for. */
export interface Manner {
  readonly streaming: boolean;
  readonly upgrade: boolean;
  /** Leaves after this long; null = stays. */
  readonly leavesAfterMs: number | null;
  /** A send of the process that died with the first try of this request; its end may still be told. */
  readonly ghost?: Launch | null;
}

/** What one request came to. */
export interface RunResult {
  readonly status: number;
  readonly launches: number;
  readonly rounds: number;
  readonly waits: number;
}

export class RequestRun {
  readonly #stage: Stage;
  readonly #dice: Dice;
  readonly #spec: RequestSpec;
  readonly #manner: Manner;
  readonly #done: (result: RunResult) => void;
  #plan: RequestPlan | null = null;
  #current: Launch | null = null;
  #isOver = false;
  #launches = 0;
  #waits = 0;
  #round = 0;
  #status = 0;
  /** Ended launches, to be told of once more. */
  readonly #ended: { readonly launch: Launch; readonly outcome: Outcome }[] = [];

  constructor(stage: Stage, spec: RequestSpec, manner: Manner, done: (result: RunResult) => void) {
    this.#stage = stage;
    this.#spec = spec;
    this.#manner = manner;
    this.#done = done;
    this.#dice = new Dice(stage.params.seed, "run", spec.id);
  }

  get spec(): RequestSpec {
    return this.#spec;
  }

  /** The send that has not ended. */
  get current(): Launch | null {
    return this.#current;
  }

  start(): void {
    const stage = this.#stage;
    const { id, replay, session, bound, targets, fallbacks, pinned } = this.#spec;
    const routes = [...targets.map(tellTarget), ...fallbacks.map((target) => `(${tellTarget(target)})`)].join(
      " ",
    );
    stage.tell(
      `${id} begins: ${replay}${pinned ? " pinned" : ""}, ${routes}, session ${session ?? "-"} on ${
        bound ?? "-"
      }`,
    );
    this.#plan = stage.process.pool.begin(this.#spec, stage.nowMs);
    const { leavesAfterMs } = this.#manner;
    if (leavesAfterMs !== null) stage.schedule(stage.nowMs + leavesAfterMs, () => this.#leave(), "process");
    this.#hauntWith(this.#manner.ghost ?? null);
    this.#step();
    this.#hauntWith(this.#manner.ghost ?? null);
  }

  /** The end of a send that a crash cut off reaches the next process: it must change nothing (P27). */
  #hauntWith(ghost: Launch | null): void {
    const { process, nowMs } = this.#stage;
    if (ghost === null || this.#isOver) return;
    const outcomes = [
      classify({ kind: "success" }, null, { nowMs }),
      classify({ kind: "transport", cause: "refused", pooled: false }, null, { nowMs }),
    ];
    process.pool.settle(this.#plan!, ghost, this.#dice.pick(outcomes), nowMs);
    process.pool.commit(this.#plan!, ghost, nowMs);
  }

  #step(): void {
    if (this.#isOver) return;
    const stage = this.#stage;
    const step = stage.process.pool.next(this.#plan!, stage.nowMs);
    switch (step.kind) {
      case "launch":
        this.#launch(step.launch);
        return;
      case "repair":
        this.#repair(step);
        return;
      case "wait":
        this.#wait(step);
        return;
      case "answer": {
        const { status, code, retryAtMs, rule } = step.answer;
        const retry = retryAtMs === null ? "" : ` in ${(retryAtMs - stage.nowMs) / 1000}s`;
        stage.tell(`${this.#spec.id} is answered ${status} ${rule}${retry}`);
        this.#end(status, code);
        return;
      }
      case "relay":
        stage.tell(`${this.#spec.id} relays ${step.launch.attempt}`);
        this.#end(this.#ended.at(-1)?.outcome.status ?? 502, "relayed");
        return;
      case "stop":
        stage.tell(`${this.#spec.id} stops`);
        this.#end(this.#status, null);
        return;
      default:
        step satisfies never;
    }
  }

  #launch(launch: Launch): void {
    const stage = this.#stage;
    this.#current = launch;
    this.#launches++;
    this.#round = launch.round;
    const fingerprint = stage.files.get(launch.account)?.fingerprint ?? "";
    const dice = new Dice(stage.params.seed, "answer", launch.attempt);
    const sending: Sending = {
      account: launch.account,
      provider: launch.provider,
      model: launch.model,
      fingerprint,
      session: this.#spec.session,
      replayable: this.#spec.replay === "replayable",
      stripped: launch.cause === "strip_state",
      fresh: launch.fresh,
    };
    const playback = play(stage.world, sending, dice, stage.nowMs);
    const probe = launch.probe === "none" ? "" : ` ${launch.probe} probe`;
    stage.tell(
      `${launch.attempt} on ${launch.account} (${launch.cause}${probe}, round ${launch.round}): ${playback.label}`,
    );
    if (this.#manner.upgrade && playback.outputMs !== null) this.#upgrade(launch, playback.headMs!, sending);
    else this.#play(launch, playback, fingerprint);
  }

  /** The 101 is the whole answer; what follows are turns. */
  #upgrade(launch: Launch, headMs: number, sending: Sending): void {
    const stage = this.#stage;
    this.#later(headMs, launch, () => {
      const { pool } = stage.process;
      const plan = this.#plan!;
      pool.progress(plan, launch, "head", stage.nowMs);
      pool.progress(plan, launch, "semantic", stage.nowMs);
      this.#commit(launch);
      const isOpen = () => !this.#isOver;
      new SocketRun(stage, plan, launch, sending, isOpen, () => this.#end(101, null)).start();
    });
  }

  #play(launch: Launch, playback: Playback, fingerprint: string): void {
    const stage = this.#stage;
    const { nowMs } = stage;
    const { attemptTimeoutMs } = this.#spec;
    const firstByteMs = attemptTimeoutMs > 0 ? attemptTimeoutMs : 3_600_000;
    // A lease ends with the first head of a network probe, with the first output of any other.
    const leasedMs = launch.leaseUntilMs === null ? Number.POSITIVE_INFINITY : launch.leaseUntilMs - nowMs;
    const provenMs = launch.probe === "network" ? playback.headMs : playback.outputMs ?? playback.endMs;
    const limitMs = Math.min(
      (playback.headMs ?? playback.endMs) > firstByteMs ? firstByteMs : Number.POSITIVE_INFINITY,
      (provenMs ?? playback.endMs) > leasedMs ? leasedMs : Number.POSITIVE_INFINITY,
    );
    const { headMs, outputMs, endMs } = playback;
    if (headMs !== null && headMs < limitMs) this.#later(headMs, launch, () => this.#head(launch));
    if (outputMs !== null && outputMs < limitMs) this.#later(outputMs, launch, () => this.#output(launch));
    if (limitMs < endMs) {
      this.#later(limitMs, launch, () => {
        const timeout = { kind: "transport", cause: "first_byte_timeout", pooled: false } as const;
        this.#settle(launch, classify(timeout, null, { nowMs: stage.nowMs }), fingerprint);
      });
    } else this.#later(endMs, launch, () => this.#settle(launch, playback.judge(stage.nowMs), fingerprint));
  }

  #head(launch: Launch): void {
    const { pool } = this.#stage.process;
    pool.progress(this.#plan!, launch, "head", this.#stage.nowMs);
    const organisation = organisationOf(this.#stage.params, launch.account);
    if (organisation !== null) pool.noteLimitGroup(launch.account, organisation);
  }

  #output(launch: Launch): void {
    const { pool } = this.#stage.process;
    pool.progress(this.#plan!, launch, "semantic", this.#stage.nowMs);
    if (!this.#manner.streaming) return;
    // While recovery may still throw the answer away the client sees nothing of it, unless it fails open.
    if (this.#spec.recoveryAttempts > 0) {
      if (!this.#dice.chance(0.1)) return;
      pool.endRecovery(this.#plan!, "failed_open");
      if (this.#dice.chance(0.3)) return;
    }
    this.#commit(launch);
  }

  #commit(launch: Launch): void {
    this.#status = 200;
    this.#stage.process.pool.commit(this.#plan!, launch, this.#stage.nowMs);
  }

  #settle(launch: Launch, outcome: Outcome, fingerprint: string): void {
    const stage = this.#stage;
    this.#current = null;
    if (outcome.kind === "success") {
      this.#status = 200;
      if (this.#manner.streaming && this.#dice.chance(0.5)) this.#commit(launch);
    }
    stage.process.pool.settle(this.#plan!, launch, outcome, stage.nowMs);
    this.#ended.push({ launch, outcome });
    stage.tell(
      `${launch.attempt} ended ${outcome.kind}${outcome.code === outcome.kind ? "" : ` ${outcome.code}`}`,
    );
    if (
      outcome.kind === "unauthorized" && this.#spec.replay === "once" &&
      stage.files.get(launch.account)?.refreshable
    ) {
      if (stage.files.get(launch.account)?.fingerprint === fingerprint) {
        stage.tokens.refreshInBackground(stage, launch.account);
      }
    }
    this.#sayAgain();
    this.#step();
  }

  #repair(step: Extract<Step, { kind: "repair" }>): void {
    const stage = this.#stage;
    const { launch } = step;
    stage.counts.repairs++;
    stage.tell(`${this.#spec.id} repairs ${step.account}`);
    const used = this.#plan!.pending?.kind === "repair" ? this.#plan!.pending.state.fingerprint : "";
    stage.tokens.repair(stage, step.account, used, (result) => {
      stage.process.pool.repaired(this.#plan!, launch, result, stage.nowMs);
      if (this.#isOver) return;
      this.#step();
    });
  }

  #wait(step: Extract<Step, { kind: "wait" }>): void {
    const stage = this.#stage;
    this.#waits++;
    stage.counts.waits++;
    stage.tell(`${this.#spec.id} waits ${(step.untilMs - stage.nowMs) / 1000}s (${step.reason})`);
    // Timers are late, and somebody may look before they ring.
    const lateMs = this.#dice.chance(0.2) ? this.#dice.int(0, 500) : 0;
    const isEarly = this.#dice.chance(0.1);
    const atMs = isEarly ? Math.floor((stage.nowMs + step.untilMs) / 2) : step.untilMs + lateMs;
    stage.schedule(atMs, () => this.#step(), "process");
  }

  /** The client is gone: at any moment, told in either of the two ways the shell may tell it. */
  #leave(): void {
    if (this.#isOver) return;
    const stage = this.#stage;
    const { pool } = stage.process;
    stage.counts.cancelled++;
    stage.tell(`${this.#spec.id} leaves`);
    const launch = this.#current;
    this.#current = null;
    if (launch !== null && this.#dice.chance(0.5)) {
      const outcome = classify({ kind: "client_cancelled" }, null, { nowMs: stage.nowMs });
      pool.settle(this.#plan!, launch, outcome, stage.nowMs);
      this.#ended.push({ launch, outcome });
    }
    pool.cancel(this.#plan!, stage.nowMs);
    if (this.#dice.chance(0.5)) pool.next(this.#plan!, stage.nowMs);
    this.#end(0, null);
    if (launch === null) return;
    // The aborted send still comes to an end of its own, which is nobody's news any more.
    stage.schedule(stage.nowMs + this.#dice.span(1, 2_000), () => {
      const outcome = classify({ kind: "transport", cause: "refused", pooled: false }, null, {
        nowMs: stage.nowMs,
      });
      pool.settle(this.#plan!, launch, outcome, stage.nowMs);
    }, "process");
  }

  /** Repeats an old end now and then: it must change nothing (P20, P27). */
  #sayAgain(): void {
    if (!this.#dice.chance(0.05)) return;
    const { pool } = this.#stage.process;
    const { launch, outcome } = this.#dice.pick(this.#ended);
    pool.settle(this.#plan!, launch, outcome, this.#stage.nowMs);
    pool.progress(this.#plan!, launch, "semantic", this.#stage.nowMs);
    pool.commit(this.#plan!, launch, this.#stage.nowMs);
  }

  #end(status: number, code: string | null): void {
    const stage = this.#stage;
    stage.process.pool.finish(this.#plan!, status, code, stage.nowMs);
    this.#isOver = true;
    if (this.#dice.chance(0.03)) {
      stage.process.pool.cancel(this.#plan!, stage.nowMs);
      stage.process.pool.finish(this.#plan!, status, code, stage.nowMs);
    }
    if (status === 200 || status === 101) stage.counts.served++;
    this.#done({ status, launches: this.#launches, rounds: this.#round + 1, waits: this.#waits });
  }

  #later(afterMs: number, launch: Launch, run: () => void): void {
    this.#stage.schedule(this.#stage.nowMs + Math.ceil(afterMs), () => {
      if (!this.#isOver && this.#current?.attempt === launch.attempt) run();
    }, "process");
  }
}

function tellTarget({ provider, model }: Target): string {
  return `${provider}/${model ?? "-"}`;
}
