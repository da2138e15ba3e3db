import { assert, assertEquals } from "@std/assert";
import {
  BodyPace,
  BodyWatch,
  LEAST_BYTES_PER_SECOND,
  TOO_SLOW,
  type TooSlow,
} from "../../lib/proxy/body_pace.ts";
import { FakeClock } from "../support/fake_clock.ts";

/** How often the watch looks. */
const LOOK_MS = 500;
const NEVER = new Promise<string>(() => {});

/** What is known of the wait after so much time. */
async function after(
  clock: FakeClock,
  wait: Promise<string | TooSlow>,
  ms: number,
): Promise<string | TooSlow> {
  await clock.advance(ms);
  return await Promise.race([wait, Promise.resolve("waits")]);
}

Deno.test("BodyPace waits for its grace, and not longer", async () => {
  const clock = new FakeClock();
  const wait = new BodyPace(new BodyWatch(clock), 1_000).wait(NEVER);
  assertEquals(await after(clock, wait, 999), "waits");
  assertEquals(await after(clock, wait, LOOK_MS), TOO_SLOW);
});

Deno.test("BodyPace gives a whole body the time of the least pace for what came of it, and no more", async () => {
  const clock = new FakeClock();
  const pace = new BodyPace(new BodyWatch(clock), 1_000);
  const wait = pace.wait(NEVER);
  assertEquals(await after(clock, wait, 900), "waits");
  pace.count(2 * LEAST_BYTES_PER_SECOND);
  assertEquals(await after(clock, wait, 2_099), "waits");
  assertEquals(await after(clock, wait, LOOK_MS), TOO_SLOW);
});

Deno.test("BodyPace is not satisfied by a byte now and then", async () => {
  const clock = new FakeClock();
  const pace = new BodyPace(new BodyWatch(clock), 1_000);
  let bytes = 0;
  for (; bytes < 100; bytes++) {
    const part = Promise.withResolvers<string>();
    clock.schedule(clock.now() + 100, () => part.resolve("byte"));
    const wait = pace.wait(part.promise);
    await clock.advance(100);
    if (await wait === TOO_SLOW) break;
    pace.count(1);
  }
  // Looked at every half second.
  assert(bytes >= 10 && bytes <= 15, `${bytes}`);
});

Deno.test("BodyPace lets a slow but steady body take as long as it is", async () => {
  const clock = new FakeClock();
  const pace = new BodyPace(new BodyWatch(clock), 1_000);
  for (let second = 0; second < 100; second++) {
    const part = Promise.withResolvers<string>();
    clock.schedule(clock.now() + 1_000, () => part.resolve("piece"));
    const wait = pace.wait(part.promise);
    await clock.advance(1_000);
    assertEquals(await wait, "piece");
    pace.count(LEAST_BYTES_PER_SECOND);
  }
});

Deno.test("BodyPace counts only the time in which somebody waits for the client", async () => {
  const clock = new FakeClock();
  const pace = new BodyPace(new BodyWatch(clock), 1_000);
  for (let turn = 0; turn < 50; turn++) {
    // An upstream that takes its time.
    await clock.advance(10_000);
    assertEquals(await pace.wait(Promise.resolve("piece")), "piece");
  }
});

Deno.test("BodyPace without a limit waits for as long as it takes, and passes failures on", async () => {
  const clock = new FakeClock();
  assertEquals(await after(clock, new BodyPace(new BodyWatch(clock), 0).wait(NEVER), 1e9), "waits");
  for (const grace of [0, 1_000]) {
    const failed = await new BodyPace(new BodyWatch(clock), grace).wait(Promise.reject(new Error("broken")))
      .catch(String);
    assertEquals(failed, "Error: broken");
  }
});
