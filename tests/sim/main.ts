/** `deno task sim`: runs seeds, replays one, or shows that planted mistakes are found. */
import { failureOf, type Totals } from "./block.ts";
import { runCampaign } from "./campaign.ts";
import { beStrict, OPEN_FINDINGS } from "./findings.ts";
import { type Options, parseOptions, USAGE } from "./options.ts";
import { findPlant, PLANTS } from "./plants/all_plants.ts";
import type { Plant } from "./plants/plant.ts";
import { HUNT_SEEDS, huntPlant } from "./plant_hunt.ts";
import { runSeed } from "./run_seed.ts";

/** A long run says now and then that it is alive. */
const PROGRESS_EVERY_MS = 10_000;

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args);
  if (typeof options === "string") {
    console.error(`${options}\n\n${USAGE}`);
    return 2;
  }
  switch (options.mode) {
    case "campaign":
      return await campaign(options);
    case "replay":
      return replay(options);
    case "plant": {
      const plant = findPlant(options.plant!);
      if (plant !== null) return hunt([plant], options.from);
      console.error(
        `There is no plant ${options.plant}; there are ${PLANTS.map(({ name }) => name).join(", ")}`,
      );
      return 2;
    }
    case "plants":
      return hunt(PLANTS, options.from);
    case "findings":
      return showFindings();
    default:
      return options.mode satisfies never;
  }
}

async function campaign(options: Options): Promise<number> {
  const startedAtMs = performance.now();
  let toldAtMs = startedAtMs;
  const { totals, requestsHere, failure } = await runCampaign(options, (soFar, requests) => {
    if (performance.now() - toldAtMs < PROGRESS_EVERY_MS) return;
    toldAtMs = performance.now();
    console.log(`… ${tell(soFar, requests, toldAtMs - startedAtMs)}`);
  });
  if (failure !== null) console.log(failure.story);
  console.log(tell(totals, requestsHere, performance.now() - startedAtMs));
  if (!options.strict && OPEN_FINDINGS.length > 0) {
    console.log(`looked past ${OPEN_FINDINGS.length} open findings (--findings tells them)`);
  }
  return failure === null ? 0 : 1;
}

function replay(options: Options): number {
  if (options.strict) beStrict();
  const plant = options.plant === null ? null : findPlant(options.plant);
  const report = runSeed({
    seed: options.from,
    store: options.store,
    plant,
    compare: "sometimes",
    verbose: true,
  });
  if (report.violation !== null) {
    console.log(failureOf(report).story);
    return 1;
  }
  const { counts, launches } = report.outcome;
  console.log(report.outcome.lines.join("\n"));
  console.log(`\nparameters: ${JSON.stringify(report.params)}`);
  console.log(
    `seed ${options.from} holds: ${counts.requests} requests, ${launches} launches, ${counts.restarts} restarts`,
  );
  return 0;
}

function hunt(plants: readonly Plant[], from: number): number {
  let missed = 0;
  for (const plant of plants) {
    const found = huntPlant(plant, from);
    if (found === null) {
      missed++;
      console.log(`MISSED ${plant.name}: ${plant.breaks}; not found within ${HUNT_SEEDS} seeds`);
    } else {console.log(
        `caught ${plant.name} at seed ${found.seed}, request ${found.requests}: ${found.violation.message}`,
      );}
  }
  console.log(`${plants.length - missed} of ${plants.length} plants caught`);
  return missed === 0 ? 0 : 1;
}

/** A finding that can no longer be shown has been mended and must leave the list. */
function showFindings(): number {
  beStrict();
  let mended = 0;
  for (const { name, what, seed } of OPEN_FINDINGS) {
    const { violation } = runSeed({ seed, store: "memory", plant: null, compare: "never", verbose: false });
    if (violation === null) mended++;
    console.log(
      `${violation === null ? "MENDED" : "open  "} ${name}: ${what}\n       seed ${seed}: ${
        violation?.message ?? "holds"
      }`,
    );
  }
  return mended === 0 ? 0 : 1;
}

function tell(totals: Totals, requestsHere: number, tookMs: number): string {
  const { seeds, requests, calmRequests, launches, restarts, virtualMs } = totals;
  const number = (value: number) => Math.round(value).toLocaleString("en-GB");
  const rate = requestsHere / (tookMs / 1000);
  return `${number(seeds)} seeds, ${number(requests)} requests (and ${
    number(calmRequests)
  } after all was mended), ` +
    `${number(launches)} launches, ${number(restarts)} restarts, ${
      number(virtualMs / 3_600_000)
    } simulated hours ` +
    `in ${(tookMs / 1000).toFixed(1)} s, ${number(rate)} requests/s`;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
