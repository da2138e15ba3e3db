/**
 * Clients that leave with requests behind the one that is being answered, on the same connection: each of them is over
 * with its client, also one that was never the next to be answered.
 */
import { assertEquals } from "@std/assert";
import { ok, silence } from "../../lib/demo/simulated_replies.ts";
import { eventually } from "../support/eventually.ts";
import { LeavingClient, LONG, SHORT, WAYS } from "../support/leaving_client.ts";
import { answersAsked } from "../support/leaving_moments.ts";
import { startRig } from "../support/rig.ts";

/** How long a leaving may take to be noticed on a busy machine. */
const NOTICED_LIMIT_MS = 10_000;

for (const shape of [SHORT, LONG]) {
  for (const way of WAYS) {
    Deno.test(`a client that ${way} with requests behind its first leaves none of them: ${shape.name}`, async () => {
      await using rig = await startRig({ accounts: ["A"] });
      rig.account("A").otherwise(silence());
      using client = await LeavingClient.open(rig.app.server.port, shape);
      for (let count = 0; count < 3; count++) await client.ask();
      await eventually(() => answersAsked(rig).length > 0);
      await rig.clock.advance(100);
      client.leave(way);
      await eventually(() => rig.app.server.openCount === 0, NOTICED_LIMIT_MS);
      const asked = answersAsked(rig);
      await eventually(() => asked.every(({ leftAtMs }) => leftAtMs !== null), NOTICED_LIMIT_MS);
      await rig.clock.advance(120_000);
      assertEquals(answersAsked(rig).length, asked.length);
      const told = rig.app.decisions.latest(10).map(({ status, code }) => [status, code]);
      assertEquals(told, asked.map(() => [0, "client_gone"]));
      const { state, in_flight } = await rig.accountState("A");
      assertEquals([state, in_flight], ["healthy", 0]);
      rig.account("A").otherwise(ok("next"));
      assertEquals((await (await rig.responses()).json()).status, "completed");
    });
  }
}
