/** What is measured of each subject, and the figures that issue 11 asks for. */
import { charge, mintAttempt, openLedger } from "../../lib/core/ledger.ts";
import { createIds } from "../../lib/runtime/chance.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { SqlitePoolStore } from "../../lib/store/pool_store.ts";
import type { LoadSpec } from "./load.ts";
import type { RequestShape } from "./load_request.ts";
import { median } from "./report.ts";
import { type LoadReport, runLoad, type ServerProcess } from "./processes.ts";
import type { SubjectName, Subjects } from "./subjects.ts";

export type Figures = Readonly<Record<string, number>>;

export interface Timing {
  readonly warmSeconds: number;
  readonly seconds: number;
}

export interface Scenario {
  readonly name: string;
  readonly rows: readonly Row[];
  /** Runs against a proxy that was started for the whole run, or starts its own. */
  readonly measure: (run: Run) => Promise<Figures>;
}

export interface Run {
  readonly subject: SubjectName;
  readonly subjects: Subjects;
  /** The long-lived proxy of this subject. */
  readonly proxy: ServerProcess;
  readonly timing: Timing;
}

export interface Row {
  /** Key in the figures. */
  readonly figure: string;
  readonly label: string;
  readonly digits: number;
  /** Bound on the ratio to the pass-through, on the difference from it, or on Holdfast's own figure. */
  readonly target?: {
    readonly of: "ratio" | "difference" | "value";
    readonly atLeast?: number;
    readonly atMost?: number;
  };
}

const MIB = 1_048_576;
const CHUNKS_A_SECOND = 50;

export const SCENARIOS: readonly Scenario[] = [
  ...[1, 16, 64, 256].map((connections) =>
    closed(`json-${connections}`, { connections }, [
      {
        figure: "perSecond",
        label: `small JSON, ${connections} connections: requests/s`,
        digits: 0,
        ...(connections === 64 ? { target: { of: "ratio", atLeast: 0.65 } } : {}),
      },
      { figure: "cpuMicros", label: `small JSON, ${connections} connections: CPU µs/request`, digits: 1 },
    ])
  ),
  {
    name: "open-500",
    rows: [
      {
        figure: "p50Ms",
        label: "open loop, 500 requests/s: p50 ms",
        digits: 3,
        target: { of: "difference", atMost: 0.25 },
      },
      {
        figure: "p99Ms",
        label: "open loop, 500 requests/s: p99 ms",
        digits: 3,
        target: { of: "ratio", atMost: 1.5 },
      },
    ],
    measure: async (run) => ({ ...await load(run, shape(run), { kind: "open", perSecond: 500 }) }),
  },
  ...[100, 500, 1_000].map(streams),
  ...[1, 8].flatMap((mib) => [
    closed(`request-${mib}m`, { connections: mib === 1 ? 16 : 4, inputBytes: mib * MIB }, [
      {
        figure: "perSecond",
        label: `${mib} MiB requests: requests/s`,
        digits: 1,
        ...(mib === 8 ? { target: { of: "ratio", atLeast: 0.6 } } : {}),
      },
      ...(mib === 8
        ? [{
          figure: "copies",
          label: "8 MiB requests: peak memory over idle, copies of the bodies",
          digits: 1,
        }]
        : []),
    ]),
    closed(`answer-${mib}m`, { connections: mib === 1 ? 16 : 4, model: `answer-${mib * MIB}` }, [
      {
        figure: "perSecond",
        label: `${mib} MiB answers: requests/s`,
        digits: 1,
        ...(mib === 8 ? { target: { of: "ratio", atLeast: 0.6 } } : {}),
      },
    ]),
  ]),
  withCharge(failover("failover", "an upstream that answers at once", "refused-########")),
  failover("failover-20ms", "an upstream that takes 20 ms for each", "refused-20ms-########"),
  {
    name: "start",
    rows: [
      {
        figure: "startMs",
        label: "start to first answer: ms",
        digits: 0,
        target: { of: "value", atMost: 250 },
      },
      { figure: "sourceMs", label: "start to first answer, from source: ms", digits: 0 },
      { figure: "idleMb", label: "idle memory: MB", digits: 1, target: { of: "value", atMost: 90 } },
      {
        figure: "streamKb",
        label: "memory a stream at 500: KB",
        digits: 0,
        target: { of: "value", atMost: 150 },
      },
      { figure: "peakMb", label: "peak memory at 500 streams: MB", digits: 1 },
    ],
    measure: measureStart,
  },
];

/** @param model  one the first account does not have: nobody rests, so that every request fails over anew. */
function failover(name: string, upstream: string, model: string): Scenario {
  return {
    name,
    rows: [{
      figure: "p50Ms",
      label: `failover with ${upstream}, against two calls through the pass-through: p50 ms`,
      digits: 3,
      target: { of: "ratio", atMost: 1.3 },
    }],
    measure: (run) =>
      load(run, shape(run, { model }), {
        kind: "closed",
        connections: 1,
        exchanges: run.subject === "holdfast" ? 1 : 2,
      }),
  };
}

