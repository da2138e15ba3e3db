/**
 * What withheld answers cost everybody else, and how much memory they take.
 *
 *     deno run -A tests/bench/recovery_bench.ts [--repetitions N] [--arrivals N] [--source]
 *
 * Two proxies over one upstream, alike but for `streaming.recovery.attempts`: 16 long streams begin at each, which fill
 * every slot where recovery is on, then 200 more arrive at each, one here, one there, so that whatever else the machine
 * does wrongs neither. Measured is the time from a request to the first bytes of its body, and a turn's ratio is that of
 * its medians. Absolute figures are those of the machine, the ratio carries over. Then 16 answers of just below
 * `max-buffer-bytes` are withheld at once. Ends with 1 when the ratio passes 1.1, or more was held than the bound.
 */
import { LoadConnection } from "./load_connection.ts";
import { requestMaker } from "./load_request.ts";
import type { ServerProcess } from "./processes.ts";
import { median } from "./report.ts";
import { BENCH_ADMIN_KEY, Subjects } from "./subjects.ts";

const WITHHELD = 16;
const MAX_BUFFER_BYTES = 8_388_608;
/** What each withheld stream holds while the others arrive; it goes on growing. */
const HELD_BYTES = 1_000_000;
/** As much as fits for sure, the events before it included. */
const NEARLY_ALL_BYTES = MAX_BUFFER_BYTES - 200_000;
/** One event, and nothing after it: what a chunk of 200 busy streams costs is measured elsewhere. */
const FIRST_CHUNK = "quiet-1";
const ARRIVAL_GAP_MS = 5;
const RATIO_LIMIT = 1.1;
const SLOT_LIMIT_MS = 60_000;
const SETTLE_MS = 1_500;
const DECODER = new TextDecoder("latin1");

type Side = "on" | "off";

interface Figures {
  readonly p50Ms: number;
  readonly p95Ms: number;
}

async function main(): Promise<number> {
  const option = (name: string, fallback: number): number => {
    const at = Deno.args.indexOf(`--${name}`);
    return at < 0 ? fallback : Number(Deno.args[at + 1]);
  };
  const repetitions = option("repetitions", 9);
  const arrivals = option("arrivals", 200);
  const subjects = await Subjects.open(Deno.args.includes("--source"));
  const proxies: Partial<Record<Side, ServerProcess>> = {};
  try {
    proxies.on = await subjects.start("holdfast", undefined, [], recovery(2));
    proxies.off = await subjects.start("holdfast", undefined, [], recovery(0));
    const figures: Record<Side, Figures>[] = [];
    // The first turn is for code and pools to get warm.
    for (let turn = 0; turn <= repetitions; turn++) {
      const sides = turn % 2 === 0 ? ["on", "off"] as const : ["off", "on"] as const;
      const got = await measureArrivals(subjects, proxies as Record<Side, ServerProcess>, sides, arrivals);
      if (turn > 0) figures.push(got);
      console.error(
        `${turn === 0 ? "warm-up" : turn} off ${tell(got.off)} on ${tell(got.on)} ratio ${
          ratioOf(got).toFixed(3)
        }`,
      );
    }
    const ratio = reportArrivals(figures, arrivals);
    // One of its own, whose memory knows nothing of what came before.
    for (const proxy of Object.values(proxies)) await proxy.stop();
    proxies.on = await subjects.start("holdfast", undefined, [], recovery(2));
    delete proxies.off;
    const held = await measureMemory(subjects, proxies.on);
    return ratio <= RATIO_LIMIT && held <= WITHHELD * MAX_BUFFER_BYTES ? 0 : 1;
  } finally {
    for (const proxy of Object.values(proxies)) await proxy.stop();
    await subjects.close();
  }
}

function recovery(attempts: number): Record<string, unknown> {
  return {
    streaming: {
      recovery: { attempts, "max-concurrent": WITHHELD, "max-buffer-bytes": MAX_BUFFER_BYTES },
    },
  };
}

async function measureArrivals(
  subjects: Subjects,
  proxies: Record<Side, ServerProcess>,
  sides: readonly Side[],
  arrivals: number,
): Promise<Record<Side, Figures>> {
  const long: LoadConnection[] = [];
  for (const side of sides) {
    for (let at = 0; at < WITHHELD; at++) long.push(await begin(proxies[side], at, `at-once-${HELD_BYTES}`));
  }
  const drains = long.map((connection) => drain(connection));
  try {
    await untilHeld(proxies.on, WITHHELD * HELD_BYTES);
    await pause(SETTLE_MS);
    const times: Record<Side, Promise<number>[]> = { on: [], off: [] };
    const open: LoadConnection[] = [];
    const beganMs = performance.now();
    for (let number = 0; number < arrivals * sides.length; number++) {
      const dueMs = beganMs + number * ARRIVAL_GAP_MS;
      if (dueMs > performance.now()) await pause(dueMs - performance.now());
      const side = sides[number % sides.length]!;
      times[side].push(timeToFirstChunk(proxies[side], 100 + number, open));
    }
    const figures = {
      on: summarize(await Promise.all(times.on)),
      off: summarize(await Promise.all(times.off)),
    };
    for (const connection of open) connection.close();
    return figures;
  } finally {
    await subjects.endStreams();
    for (const side of sides) await untilFree(proxies[side], 0);
    for (const connection of long) connection.close();
    await Promise.all(drains);
  }
}

function summarize(times: readonly number[]): Figures {
  const sorted = times.toSorted((a, b) => a - b);
  return { p50Ms: median(sorted), p95Ms: sorted[Math.floor(sorted.length * 0.95)]! };
}

