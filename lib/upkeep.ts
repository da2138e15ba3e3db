/** What is done now and then for the whole life of the process. */
import type { Clock } from "./ports.ts";

/** How often expired bindings, closed ledgers and old usage are removed, and renewals are written. */
const UPKEEP_MS = 300_000;
const RENEWAL_FLUSH_MS = 30_000;
export function startUpkeep(
  clock: Clock,
  clean: () => void,
  flush: () => void,
  fatal: (error: unknown) => void,
): { stop(): void } {
  let cleanAtMs = clock.now() + UPKEEP_MS;
  let scheduled = clock.schedule(clock.now() + RENEWAL_FLUSH_MS, run);
  function run(): void {
    try {
      flush();
      if (clock.now() >= cleanAtMs) {
        cleanAtMs = clock.now() + UPKEEP_MS;
        clean();
      }
    } catch (error) {
      return fatal(error);
    }
    scheduled = clock.schedule(clock.now() + RENEWAL_FLUSH_MS, run);
  }
  return { stop: () => scheduled.cancel() };
}
