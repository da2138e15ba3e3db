/** The network's pause in the log: one line when it opens, one when it ends, none for what happens in between. */
import { assertEquals, assertThrows } from "@std/assert";
import type { Target } from "../../lib/core/domain.ts";
import { isoTime } from "../../lib/proxy/decision_view.ts";
import { logPauses } from "../../lib/proxy/pause_log.ts";
import { StoreFailure } from "../../lib/ports.ts";
import { memoryLog } from "../support/memory_log.ts";
import { MemoryPoolStore } from "../support/memory_store.ts";
import * as outcomes from "../support/outcomes.ts";
import { account, Driver, inOrder, MINUTE_MS } from "../support/pool_driver.ts";

const P: Target = { provider: "p", model: "m" };
const Q: Target = { provider: "q", model: "m" };

function logged() {
  const log = memoryLog();
  const store = new MemoryPoolStore();
  const driver = new Driver([account("p1", { provider: "p" }), account("q1", { provider: "q" })], {
    policy: { requestRetry: 0, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 },
    store: logPauses(store, log),
  });
  return { driver, log, store };
}

function pause(driver: Driver): void {
  for (const target of [P, Q]) driver.run(inOrder(outcomes.noResponse()), { targets: [target] });
}

Deno.test("logPauses() tells when a pause opens and when it ends, and nothing in between", () => {
  const { driver, log } = logged();
  driver.run(inOrder(outcomes.noResponse()), { targets: [P] });
  driver.run(inOrder(outcomes.noResponse()), { targets: [P] });
  assertEquals(log.records, [], "one provider alone is no pause");
  driver.advance(MINUTE_MS + 1);
  pause(driver);
  const openedMs = driver.nowMs;
  assertEquals(log.records, [{
    level: "warn",
    event: "network_pause_opened",
    fields: { providers: ["p", "q"], until: isoTime(openedMs + MINUTE_MS) },
  }]);
  for (let turn = 0; turn < 5; turn++) driver.run(inOrder(), { targets: [P] });
  driver.advance(MINUTE_MS);
  driver.run(inOrder(outcomes.noResponse()), { targets: [P] });
  assertEquals(log.events(), ["network_pause_opened"], "a probe in vain prolongs the pause it tested");
  driver.advance(MINUTE_MS);
  driver.run(inOrder(outcomes.success()), { targets: [Q] });
  driver.run(inOrder(outcomes.success()), { targets: [Q] });
  assertEquals(log.records.slice(1), [{
    level: "info",
    event: "network_pause_ended",
    fields: { opened_at: isoTime(openedMs), lasted_ms: 2 * MINUTE_MS },
  }]);
});

Deno.test("logPauses() tells the end of a pause that an earlier process opened", () => {
  const { driver, log, store } = logged();
  pause(driver);
  const openedMs = driver.nowMs;
  driver.restart();
  assertEquals(log.events(), ["network_pause_opened"], "opened once, however often it is read");
  driver.advance(MINUTE_MS);
  driver.run(inOrder(outcomes.success()), { targets: [P] });
  assertEquals(log.records[1]?.fields, { opened_at: isoTime(openedMs), lasted_ms: MINUTE_MS });
  assertEquals(store.load().network?.pause, null);
});

Deno.test("logPauses() tells nothing that could not be written down", () => {
  const { log, store } = logged();
  const opened = { openedAtMs: 1, untilMs: 2, evidence: [], generation: 1 };
  const network = { evidence: [], lastSuccessAtMs: 0, generation: 1, pause: opened };
  store.failWriteIn = 1;
  assertThrows(() => logPauses(store, log).apply([{ kind: "put_network", network }], 1), StoreFailure);
  assertEquals(log.records, []);
});
