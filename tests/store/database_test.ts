/** Opening: which files are taken, which are refused, and that a refused file is left as it was. */
import { assertEquals, assertThrows } from "@std/assert";
import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { StoreFailure } from "../../lib/ports.ts";
import { type Database, openDatabase } from "../../lib/store/database.ts";
import { APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION } from "../../lib/store/migrations.ts";
import { SqlitePoolStore } from "../../lib/store/pool_store.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { deadline, NOW_MS, putDeadline } from "./pool_records.ts";

const EMPTY_DIGEST = createHash("sha256").digest("hex");
const KEPT = [{ account: "a", model: null, deadline: deadline() }];

/** A sound database holding one deadline, closed. */
function makeStore(path: string): void {
  using database = openDatabase(path);
  new SqlitePoolStore(database).apply([putDeadline("a")], NOW_MS);
}

function deadlinesIn(path: string): unknown {
  using database = openDatabase(path);
  return new SqlitePoolStore(database).load().deadlines;
}

/** @returns the message: one line that names the file */
function refusal(path: string, open: () => Database = () => openDatabase(path)): string {
  const { message } = assertThrows(() => open().close(), StoreFailure);
  assertEquals(message.includes("\n"), false, message);
  assertEquals(message.startsWith("Cannot open the database: "), true, message);
  assertEquals(message.includes(path), true, message);
  return message;
}

function pragma(database: Database, name: string, durability: "full" | "normal" = "normal"): unknown {
  if (durability === "normal") return database.read("look", (connection) => connection.pragma(name));
  return database.write("full", "look", (connection) => connection.pragma(name));
}

const names = [
  "plain.db",
  "a b.db",
  "a%20b.db",
  "a#b.db",
  "a?mode=memory.db",
  "file:x?mode=memory",
  "é 語 🚀.db",
  'it\'s "quoted".db',
];

for (const name of names) {
  Deno.test(`openDatabase() opens exactly the file named ${name}, and no other`, () => {
    using folder = new TempFolder();
    const inside = "a b%20c#d?e é";
    const path = folder.file(`${inside}/${name}`);
    for (const _run of ["first", "second"]) {
      makeStore(path);
      assertEquals(deadlinesIn(path), KEPT);
      assertEquals(folder.names(), [inside]);
      assertEquals(folder.names(inside), [name, `${name}.lock`].sort());
    }
  });
}

Deno.test("openDatabase() takes a path with .. and makes missing folders private", () => {
  using folder = new TempFolder();
  makeStore(folder.file("x/../state/holdfast/store.db"));
  assertEquals(deadlinesIn(folder.file("state/holdfast/store.db")), KEPT);
  assertEquals(folder.names(), ["state"]);
  assertEquals(modeOf(folder.file("state")), 0o700);
  assertEquals(modeOf(folder.file("state/holdfast")), 0o700);
});

Deno.test("openDatabase() keeps each of its files to the owner, also one that was open to others", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  makeStore(path);
  Deno.chmodSync(path, 0o644);
  using _database = openDatabase(path);
  for (const name of folder.names()) assertEquals([name, modeOf(folder.file(name))], [name, 0o600]);
  assertEquals(folder.names(), ["store.db", "store.db-shm", "store.db-wal", "store.db.lock"]);
});

Deno.test("openDatabase() syncs deadlines at each commit and the rest with the log", () => {
  using folder = new TempFolder();
  using database = openDatabase(folder.file("store.db"));
  assertEquals(pragma(database, "synchronous", "full"), 2);
  assertEquals(pragma(database, "synchronous", "normal"), 1);
  for (const durability of ["full", "normal"] as const) {
    assertEquals(pragma(database, "journal_mode", durability), "wal");
    assertEquals(pragma(database, "foreign_keys", durability), 1);
  }
  assertEquals(pragma(database, "application_id"), APPLICATION_ID);
  assertEquals(pragma(database, "user_version"), SCHEMA_VERSION);
});

Deno.test("openDatabase() makes every table strict", () => {
  using database = openDatabase(":memory:");
  const loose = database.read("look", (connection) =>
    connection.all(`SELECT name FROM pragma_table_list
                    WHERE schema = 'main' AND type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite_%'`));
  assertEquals(loose, []);
});

for (const path of ["", "a\0b"]) {
  Deno.test(`openDatabase() blames the caller for the path ${JSON.stringify(path)}`, () => {
    assertThrows(() => openDatabase(path), TypeError);
  });
}

Deno.test("openDatabase() refuses a second opening until the first is closed", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  makeStore(path);
  {
    using database = openDatabase(path);
    const message = refusal(path);
    assertEquals(message.includes(`another process (pid ${Deno.pid}) is using it`), true, message);
    new SqlitePoolStore(database).apply([putDeadline("b")], NOW_MS);
  }
  assertEquals((deadlinesIn(path) as unknown[]).length, 2);
});

// ---------------------------------------------------------------- damage

