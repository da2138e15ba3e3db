import { assertEquals } from "@std/assert";
import type { BlockKind, DecisionRecord } from "../../lib/core/decision.ts";
import { tellBlock, tellCircuit, tellCooldown } from "../../lib/proxy/block_words.ts";
import { judgeDecision, tellDecision, tellDuration } from "../../lib/proxy/decision_words.ts";
import { attempt, decision } from "../support/decisions.ts";
import { FAKE_START_MS as T } from "../support/fake_clock.ts";

const label = (account: string) => account.replace("codex:", "");

const endings: readonly {
  name: string;
  record: Partial<DecisionRecord>;
  result: string;
  title: string;
  because: string | null;
}[] = [
  { name: "served at once", record: {}, result: "served", title: "Served by A", because: null },
  {
    name: "served by the second",
    record: { attempts: [attempt({ outcome: "limited:rate" }), attempt({ account: "codex:B" })] },
    result: "served",
    title: "Served by B at the second attempt",
    because: null,
  },
  {
    name: "served by the fourth",
    record: { attempts: [attempt(), attempt(), attempt(), attempt({ account: "codex:D" })] },
    result: "served",
    title: "Served by D after 3 other attempts",
    because: null,
  },
  {
    name: "out of quota without a dispatch",
    record: { status: 429, code: "rate_limited", rule: "all_quota", attempts: [] },
    result: "failed",
    title: "The client was told 429 rate_limited",
    because: "Every account is at a limit; the client was told when the first one is back. Nothing was sent",
  },
  {
    name: "the request at fault",
    record: {
      status: 400,
      code: "context_length_exceeded",
      attempts: [attempt({ outcome: "request_fault:context_length_exceeded", status: 400 })],
    },
    result: "refused",
    title: "The upstream's own answer was passed on: 400 context_length_exceeded",
    because: "Every account would answer the same, so nobody else was asked and nobody blamed",
  },
  {
    name: "broken off after the first byte",
    record: {
      status: 200,
      code: "body_reset",
      attempts: [attempt({ outcome: "transient:body_reset", status: null })],
    },
    result: "failed",
    title: "The answer broke off: body_reset",
    because: "The client already had the first byte, so nothing was sent again",
  },
  {
    name: "left by the client",
    record: { status: 0, code: "client_gone", attempts: [attempt({ outcome: "cancelled", status: null })] },
    result: "left",
    title: "The client left before it was answered",
    because: null,
  },
  {
    name: "left by the client in the middle of its answer",
    record: {
      status: 0,
      code: "client_cancelled",
      attempts: [attempt({ outcome: "cancelled:client_cancelled", status: null })],
    },
    result: "left",
    title: "The client left in the middle of its answer",
    because: null,
  },
];
for (const c of endings) {
  Deno.test(`tellDecision() names the end of a request ${c.name}`, () => {
    const record = decision(c.record);
    const story = tellDecision(record, label);
    assertEquals([judgeDecision(record), story.title, story.because], [c.result, c.title, c.because]);
  });
}

Deno.test("tellDecision() tells attempts, waits and notes in the order of time", () => {
  const record = decision({
    endedAtMs: T + 5_000,
    attempts: [
      attempt({
        outcome: "limited:usage_limit_reached",
        status: 429,
        endedAtMs: T + 200,
      }),
      attempt({
        account: "codex:B",
        cause: "failover",
        startedAtMs: T + 200,
        endedAtMs: T + 900,
        outcome: "no_response:refused",
        status: null,
      }),
      attempt({
        account: "codex:B",
        cause: "round",
        probe: "provider",
        startedAtMs: T + 3_000,
        endedAtMs: T + 5_000,
      }),
    ],
    waits: [{ fromMs: T + 900, untilMs: T + 3_000, reason: "cooldown" }],
    notes: ["bound_moved", "something_new"],
    movedTo: "codex:B",
  });
  assertEquals(tellDecision(record, label).lines, [
    { atMs: T, text: "Sent to A; it is at a limit (429 usage_limit_reached) after 200 ms", tone: "bad" },
    { atMs: T + 200, text: "Moved on to B; it could not be reached (refused) after 700 ms", tone: "bad" },
    { atMs: T + 900, text: "Waited 2.1 s until the first account was free again", tone: "wait" },
    {
      atMs: T + 3_000,
      text: "A new round began with B as the one request that tests the provider; it answered after 2.0 s",
      tone: "good",
    },
    { atMs: T + 5_000, text: "The conversation now belongs to the account that answered", tone: "plain" },
    { atMs: T + 5_000, text: "Something new", tone: "plain" },
  ]);
});