function ratioOf(figures: Record<Side, Figures>): number {
  return figures.on.p50Ms / figures.off.p50Ms;
}

/** Sends a streaming request; what comes of it depends on the model. */
async function begin(proxy: ServerProcess, session: number, model: string): Promise<LoadConnection> {
  const make = requestMaker({
    path: "/v1/responses",
    model,
    stream: true,
    inputBytes: 700,
    port: proxy.port,
  });
  const connection = await LoadConnection.open(proxy.port);
  await connection.send(make(session, session).slice());
  return connection;
}

/** Reads until the connection is closed, from either side. */
async function drain(connection: LoadConnection): Promise<void> {
  try {
    while (await connection.read() !== null);
  } catch {
    // Closed here.
  }
}

async function timeToFirstChunk(
  proxy: ServerProcess,
  session: number,
  open: LoadConnection[],
): Promise<number> {
  const beganMs = performance.now();
  const connection = await begin(proxy, session, FIRST_CHUNK);
  open.push(connection);
  let text = "";
  for (;;) {
    const bytes = await connection.read();
    if (bytes === null) throw new Error(`Cannot measure: the proxy closed after ${JSON.stringify(text)}`);
    text += DECODER.decode(bytes);
    const headEnd = text.indexOf("\r\n\r\n");
    if (headEnd >= 0 && text.length > headEnd + 4) break;
  }
  const tookMs = performance.now() - beganMs;
  if (!text.startsWith("HTTP/1.1 200")) throw new Error(`Cannot measure: the proxy answered ${text}`);
  void drain(connection);
  return tookMs;
}

/** @returns the median of the turns' ratios. */
function reportArrivals(figures: readonly Record<Side, Figures>[], arrivals: number): number {
  const middle = (side: Side, figure: keyof Figures) => median(figures.map((one) => one[side][figure]));
  const ratio = median(figures.map(ratioOf));
  const p95Ratio = median(figures.map(({ on, off }) => on.p95Ms / off.p95Ms));
  console.log(
    `| ${arrivals} streams beside ${WITHHELD} long ones, ${figures.length} turns | recovery off | on | ratio |\n` +
      `|---|--:|--:|--:|`,
  );
  for (const [figure, name, of] of [["p50Ms", "p50", ratio], ["p95Ms", "p95", p95Ratio]] as const) {
    const [off, on] = [middle("off", figure), middle("on", figure)];
    console.log(`| time to first chunk, ${name} | ${ms(off)} | ${ms(on)} | ${of.toFixed(3)} |`);
  }
  return ratio;
}

/** @returns the most bytes that were held back at once. */
async function measureMemory(subjects: Subjects, proxy: ServerProcess): Promise<number> {
  const before = proxy.residentBytes();
  proxy.forgetPeak();
  const held = await Promise.all(
    Array.from({ length: WITHHELD }, (_, at) => begin(proxy, at, `at-once-${NEARLY_ALL_BYTES}`)),
  );
  await untilHeld(proxy, WITHHELD * NEARLY_ALL_BYTES);
  const bytes = await metric(proxy, "holdfast_recovery_held_bytes");
  const resident = proxy.residentBytes();
  // From here on they grow beyond the bound and are let go, one after the other.
  const drains = held.map((connection) => drain(connection));
  await untilFree(proxy, WITHHELD);
  await subjects.endStreams();
  await untilFree(proxy, 0);
  const failedOpen = await metric(proxy, 'holdfast_recovery_failed_open_total{reason="overflow"}');
  for (const connection of held) connection.close();
  await Promise.all(drains);
  const peak = await metric(proxy, "holdfast_recovery_held_bytes_peak");
  console.log(
    `held back: ${mb(bytes)} at once, at most ${mb(peak)}, bound ${
      mb(WITHHELD * MAX_BUFFER_BYTES)
    }; resident memory ` +
      `${mb(before)} before, ${mb(resident)} with them, ${
        ((resident - before) / bytes).toFixed(2)
      } bytes a held byte, ` +
      `peak ${mb(proxy.peakBytes())}; ${failedOpen} then passed the bound and streamed`,
  );
  return peak;
}

async function untilHeld(proxy: ServerProcess, bytes: number): Promise<void> {
  await until(proxy, "holdfast_recovery_held_bytes", (value) => value >= bytes);
  await until(proxy, "holdfast_recovery_slots_held", (value) => value === WITHHELD);
}

/** @param running  requests that go on without a slot. */
async function untilFree(proxy: ServerProcess, running: number): Promise<void> {
  await until(proxy, "holdfast_recovery_slots_held", (value) => value === 0);
  await until(proxy, "holdfast_requests_in_flight", (value) => value <= running);
}

async function until(proxy: ServerProcess, name: string, holds: (value: number) => boolean): Promise<void> {
  const endMs = performance.now() + SLOT_LIMIT_MS;
  for (;;) {
    const value = await metric(proxy, name);
    if (holds(value)) return;
    if (performance.now() > endMs) throw new Error(`Cannot measure: ${name} stayed at ${value}`);
    await pause(50);
  }
}

async function metric(proxy: ServerProcess, name: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${proxy.port}/metrics`, {
    headers: { authorization: `Bearer ${BENCH_ADMIN_KEY}` },
  });
  const line = (await answer.text()).split("\n").find((one) => one.startsWith(`${name} `));
  return line === undefined ? 0 : Number(line.slice(name.length + 1));
}

function pause(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}

function tell({ p50Ms, p95Ms }: Figures): string {
  return `p50 ${ms(p50Ms)} p95 ${ms(p95Ms)}`;
}

function ms(value: number): string {
  return `${value.toFixed(2)} ms`;
}

function mb(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

if (import.meta.main) Deno.exit(await main());
