import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { createClock, type Timer, type TimeSources } from "../../lib/runtime/clock.ts";

const HOUR_MS = 3_600_000;
const START_MS = 1_800_000_000_000;

/** A machine whose two clocks and one timer are moved by hand. */
class Machine implements TimeSources {
  wallMs = START_MS;
  monotonicMs = 5_000;
  timers = new Map<number, { dueMs: number; callback: () => void }>();
  startedCount = 0;
  longestDelayMs = 0;

  wall = () => this.wallMs;
  monotonic = () => this.monotonicMs;
  startTimer = (callback: () => void, delayMs: number): Timer => {
    this.startedCount += 1;
    this.longestDelayMs = Math.max(this.longestDelayMs, delayMs);
    this.timers.set(this.startedCount, { dueMs: this.monotonicMs + delayMs, callback });
    return this.startedCount;
  };
  stopTimer = (timer: Timer) => void this.timers.delete(timer as number);

  /** Lets time pass; timers fire at their moment, `wallShiftMs` is added to the wall clock first. */
  pass(ms: number, wallShiftMs = 0): void {
    this.wallMs += wallShiftMs;
    const endMs = this.monotonicMs + ms;
    for (;;) {
      const [id, next] = [...this.timers].sort((a, b) => a[1].dueMs - b[1].dueMs)[0] ?? [0, null];
      if (next === null || next.dueMs > endMs) break;
      this.timers.delete(id);
      this.#move(Math.max(0, next.dueMs - this.monotonicMs));
      next.callback();
    }
    this.#move(endMs - this.monotonicMs);
  }

  #move(ms: number): void {
    this.monotonicMs += ms;
    this.wallMs += ms;
  }
}

Deno.test("schedule() calls back at the first tick at or after the time, once", () => {
  const machine = new Machine();
  const clock = createClock(machine);
  const fired: number[] = [];
  for (const delay of [0, 1, 19, 20, 21, 250, 999, 1_000, 1_001, 65_000]) {
    clock.schedule(START_MS + delay, () => fired.push(clock.now() - START_MS));
  }
  machine.pass(70_000);
  assertEquals(fired, [0, 20, 20, 20, 40, 260, 1_000, 1_000, 1_020, 65_000]);
  assertEquals(machine.timers.size, 0);
});

Deno.test("schedule() is never early and at most one tick late, whatever is cancelled meanwhile", () => {
  fc.assert(fc.property(
    fc.array(fc.record({ delay: fc.integer({ min: -50, max: 5_000 }), cancel: fc.boolean() }), {
      maxLength: 40,
    }),
    (plan) => {
      const machine = new Machine();
      const clock = createClock(machine);
      const late: number[] = [];
      let fired = 0;
      for (const { delay, cancel } of plan) {
        const atMs = START_MS + delay;
        const scheduled = clock.schedule(atMs, () => {
          fired += 1;
          late.push(clock.now() - Math.max(atMs, START_MS));
          assert(!cancel);
        });
        if (cancel) {
          scheduled.cancel();
          scheduled.cancel();
        }
      }
      machine.pass(6_000);
      assertEquals(fired, plan.filter((one) => !one.cancel).length);
      for (const ms of late) assert(ms >= 0 && ms <= 20, `${ms} ms late`);
      assertEquals(machine.timers.size, 0);
    },
  ));
});

Deno.test("schedule() never arms a timer longer than a second, so no delay overflows", () => {
  const machine = new Machine();
  const clock = createClock(machine);
  let fired = false;
  const far = clock.schedule(START_MS + 2 ** 31 * 4, () => fired = true);
  machine.pass(60_000);
  assert(!fired);
  assert(machine.longestDelayMs <= 1_000);
  far.cancel();
  assertEquals(machine.timers.size, 0);
});

Deno.test("schedule() uses one timer for a thousand deadlines", () => {
  const machine = new Machine();
  const clock = createClock(machine);
  const all = Array.from({ length: 1_000 }, (_, i) => clock.schedule(START_MS + 600_000 + i, () => {}));
  assertEquals(machine.timers.size, 1);
  assertEquals(machine.startedCount, 1);
  for (const one of all) one.cancel();
  assertEquals(machine.timers.size, 0);
});

Deno.test("schedule() runs what a callback schedules in a later turn, not in the same stretch", () => {
  const machine = new Machine();
  const clock = createClock(machine);
  const order: string[] = [];
  clock.schedule(START_MS, () => {
    clock.schedule(START_MS - 1, () => order.push("inner"));
    order.push("outer");
  });
  clock.schedule(START_MS, () => order.push("second"));
  machine.pass(20);
  assertEquals(order, ["outer", "second", "inner"]);
});

