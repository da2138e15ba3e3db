/** Limits of this machine: told as what they are, over as soon as they are, and nobody's fault. */
import { assertEquals } from "@std/assert";
import { ok, silence } from "../../lib/demo/simulated_replies.ts";
import { eventually } from "../support/eventually.ts";
import { LONG_INPUT } from "../support/long_input.ts";
import { ProcessRig } from "../support/process_rig.ts";
import { RawClient } from "../support/raw_client.ts";

const KEYS = "host: x\r\nauthorization: Bearer SENT-key-client-1\r\ncontent-type: application/json\r\n";
const BODY = JSON.stringify({ model: "m1", input: LONG_INPUT });
const CROWD = 300;
const ASK = `POST /v1/responses HTTP/1.1\r\n${KEYS}content-length: ${BODY.length}\r\n\r\n${BODY}`;

Deno.test({
  name: "a process out of descriptors says 503 overloaded, cools nobody, and listens again by itself",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await using rig = await ProcessRig.create(["A"]);
    rig.provider.account("SENT-tok-A").script(silence()).otherwise(ok("A"));
    await rig.start(undefined, { descriptors: 128 });
    const early = await Promise.all([1, 2, 3, 4].map(() => RawClient.open(rig.port)));
    // As long as somebody is being served he is not sent away.
    using served = await RawClient.open(rig.port);
    await served.send(ASK);
    await rig.provider.hitCount(1);
    const crowd: RawClient[] = [];
    try {
      // More than there are descriptors; those without one wait in the network.
      while (crowd.length < CROWD) crowd.push(await RawClient.open(rig.port));
      await Promise.all(early.map((client) => client.send(ASK)));
      const answers = (await Promise.all(early.map((client) => client.answers(1)))).flat();
      assertEquals(answers.map(({ status }) => status), [503, 503, 503, 503]);
      for (const { headers, body } of answers) {
        assertEquals([JSON.parse(body).error.code, headers.get("retry-after")], ["overloaded", "1"]);
      }
      // Nobody of the crowd leaves, and still everybody is served again.
      await served200(() => rig.call());
      assertEquals(served.closed, false);
    } finally {
      for (const one of [...crowd, ...early]) one.close();
    }
    const { accounts } = JSON.parse(
      await served200(() =>
        fetch(`${rig.url}/v0/management/accounts`, { headers: { authorization: "Bearer SENT-key-admin-1" } })
      ),
    );
    assertEquals(accounts.map(({ state }: { state: string }) => state), ["healthy"]);
    await eventually(() => rig.stderr.includes("listener_failed"));
    assertEquals(rig.stderr.split("listener_failed").length - 1, 1);
    rig.signal("SIGTERM");
    assertEquals(await rig.ended(), 0);
  },
});

/** The body of the first 200; refused connections and other answers are asked again, for at most 20 s. */
async function served200(ask: () => Promise<Response>): Promise<string> {
  const endMs = performance.now() + 20_000;
  for (;;) {
    const answer = await Promise.race([ask().catch(() => null), pause(1_000)]);
    const body = await answer?.text().catch(() => null);
    if (answer?.status === 200 && typeof body === "string") return body;
    if (performance.now() > endMs) throw new Error(`Nobody is served again: ${answer?.status} ${body}`);
    await pause(20);
  }
}

const pause = (ms: number) => new Promise<null>((resolve) => setTimeout(resolve, ms, null));
