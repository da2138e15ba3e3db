/**
 * `deno task soak [--minutes N] [--seed S]`: the program as a process under mixed load, faults, reloads and kills.
 *
 * The provider and the clients number everything: nothing may be lost or doubled, no acknowledged deadline forgotten,
 * no descriptor or memory may grow, and the event loop of the process may not stall. Parts of a minute are allowed.
 */
import { createRandom } from "../../lib/runtime/chance.ts";
import { startLagMeter } from "../../lib/runtime/lag_meter.ts";
import { inspectFlag, readHeap } from "../support/heap_probe.ts";
import { freePort, ProcessRig } from "../support/process_rig.ts";
import { Clients, pause } from "./clients.ts";
import { type Footprint, judgeGrowth, readFootprint, type Settled } from "./growth.ts";
import { LagBook, readLag } from "./lag.ts";
import { Deadlines, Ledger } from "./ledger.ts";
import { PASSING, SoakUpstream, SPENT } from "./upstream.ts";

const ACCOUNTS = ["A", "B", "C", PASSING, SPENT];
const STREAMS = 16;
const SOCKETS = 6;
const CANCELLERS = 2;
const BODIES = 1;
const KILL_EVERY_MS = 180_000;
/** The last life is the longest: growth shows only with time. */
const KILLS_END_SHARE = 0.6;
/** Time for a deadline to be stated and written down before the kill it must outlive. */
const BEFORE_KILL_MS = 3_000;
const RELOAD_EVERY_MS = 7_000;
const SAMPLES_A_LIFE = 150;
const SAMPLE_LEAST_MS = 2_000;
const SETTLED_A_LIFE = 16;
/** A collection that is asked for makes the loop late: one in 160 measures of the lag, and no more. */
const SETTLED_LEAST_MS = 40_000;

const option = (name: string, fallback: number): number => {
  const at = Deno.args.indexOf(`--${name}`);
  return at < 0 ? fallback : Number(Deno.args[at + 1]);
};
const minutes = option("minutes", 30);
const seed = option("seed", 1);
if (!(minutes > 0)) throw new RangeError(`--minutes must be above 0, got ${minutes}`);
const totalMs = minutes * 60_000;
const random = createRandom(seed);
const ledger = new Ledger();
const deadlines = new Deadlines(ledger);
const life = { number: 0, up: false, over: false };
let kills = 0;
let reloads = 0;
const lag = new LagBook();
/** Of the present life. */
let samples: Footprint[] = [];
let settled: Settled[] = [];

const rig = await ProcessRig.create(ACCOUNTS, configOf(0));
const upstream = new SoakUpstream(rig.provider, ledger, deadlines, random);
const clients = new Clients(rig.url, ledger, upstream, random, () => life);
const inspectPort = freePort();
const ownLags: number[] = [];
const ownMeter = startLagMeter((seconds) => ownLags.push(seconds));
const beganAtMs = performance.now();
const leftMs = (): number => beganAtMs + totalMs - performance.now();

await start();
await Promise.all([
  ...Array.from({ length: STREAMS }, () => clients.run("stream")),
  ...Array.from({ length: SOCKETS }, () => clients.run("socket")),
  ...Array.from({ length: CANCELLERS }, () => clients.run("cancel")),
  ...Array.from({ length: BODIES }, () => clients.run("body")),
  killNowAndThen(),
  reloadNowAndThen(),
  watchFootprint(),
  watchMemory(),
  endInTime(),
]);
await finish();

async function start(): Promise<void> {
  await rig.start(undefined, { flags: [inspectFlag(inspectPort)] });
  const answer = await fetch(`${rig.url}/healthz`).catch(() => null);
  await answer?.body?.cancel();
  if (answer?.status !== 200) ledger.problem(`it did not start: ${rig.stderr.slice(-500)}`);
  life.up = true;
}

async function killNowAndThen(): Promise<void> {
  const everyMs = Math.min(KILL_EVERY_MS, totalMs / 4);
  while (leftMs() - everyMs >= totalMs * (1 - KILLS_END_SHARE) && !life.over) {
    await pauseWhileOn(everyMs - BEFORE_KILL_MS);
    upstream.limitBeforeKill();
    await pauseWhileOn(BEFORE_KILL_MS);
    if (life.over) return;
    life.up = false;
    life.number++;
    upstream.killed();
    rig.signal("SIGKILL");
    await rig.ended();
    scanLog();
    kills++;
    lag.endLife();
    samples = [];
    settled = [];
    await start();
  }
}

