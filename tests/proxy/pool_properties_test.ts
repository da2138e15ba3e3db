/**
 * Many interleaved requests over random pools on one clock: what must never happen does not (section 6.1).
 *
 * A small relative of `tests/sim`: no process, no store on disk, outcomes drawn freely. A failure prints its seed.
 */
import { assert, assertEquals } from "@std/assert";
import type { Account, Target } from "../../lib/core/domain.ts";
import type { Outcome } from "../../lib/core/outcome.ts";
import { createPrng, type Prng } from "../../lib/core/prng.ts";
import type { DurableState, QuotaReading } from "../../lib/core/records.ts";
import type { Launch, RequestSpec, Step } from "../../lib/core/retry_plan.ts";
import { PoolRuntime, type RequestPlan } from "../../lib/proxy/pool_runtime.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { SqlitePoolStore } from "../../lib/store/pool_store.ts";
import { MemoryAffinityStore, MemoryPoolStore } from "../support/memory_store.ts";
import * as outcomes from "../support/outcomes.ts";
import { account, HOUR_MS, MINUTE_MS, START_MS } from "../support/pool_driver.ts";

interface World {
  readonly random: Prng;
  readonly pool: PoolRuntime;
  readonly store: MemoryPoolStore;
  readonly accounts: readonly Account[];
  readonly policy: { requestRetry: number; maxRetryCredentials: number; maxRetryIntervalMs: number };
  nowMs: number;
  /** Nobody is reached before this moment. */
  outageUntilMs: number;
  /** Attempts returned and not settled. */
  readonly flying: Map<string, Launch>;
}

/** One request under way, as the outside sees it. */
interface Client {
  readonly plan: RequestPlan;
  readonly spec: RequestSpec;
  wakeAtMs: number;
  flying: Launch | null;
  committed: boolean;
  launches: Launch[];
  waitingInRound: number;
  waitingSinceMs: number | null;
  done: boolean;
}

