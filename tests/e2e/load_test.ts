/** Crowds: who waits together wakes one by one, who fails together spreads, and a stop cuts nobody's stream. */
import { assert, assertEquals } from "@std/assert";
import {
  completed,
  created,
  delta,
  failure,
  gate,
  itemDone,
  ok,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { eventually } from "../support/eventually.ts";
import { LONG_INPUT } from "../support/long_input.ts";
import { ProcessRig } from "../support/process_rig.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";

const WAITERS = 2_000;
/** Most that may go out in one step of 50 ms: the spread is five seconds, so that twenty would be the average. */
const BURST_AT_MOST = 60;

Deno.test("B166 two thousand who wait for one cooldown wake one by one, and who leaves meanwhile costs nothing", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(failure(429, { headers: { "retry-after": "20" } })).otherwise(ok("A"));
  const leaving = new AbortController();
  const statuses: number[] = [];
  const call = async (init: RequestInit) => {
    const answer = await ask(rig, init);
    statuses.push(answer.status);
    await answer.body?.cancel();
  };
  // The first one is told to wait; everybody else finds that out without asking.
  const calls = [call({})];
  await eventually(() => rig.app.pool.nextWakeMs(rig.clock.now()) !== null, 10_000);
  for (let index = 1; index < WAITERS; index++) {
    calls.push(call(index % 2 === 1 ? { signal: leaving.signal } : {}));
  }
  const all = Promise.allSettled(calls);
  await eventually(() => rig.clock.pendingCount >= WAITERS, 30_000);
  // Clients that leave are noticed from then on.
  await rig.clock.advance(100);
  assertEquals(rig.hits("A"), 1, "nobody asks an account that rests");
  const health = await fetch(`${rig.app.url}/healthz`);
  assertEquals((await health.json()).status, "ok");

  const before = rig.clock.pendingCount;
  leaving.abort();
  await eventually(() => rig.clock.pendingCount <= before - WAITERS / 2 + 10, 20_000);
  assertEquals(rig.hits("A"), 1);

  await rig.clock.advance(18_000);
  const perStep: number[] = [];
  while (statuses.length < WAITERS / 2) {
    const hits = rig.hits("A");
    await rig.clock.advance(50);
    // Whatever woke up is given the time to be sent and answered.
    await settled(() => rig.provider.hits.length);
    perStep.push(rig.hits("A") - hits);
    assert(perStep.length < 400, `${statuses.length} of ${WAITERS / 2} after 20 s`);
  }
  await all;
  assertEquals(new Set(statuses), new Set([200]));
  assert(Math.max(...perStep) <= BURST_AT_MOST, `${Math.max(...perStep)} at once: ${perStep}`);
  assertEquals(rig.hits("A"), 1 + WAITERS / 2);
  assertEquals((await rig.accountState("A"))["in_flight"], 0);
});

function ask(rig: Rig, init: RequestInit): Promise<Response> {
  return fetch(`${rig.app.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${CLIENT_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m1", input: LONG_INPUT }),
    ...init,
  });
}

/** Waits until a count stands still over real sockets. */
async function settled(count: () => number): Promise<void> {
  for (let before = -1; before !== count();) {
    before = count();
    await new Promise((resolve) => setTimeout(resolve, 4));
  }
}

Deno.test("a herd on one failing account spreads over the others, and asks it no more while it rests", async () => {
  const names = ["A", "B", "C", "D"];
  await using rig = await startRig({
    accounts: names,
    config: { routing: { strategy: "fill-first" } },
    checkScript: false,
  });
  rig.account("A").otherwise(failure(503));
  for (const name of names.slice(1)) rig.account(name).otherwise(ok(name));
  const HERD = 200;
  // The clock stands still: nothing but the answers moves anybody on.
  const burst = () =>
    Promise.all(Array.from({ length: HERD }, async () => {
      const answer = await ask(rig, {});
      await answer.body?.cancel();
      return answer.status;
    }));
  assertEquals(new Set(await burst()), new Set([200]));
  // Whoever was under way when it failed had asked it, each once.
  const asked = rig.hits("A");
  assert(asked >= 1 && asked <= HERD, `${asked}`);
  assertEquals(new Set(await burst()), new Set([200]));
  assertEquals(rig.hits("A"), asked);
  const states = await Promise.all(names.map(async (name) => (await rig.accountState(name))["state"]));
  assertEquals(states, ["cooling", "healthy", "healthy", "healthy"]);
});

Deno.test("SIGTERM during 100 live streams: every one of them ends whole, and newcomers are told to come back", async () => {
  const STREAMS = 100;
  await using rig = await ProcessRig.create(["A", "B"]);
  const end = Promise.withResolvers<void>();
  const reply = stream([
    created(),
    delta("Hel"),
    gate(end.promise),
    delta("lo"),
    itemDone("Hello"),
    completed(),
  ]);
  for (const name of ["A", "B"]) rig.provider.account(`SENT-tok-${name}`).otherwise(reply);
  await rig.start();
  const began: string[] = [];
  const texts = Array.from({ length: STREAMS }, async () => {
    const answer = await rig.call({ stream: true });
    assertEquals(answer.status, 200);
    let text = "";
    for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
      if (text === "") began.push(piece);
      text += piece;
    }
    return text;
  });
  const all = Promise.allSettled(texts);
  await eventually(() => began.length === STREAMS, 20_000);
  rig.signal("SIGTERM");
  for (let ready = 200; ready === 200;) {
    const answer = await fetch(`${rig.url}/readyz`);
    await answer.body?.cancel();
    ready = answer.status;
  }
  const late = await rig.call();
  assertEquals([late.status, (await late.json()).error.code], [503, "shutting_down"]);
  end.resolve();
  const ended = await all;
  const cut = ended.filter((one) =>
    one.status === "rejected" || !one.value.includes('"lo"') || !one.value.includes("response.completed")
  );
  assertEquals(cut, []);
  assertEquals(await rig.ended(), 0);
});
