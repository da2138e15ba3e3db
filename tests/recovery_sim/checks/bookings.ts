/** P11, P21 and the budgets: what the pool decided on the way, and whom it blamed. */
import type { Outcome } from "../../../lib/core/outcome.ts";
import { must } from "../../sim/violation.ts";
import type { ClientResult } from "../client.ts";
import { type Play, sendsOf, traceOf } from "../play.ts";
import { predict, readScriptedStream, type Verdict } from "../prediction.ts";
import type { PoolEvent } from "../watched_parts.ts";

type Settle = Extract<PoolEvent, { kind: "settle" }>;

/** A leaving client is noticed by a sweep; what is launched before it is no launch after. */
const NOTICED_WITHIN_MS = 80;

export function checkBookings(play: Play, client: ClientResult): void {
  const { events } = traceOf(play, client);
  checkLaunches(play, client);
  checkWaits(play, client);
  for (const event of events) {
    if (event.kind === "settle") checkSettle(play, client, event);
    if (event.kind === "cancel" || event.kind === "commit") {
      must(
        event.booked.length === 0,
        "P11",
        () => `${client.requestId}: ${event.kind} changes ${event.booked}`,
      );
    }
  }
  checkSlotRecords(client, events, play.scene.streams.length === 1);
}

function checkLaunches(play: Play, client: ClientResult): void {
  const { config, accounts } = play.scene;
  const { events, slot } = traceOf(play, client);
  const id = client.requestId;
  const count = accounts.filter(({ provider }) => provider === client.stream.provider).length;
  const launches = events.filter((event) => event.kind === "launch");
  const silent = launches.filter(({ launch }) => launch.cause === "recovery");
  const allowed = slot === null ? 0 : Math.min(config.attempts, 10);
  must(
    silent.length <= allowed,
    "BUDGET",
    () => `${id} was made again ${silent.length} times, ${allowed} allowed`,
  );
  const bound = (1 + config.requestRetry) * count + count + allowed;
  must(
    launches.length <= bound,
    "BUDGET",
    () => `${id} was launched ${launches.length} times, bound ${bound}`,
  );
  const windowEndsMs = (launches[0]?.atMs ?? 0) + config.windowSeconds * 1_000;
  let over = false;
  let account = "";
  for (const event of events) {
    if (event.kind === "commit" || event.kind === "cancel" || event.kind === "finish") over = true;
    if (event.kind !== "launch") continue;
    const { launch, atMs } = event;
    must(
      !over,
      "P8",
      () => `${id}: ${launch.attempt} is launched after its answer was given or its client left`,
    );
    if (launch.cause === "recovery") {
      must(atMs <= windowEndsMs, "BUDGET", () => `${id}: ${launch.attempt} is made again after the window`);
      must(
        launch.account === account,
        "BUDGET",
        () => `${id}: made again on ${launch.account}, not ${account}`,
      );
    }
    account = launch.account;
    const left = client.leftAtMs;
    must(
      left === null || atMs <= left + NOTICED_WITHIN_MS,
      "P11",
      () => `${id}: ${launch.attempt} is launched ${atMs - left!} ms after its client left`,
    );
  }
  const sends = sendsOf(play, client).length;
  if (client.answeredAtMs !== null) {
    must(
      sends === client.sendsWhenAnswered,
      "P8",
      () => `${id} was sent ${sends - client.sendsWhenAnswered} times more after it was answered`,
    );
  }
  must(sends <= launches.length, "P8", () => `${id} was sent ${sends} times for ${launches.length} launches`);
}

function checkWaits(play: Play, client: ClientResult): void {
  const { config } = play.scene;
  let used = 0;
  let statedMs = 0;
  for (const event of traceOf(play, client).events) {
    if (event.kind === "settle") {
      statedMs = notBeforeMs(event.outcome);
      // One that is given up before it starts counts as well.
      if (event.recovers) used++;
    }
    if (event.kind !== "step" || event.step.kind !== "wait" || event.step.reason !== "recovery_backoff") {
      continue;
    }
    const { untilMs } = event.step;
    const latestMs = Math.max(event.atMs + ceilingMs(config, used - 1), statedMs);
    must(
      untilMs <= latestMs,
      "BUDGET",
      () => `${client.requestId} backs off ${untilMs - latestMs} ms too long`,
    );
  }
}

function ceilingMs(config: Play["scene"]["config"], used: number): number {
  return Math.min(config.maxBackoffMs, config.initialBackoffMs * 2 ** used);
}

function notBeforeMs(outcome: Outcome): number {
  return outcome.kind === "transient" ? outcome.notBeforeMs ?? 0 : 0;
}

