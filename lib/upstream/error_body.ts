/** Reads the body of a refused request for classification (design.md ruling 10). */
import type { Clock, UpstreamResponse } from "../ports.ts";
import { undoMissingLabel } from "./content_coding.ts";

export const ERROR_BODY_LIMIT_BYTES = 65_536;

/** An error body is small: one that is not complete by then is judged by its status and by what has come. */
export const ERROR_BODY_WAIT_MS = 10_000;

/**
 * Reads at most `limitBytes`, and for at most `ERROR_BODY_WAIT_MS`; the rest is cancelled, never drained.
 *
 * @returns what could be read, possibly nothing. Never throws: a cut or undecodable body is an empty or short one.
 */
export async function readErrorBody(
  response: Pick<UpstreamResponse, "body">,
  limitBytes: number,
  clock: Clock,
): Promise<Uint8Array<ArrayBuffer>> {
  if (response.body === null) return new Uint8Array();
  const { body } = response;
  const limit = clock.schedule(clock.now() + ERROR_BODY_WAIT_MS, () => body.cancel());
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let readBytes = 0;
  try {
    while (readBytes < limitBytes) {
      const piece = await body.read();
      if (piece === null) break;
      const kept = piece.subarray(0, limitBytes - readBytes);
      chunks.push(kept);
      readBytes += kept.length;
    }
  } catch {
    // What was read before the failure still counts.
  } finally {
    limit.cancel();
    body.cancel();
  }
  const whole = chunks.length === 1 ? chunks[0]! : new Uint8Array(await new Blob(chunks).arrayBuffer());
  return undoMissingLabel(whole, limitBytes);
}
