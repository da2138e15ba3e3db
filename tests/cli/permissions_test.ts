/** What the program may do as `deno task start` runs it is enough for all it has to do. */
import { assertEquals } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION } from "../../lib/store/migrations.ts";
import { fromFileUrl } from "../support/paths.ts";
import { TempFolder } from "../support/temp_folder.ts";

const ROOT = new URL("../../", import.meta.url);
const TASKS: Record<string, string> = JSON.parse(Deno.readTextFileSync(new URL("deno.json", ROOT))).tasks;

/** `deno run --allow-… main.ts`, and what comes behind it. */
async function holdfast(folder: TempFolder, ...args: readonly string[]): Promise<string> {
  const [, ...words] = TASKS["start"]!.split(" ");
  const flags = words.filter((word) => word.startsWith("--"));
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...flags, fromFileUrl(new URL("main.ts", ROOT)), ...args],
    cwd: folder.path,
    env: { HOME: folder.path, NO_COLOR: "1" },
    stdout: "piped",
    stderr: "piped",
  }).output();
  const text = new TextDecoder();
  return `${code} ${text.decode(stdout)}${text.decode(stderr)}`.trim();
}

function configure(folder: TempFolder): string {
  const config = folder.file("holdfast.yaml");
  const database = { path: folder.file("store.db") };
  Deno.mkdirSync(folder.file("accounts"));
  Deno.writeTextFileSync(config, JSON.stringify({ "auth-dir": folder.file("accounts"), database }));
  return config;
}

Deno.test("the database can be copied with the permissions of the start task", async () => {
  using folder = new TempFolder();
  const config = configure(folder);
  const made = await holdfast(folder, "users", "add", "Ada", "--config", config);
  assertEquals(made.split(" ")[0], "0", made);
  const told = await holdfast(folder, "backup", folder.file("copy.db"), "--config", config);
  assertEquals(told, `0 Copied to ${folder.file("copy.db")}`);
  using copy = new DatabaseSync(folder.file("copy.db"), { readOnly: true });
  assertEquals({ ...copy.prepare("SELECT name FROM managed_user").get() }, { name: "Ada" });
});

Deno.test("an older database is brought up to date with the permissions of the start task", async () => {
  using folder = new TempFolder();
  const config = configure(folder);
  {
    using old = new DatabaseSync(folder.file("store.db"));
    old.exec(
      `PRAGMA journal_mode = WAL; BEGIN; ${MIGRATIONS[0]}; PRAGMA application_id = ${APPLICATION_ID};
       PRAGMA user_version = 1; COMMIT;`,
    );
  }
  const made = await holdfast(folder, "users", "add", "Ada", "--config", config);
  assertEquals(made.split(" ")[0], "0", made);
  const version = (name: string) => {
    using database = new DatabaseSync(folder.file(name), { readOnly: true });
    return database.prepare("PRAGMA user_version").get()!["user_version"];
  };
  assertEquals([version("store.db.v1.bak"), version("store.db")], [1, SCHEMA_VERSION]);
});