function checkSettle(play: Play, client: ClientResult, event: Settle): void {
  const { outcome, launch, atMs } = event;
  const { config } = play.scene;
  const id = `${client.requestId} ${launch.attempt}`;
  if (outcome.kind === "cancelled") {
    must(
      event.booked.length === 0 || launch.probe !== "none",
      "P11",
      () => `${id}: a cancel changes ${event.booked}`,
    );
    return;
  }
  const send = sendsOf(play, client).find(({ attempt }) => attempt === launch.attempt);
  must(send !== undefined, "SCRIPT", () => `${id} ended without having been sent`);
  const verdict = predict(send.script);
  const found = verdictOf(outcome, event.phase);
  // A connection of its own was not idle before.
  const seen = verdict === "repeat" && launch.fresh ? "recoverable" : verdict;
  must(found === seen, "SCRIPT", () => `${id} was judged ${found} (${outcome.code}), it is ${seen}`);
  // For free once an account; then it is a failure like any other.
  const due = seen === "repeat" && wasRepeated(play, client, launch) ? "recoverable" : seen;
  if (outcome.kind === "incomplete") {
    must(
      event.booked.length === 0 || launch.probe !== "none",
      "P21",
      () => `${id}: incomplete books ${event.booked}`,
    );
  }
  if (event.phase !== "open") {
    must(!event.recovers, "P8", () => `${id} is made again after its answer was given`);
    return;
  }
  if (event.withheld) checkFailedOpen(play, client, send, id);
  const isSilent = due === "recoverable" || due === "incomplete";
  if (event.recovers) {
    must(
      isSilent && event.withheld && event.attemptsLeft > 0,
      "BUDGET",
      () => `${id} is made again as ${due}`,
    );
    must(atMs <= event.windowEndsAtMs, "BUDGET", () => `${id} is made again after the window`);
    must(event.booked.length === 0, "P21", () => `${id} vanishes, yet changes ${event.booked}`);
    return;
  }
  const used = Math.min(config.attempts, 10) - event.attemptsLeft;
  const startsInTime = Math.max(atMs + ceilingMs(config, used), notBeforeMs(outcome)) <= event.windowEndsAtMs;
  must(
    !(isSilent && event.withheld && event.attemptsLeft > 0 && startsInTime && launch.probe === "none"),
    "BUDGET",
    () => `${id} is ${due} with ${event.attemptsLeft} attempts left, and was not made again`,
  );
}

/** An idle connection of this account had died for this request before, whether or not the repetition was launched. */
function wasRepeated(play: Play, client: ClientResult, { account, counter }: Settle["launch"]): boolean {
  return traceOf(play, client).events.some((event) =>
    event.kind === "settle" && event.outcome.kind === "no_response" && event.outcome.pooled &&
    event.launch.account === account && event.launch.counter < counter
  );
}

/** P9: what is unknown or too long must not have been held to the end. */
function checkFailedOpen(
  play: Play,
  client: ClientResult,
  send: ReturnType<typeof sendsOf>[number],
  id: string,
): void {
  if (send.script.kind !== "stream") return;
  const reading = readScriptedStream(send.script);
  const seen = reading.unknownAtBytes;
  must(
    seen === null || seen === Infinity,
    "P9",
    () => `${id} was withheld although an event of it is unknown`,
  );
  if (send.protocol !== client.stream.client) return;
  const kept = reading.kept.reduce((sum, { bytes }) => sum + bytes.length, 0);
  const { maxBufferBytes } = play.scene.config;
  must(kept <= maxBufferBytes, "P10", () => `${id} was withheld with ${kept} bytes, bound ${maxBufferBytes}`);
}

function verdictOf(outcome: Outcome, phase: Settle["phase"]): Verdict {
  switch (outcome.kind) {
    case "success":
      return "success";
    case "incomplete":
      return "incomplete";
    case "request_fault":
      return "fault";
    case "unauthorized":
      return "unauthorized";
    case "transient":
      return outcome.cause === "throttle" ? "refused" : outcome.recoverable ? "recoverable" : "hopeless";
    case "no_response":
      return outcome.pooled ? "repeat" : outcome.recoverable ? "recoverable" : "hopeless";
    case "limited":
    case "credits":
      return "refused";
    default:
      throw new Error(`Cannot judge ${outcome.kind} in phase ${phase}: no script leads there`);
  }
}

/**
 * P21: an account that was a slot of the request is booked once for it, whatever went on inside.
 *
 * @param isAlone  no other request booked anything: a block that runs already is not made longer by the next one.
 */
function checkSlotRecords(client: ClientResult, events: readonly PoolEvent[], isAlone: boolean): void {
  let account: string | null = null;
  let records = 0;
  let last: Settle | null = null;
  const paused = events.some(({ booked }) => booked.includes("network"));
  const close = (): void => {
    if (account === null) return;
    must(
      records <= 1 || paused,
      "P21",
      () => `${client.requestId}: ${records} records on ${account} for one slot`,
    );
    const { outcome, phase } = last ?? {};
    const isBooked = outcome?.kind === "limited" ||
      (outcome?.kind === "transient" && outcome.cause !== "throttle");
    must(
      records === 1 || !isAlone || !isBooked || phase !== "open" || last!.recovers,
      "P21",
      () => `${client.requestId}: ${outcome?.code} left nothing on ${account}`,
    );
  };
  for (const event of events) {
    if (event.kind === "launch" && ["first", "failover", "round"].includes(event.launch.cause)) {
      // What this very step booked belongs to the slot it leaves.
      if (account !== null && event.booked.includes(account)) records++;
      close();
      account = event.launch.account;
      records = 0;
      last = null;
      continue;
    }
    if (event.kind === "settle") last = event;
    if (event.kind !== "repaired" && account !== null && event.booked.includes(account)) records++;
  }
  close();
}
