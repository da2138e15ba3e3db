import { assertEquals, assertThrows } from "@std/assert";
import { type ManagedUser, StoreConflict, type UsageCount, type UsageKey } from "../../lib/ports.ts";
import { SqliteAccountStore, USAGE_BUCKET_MS } from "../../lib/store/account_store.ts";
import { openDatabase } from "../../lib/store/database.ts";

const BUCKET_MS = 1_800_000_000_000;
const KEY: UsageKey = { tenant: "t1", keyHint: "hf_…abcd", provider: "codex", model: "m1", effort: "high" };
const ONE: UsageCount = {
  requests: 1,
  failures: 0,
  inputTokens: 100,
  cachedTokens: 40,
  outputTokens: 7,
  reasoningTokens: 3,
};

function user(id: string, change: Partial<ManagedUser> = {}): ManagedUser {
  return {
    id,
    name: `name of ${id}`,
    enabled: true,
    keyHash: `SENT-hash-${id}`,
    keyHint: "hf_…abcd",
    createdAtMs: 1_000,
    keyCreatedAtMs: 1_000,
    ...change,
  };
}

Deno.test("users() gives all of them oldest first, also to a store opened later", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  assertEquals(store.users(), []);
  const [young, old, twin] = [
    user("b", { createdAtMs: 9 }),
    user("c", { createdAtMs: 1 }),
    user("a", { createdAtMs: 9 }),
  ];
  for (const each of [young, old, twin]) store.createUser(each);
  assertEquals(store.users(), [old, twin, young]);
  assertEquals(new SqliteAccountStore(database).users(), [old, twin, young]);
});

Deno.test("userByKeyHash() finds the holder of a key and nobody for an old one", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  store.createUser(user("a"));
  assertEquals(store.userByKeyHash("SENT-hash-a"), user("a"));
  const rotated = user("a", { keyHash: "SENT-hash-a2", keyCreatedAtMs: 2_000, enabled: false });
  store.updateUser(rotated);
  for (const each of [store, new SqliteAccountStore(database)]) {
    assertEquals(each.userByKeyHash("SENT-hash-a"), null);
    assertEquals(each.userByKeyHash("SENT-hash-a2"), rotated);
  }
});

const conflicts: readonly { name: string; user: ManagedUser }[] = [
  { name: "the id", user: user("a", { name: "new", keyHash: "SENT-new" }) },
  { name: "the name", user: user("new", { name: "name of a", keyHash: "SENT-new" }) },
  { name: "the key", user: user("new", { keyHash: "SENT-hash-a" }) },
];

for (const c of conflicts) {
  Deno.test(`createUser() is a conflict, not a failure, when ${c.name} is taken`, () => {
    using database = openDatabase(":memory:");
    const store = new SqliteAccountStore(database);
    store.createUser(user("a"));
    const error = assertThrows(() => store.createUser(c.user), StoreConflict);
    assertEquals(error.message.includes("SENT-"), false, error.message);
    assertEquals(new SqliteAccountStore(database).users(), [user("a")]);
    store.createUser(user("b"));
  });
}

Deno.test("updateUser() refuses another user's name or key, and a user that does not exist", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  store.createUser(user("a"));
  store.createUser(user("b"));
  assertThrows(() => store.updateUser(user("b", { name: "name of a" })), StoreConflict);
  assertThrows(() => store.updateUser(user("b", { keyHash: "SENT-hash-a" })), StoreConflict);
  assertThrows(() => store.updateUser(user("c")), RangeError);
  assertEquals(store.users(), [user("a"), user("b")]);
});

Deno.test("createUser() blames the caller for a field no row may hold, and keeps nothing", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  assertThrows(() => store.createUser(user("a", { name: "" })), RangeError);
  assertThrows(() => store.createUser(user("a", { name: "a\u0007b" })), RangeError);
  assertEquals(store.users(), []);
  assertEquals(new SqliteAccountStore(database).users(), []);
});

