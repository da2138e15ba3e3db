import { assertEquals } from "@std/assert";
import { PROBE_LIMIT_MS } from "../../lib/upstream/connect_probe.ts";
import { HeadWatch } from "../../lib/upstream/head_watch.ts";
import { AttemptEnded } from "../../lib/upstream/transport_error.ts";
import { eventually } from "../support/eventually.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { blackHole, deadPort } from "../support/rude_sockets.ts";
import { requestTo } from "../support/upstream_request.ts";

function watchOf(clock: FakeClock, port: number) {
  const controller = new AbortController();
  const way = { proxy: null, endpoint: { hostname: "127.0.0.1", port } };
  return { controller, watch: new HeadWatch(clock, requestTo("http://upstream.invalid/"), way, controller) };
}

function causeOf(controller: AbortController): string | null {
  if (!controller.signal.aborted) return null;
  const reason: unknown = controller.signal.reason;
  if (!(reason instanceof AttemptEnded) || reason.evidence.kind !== "transport") return String(reason);
  return reason.evidence.cause;
}

Deno.test("HeadWatch drops its probe when the head comes, and ends nothing", async () => {
  const clock = new FakeClock();
  using hole = await blackHole();
  const { controller, watch } = watchOf(clock, hole.port);
  await clock.advance(15_000);
  assertEquals(clock.pendingCount, 2);
  watch.stop();
  await eventually(() => clock.pendingCount === 0);
  await clock.advance(1_000_000);
  assertEquals(causeOf(controller), null);
});

Deno.test("HeadWatch gives a slow handshake the whole of the probe's limit", async () => {
  const clock = new FakeClock();
  using hole = await blackHole();
  const { controller } = watchOf(clock, hole.port);
  await clock.advance(15_000 + PROBE_LIMIT_MS - 1);
  assertEquals(causeOf(controller), null);
  await clock.advance(1);
  await eventually(() => controller.signal.aborted);
  assertEquals(causeOf(controller), "connect_timeout");
  assertEquals(clock.pendingCount, 0);
});

Deno.test("HeadWatch takes a refused probe for no connection", async () => {
  const clock = new FakeClock();
  const { controller } = watchOf(clock, deadPort());
  await clock.advance(15_000);
  await eventually(() => controller.signal.aborted);
  assertEquals(causeOf(controller), "connect_timeout");
});
