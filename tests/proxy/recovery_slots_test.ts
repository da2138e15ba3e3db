import { assertEquals } from "@std/assert";
import type { RecoveryConfig } from "../../lib/config_types.ts";
import type { ClientProtocol } from "../../lib/core/domain.ts";
import type { RequestSpec } from "../../lib/core/retry_plan.ts";
import { enterRecovery } from "../../lib/proxy/recovery.ts";
import { RecoverySlots } from "../../lib/proxy/recovery_slots.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { Driver } from "../support/pool_driver.ts";

const CONFIG: RecoveryConfig = {
  attempts: 2,
  maxBufferBytes: 8_388_608,
  maxRetryWindowMs: 20_000,
  maxConcurrent: 2,
  initialBackoffMs: 250,
  maxBackoffMs: 2_000,
};

Deno.test("tryAcquire() gives exactly as many slots as there are, and never waits", () => {
  const slots = new RecoverySlots(new FakeClock());
  const taken = [slots.tryAcquire(2), slots.tryAcquire(2), slots.tryAcquire(2)];
  assertEquals(taken.map((slot) => slot !== null), [true, true, false]);
  taken[0]!.release();
  assertEquals([slots.held, slots.tryAcquire(2) !== null, slots.held], [1, true, 2]);
});

Deno.test("tryAcquire() keeps to a lowered limit while more slots are still out", () => {
  const slots = new RecoverySlots(new FakeClock());
  const taken = [slots.tryAcquire(3), slots.tryAcquire(3), slots.tryAcquire(3)];
  assertEquals(slots.tryAcquire(1), null);
  for (const slot of taken) slot!.release();
  assertEquals(slots.tryAcquire(1) !== null, true);
});

Deno.test("release() counts once, however often it is called", () => {
  const slots = new RecoverySlots(new FakeClock());
  const first = slots.tryAcquire(2)!;
  slots.tryAcquire(2);
  for (let again = 0; again < 3; again++) first.release();
  assertEquals([slots.held, first.live], [1, false]);
});

Deno.test("figures tell bytes held now, the most at once, all that ever were, and the time slots were taken", () => {
  const clock = new FakeClock();
  const slots = new RecoverySlots(clock);
  const [a, b] = [slots.tryAcquire(2)!, slots.tryAcquire(2)!];
  a.hold(100);
  b.hold(50);
  a.hold(120);
  assertEquals([slots.figures.heldBytes, slots.figures.heldBytesPeak], [170, 170]);
  // The losing attempt is dropped, the next one begins.
  a.hold(0);
  a.hold(30);
  clock.jump(1_500);
  a.release();
  a.hold(999);
  clock.jump(500);
  b.release();
  const { held, heldBytes, heldBytesPeak, withheldBytes, heldMs } = slots.figures;
  assertEquals([held, heldBytes, heldBytesPeak, withheldBytes, heldMs], [0, 0, 170, 200, 3_500]);
});

Deno.test("count() reads what became of a request from its record", () => {
  const slots = new RecoverySlots(new FakeClock());
  slots.count({ notes: ["bound_moved", "recovered"] });
  slots.count({ notes: ["recovery_exhausted"] });
  slots.count({ notes: ["recovery_blocked"] });
  slots.count({ notes: ["failed_open:no_slot"] });
  slots.count({ notes: ["failed_open:overflow", "recovered"] });
  slots.count({ notes: ["failed_open:unknown_payload"] });
  const { recovered, exhausted, blocked, failedOpen } = slots.figures;
  assertEquals([recovered, exhausted, blocked], [2, 1, 1]);
  assertEquals(failedOpen, { no_slot: 1, overflow: 1, unknown_payload: 1 });
});

const entries: readonly {
  name: string;
  config?: Partial<RecoveryConfig>;
  spec?: Partial<RequestSpec>;
  protocol?: ClientProtocol;
  want: readonly [slot: boolean, attempts: number, notes: readonly string[] | undefined];
}[] = [
  { name: "a replayable request gets a slot and its attempts", want: [true, 2, undefined] },
  { name: "messages", protocol: "messages", want: [true, 2, undefined] },
  { name: "chat", protocol: "chat", want: [true, 2, undefined] },
  { name: "off", config: { attempts: 0 }, want: [false, 0, undefined] },
  { name: "a once-only request never", spec: { replay: "once" }, want: [false, 0, undefined] },
  { name: "a raw route never", protocol: "raw", want: [false, 0, undefined] },
  {
    name: "no slot free: as off, and its record says so",
    config: { maxConcurrent: 0 },
    want: [false, 0, ["failed_open:no_slot"]],
  },
];
for (const c of entries) {
  Deno.test(`enterRecovery(): ${c.name}`, () => {
    const spec = new Driver(["a"]).spec(c.spec);
    const slots = new RecoverySlots(new FakeClock());
    const entered = enterRecovery(slots, { ...CONFIG, ...c.config }, spec, c.protocol ?? "responses");
    assertEquals(
      [entered.slot !== null, entered.spec.recoveryAttempts, entered.spec.notes] as const,
      c.want,
    );
    assertEquals(slots.held, entered.slot === null ? 0 : 1);
    // Nothing at all changes for a request that recovery has no part in.
    if (c.want[1] === 0 && c.want[2] === undefined) assertEquals(entered.spec === spec, true);
  });
}
