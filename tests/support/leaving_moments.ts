/**
 * Brings a request to a moment of its life, lets its client leave, and looks at what is left of it.
 *
 * The clock stands still while a client leaves: a wait that ran out meanwhile would look like one nobody left.
 */
import { assertEquals } from "@std/assert";
import type { DecisionRecord } from "../../lib/core/decision.ts";
import type { Hit } from "../../lib/demo/simulated_provider.ts";
import { ok } from "../../lib/demo/simulated_replies.ts";
import { eventually } from "./eventually.ts";
import { LeavingClient, LONG, type Shape, type Way } from "./leaving_client.ts";
import { type Rig, type RigOptions, startRig } from "./rig.ts";

export interface Moment {
  readonly name: string;
  /** Names of the accounts; A and B unless told otherwise. */
  readonly accounts?: readonly string[];
  readonly options?: Partial<RigOptions>;
  /** Only a request that may be sent twice gets there: one of unknown length does not. */
  readonly twice?: true;
  /** Scripts the provider, asks, and resolves when the request is there: with what goes on for others, if anything. */
  reach(scene: Scene): Promise<Others | void>;
  /** The upstream call under way has to end with the client. */
  readonly held: boolean;
  /** Kinds of the attempts' outcomes, in order. */
  readonly attempts: readonly string[];
  /** What the decision is coded with: another word once the client had a byte. */
  readonly code?: "client_gone" | "client_cancelled";
}

/** Lets others be served. @returns how many calls of theirs reached the upstream. */
export type Others = () => Promise<number>;

export interface Scene {
  readonly rig: Rig;
  readonly client: LeavingClient;
  /** A client that stays, and asks as the other one does. */
  readonly other: LeavingClient;
}

/** How long a leaving may take to be noticed on a busy machine. */
const NOTICED_LIMIT_MS = 10_000;
/** Longer than any wait in these tests. */
const ALL_WAITS_MS = 120_000;

/** Runs one request to its moment, and asserts that nothing happens any more once its client has left. */
export async function leaveAt(moment: Moment, shape: Shape, way: Way = "closes"): Promise<void> {
  await using rig = await startRig({ accounts: moment.accounts ?? ["A", "B"], ...moment.options });
  const { port } = rig.app.server;
  using client = await LeavingClient.open(port, shape);
  using other = await LeavingClient.open(port, LONG);
  const scene = { rig, client, other };
  const others = await moment.reach(scene);
  // What has come by now is dealt with, on both sides of the proxy.
  await rig.clock.advance(100);
  const asked = answersAsked(rig);
  const health = healthOf(rig);
  const record = leftRecord(rig);
  client.leave(way);
  const { status, code, attempts } = await record;
  assertEquals([status, code], [0, moment.code ?? "client_gone"]);
  assertEquals(attempts.map(({ outcome }) => outcome?.split(":")[0]), moment.attempts);
  if (moment.held) await eventually(() => asked.at(-1)!.leftAtMs !== null, NOTICED_LIMIT_MS);
  assertEquals(healthOf(rig), health, "nobody is cooled for it");
  await assertOver(scene, asked.length, await others?.() ?? 0);
}

/** Nothing of it is left, nothing of it is sent later, and whoever comes next is served. */
async function assertOver({ rig, other }: Scene, askedBefore: number, others: number): Promise<void> {
  other.leave();
  await eventually(() => rig.app.server.openCount === 0, NOTICED_LIMIT_MS);
  await rig.clock.advance(ALL_WAITS_MS);
  const states = rig.app.pool.describeAccounts(rig.clock.now());
  assertEquals(states.map(({ state, inFlight }) => [state, inFlight]), states.map(() => ["healthy", 0]));
  assertEquals(rig.app.recoverySlots.held, 0);
  assertEquals(answersAsked(rig).length, askedBefore + others);
  for (const account of ["A", "B"]) rig.account(account).otherwise(ok("next"));
  assertEquals((await (await rig.responses()).json()).status, "completed");
  assertEquals(answersAsked(rig).length, askedBefore + others + 1);
}

/** The record of the request whose client left; nothing else may be told of it. */
async function leftRecord(rig: Rig): Promise<DecisionRecord> {
  const records: DecisionRecord[] = [];
  const stop = rig.app.decisions.subscribe((record) => void records.push(record));
  try {
    await eventually(() => records.length > 0, NOTICED_LIMIT_MS);
  } finally {
    stop();
  }
  return records[0]!;
}

export function answersAsked(rig: Rig): readonly Hit[] {
  return rig.provider.hits.filter(({ lane }) => lane === "answers");
}

/** All that is remembered of accounts, providers and the network. */
function healthOf(rig: Rig): unknown {
  const { pool } = rig.app;
  const nowMs = rig.clock.now();
  return {
    accounts: pool.describeAccounts(nowMs).map(({ account, state, health }) => [account.id, state, health]),
    providers: pool.describeProviders(nowMs),
    network: pool.describeNetwork(nowMs),
  };
}
