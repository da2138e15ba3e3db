/** A small share of what `deno task sim:streams` does, with every test run. */
import { assert, assertEquals } from "@std/assert";
import { drawAttempt } from "./attempt_script.ts";
import { huntPlant } from "./plant_hunt.ts";
import { PLANTS } from "./plants.ts";
import { predict } from "./prediction.ts";
import { add, NO_TOTALS, runScene, tellFailure } from "./run_scene.ts";
import { drawScene } from "./scene.ts";

async function requireHolds(seed: number): Promise<Awaited<ReturnType<typeof runScene>>> {
  const report = await runScene(seed);
  if (report.violation !== null) throw new Error(tellFailure(report));
  return report;
}

/** About 125 streams each. */
const SCENES = 30;
for (let from = 1; from < 4 * SCENES; from += SCENES) {
  Deno.test(`streams cut and ended at random are recovered as they should, scenes ${from} to ${from + SCENES - 1}`, async () => {
    for (let seed = from; seed < from + SCENES; seed++) await requireHolds(seed);
  });
}

/** Seeds that once failed. */
const KNOWN_SEEDS = [
  { seed: 112, broke: "the last LF of a stream of CRLF lines, cut right before it" },
  { seed: 543, broke: "a gathered stream whose upstream never ended its body: the connection stayed" },
  { seed: 1_482, broke: "the bound of a translated stream, met or not as the network cut it" },
] as const;
for (const { seed, broke } of KNOWN_SEEDS) {
  Deno.test(`streams of seed ${seed} hold, which broke ${broke}`, async () => {
    await requireHolds(seed);
  });
}

for (const plant of PLANTS) {
  Deno.test(`the simulation of streams finds a recovery that ${plant.breaks}`, async () => {
    assert(await huntPlant(plant, 1) !== null, `${plant.name} was not found`);
  });
}

Deno.test("the scenes of the default run reach every way out of recovery", async () => {
  let totals = NO_TOTALS;
  for (let seed = 1; seed <= 40; seed++) totals = add(totals, (await requireHolds(seed)).play);
  for (const [name, count] of Object.entries(totals)) assert(count > 0, `${name}: ${count}`);
});

Deno.test("drawAttempt() draws every verdict in every protocol, and the same again from the same seed", () => {
  const weather = { good: 0.4, refusals: 30 };
  for (const protocol of ["responses", "chat", "messages"] as const) {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 800; seed++) {
      const task = { seed, stream: 1, number: 1, protocol, asksForStream: seed % 4 !== 0, weather };
      const script = drawAttempt(task);
      seen.add(predict(script));
      if (seed % 50 === 0) assertEquals(drawAttempt(task), script);
    }
    const every = [
      "success",
      "recoverable",
      "incomplete",
      "hopeless",
      "repeat",
      "fault",
      "refused",
      "unauthorized",
    ];
    assertEquals([...seen].sort(), every.sort(), protocol);
  }
  assertEquals(drawScene(7), drawScene(7));
});
