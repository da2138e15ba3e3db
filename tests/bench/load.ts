/**
 * The load generator, a process of its own: runs one load as its argument says, prints one line of JSON.
 */
import { LoadConnection } from "./load_connection.ts";
import { requestMaker, type RequestShape } from "./load_request.ts";

export type LoadSpec =
  & { readonly shape: RequestShape; readonly warmSeconds: number; readonly seconds: number }
  & (
    /** Every connection sends its next request when it has the answer; `exchanges` requests count as one operation. */
    | { readonly kind: "closed"; readonly connections: number; readonly exchanges: number }
    /** Requests are due at fixed moments, whatever became of the earlier ones. */
    | { readonly kind: "open"; readonly perSecond: number }
    | { readonly kind: "streams"; readonly streams: number }
  );

export interface LoadResult {
  /** Operations or chunks inside the measured time. */
  readonly count: number;
  readonly seconds: number;
  readonly failures: number;
  /** Latency of an operation, or delay of a chunk. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Printed when the measured time begins, so that the CPU of the proxy can be read at that moment, and at its end. */
export const BEGIN_MARK = "begin";
export const END_MARK = "end";

/** Streams that have not all begun by then are measured as they are. */
const BEGIN_LIMIT_SECONDS = 20;
/** As many conversations as a busy team has; each is bound to an account. */
const SESSIONS = 1_000;
const LATENCIES_KEPT = 2_000_000;
/** `@`, then the microsecond. */
const STAMP_MARK = 0x40;
const STAMP_DIGITS = 16;

class Samples {
  readonly #values: number[] = [];
  failures = 0;
  measuring = false;

  add(valueMs: number): void {
    if (this.measuring && this.#values.length < LATENCIES_KEPT) this.#values.push(valueMs);
  }

  result(seconds: number): LoadResult {
    const sorted = Float64Array.from(this.#values).sort();
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
    return { count: sorted.length, seconds, failures: this.failures, p50Ms: at(0.5), p99Ms: at(0.99) };
  }
}

if (import.meta.main) {
  const spec = JSON.parse(Deno.args[0]!) as LoadSpec;
  const samples = new Samples();
  const { begun, end } = run(spec, samples);
  await Promise.race([begun, pause(BEGIN_LIMIT_SECONDS)]);
  await pause(spec.warmSeconds);
  console.log(BEGIN_MARK);
  const beganAt = performance.now();
  samples.measuring = true;
  await pause(spec.seconds);
  samples.measuring = false;
  const seconds = (performance.now() - beganAt) / 1_000;
  console.log(END_MARK);
  await end();
  console.log(JSON.stringify(samples.result(seconds)));
  Deno.exit(0);
}

interface RunningLoad {
  /** Every client of the load got something. */
  readonly begun: Promise<void>;
  readonly end: () => Promise<void>;
}

function run(spec: LoadSpec, samples: Samples): RunningLoad {
  switch (spec.kind) {
    case "closed":
      return runClosed(spec, samples);
    case "open":
      return runOpen(spec, samples);
    case "streams":
      return runStreams(spec, samples);
  }
}

function runClosed(spec: LoadSpec & { kind: "closed" }, samples: Samples): RunningLoad {
  let over = false;
  // Of another run's numbers something may be remembered.
  let number = Math.floor(performance.timeOrigin) % 100_000_000;
  const loops = Array.from({ length: spec.connections }, async (_, index) => {
    const connection = await LoadConnection.open(spec.shape.port);
    const make = requestMaker(spec.shape);
    for (let turn = index; !over; turn += spec.connections) {
      const own = number++;
      const sentAt = performance.now();
      let status = 0;
      for (let exchange = 0; exchange < spec.exchanges; exchange++) {
        status = await connection.exchange(make(turn % SESSIONS, own));
      }
      if (status === 200) samples.add(performance.now() - sentAt);
      else samples.failures++;
    }
    connection.close();
  });
  return {
    begun: Promise.resolve(),
    async end() {
      over = true;
      await Promise.all(loops);
    },
  };
}

function runOpen(spec: LoadSpec & { kind: "open" }, samples: Samples): RunningLoad {
  const idle: LoadConnection[] = [];
  const make = requestMaker(spec.shape);
  const everyMs = 1_000 / spec.perSecond;
  let sent = 0;
  let pending = 0;
  const beganAt = performance.now();
  async function one(): Promise<void> {
    pending++;
    const connection = idle.pop() ?? await LoadConnection.open(spec.shape.port);
    // Measured from the send: the timer of this process is coarser than what is measured.
    const sentAt = performance.now();
    const status = await connection.exchange(make(sent % SESSIONS, sent));
    if (status === 200) samples.add(performance.now() - sentAt);
    else samples.failures++;
    idle.push(connection);
    pending--;
  }
  const timer = setInterval(() => {
    for (; sent * everyMs <= performance.now() - beganAt; sent++) void one();
  }, 1);
  return {
    begun: Promise.resolve(),
    async end() {
      clearInterval(timer);
      while (pending > 0) await pause(0.01);
    },
  };
}

function runStreams(spec: LoadSpec & { kind: "streams" }, samples: Samples): RunningLoad {
  const connections: LoadConnection[] = [];
  const begun = Promise.withResolvers<void>();
  let waiting = spec.streams;
  for (let index = 0; index < spec.streams; index++) {
    // Spread over half a second, as clients come.
    setTimeout(() => void watch(index), index * 500 / spec.streams);
  }
  async function watch(index: number): Promise<void> {
    const connection = await LoadConnection.open(spec.shape.port);
    connections.push(connection);
    await connection.send(requestMaker(spec.shape)(index % SESSIONS, index));
    for (let piece = 0;; piece++) {
      const bytes = await connection.read().catch(() => null);
      if (bytes === null) return;
      if (piece === 0 && --waiting === 0) begun.resolve();
      if (samples.measuring) noteChunks(bytes, samples);
    }
  }
  return {
    begun: begun.promise,
    end() {
      for (const connection of connections) connection.close();
      return Promise.resolve();
    },
  };
}

/** Each chunk of the upstream carries `@` and the microsecond it was written. */
function noteChunks(bytes: Uint8Array, samples: Samples): void {
  const nowMs = performance.timeOrigin + performance.now();
  for (let at = bytes.indexOf(STAMP_MARK); at >= 0; at = bytes.indexOf(STAMP_MARK, at + STAMP_DIGITS)) {
    if (at + STAMP_DIGITS >= bytes.length) return;
    let micros = 0;
    for (let digit = 1; digit <= STAMP_DIGITS; digit++) micros = micros * 10 + bytes[at + digit]! - 0x30;
    samples.add(nowMs - micros / 1_000);
  }
}

function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
}
