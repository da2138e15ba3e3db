import { assert, assertEquals, assertMatch } from "@std/assert";
import { CommandLine } from "../support/command_line.ts";

Deno.test("config check is fine with no file, and says so", async () => {
  using line = new CommandLine();
  const run = await line.run("config");
  assertEquals([run.code, run.out], [0, "There is no file; the defaults are used\n"]);
});

Deno.test("config check names every mistake of the file with its path, and ends as serve does, with 2", async () => {
  using line = new CommandLine();
  line.configure({ prot: 1, "api-keys": "SENT-key-1", "max-retry-interval": -1 });
  const run = await line.run("config", "check");
  assertEquals([run.code, run.err], [2, ""]);
  assertMatch(run.out, /holdfast\.yaml has 3 mistakes\n/);
  assertMatch(run.out, / {2}"prot" is not a known key; did you mean "port"\?\n/);
  assert(!run.out.includes("SENT-"));
  const json = (await line.run("config", "check", "--json")).json;
  assertEquals([json.ok, json.mistakes.length], [false, 3]);
});

Deno.test("config check reads the file it is given, else the one of --config, the variable, the folder, the home", async () => {
  const good = { port: 1_001 };
  using line = new CommandLine({ env: { HOLDFAST_CONFIG: "" } });
  const named = line.write("named.yaml", JSON.stringify(good));
  assertEquals((await line.run("config", "check", named, "--json")).json.path, named);
  assertEquals((await line.run("config", "check", "--config", "named.yaml", "--json")).json.path, named);
  const inHome = line.write("home/.config/holdfast/holdfast.yaml", JSON.stringify(good));
  assertEquals((await line.run("config", "check", "--json")).json.path, inHome);
  line.configure(good);
  assertEquals((await line.run("config", "check", "--json")).json.path, line.folder.file("holdfast.yaml"));
  const missing = await line.run("config", "check", "missing.yaml");
  assertEquals(missing.code, 2);
  assertMatch(missing.err, /there is no such file/);
  using byVariable = new CommandLine({ env: { HOLDFAST_CONFIG: named } });
  assertEquals((await byVariable.run("config", "check", "--json")).json.path, named);
  const xdg = line.write("xdg/holdfast/holdfast.yaml", JSON.stringify(good));
  using byXdg = new CommandLine({ env: { XDG_CONFIG_HOME: line.folder.file("xdg") } });
  assertEquals((await byXdg.run("config", "check", "--json")).json.path, xdg);
});

Deno.test("config show gives the configuration in effect without its secrets", async () => {
  using line = new CommandLine();
  line.configure({ port: 1_002, "admin-api-key": "SENT-admin", "api-keys": ["SENT-client"] });
  const run = await line.run("config", "show");
  assertMatch(run.out, /^host: 127\.0\.0\.1\nport: 1002\n/);
  const json = await line.run("config", "show", "--json");
  assertEquals(json.json["admin-api-key"], "(hidden)");
  assert(!`${run.out}${json.out}`.includes("SENT-"));
});

Deno.test("config schema is a JSON Schema, with and without --json", async () => {
  using line = new CommandLine();
  const text = JSON.parse((await line.run("config", "schema")).out);
  assertEquals(text, (await line.run("config", "schema", "--json")).json);
  assertEquals(text.properties.port.default, 8317);
});

const CLIPROXYAPI = `host: "127.0.0.1"
port: 9000
auth-dir: "~/.cli-proxy-api"
api-keys: [SENT-client-1]
remote-management: { secret-key: "$2b$hash" }
ws-auth: true
`;

Deno.test("config import prints a whole configuration, with what was not carried over as comments", async () => {
  using line = new CommandLine();
  line.write("cpa.yaml", CLIPROXYAPI);
  line.write(
    "home/.cli-proxy-api/claude-me.json",
    JSON.stringify({ type: "claude", access_token: "SENT-c", refresh_token: "SENT-r" }),
  );
  line.write(
    "home/.cli-proxy-api/codex-me.json",
    JSON.stringify({ type: "codex", access_token: "SENT-a", refresh_token: "SENT-b" }),
  );
  const run = await line.run("config", "import", "cpa.yaml");
  assertEquals(run.code, 0);
  assertMatch(run.out, /^# not carried over: remote-management.secret-key is stored as a hash/);
  assert(!/SENT-[abcr]\b/.test(run.out), "tokens stay in their files");
  line.write("made.yaml", run.out);
  assertEquals((await line.run("config", "check", "made.yaml")).code, 0);
  const { json } = await line.run("config", "import", "cpa.yaml", "--json");
  assertEquals([json.from, json.config.port, json.mistakes], ["cliproxyapi", 9000, []]);
  assertEquals(json.config.providers[0].accounts, [
    { id: "login", credentials: `${line.home}/.cli-proxy-api/claude-me.json` },
  ]);
});

Deno.test("config import writes a private file once, and never over another", async () => {
  using line = new CommandLine();
  line.write("cpa.yaml", CLIPROXYAPI);
  const run = await line.run("config", "import", "cpa.yaml", "--output", "holdfast.yaml");
  assertMatch(run.out, /^Wrote holdfast\.yaml; not carried over:\n/);
  assert(!run.out.includes("SENT-"));
  assertEquals(Deno.statSync(line.folder.file("holdfast.yaml")).mode! & 0o777, 0o600);
  assertEquals((await line.run("config", "check")).code, 0);
  const again = await line.run("config", "import", "cpa.yaml", "--output", "holdfast.yaml");
  assertEquals([again.code, again.err], [1, "Cannot write holdfast.yaml: it exists already\n"]);
});

const refusals: readonly {
  name: string;
  text: string | null;
  words?: readonly string[];
  code: number;
  want: RegExp;
}[] = [
  { name: "a file that is not there", text: null, code: 2, want: /there is no such file/ },
  { name: "one that is not YAML", text: "a: [", code: 1, want: /Cannot convert other\.yaml: / },
  { name: "a list", text: "[]", code: 1, want: /it holds no mapping/ },
  { name: "one of nobody's", text: "port: 1\n", code: 2, want: /say it with --from/ },
];
for (const c of refusals) {
  Deno.test(`config import refuses by name: ${c.name}`, async () => {
    using line = new CommandLine();
    if (c.text !== null) line.write("other.yaml", c.text);
    const run = await line.run("config", "import", "other.yaml");
    assertEquals(run.code, c.code);
    assertMatch(run.err, c.want);
  });
}

Deno.test("config import tells of what the new configuration does not allow, and ends with 1", async () => {
  using line = new CommandLine();
  line.write("cop.yaml", "admin-api-key: SENT-a\ncodex-base-url: http://example.test\n");
  const run = await line.run("config", "import", "cop.yaml");
  assertEquals(run.code, 1);
  assertMatch(run.out, /# mistake: .*codex-base-url" must be an https URL/);
});
