import { assertEquals, assertMatch } from "@std/assert";
import { SqliteAccountStore } from "../../lib/store/account_store.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { CommandLine } from "../support/command_line.ts";
import { startRig } from "../support/rig.ts";

Deno.test("backup copies the database of a running Holdfast, whole and private, and never over a file", async () => {
  await using rig = await startRig({ accounts: [] });
  await (await rig.admin("users", { method: "POST", body: '{"name":"Ada"}' })).text();
  using line = new CommandLine();
  line.configure({ database: { path: rig.config().databasePath } });
  const run = await line.run("backup", "copies/today.db", "--json");
  assertEquals([run.code, run.json.to], [0, line.folder.file("copies/today.db")]);
  assertEquals(Deno.statSync(run.json.to).mode! & 0o777, 0o600);
  using copy = openDatabase(run.json.to, { readOnly: true });
  assertEquals(new SqliteAccountStore(copy).users().map(({ name }) => name), ["Ada"]);
  const again = await line.run("backup", "copies/today.db");
  assertEquals(again.code, 1);
  assertMatch(again.err, /a file of that name exists already/);
});

Deno.test("backup says that there is no database yet", async () => {
  using line = new CommandLine();
  line.configure({ database: { path: line.folder.file("none.db") } });
  const run = await line.run("backup", "copy.db");
  assertEquals(run.code, 1);
  assertMatch(run.err, /there is no database/);
});