/** Adds what the ledger takes of it: the charge is on disk before the second call is made (design.md ruling 9). */
function withCharge(scenario: Scenario): Scenario {
  return {
    ...scenario,
    rows: [...scenario.rows, { figure: "chargeMs", label: "of it the charge, on disk: p50 ms", digits: 3 }],
    measure: async (run) => ({ ...await scenario.measure(run), chargeMs: measureCharge() }),
  };
}

const CHARGES = 200;

function measureCharge(): number {
  const folder = Deno.makeTempDirSync({ prefix: "holdfast-bench-" });
  try {
    using database = openDatabase(`${folder}/ledger.db`);
    const store = new SqlitePoolStore(database);
    const ids = createIds();
    return median(Array.from({ length: CHARGES }, (_, index) => {
      const minted = mintAttempt(openLedger(ids.requestId(), null, 10, index));
      const charged = charge(minted.ledger, minted.attempt);
      if (!charged.ok) throw new Error(`Cannot charge: ${charged.reason}`);
      const beganMs = performance.now();
      store.apply([{ kind: "put_ledger", row: charged.ledger }], index);
      return performance.now() - beganMs;
    }));
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

async function measureStart(run: Run): Promise<Figures> {
  const fromSource = await run.subjects.start(run.subject, true);
  await fromSource.stop();
  const proxy = await run.subjects.start(run.subject);
  try {
    // Long enough for everything that is done once after the start.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const idle = proxy.residentBytes();
    const report = await runLoad(proxy, {
      ...run.timing,
      shape: { ...shape(run, { stream: true }), port: proxy.port },
      kind: "streams",
      streams: 500,
    });
    return {
      startMs: proxy.startMs,
      sourceMs: fromSource.startMs,
      idleMb: idle / 1e6,
      streamKb: (report.residentBytes - idle) / 500 / 1e3,
      peakMb: proxy.peakBytes() / 1e6,
    };
  } finally {
    await proxy.stop();
  }
}

function streams(count: number): Scenario {
  const label = `SSE, ${count} streams × ${CHUNKS_A_SECOND}/s`;
  const judged = count === 500;
  return {
    name: `sse-${count}`,
    rows: [
      {
        figure: "deliveredPercent",
        label: `${label}: chunks delivered, %`,
        digits: 1,
        ...(judged ? { target: { of: "value", atLeast: 99 } } : {}),
      },
      {
        figure: "cpuMicros",
        label: `${label}: CPU µs/chunk`,
        digits: 1,
        ...(judged ? { target: { of: "ratio", atMost: 2 } } : {}),
      },
      {
        figure: "p99Ms",
        label: `${label}: chunk delay p99 ms`,
        digits: 1,
        ...(judged ? { target: { of: "value", atMost: 15 } } : {}),
      },
    ],
    measure: async (run) => {
      const report = await load(run, shape(run, { stream: true }), { kind: "streams", streams: count });
      return {
        ...report,
        deliveredPercent: 100 * report.count / (count * CHUNKS_A_SECOND * report.seconds),
      };
    },
  };
}

function closed(
  name: string,
  options: { readonly connections: number; readonly inputBytes?: number; readonly model?: string },
  rows: readonly Row[],
): Scenario {
  const { connections, inputBytes = 700, model = "bench" } = options;
  return {
    name,
    rows,
    measure: async (run) => {
      const before = run.proxy.residentBytes();
      run.proxy.forgetPeak();
      const figures = await load(run, shape(run, { inputBytes, model }), {
        kind: "closed",
        connections,
        exchanges: 1,
      });
      return { ...figures, copies: (run.proxy.peakBytes() - before) / (connections * inputBytes) };
    },
  };
}

type Load =
  | { readonly kind: "closed"; readonly connections: number; readonly exchanges: number }
  | { readonly kind: "open"; readonly perSecond: number }
  | { readonly kind: "streams"; readonly streams: number };

interface LoadFigures extends LoadReport {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

async function load(run: Run, shape: RequestShape, load: Load): Promise<LoadFigures & Figures> {
  const spec: LoadSpec = { ...run.timing, shape, ...load };
  const report = await runLoad(run.proxy, spec);
  return {
    ...report,
    perSecond: report.count / report.seconds,
    cpuMicros: report.cpuMs * 1_000 / report.count,
  };
}

function shape(run: Run, changes: Partial<RequestShape> = {}): RequestShape {
  return {
    path: changes.stream ? "/v1/responses" : "/v1/responses/compact",
    model: "bench",
    stream: false,
    inputBytes: 700,
    port: run.proxy.port,
    ...changes,
  };
}
