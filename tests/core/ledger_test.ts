import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  charge,
  findLedgerFault,
  isLedgerFull,
  launchBound,
  mintAttempt,
  openLedger,
} from "../../lib/core/ledger.ts";
import type { LedgerRow } from "../../lib/core/records.ts";

const NOW = 1_700_000_000_000;

function ledger(given: Partial<LedgerRow> = {}): LedgerRow {
  return { ...openLedger("req_1", null, 5, NOW), counter: 3, ...given };
}

const bounds = [
  { name: "defaults, five accounts", retry: 3, slots: 0, accounts: 5, recovery: 0, want: 25 },
  { name: "with two recovery launches", retry: 3, slots: 0, accounts: 5, recovery: 2, want: 27 },
  { name: "one slot a round", retry: 1, slots: 1, accounts: 5, recovery: 0, want: 7 },
  { name: "more slots than accounts", retry: 3, slots: 9, accounts: 2, recovery: 0, want: 10 },
  { name: "nobody", retry: 3, slots: 0, accounts: 0, recovery: 0, want: 0 },
] as const;
for (const c of bounds) {
  Deno.test(`launchBound() is ${c.want}: ${c.name} (3.5)`, () => {
    const policy = { requestRetry: c.retry, maxRetryCredentials: c.slots, maxRetryIntervalMs: 30_000 };
    assertEquals(launchBound(policy, c.accounts, c.recovery), c.want);
  });
}

const refusals = [
  { name: "malformed", attempt: "req_1", want: "malformed" },
  { name: "counter zero", attempt: "req_1:0", want: "malformed" },
  { name: "leading zero", attempt: "req_1:01", want: "malformed" },
  { name: "of another request", attempt: "req_2:1", want: "foreign" },
  { name: "never minted", attempt: "req_1:4", want: "future" },
  { name: "charged already", attempt: "req_1:1", want: "duplicate" },
] as const;
for (const c of refusals) {
  Deno.test(`charge() refuses an id that is ${c.want}: ${c.name} (2C.5)`, () => {
    assertEquals(charge(ledger({ charged: ["req_1:1"] }), c.attempt), { ok: false, reason: c.want });
  });
}

Deno.test("charge() refuses one more than the bound leaves", () => {
  const full = ledger({ maxLaunches: 2, charged: ["req_1:1"] });
  assertEquals(charge(full, "req_1:2"), { ok: false, reason: "full" });
});

Deno.test("mintAttempt() and charge() never allow more launches than one and the charges", () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 30 }), (maxLaunches) => {
    let row = openLedger("req_1", null, maxLaunches, NOW);
    let launches = 0;
    let last: string | null = null;
    while (!isLedgerFull(row)) {
      const minted = mintAttempt(row);
      row = minted.ledger;
      if (last !== null) {
        const charged = charge(row, last);
        if (!charged.ok) throw new Error(`Cannot charge ${last}: ${charged.reason}`);
        row = charged.ledger;
      }
      last = minted.attempt;
      launches++;
      assert(launches <= 1 + row.charged.length);
    }
    assertEquals(launches, maxLaunches);
    assertEquals(findLedgerFault(row), null);
  }));
});

const faults: readonly { name: string; row: LedgerRow; want: string | null }[] = [
  { name: "sound", row: ledger({ charged: ["req_1:1", "req_1:2"] }), want: null },
  {
    name: "charged twice",
    row: ledger({ charged: ["req_1:1", "req_1:1"] }),
    want: "charge req_1:1 is duplicate",
  },
  { name: "of the future", row: ledger({ charged: ["req_1:9"] }), want: "charge req_1:9 is future" },
  { name: "of another request", row: ledger({ charged: ["req_2:1"] }), want: "charge req_2:1 is foreign" },
  { name: "not an id", row: ledger({ charged: ["x"] }), want: "charge x is malformed" },
  {
    name: "more than allowed",
    row: ledger({ maxLaunches: 2, charged: ["req_1:1", "req_1:2"] }),
    want: "charges must be at most 1, got 2",
  },
  {
    name: "counter below zero",
    row: ledger({ counter: -1 }),
    want: "counter must be a whole number, got -1",
  },
];
for (const c of faults) {
  Deno.test(`findLedgerFault() says ${c.want ?? "nothing"}: ${c.name} (P30)`, () => {
    assertEquals(findLedgerFault(c.row), c.want);
  });
}
