/** P10, P40 and the rest: bounds of what is held, and that nothing is left behind. */
import { must } from "../../sim/violation.ts";
import { type Play, sendsOf, traceOf } from "../play.ts";
import { readScriptedStream } from "../prediction.ts";

export function checkSlots(play: Play): void {
  const { scene: { config }, world: { slots } } = play;
  for (const { mostBytes, releases, slot } of slots.traces) {
    must(
      mostBytes <= config.maxBufferBytes,
      "P10",
      () => `a request held ${mostBytes} bytes, bound ${config.maxBufferBytes}`,
    );
    must(releases === 1 && !slot.live, "P10", () => `a slot was given back ${releases} times`);
  }
  const { figures, mostHeld } = slots;
  must(
    mostHeld <= config.maxConcurrent,
    "P10",
    () => `${mostHeld} requests were withheld at once, bound ${config.maxConcurrent}`,
  );
  must(
    figures.heldBytesPeak <= config.maxConcurrent * config.maxBufferBytes,
    "P10",
    () => `${figures.heldBytesPeak} bytes were held at once`,
  );
  must(figures.held === 0, "P10", () => `${figures.held} slots are still taken at the end`);
  must(figures.heldBytes === 0, "P10", () => `${figures.heldBytes} bytes are still held at the end`);
  checkCounters(play);
  if (config.attempts === 0) checkOff(play);
}

/** The counters say what happened. */
function checkCounters(play: Play): void {
  const { figures } = play.world.slots;
  const notes = play.clients.flatMap((client) => traceOf(play, client).record?.notes ?? []);
  const count = (note: string) => notes.filter((one) => one === note).length;
  let recovered = 0;
  for (const client of play.clients) {
    const { events } = traceOf(play, client);
    const success = events.findLastIndex((event) =>
      event.kind === "settle" && event.outcome.kind === "success"
    );
    if (success < 0) continue;
    const start = events.findLastIndex((event) =>
      event.kind === "launch" && ["first", "failover", "round"].includes(event.launch.cause)
    );
    if (events.slice(start).some((event) => event.kind === "launch" && event.launch.cause === "recovery")) {
      recovered++;
    }
  }
  must(figures.recovered === recovered, "COUNTERS", () => `recovered ${figures.recovered}, not ${recovered}`);
  must(
    figures.exhausted === count("recovery_exhausted"),
    "COUNTERS",
    () => `exhausted ${figures.exhausted}, not ${count("recovery_exhausted")}`,
  );
  must(
    figures.blocked === count("recovery_blocked"),
    "COUNTERS",
    () => `blocked ${figures.blocked}, not ${count("recovery_blocked")}`,
  );
  for (const [why, counted] of Object.entries(figures.failedOpen)) {
    must(counted === count(`failed_open:${why}`), "COUNTERS", () => `${why}: ${counted}`);
  }
}

/** P40: switched off it takes no slot, holds nothing, notes nothing and launches nothing. */
function checkOff(play: Play): void {
  const { slots } = play.world;
  must(slots.traces.length === 0, "P40", () => `a slot was taken although recovery is off`);
  const { recovered, exhausted, blocked, withheldBytes, failedOpen } = slots.figures;
  const sum = recovered + exhausted + blocked + withheldBytes +
    Object.values(failedOpen).reduce((a, b) => a + b, 0);
  must(sum === 0, "P40", () => `counters moved although recovery is off: ${JSON.stringify(slots.figures)}`);
}

/** Nothing of the scene is left: no body, no request, no timer, no fault of ours in the log. */
export function checkRest(play: Play): void {
  const { world, scene } = play;
  must(world.fatal.length === 0, "REST", () => `the process would have ended: ${world.fatal}`);
  const broke = world.log.records.filter(({ level }) => level === "error");
  must(broke.length === 0, "REST", () => `an attempt broke: ${JSON.stringify(broke)}`);
  must(world.running.size === 0, "REST", () => `${world.running.size} requests are still known as running`);
  must(
    world.clock.pendingCount === 0,
    "REST",
    () => `${world.clock.pendingCount} callbacks were left behind`,
  );
  must(world.log.scan(["SENT-"]).length === 0, "REST", () => "a secret is in the log");
  for (const view of world.pool.describeAccounts(world.clock.now())) {
    must(view.inFlight === 0, "REST", () => `${view.account.id} still has an attempt in flight`);
  }
  for (const client of play.clients) {
    must(
      client.end !== null && client.end !== "broke",
      "REST",
      () => `${client.requestId} ended as ${client.end}`,
    );
    must(traceOf(play, client).record !== null, "REST", () => `${client.requestId} was never finished`);
    for (const send of sendsOf(play, client)) {
      const { body, script } = send;
      if (body === null || script.kind === "refusal") continue;
      // Where the length is known, nobody waits for what comes after it.
      const isComplete = script.kind === "document" && body.givenBytes === script.length;
      must(
        isComplete || body.isLetGo,
        "REST",
        () => `${client.requestId} attempt ${send.number}: its body was neither read to its end nor let go`,
      );
      checkSilence(play, send, scene.config.idleSeconds * 1_000);
    }
  }
}

/** A stream that hangs holds its slot no longer than the idle limit. */
function checkSilence(play: Play, send: Play["world"]["upstream"]["sends"][number], idleMs: number): void {
  const { body, script, attempt } = send;
  if (script.kind !== "stream" || script.end !== "hang" || body!.cancelledAtMs === null) return;
  if (readScriptedStream(script).verdict !== "hopeless") return;
  const settled = play.world.pool.requests.get(send.requestId)!.events.find((event) =>
    event.kind === "settle" && event.launch.attempt === attempt && event.phase === "open"
  );
  if (settled === undefined) return;
  const silentMs = body!.cancelledAtMs - body!.lastGivenAtMs;
  must(silentMs <= idleMs, "P10", () => `${attempt} was silent for ${silentMs} ms while it was withheld`);
}
