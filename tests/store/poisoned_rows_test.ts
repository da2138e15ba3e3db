/** A row that does not parse refuses the start and says which; it is never read as something else. */
import { assertEquals, assertThrows } from "@std/assert";
import type { DurableChange } from "../../lib/core/records.ts";
import { StoreFailure } from "../../lib/ports.ts";
import { SqliteAccountStore } from "../../lib/store/account_store.ts";
import { SqliteAffinityStore } from "../../lib/store/affinity_store.ts";
import { type Database, openDatabase } from "../../lib/store/database.ts";
import { SqlitePoolStore } from "../../lib/store/pool_store.ts";
import { deadline, ledger, NOW_MS, putDeadline } from "./pool_records.ts";

const STATE: readonly DurableChange[] = [
  putDeadline("acct-1"),
  { kind: "put_deadline", account: "acct-1", model: "m1", deadline: deadline() },
  {
    kind: "put_credential",
    account: "acct-1",
    block: { kind: "unauthorized", fingerprint: "f", code: "unauthorized", writtenAtMs: NOW_MS },
  },
  { kind: "put_credits", account: "acct-1", block: { openedAtMs: NOW_MS, code: "c", probeAtMs: NOW_MS } },
  { kind: "set_enabled", account: "acct-1", enabled: false },
  {
    kind: "put_reading",
    account: "acct-1",
    reading: {
      observedAtMs: NOW_MS,
      source: "usage_page",
      windows: [{ name: "5h", usedPercent: 50, resetAtMs: null, modelFamily: null }],
      limitReached: null,
      servesBeyondWindows: false,
      creditsAvailable: null,
      plan: null,
    },
  },
  {
    kind: "put_provider_cooldown",
    provider: "prov-1",
    cooldown: {
      untilMs: NOW_MS + 60_000,
      reason: "overloaded",
      openedAtMs: NOW_MS,
      openedBy: "req_a:1",
      generation: 1,
      level: 0,
      explicit: true,
    },
  },
  {
    kind: "put_network",
    network: {
      evidence: [{ provider: "prov-1", attempt: "req_a:1", observedAtMs: NOW_MS }],
      lastSuccessAtMs: 0,
      pause: { openedAtMs: NOW_MS, untilMs: NOW_MS + 60_000, evidence: [], generation: 1 },
      generation: 1,
    },
  },
  { kind: "put_ledger", row: ledger() },
  { kind: "put_ring_cursor", pool: "pool-1", cursor: 3 },
];

const BEYOND_NUMBERS = "9223372036854775807";

const cases: readonly { name: string; poison: string; table: string; says: string }[] = [
  {
    name: "a time before the epoch",
    poison: "UPDATE deadline SET until_ms = -1 WHERE model = ''",
    table: "deadline",
    says: 'account = "acct-1" and model = "", "until_ms" must be a time in UTC epoch ms, got -1',
  },
  {
    name: "a time no number can hold",
    poison: `UPDATE deadline SET until_ms = ${BEYOND_NUMBERS} WHERE model = 'm1'`,
    table: "deadline",
    says: `model = "m1", "until_ms" must be a time in UTC epoch ms, got ${BEYOND_NUMBERS}`,
  },
  {
    name: "an unknown source",
    poison: "UPDATE deadline SET source = 'guess'",
    table: "deadline",
    says: '"source" must be one of',
  },
  {
    name: "an attempt that is none",
    poison: "UPDATE deadline SET attempt = 'naive'",
    table: "deadline",
    says: '"attempt" must be an attempt id',
  },
  {
    name: "an empty account",
    poison: "UPDATE deadline SET account = ''",
    table: "deadline",
    says: '"account" must be text',
  },
  {
    name: "a credential block of a kind that is not kept",
    poison: "UPDATE credential_block SET kind = 'credential_invalid'",
    table: "credential_block",
    says: 'account = "acct-1", "kind" must be one of unauthorized, invalid_grant',
  },
  {
    name: "an empty fingerprint",
    poison: "UPDATE credential_block SET fingerprint = ''",
    table: "credential_block",
    says: '"fingerprint" must be text',
  },
  {
    name: "a credits block with an absurd probe time",
    poison: "UPDATE credits_block SET probe_at_ms = 8640000000000001",
    table: "credits_block",
    says: '"probe_at_ms" must be',
  },
  {
    name: "a line break in a disabled account",
    poison: "UPDATE disabled_account SET account = 'a' || char(10)",
    table: "disabled_account",
    says: '"account" must be text',
  },
  {
    name: "windows that are null",
    poison: "UPDATE quota_reading SET windows = 'null'",
    table: "quota_reading",
    says: '"windows" must be a list',
  },
  {
    name: "windows that are no JSON",
    poison: "UPDATE quota_reading SET windows = '[{'",
    table: "quota_reading",
    says: '"windows" must be a list',
  },
  {
    name: "a window with a field too many",
    poison:
      `UPDATE quota_reading SET windows = '[{"name":"5h","usedPercent":1,"resetAtMs":null,"modelFamily":null,"x":1}]'`,
    table: "quota_reading",
    says: '"windows" must be a list',
  },
  {
    name: "a window with its reset as text",
    poison:
      `UPDATE quota_reading SET windows = '[{"name":"5h","usedPercent":1,"resetAtMs":"2026-01-01T00:00:00","modelFamily":null}]'`,
    table: "quota_reading",
    says: '"windows" must be a list',
  },
  {
    name: "a flag that is neither",
    poison: "UPDATE quota_reading SET limit_reached = 2",
    table: "quota_reading",
    says: '"limit_reached" must be true or false',
  },
  {
    name: "a cooldown over before it opened",
    poison: "UPDATE provider_cooldown SET until_ms = opened_at_ms - 1",
    table: "provider_cooldown",
    says: 'provider = "prov-1", "until_ms" must not be before "opened_at_ms"',
  },
  {
    name: "a negative generation",
    poison: "UPDATE provider_cooldown SET generation = -1",
    table: "provider_cooldown",
    says: '"generation" must be an integer',
  },
  {
    name: "evidence that is null",
    poison: "UPDATE network SET evidence = 'null'",
    table: "network",
    says: 'id = 1, "evidence" must be a list',
  },
  {
    name: "a pause without its fields",
    poison: "UPDATE network SET pause = '{}'",
    table: "network",
    says: '"pause" must be an object of openedAtMs',
  },
  {
    name: "a pause of a future generation",
    poison: "UPDATE network SET generation = 0",
    table: "network",
    says: '"pause" must not be of a later generation',
  },
  {
    name: "evidence of one attempt twice",
    poison:
      `UPDATE network SET evidence = '[{"provider":"p","attempt":"r:1","observedAtMs":1},{"provider":"p","attempt":"r:1","observedAtMs":2}]'`,
    table: "network",
    says: '"evidence" must name each provider and attempt once',
  },
  {
    name: "a charge that was never minted",
    poison: "UPDATE ledger SET counter = 1",
    table: "ledger",
    says: 'request = "req_a", charge "req_a:2" was never minted',
  },
  {
    name: "more charges than launches",
    poison: "UPDATE ledger SET max_launches = 1",
    table: "ledger",
    says: "2 charges exceed the budget of 1 launches",
  },
  {
    name: "a ledger neither open nor closed",
    poison: "UPDATE ledger SET closed = 7",
    table: "ledger",
    says: '"closed" must be true or false',
  },
  {
    name: "a charge with the counter 0",
    poison: "UPDATE ledger_charge SET attempt_counter = 0 WHERE attempt_counter = 1",
    table: "ledger_charge",
    says: 'request = "req_a" and attempt_counter = 0, "attempt_counter" must be an integer',
  },
  {
    name: "a cursor below 0",
    poison: "UPDATE ring_cursor SET cursor = -1",
    table: "ring_cursor",
    says: 'pool = "pool-1", "cursor" must be an integer',
  },
];

