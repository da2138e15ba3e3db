import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import type { DurableChange, DurableState } from "../../lib/core/records.ts";
import { StoreFailure } from "../../lib/ports.ts";
import { type Database, openDatabase } from "../../lib/store/database.ts";
import { SqlitePoolStore } from "../../lib/store/pool_store.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { anyState, deadline, ledger, NOW_MS, putDeadline } from "./pool_records.ts";

const EMPTY: DurableState = {
  deadlines: [],
  credentials: [],
  credits: [],
  disabled: [],
  readings: [],
  providerCooldowns: [],
  network: null,
  openLedgers: [],
  ringCursors: [],
};

Deno.test("load() gives back the state that was applied, whatever it was", () => {
  fc.assert(
    fc.property(anyState, (state) => {
      using database = openDatabase(":memory:");
      const store = new SqlitePoolStore(database);
      store.apply(changesFor(state), NOW_MS);
      assertEquals(sorted(new SqlitePoolStore(database).load()), sorted(state));
    }),
    { numRuns: 150 },
  );
});

Deno.test("load() gives back the state after the file was closed and opened again", () => {
  fc.assert(
    fc.property(anyState, (state) => {
      using folder = new TempFolder();
      {
        using database = openDatabase(folder.file("holdfast.db"));
        new SqlitePoolStore(database).apply(changesFor(state), NOW_MS);
      }
      using database = openDatabase(folder.file("holdfast.db"));
      assertEquals(sorted(new SqlitePoolStore(database).load()), sorted(state));
    }),
    { numRuns: 8 },
  );
});

Deno.test("load() gives an empty state for a new database", () => {
  using database = openDatabase(":memory:");
  assertEquals(new SqlitePoolStore(database).load(), EMPTY);
});

const credential = {
  kind: "invalid_grant",
  fingerprint: "f1",
  code: "invalid_grant",
  writtenAtMs: NOW_MS,
} as const;
const credits = { openedAtMs: NOW_MS, code: "insufficient_quota", probeAtMs: NOW_MS + 3_600_000 };
const cooldown = {
  untilMs: NOW_MS + 60_000,
  reason: "overloaded",
  openedAtMs: NOW_MS,
  openedBy: "req_a:1",
  generation: 1,
  level: 0,
  explicit: false,
} as const;
const reading = {
  observedAtMs: NOW_MS,
  source: "usage_page",
  windows: [{ name: "5h", usedPercent: 99.5, resetAtMs: NOW_MS + 1, modelFamily: null }],
  limitReached: null,
  servesBeyondWindows: false,
  creditsAvailable: true,
  plan: "pro",
} as const;

const everythingOfA: readonly DurableChange[] = [
  putDeadline("a"),
  { kind: "put_deadline", account: "a", model: "m1", deadline: deadline() },
  { kind: "put_credential", account: "a", block: credential },
  { kind: "put_credits", account: "a", block: credits },
  { kind: "set_enabled", account: "a", enabled: false },
  { kind: "put_reading", account: "a", reading },
];

/** Ruling 9: deadlines, credentials and ledger charges wait for the disk, what is read or counted anew does not. */
const durabilities: readonly { name: string; changes: readonly DurableChange[]; want: string }[] = [
  { name: "a deadline", changes: [putDeadline("a")], want: "full" },
  {
    name: "a credential block",
    changes: [{ kind: "put_credential", account: "a", block: credential }],
    want: "full",
  },
  { name: "a charge", changes: [{ kind: "put_ledger", row: ledger() }], want: "full" },
  {
    name: "a ledger that closes",
    changes: [{ kind: "put_ledger", row: ledger({ closed: true }) }],
    want: "normal",
  },
  { name: "a reading", changes: [{ kind: "put_reading", account: "a", reading }], want: "normal" },
  { name: "a ring's cursor", changes: [{ kind: "put_ring_cursor", pool: "p", cursor: 1 }], want: "normal" },
  {
    name: "a reading beside a deadline",
    changes: [{ kind: "put_reading", account: "a", reading }, putDeadline("a")],
    want: "full",
  },
];
for (const { name, changes, want } of durabilities) {
  Deno.test(`apply() of ${name} is a ${want} write`, () => {
    const asked: string[] = [];
    const database = { write: (durability: string) => void asked.push(durability) };
    new SqlitePoolStore(database as unknown as Database).apply(changes, NOW_MS);
    assertEquals(asked, [want]);
  });
}

