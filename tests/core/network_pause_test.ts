/** When the outage is ours (state-machine-facts 2C.4, P16, P17, G2, G4). */
import { assertEquals, assertStrictEquals } from "@std/assert";
import {
  endPause,
  EVIDENCE_LIMIT,
  HEALTHY_NETWORK,
  leaseNetworkProbe,
  noteNoResponse,
  noteSuccess,
  provesHead,
  readNetworkGate,
  settleNetworkProbe,
} from "../../lib/core/network_pause.ts";
import type { Outcome } from "../../lib/core/outcome.ts";
import type { NetworkHealth } from "../../lib/core/records.ts";
import * as outcomes from "../support/outcomes.ts";

const NOW = 1_700_000_000_000;

interface Told {
  readonly at: number;
  readonly fail?: string;
  readonly success?: true;
}

/** Tells a story in seconds after NOW. */
function tell(...story: readonly Told[]): NetworkHealth {
  return story.reduce((network, { at, fail, success }, step) => {
    const nowMs = NOW + at * 1_000;
    if (success) return noteSuccess(network, nowMs);
    return noteNoResponse(network, fail!, `req_${step}:1`, nowMs);
  }, HEALTHY_NETWORK);
}

const stories: readonly { name: string; story: readonly Told[]; paused: boolean }[] = [
  {
    name: "one provider, however often",
    story: [0, 1, 2, 3].map((at) => ({ at, fail: "p" })),
    paused: false,
  },
  { name: "two providers, 60 s apart", story: [{ at: 0, fail: "p" }, { at: 60, fail: "q" }], paused: true },
  { name: "two providers, 61 s apart", story: [{ at: 0, fail: "p" }, { at: 61, fail: "q" }], paused: false },
  {
    name: "a success 60 s old vetoes",
    story: [{ at: 0, success: true }, { at: 59, fail: "p" }, { at: 60, fail: "q" }],
    paused: false,
  },
  {
    name: "a success 61 s old does not",
    story: [{ at: 0, success: true }, { at: 60, fail: "p" }, { at: 61, fail: "q" }],
    paused: true,
  },
  {
    name: "a success drops what was seen before it",
    story: [{ at: 0, fail: "p" }, { at: 30, success: true }, { at: 91, fail: "q" }],
    paused: false,
  },
  {
    name: "the veto of the facts: P 0, success 30, Q 40, P 91",
    story: [{ at: 0, fail: "p" }, { at: 30, success: true }, { at: 40, fail: "q" }, { at: 91, fail: "p" }],
    paused: true,
  },
];
for (const { name, story, paused } of stories) {
  Deno.test(`noteNoResponse() ${paused ? "pauses" : "does not pause"}: ${name}`, () => {
    const network = tell(...story);
    assertEquals(network.pause !== null, paused);
    if (paused) {
      assertEquals(network.pause!.untilMs - NOW, story.at(-1)!.at * 1_000 + 60_000);
      assertEquals([network.evidence, network.pause!.evidence.length], [[], 2]);
    }
  });
}

function paused(): NetworkHealth {
  return tell({ at: 0, fail: "p" }, { at: 1, fail: "q" });
}

Deno.test("noteNoResponse() changes nothing while a pause exists (G4)", () => {
  const network = paused();
  assertStrictEquals(noteNoResponse(network, "r", "req_9:1", NOW + 30_000), network);
});

Deno.test("noteNoResponse() keeps one row an attempt, and a bounded list", () => {
  let network = noteNoResponse(HEALTHY_NETWORK, "p", "req_1:1", NOW);
  network = noteNoResponse(network, "p", "req_1:1", NOW + 1);
  assertEquals(network.evidence.map((row) => row.observedAtMs), [NOW + 1]);
  for (let at = 0; at < EVIDENCE_LIMIT + 10; at++) {
    network = noteNoResponse(network, "p", `req_2:${at}`, NOW + 2);
  }
  assertEquals(network.evidence.length, EVIDENCE_LIMIT);
});

