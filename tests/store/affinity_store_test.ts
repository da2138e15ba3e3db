import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import type { BindingRow } from "../../lib/ports.ts";
import { type AffinityLimits, CACHED_BINDINGS, SqliteAffinityStore } from "../../lib/store/affinity_store.ts";
import { type Database, openDatabase } from "../../lib/store/database.ts";
import { TempFolder } from "../support/temp_folder.ts";

const TTL_MS = 3_600_000;
const NOW_MS = 1_800_000_000_000;

function binding(session: string, account: string, createdAtMs = NOW_MS): BindingRow {
  return { session, account, createdAtMs, expiresAtMs: createdAtMs + TTL_MS };
}

/** Each case sees the store as it stands, and again with a cache of one row, so that the table answers. */
function eachStore(name: string, test: (store: SqliteAffinityStore, database: Database) => void): void {
  const variants: readonly [string, AffinityLimits][] = [["cached", {}], ["from the table", { cached: 1 }]];
  for (const [variant, limits] of variants) {
    Deno.test(`${name} (${variant})`, () => {
      using database = openDatabase(":memory:");
      test(new SqliteAffinityStore(database, limits), database);
    });
  }
}

eachStore("get() is null for a session nobody bound", (store) => {
  assertEquals(store.get("s"), null);
});

eachStore("bind() keeps the first writer, also when the second names another account", (store) => {
  assertEquals(store.bind(binding("s", "a")), binding("s", "a"));
  store.bind(binding("other", "x"));
  assertEquals(store.bind(binding("s", "b", NOW_MS + 1)), binding("s", "a"));
  assertEquals(store.get("s"), binding("s", "a"));
  assertEquals(store.count(), 2);
});

Deno.test("the store keeps 16,384 bindings in memory, those used last, however many there are", () => {
  using database = openDatabase(":memory:");
  // Bound by somebody who has nothing in memory; then all are looked up once, the first one once more.
  const writer = new SqliteAffinityStore(database, { cached: 1 });
  for (let at = 0; at <= CACHED_BINDINGS; at++) writer.bind(binding(`s${at}`, "a"));
  const reader = new SqliteAffinityStore(database);
  for (let at = 0; at < CACHED_BINDINGS; at++) reader.get(`s${at}`);
  reader.get("s0");
  reader.get(`s${CACHED_BINDINGS}`);
  // What is answered now comes from memory.
  database.write("normal", "empty the table", (connection) => connection.run("DELETE FROM binding"));
  assertEquals(CACHED_BINDINGS, 16_384);
  assertEquals(reader.get("s0")?.account, "a");
  assertEquals(reader.get("s1"), null);
  assertEquals(reader.get(`s${CACHED_BINDINGS}`)?.account, "a");
});

const ends: readonly { name: string; afterMs: number; want: string }[] = [
  { name: "last ms of the old row", afterMs: TTL_MS - 1, want: "a" },
  { name: "the ms at which it ends", afterMs: TTL_MS, want: "b" },
  { name: "the ms after", afterMs: TTL_MS + 1, want: "b" },
];

for (const c of ends) {
  eachStore(`bind() gives the session to account ${c.want}: ${c.name}`, (store) => {
    store.bind(binding("s", "a"));
    store.bind(binding("other", "x"));
    assertEquals(store.bind(binding("s", "b", NOW_MS + c.afterMs)).account, c.want);
    assertEquals(store.get("s")?.account, c.want);
    assertEquals(store.count(), 2);
  });

  eachStore(`compareAndSet() from another account answers ${c.want}: ${c.name}`, (store) => {
    store.bind(binding("s", "a"));
    const nowMs = NOW_MS + c.afterMs;
    assertEquals(store.compareAndSet("s", "z", "b", nowMs, nowMs + TTL_MS).account, c.want);
  });
}

eachStore("compareAndSet() moves the row of `from`, keeping its age", (store) => {
  store.bind(binding("s", "a"));
  const want = { session: "s", account: "b", createdAtMs: NOW_MS, expiresAtMs: NOW_MS + 5 + TTL_MS };
  assertEquals(store.compareAndSet("s", "a", "b", NOW_MS + 5, NOW_MS + 5 + TTL_MS), want);
  store.bind(binding("other", "x"));
  assertEquals(store.get("s"), want);
  assertEquals(store.count(), 2);
});

eachStore("compareAndSet() lets the loser see the winner", (store) => {
  store.bind(binding("s", "a"));
  store.compareAndSet("s", "a", "b", NOW_MS, NOW_MS + TTL_MS);
  assertEquals(store.compareAndSet("s", "a", "c", NOW_MS, NOW_MS + TTL_MS).account, "b");
});

