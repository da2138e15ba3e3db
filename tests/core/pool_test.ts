import { assertEquals, assertStrictEquals } from "@std/assert";
import { HEALTHY } from "../../lib/core/account_health.ts";
import {
  findSlot,
  isSelectable,
  newAccountSlot,
  newProviderSlot,
  readCircuit,
  readQuotaClosure,
} from "../../lib/core/pool.ts";
import type { AccountHealth } from "../../lib/core/records.ts";

const NOW = 1_700_000_000_000;

const STATES = {
  healthy: {},
  disabled: null,
  refused: { credential: { kind: "unauthorized", fingerprint: "f", code: "", writtenAtMs: NOW } },
  poor: { credits: { openedAtMs: NOW, code: "", probeAtMs: NOW + 1 } },
  limited10: { deadline: deadline(10) },
  limited20: { deadline: deadline(20) },
  guessed5: { inferred: { untilMs: NOW + 5_000, shape: "rate", writtenAtMs: NOW } },
  guessedQuota5: { inferred: { untilMs: NOW + 5_000, shape: "quota", writtenAtMs: NOW } },
  parked7: { park: { untilMs: NOW + 7_000, observedAtMs: NOW, source: "usage_page" } },
  silenced: {
    park: { untilMs: NOW + 7_000, observedAtMs: NOW, source: "usage_page" },
    overrideUntilMs: NOW + 9_000,
  },
  resting: {
    ladder: { untilMs: NOW + 3_000, strikes: 1, reason: "transient", attempt: null, writtenAtMs: NOW },
  },
  modelLimited: { modelDeadlines: new Map([["m1", deadline(10)]]) },
} as const satisfies Record<string, Partial<AccountHealth> | null>;

type State = keyof typeof STATES;

function deadline(seconds: number) {
  return {
    untilMs: NOW + seconds * 1_000,
    source: "body",
    status: 429,
    code: "",
    attempt: "req_1:1",
    launchedAtMs: NOW,
    writtenAtMs: NOW,
  } as const;
}

function provider(...states: readonly State[]) {
  const made = newProviderSlot("codex");
  made.accounts = states.map((state, at) => {
    const slot = newAccountSlot({
      id: `a${at}`,
      provider: "codex",
      fingerprint: "f",
      enabled: state !== "disabled",
      refreshable: true,
    });
    slot.health = { ...HEALTHY, ...STATES[state] };
    return slot;
  });
  return made;
}

const circuits: readonly { states: readonly State[]; want: string | null }[] = [
  { states: [], want: null },
  { states: ["disabled"], want: null },
  { states: ["refused"], want: "auth" },
  { states: ["refused", "disabled"], want: "auth" },
  { states: ["refused", "healthy"], want: null },
  { states: ["refused", "limited10"], want: null },
  { states: ["poor", "refused"], want: "credits" },
  { states: ["poor"], want: "credits" },
];
for (const c of circuits) {
  Deno.test(`readCircuit() is ${c.want ?? "closed"} with ${c.states.join(", ") || "nobody"} (C7, C8)`, () => {
    assertEquals(readCircuit(provider(...c.states))?.reason ?? null, c.want);
  });
}

const closures: readonly { states: readonly State[]; want: readonly [number, string] | null }[] = [
  { states: [], want: null },
  { states: ["disabled", "refused", "poor"], want: null },
  { states: ["limited10", "limited20"], want: [10, "usage_window_exhausted"] },
  { states: ["limited20", "guessed5"], want: [5, "usage_window_exhausted"] },
  { states: ["guessed5"], want: [5, "rate_limited"] },
  { states: ["guessedQuota5"], want: [5, "usage_window_exhausted"] },
  { states: ["parked7", "limited10", "disabled", "refused"], want: [7, "usage_window_exhausted"] },
  { states: ["limited10", "healthy"], want: null },
  { states: ["limited10", "resting"], want: null },
  { states: ["limited10", "silenced"], want: null },
  { states: ["limited10", "modelLimited"], want: null },
];
for (const c of closures) {
  Deno.test(`readQuotaClosure() is ${c.want ?? "open"} with ${c.states.join(", ") || "nobody"} (C4)`, () => {
    const closure = readQuotaClosure(provider(...c.states), NOW);
    assertEquals(closure === null ? null : [(closure.untilMs - NOW) / 1_000, closure.reason], c.want);
  });
}

Deno.test("findSlot() finds by id in a sorted snapshot, and nobody else", () => {
  const { accounts } = provider("healthy", "healthy", "healthy");
  for (const slot of accounts) assertStrictEquals(findSlot(accounts, slot.account.id), slot);
  for (const id of ["", "a", "a00", "a3", "b"]) assertEquals(findSlot(accounts, id), null);
});

Deno.test("isSelectable() refuses removed and blocked accounts", () => {
  const [healthy, parked] = provider("healthy", "parked7").accounts;
  assertEquals([isSelectable(healthy!, "m1", NOW), isSelectable(parked!, "m1", NOW)], [true, false]);
  healthy!.removed = true;
  assertEquals(isSelectable(healthy!, "m1", NOW), false);
});
