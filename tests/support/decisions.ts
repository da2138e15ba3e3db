/** Decision records for tests of whatever shows them. */
import type { AttemptRecord, DecisionRecord } from "../../lib/core/decision.ts";
import { FAKE_START_MS } from "./fake_clock.ts";

/** A request served at the first attempt, in a second. */
export function decision(given: Partial<DecisionRecord> = {}): DecisionRecord {
  return {
    requestId: "req_000000000000000000000001",
    atMs: FAKE_START_MS,
    route: "responses",
    model: "m1",
    tenant: "key:0123456789ab",
    status: 200,
    code: null,
    rule: null,
    rounds: 1,
    endedAtMs: FAKE_START_MS + 1_000,
    waits: [],
    candidates: [],
    attempts: [attempt()],
    notes: [],
    movedTo: null,
    ...given,
  };
}

export function attempt(given: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    id: "req_000000000000000000000001:1",
    account: "codex:A",
    provider: "codex",
    model: "m1",
    round: 0,
    cause: "first",
    probe: "none",
    startedAtMs: FAKE_START_MS,
    endedAtMs: FAKE_START_MS + 1_000,
    outcome: "success",
    status: 200,
    row: 1,
    ...given,
  };
}
