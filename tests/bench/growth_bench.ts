/**
 * `deno task bench:growth`: what costs more in a larger pool, with more conversations, or after more requests.
 *
 *     deno task bench:growth [--only decide|memory] [--requests N] [--sessions N,N] [--quick]
 *
 * One Markdown table. Times are medians of one run, in which the sizes took turns; memory is that of a real process
 * after a collection. `--requests` is the larger of the two counts compared; `--sessions` how many conversations the
 * requests take turns in. Ends with 1 when a limit is missed, except with `--quick`, which only shows that all runs.
 */
import { measureTurns } from "./growth_measure.ts";
import { BASE_REQUESTS, type Footprint, measureFootprints } from "./growth_memory.ts";
import { type Allowed, BINDING_COUNTS, groups, QUICK_BINDING_COUNTS } from "./growth_subjects.ts";

const DEFAULT_REQUESTS = 1_000_000;
const QUICK_REQUESTS = 20_000;
/** A busy team; and everybody with a new conversation for each request. */
const DEFAULT_SESSIONS = "1000,100000000";
const MEMORY_GROWTH = 1.1;
const MEGABYTE = 1_048_576;

interface Line {
  readonly name: string;
  readonly values: readonly string[];
  readonly ratio: number;
  readonly allowed: string;
  readonly reached: boolean;
}

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const value = (name: string, fallback: string): string => {
    const at = args.indexOf(`--${name}`);
    return at < 0 ? fallback : args[at + 1] ?? fallback;
  };
  const quick = args.includes("--quick");
  const only = value("only", "");
  const requests = Number(value("requests", String(quick ? QUICK_REQUESTS : DEFAULT_REQUESTS)));
  if (!(requests > BASE_REQUESTS)) {
    throw new RangeError(`--requests must be above ${BASE_REQUESTS}, got ${requests}`);
  }
  const lines: Line[] = [];
  if (only !== "memory") lines.push(...decide(quick));
  for (
    const sessions of only === "decide" ? [] : value("sessions", DEFAULT_SESSIONS).split(",").map(Number)
  ) {
    lines.push(...remember(await measureFootprints(countsUpTo(requests), sessions), sessions));
  }
  console.log(render(lines));
  return quick || lines.every(({ reached }) => reached) ? 0 : 1;
}

function decide(quick: boolean): Line[] {
  using open = new DisposableStack();
  const lines: Line[] = [];
  for (const { name, subjects, allowed } of groups(open, quick ? QUICK_BINDING_COUNTS : BINDING_COUNTS)) {
    const micros = measureTurns(subjects, quick ? { batchMs: 2, batches: 3 } : { batchMs: 10, batches: 41 });
    const [first, last] = [micros[0]!, micros.at(-1)!];
    lines.push({
      name,
      values: subjects.map(({ size }, at) => `${size}: ${micros[at]!.toPrecision(3)} µs`),
      ratio: last / first,
      allowed: tell(allowed),
      reached: "ratio" in allowed ? last / first <= allowed.ratio : last <= allowed.micros,
    });
    console.error(`${name}: ${lines.at(-1)!.values.join(", ")}`);
  }
  return lines;
}

function tell(allowed: Allowed): string {
  return "ratio" in allowed ? `× ${allowed.ratio}` : `${allowed.micros} µs`;
}

/** Powers of ten on the way show whether what grows goes on growing. */
function countsUpTo(requests: number): number[] {
  const counts: number[] = [];
  for (let count = BASE_REQUESTS; count < requests; count *= 10) counts.push(count);
  return [...counts, requests];
}

function remember(footprints: readonly Footprint[], sessions: number): Line[] {
  const who = sessions >= footprints.at(-1)!.requests
    ? "each request a session of its own"
    : `${sessions.toLocaleString("en-GB")} sessions`;
  const line = (what: string, of: (footprint: Footprint) => number): Line => {
    const ratio = of(footprints.at(-1)!) / of(footprints[0]!);
    return {
      name: `${what}, ${who}`,
      values: footprints.map((one) =>
        `${one.requests.toLocaleString("en-GB")} requests: ${(of(one) / MEGABYTE).toFixed(1)} MB`
      ),
      ratio,
      allowed: `× ${MEMORY_GROWTH}`,
      reached: ratio <= MEMORY_GROWTH,
    };
  };
  return [
    line("live heap", ({ heapBytes }) => heapBytes),
    line("resident memory", ({ residentBytes }) => residentBytes),
  ];
}

function render(lines: readonly Line[]): string {
  return [
    "| measured | at each size | largest / smallest | allowed | reached |",
    "|---|---|--:|--:|---|",
    ...lines.map(({ name, values, ratio, allowed, reached }) =>
      `| ${name} | ${values.join("<br>")} | ${ratio.toFixed(2)} | ${allowed} | ${
        reached ? "yes" : "**no**"
      } |`
    ),
  ].join("\n");
}