eachStore("compareAndSet() binds anew where no row is left", (store) => {
  assertEquals(store.compareAndSet("s", "a", "b", NOW_MS, NOW_MS + TTL_MS), binding("s", "b"));
  assertEquals(store.count(), 1);
});

eachStore("renew() lengthens and never shortens", (store) => {
  store.bind(binding("s", "a"));
  store.renew("s", NOW_MS + 2 * TTL_MS);
  store.bind(binding("other", "x"));
  assertEquals(store.get("s")?.expiresAtMs, NOW_MS + 2 * TTL_MS);
  store.renew("s", NOW_MS + TTL_MS);
  assertEquals(store.get("s")?.expiresAtMs, NOW_MS + 2 * TTL_MS);
  store.renew("unknown", NOW_MS + TTL_MS);
  assertEquals(store.get("unknown"), null);
});

eachStore("a renewal is on disk after flush(), not before", (store, database) => {
  store.bind(binding("s", "a"));
  store.renew("s", NOW_MS + 2 * TTL_MS);
  assertEquals(new SqliteAffinityStore(database).get("s")?.expiresAtMs, NOW_MS + TTL_MS);
  store.flush();
  assertEquals(new SqliteAffinityStore(database).get("s")?.expiresAtMs, NOW_MS + 2 * TTL_MS);
});

Deno.test("renew() writes by itself when as many wait as it may hold back", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAffinityStore(database, { pending: 2 });
  for (const session of ["s", "t"]) {
    store.bind(binding(session, "a"));
    store.renew(session, NOW_MS + 2 * TTL_MS);
  }
  assertEquals(new SqliteAffinityStore(database).get("s")?.expiresAtMs, NOW_MS + 2 * TTL_MS);
});

eachStore("a pending renewal does not undo a later move", (store, database) => {
  store.bind(binding("s", "a"));
  store.renew("s", NOW_MS + 3 * TTL_MS);
  store.compareAndSet("s", "a", "b", NOW_MS + 1, NOW_MS + 2 * TTL_MS);
  store.flush();
  const want = { session: "s", account: "b", createdAtMs: NOW_MS, expiresAtMs: NOW_MS + 2 * TTL_MS };
  assertEquals(store.get("s"), want);
  assertEquals(new SqliteAffinityStore(database).get("s"), want);
});

eachStore("dropAccount() frees its sessions, and only its", (store, database) => {
  for (const [session, account] of [["s", "a"], ["t", "a"], ["u", "b"]] as const) {
    store.bind(binding(session, account));
  }
  store.dropAccount("a");
  store.dropAccount("unknown");
  assertEquals([store.get("s"), store.get("t"), store.get("u")?.account], [null, null, "b"]);
  assertEquals(store.count(), 1);
  assertEquals(new SqliteAffinityStore(database).count(), 1);
});

eachStore(
  "dropAccount() does not give the old sessions to an account of the same name added later",
  (store, database) => {
    store.bind(binding("s", "a"));
    store.dropAccount("a");
    store.bind(binding("t", "a"));
    assertEquals(store.get("s"), null);
    assertEquals(new SqliteAffinityStore(database).get("s"), null);
    assertEquals(store.bind(binding("s", "b")).account, "b");
    assertEquals(store.count(), 2);
  },
);

eachStore("dropExpired() removes what has ended, at most `limit` a call", (store) => {
  for (let i = 0; i < 5; i++) store.bind(binding(`s${i}`, "a", NOW_MS + i));
  const endOfThird = NOW_MS + 2 + TTL_MS;
  assertEquals(store.dropExpired(endOfThird, 2), 2);
  assertEquals(store.dropExpired(endOfThird, 2), 1);
  assertEquals(store.dropExpired(endOfThird, 2), 0);
  assertEquals(store.count(), 2);
  assertEquals([store.get("s2"), store.get("s3")?.session], [null, "s3"]);
});

eachStore("dropExpired() spares a row whose renewal is not written yet", (store) => {
  store.bind(binding("s", "a"));
  store.bind(binding("t", "a"));
  store.renew("s", NOW_MS + 2 * TTL_MS);
  assertEquals(store.dropExpired(NOW_MS + TTL_MS, 10), 1);
  assertEquals(store.get("s")?.account, "a");
});

eachStore("dropExpired() removes the ended rows of dropped accounts too", (store, database) => {
  store.bind(binding("s", "a"));
  store.dropAccount("a");
  assertEquals(store.dropExpired(NOW_MS + TTL_MS, 10), 1);
  assertEquals(store.count(), 0);
  assertEquals(
    database.read("count", (connection) => connection.get("SELECT count(*) AS n FROM binding")!.n),
    0,
  );
});

