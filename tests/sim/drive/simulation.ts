/**
 * One run of one seed: first everything may break and nothing may be wrong, then nothing breaks and everybody is served.
 */
import { StoreFailure } from "../../../lib/ports.ts";
import { Dice } from "../dice.ts";
import { EventQueue } from "../event_queue.ts";
import { Journal } from "../journal.ts";
import type { SimParams } from "../params.ts";
import type { Plant } from "../plants/plant.ts";
import { Violation } from "../violation.ts";
import { World } from "../world/truth.ts";
import { AccountFiles } from "./accounts_file.ts";
import { Clients } from "./clients.ts";
import { requireEverybodyServed } from "./liveness.ts";
import { Process } from "./process.ts";
import type { Counts, Stage } from "./stage.ts";
import { TokenDesk } from "./token_desk.ts";
import { startTroubles } from "./troubles.ts";

/** Far from zero, so that "0 means none" cannot hide a mistake. */
export const START_MS = 1_700_000_000_000;
/** Events of one run at most: whatever needs more does not end. */
const EVENT_LIMIT = 400_000;

export interface SimOptions {
  readonly plant: Plant | null;
  /** Shuffles the order of the accounts in the configuration; 0 = as drawn. */
  readonly shuffle: number;
  /** Keeps the whole story, not only its end. */
  readonly verbose: boolean;
}

export interface SimOutcome {
  readonly violation: Violation | null;
  readonly fingerprint: string;
  readonly lines: readonly string[];
  readonly counts: Counts;
  readonly launches: number;
  readonly virtualMs: number;
}

export function simulate(params: SimParams, options: SimOptions): SimOutcome {
  using simulation = new Simulation(params, options);
  return simulation.run();
}

class Simulation implements Stage, Disposable {
  readonly params: SimParams;
  readonly queue = new EventQueue();
  readonly journal: Journal;
  readonly world: World;
  readonly files: AccountFiles;
  readonly process: Process;
  readonly tokens = new TokenDesk();
  readonly counts: Counts = {
    requests: 0,
    calmRequests: 0,
    served: 0,
    waits: 0,
    repairs: 0,
    restarts: 0,
    cancelled: 0,
  };
  readonly #options: SimOptions;
  readonly #clients: Clients;
  readonly #dice: Dice;
  isFaulty = true;
  /** Time that went by, whatever the clock says. */
  #elapsedMs = START_MS;
  setBackMs = 0;
  #hasArrived = false;

  constructor(params: SimParams, options: SimOptions) {
    this.params = params;
    this.#options = options;
    this.#dice = new Dice(params.seed, "run");
    this.journal = new Journal(START_MS, options.verbose);
    this.world = new World(this.#dice.pick([0, 0.02, 0.1]), params.mix.pooled);
    const orders = new Dice(params.seed, "order", options.shuffle);
    this.files = new AccountFiles(
      params.accounts,
      (list) => options.shuffle === 0 ? list : orders.shuffled(list),
    );
    this.process = new Process(params, options.plant);
    this.#clients = new Clients(this);
  }

  run(): SimOutcome {
    let violation: Violation | null = null;
    try {
      this.#start();
      this.#arrive(0);
      startTroubles(this, (how) => this.#restart(how));
      this.#drain(() => this.#hasArrived && this.#clients.openCount === 0);
      this.#heal();
      requireEverybodyServed(this, this.#clients, (until) => this.#drain(until));
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      violation = error;
    }
    return {
      violation,
      fingerprint: this.journal.fingerprint,
      lines: this.#options.verbose ? this.journal.lines : this.journal.tail,
      counts: this.counts,
      launches: this.process.history.launches,
      virtualMs: this.#elapsedMs - START_MS,
    };
  }

  get nowMs(): number {
    return this.#elapsedMs - this.setBackMs;
  }

  sleepThrough(forMs: number): void {
    this.#elapsedMs += forMs;
  }

  schedule(atMs: number, run: () => void, scope: "process" | "world"): void {
    const { epoch } = this.process;
    this.queue.push(atMs + this.setBackMs, () => {
      if (scope === "process" && (epoch !== this.process.epoch || !this.process.isUp)) return;
      run();
    });
  }

  tell(text: string): void {
    this.journal.write(this.nowMs, text);
  }

  [Symbol.dispose](): void {
    this.process[Symbol.dispose]();
  }

  #arrive(asked: number): void {
    // While the process is down nobody is served; such a run asks a little more often and then gives up.
    if (asked >= 4 * this.params.requests || this.counts.requests >= this.params.requests) {
      this.#hasArrived = true;
      return;
    }
    this.schedule(this.nowMs + this.#dice.gap(this.params.meanGapMs), () => {
      this.#arrive(asked + 1);
      // Some at once now and then: races need company.
      if (this.#dice.chance(0.01)) this.#clients.crowd();
      for (let count = this.#dice.chance(0.1) ? this.#dice.int(2, 6) : 1; count > 0; count--) {
        this.#clients.ask();
      }
    }, "world");
  }

  /** Runs what is due, in order, until the condition holds or nothing is left. */
  #drain(isDone: () => boolean): void {
    for (let events = 0; !isDone(); events++) {
      if (events > EVENT_LIMIT) throw new Violation("LIVENESS", "the run does not end");
      const event = this.queue.pop();
      if (event === undefined) return;
      this.#elapsedMs = Math.max(this.#elapsedMs, event.atMs);
      try {
        event.run();
      } catch (error) {
        if (!(error instanceof StoreFailure)) throw error;
        this.tell(`the process ends: ${error.message}`);
        this.#restart("crash");
      }
    }
  }

  #start(): void {
    for (let attempt = 0;; attempt++) {
      try {
        this.process.start(this.files.list, this.nowMs);
        return;
      } catch (error) {
        if (!(error instanceof StoreFailure) || attempt > 3) throw error;
      }
    }
  }

  #restart(how: "crash" | "stop"): void {
    this.tell(how === "crash" ? "crash" : "orderly stop");
    this.counts.restarts++;
    this.#clients.orphanAll();
    this.tokens.forget();
    this.process.crash();
    // Somebody may log in while the process is away.
    if (this.#dice.chance(0.3)) this.tell(`files: ${this.files.change(this.#dice, this.params.providers)}`);
    this.schedule(this.nowMs + this.#dice.span(1, 60_000), () => {
      if (this.params.setsClockBack && this.#dice.chance(0.3)) {
        const backMs = this.#dice.span(1_000, 600_000);
        this.setBackMs += backMs;
        this.tell(`the clock is set back by ${backMs / 1000}s`);
      }
      this.#start();
      this.tell("started");
    }, "world");
  }

  /** From here on nothing breaks: all truths are good, and whoever needs a person has met one. */
  #heal(): void {
    this.isFaulty = false;
    this.world.heal();
    if (!this.process.isUp) this.#start();
    this.process.mendDisk();
    this.tell("everything is well from now on");
  }
}