const applied: readonly { name: string; changes: readonly DurableChange[]; want: Partial<DurableState> }[] = [
  {
    name: "a later deadline of the same key replaces the earlier",
    changes: [putDeadline("a", { untilMs: 1 }), putDeadline("a", { untilMs: 2 })],
    want: { deadlines: [{ account: "a", model: null, deadline: deadline({ untilMs: 2 }) }] },
  },
  {
    name: "a deadline of one model stands beside the account's",
    changes: [putDeadline("a"), { kind: "put_deadline", account: "a", model: "m", deadline: deadline() }],
    want: {
      deadlines: [
        { account: "a", model: null, deadline: deadline() },
        { account: "a", model: "m", deadline: deadline() },
      ],
    },
  },
  {
    name: "dropping the account's deadline leaves the model's",
    changes: [
      putDeadline("a"),
      { kind: "put_deadline", account: "a", model: "m", deadline: deadline() },
      { kind: "drop_deadline", account: "a", model: null },
    ],
    want: { deadlines: [{ account: "a", model: "m", deadline: deadline() }] },
  },
  {
    name: "dropping what is not there changes nothing",
    changes: [
      { kind: "drop_deadline", account: "x", model: "m" },
      { kind: "drop_credential", account: "x" },
      { kind: "drop_credits", account: "x" },
      { kind: "drop_provider_cooldown", provider: "x" },
      { kind: "forget_account", account: "x" },
    ],
    want: {},
  },
  {
    name: "credential and credits blocks are dropped one by one",
    changes: [
      { kind: "put_credential", account: "a", block: credential },
      { kind: "put_credits", account: "a", block: credits },
      { kind: "drop_credential", account: "a" },
    ],
    want: { credits: [{ account: "a", block: credits }] },
  },
  {
    name: "an account switched off twice and on once is on",
    changes: [
      { kind: "set_enabled", account: "a", enabled: false },
      { kind: "set_enabled", account: "a", enabled: false },
      { kind: "set_enabled", account: "a", enabled: true },
    ],
    want: {},
  },
  {
    name: "a forgotten account leaves nothing of itself and all of its neighbour",
    changes: [...everythingOfA, putDeadline("b"), { kind: "forget_account", account: "a" }],
    want: { deadlines: [{ account: "b", model: null, deadline: deadline() }] },
  },
  {
    name: "a cooldown is replaced and dropped by provider",
    changes: [
      { kind: "put_provider_cooldown", provider: "p", cooldown },
      { kind: "put_provider_cooldown", provider: "q", cooldown },
      { kind: "put_provider_cooldown", provider: "p", cooldown: { ...cooldown, generation: 2 } },
      { kind: "drop_provider_cooldown", provider: "q" },
    ],
    want: { providerCooldowns: [{ provider: "p", cooldown: { ...cooldown, generation: 2 } }] },
  },
  {
    name: "the network record is one, the last",
    changes: [
      { kind: "put_network", network: { evidence: [], lastSuccessAtMs: 1, pause: null, generation: 0 } },
      { kind: "put_network", network: { evidence: [], lastSuccessAtMs: 2, pause: null, generation: 1 } },
    ],
    want: { network: { evidence: [], lastSuccessAtMs: 2, pause: null, generation: 1 } },
  },
  {
    name: "a ledger grows by charges and counter",
    changes: [
      { kind: "put_ledger", row: ledger({ counter: 2, charged: ["req_a:1"] }) },
      { kind: "put_ledger", row: ledger({ counter: 5, charged: ["req_a:1", "req_a:4"] }) },
    ],
    want: { openLedgers: [ledger({ counter: 5, charged: ["req_a:1", "req_a:4"] })] },
  },
  {
    name: "a closed ledger is not among the open ones",
    changes: [
      { kind: "put_ledger", row: ledger() },
      { kind: "put_ledger", row: ledger({ closed: true }) },
    ],
    want: {},
  },
  {
    name: "a ring cursor is replaced",
    changes: [
      { kind: "put_ring_cursor", pool: "p", cursor: 1 },
      { kind: "put_ring_cursor", pool: "p", cursor: 9 },
    ],
    want: { ringCursors: [{ pool: "p", cursor: 9 }] },
  },
];

for (const c of applied) {
  Deno.test(`apply() keeps the order of changes: ${c.name}`, () => {
    using database = openDatabase(":memory:");
    const store = new SqlitePoolStore(database);
    store.apply(c.changes, NOW_MS);
    assertEquals(store.load(), { ...EMPTY, ...c.want });
  });
}

Deno.test("apply() keeps audit lines with the time of the change, newest first", () => {
  using database = openDatabase(":memory:");
  const store = new SqlitePoolStore(database);
  store.apply([{ kind: "audit", action: "reset", subject: "a", detail: "" }], 1);
  store.apply([{ kind: "audit", action: "topped_up", subject: "b", detail: "by hand" }], 2);
  assertEquals(store.auditLines(10), [
    { atMs: 2, action: "topped_up", subject: "b", detail: "by hand" },
    { atMs: 1, action: "reset", subject: "a", detail: "" },
  ]);
  assertEquals(store.auditLines(1).length, 1);
});