Deno.test("readNetworkGate() closes for a minute, then lets exactly one through", () => {
  const network = paused();
  const untilMs = network.pause!.untilMs;
  assertEquals(readNetworkGate(HEALTHY_NETWORK, NOW), { state: "open" });
  assertEquals(readNetworkGate(network, untilMs - 1), { state: "closed", untilMs });
  assertEquals(readNetworkGate(network, untilMs), { state: "half_open" });
  const probed = leaseNetworkProbe(network, "req_5:1", untilMs + 123_000, untilMs);
  assertEquals(readNetworkGate(probed, untilMs), { state: "leased", untilMs: untilMs + 123_000 });
});

const settles: readonly { result: string; outcome: Outcome; want: "over" | "again" | "idle" }[] = [
  { result: "success", outcome: outcomes.success(), want: "over" },
  { result: "5xx", outcome: outcomes.unavailable(), want: "over" },
  { result: "provider reported", outcome: outcomes.transient("provider_reported"), want: "over" },
  { result: "edge block", outcome: outcomes.edgeBlock(), want: "over" },
  { result: "429", outcome: outcomes.limitedUntil(NOW), want: "over" },
  { result: "401", outcome: outcomes.unauthorized(), want: "over" },
  { result: "402", outcome: outcomes.noCredits(), want: "over" },
  { result: "400", outcome: outcomes.requestFault(), want: "over" },
  { result: "incomplete", outcome: outcomes.incomplete(), want: "over" },
  { result: "reset in body", outcome: outcomes.transient("body_reset"), want: "over" },
  { result: "no response", outcome: outcomes.noResponse(), want: "again" },
  { result: "client cancel", outcome: outcomes.cancelled(), want: "idle" },
  { result: "first-byte timeout", outcome: outcomes.transient("first_byte_timeout"), want: "idle" },
  { result: "a limit of this machine", outcome: outcomes.localLimit(), want: "idle" },
  { result: "a request that was never sent", outcome: outcomes.uncarried(), want: "idle" },
  { result: "refresh failed before the send", outcome: outcomes.refreshFailed(), want: "idle" },
  { result: "refresh dead before the send", outcome: outcomes.refreshDead(), want: "idle" },
];
for (const c of settles) {
  Deno.test(`settleNetworkProbe() leaves the pause ${c.want} after ${c.result} (3.4, G2)`, () => {
    const before = paused();
    const nowMs = before.pause!.untilMs + 500;
    const probed = leaseNetworkProbe(before, "req_5:1", nowMs + 1, nowMs);
    const after = settleNetworkProbe(probed, "req_5:1", c.outcome, nowMs);
    assertEquals(after.probe, null);
    if (c.want === "over") assertEquals(after.pause, null);
    if (c.want === "idle") assertEquals(after.pause, before.pause);
    if (c.want === "again") {
      assertEquals([after.pause!.untilMs, after.pause!.evidence], [nowMs + 60_000, before.pause!.evidence]);
    }
    assertEquals(provesHead(c.outcome), c.want === "over");
  });
}

Deno.test("settleNetworkProbe() and endPause() ignore every attempt but the owner (P20)", () => {
  const network = leaseNetworkProbe(paused(), "req_5:1", NOW + 99_000, NOW + 62_000);
  assertStrictEquals(settleNetworkProbe(network, "req_6:1", outcomes.success(), NOW + 63_000), network);
  assertStrictEquals(endPause(network, "req_6:1"), network);
  assertEquals(endPause(network, "req_5:1").pause, null);
});

Deno.test("noteSuccess() remembers the newest and leaves a pause to its probe", () => {
  const network = noteSuccess(noteSuccess(paused(), NOW + 9), NOW + 5);
  assertEquals([network.lastSuccessAtMs, network.pause !== null], [NOW + 9, true]);
});
