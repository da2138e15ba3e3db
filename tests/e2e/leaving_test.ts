/**
 * Clients that leave before their answer is over, at every moment of a request's life and in every shape of request:
 * what is under way ends, nothing is sent any more, and nobody is blamed (P11, row 45).
 */
import { assertEquals } from "@std/assert";
import {
  created,
  delta,
  failure,
  gate,
  hold,
  json,
  ok,
  type Reply,
  rst,
  silence,
  type Step,
  stream,
  text,
} from "../../lib/demo/simulated_replies.ts";
import { eventually } from "../support/eventually.ts";
import { LeavingClient, LONG, SHAPES, SHORT, WAYS } from "../support/leaving_client.ts";
import { answersAsked, leaveAt, type Moment, type Others, type Scene } from "../support/leaving_moments.ts";
import { newGate, recoveryOn } from "../support/recovery_rig.ts";
import { type Rig, startRig } from "../support/rig.ts";

const STREAM = { fields: { stream: true } };
const COMPACT = { path: "/v1/responses/compact" };
const OVERLOADED = failure(503, { code: "server_is_overloaded" });
const LIMITED = failure(429, { type: "usage_limit_reached", headers: { "retry-after": "20" } });
const EXPIRED = { credential: { expired: "2020-01-01T00:00:00Z" } };
const MIB = 1_048_576;

const moments: readonly Moment[] = [
  {
    name: "while a cooldown that another one met is waited out",
    accounts: ["A"],
    twice: true,
    held: false,
    attempts: [],
    async reach({ rig, client, other }) {
      rig.account("A").script(LIMITED).otherwise(ok("A"));
      await other.ask();
      await eventually(() => waitingCount(rig) === 1);
      await client.ask(STREAM);
      await eventually(() => waitingCount(rig) === 2);
      return async () => {
        // The cooldown, and the spread of those who wait for it.
        await rig.clock.advance(26_000);
        await other.until("completed");
        return 1;
      };
    },
  },
  {
    name: "while the cooldown of its own first launch is waited out",
    accounts: ["A"],
    twice: true,
    held: false,
    attempts: ["limited"],
    async reach({ rig, client }) {
      rig.account("A").script(LIMITED);
      await client.ask(STREAM);
      await eventually(() => waitingCount(rig) === 1);
    },
  },
  {
    name: "while it waits for its next round",
    twice: true,
    held: false,
    attempts: ["transient", "transient"],
    async reach({ rig, client }) {
      for (const name of ["A", "B"]) rig.account(name).script(OVERLOADED);
      await client.ask(STREAM);
      await eventually(() => accountsOf(rig).every(({ state }) => state === "cooling"));
    },
  },
  {
    name: "before the upstream's head",
    held: true,
    attempts: ["cancelled"],
    async reach({ rig, client }) {
      rig.account("A").script(silence());
      await client.ask(STREAM);
      await asked(rig, 1);
    },
  },
  {
    name: "before the second upstream's head, after a failover",
    twice: true,
    held: true,
    attempts: ["transient", "cancelled"],
    async reach({ rig, client }) {
      rig.account("A").script(OVERLOADED);
      rig.account("B").script(silence());
      await client.ask(STREAM);
      await asked(rig, 2);
    },
  },
  {
    name: "between the two launches of a failover, while the first refusal is being read",
    held: true,
    attempts: ["cancelled"],
    async reach({ rig, client }) {
      rig.account("A").script(unfinished(503, '{"error":'));
      await client.ask(STREAM);
      await asked(rig, 1);
    },
  },
  {
    name: "between the upstream's head and its first output",
    held: true,
    attempts: ["cancelled"],
    async reach({ rig, client }) {
      const { reply, sent } = played([created()]);
      rig.account("A").script(reply);
      await client.ask(STREAM);
      await sent;
    },
  },
  {
    name: "while its stream is withheld by recovery",
    twice: true,
    options: { config: recoveryOn() },
    held: true,
    attempts: ["cancelled"],
    async reach({ rig, client }) {
      rig.account("A").script(stream([created(), delta("a"), hold()]));
      await client.ask(STREAM);
      await eventually(() => rig.app.recoverySlots.figures.heldBytes > 0);
    },
  },
  {
    name: "while recovery waits to launch it again",
    twice: true,
    options: {
      config: recoveryOn({ "initial-backoff-milliseconds": 30_000, "max-backoff-milliseconds": 30_000 }),
    },
    held: false,
    attempts: ["transient"],
    async reach({ rig, client }) {
      rig.account("A").script(stream([created(), delta("a"), rst()]));
      await client.ask(STREAM);
      await asked(rig, 1);
      await eventually(() => accountsOf(rig).every(({ inFlight }) => inFlight === 0));
    },
  },
  {
    name: "while the token it would be sent with is refreshed",
    accounts: ["A"],
    options: EXPIRED,
    held: false,
    attempts: ["cancelled"],
    async reach(scene) {
      const others = gatedRefresh(scene);
      await scene.client.ask(STREAM);
      await eventually(() => scene.rig.provider.hits.length === 1);
      return others;
    },
  },
  {
    name: "while the token it was refused with is refreshed",
    accounts: ["A"],
    twice: true,
    held: false,
    attempts: ["unauthorized"],
    async reach(scene) {
      const others = gatedRefresh(scene);
      scene.rig.account("A").otherwise(failure(401, { code: "token_expired" }));
      await scene.client.ask(STREAM);
      await eventually(() => scene.rig.provider.hits.length === 2);
      return async () => await others() + 1;
    },
  },
  {
    name: "in the middle of its stream",
    held: true,
    attempts: ["cancelled"],
    code: "client_cancelled",
    async reach({ rig, client }) {
      rig.account("A").script(stream([created(), delta("a"), hold()]));
      await client.ask(STREAM);
      await client.until("output_text.delta");
    },
  },
  {
    name: "while its JSON answer is gathered from a stream",
    held: true,
    attempts: ["cancelled"],
    async reach({ rig, client }) {
      const { reply, sent } = played([created(), delta("a")]);
      rig.account("A").script(reply);
      await client.ask();
      await sent;
    },
  },
  {
    name: "while its JSON answer is read whole",
    held: true,
    attempts: ["cancelled"],
    async reach({ rig, client }) {
      rig.account("A").script(unfinished(200, '{"id":"resp_1",'));
      await client.ask(COMPACT);
      await asked(rig, 1);
    },
  },
  {
    name: "in the middle of a JSON answer too large to be kept",
    held: true,
    attempts: ["cancelled"],
    code: "client_cancelled",
    async reach({ rig, client }) {
      rig.account("A").script(unfinished(200, `{"pad":"${"x".repeat(9 * MIB)}`));
      await client.ask(COMPACT);
      await client.until("xxx");
    },
  },
];

