/** `deno task sim:streams`: streams cut and ended at random, until so many were played, one broke a rule, or a plant was found. */
import { parseArgs } from "node:util";
import { findPlant, type Plant, PLANTS } from "./plants.ts";
import { HUNT_SCENES, huntPlant } from "./plant_hunt.ts";
import { add, NO_TOTALS, runScene, tellFailure, type Totals } from "./run_scene.ts";

const USAGE = `deno task sim:streams [options]
  --streams N   plays scenes until N streams were played (2,000 unless told otherwise)
  --seed S      begins at seed S (1); one seed is one scene of up to 12 streams
  --plant NAME  breaks recovery on purpose; succeeds only when that is found within ${HUNT_SCENES} scenes
  --plants      every plant, one after the other`;

const PROGRESS_EVERY_MS = 10_000;
/** Some messages quote whole answers. */
const MESSAGE_CHARACTERS = 200;

async function main(args: readonly string[]): Promise<number> {
  let values;
  try {
    values = parseArgs({
      args: [...args],
      options: {
        streams: { type: "string", default: "2000" },
        seed: { type: "string", default: "1" },
        plant: { type: "string" },
        plants: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return 2;
  }
  const [streams, seed] = [Number(values.streams), Number(values.seed)];
  if (!Number.isSafeInteger(streams) || streams < 1 || !Number.isSafeInteger(seed) || seed < 1) {
    console.error(`--streams and --seed must be whole numbers above 0\n\n${USAGE}`);
    return 2;
  }
  if (values.plants) return await hunt(PLANTS, seed);
  if (values.plant === undefined) return await play(seed, streams);
  const plant = findPlant(values.plant);
  if (plant !== null) return await hunt([plant], seed);
  console.error(`There is no plant ${values.plant}; there are ${PLANTS.map(({ name }) => name).join(", ")}`);
  return 2;
}

async function play(from: number, streams: number): Promise<number> {
  const beganMs = performance.now();
  let toldMs = beganMs;
  let totals = NO_TOTALS;
  for (let seed = from; totals.streams < streams; seed++) {
    const report = await runScene(seed);
    totals = add(totals, report.play);
    if (report.violation !== null) {
      console.log(tellFailure(report));
      console.log(tell(totals, performance.now() - beganMs));
      return 1;
    }
    if (performance.now() - toldMs < PROGRESS_EVERY_MS) continue;
    toldMs = performance.now();
    console.log(`… ${tell(totals, toldMs - beganMs)}`);
  }
  console.log(tell(totals, performance.now() - beganMs));
  return 0;
}

function tell(totals: Totals, tookMs: number): string {
  const number = (value: number) => value.toLocaleString("en-GB");
  return `${number(totals.streams)} streams in ${number(totals.scenes)} scenes, ${
    number(totals.sends)
  } sends: ` +
    `${number(totals.recovered)} recovered, ${number(totals.exhausted)} exhausted, ` +
    `${number(totals.failedOpen)} failed open, ${number(totals.left)} left, in ${
      (tookMs / 1_000).toFixed(1)
    } s`;
}

async function hunt(plants: readonly Plant[], from: number): Promise<number> {
  let missed = 0;
  for (const plant of plants) {
    const found = await huntPlant(plant, from);
    if (found === null) {
      missed++;
      console.log(`MISSED ${plant.name}: ${plant.breaks}; not found within ${HUNT_SCENES} scenes`);
    } else {console.log(
        `caught ${plant.name} at seed ${found.seed}: ${found.message.slice(0, MESSAGE_CHARACTERS)}`,
      );}
  }
  console.log(`${plants.length - missed} of ${plants.length} plants caught`);
  return missed === 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
