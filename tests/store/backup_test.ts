import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { StoreFailure } from "../../lib/ports.ts";
import { backupDatabase } from "../../lib/store/backup.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { SqlitePoolStore } from "../../lib/store/pool_store.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { NOW_MS, putDeadline } from "./pool_records.ts";

function accountsIn(path: string): string[] {
  using database = openDatabase(path);
  return new SqlitePoolStore(database).load().deadlines.map((row) => row.account);
}

Deno.test("backupDatabase() copies what a running process has committed, and disturbs it in nothing", async () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  const to = folder.file("backups/it's a #copy?.db");
  using database = openDatabase(path);
  const store = new SqlitePoolStore(database);
  store.apply([putDeadline("a")], NOW_MS);
  await backupDatabase(path, to);
  store.apply([putDeadline("b")], NOW_MS);
  assertEquals(folder.names("backups"), ["it's a #copy?.db"]);
  assertEquals(Deno.statSync(to).mode! & 0o777, 0o600);
  assertEquals(accountsIn(to), ["a"]);
  assertEquals(store.load().deadlines.length, 2);
  assertThrows(() => openDatabase(path), StoreFailure, "another process");
});

Deno.test("backupDatabase() makes a file from which a lost database is restored", async () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  {
    using database = openDatabase(path);
    new SqlitePoolStore(database).apply([putDeadline("a")], NOW_MS);
  }
  await backupDatabase(path, `${path}.bak`);
  Deno.truncateSync(path, 0);
  assertThrows(() => openDatabase(path), StoreFailure, 'restore "store.db.bak"');
  Deno.renameSync(`${path}.bak`, path);
  assertEquals(accountsIn(path), ["a"]);
});

const refusals: readonly { name: string; prepare(from: string, to: string): void; says: string }[] = [
  { name: "there is no database", prepare: (from) => Deno.removeSync(from), says: "there is no database" },
  {
    name: "the target exists",
    prepare: (_, to) => Deno.writeTextFileSync(to, "precious"),
    says: "exists already",
  },
  { name: "the target is a folder", prepare: (_, to) => Deno.mkdirSync(to), says: "exists already" },
  {
    name: "the target is a dead link",
    prepare: (_, to) => Deno.symlinkSync("nowhere", to),
    says: "exists already",
  },
];

for (const c of refusals) {
  Deno.test(`backupDatabase() refuses and writes nothing when ${c.name}`, async () => {
    using folder = new TempFolder();
    const [from, to] = [folder.file("store.db"), folder.file("copy.db")];
    openDatabase(from).close();
    c.prepare(from, to);
    const before = folder.names();
    const content = contentOf(to);
    await assertRejects(() => backupDatabase(from, to), StoreFailure, c.says);
    assertEquals([folder.names(), contentOf(to)], [before, content]);
  });
}

function contentOf(path: string): string | null {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return null;
  }
}