async function reloadNowAndThen(): Promise<void> {
  while (!life.over) {
    await pauseWhileOn(RELOAD_EVERY_MS);
    rig.writeConfig(configOf(reloads));
    if (reloads % 2 === 0) await Deno.remove(rig.folder.file(`accounts/${PASSING}.json`)).catch(() => {});
    else rig.writeAccount(PASSING);
    reloads++;
  }
}

async function watchFootprint(): Promise<void> {
  while (!life.over) {
    await pauseWhileOn(Math.max(SAMPLE_LEAST_MS, totalMs / SAMPLES_A_LIFE / 4));
    await whileUp(async () => {
      const footprint = await readFootprint(rig.pid, performance.now());
      const answer = await fetch(`${rig.url}/metrics`, {
        headers: { authorization: "Bearer SENT-key-admin-1" },
      });
      const read = readLag(await answer.text());
      samples.push(footprint);
      lag.add(read, footprint);
    });
  }
}

/** A collection that is asked for stops the process for a moment: only as often as growth needs. */
async function watchMemory(): Promise<void> {
  while (!life.over) {
    await pauseWhileOn(Math.max(SETTLED_LEAST_MS, totalMs * (1 - KILLS_END_SHARE) / SETTLED_A_LIFE));
    await whileUp(async () => {
      const heap = await readHeap(inspectPort);
      const { residentBytes } = await readFootprint(rig.pid, performance.now());
      settled.push({ ...heap, residentBytes, atMs: performance.now() });
    });
  }
}

/** A reading that a kill cuts short is none. */
async function whileUp(read: () => Promise<void>): Promise<void> {
  const { number, up } = life;
  if (!up || life.over) return;
  try {
    await read();
  } catch (error) {
    if (life.up && life.number === number) ledger.problem(`the process could not be read: ${error}`);
  }
}

async function endInTime(): Promise<void> {
  while (leftMs() > 0 && ledger.problems.length === 0) await pause(100);
  life.over = true;
}

async function finish(): Promise<void> {
  ownMeter.stop();
  const growth = judgeGrowth(samples, settled);
  for (const problem of growth?.problems ?? []) ledger.problem(problem);
  if (lag.problem !== null) ledger.problem(lag.problem);
  for (const violation of new Set(rig.provider.violations)) ledger.problem(violation);
  rig.signal("SIGTERM");
  const code = await rig.ended();
  if (code !== 0) ledger.problem(`it ended with ${code}`);
  scanLog();
  const { size } = await Deno.stat(rig.folder.file("state/holdfast.db"));
  await rig[Symbol.asyncDispose]();
  console.log(JSON.stringify({
    minutes: Number(((performance.now() - beganAtMs) / 60_000).toFixed(1)),
    seed,
    ...clients.counts,
    upstream: upstream.counts,
    kills,
    reloads,
    deadlines: { stated: deadlines.stated, over_kills: deadlines.overKills },
    lag: {
      ...lag.report(),
      load_process_p99_ms: Number(
        ((ownLags.sort((a, b) => a - b)[Math.floor(ownLags.length * 0.99)] ?? 0) * 1_000).toFixed(1),
      ),
    },
    // Null: the last life was too short to say.
    growth: growth === null
      ? null
      : { heap: growth.heap, resident: growth.resident, descriptors: growth.descriptors },
    rss_mb: Math.round((samples.at(-1)?.residentBytes ?? 0) / 1_048_576),
    settled_heap_mb: settled.map((one) => Math.round((one.usedBytes + one.buffersBytes) / 1_048_576)),
    settled_rss_mb: settled.map(({ residentBytes }) => Math.round(residentBytes / 1_048_576)),
    descriptors: samples.at(-1)?.descriptors,
    database_kb: Math.round(size / 1_024),
    load_average: Deno.loadavg().map((value) => Number(value.toFixed(1))),
  }));
  for (const problem of ledger.problems.slice(0, 20)) console.error(`FAILED: ${problem}`);
  if (ledger.problems.length > 0) Deno.exit(1);
  console.log(`ok: ${minutes} minutes, nothing lost, nothing doubled, no deadline forgotten`);
  Deno.exit(0);
}

function scanLog(): void {
  if (/SENT-/.test(rig.stderr + rig.stdout)) ledger.problem("a secret is in the log");
}

function configOf(version: number): Record<string, unknown> {
  return {
    "max-retry-interval": 4 + version % 3,
    timeouts: { "first-byte-seconds": 5, "idle-seconds": 10 },
    logging: { level: "warn", format: "json" },
  };
}

/** Ends early when the run is over. */
async function pauseWhileOn(ms: number): Promise<void> {
  const untilMs = performance.now() + ms;
  while (!life.over && performance.now() < untilMs) {
    await pause(Math.min(100, Math.max(1, untilMs - performance.now())));
  }
}
