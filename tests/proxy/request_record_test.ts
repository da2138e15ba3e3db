/** What the log says of a finished request: its end first, then each attempt with its own time. */
import { assertEquals } from "@std/assert";
import { DecisionLog } from "../../lib/proxy/decision_log.ts";
import { recordDone } from "../../lib/proxy/request_record.ts";
import { attempt, decision } from "../support/decisions.ts";
import { FAKE_START_MS as T, FakeClock } from "../support/fake_clock.ts";
import { memoryLog } from "../support/memory_log.ts";

Deno.test("recordDone() gives every attempt its own start and duration, in order, after the request", () => {
  const log = memoryLog();
  const deps = { decisions: new DecisionLog(), clock: new FakeClock(T + 9_000), log };
  const record = decision({
    endedAtMs: T + 9_000,
    attempts: [
      attempt({ outcome: "limited:rate", startedAtMs: T, endedAtMs: T + 200 }),
      attempt({ account: "codex:B", cause: "failover", startedAtMs: T + 2_000, endedAtMs: T + 9_000 }),
    ],
  });
  recordDone(deps, { id: "req_1", receivedAtMs: T }, record, null, null);
  assertEquals(
    log.records.map(({ event, fields }) => [event, fields["started_at"], fields["duration_ms"]]),
    [
      ["request_done", undefined, 9_000],
      ["attempt", "2027-01-15T08:00:00.000Z", 200],
      ["attempt", "2027-01-15T08:00:02.000Z", 7_000],
    ],
  );
});

Deno.test("recordDone() has no duration for an attempt that was not ended", () => {
  const log = memoryLog();
  const deps = { decisions: new DecisionLog(), clock: new FakeClock(T), log };
  const record = decision({ attempts: [attempt({ outcome: null, endedAtMs: null })] });
  recordDone(deps, { id: "req_1", receivedAtMs: T }, record, null, null);
  assertEquals(log.records[1]?.fields["duration_ms"], null);
});
