/** Who asks for what: sessions of tenants, pools and plain models, once-only and pinned requests, and repeats after a crash. */
import type { AccountId, Target } from "../../../lib/core/domain.ts";
import type { Launch, RequestSpec } from "../../../lib/core/retry_plan.ts";
import { Dice } from "../dice.ts";
import { type Manner, RequestRun, type RunResult } from "./request_run.ts";
import type { Stage } from "./stage.ts";

export class Clients {
  readonly #stage: Stage;
  readonly #dice: Dice;
  readonly #open = new Set<RequestRun>();
  /** Requests that died with the process and whose clients will ask again under the same key. */
  readonly #orphans: { readonly spec: RequestSpec; readonly ghost: Launch | null }[] = [];
  #count = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#dice = new Dice(stage.params.seed, "clients");
  }

  get openCount(): number {
    return this.#open.size;
  }

  /** A request of the mix. Nobody can ask while the process is down. */
  ask(): void {
    if (!this.#stage.process.isUp) return;
    const dice = this.#dice;
    const { mix } = this.#stage.params;
    const repeated = dice.chance(0.5) ? this.#orphans.shift() : undefined;
    const spec = repeated === undefined ? this.#draw() : { ...repeated.spec, id: this.#newId() };
    const streaming = dice.chance(mix.streaming);
    this.#run(spec, {
      streaming,
      upgrade: !streaming && spec.replay === "replayable" && dice.chance(mix.upgrade),
      leavesAfterMs: dice.chance(mix.cancelled) ? dice.span(1, 60_000) : null,
      ghost: repeated?.ghost ?? null,
    }, () => {});
  }

  /** Many at once of one conversation, as when its account has just cooled. */
  crowd(): void {
    if (!this.#stage.process.isUp) return;
    const drawn = this.#draw();
    const session = drawn.session ?? "SENT-tenant-1-session-1";
    for (let count = this.#dice.int(8, 20); count > 0; count--) {
      const { pool } = this.#stage.process;
      const bound = drawn.pinned ? drawn.bound : pool.lookupBinding([session], this.#stage.nowMs);
      const spec = { ...drawn, id: this.#newId(), session, aliases: [], bound, idempotency: null };
      this.#run(spec, { streaming: true, upgrade: false, leavesAfterMs: null }, () => {});
    }
  }

  /** A plain request for one target, with nothing special about it. */
  askPlainly(targets: readonly Target[], done: (result: RunResult) => void): void {
    const spec: RequestSpec = {
      ...this.#plain(targets),
      id: this.#newId(),
      recoveryAttempts: 0,
    };
    this.#run(spec, { streaming: true, upgrade: false, leavesAfterMs: null }, done);
  }

  /** The process died: its requests are gone, and some of their clients come back. */
  orphanAll(): void {
    for (const { spec, current } of this.#open) {
      if (spec.idempotency !== null) this.#orphans.push({ spec, ghost: current });
    }
    this.#open.clear();
  }

  #run(spec: RequestSpec, manner: Manner, done: (result: RunResult) => void): void {
    const run: RequestRun = new RequestRun(this.#stage, spec, manner, (result) => {
      this.#open.delete(run);
      done(result);
    });
    this.#open.add(run);
    if (this.#stage.isFaulty) this.#stage.counts.requests++;
    else this.#stage.counts.calmRequests++;
    run.start();
  }

  #draw(): RequestSpec {
    const dice = this.#dice;
    const stage = this.#stage;
    const { params, process, nowMs } = stage;
    const { mix } = params;
    const pool = process.pools.length > 0 && dice.chance(0.5) ? dice.pick(process.pools) : null;
    const ring = pool === null ? null : process.pool.rotate(pool.name);
    const targets = ring?.targets ??
      [{ provider: dice.pick(params.providers), model: dice.chance(0.95) ? dice.pick(params.models) : null }];
    const tenant = `tenant-${dice.int(1, params.tenants)}`;
    const session = dice.chance(mix.session)
      ? `SENT-${tenant}-session-${dice.int(1, params.sessions)}`
      : null;
    const aliases = session !== null && dice.chance(0.2) ? [`${session}-turn-${dice.int(1, 2)}`] : [];
    const found = session === null ? null : process.pool.lookupBinding([session, ...aliases], nowMs);
    const pinned = dice.chance(mix.pinned);
    const id = this.#newId();
    return {
      ...this.#plain(targets),
      id,
      tenant,
      model: pool?.name ?? targets[0]!.model,
      fallbacks: ring?.fallbacks ?? [],
      replay: dice.chance(mix.once) ? "once" : "replayable",
      session,
      aliases,
      bound: pinned && found === null ? this.#anyAccount() : found,
      pinned,
      recoveryAttempts: dice.chance(0.8) ? params.recoveryAttempts : 0,
      idempotency: dice.chance(mix.idempotent) ? `${tenant}-key-${id}` : null,
    };
  }

  #plain(targets: readonly Target[]): Omit<RequestSpec, "id" | "recoveryAttempts"> {
    return {
      route: "responses",
      tenant: "tenant-1",
      model: targets[0]!.model,
      targets,
      fallbacks: [],
      replay: "replayable",
      bound: null,
      session: null,
      aliases: [],
      pinned: false,
      idempotency: null,
      attemptTimeoutMs: this.#stage.params.attemptTimeoutMs,
    };
  }

  /** Pins name accounts that exist, mostly. */
  #anyAccount(): AccountId | null {
    const { ids } = this.#stage.files;
    if (ids.length === 0 || this.#dice.chance(0.1)) return this.#dice.chance(0.5) ? null : "gone-99";
    return this.#dice.pick(ids);
  }

  #newId(): string {
    return `req_${++this.#count}`;
  }
}
