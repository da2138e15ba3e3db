/** What happens to the files while the store is open: locked by others, gone, replaced, flipped. */
import { assertEquals, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { StoreFailure } from "../../lib/ports.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { SqlitePoolStore } from "../../lib/store/pool_store.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { NOW_MS, putDeadline } from "./pool_records.ts";

const vanishings: readonly { name: string; says: string; happen(folder: TempFolder, path: string): void }[] =
  [
    { name: "the file is deleted", says: "vanished", happen: (_, path) => Deno.removeSync(path) },
    { name: "its log is deleted", says: "vanished", happen: (_, path) => Deno.removeSync(`${path}-wal`) },
    { name: "its lock is deleted", says: "vanished", happen: (_, path) => Deno.removeSync(`${path}.lock`) },
    {
      name: "its folder is deleted",
      says: "vanished",
      happen: (folder) => Deno.removeSync(folder.file("state"), { recursive: true }),
    },
    {
      name: "its folder is renamed",
      says: "vanished",
      happen: (folder) => Deno.renameSync(folder.file("state"), folder.file("moved")),
    },
    {
      name: "a copy takes its place",
      says: "replaced",
      happen: (_, path) => {
        Deno.copyFileSync(path, `${path}.copy`);
        Deno.renameSync(`${path}.copy`, path);
      },
    },
    {
      name: "a folder takes its place",
      says: "replaced",
      happen: (_, path) => {
        Deno.removeSync(path);
        Deno.mkdirSync(path);
      },
    },
  ];

for (const c of vanishings) {
  for (const durability of ["full", "normal"] as const) {
    Deno.test(`apply() acknowledges nothing (${durability}) once ${c.name}`, () => {
      using folder = new TempFolder();
      const path = folder.file("state/store.db");
      using database = openDatabase(path);
      const store = new SqlitePoolStore(database);
      store.apply([putDeadline("a")], NOW_MS);
      c.happen(folder, path);
      const change = durability === "full"
        ? putDeadline("b")
        : { kind: "put_ring_cursor", pool: "p", cursor: 1 } as const;
      const { message } = assertThrows(() => store.apply([change], NOW_MS), StoreFailure);
      assertEquals(message.includes(c.says), true, message);
      assertEquals(message.includes("\n"), false, message);
      assertThrows(() => store.apply([putDeadline("c")], NOW_MS), StoreFailure, message);
    });
  }
}

Deno.test("apply() waits for another program's lock no longer than it may, then fails for good", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  using database = openDatabase(path, { busyTimeoutMs: 20 });
  const store = new SqlitePoolStore(database);
  store.apply([putDeadline("a")], NOW_MS);
  {
    using other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    assertThrows(() => store.apply([putDeadline("b")], NOW_MS), StoreFailure, "keeps the database locked");
  }
  assertThrows(() => store.apply([putDeadline("b")], NOW_MS), StoreFailure, "keeps the database locked");
});

Deno.test("openDatabase() fails while another program keeps the file to itself, and works after", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  openDatabase(path).close();
  {
    using other = new DatabaseSync(path);
    other.exec("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE");
    assertThrows(() => openDatabase(path, { busyTimeoutMs: 20 }), StoreFailure, "keeps the database locked");
  }
  openDatabase(path).close();
});

Deno.test("a flipped byte is refused, or hits nothing but a value: no row is lost in silence", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  const accounts = Array.from({ length: 300 }, (_, i) => `account-${i}`);
  {
    using database = openDatabase(path);
    new SqlitePoolStore(database).apply(accounts.map((account) => putDeadline(account)), NOW_MS);
  }
  const sound = Deno.readFileSync(path);
  let refused = 0;
  for (const at of flippedOffsets(sound.length)) {
    const bytes = sound.slice();
    bytes[at]! ^= 0xff;
    Deno.writeFileSync(path, bytes);
    try {
      using database = openDatabase(path);
      assertEquals(new SqlitePoolStore(database).load().deadlines.length, accounts.length, `byte ${at}`);
    } catch (error) {
      if (!(error instanceof StoreFailure)) throw error;
      assertEquals(error.message.includes("\n"), false, error.message);
      assertEquals(Deno.readFileSync(path), bytes, `byte ${at}: the refused file was changed`);
      refused++;
    }
  }
  assertEquals(refused > 50, true, `only ${refused} flips were noticed`);
});

/** Each byte of the header, the head of each page, and every 311th byte. */
function flippedOffsets(length: number): Set<number> {
  const offsets = new Set(Array.from({ length: 100 }, (_, at) => at));
  for (let page = 4_096; page < length; page += 4_096) for (let at = 0; at < 8; at++) offsets.add(page + at);
  for (let at = 0; at < length; at += 311) offsets.add(at);
  return offsets;
}
