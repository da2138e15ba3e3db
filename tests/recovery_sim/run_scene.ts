/** One seed: its scene is played and checked; where its turn has come, played again in another way and compared. */
import { must, Violation } from "../sim/violation.ts";
import { checkBookings } from "./checks/bookings.ts";
import { checkDelivery, KEEPALIVE } from "./checks/delivery.ts";
import { checkRest, checkSlots } from "./checks/slots.ts";
import type { Plant } from "./plants.ts";
import { type Play, playScene, traceOf } from "./play.ts";
import { drawScene } from "./scene.ts";

export interface SceneReport {
  readonly seed: number;
  readonly play: Play;
  readonly violation: Violation | null;
}

export interface Totals {
  readonly scenes: number;
  readonly streams: number;
  readonly sends: number;
  readonly recovered: number;
  readonly exhausted: number;
  readonly failedOpen: number;
  readonly left: number;
}

export const NO_TOTALS: Totals = {
  scenes: 0,
  streams: 0,
  sends: 0,
  recovered: 0,
  exhausted: 0,
  failedOpen: 0,
  left: 0,
};

export async function runScene(seed: number, plant: Plant | null = null): Promise<SceneReport> {
  const scene = drawScene(seed);
  const play = await playScene(scene, { plant });
  try {
    for (const client of play.clients) {
      checkBookings(play, client);
      await checkDelivery(play, client);
    }
    checkSlots(play);
    checkRest(play);
    if (scene.isRecut) checkSame(play, await playScene(scene, { plant, uncut: true }), "CUTS");
    if (scene.config.attempts === 0) {
      checkSame(play, await playScene(scene, { plant, withRecovery: false }), "P40");
    }
    if (seed % 16 === 0) checkSame(play, await playScene(scene, { plant }), "P33");
  } catch (error) {
    if (error instanceof Violation) return { seed, play, violation: error };
    throw error;
  }
  return { seed, play, violation: null };
}

/** The same requests got the same answers from the same attempts. */
function checkSame(play: Play, other: Play, id: "CUTS" | "P33" | "P40"): void {
  const [told, toldAgain] = [play, other].map((one) => tell(one, id !== "CUTS"));
  for (const [at, line] of told!.entries()) {
    must(line === toldAgain![at], id, () => `${HOW[id]}: ${toldAgain![at]}, not ${line}`);
  }
}

const HOW = {
  CUTS: "in one piece",
  P33: "the same again",
  P40: "without a word of recovery in the configuration",
} as const;

/** Everything a client and an operator can see. Times are part of it where they must not differ. */
function tell(play: Play, withTimes: boolean): string[] {
  return play.clients.map((client) => {
    const { record } = traceOf(play, client);
    return JSON.stringify([
      client.requestId,
      client.status,
      [...client.headers ?? []].filter(([name]) => withTimes || name !== "retry-after"),
      text(client.bytes, withTimes),
      client.end,
      withTimes ? record : record?.attempts.map(({ account, cause, outcome }) => [account, cause, outcome]),
      record?.notes,
    ]);
  });
}

function text(bytes: Uint8Array<ArrayBuffer>, withTimes: boolean): string {
  const all = new TextDecoder().decode(bytes);
  if (withTimes) return all;
  return all.replaceAll(KEEPALIVE, "").replaceAll(/simid\d{8}|18\d{8}|20\d\d-\d\d-\d\dT[\d:.]+Z/g, "#")
    .replaceAll(/\b\d+ ?s\b/g, "#");
}

export function add(totals: Totals, { world, clients }: Play): Totals {
  const { recovered, exhausted, failedOpen } = world.slots.figures;
  return {
    scenes: totals.scenes + 1,
    streams: totals.streams + clients.length,
    sends: totals.sends + world.upstream.sends.length,
    recovered: totals.recovered + recovered,
    exhausted: totals.exhausted + exhausted,
    failedOpen: totals.failedOpen + Object.values(failedOpen).reduce((a, b) => a + b, 0),
    left: totals.left + clients.filter(({ end }) => end === "left").length,
  };
}

/** A failure with what it takes to see it again. */
export function tellFailure({ seed, play, violation }: SceneReport): string {
  const lines = play.clients.map((client) => {
    const { events } = traceOf(play, client);
    const { stream, status, end, bytes } = client;
    const steps = events.map((event) => {
      const booked = event.booked.length === 0 ? "" : ` books ${event.booked}`;
      switch (event.kind) {
        case "launch":
          return `launch ${event.launch.cause} ${event.launch.account}${booked}`;
        case "step":
          return `${event.step.kind}${booked}`;
        case "settle":
          return `${event.outcome.kind}:${event.outcome.code}${event.recovers ? " (again)" : ""}${booked}`;
        case "end_recovery":
          return event.note;
        default:
          return `${event.kind}${booked}`;
      }
    });
    const asked = `${stream.client} on ${stream.provider}${stream.wantsStream ? "" : ", JSON"}`;
    return `  ${client.requestId} ${asked}: ${status} ${end}, ${bytes.length} bytes; ${steps.join(", ")}`;
  });
  return [
    `seed ${seed} broke ${violation!.message}`,
    `  ${JSON.stringify(play.scene.config)}`,
    ...lines,
    `  again: deno task sim:streams --seed ${seed} --streams 1`,
  ].join("\n");
}
