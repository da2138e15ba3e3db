/** An upgraded connection: one launch, many turns, and an end that is nobody's fault (rows 48 and 49). */
import { classify } from "../../../lib/core/classify.ts";
import type { Outcome } from "../../../lib/core/outcome.ts";
import type { Launch } from "../../../lib/core/retry_plan.ts";
import type { RequestPlan } from "../../../lib/proxy/pool_runtime.ts";
import { Dice } from "../dice.ts";
import { play, type Sending } from "../world/answers.ts";
import type { Stage } from "./stage.ts";

export class SocketRun {
  readonly #stage: Stage;
  readonly #plan: RequestPlan;
  readonly #launch: Launch;
  readonly #sending: Sending;
  readonly #isOpen: () => boolean;
  readonly #closed: () => void;
  readonly #dice: Dice;
  #turnsLeft: number;
  #hasTurned = false;

  constructor(
    stage: Stage,
    plan: RequestPlan,
    launch: Launch,
    sending: Sending,
    isOpen: () => boolean,
    closed: () => void,
  ) {
    this.#stage = stage;
    this.#plan = plan;
    this.#launch = launch;
    this.#sending = sending;
    this.#isOpen = isOpen;
    this.#closed = closed;
    this.#dice = new Dice(stage.params.seed, "socket", launch.attempt);
    this.#turnsLeft = this.#dice.int(0, 4);
  }

  start(): void {
    const { leaseUntilMs } = this.#launch;
    // A test that no turn has decided by then is given back.
    if (leaseUntilMs !== null) {
      this.#later(leaseUntilMs, () => {
        if (!this.#hasTurned) this.#tell({ outcome: UNTESTED, startedAtMs: this.#stage.nowMs, model: null });
      });
    }
    this.#nextTurn();
  }

  #nextTurn(): void {
    const stage = this.#stage;
    const askedAtMs = stage.nowMs + this.#dice.span(10, 60_000);
    this.#later(askedAtMs, () => {
      if (this.#turnsLeft-- === 0) {
        this.#close();
        return;
      }
      const model = this.#dice.chance(0.9) ? this.#dice.pick(stage.params.models) : null;
      const startedAtMs = stage.nowMs;
      const playback = play(stage.world, { ...this.#sending, model }, this.#dice, startedAtMs);
      this.#later(startedAtMs + Math.min(playback.endMs, 600_000), () => {
        const outcome = playback.judge(stage.nowMs);
        // A connection that breaks ends without a turn of its own.
        if (outcome.kind === "no_response" || outcome.kind === "incomplete") {
          this.#close();
          return;
        }
        this.#tell({ outcome, startedAtMs, model });
        this.#nextTurn();
      });
    });
  }

  #tell(
    turn: { readonly outcome: Outcome; readonly startedAtMs: number; readonly model: string | null },
  ): void {
    const stage = this.#stage;
    this.#hasTurned = true;
    stage.tell(`turn of ${this.#launch.attempt} ended ${turn.outcome.kind}`);
    stage.process.pool.turnEnded(this.#plan, this.#launch, turn, stage.nowMs);
  }

  #close(): void {
    const stage = this.#stage;
    stage.tell(`socket of ${this.#launch.attempt} closed`);
    stage.process.pool.socketClosed(this.#plan, this.#launch, UNTESTED, stage.nowMs);
    if (this.#dice.chance(0.1)) {
      const turn = {
        outcome: classify({ kind: "success" }, null, { nowMs: stage.nowMs }),
        startedAtMs: stage.nowMs,
        model: null,
      };
      stage.process.pool.turnEnded(this.#plan, this.#launch, turn, stage.nowMs);
      stage.process.pool.socketClosed(this.#plan, this.#launch, UNTESTED, stage.nowMs);
    }
    this.#closed();
  }

  #later(atMs: number, run: () => void): void {
    this.#stage.schedule(atMs, () => {
      if (this.#isOpen()) run();
    }, "process");
  }
}

const UNTESTED: Outcome = classify({ kind: "client_cancelled" }, null, { nowMs: 0 });
