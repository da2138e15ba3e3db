/**
 * `deno run -A tests/bench/streams_load.ts [--seconds N] [--streams N] [--sockets N]`: many long streams at once.
 *
 * The program as a process of its own; the provider numbers every chunk, and every client counts along: nothing may be
 * lost or doubled, also not for clients that read slowly or that leave in the middle. Afterwards memory has to be back
 * within 20 % of what it was after a warm-up, and descriptors at their number. Ends with 1 when one of these fails.
 */
import { accept, numbered, receive, type Step, stream } from "../../lib/demo/simulated_replies.ts";
import { LONG_INPUT } from "../support/long_input.ts";
import { ProcessRig } from "../support/process_rig.ts";
import { mustOpenWs } from "../support/ws_client.ts";

const EVERY_MS = 250;
/** Every so many clients one reads slowly, and one leaves half-way. */
const SLOW_EVERY = 10;
const LEAVES_EVERY = 20;
const SLOW_BYTES = 512;
const SLOW_PAUSE_MS = 400;
const SETTLE_MS = 15_000;
const MEMORY_LIMIT = 1.2;
const KEY = { authorization: "Bearer SENT-key-client-1" };

const option = (name: string, fallback: number): number => {
  const at = Deno.args.indexOf(`--${name}`);
  return at < 0 ? fallback : Number(Deno.args[at + 1]);
};

interface Tally {
  chunks: number;
  whole: number;
  left: number;
  readonly problems: string[];
}

/** Counts `#1 `, `#2 ` … of one answer, however its bytes are cut. */
class Counter {
  readonly #name: string;
  readonly #tally: Tally;
  #next = 1;
  #rest = "";
  isComplete = false;

  constructor(name: string, tally: Tally) {
    this.#name = name;
    this.#tally = tally;
  }

  add(text: string): void {
    const whole = this.#rest + text;
    let end = 0;
    for (const match of whole.matchAll(/"#(\d+) "|"type":"response\.completed"/g)) {
      end = match.index + match[0].length;
      if (match[1] === undefined) this.isComplete = true;
      else if (Number(match[1]) === this.#next) {
        this.#next++;
        this.#tally.chunks++;
      } else this.#tally.problems.push(`${this.#name}: #${match[1]} came where #${this.#next} was due`);
    }
    this.#rest = whole.slice(Math.max(end, whole.length - 64));
  }

  end(expected: number): void {
    if (this.isComplete && this.#next === expected + 1) this.#tally.whole++;
    else this.#tally.problems.push(`${this.#name}: ended after #${this.#next - 1} of ${expected}`);
  }
}

type Manner = "steady" | "slow" | "leaves";

function mannerOf(index: number): Manner {
  if (index % LEAVES_EVERY === 7) return "leaves";
  return index % SLOW_EVERY === 3 ? "slow" : "steady";
}

async function runStream(rig: ProcessRig, index: number, chunks: number, tally: Tally): Promise<void> {
  const manner = mannerOf(index);
  const counter = new Counter(`stream ${index}`, tally);
  const body = JSON.stringify({
    model: "m1",
    input: LONG_INPUT,
    stream: true,
    prompt_cache_key: `s${index}`,
  });
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: rig.port });
  const head =
    `POST /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: ${KEY.authorization}\r\nconnection: close\r\n` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  await connection.write(new TextEncoder().encode(head));
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(manner === "slow" ? SLOW_BYTES : 65_536);
  const leaveAtMs = performance.now() + chunks * EVERY_MS / 2;
  const quickAtMs = performance.now() + chunks * EVERY_MS;
  for (;;) {
    const count = await connection.read(buffer);
    if (count === null) break;
    counter.add(decoder.decode(buffer.subarray(0, count), { stream: true }));
    if (manner === "leaves" && performance.now() > leaveAtMs) {
      tally.left++;
      return connection.close();
    }
    if (manner === "slow" && performance.now() < quickAtMs) {
      await new Promise((resolve) => setTimeout(resolve, SLOW_PAUSE_MS));
    }
  }
  connection.close();
  counter.end(chunks);
}

