/**
 * Tells connecting from waiting (design.md ruling 16): `fetch` has no connect timeout and shows no progress.
 */
import type { Clock } from "../ports.ts";

export interface Endpoint {
  readonly hostname: string;
  readonly port: number;
}

/** A probe gets at most this long: far above any handshake over a slow link, far below a first-byte limit. */
export const PROBE_LIMIT_MS = 5_000;

/**
 * Opens and closes one TCP connection.
 *
 * @param limitMs  time it may take.
 * @returns true when a connection was made in time: the host is reachable and the attempt is waiting for its answer.
 */
export async function canConnect(
  endpoint: Endpoint,
  limitMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const limit = clock.schedule(clock.now() + limitMs, abort);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  try {
    const connection = await Deno.connect({ ...endpoint, signal: controller.signal });
    connection.close();
    return true;
  } catch {
    return false;
  } finally {
    limit.cancel();
    signal.removeEventListener("abort", abort);
  }
}