const moves: readonly { name: string; record: Partial<DecisionRecord>; want: string }[] = [
  {
    name: "that answered",
    record: { attempts: [attempt({ outcome: "limited:rate" }), attempt({ account: "codex:B" })] },
    want: "The conversation now belongs to the account that answered",
  },
  {
    name: "where nobody answered",
    record: {
      status: 502,
      code: "upstream_unavailable",
      rule: "transient",
      attempts: [attempt({ outcome: "limited:rate" }), attempt({ account: "codex:B", outcome: "transient" })],
    },
    want: "The conversation now belongs to B",
  },
  {
    name: "where a fallback answered instead",
    record: {
      attempts: [
        attempt({ outcome: "limited:rate" }),
        attempt({ account: "codex:B", outcome: "transient" }),
        attempt({ account: "lab:k" }),
      ],
    },
    want: "The conversation now belongs to B",
  },
];
for (const c of moves) {
  Deno.test(`tellDecision() says once which account a conversation moved to, ${c.name}`, () => {
    const record = decision({ ...c.record, notes: ["bound_moved"], movedTo: "codex:B" });
    const told = tellDecision(record, label).lines.map(({ text }) => text);
    assertEquals(told.filter((text) => text.startsWith("The conversation")), [c.want]);
  });
}

Deno.test("tellDecision() tells recovery that is spent from recovery whose way was closed", () => {
  const tell = (note: string) => tellDecision(decision({ notes: [note] }), label).lines.at(-1)!.text;
  assertEquals(
    tell("recovery_exhausted"),
    "It was not started over again: the attempts or the time for that were spent",
  );
  assertEquals(
    tell("recovery_blocked"),
    "It was not started over: the account could not be asked by then",
  );
});

Deno.test("tellDecision() says of an attempt under way that it is", () => {
  const record = decision({
    status: null,
    endedAtMs: null,
    attempts: [attempt({ outcome: null, endedAtMs: null, status: null })],
  });
  assertEquals(tellDecision(record, label).lines[0]!.text, "Sent to A; under way");
});

const spans: readonly [number, string][] = [
  [-3, "0 ms"],
  [0, "0 ms"],
  [999, "999 ms"],
  [1_000, "1.0 s"],
  [59_949, "59.9 s"],
  [59_950, "1 min 0 s"],
  [200_000, "3 min 20 s"],
];
for (const [ms, want] of spans) {
  Deno.test(`tellDuration() writes ${ms} ms as ${want}`, () => assertEquals(tellDuration(ms), want));
}

const KINDS: Record<BlockKind, readonly string[]> = {
  model_excluded: ["model_unsupported"],
  disabled: ["operator"],
  credential: ["unauthorized", "invalid_grant", "credential_invalid"],
  credits: ["credits"],
  deadline: ["retry_after"],
  model_deadline: ["body"],
  park: ["usage_page", "response_headers", "stream_event", "websocket_frame", "snapshot"],
  inferred: ["rate_limit", "quota_limit"],
  ladder: ["transient", "no_response", "refresh", "workspace", "egress_proxy"],
  provider_circuit: ["auth"],
  provider_cooldown: ["rate_limited", "overloaded", "usage_window_exhausted", "network", "edge_block"],
  provider_probe: [""],
  network_pause: ["no_response"],
  network_probe: [""],
  not_listed: [""],
};

Deno.test("tellBlock() has its own sentence for every kind and source, also for sources it never heard of", () => {
  const sentences = Object.entries(KINDS).flatMap(([kind, sources]) =>
    sources.map((source) => tellBlock(kind as BlockKind, source))
  );
  assertEquals(new Set(sentences).size, sentences.length);
  for (const kind of Object.keys(KINDS)) {
    assertEquals(/^[A-Z].{10,}[^.]$/.test(tellBlock(kind as BlockKind, "unheard_of")), true, kind);
  }
});

Deno.test("tellCircuit() and tellCooldown() say why, also for a reason they never heard of", () => {
  assertEquals(tellCircuit("auth") === tellCircuit("credits"), false);
  assertEquals(tellCooldown("network"), "the provider could not be reached");
  assertEquals(tellCooldown("unheard_of"), "it failed several times");
});