const damages: readonly { name: string; says: string; damage(path: string): void }[] = [
  {
    name: "zeros over the second page",
    says: "damaged",
    damage: (path) => overwrite(path, 4_096, new Uint8Array(4_096)),
  },
  {
    name: "zeros over the header",
    says: "not a SQLite database",
    damage: (path) => overwrite(path, 0, new Uint8Array(100)),
  },
  {
    name: "100 random bytes instead",
    says: "not a SQLite database",
    damage: (path) => Deno.writeFileSync(path, crypto.getRandomValues(new Uint8Array(100))),
  },
  {
    name: "five bytes of text instead",
    says: "not a SQLite database",
    damage: (path) => Deno.writeTextFileSync(path, "hello"),
  },
  {
    name: "the second half cut off",
    says: "damaged",
    damage: (path) => Deno.truncateSync(path, Deno.statSync(path).size / 2),
  },
  {
    name: "all cut off",
    says: "empty but held a database before",
    damage: (path) => Deno.truncateSync(path, 0),
  },
  {
    name: "gone, with a backup beside it",
    says: 'missing but a backup lies beside it; restore "store.db.v1.bak"',
    damage: (path) => Deno.renameSync(path, `${path}.v1.bak`),
  },
  {
    name: "empty, with a backup beside it",
    says: 'empty but a backup lies beside it; restore "store.db.bak"',
    damage: (path) => {
      Deno.renameSync(path, `${path}.bak`);
      Deno.writeFileSync(path, new Uint8Array());
    },
  },
  {
    name: "gone, with its log left behind",
    says: "missing but its write-ahead log is not",
    damage: (path) => Deno.renameSync(path, `${path}-wal`),
  },
  {
    name: "a folder in its place",
    says: "a folder is in the file's place",
    damage: (path) => {
      Deno.removeSync(path);
      Deno.mkdirSync(path);
    },
  },
  {
    name: "another program's database",
    says: "belongs to another program",
    damage: (path) => {
      Deno.removeSync(path);
      using other = new DatabaseSync(path);
      other.exec("CREATE TABLE notes (body TEXT)");
    },
  },
  {
    name: "a schema of a newer version",
    says: `its schema ${SCHEMA_VERSION + 1} is newer than ${SCHEMA_VERSION}`,
    damage: (path) => raw(path, `PRAGMA user_version = ${SCHEMA_VERSION + 1}`),
  },
];

for (const c of damages) {
  Deno.test(`openDatabase() refuses the file and leaves it as it was: ${c.name}`, () => {
    using folder = new TempFolder();
    const path = folder.file("store.db");
    makeStore(path);
    c.damage(path);
    const before = contents(folder);
    const message = refusal(path);
    assertEquals(message.includes(c.says), true, message);
    assertEquals(refusal(path), message);
    assertEquals(contents(folder), before);
  });
}

Deno.test("openDatabase() takes a file of 0 bytes for new where nothing says otherwise", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  Deno.writeFileSync(path, new Uint8Array());
  makeStore(path);
  assertEquals(deadlinesIn(path), KEPT);
});

Deno.test("openDatabase() starts anew where a start was killed before the schema was there", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  raw(path, "PRAGMA journal_mode = WAL");
  makeStore(path);
  assertEquals(deadlinesIn(path), KEPT);
});

Deno.test("openDatabase() recovers a log cut anywhere to the last commit in it", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  using database = openDatabase(path);
  const store = new SqlitePoolStore(database);
  for (let i = 0; i < 12; i++) store.apply([putDeadline(`a${i}`), putDeadline(`b${i}`)], NOW_MS);
  // What a power cut leaves: the file and a part of the log, copied while the store is open.
  const log = Deno.readFileSync(`${path}-wal`);
  const seen = new Set<number>();
  for (let cut = 0; cut <= log.length; cut += Math.ceil(log.length / 60)) {
    const copy = folder.file(`cut-${cut}.db`);
    Deno.copyFileSync(path, copy);
    Deno.writeFileSync(`${copy}-wal`, log.subarray(0, cut));
    const kept = cut === 0 ? [] : deadlinesIn(copy) as { account: string }[];
    const whole = kept.length / 2;
    const want = Array.from({ length: whole }, (_, i) => [`a${i}`, `b${i}`]).flat().sort();
    assertEquals(kept.map((row) => row.account).sort(), want);
    seen.add(whole);
  }
  assertEquals(seen.size > 5, true, `only ${seen.size} different states were tried`);
});

Deno.test("openDatabase() undoes a write that was cut off before the log was in use", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  const copy = folder.file("copy.db");
  makeStore(path);
  {
    using other = new DatabaseSync(path);
    // A cache of one page makes SQLite write into the file long before the commit.
    other.exec(`PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN;
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
      INSERT INTO ring_cursor SELECT 'pool ' || i, i FROM n; DELETE FROM deadline;`);
    for (const suffix of ["", "-journal"]) Deno.copyFileSync(path + suffix, copy + suffix);
  }
  const open = () => openDatabase(copy, { readOnly: true });
  assertEquals(refusal(copy, open).includes("a write was interrupted"), true);
  assertEquals(deadlinesIn(copy), KEPT);
  assertEquals(folder.names().filter((name) => name.startsWith("copy")), ["copy.db", "copy.db.lock"]);
});