for (const c of cases) {
  Deno.test(`load() refuses a poisoned row by table and key: ${c.name}`, () => {
    using database = openDatabase(":memory:");
    const store = new SqlitePoolStore(database);
    store.apply(STATE, NOW_MS);
    store.load();
    poison(database, c.poison);
    requirePoisoned(() => store.load(), c.table, c.says);
  });
}

Deno.test("after a poisoned row nothing more is read or written", () => {
  using database = openDatabase(":memory:");
  const store = new SqlitePoolStore(database);
  store.apply(STATE, NOW_MS);
  poison(database, "UPDATE ring_cursor SET cursor = -1");
  const { message } = assertThrows(() => store.load(), StoreFailure);
  assertEquals(assertThrows(() => store.apply([putDeadline("b")], NOW_MS), StoreFailure).message, message);
});

Deno.test("get() refuses a poisoned binding by its session", () => {
  using database = openDatabase(":memory:");
  new SqliteAffinityStore(database).bind({ session: "s", account: "a", createdAtMs: 1, expiresAtMs: 2 });
  poison(database, `UPDATE binding SET expires_at_ms = ${BEYOND_NUMBERS}`);
  const store = new SqliteAffinityStore(database);
  requirePoisoned(() => store.get("s"), "binding", 'session = "s", "expires_at_ms" must be');
});

const users: readonly { name: string; poison: string; says: string }[] = [
  {
    name: "a flag that is neither",
    poison: "UPDATE managed_user SET enabled = 5",
    says: '"enabled" must be',
  },
  {
    name: "a key hash that is none",
    poison: "UPDATE managed_user SET key_hash = 'SENT-' || char(7)",
    says: '"key_hash" must be',
  },
];

for (const c of users) {
  Deno.test(`a poisoned user refuses the start by its id, without showing the key: ${c.name}`, () => {
    using database = openDatabase(":memory:");
    new SqliteAccountStore(database).createUser({
      id: "u1",
      name: "n",
      enabled: true,
      keyHash: "SENT-hash",
      keyHint: "hint",
      createdAtMs: 1,
      keyCreatedAtMs: 1,
    });
    poison(database, c.poison);
    requirePoisoned(() => new SqliteAccountStore(database), "managed_user", `id = "u1", ${c.says}`);
  });
}

function poison(database: Database, sql: string): void {
  const changed = database.write("normal", "poison", (connection) => connection.run(sql));
  assertEquals(changed > 0, true, "the poison must hit a row");
}

function requirePoisoned(action: () => unknown, table: string, says: string): void {
  const { message } = assertThrows(action, StoreFailure);
  assertEquals(message.startsWith(`Cannot load table "${table}": in the row where `), true, message);
  assertEquals(message.includes(says), true, message);
  assertEquals(message.includes("delete or correct that row, or restore a backup"), true, message);
  assertEquals(message.includes("\n"), false, message);
  assertEquals(message.includes("SENT-"), false, message);
}
