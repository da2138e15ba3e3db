import { assert, assertEquals, assertRejects } from "@std/assert";
import { Flight } from "../../lib/proxy/flight.ts";

Deno.test("wait() gives every waiter what the work gave, also those who come late", async () => {
  const work = Promise.withResolvers<number>();
  const flight = new Flight(() => work.promise);
  const early = [flight.wait(null), flight.wait(new AbortController().signal)];
  work.resolve(7);
  assertEquals(await Promise.all(early), [7, 7]);
  assertEquals(await flight.wait(null), 7);
});

Deno.test("wait() is null for one who leaves; the work and the others go on", async () => {
  const work = Promise.withResolvers<number>();
  const flight = new Flight(() => work.promise);
  const leaver = new AbortController();
  const left = flight.wait(leaver.signal);
  const stays = flight.wait(null);
  leaver.abort();
  assertEquals(await left, null);
  assertEquals(await flight.wait(leaver.signal), null);
  work.resolve(1);
  assertEquals(await stays, 1);
});

Deno.test("wait() rejects for everybody when the work fails, and `ended` tells it to nobody's surprise", async () => {
  const flight = new Flight(() => Promise.reject(new Error("disk gone")));
  await assertRejects(() => flight.wait(null), Error, "disk gone");
  await assertRejects(() => flight.ended, Error, "disk gone");
});

/** Field case B166. */
Deno.test("2,000 waiters on one flight: half leave at once, the rest are served, without a stall", async () => {
  const work = Promise.withResolvers<string>();
  const flight = new Flight(() => work.promise);
  const controllers = Array.from({ length: 2_000 }, () => new AbortController());
  const waits = controllers.map((one) => flight.wait(one.signal));
  const startedAt = performance.now();
  for (const one of controllers.slice(0, 1_000)) one.abort();
  work.resolve("token");
  const results = await Promise.all(waits);
  assert(performance.now() - startedAt < 250);
  assertEquals(results.filter((one) => one === null).length, 1_000);
  assertEquals(results.filter((one) => one === "token").length, 1_000);
});
