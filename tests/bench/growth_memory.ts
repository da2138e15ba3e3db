/** What a process keeps after ten thousand requests, and after many more. */
import { inspectFlag, readHeap } from "../support/heap_probe.ts";
import type { CountedLoad } from "./growth_load.ts";
import { freePort, script } from "./processes.ts";
import { Subjects } from "./subjects.ts";

/** Caches that are filled once, code that is compiled: what comes before this is not growth. */
export const BASE_REQUESTS = 10_000;
const CONNECTIONS = 32;
/** Time for what is written behind: access log, usage, renewals. */
const SETTLE_MS = 3_000;

export interface Footprint {
  readonly requests: number;
  readonly heapBytes: number;
  readonly residentBytes: number;
  /** Requests a second since the last reading. */
  readonly perSecond: number;
}

/**
 * @param sessions  conversations the requests take turns in.
 * @returns one reading after each of the counts, which rise.
 */
export async function measureFootprints(counts: readonly number[], sessions: number): Promise<Footprint[]> {
  const subjects = await Subjects.open(false);
  try {
    const inspectPort = freePort();
    const proxy = await subjects.start("holdfast", false, [inspectFlag(inspectPort)]);
    try {
      const footprints: Footprint[] = [];
      let done = 0;
      for (const count of counts) {
        const beganAt = performance.now();
        await send({
          shape: {
            path: "/v1/responses/compact",
            model: "bench",
            stream: false,
            inputBytes: 512,
            port: proxy.port,
          },
          connections: CONNECTIONS,
          requests: count - done,
          first: done,
          sessions,
        });
        const perSecond = (count - done) * 1_000 / (performance.now() - beganAt);
        done = count;
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
        const { usedBytes, buffersBytes } = await readHeap(inspectPort);
        const footprint = {
          requests: count,
          heapBytes: usedBytes + buffersBytes,
          residentBytes: proxy.residentBytes(),
          perSecond,
        };
        footprints.push(footprint);
        console.error(`${sessions} sessions: ${JSON.stringify(footprint)}`);
      }
      return footprints;
    } finally {
      await proxy.stop();
    }
  } finally {
    await subjects.close();
  }
}

async function send(load: CountedLoad): Promise<void> {
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", script("growth_load.ts"), JSON.stringify(load)],
    env: { NO_COLOR: "1" },
    stdout: "null",
    stderr: "piped",
  }).output();
  if (!success) throw new Error(`Cannot send requests: ${new TextDecoder().decode(stderr)}`);
}