const refusedLedgers: readonly {
  name: string;
  before?: Parameters<typeof ledger>[0];
  row: Parameters<typeof ledger>[0];
}[] = [
  { name: "a charge named twice", row: { charged: ["req_a:1", "req_a:1"] } },
  { name: "a charge of another request", row: { charged: ["req_b:1"] } },
  { name: "a charge that is no attempt id", row: { charged: ["req_a"] } },
  { name: "a charge with the counter 0", row: { charged: ["req_a:0"] } },
  { name: "a charge that was never minted", row: { counter: 3, charged: ["req_a:4"] } },
  { name: "more charges than the budget", row: { maxLaunches: 1, charged: ["req_a:1", "req_a:2"] } },
  { name: "a charge taken back", before: {}, row: { charged: ["req_a:2"] } },
  { name: "a counter that went back", before: { counter: 4 }, row: { counter: 3 } },
  { name: "a closed ledger opened again", before: { closed: true }, row: { closed: false } },
];

for (const c of refusedLedgers) {
  Deno.test(`apply() refuses the ledger and all changes with it: ${c.name}`, () => {
    using folder = new TempFolder();
    const path = folder.file("holdfast.db");
    let before: DurableState;
    {
      using database = openDatabase(path);
      const store = new SqlitePoolStore(database);
      if (c.before !== undefined) store.apply([{ kind: "put_ledger", row: ledger(c.before) }], NOW_MS);
      before = store.load();
      const error = assertThrows(
        () => store.apply([putDeadline("a"), { kind: "put_ledger", row: ledger(c.row) }], NOW_MS),
        StoreFailure,
      );
      assertEquals(
        error.message.startsWith("Cannot keep the ledger of req_a: constraint: "),
        true,
        error.message,
      );
    }
    using database = openDatabase(path);
    assertEquals(new SqlitePoolStore(database).load(), before);
  });
}

Deno.test("apply() accepts the ledger on its borders: last minted charged, budget full", () => {
  using database = openDatabase(":memory:");
  const store = new SqlitePoolStore(database);
  const row = ledger({ counter: 2, charged: ["req_a:1", "req_a:2"], maxLaunches: 2 });
  store.apply([{ kind: "put_ledger", row }], NOW_MS);
  store.apply([{ kind: "put_ledger", row }], NOW_MS);
  assertEquals(store.load().openLedgers, [row]);
});

const mistakes: readonly {
  name: string;
  change: DurableChange;
  error: typeof TypeError | typeof RangeError;
}[] = [
  { name: "an empty account id", change: putDeadline(""), error: RangeError },
  { name: "an account id with a line break", change: putDeadline("a\nb"), error: RangeError },
  { name: "a lone surrogate", change: putDeadline("a\ud800"), error: RangeError },
  { name: "a time with a fraction", change: putDeadline("a", { untilMs: 1.5 }), error: RangeError },
  { name: "a time before the epoch", change: putDeadline("a", { untilMs: -1 }), error: RangeError },
  {
    name: "a time beyond all dates",
    change: putDeadline("a", { untilMs: 8_640_000_000_000_001 }),
    error: RangeError,
  },
  { name: "no number at all", change: putDeadline("a", { untilMs: NaN }), error: RangeError },
  {
    name: "a time as text",
    change: putDeadline("a", { untilMs: "soon" as unknown as number }),
    error: RangeError,
  },
  {
    name: "a missing time",
    change: putDeadline("a", { untilMs: null as unknown as number }),
    error: TypeError,
  },
  { name: "an attempt that is none", change: putDeadline("a", { attempt: "req_a" }), error: RangeError },
  {
    name: "a credential block that lives in memory only",
    change: { kind: "put_credential", account: "a", block: { ...credential, kind: "credential_invalid" } },
    error: RangeError,
  },
  {
    name: "a cooldown that ends before it opened",
    change: { kind: "put_provider_cooldown", provider: "p", cooldown: { ...cooldown, untilMs: NOW_MS - 1 } },
    error: RangeError,
  },
  {
    name: "evidence of one attempt twice",
    change: {
      kind: "put_network",
      network: {
        evidence: [
          { provider: "p", attempt: "req_a:1", observedAtMs: 1 },
          { provider: "p", attempt: "req_a:1", observedAtMs: 2 },
        ],
        lastSuccessAtMs: 0,
        pause: null,
        generation: 0,
      },
    },
    error: RangeError,
  },
  {
    name: "a window list that is null",
    change: { kind: "put_reading", account: "a", reading: { ...reading, windows: null as unknown as [] } },
    error: TypeError,
  },
  {
    name: "a negative cursor",
    change: { kind: "put_ring_cursor", pool: "p", cursor: -1 },
    error: RangeError,
  },
  { name: "an unknown change", change: { kind: "surprise" } as unknown as DurableChange, error: TypeError },
];