const buckets: readonly { name: string; atMs: number; want: number }[] = [
  { name: "first ms", atMs: BUCKET_MS, want: BUCKET_MS },
  { name: "last ms", atMs: BUCKET_MS + USAGE_BUCKET_MS - 1, want: BUCKET_MS },
  { name: "first ms of the next", atMs: BUCKET_MS + USAGE_BUCKET_MS, want: BUCKET_MS + USAGE_BUCKET_MS },
  { name: "last ms of the one before", atMs: BUCKET_MS - 1, want: BUCKET_MS - USAGE_BUCKET_MS },
];

for (const c of buckets) {
  Deno.test(`addUsage() counts into the 10-minute bucket: ${c.name}`, () => {
    using database = openDatabase(":memory:");
    const store = new SqliteAccountStore(database);
    store.addUsage([{ key: KEY, atMs: c.atMs, count: ONE }]);
    assertEquals(store.usage({ fromMs: 0, toMs: 2 * BUCKET_MS, tenant: null }), [
      { bucketAtMs: c.want, key: KEY, count: ONE },
    ]);
  });
}

Deno.test("addUsage() adds to what the bucket holds, each key apart", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  const other = { ...KEY, effort: "low" };
  const failed = { ...ONE, failures: 1, outputTokens: 0 };
  store.addUsage([
    { key: KEY, atMs: BUCKET_MS, count: ONE },
    { key: other, atMs: BUCKET_MS, count: ONE },
    { key: KEY, atMs: BUCKET_MS + 5, count: failed },
  ]);
  store.addUsage([{ key: KEY, atMs: BUCKET_MS + 6, count: ONE }]);
  store.addUsage([]);
  assertEquals(store.usage({ fromMs: BUCKET_MS, toMs: BUCKET_MS + 1, tenant: "t1" }), [
    {
      bucketAtMs: BUCKET_MS,
      key: KEY,
      count: {
        requests: 3,
        failures: 1,
        inputTokens: 300,
        cachedTokens: 120,
        outputTokens: 14,
        reasoningTokens: 9,
      },
    },
    { bucketAtMs: BUCKET_MS, key: other, count: ONE },
  ]);
});

Deno.test("addUsage() keeps nothing of a list with a wrong row", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  const rows = [
    { key: KEY, atMs: BUCKET_MS, count: ONE },
    { key: KEY, atMs: BUCKET_MS, count: { ...ONE, inputTokens: -1 } },
  ];
  assertThrows(() => store.addUsage(rows), RangeError);
  assertEquals(store.usage({ fromMs: 0, toMs: 2 * BUCKET_MS, tenant: null }), []);
});

const ranges: readonly { name: string; fromMs: number; toMs: number; want: number }[] = [
  { name: "exactly the bucket", fromMs: BUCKET_MS, toMs: BUCKET_MS + USAGE_BUCKET_MS, want: 1 },
  {
    name: "its last ms",
    fromMs: BUCKET_MS + USAGE_BUCKET_MS - 1,
    toMs: BUCKET_MS + USAGE_BUCKET_MS,
    want: 1,
  },
  { name: "right after it", fromMs: BUCKET_MS + USAGE_BUCKET_MS, toMs: 2 * BUCKET_MS, want: 0 },
  { name: "up to its beginning", fromMs: 0, toMs: BUCKET_MS, want: 0 },
];

for (const c of ranges) {
  Deno.test(`usage() gives ${c.want} bucket: ${c.name}`, () => {
    using database = openDatabase(":memory:");
    const store = new SqliteAccountStore(database);
    store.addUsage([{ key: KEY, atMs: BUCKET_MS, count: ONE }]);
    assertEquals(store.usage({ fromMs: c.fromMs, toMs: c.toMs, tenant: null }).length, c.want);
    assertEquals(store.usage({ fromMs: c.fromMs, toMs: c.toMs, tenant: "t2" }), []);
  });
}

