import { assertEquals } from "@std/assert";
import { LoginThrottle, MAX_CALLERS } from "../../lib/proxy/login_throttle.ts";

const START_MS = 1_800_000_000_000;

const waits: readonly { failures: number; want: number }[] = [
  { failures: 0, want: 0 },
  { failures: 2, want: 0 },
  { failures: 3, want: 1_000 },
  { failures: 4, want: 2_000 },
  { failures: 7, want: 16_000 },
  { failures: 8, want: 30_000 },
  { failures: 500, want: 30_000 },
];
for (const c of waits) {
  Deno.test(`LoginThrottle.waitMs() is ${c.want} after ${c.failures} wrong keys`, () => {
    const throttle = new LoginThrottle();
    for (let nth = 0; nth < c.failures; nth++) throttle.failed("192.0.2.1", START_MS);
    assertEquals(throttle.waitMs("192.0.2.1", START_MS), c.want);
    assertEquals(throttle.waitMs("192.0.2.2", START_MS), 0);
  });
}

Deno.test("LoginThrottle.waitMs() counts down, ends on the ms, and forgets after a quarter of an hour", () => {
  const throttle = new LoginThrottle();
  for (let nth = 0; nth < 4; nth++) throttle.failed("192.0.2.1", START_MS);
  assertEquals(throttle.waitMs("192.0.2.1", START_MS + 1_999), 1);
  assertEquals(throttle.waitMs("192.0.2.1", START_MS + 2_000), 0);
  throttle.failed("192.0.2.1", START_MS + 15 * 60_000);
  assertEquals(throttle.waitMs("192.0.2.1", START_MS + 15 * 60_000), 0);
});

Deno.test("LoginThrottle.succeeded() forgives", () => {
  const throttle = new LoginThrottle();
  for (let nth = 0; nth < 9; nth++) throttle.failed("192.0.2.1", START_MS);
  throttle.succeeded("192.0.2.1");
  assertEquals([throttle.waitMs("192.0.2.1", START_MS), throttle.callerCount], [0, 0]);
});

Deno.test("LoginThrottle takes one IPv6 network for one caller, and mapped IPv4 addresses for themselves", () => {
  const throttle = new LoginThrottle();
  for (let nth = 0; nth < 3; nth++) throttle.failed(`2001:db8:1:2::${nth + 1}`, START_MS);
  assertEquals(throttle.waitMs("2001:db8:1:2:ffff::9", START_MS), 1_000);
  assertEquals(throttle.waitMs("2001:db8:1:3::1", START_MS), 0);
  for (let nth = 0; nth < 3; nth++) throttle.failed("::ffff:192.0.2.7", START_MS);
  assertEquals(throttle.waitMs("::ffff:192.0.2.7", START_MS), 1_000);
  assertEquals(throttle.waitMs("::ffff:192.0.2.8", START_MS), 0);
});

Deno.test("LoginThrottle keeps a bounded table: whoever failed longest ago is dropped", () => {
  const throttle = new LoginThrottle();
  for (let nth = 0; nth < MAX_CALLERS + 10; nth++) {
    throttle.failed(`198.51.${nth >> 8}.${nth & 255}`, START_MS);
  }
  assertEquals(throttle.callerCount, MAX_CALLERS);
  throttle.failed("192.0.2.1", START_MS + 15 * 60_000);
  assertEquals(throttle.callerCount, 1);
});
