/** Real errors of SQLite and of the system, each in one line an operator can act on. */
import { assertEquals } from "@std/assert";
import { StoreFailure } from "../../lib/ports.ts";
import { isSqliteError, isSystemError, storeFailure } from "../../lib/store/store_error.ts";

const sqlite = (errcode: number | undefined, message: string) =>
  Object.assign(new Error(message), {
    code: "ERR_SQLITE_ERROR",
    ...(errcode === undefined ? {} : { errcode }),
  });
const system = (code: string) => Object.assign(new Error(`${code} (os error 0)`), { code });

const cases: readonly { name: string; error: unknown; says: string }[] = [
  { name: "busy, by code", error: sqlite(5, "x"), says: "another program keeps the database locked" },
  { name: "busy, by text", error: sqlite(undefined, "database is locked"), says: "another program keeps" },
  { name: "busy while recovering, an extended code", error: sqlite(261, "x"), says: "another program keeps" },
  { name: "read-only", error: sqlite(undefined, "attempt to write a readonly database"), says: "read-only" },
  {
    name: "input/output, an extended code",
    error: sqlite(1_034, "disk I/O error"),
    says: "input/output error",
  },
  { name: "damage, by text", error: sqlite(undefined, "database disk image is malformed"), says: "damaged" },
  { name: "full, by text", error: sqlite(undefined, "database or disk is full"), says: "the disk is full" },
  {
    name: "cannot open",
    error: sqlite(undefined, "unable to open database file: /x"),
    says: "cannot be opened",
  },
  { name: "no database", error: sqlite(26, "file is not a database"), says: "not a SQLite database" },
  {
    name: "anything else keeps SQLite's words",
    error: sqlite(1, "no such table: t"),
    says: "no such table: t",
  },
  { name: "only the first line of them", error: sqlite(1, "one\ntwo"), says: "one (/db)" },
  { name: "permission denied", error: system("EACCES"), says: "permission denied" },
  { name: "read-only file system", error: system("EROFS"), says: "file system is read-only" },
  { name: "disk full", error: system("ENOSPC"), says: "the disk is full" },
  { name: "something thrown that is no error", error: "odd", says: "odd (/db)" },
];

for (const c of cases) {
  Deno.test(`storeFailure() says what to do about: ${c.name}`, () => {
    const failure = storeFailure("try", "/db", c.error);
    assertEquals(failure.message.startsWith("Cannot try: "), true, failure.message);
    assertEquals(failure.message.includes(c.says), true, failure.message);
    assertEquals(failure.message.endsWith("(/db)"), true, failure.message);
    assertEquals(failure.cause, c.error);
  });
}

Deno.test("storeFailure() keeps a failure that was named already", () => {
  const failure = new StoreFailure("load", "a row is poisoned");
  assertEquals(storeFailure("try", "/db", failure), failure);
});

Deno.test("a mistake of the caller is neither SQLite's nor the system's error", () => {
  for (const error of [new TypeError("x"), new RangeError("x"), new Error("x"), "x", null]) {
    assertEquals([isSqliteError(error), isSystemError(error)], [false, false]);
  }
});
