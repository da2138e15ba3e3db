/** B156: connections that are opened and never used, or used a byte at a time, cost nobody else anything. */
import { assert, assertEquals } from "@std/assert";
import { ok } from "../../lib/demo/simulated_replies.ts";
import { HEADERS, message, POST } from "../support/hardening.ts";
import { ProcessRig } from "../support/process_rig.ts";
import { RawClient } from "../support/raw_client.ts";

const SILENT = 100;
const DRIPPING_HEADS = 50;
const DRIPPING_BODIES = 50;
const CALLS = 30;
/** Of medians in one run: far above what other work on the machine does to them, far below waiting for anybody. */
const SLOWER_AT_MOST = 8;

Deno.test("200 half-open connections slow nobody, and their bodies are given up", async () => {
  await using rig = await ProcessRig.create(["A"], { timeouts: { "request-body-seconds": 2 } });
  rig.provider.account("SENT-tok-A").otherwise(ok("A"));
  await rig.start();
  await medianMs(rig);
  const alone = await medianMs(rig);
  const open = (count: number) => Promise.all(Array.from({ length: count }, () => RawClient.open(rig.port)));
  const silent = await open(SILENT);
  const heads = await open(DRIPPING_HEADS);
  const bodies = await open(DRIPPING_BODIES);
  const head = message([POST, ...HEADERS, "content-length: 10000"]);
  await Promise.all(bodies.map((client) => client.send(head)));
  let at = 0;
  const drip = setInterval(() => {
    for (const client of heads) client.send(head.charAt(at % 30)).catch(() => {});
    for (const client of bodies) client.send("x").catch(() => {});
    at++;
  }, 50);
  try {
    const crowded = await medianMs(rig);
    assert(crowded < alone * SLOWER_AT_MOST + 5, `${alone} ms alone, ${crowded} ms among them`);
    const admin = { headers: { authorization: "Bearer SENT-key-admin-1" } };
    const { accounts } = await (await fetch(`${rig.url}/v0/management/accounts`, admin)).json();
    assertEquals(accounts.map(({ state }: { state: string }) => state), ["healthy"]);

    // Nothing of a head tells whose it is: they wait. A request that has begun has its time.
    const told = await Promise.all(bodies.map((client) => client.answers(1, 10_000)));
    assertEquals(new Set(told.map(([answer]) => answer!.status)), new Set([408]));
    assertEquals(heads.filter((client) => client.closed).length, 0);
  } finally {
    clearInterval(drip);
  }
  assertEquals(rig.provider.hits.length, 3 * CALLS, "none of them reached the upstream");
  // They hold nothing up either.
  rig.signal("SIGTERM");
  assertEquals(await rig.ended(), 0);
  for (const client of [...silent, ...heads, ...bodies]) client.close();
});

/** Of one request after the other, each on a connection of its own. */
async function medianMs(rig: ProcessRig): Promise<number> {
  const took: number[] = [];
  for (let call = 0; call < CALLS; call++) {
    const began = performance.now();
    const answer = await rig.call({}, { headers: { ...JSON_HEADERS, connection: "close" } });
    assertEquals(answer.status, 200);
    await answer.body?.cancel();
    took.push(performance.now() - began);
  }
  return took.sort((a, b) => a - b)[CALLS / 2]!;
}

const JSON_HEADERS = { authorization: "Bearer SENT-key-client-1", "content-type": "application/json" };
