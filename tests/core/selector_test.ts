import { assertEquals } from "@std/assert";
import { HEALTHY } from "../../lib/core/account_health.ts";
import { certainlyBlockedUntilMs } from "../../lib/core/eligibility.ts";
import { type AccountSlot, newAccountSlot } from "../../lib/core/pool.ts";
import type { AccountHealth } from "../../lib/core/records.ts";
import { COMPARED_LIMIT, pickAccount, type PickQuestion } from "../../lib/core/selector.ts";

const NOW = 1_700_000_000_000;

function slot(id: string, given: Partial<AccountHealth> = {}, inFlight = 0, enabled = true): AccountSlot {
  const made = newAccountSlot({ id, provider: "codex", fingerprint: "f", enabled, refreshable: true });
  made.health = Object.keys(given).length === 0 ? HEALTHY : { ...HEALTHY, ...given };
  made.blockedUntilMs = certainlyBlockedUntilMs(made.health, enabled, NOW);
  made.inFlight = inFlight;
  return made;
}

function resting(untilMs: number, strikes = 1): Partial<AccountHealth> {
  return { ladder: { untilMs, strikes, reason: "transient", attempt: null, writtenAtMs: NOW } };
}

function pick(accounts: readonly AccountSlot[], given: Partial<PickQuestion> = {}): string | null {
  const at = pickAccount({
    accounts,
    start: 0,
    strategy: "round-robin",
    model: "m1",
    tried: new Set(),
    probing: false,
    creditsTrial: false,
    nowMs: NOW,
    ...given,
  });
  return at < 0 ? null : accounts[at]!.account.id;
}

const all = () => ["a", "b", "c", "d"].map((id) => slot(id));

Deno.test("pickAccount() goes on from the rotation's place, around the end", () => {
  assertEquals([0, 1, 2, 3].map((start) => pick(all(), { start })), ["a", "b", "c", "d"]);
});

Deno.test("pickAccount() takes the least busy of the next ones, the first of equals", () => {
  assertEquals(pick([slot("a", {}, 3), slot("b", {}, 1), slot("c", {}, 1)]), "b");
});

Deno.test("pickAccount() compares eight at most", () => {
  const crowd = Array.from({ length: COMPARED_LIMIT + 1 }, (_, at) => slot(`a${at}`, {}, at < 8 ? 2 : 0));
  assertEquals(pick(crowd), "a0");
  assertEquals(pick(crowd.slice(1)), "a8");
});

Deno.test("pickAccount() fills the first account by id, however busy, whatever the rotation", () => {
  const accounts = [slot("a", {}, 9), slot("b"), slot("c")];
  assertEquals(pick(accounts, { strategy: "fill-first", start: 2 }), "a");
  assertEquals(pick([slot("a", resting(NOW + 1)), slot("b")], { strategy: "fill-first" }), "b");
});

const skipped: readonly { name: string; slot: AccountSlot }[] = [
  { name: "disabled", slot: slot("x", {}, 0, false) },
  { name: "resting one millisecond more", slot: slot("x", resting(NOW + 1)) },
  { name: "its model excluded", slot: slot("x", { exclusions: new Map([["m1", NOW]]) }) },
  {
    name: "parked",
    slot: slot("x", { park: { untilMs: NOW + 1, observedAtMs: NOW, source: "usage_page" } }),
  },
  {
    name: "without credits, test due",
    slot: slot("x", { credits: { openedAtMs: 0, code: "", probeAtMs: NOW } }),
  },
];
for (const c of skipped) {
  Deno.test(`pickAccount() passes over an account ${c.name}`, () => {
    assertEquals([pick([c.slot]), pick([c.slot, slot("y")])], [null, "y"]);
  });
}

Deno.test("pickAccount() passes over tried and removed accounts, and takes one whose rest is just over", () => {
  const accounts = all();
  accounts[1]!.removed = true;
  assertEquals(pick(accounts, { tried: new Set([accounts[0]!]) }), "c");
  assertEquals(pick([slot("x", resting(NOW))]), "x");
});

Deno.test("pickAccount() sends the least struck account to test a half-open provider (3.3 step 5)", () => {
  const accounts = [slot("a", resting(NOW, 3)), slot("b", resting(NOW, 1), 5), slot("c", resting(NOW, 2))];
  assertEquals(pick(accounts, { probing: true }), "b");
  assertEquals(pick(accounts, { probing: true, strategy: "fill-first" }), "b");
  assertEquals(pick(accounts), "a");
});

Deno.test("pickAccount() tests missing credits when due, allowed, and not under test already (ruling 20)", () => {
  const poor = slot("x", { credits: { openedAtMs: 0, code: "", probeAtMs: NOW } });
  assertEquals(pick([poor], { creditsTrial: true }), "x");
  assertEquals(pick([poor, slot("y")], { creditsTrial: true, probing: true }), "y");
  poor.trial = "req_1:1";
  assertEquals(pick([poor], { creditsTrial: true }), null);
  const early = slot("x", { credits: { openedAtMs: 0, code: "", probeAtMs: NOW + 1 } });
  assertEquals(pick([early], { creditsTrial: true }), null);
});

Deno.test("pickAccount() of nobody is nobody", () => assertEquals(pick([]), null));
