/** kill -9 during load: no deadline a client was told of is forgotten, and the store stays sound. */
import { assert, assertEquals } from "@std/assert";
import { failure } from "../../lib/demo/simulated_replies.ts";
import { ProcessRig } from "../support/process_rig.ts";

/** `HOLDFAST_PROCESS_KILLS=200` for the long form. */
const KILLS = Number(Deno.env.get("HOLDFAST_PROCESS_KILLS") ?? 20);
const REQUESTS = 6;

Deno.test(`${KILLS} kills during load: no acknowledged deadline is lost, no corruption`, async () => {
  const names = Array.from({ length: KILLS * REQUESTS + 2 }, (_, index) => `K${index}`);
  await using rig = await ProcessRig.create(names, { "request-retry": 0, "max-retry-credentials": 1 });
  // Every account is spent for two hours at its first call: one that was told may never be asked again.
  for (const name of names) {
    rig.provider.account(`SENT-tok-${name}`).otherwise(
      failure(429, { type: "usage_limit_reached", headers: { "retry-after": "7200" } }),
    );
  }
  let acknowledged = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    await rig.start();
    const calls = Array.from({ length: REQUESTS }, async () => {
      try {
        const answer = await rig.call();
        await answer.body?.cancel();
        if (answer.status === 429) acknowledged++;
      } catch {
        // Killed before it was told anything.
      }
    });
    // At a different moment each time: before, between and after the answers.
    await Promise.race([Promise.all(calls), new Promise((resolve) => setTimeout(resolve, kill % 7))]);
    rig.signal("SIGKILL");
    await Promise.all(calls);
    await rig.ended();
  }
  await rig.start();
  const { accounts } = await (await fetch(`${rig.url}/v0/management/accounts`, {
    headers: { authorization: "Bearer SENT-key-admin-1" },
  })).json();
  const cooling =
    accounts.filter(({ state, persisted }: { state: string; persisted: boolean }) =>
      state === "cooling" && persisted
    ).length;
  assert(cooling >= acknowledged, `${cooling} deadlines are known, ${acknowledged} were told`);
  const hits = new Map<string, number>();
  for (const { credential } of rig.provider.hits) hits.set(credential!, (hits.get(credential!) ?? 0) + 1);
  const unknown = rig.provider.hits.length - acknowledged;
  const twice = [...hits.values()].filter((count) => count > 1).length;
  assert(twice <= unknown, `${twice} accounts were asked twice, only ${unknown} calls were never told`);
  rig.signal("SIGTERM");
  assertEquals(await rig.ended(), 0);
});