for (const c of mistakes) {
  Deno.test(`apply() blames the caller, keeps nothing and goes on: ${c.name}`, () => {
    using database = openDatabase(":memory:");
    const store = new SqlitePoolStore(database);
    assertThrows(() => store.apply([putDeadline("z"), c.change], NOW_MS), c.error);
    assertEquals(store.load(), EMPTY);
    store.apply([putDeadline("z")], NOW_MS);
    assertEquals(store.load().deadlines.length, 1);
  });
}

const HOUR_MS = 3_600_000;
const pruned: readonly { name: string; changes: readonly DurableChange[]; afterMs: number; want: number }[] =
  [
    { name: "a closed ledger of one hour stays", changes: [ledgerOf(true)], afterMs: HOUR_MS, want: 1 },
    {
      name: "a closed ledger older than that goes",
      changes: [ledgerOf(true)],
      afterMs: HOUR_MS + 1,
      want: 0,
    },
    { name: "an open ledger of one day stays", changes: [ledgerOf(false)], afterMs: 24 * HOUR_MS, want: 1 },
    {
      name: "an open ledger older than that goes",
      changes: [ledgerOf(false)],
      afterMs: 24 * HOUR_MS + 1,
      want: 0,
    },
    {
      name: "a deadline over for one day stays",
      changes: [putDeadline("a", { untilMs: NOW_MS })],
      afterMs: 24 * HOUR_MS,
      want: 1,
    },
    {
      name: "a deadline over for longer goes",
      changes: [putDeadline("a", { untilMs: NOW_MS })],
      afterMs: 24 * HOUR_MS + 1,
      want: 0,
    },
    {
      name: "a deadline far ahead stays",
      changes: [putDeadline("a", { untilMs: NOW_MS + 40 * 24 * HOUR_MS })],
      afterMs: 24 * HOUR_MS + 1,
      want: 1,
    },
  ];

for (const c of pruned) {
  Deno.test(`prune() removes what nobody can need any more: ${c.name}`, () => {
    using database = openDatabase(":memory:");
    const store = new SqlitePoolStore(database);
    store.apply(c.changes, NOW_MS);
    store.prune(NOW_MS + c.afterMs);
    assertEquals(rowCount(database), c.want);
  });
}

Deno.test("prune() removes many in batches, charges with their ledger", () => {
  using database = openDatabase(":memory:");
  const store = new SqlitePoolStore(database);
  const changes = Array.from({ length: 1_234 }, (_, i): DurableChange => ({
    kind: "put_ledger",
    row: ledger({ request: `r${i}`, charged: [`r${i}:1`], closed: true }),
  }));
  store.apply(changes, NOW_MS);
  store.prune(NOW_MS + HOUR_MS + 1);
  assertEquals(rowCount(database), 0);
});

function ledgerOf(closed: boolean): DurableChange {
  return { kind: "put_ledger", row: ledger({ charged: [], closed }) };
}

function rowCount(database: ReturnType<typeof openDatabase>): number {
  return database.read("count", (connection) =>
    connection.get(
      `SELECT (SELECT count(*) FROM ledger) + (SELECT count(*) FROM ledger_charge)
         + (SELECT count(*) FROM deadline) AS n`,
    )!.n as number);
}

function changesFor(state: DurableState): DurableChange[] {
  return [
    ...state.deadlines.map((row): DurableChange => ({ kind: "put_deadline", ...row })),
    ...state.credentials.map((row): DurableChange => ({ kind: "put_credential", ...row })),
    ...state.credits.map((row): DurableChange => ({ kind: "put_credits", ...row })),
    ...state.disabled.map((account): DurableChange => ({ kind: "set_enabled", account, enabled: false })),
    ...state.readings.map((row): DurableChange => ({ kind: "put_reading", ...row })),
    ...state.providerCooldowns.map((row): DurableChange => ({ kind: "put_provider_cooldown", ...row })),
    ...(state.network === null ? [] : [{ kind: "put_network", network: state.network } as const]),
    ...state.openLedgers.map((row): DurableChange => ({ kind: "put_ledger", row })),
    ...state.ringCursors.map((row): DurableChange => ({ kind: "put_ring_cursor", ...row })),
  ];
}

/** Tables have no order; -0 is 0 in JSON and in SQLite. */
function sorted(state: DurableState): unknown {
  const byText = (list: readonly unknown[]) => list.map((entry) => JSON.stringify(sortKeys(entry))).sort();
  return Object.fromEntries(
    Object.entries(state).map(([key, value]) => [key, Array.isArray(value) ? byText(value) : value]),
  );
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1).map(([key, inner]) => [key, sortKeys(inner)]),
  );
}
