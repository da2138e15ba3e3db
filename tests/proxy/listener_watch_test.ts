import { assertEquals } from "@std/assert";
import { ANSWER_MS, ListenerWatch, LOOK_MS } from "../../lib/proxy/listener_watch.ts";
import { FakeClock } from "../support/fake_clock.ts";

/** A listener as its watch sees it. */
function setUp(hears: () => "at once" | "never" | "nobody there") {
  const clock = new FakeClock();
  const seen = { accepted: 0, knocks: 0, open: 0, deaf: 0 };
  const watch = new ListenerWatch({
    clock,
    accepted: () => seen.accepted,
    knock() {
      seen.knocks++;
      const how = hears();
      if (how === "nobody there") return Promise.reject(new Error("refused"));
      if (how === "at once") seen.accepted++;
      seen.open++;
      return Promise.resolve({ close: () => void seen.open-- });
    },
    deaf: () => void seen.deaf++,
  });
  return { clock, seen, watch };
}

Deno.test("ListenerWatch leaves a listener alone that accepts connections", async () => {
  const { clock, seen, watch } = setUp(() => "never");
  for (let look = 0; look < 5; look++) {
    seen.accepted++;
    await clock.advance(LOOK_MS);
  }
  assertEquals(seen, { accepted: 5, knocks: 0, open: 0, deaf: 0 });
  watch.stop();
});

Deno.test("ListenerWatch knocks in a silence, and is content to be heard", async () => {
  const { clock, seen, watch } = setUp(() => "at once");
  for (let look = 0; look < 3; look++) await clock.advance(LOOK_MS);
  assertEquals([seen.knocks, seen.open, seen.deaf], [3, 0, 0]);
  watch.stop();
});

Deno.test("ListenerWatch finds a listener deaf that takes no connection, or to which none can be made", async () => {
  for (const how of ["never", "nobody there"] as const) {
    const { clock, seen, watch } = setUp(() => how);
    const wholeLookMs = how === "never" ? LOOK_MS + ANSWER_MS : LOOK_MS;
    for (let look = 1; look <= 3; look++) {
      await clock.advance(wholeLookMs);
      assertEquals([seen.deaf, seen.open], [look, 0], how);
    }
    watch.stop();
  }
});

Deno.test("ListenerWatch leaves nothing behind when it is stopped, also in the middle of a look", async () => {
  const { clock, seen, watch } = setUp(() => "never");
  await clock.advance(LOOK_MS);
  watch.stop();
  await clock.advance(ANSWER_MS);
  assertEquals([seen.open, seen.deaf, clock.pendingCount], [0, 0, 0]);
});

Deno.test("ListenerWatch takes no process that stood still for a deaf listener", async () => {
  const { clock, seen, watch } = setUp(() => "never");
  await clock.advance(LOOK_MS);
  // A suspended machine wakes up: much time has passed, and nothing could happen in it.
  clock.jump(60_000);
  await clock.advance(0);
  seen.accepted++;
  await clock.advance(ANSWER_MS);
  assertEquals([seen.deaf, seen.open], [0, 0]);
  watch.stop();
});
