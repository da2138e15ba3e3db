/**
 * `deno task bench`: Holdfast against the bare pass-through of the same runtime, in one run, taking turns.
 *
 *     deno task bench [--only NAME,NAME] [--repetitions N] [--seconds N] [--quick] [--source]
 *
 * Absolute figures are those of the machine; the ratios carry over. `--only` takes names or their beginnings.
 * Ends with 1 when a figure misses its target, except with `--quick`, which only shows that everything runs.
 */
import type { ServerProcess } from "./processes.ts";
import { judge, type Measured, renderTable } from "./report.ts";
import { type Figures, type Scenario, SCENARIOS, type Timing } from "./scenarios.ts";
import { type SubjectName, Subjects } from "./subjects.ts";

interface Options {
  readonly scenarios: readonly Scenario[];
  readonly repetitions: number;
  readonly timing: Timing;
  readonly quick: boolean;
  readonly fromSource: boolean;
}

const SUBJECTS: readonly SubjectName[] = ["pass-through", "holdfast"];

if (import.meta.main) Deno.exit(await main(readOptions(Deno.args)));

async function main(options: Options): Promise<number> {
  const subjects = await Subjects.open(options.fromSource);
  const proxies = new Map<SubjectName, ServerProcess>();
  const measured: Measured[] = [];
  try {
    for (const subject of SUBJECTS) proxies.set(subject, await subjects.start(subject));
    for (const scenario of options.scenarios) {
      measured.push(...await measure(scenario, subjects, proxies, options));
    }
  } finally {
    for (const proxy of proxies.values()) await proxy.stop();
    await subjects.close();
  }
  console.log(renderTable(measured));
  const missed = measured.map(judge).filter(({ reached }) => reached === false);
  return missed.length === 0 || options.quick ? 0 : 1;
}

async function measure(
  scenario: Scenario,
  subjects: Subjects,
  proxies: ReadonlyMap<SubjectName, ServerProcess>,
  options: Options,
): Promise<Measured[]> {
  const figures: Record<SubjectName, Figures[]> = { "pass-through": [], holdfast: [] };
  for (let repetition = 0; repetition < options.repetitions; repetition++) {
    // Taking turns in who goes first, so that a machine that slows down wrongs neither.
    const order = repetition % 2 === 0 ? SUBJECTS : SUBJECTS.toReversed();
    for (const subject of order) {
      const proxy = proxies.get(subject)!;
      const got = await scenario.measure({ subject, subjects, proxy, timing: options.timing });
      figures[subject].push(got);
      console.error(
        `${scenario.name} ${subject} ${
          scenario.rows.map(({ figure }) => got[figure]!.toPrecision(5)).join(" ")
        }`,
      );
    }
  }
  return scenario.rows.map((row) => ({
    row,
    passThrough: figures["pass-through"],
    holdfast: figures.holdfast,
  }));
}

function readOptions(args: readonly string[]): Options {
  const value = (name: string): string | null => {
    const at = args.indexOf(`--${name}`);
    return at < 0 ? null : args[at + 1] ?? "";
  };
  const quick = args.includes("--quick");
  const only = value("only")?.split(",") ?? [""];
  const scenarios = SCENARIOS.filter(({ name }) => only.some((wanted) => name.startsWith(wanted)));
  if (scenarios.length === 0) {
    throw new RangeError(`Cannot bench ${only}: there are ${SCENARIOS.map(({ name }) => name).join(", ")}`);
  }
  return {
    scenarios,
    repetitions: Number(value("repetitions") ?? (quick ? 1 : 5)),
    timing: {
      warmSeconds: quick ? 0.7 : 1.5,
      seconds: Number(value("seconds") ?? (quick ? 1 : 4)),
    },
    quick,
    fromSource: args.includes("--source"),
  };
}