Deno.test("schedule() lets a callback cancel another one that is due in the same tick", () => {
  const machine = new Machine();
  const clock = createClock(machine);
  const order: string[] = [];
  clock.schedule(START_MS, () => {
    order.push("first");
    second.cancel();
  });
  const second = clock.schedule(START_MS, () => order.push("second"));
  machine.pass(1_000);
  assertEquals(order, ["first"]);
  assertEquals(machine.timers.size, 0);
});

Deno.test("schedule() refuses a time that is not a number", () => {
  assertThrows(() => createClock(new Machine()).schedule(NaN, () => {}), RangeError);
});

Deno.test("now() never goes back when the wall clock does, and meets it again", () => {
  const machine = new Machine();
  const clock = createClock(machine);
  machine.pass(10_000);
  const beforeMs = clock.now();
  machine.pass(0, -HOUR_MS);
  assertEquals(clock.now(), beforeMs);
  machine.pass(1_000);
  assertEquals(clock.now(), beforeMs + 950);
  for (let hour = 0; hour < 20; hour++) {
    machine.pass(HOUR_MS);
    clock.now();
  }
  assertEquals(clock.now(), machine.wallMs);
});

Deno.test("a wall clock moved back an hour neither freezes a timer nor fires a burst", () => {
  const machine = new Machine();
  const clock = createClock(machine);
  const firedAt: number[] = [];
  const originMs = machine.monotonicMs;
  const tick = () => {
    firedAt.push(machine.monotonicMs - originMs);
    clock.schedule(clock.now() + 10_000, tick);
  };
  clock.schedule(clock.now() + 10_000, tick);
  machine.pass(15_000);
  machine.pass(60_000, -HOUR_MS);
  const gaps = firedAt.map((at, i) => at - (firedAt[i - 1] ?? 0));
  assert(firedAt.length >= 6 && firedAt.length <= 7, String(firedAt));
  for (const gap of gaps) assert(gap >= 9_980 && gap <= 10_600, `gap ${gap}`);
});

Deno.test("a wall clock that jumps ahead (the machine slept) fires what became due within a second", () => {
  const machine = new Machine();
  const clock = createClock(machine);
  const fired: string[] = [];
  clock.schedule(START_MS + 2 * HOUR_MS, () => fired.push("b"));
  clock.schedule(START_MS + HOUR_MS, () => fired.push("a"));
  clock.schedule(START_MS + 9 * HOUR_MS, () => fired.push("c"));
  machine.pass(10);
  machine.pass(1_000, 3 * HOUR_MS);
  assertEquals(fired, ["a", "b"]);
});

Deno.test("sleepUntil() resolves true at its time and leaves no timer and no listener", async () => {
  const machine = new Machine();
  const clock = createClock(machine);
  const signal = countingSignal();
  const sleep = clock.sleepUntil(START_MS + 500, signal.signal);
  assertEquals(signal.listeners(), 1);
  machine.pass(500);
  assertEquals(await sleep, true);
  assertEquals(signal.listeners(), 0);
  assertEquals(machine.timers.size, 0);
});

Deno.test("sleepUntil() resolves false as soon as the signal aborts, also before it began", async () => {
  const machine = new Machine();
  const clock = createClock(machine);
  const controller = new AbortController();
  const sleep = clock.sleepUntil(START_MS + 500, controller.signal);
  controller.abort();
  assertEquals(await sleep, false);
  assertEquals(machine.timers.size, 0);
  assertEquals(await clock.sleepUntil(START_MS + 500, controller.signal), false);
  assertEquals(machine.startedCount, 1);
});

Deno.test("sleepUntil() resolves true at once for a time that is over", async () => {
  const machine = new Machine();
  assertEquals(await createClock(machine).sleepUntil(START_MS, null), true);
  assertEquals(machine.startedCount, 0);
});

Deno.test("sleepUntil() lets 2,000 waiters leave at once without a stall", async () => {
  const clock = createClock();
  const controllers = Array.from({ length: 2_000 }, () => new AbortController());
  const sleeps = controllers.map((one) => clock.sleepUntil(clock.now() + 20_000, one.signal));
  const startedAt = performance.now();
  for (const one of controllers) one.abort();
  const tookMs = performance.now() - startedAt;
  assertEquals((await Promise.all(sleeps)).some((woke) => woke), false);
  assert(tookMs < 250, `${tookMs} ms`);
});

Deno.test("the real clock keeps real time", async () => {
  const clock = createClock();
  const startedAt = performance.now();
  const startMs = clock.now();
  assert(Math.abs(startMs - Date.now()) < 1_000);
  assertEquals(await clock.sleepUntil(startMs + 30, new AbortController().signal), true);
  assert(clock.now() >= startMs + 30);
  assert(performance.now() - startedAt >= 29);
});

function countingSignal() {
  const { signal } = new AbortController();
  let count = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => (count += 1, add(...args));
  signal.removeEventListener = (...args: Parameters<typeof remove>) => (count -= 1, remove(...args));
  return { signal, listeners: () => count };
}