Deno.test("dropUsageBefore() removes older buckets, oldest first, at most `limit` a call", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  for (let i = 0; i < 5; i++) {
    store.addUsage([{ key: KEY, atMs: BUCKET_MS + i * USAGE_BUCKET_MS, count: ONE }]);
  }
  const beforeMs = BUCKET_MS + 3 * USAGE_BUCKET_MS;
  assertEquals(store.dropUsageBefore(beforeMs, 2), 2);
  assertEquals(store.dropUsageBefore(beforeMs, 2), 1);
  assertEquals(store.dropUsageBefore(beforeMs, 2), 0);
  assertEquals(store.usage({ fromMs: 0, toMs: 2 * BUCKET_MS, tenant: null })[0]?.bucketAtMs, beforeMs);
});

Deno.test("firstRunKeyHash() is null until saved, then the last saved", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  assertEquals(store.firstRunKeyHash(), null);
  store.saveFirstRunKeyHash("SENT-hash-1");
  store.saveFirstRunKeyHash("SENT-hash-2");
  assertEquals(new SqliteAccountStore(database).firstRunKeyHash(), "SENT-hash-2");
  assertThrows(() => store.saveFirstRunKeyHash(""), RangeError);
});

Deno.test("pinned() names the account until the ms at which the pin ends", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  store.pin("file-1", "a", 5_000);
  assertEquals(store.pinned("file-1", 4_999), "a");
  assertEquals(store.pinned("file-1", 5_000), null);
  assertEquals(store.pinned("file-2", 0), null);
  store.pin("file-1", "b", 9_000);
  assertEquals(new SqliteAccountStore(database).pinned("file-1", 5_000), "b");
  assertThrows(() => store.pin("", "a", 1), RangeError);
});

Deno.test("dropExpiredPins() removes ended pins, at most `limit` a call", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  for (const [i, endsAtMs] of [10, 20, 30, 31].entries()) store.pin(`file-${i}`, "a", endsAtMs);
  assertEquals(store.dropExpiredPins(30, 2), 2);
  assertEquals(store.dropExpiredPins(30, 2), 1);
  assertEquals(store.dropExpiredPins(30, 2), 0);
  assertEquals(store.pinned("file-3", 0), "a");
});

Deno.test("usage() with a limit gives the newest buckets, still oldest first", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  const at = (i: number) => BUCKET_MS + i * USAGE_BUCKET_MS;
  for (let i = 0; i < 4; i++) store.addUsage([{ key: KEY, atMs: at(i), count: ONE }]);
  const limited = (limit: number) =>
    store.usage({ fromMs: 0, toMs: 2 * BUCKET_MS, tenant: null, limit }).map((row) => row.bucketAtMs);
  assertEquals(limited(2), [at(2), at(3)]);
  assertEquals(limited(4), [at(0), at(1), at(2), at(3)]);
  assertEquals(limited(0), []);
});

Deno.test("usageTotals() adds the buckets of the range up, one row a key, for one tenant or all", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  const other: UsageKey = { ...KEY, tenant: "t2", model: "m2" };
  for (const atMs of [BUCKET_MS, BUCKET_MS + USAGE_BUCKET_MS, BUCKET_MS + 2 * USAGE_BUCKET_MS]) {
    store.addUsage([{ key: KEY, atMs, count: ONE }]);
  }
  store.addUsage([{ key: other, atMs: BUCKET_MS, count: { ...ONE, failures: 1 } }]);
  const range = { fromMs: BUCKET_MS, toMs: BUCKET_MS + 2 * USAGE_BUCKET_MS };
  const two: UsageCount = {
    requests: 2,
    failures: 0,
    inputTokens: 200,
    cachedTokens: 80,
    outputTokens: 14,
    reasoningTokens: 6,
  };
  assertEquals(store.usageTotals({ ...range, tenant: null }), [
    { key: KEY, count: two },
    { key: other, count: { ...ONE, failures: 1 } },
  ]);
  assertEquals(store.usageTotals({ ...range, tenant: "t1" }), [{ key: KEY, count: two }]);
  assertEquals(store.usageTotals({ ...range, tenant: "nobody" }), []);
});