for (let block = 0; block < 8; block++) {
  Deno.test(`PoolRuntime keeps its invariants under random load, block ${block}`, () => {
    for (let at = 0; at < 150; at++) {
      const seed = block * 10_000 + at;
      try {
        play(seed);
      } catch (error) {
        throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : error}`, { cause: error });
      }
    }
  });
}

Deno.test("PoolRuntime writes nothing the real store refuses, and the fake store keeps what the real one does", () => {
  for (let seed = 90_000; seed < 90_060; seed++) {
    using database = openDatabase(":memory:");
    const real = new SqlitePoolStore(database);
    const store = new MemoryPoolStore();
    const apply = store.apply.bind(store);
    store.apply = (changes, nowMs) => {
      real.apply(changes, nowMs);
      apply(changes, nowMs);
    };
    play(seed, store);
    assertEquals(sorted(store.load()), sorted(real.load()), `seed ${seed}`);
  }
});

/** Rows have no order. */
function sorted(state: DurableState): unknown {
  return Object.fromEntries(
    Object.entries(state).map(([name, rows]) => [
      name,
      Array.isArray(rows) ? rows.map((row) => JSON.stringify(row, sortKeys)).sort() : rows,
    ]),
  );
}

function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1));
}

function play(seed: number, store = new MemoryPoolStore()): void {
  const world = makeWorld(seed, store);
  const { random } = world;
  const clients: Client[] = [];
  const total = 10 + Math.floor(random() * 30);
  let opened = 0;
  for (let turn = 0; turn < 4_000; turn++) {
    const due = clients.filter((client) => !client.done && client.wakeAtMs <= world.nowMs);
    if (due.length > 0) act(world, due[Math.floor(random() * due.length)]!);
    else if (opened < total && random() < 0.6) clients.push(open(world, ++opened));
    else if (opened >= total && clients.every((client) => client.done)) break;
    else world.nowMs += Math.floor(random() * random() * 20_000);
    if (random() < 0.05) disturb(world);
  }
  assert(clients.every((client) => client.done), "every request ends");
  for (const view of world.pool.describeAccounts(world.nowMs)) assertEquals(view.inFlight, 0);
  for (const view of world.pool.describeProviders(world.nowMs)) assertEquals(view.probe.state, "idle");
  checkDisk(world);
  checkRecovery(world);
}

/** Once nothing breaks any more, everybody is served again, at once and by one launch (P37). */
function checkRecovery(world: World): void {
  const { pool } = world;
  for (const { id } of world.accounts) {
    pool.setEnabled(id, true, world.nowMs);
    pool.refreshed(id, `${id}-new`, world.nowMs);
    pool.toppedUp(id, world.nowMs);
  }
  world.nowMs += 13 * HOUR_MS;
  for (const provider of new Set(world.accounts.map((known) => known.provider))) {
    const targets = [{ provider, model: "m1" }];
    const client = open(world, 1_000);
    const spec = {
      ...client.spec,
      id: `req_${provider}`,
      targets,
      fallbacks: [],
      bound: null,
      pinned: false,
    };
    const plan = pool.begin(spec, world.nowMs);
    const step = pool.next(plan, world.nowMs);
    assertEquals(step.kind, "launch", `${provider} serves again`);
    if (step.kind !== "launch") continue;
    pool.settle(plan, step.launch, outcomes.success(), world.nowMs);
    assertEquals(pool.next(plan, world.nowMs), { kind: "stop" });
    pool.finish(plan, 200, null, world.nowMs);
  }
  assertEquals(pool.describeNetwork(world.nowMs), null, "the pause is over");
}

function makeWorld(seed: number, store: MemoryPoolStore): World {
  const random = createPrng(seed);
  const providers = ["codex", "claude", "zai"].slice(0, 1 + Math.floor(random() * 3));
  const accounts = providers.flatMap((provider) =>
    Array.from(
      { length: 1 + Math.floor(random() * 4) },
      (_, at) => account(`${provider}-${at}`, { provider, refreshable: random() < 0.7 }),
    )
  );
  const policy = {
    requestRetry: Math.floor(random() * 4),
    maxRetryCredentials: random() < 0.7 ? 0 : 1 + Math.floor(random() * 2),
    maxRetryIntervalMs: random() < 0.1 ? 0 : Math.floor(random() * 70_000),
  };
  const pool = new PoolRuntime({
    store,
    affinity: new MemoryAffinityStore(),
    policy,
    quota: { maxParkMs: 30 * MINUTE_MS, recheck: random() < 0.3 },
    routing: { strategy: random() < 0.8 ? "round-robin" : "fill-first", sessionTtlMs: HOUR_MS },
    seed,
  });
  pool.restore(START_MS);
  pool.reconcile(accounts, START_MS);
  return { random, pool, store, accounts, policy, nowMs: START_MS, outageUntilMs: 0, flying: new Map() };
}

function open(world: World, number: number): Client {
  const { random, pool } = world;
  const providers = [...new Set(world.accounts.map(({ provider }) => provider))];
  const targets: Target[] = providers.filter(() => random() < 0.7).map((provider) => ({
    provider,
    model: random() < 0.8 ? "m1" : "m2",
  }));
  const fallbacks = targets.length === 0 || random() < 0.2 ? [{ provider: providers[0]!, model: "m3" }] : [];
  const session = random() < 0.6 ? `s${Math.floor(random() * 5)}` : null;
  const spec: RequestSpec = {
    id: `req_${number}`,
    route: "responses",
    tenant: "t",
    model: "m1",
    targets,
    fallbacks,
    replay: random() < 0.85 ? "replayable" : "once",
    bound: session === null ? null : pool.lookupBinding([session], world.nowMs),
    session,
    pinned: session !== null && random() < 0.1,
    recoveryAttempts: random() < 0.3 ? 2 : 0,
    idempotency: null,
    attemptTimeoutMs: 600_000,
  };
  return {
    plan: pool.begin(spec, world.nowMs),
    spec,
    wakeAtMs: world.nowMs,
    flying: null,
    committed: false,
    launches: [],
    waitingInRound: -1,
    waitingSinceMs: null,
    done: false,
  };
}

function act(world: World, client: Client): void {
  const { pool, random, nowMs } = world;
  if (random() < 0.02) {
    pool.cancel(client.plan, nowMs);
    if (client.flying !== null) world.flying.delete(client.flying.attempt);
    assertEquals(pool.next(client.plan, nowMs), { kind: "stop" });
    finish(world, client, 0);
    return;
  }
  if (client.flying !== null) {
    land(world, client, client.flying);
    return;
  }
  follow(world, client, pool.next(client.plan, nowMs));
}

function follow(world: World, client: Client, step: Step): void {
  const { pool, random, nowMs } = world;
  if (step.kind !== "wait") client.waitingSinceMs = null;
  switch (step.kind) {
    case "launch":
      checkLaunch(world, client, step.launch);
      client.launches.push(step.launch);
      client.flying = step.launch;
      world.flying.set(step.launch.attempt, step.launch);
      client.wakeAtMs = nowMs + Math.floor(random() * random() * 30_000);
      break;
    case "repair":
      pool.repaired(
        client.plan,
        step.launch,
        random() < 0.6 ? { kind: "fresh_token", fingerprint: `f${random()}` } : {
          kind: "failed",
          outcome: random() < 0.5 ? outcomes.refreshDead() : outcomes.refreshFailed(),
        },
        nowMs,
      );
      break;
    case "wait":
      assert(step.untilMs > nowMs, "a wait ends later than now");
      if (step.reason !== "recovery_backoff") {
        // A round that found nobody is over without a launch, and the next one may wait again.
        if (client.waitingInRound !== client.plan.round) client.waitingSinceMs = null;
        client.waitingInRound = client.plan.round;
        client.waitingSinceMs ??= nowMs;
        const limitMs = Math.min(60_000, world.policy.maxRetryIntervalMs);
        assert(step.untilMs - client.waitingSinceMs <= limitMs, "P12: waits within the limit");
      }
      client.wakeAtMs = step.untilMs;
      break;
    case "answer":
      checkAnswer(world, client, step);
      finish(world, client, step.answer.status);
      break;
    case "relay":
      finish(world, client, 400);
      break;
    case "stop":
      finish(world, client, 200);
  }
}

function land(world: World, client: Client, launch: Launch): void {
  const { pool, random, nowMs } = world;
  const outcome = draw(world);
  if (random() < 0.5 && outcome.kind !== "no_response") pool.progress(client.plan, launch, "head", nowMs);
  if (outcome.kind === "success") pool.progress(client.plan, launch, "semantic", nowMs);
  if (random() < 0.3 && outcome.status !== null) {
    pool.commit(client.plan, launch, nowMs);
    client.committed = true;
  }
  client.flying = null;
  world.flying.delete(launch.attempt);
  pool.settle(client.plan, launch, outcome, nowMs);
  // Told twice: the second time changes nothing.
  pool.settle(client.plan, launch, outcomes.credentialDead(), nowMs);
  if (client.committed) assertEquals(pool.next(client.plan, nowMs), { kind: "stop" });
  client.wakeAtMs = nowMs;
}

function draw({ random, nowMs, outageUntilMs }: World): Outcome {
  const recoverable = random() < 0.5;
  if (nowMs < outageUntilMs) return outcomes.noResponse({ recoverable });
  const makers: readonly (() => Outcome)[] = [
    outcomes.success,
    outcomes.success,
    outcomes.success,
    () => outcomes.unavailable({ recoverable }),
    () => outcomes.unavailable({ notBeforeMs: nowMs + Math.floor(random() * 120_000) }),
    () => outcomes.limitedUntil(nowMs + Math.floor(random() * 100_000) - 1_000),
    () => outcomes.limitedSomehow(random() < 0.5 ? "rate" : "quota"),
    () => outcomes.limitedSomehow("quota", "model"),
    () => outcomes.noResponse({ pooled: random() < 0.3, recoverable }),
    outcomes.unauthorized,
    outcomes.noCredits,
    outcomes.modelUnsupported,
    outcomes.edgeBlock,
    outcomes.incomplete,
    outcomes.requestFault,
    outcomes.credentialDead,
  ];
  const chance = random();
  // Deaths are rarer than the rest, or nothing else would be seen.
  if (chance > 0.03 && chance < 0.4) return outcomes.success();
  return makers[Math.floor(random() * (chance <= 0.03 ? makers.length : makers.length - 1))]!();
}

function disturb(world: World): void {
  const { pool, random, nowMs } = world;
  const { id } = world.accounts[Math.floor(random() * world.accounts.length)]!;
  const what = random();
  if (random() < 0.1) world.outageUntilMs = nowMs + Math.floor(random() * 3 * MINUTE_MS);
  if (what < 0.6) pool.observeQuota(id, drawReading(world), nowMs);
  else if (what < 0.7) pool.resetAccount(id, nowMs);
  else if (what < 0.8) pool.toppedUp(id, nowMs);
  else if (what < 0.9) pool.setEnabled(id, random() < 0.8, nowMs);
  else pool.refreshed(id, `f${random()}`, nowMs);
}

function drawReading({ random, nowMs }: World): QuotaReading {
  return {
    observedAtMs: nowMs + Math.floor((random() - 0.7) * 100_000),
    source: "usage_page",
    windows: [{
      name: "5h",
      usedPercent: random() < 0.1 ? null : random() < 0.5 ? 100 : 20,
      resetAtMs: random() < 0.3 ? null : nowMs + Math.floor(random() * 10 * HOUR_MS),
      modelFamily: random() < 0.2 ? "m1" : null,
    }],
    limitReached: random() < 0.2 ? true : null,
    servesBeyondWindows: random() < 0.1,
    creditsAvailable: random() < 0.3 ? true : null,
    plan: null,
  };
}

function checkLaunch(world: World, client: Client, launch: Launch): void {
  const { pool, nowMs } = world;
  const { spec } = client;
  assert(!client.committed, "P7: nothing after commit");
  if (spec.replay === "once") assertEquals(client.launches.length, 0, "P13: once is once");
  assert(!world.flying.has(launch.attempt), "attempt ids are unique");
  if (spec.pinned) assertEquals(launch.account, spec.bound, "a pinned request goes nowhere else");
  const round = client.launches.filter((earlier) => earlier.round === launch.round);
  const slots = round.filter(isSlot);
  if (isSlot(launch)) {
    assert(!slots.some((earlier) => earlier.account === launch.account), "P4: once a round");
    const { maxRetryCredentials } = world.policy;
    if (maxRetryCredentials > 0) assert(slots.length < maxRetryCredentials, "P5: slots");
  } else assertEquals(launch.account, slots.at(-1)!.account, "P4: repairs stay on the slot's account");
  assert(launch.round <= world.policy.requestRetry, "P5: rounds");
  const repairs = client.launches.filter((l) => l.cause === "repair" && l.account === launch.account);
  if (launch.cause === "repair") assertEquals(repairs.length, 0, "P5: one repair an account");
  const recoveries = client.launches.filter((l) => l.cause === "recovery");
  if (launch.cause === "recovery") assert(recoveries.length < spec.recoveryAttempts, "P5: recovery");
  checkGates(world, launch);
  for (const view of pool.describeAccounts(nowMs)) {
    if (view.account.id !== launch.account) continue;
    const { health } = view;
    assert(view.account.enabled, "P3: disabled");
    assert(health.credential === null, "P3: credential");
    assert(health.credits === null || launch.trial === "credits", "P3: credits");
    assert((health.deadline?.untilMs ?? 0) <= nowMs || launch.trial === "recheck", "P3: deadline");
    assert((health.inferred?.untilMs ?? 0) <= nowMs, "P3: inferred");
    assert((health.ladder?.untilMs ?? 0) <= nowMs, "P3: ladder");
    assert((health.park?.untilMs ?? 0) <= nowMs || health.overrideUntilMs > nowMs, "P3: park");
    const parkLimitMs = (health.park?.observedAtMs ?? 0) + 30 * MINUTE_MS;
    assert((health.park?.untilMs ?? 0) <= parkLimitMs, "P18: park");
    if (launch.model !== null) assert(!health.exclusions.has(launch.model), "P3: exclusion");
  }
}

function checkGates(world: World, launch: Launch): void {
  const { pool, nowMs, flying } = world;
  const pause = pool.describeNetwork(nowMs);
  if (pause !== null) {
    assert(pause.untilMs <= nowMs, "P2: no launch while the pause is live");
    assertEquals(launch.probe, "network", "P2: one probe");
    assertEquals(pause.probe?.attempt, launch.attempt);
  }
  const provider = pool.describeProviders(nowMs).find(({ id }) => id === launch.provider)!;
  if (provider.cooldown !== null && launch.probe !== "network") {
    const rechecks = launch.trial === "recheck" && provider.cooldown.derived;
    assert(provider.cooldown.untilMs <= nowMs || rechecks, "P3: cooldown");
    if (!rechecks) {
      assertEquals(launch.probe, "provider", "P1: a half-open gate is leased");
      assertEquals(provider.probe.lease?.attempt, launch.attempt);
    }
  }
  for (const other of flying.values()) {
    if (launch.probe === "network") assert(other.probe !== "network" || pause === null, "P1: network probe");
  }
}

function checkAnswer(world: World, client: Client, step: Extract<Step, { kind: "answer" }>): void {
  const { answer } = step;
  assertEquals(answer.retryAtMs !== null, answer.status === 429, "P34");
  assertEquals(answer.undispatched, client.launches.length === 0);
  if (answer.status === 429) assert(answer.retryAtMs! >= world.nowMs, "P34: never in the past");
}

function finish(world: World, client: Client, status: number): void {
  client.done = true;
  const record = world.pool.finish(client.plan, status, null, world.nowMs);
  assertEquals(record.attempts.length, client.launches.length);
  const bound = (1 + world.policy.requestRetry) * world.accounts.length + world.accounts.length +
    client.spec.recoveryAttempts;
  assert(client.launches.length <= bound, "P5: bound");
  const ledger = world.store.ledgers.get(client.spec.id);
  const charged = ledger?.charged ?? [];
  assertEquals(new Set(charged).size, charged.length, "P26: charged once");
  assertEquals(charged.length, Math.max(0, client.launches.length - 1), "P26: all but the first are charged");
  if (ledger !== undefined) assert(ledger.closed, "a finished ledger is closed");
}

/** P31: what a new process would read is what this one believes. */
function checkDisk(world: World): void {
  const again = new PoolRuntime({
    store: world.store,
    affinity: new MemoryAffinityStore(),
    policy: world.policy,
    quota: { maxParkMs: 30 * MINUTE_MS, recheck: false },
    routing: { strategy: "round-robin", sessionTtlMs: HOUR_MS },
    seed: 1,
  });
  const known = world.pool.describeAccounts(world.nowMs);
  again.restore(world.nowMs);
  again.reconcile(known.map((view) => ({ ...view.account, enabled: true })), world.nowMs);
  const live = (untilMs: number | undefined) => untilMs !== undefined && untilMs > world.nowMs ? untilMs : 0;
  for (const [at, view] of again.describeAccounts(world.nowMs).entries()) {
    const was = known[at]!;
    assertEquals(view.account, was.account, "P31: the switch");
    assertEquals(live(view.health.deadline?.untilMs), live(was.health.deadline?.untilMs), "P23: deadline");
    const durable = was.health.credential?.kind === "credential_invalid" ? null : was.health.credential;
    assertEquals(view.health.credential, durable, "P25: credential");
    // A page that shows credits makes the test due at once, also when it is read back.
    assertEquals(view.health.credits?.openedAtMs, was.health.credits?.openedAtMs, "P31: credits");
    assertEquals(view.health.ladder, null, "P24");
    assertEquals(view.health.inferred, null, "P24");
    assertEquals(view.health.exclusions.size, 0, "P24");
    assertEquals(view.health.overrideUntilMs, 0, "P24");
  }
}

function isSlot(launch: Launch): boolean {
  return launch.cause === "first" || launch.cause === "failover" || launch.cause === "round";
}