for (const moment of moments) {
  for (const shape of SHAPES) {
    if (moment.twice && shape.chunked) continue;
    for (const way of shape === SHORT || shape === LONG ? WAYS : ["closes"] as const) {
      Deno.test(`a client that ${way} ${moment.name} ends it, and blames nobody: ${shape.name}`, async () => {
        await leaveAt(moment, shape, way);
      });
    }
  }
}

for (const shape of SHAPES) {
  Deno.test(`a client that closes before it has read its whole answer was served all the same: ${shape.name}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    using client = await LeavingClient.open(rig.app.server.port, shape);
    rig.account("A").script(json({ id: "resp_1", pad: "x".repeat(4 * MIB) }), ok("next"));
    await client.ask(COMPACT);
    await client.until("xxx");
    client.leave();
    await eventually(() => rig.app.server.openCount === 0);
    assertEquals(rig.app.decisions.latest(2).map(({ status, code }) => [status, code]), [[200, null]]);
    assertEquals((await (await rig.responses()).json()).status, "completed");
    const { state, in_flight } = await rig.accountState("A");
    assertEquals([state, in_flight, rig.hits("A")], ["healthy", 0, 2]);
  });
}

async function asked(rig: Rig, count: number): Promise<void> {
  await eventually(() => answersAsked(rig).length === count);
}

function accountsOf(rig: Rig) {
  return rig.app.pool.describeAccounts(rig.clock.now());
}

/** Requests that wait for a cooldown of twenty seconds; they are spread over a few more. */
function waitingCount(rig: Rig): number {
  return rig.clock.pendingWithin(20_000, 26_000);
}

/** A document that never ends. */
function unfinished(status: number, begin: string): Reply {
  return { ...stream([text(begin), hold()], { "content-type": "application/json" }), status };
}

/** Plays the steps and tells when they have all been sent; the stream stays open. */
function played(steps: readonly Step[]): { reply: Reply; sent: Promise<void> } {
  const { opened, open } = newGate();
  function* play(): Generator<Step> {
    yield* steps;
    open();
    yield hold();
  }
  return { reply: stream(play()), sent: opened };
}

/** A's refresh waits at a gate, which opens for a client that stays: the refresh goes on for it, as it would alone. */
function gatedRefresh({ rig, other }: Scene): Others {
  const { opened, open } = newGate();
  const fresh = { access_token: "SENT-tok-A2", refresh_token: "SENT-ref2-A", expires_in: 86_400 };
  rig.provider.account("SENT-ref-A").tokens.script(
    stream([gate(opened), text(JSON.stringify(fresh))], { "content-type": "application/json" }),
  );
  rig.provider.account("SENT-tok-A2").otherwise(ok("A"));
  return async () => {
    await other.ask();
    open();
    await other.until("completed");
    return 1;
  };
}
