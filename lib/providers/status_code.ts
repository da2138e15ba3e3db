/** Hosts that put an HTTP status where a code belongs: `{"error":{"code":429}}` inside a 200. */
import type { ErrorFacts } from "../core/evidence.ts";

/** The failure status a code repeats; `null` when the code is none. */
export function readStatusCode(error: ErrorFacts): number | null {
  return /^[45]\d\d$/.test(error.code ?? "") ? Number(error.code) : null;
}
