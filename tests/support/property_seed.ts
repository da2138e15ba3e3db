/**
 * One seed for all properties, so that a run repeats itself: the default run takes always the same,
 * `HOLDFAST_PROPERTY_SEED` another one (`random` for a new one each time), `HOLDFAST_PROPERTY_RUNS` more of them.
 * Loaded before the test modules by `deno test --preload`.
 */
import fc from "fast-check";

const DEFAULT_SEED = 20_261_130;

const asked = Deno.env.get("HOLDFAST_PROPERTY_SEED") ?? "";
const runs = Number(Deno.env.get("HOLDFAST_PROPERTY_RUNS") ?? "");
fc.configureGlobal({
  ...(asked === "random" ? {} : { seed: Number(asked) || DEFAULT_SEED }),
  ...(runs > 0 ? { numRuns: runs } : {}),
});
