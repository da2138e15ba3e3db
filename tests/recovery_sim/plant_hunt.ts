/** Looks for a planted mistake: found means a scene within the limit broke a rule that the plant is about. */
import type { Plant } from "./plants.ts";
import { runScene } from "./run_scene.ts";

/** Every plant must be found within so many scenes. */
export const HUNT_SCENES = 2_000;

export async function huntPlant(
  plant: Plant,
  from: number,
): Promise<{ readonly seed: number; readonly message: string } | null> {
  for (let seed = from; seed < from + HUNT_SCENES; seed++) {
    const { violation } = await runScene(seed, plant);
    if (violation !== null && plant.caughtBy.includes(violation.id)) {
      return { seed, message: violation.message };
    }
  }
  return null;
}