async function runSocket(rig: ProcessRig, index: number, chunks: number, tally: Tally): Promise<void> {
  const manner = mannerOf(index);
  const counter = new Counter(`socket ${index}`, tally);
  const client = await mustOpenWs(`${rig.url}/v1/responses`, {
    headers: { ...KEY, "session-id": `w${index}` },
  });
  client.create();
  const leaveAtMs = performance.now() + chunks * EVERY_MS / 2;
  const quickAtMs = performance.now() + chunks * EVERY_MS;
  while (!counter.isComplete) {
    const frame = await client.next();
    client.forget();
    counter.add(frame as string);
    if (manner === "leaves" && performance.now() > leaveAtMs) {
      tally.left++;
      return await client[Symbol.asyncDispose]();
    }
    if (manner === "slow" && performance.now() < quickAtMs) {
      client.socket.pause();
      await new Promise((resolve) => setTimeout(resolve, SLOW_PAUSE_MS));
      client.socket.resume();
    }
  }
  counter.end(chunks);
  await client.close();
}

async function load(rig: ProcessRig, seconds: number, streams: number, sockets: number): Promise<Tally> {
  const chunks = Math.max(1, Math.round(seconds * 1_000 / EVERY_MS));
  const steps = () => numbered({ chunks, everyMs: EVERY_MS });
  function* turn(): Generator<Step> {
    yield receive();
    yield* steps();
    yield receive();
  }
  rig.provider.anyone.otherwise({ kind: "dynamic", make: () => stream(steps()) });
  rig.provider.anyone.websocket.otherwise({ kind: "dynamic", make: () => accept(turn()) });
  const tally: Tally = { chunks: 0, whole: 0, left: 0, problems: [] };
  const running: Promise<void>[] = [];
  const start = async (run: typeof runStream, count: number): Promise<void> => {
    for (let index = 0; index < count; index++) {
      running.push(run(rig, index, chunks, tally).catch((error) => void tally.problems.push(String(error))));
      if (index % 25 === 24) await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  await Promise.all([start(runStream, streams), start(runSocket, sockets)]);
  await Promise.all(running);
  rig.provider.hits.length = 0;
  return tally;
}

interface Footprint {
  readonly rssMb: number;
  readonly descriptors: number;
}

function footprint(pid: number): Footprint {
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  return {
    rssMb: Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? NaN) / 102.4) / 10,
    descriptors: [...Deno.readDirSync(`/proc/${pid}/fd`)].length,
  };
}

/** The lowest of some looks: what a collector has not yet come round to is not held. */
async function settled(pid: number): Promise<Footprint> {
  let best = footprint(pid);
  const endMs = performance.now() + SETTLE_MS;
  while (performance.now() < endMs) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const now = footprint(pid);
    best = {
      rssMb: Math.min(best.rssMb, now.rssMb),
      descriptors: Math.min(best.descriptors, now.descriptors),
    };
  }
  return best;
}

function cpuSeconds(pid: number): number {
  const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function main(): Promise<number> {
  const [seconds, streams, sockets] = [
    option("seconds", 60),
    option("streams", 1_000),
    option("sockets", 200),
  ];
  await using rig = await ProcessRig.create(["A", "B"], { logging: { level: "warn", format: "json" } });
  await rig.start();
  // The same load, shorter: pools, code and heap reach their size.
  const warm = await load(rig, Math.min(10, seconds), streams, sockets);
  const base = await settled(rig.pid);
  let peak = base;
  const watch = setInterval(() => {
    const now = footprint(rig.pid);
    peak = {
      rssMb: Math.max(peak.rssMb, now.rssMb),
      descriptors: Math.max(peak.descriptors, now.descriptors),
    };
  }, 250);
  const cpuBefore = cpuSeconds(rig.pid);
  const beganMs = performance.now();
  const tally = await load(rig, seconds, streams, sockets);
  const tookSeconds = (performance.now() - beganMs) / 1_000;
  const cpu = cpuSeconds(rig.pid) - cpuBefore;
  clearInterval(watch);
  const after = await settled(rig.pid);
  const problems = [...warm.problems, ...tally.problems];
  const expected = streams + sockets;
  if (tally.whole + tally.left !== expected) {
    problems.push(`${expected - tally.whole - tally.left} answers are missing`);
  }
  if (after.rssMb > base.rssMb * MEMORY_LIMIT) {
    problems.push(`memory stayed at ${after.rssMb} MB, from ${base.rssMb}`);
  }
  if (after.descriptors > base.descriptors) {
    problems.push(`${after.descriptors - base.descriptors} descriptors were not given back`);
  }
  console.log(JSON.stringify({
    streams,
    sockets,
    seconds: Math.round(tookSeconds),
    whole: tally.whole,
    left: tally.left,
    chunks: tally.chunks,
    chunksASecond: Math.round(tally.chunks / tookSeconds),
    cpuMicrosecondsAChunk: Math.round(cpu * 1e7 / tally.chunks) / 10,
    base,
    peak,
    after,
    problems: problems.slice(0, 20),
  }));
  return problems.length === 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main());