Deno.test("bind() makes room for a new session by removing those that end first", () => {
  using database = openDatabase(":memory:");
  const store = new SqliteAffinityStore(database, { bindings: 3 });
  for (let i = 0; i < 3; i++) store.bind(binding(`s${i}`, "a", NOW_MS + i));
  store.bind(binding("s3", "a", NOW_MS + 3));
  assertEquals(store.get("s0"), null);
  assertEquals(store.get("s3")?.account, "a");
  assertEquals(store.count() <= 3, true);
  assertEquals(new SqliteAffinityStore(database).count(), store.count());
});

const mistakes: readonly { name: string; row: BindingRow }[] = [
  { name: "an empty session", row: binding("", "a") },
  { name: "an empty account", row: binding("s", "") },
  { name: "an end with a fraction", row: { ...binding("s", "a"), expiresAtMs: 1.5 } },
];

for (const c of mistakes) {
  Deno.test(`bind() blames the caller and binds nothing: ${c.name}`, () => {
    using database = openDatabase(":memory:");
    const store = new SqliteAffinityStore(database);
    assertThrows(() => store.bind(c.row), RangeError);
    assertEquals(store.count(), 0);
    assertEquals(new SqliteAffinityStore(database).count(), 0);
  });
}

type Step =
  | { readonly kind: "bind" | "renew"; readonly session: string; readonly account: string }
  | { readonly kind: "move"; readonly session: string; readonly account: string; readonly from: string }
  | { readonly kind: "drop"; readonly account: string }
  | { readonly kind: "expire" | "reopen" | "wait" };

const session = fc.constantFrom("s", "t", "u", "v");
const account = fc.constantFrom("a", "b", "c");
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom("bind", "renew"), session, account }),
  fc.record({ kind: fc.constant("move" as const), session, account, from: account }),
  fc.record({ kind: fc.constant("drop" as const), account }),
  fc.record({ kind: fc.constantFrom("expire", "reopen", "wait") }),
);

Deno.test("the store answers like a plain map, whatever the order of calls and restarts", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.constantFrom(1, 2, 100), (steps, cached) => {
      using database = openDatabase(":memory:");
      let store = new SqliteAffinityStore(database, { cached });
      const model = new Map<string, BindingRow>();
      let nowMs = NOW_MS;
      for (const next of steps) {
        const expiresAtMs = nowMs + TTL_MS;
        switch (next.kind) {
          case "bind": {
            const held = model.get(next.session);
            if (held === undefined || held.expiresAtMs <= nowMs) {
              model.set(next.session, binding(next.session, next.account, nowMs));
            }
            assertEquals(store.bind(binding(next.session, next.account, nowMs)), model.get(next.session));
            break;
          }
          case "move": {
            const held = model.get(next.session);
            if (held === undefined || held.expiresAtMs <= nowMs) {
              model.set(next.session, binding(next.session, next.account, nowMs));
            } else if (held.account === next.from) {
              model.set(next.session, { ...held, account: next.account, expiresAtMs });
            }
            const got = store.compareAndSet(next.session, next.from, next.account, nowMs, expiresAtMs);
            assertEquals(got, model.get(next.session));
            break;
          }
          case "renew": {
            const held = model.get(next.session);
            if (held !== undefined) {
              model.set(next.session, { ...held, expiresAtMs: Math.max(held.expiresAtMs, expiresAtMs) });
            }
            store.renew(next.session, expiresAtMs);
            break;
          }
          case "drop":
            for (const [key, row] of model) if (row.account === next.account) model.delete(key);
            store.dropAccount(next.account);
            break;
          case "expire":
            for (const [key, row] of model) if (row.expiresAtMs <= nowMs) model.delete(key);
            while (store.dropExpired(nowMs, 2) === 2);
            break;
          case "reopen":
            store.flush();
            store = new SqliteAffinityStore(database, { cached });
            break;
          case "wait":
            nowMs += TTL_MS / 2;
        }
        for (const key of ["s", "t", "u", "v"]) assertEquals(store.get(key), model.get(key) ?? null);
        assertEquals(store.count(), model.size);
      }
    }),
    { numRuns: 300 },
  );
});

Deno.test("bindings are there after the file was closed and opened again", () => {
  using folder = new TempFolder();
  const path = folder.file("holdfast.db");
  {
    using database = openDatabase(path);
    const store = new SqliteAffinityStore(database);
    store.bind(binding("s", "a"));
    store.bind(binding("t", "b"));
    store.compareAndSet("t", "b", "a", NOW_MS, NOW_MS + TTL_MS);
  }
  using database = openDatabase(path);
  const store = new SqliteAffinityStore(database);
  assertEquals([store.get("s")?.account, store.get("t")?.account, store.count()], ["a", "a", 2]);
});
