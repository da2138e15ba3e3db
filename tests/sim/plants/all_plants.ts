/** Every plant, by its name. */
import { GATE_PLANTS } from "./gate_plants.ts";
import type { Plant } from "./plant.ts";
import { QUOTA_PLANTS } from "./quota_plants.ts";
import { RETRY_PLANTS } from "./retry_plants.ts";
import { STATE_PLANTS } from "./state_plants.ts";

export const PLANTS: readonly Plant[] = [...RETRY_PLANTS, ...GATE_PLANTS, ...QUOTA_PLANTS, ...STATE_PLANTS];

export function findPlant(name: string): Plant | null {
  return PLANTS.find((plant) => plant.name === name) ?? null;
}
