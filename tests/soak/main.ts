/**
 * `deno task soak [--minutes N] [--seed S]`: the program as a process under mixed load, faults, reloads and kills.
 *
 * The simulated provider numbers everything: nothing may be lost or doubled, no acknowledged deadline forgotten, no
 * descriptor or memory may grow, and the event loop may not stall.
 */
import {
  created,
  delta,
  failed,
  failure,
  hangUp,
  json,
  numbered,
  ok,
  type Question,
  type Reply,
  reset,
  rst,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { createRandom } from "../../lib/runtime/chance.ts";
import { ProcessRig } from "../support/process_rig.ts";

const ACCOUNTS = ["A", "B", "C", "D"];
/** Out of quota from the first minute on: after its one refusal nobody may ask it again, over every kill. */
const SPENT = "Z";
const STREAMS = 24;
const SOCKETS = 6;
/** Long enough that growth within one life can be seen. */
const KILL_EVERY_MS = 240_000;
const SAMPLE_MS = 5_000;
/** Samples of a life's first minute are warm-up. */
const WARM_SAMPLES = 12;
const LAG_LIMIT_MS = 50;
const GROWTH_LIMIT = 1.35;

const option = (name: string, fallback: number): number => {
  const at = Deno.args.indexOf(`--${name}`);
  return at < 0 ? fallback : Number(Deno.args[at + 1]);
};
const minutes = option("minutes", 30);
const seed = option("seed", 1);
const random = createRandom(seed);
const problems: string[] = [];
const counts = {
  streams: 0,
  whole: 0,
  failedTold: 0,
  bodies: 0,
  cancels: 0,
  turns: 0,
  socketsClosed: 0,
  kills: 0,
  reloads: 0,
  refused: 0,
};
const lags: number[] = [];
/** Footprints of the present life, one every few seconds. */
let samples: { rssMb: number; descriptors: number }[] = [];
let worstGrowth = { rss: 1, descriptors: 1 };
let up = false;

const rig = await ProcessRig.create([...ACCOUNTS, SPENT], {
  "max-retry-interval": 5,
  timeouts: { "idle-seconds": 30 },
  logging: { level: "warn", format: "json" },
});
for (const name of ACCOUNTS) {
  rig.provider.account(`SENT-tok-${name}`).otherwise({ kind: "dynamic", make: answer });
}
for (const name of ACCOUNTS) rig.provider.account(`SENT-tok-${name}`).websocket.otherwise(ok("turn"));
rig.provider.account(`SENT-tok-${SPENT}`).otherwise(
  failure(429, { type: "usage_limit_reached", headers: { "retry-after": "86400" } }),
);
rig.provider.account(`SENT-tok-${SPENT}`).websocket.otherwise(
  failure(429, { type: "usage_limit_reached", headers: { "retry-after": "86400" } }),
);

const endAtMs = performance.now() + minutes * 60_000;
const running = (): boolean => performance.now() < endAtMs && problems.length === 0;
await rig.start();
up = true;
// Every account is asked once, so that the spent one is known before the first kill.
for (let turn = 0; turn < ACCOUNTS.length * 2 + 2; turn++) await ask({ stream: false });

await Promise.all([
  ...Array.from({ length: STREAMS }, () => loop(streamOnce)),
  ...Array.from({ length: SOCKETS }, () => loop(socketOnce)),
  loop(bodyOnce),
  loop(cancelOnce),
  loop(reloadOnce),
  loop(measureLag),
  loop(sampleOnce),
  killNowAndThen(),
]);
judgeLife();
const spentHits = rig.provider.hitsOf(`SENT-tok-${SPENT}`).length;
if (spentHits > 1) problems.push(`the spent account was asked ${spentHits} times`);
lags.sort((a, b) => a - b);
const lagMs = lags[Math.floor(lags.length * 0.99)] ?? 0;
if (lagMs > LAG_LIMIT_MS) problems.push(`event-loop lag p99 is ${lagMs.toFixed(1)} ms`);
if (/SENT-/.test(rig.stderr + rig.stdout)) problems.push("a secret is in the log");
rig.signal("SIGTERM");
const code = await rig.ended();
if (code !== 0) problems.push(`it ended with ${code}`);
await rig[Symbol.asyncDispose]();
console.log(
  JSON.stringify({
    minutes,
    seed,
    ...counts,
    lag_p99_ms: Number(lagMs.toFixed(1)),
    growth: worstGrowth,
    rss_mb: samples.at(-1)?.rssMb,
    spent_hits: spentHits,
  }),
);
for (const problem of problems) console.error(`FAILED: ${problem}`);
if (problems.length === 0) {
  console.log(`ok: ${minutes} minutes, nothing lost, nothing doubled, no deadline forgotten`);
}
Deno.exit(problems.length === 0 ? 0 : 1);

/** What an account does with one call: mostly serves, sometimes fails in each of the ways there are. */
function answer(question: Question): Reply {
  if (question.json?.["stream"] === false || question.path.endsWith("/compact")) {
    const bytes = typeof question.json?.["pad"] === "string" ? question.json["pad"].length : 0;
    return json({ object: "response.compaction", output: [], bytes });
  }
  const dice = random.next();
  if (dice < 0.72) {
    return stream(
      numbered({ chunks: 5 + Math.floor(random.next() * 40), everyMs: Math.floor(random.next() * 25) }),
    );
  }
  if (dice < 0.78) return failure(503, { code: "server_is_overloaded" });
  if (dice < 0.82) return failure(429, { type: "usage_limit_reached", headers: { "retry-after": "2" } });
  if (dice < 0.86) return stream([created(), failed("server_error")]);
  if (dice < 0.9) return stream([created(), delta("#1 "), rst()]);
  if (dice < 0.94) return hangUp();
  return reset();
}

/** Runs until the time is over; while the process is down it waits. */
async function loop(once: () => Promise<void>): Promise<void> {
  while (running()) {
    if (!up) {
      await pause(50);
      continue;
    }
    try {
      await once();
    } catch {
      // A connection that dies with the process is what a kill is.
      await pause(100);
    }
  }
}

function ask(fields: Record<string, unknown>, init: RequestInit = {}): Promise<Response> {
  return rig.call({ ...fields }, init);
}

async function streamOnce(): Promise<void> {
  const answer = await ask({ stream: true });
  if (answer.status !== 200) {
    counts.refused++;
    await answer.body?.cancel();
    await pause(100 + random.next() * 400);
    return;
  }
  const text = await answer.text();
  counts.streams++;
  const numbers = [...text.matchAll(/"delta":"#(\d+) "/g)].map((match) => Number(match[1]));
  if (!numbers.every((number, index) => number === index + 1)) {
    problems.push(`chunks out of order or doubled: ${numbers.join(",")}`);
  }
  const completed = text.match(/event: response\.completed/g)?.length ?? 0;
  const failures = text.match(/event: response\.failed/g)?.length ?? 0;
  if (completed + failures !== 1) {
    problems.push(`a stream ended with ${completed} completed and ${failures} failed`);
  }
  if ((text.match(/event: response\.created/g)?.length ?? 0) !== 1) {
    problems.push("a stream began not exactly once");
  }
  if (completed === 1) counts.whole++;
  else counts.failedTold++;
}

async function bodyOnce(): Promise<void> {
  const pad = "x".repeat(2_000_000 + Math.floor(random.next() * 6_000_000));
  const answer = await fetch(`${rig.url}/v1/responses/compact`, {
    method: "POST",
    headers: { authorization: "Bearer SENT-key-client-1", "content-type": "application/json" },
    body: JSON.stringify({ model: "m1", pad, stream: false }),
  });
  if (answer.status !== 200) {
    counts.refused++;
    await answer.body?.cancel();
  } else {
    const body = await answer.json();
    if (body.bytes !== pad.length) problems.push(`a body of ${pad.length} arrived as ${body.bytes}`);
    counts.bodies++;
  }
  await pause(300);
}

async function cancelOnce(): Promise<void> {
  const abort = new AbortController();
  const answer = await ask({ stream: true }, { signal: abort.signal });
  const reader = answer.body?.getReader();
  await reader?.read();
  abort.abort();
  await reader?.cancel().catch(() => {});
  counts.cancels++;
  await pause(50);
}

async function socketOnce(): Promise<void> {
  const { default: WebSocket } = await import("ws");
  const socket = new WebSocket(`${rig.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: "Bearer SENT-key-client-1" },
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  let turns = 0;
  socket.on("error", () => resolve());
  socket.on("unexpected-response", () => resolve());
  socket.on("close", () => {
    counts.socketsClosed++;
    resolve();
  });
  socket.on("open", () => socket.send(JSON.stringify({ type: "response.create", model: "m1", input: [] })));
  socket.on("message", (data: { toString(): string }) => {
    if (!data.toString().includes("response.completed")) return;
    counts.turns++;
    if (++turns >= 5 || !running()) socket.close(1000);
    else socket.send(JSON.stringify({ type: "response.create", model: "m1", input: [] }));
  });
  await Promise.race([promise, pause(20_000)]);
  socket.terminate();
  await pause(200);
}

async function reloadOnce(): Promise<void> {
  await pause(7_000);
  rig.writeConfig({
    "max-retry-interval": 4 + (counts.reloads % 3),
    timeouts: { "idle-seconds": 30 },
    logging: { level: "warn", format: "json" },
  });
  if (counts.reloads % 2 === 0) rig.writeAccount("D");
  else await Deno.remove(rig.folder.file("accounts/D.json")).catch(() => {});
  counts.reloads++;
}

async function measureLag(): Promise<void> {
  const began = performance.now();
  const answer = await fetch(`${rig.url}/healthz`);
  await answer.body?.cancel();
  lags.push(performance.now() - began);
  await pause(100);
}

async function killNowAndThen(): Promise<void> {
  while (running()) {
    await pause(Math.min(KILL_EVERY_MS, Math.max(0, endAtMs - performance.now())));
    if (!running() || endAtMs - performance.now() < 15_000) continue;
    up = false;
    judgeLife();
    rig.signal("SIGKILL");
    await rig.ended();
    counts.kills++;
    await rig.start();
    await (await fetch(`${rig.url}/healthz`)).body?.cancel().catch(() =>
      problems.push(`it did not start again: ${rig.stderr.slice(-500)}`)
    );
    up = true;
  }
}

async function sampleOnce(): Promise<void> {
  await pause(SAMPLE_MS);
  if (up) samples.push(await footprint());
}

/** Compares the end of a life with what it was after its first minute, under the same load. */
function judgeLife(): void {
  const warm = samples.slice(WARM_SAMPLES, WARM_SAMPLES + 6);
  const late = samples.slice(-6);
  if (samples.length >= WARM_SAMPLES + 12) {
    const mean = (of: "rssMb" | "descriptors", list: typeof samples): number =>
      list.reduce((sum, one) => sum + one[of], 0) / list.length;
    const growth = {
      rss: mean("rssMb", late) / mean("rssMb", warm),
      descriptors: mean("descriptors", late) / mean("descriptors", warm),
    };
    if (growth.rss > worstGrowth.rss) worstGrowth = { ...worstGrowth, rss: Number(growth.rss.toFixed(2)) };
    if (growth.descriptors > worstGrowth.descriptors) {
      worstGrowth = { ...worstGrowth, descriptors: Number(growth.descriptors.toFixed(2)) };
    }
    if (growth.rss > GROWTH_LIMIT || growth.descriptors > GROWTH_LIMIT) {
      problems.push(`a life grew: ${JSON.stringify(growth)}`);
    }
  }
  samples = [];
}

async function footprint(): Promise<{ rssMb: number; descriptors: number }> {
  const pid = rig.pid;
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  let descriptors = 0;
  for await (const _entry of Deno.readDir(`/proc/${pid}/fd`)) descriptors++;
  return { rssMb: Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024), descriptors };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