// ---------------------------------------------------------------- older schema

/** Version 1, as the first release wrote it: pool and bindings, no users. */
function makeVersion1(path: string): void {
  raw(
    path,
    `PRAGMA journal_mode = WAL; BEGIN; ${MIGRATIONS[0]}; PRAGMA application_id = ${APPLICATION_ID};
     PRAGMA user_version = 1; COMMIT;
     INSERT INTO deadline VALUES ('a', '', ${NOW_MS + 7_200_000}, 'retry_after', 429, 'rate_limit_exceeded',
       'req_a:1', ${NOW_MS - 20}, ${NOW_MS});`,
  );
}

Deno.test("openDatabase() brings an older schema up to date after a copy of it", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  makeVersion1(path);
  assertEquals(deadlinesIn(path), KEPT);
  assertEquals(folder.names(), ["store.db", "store.db.lock", "store.db.v1.bak"]);
  assertEquals(modeOf(`${path}.v1.bak`), 0o600);
  using copy = new DatabaseSync(`${path}.v1.bak`, { readOnly: true });
  assertEquals({ ...copy.prepare("PRAGMA user_version").get() }, { user_version: 1 });
  assertEquals({ ...copy.prepare("SELECT account FROM deadline").get() }, { account: "a" });
  using database = openDatabase(path);
  assertEquals(pragma(database, "user_version"), SCHEMA_VERSION);
});

Deno.test("openDatabase() leaves an older schema as it was when any write of the migration fails", () => {
  for (let failing = 1;; failing++) {
    using folder = new TempFolder();
    const path = folder.file("store.db");
    makeVersion1(path);
    let writes = 0;
    const beforeWrite = () => {
      if (++writes === failing) {
        throw Object.assign(new Error("disk I/O error"), { code: "ERR_SQLITE_ERROR" });
      }
    };
    try {
      openDatabase(path, { beforeWrite }).close();
      assertEquals(failing > 4, true, `only ${failing - 1} writes`);
      return;
    } catch (error) {
      assertEquals(
        error instanceof StoreFailure && error.message.includes("input/output error"),
        true,
        `${error}`,
      );
    }
    assertEquals(versionOf(path), 1);
    assertEquals(folder.names().filter((name) => name.endsWith(".partial")), []);
    assertEquals(deadlinesIn(path), KEPT);
  }
});

// ---------------------------------------------------------------- looking only

Deno.test("openDatabase() with readOnly sees what the owner committed, and changes nothing", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  using owner = openDatabase(path);
  new SqlitePoolStore(owner).apply([putDeadline("a")], NOW_MS);
  using reader = openDatabase(path, { readOnly: true });
  const store = new SqlitePoolStore(reader);
  assertEquals(store.load().deadlines, KEPT);
  assertThrows(() => store.apply([putDeadline("b")], NOW_MS), StoreFailure, "read-only");
  new SqlitePoolStore(owner).apply([putDeadline("b")], NOW_MS);
  using later = openDatabase(path, { readOnly: true });
  assertEquals(new SqlitePoolStore(later).load().deadlines.length, 2);
});

Deno.test("openDatabase() with readOnly makes no file and migrates none", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  const open = () => openDatabase(path, { readOnly: true });
  assertEquals(refusal(path, open).includes("there is no database"), true);
  assertEquals(folder.names(), []);
  makeVersion1(path);
  assertEquals(refusal(path, open).includes("its schema 1 is older than"), true);
  assertEquals(versionOf(path), 1);
});

Deno.test("closing a reader does not let a second writer in", () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  using owner = openDatabase(path);
  openDatabase(path, { readOnly: true }).close();
  refusal(path);
  new SqlitePoolStore(owner).apply([putDeadline("a")], NOW_MS);
});

// ---------------------------------------------------------------- helpers

function raw(path: string, sql: string): void {
  using database = new DatabaseSync(path);
  database.exec(sql);
}

function versionOf(path: string): unknown {
  using database = new DatabaseSync(path, { readOnly: true });
  return (database.prepare("PRAGMA user_version").get() as { user_version: number }).user_version;
}

function overwrite(path: string, at: number, bytes: Uint8Array): void {
  using file = Deno.openSync(path, { write: true });
  file.seekSync(at, Deno.SeekMode.Start);
  file.writeSync(bytes);
}

function modeOf(path: string): number {
  return Deno.statSync(path).mode! & 0o777;
}

/** All files but the lock, whose text names the process that tried last, and what a mere reader leaves. */
function contents(folder: TempFolder): Record<string, string> {
  const files = folder.names().filter((name) => !/\.lock$|-shm$/.test(name));
  const digests = files.map((name) => {
    const path = folder.file(name);
    return [
      name,
      Deno.statSync(path).isDirectory
        ? "folder"
        : createHash("sha256").update(Deno.readFileSync(path)).digest("hex"),
    ];
  });
  return Object.fromEntries(
    digests.filter(([name, digest]) => !(name!.endsWith("-wal") && digest === EMPTY_DIGEST)),
  );
}
