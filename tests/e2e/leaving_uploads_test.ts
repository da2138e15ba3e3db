/**
 * Clients that leave in the middle of their own request: nothing of it is sent, or what streams on already ends, and
 * nobody is blamed.
 */
import { assert, assertEquals } from "@std/assert";
import { ok } from "../../lib/demo/simulated_replies.ts";
import { eventually } from "../support/eventually.ts";
import { LeavingClient, SHAPES, WAYS } from "../support/leaving_client.ts";
import { type Rig, startRig } from "../support/rig.ts";

for (const shape of SHAPES) {
  for (const way of WAYS) {
    Deno.test(`nothing is sent for a client that ${way} in the middle of its upload: ${shape.name}`, async () => {
      await using rig = await startRig({ accounts: ["A"] });
      using client = await LeavingClient.open(rig.app.server.port, shape);
      await client.askHalf({ fields: { stream: true } });
      await eventually(() => rig.app.server.openCount === 1);
      await rig.clock.advance(100);
      client.leave(way);
      await eventually(() => rig.app.server.openCount === 0);
      // Who still listens may be told; nothing was decided, so that there is nothing to record.
      assert(/^(?:HTTP\/1\.1 400 |$)/.test(client.received), client.received);
      assertEquals([rig.provider.hits.length, rig.app.decisions.latest(1)], [0, []]);
      await assertServesOthers(rig);
    });
  }
}

for (const way of WAYS) {
  Deno.test(`a client that ${way} in the middle of an upload that streams on takes the upstream's with it`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    const shape = { name: "", bodyBytes: 200_000, chunked: true } as const;
    using client = await LeavingClient.open(rig.app.server.port, shape);
    await client.askHalf({ path: "/files" });
    await eventually(() => rig.provider.openConnections === 1);
    await rig.clock.advance(100);
    client.leave(way);
    await eventually(() => rig.provider.openConnections === 0 && rig.app.decisions.latest(1).length === 1);
    const { status, code, attempts } = await rig.lastDecision();
    assertEquals([status, code, attempts.map(({ row }) => row)], [0, "client_gone", [45]]);
    assertEquals(rig.provider.hits.length, 0);
    await eventually(() => rig.app.server.openCount === 0);
    await assertServesOthers(rig);
  });
}

async function assertServesOthers(rig: Rig): Promise<void> {
  await rig.clock.advance(120_000);
  const { state, in_flight } = await rig.accountState("A");
  assertEquals([state, in_flight, rig.hits("A")], ["healthy", 0, 0]);
  rig.account("A").script(ok("next"));
  assertEquals((await (await rig.responses()).json()).status, "completed");
  assertEquals(rig.hits("A"), 1);
}
