import { assert, assertEquals, assertMatch } from "@std/assert";
import { codexProvider } from "../../lib/cli/client_settings.ts";
import {
  type Merge,
  mergeClaudeSettings,
  mergeCodexToml,
  mergeDotenv,
} from "../../lib/cli/merge_settings.ts";
import { FAKE_START_MS, FakeClock } from "../support/fake_clock.ts";
import { CommandLine } from "../support/command_line.ts";

function textOf(merge: Merge): string {
  if (!merge.ok) throw new Error(merge.problem);
  return merge.text;
}

const URL_8317 = "http://127.0.0.1:8317";
const OURS = `name = "Holdfast"
base_url = "${URL_8317}/v1"
env_key = "HOLDFAST_KEY"
wire_api = "responses"
requires_openai_auth = false
`;

const tomls: readonly { name: string; before: string; after: string }[] = [
  {
    name: "an empty file",
    before: "",
    after: `model_provider = "holdfast"\n\n[model_providers.holdfast]\n${OURS}`,
  },
  {
    name: "settings without tables",
    before: '# mine\nmodel = "gpt-5.5"\n',
    after: `# mine\nmodel = "gpt-5.5"\nmodel_provider = "holdfast"\n\n[model_providers.holdfast]\n${OURS}`,
  },
  {
    name: "another provider, comments and tables",
    before: `model = "gpt-5.5"\nmodel_provider = "other" # so far\n\n# tools\n[tools]\nweb_search = true\n`,
    after:
      `model = "gpt-5.5"\nmodel_provider = "holdfast"\n\n# tools\n[tools]\nweb_search = true\n\n[model_providers.holdfast]\n${OURS}`,
  },
  {
    name: "tables only",
    before: "# tools\n[tools]\nweb_search = true\n",
    after:
      `model_provider = "holdfast"\n# tools\n[tools]\nweb_search = true\n\n[model_providers.holdfast]\n${OURS}`,
  },
  {
    name: "our own table from before, with somebody's addition",
    before:
      `model_provider = "holdfast"\n[model_providers.holdfast]\nbase_url = "http://old"\nrequest_max_retries = 9\n[tools]\nx = 1\n`,
    after:
      `model_provider = "holdfast"\n[model_providers.holdfast]\n${OURS}request_max_retries = 9\n[tools]\nx = 1\n`,
  },
  {
    name: "an array over several lines",
    before: 'notify = [\n  "a",\n  "b",\n]\n[tools]\nx = 1\n',
    after:
      `notify = [\n  "a",\n  "b",\n]\nmodel_provider = "holdfast"\n\n[tools]\nx = 1\n\n[model_providers.holdfast]\n${OURS}`,
  },
];
for (const c of tomls) {
  Deno.test(`mergeCodexToml() changes our keys only: ${c.name}`, () => {
    const merged = mergeCodexToml(c.before, codexProvider(URL_8317));
    assertEquals(merged.ok ? merged.text : merged.problem, c.after);
    assertEquals(mergeCodexToml(c.after, codexProvider(URL_8317)), { ok: true, text: c.after, notes: [] });
  });
}

const refusedTomls: readonly { name: string; before: string; want: RegExp }[] = [
  { name: "no TOML", before: "model = ", want: /not TOML/ },
  {
    name: "providers in one line",
    before: "model_providers = { a = { name = 'a' } }\n",
    want: /only a person can edit/,
  },
  {
    name: "a text that looks like a table",
    before: 'x = """\n[model_providers.holdfast]\n"""\n',
    want: /only a person/,
  },
];
for (const c of refusedTomls) {
  Deno.test(`mergeCodexToml() refuses what it cannot merge with certainty: ${c.name}`, () => {
    const merged = mergeCodexToml(c.before, codexProvider(URL_8317));
    assertMatch(merged.ok ? merged.text : merged.problem, c.want);
    assertEquals(merged.ok, false);
  });
}

Deno.test("mergeCodexToml() keeps Windows line ends, and warns of a profile", () => {
  const merged = mergeCodexToml('profile = "work"\r\nmodel = "m"\r\n', codexProvider(URL_8317));
  assert(!/[^\r]\n/.test(textOf(merged)));
  assertEquals(merged.ok && merged.notes.length, 1);
});

Deno.test("mergeClaudeSettings() keeps everything else, and the indentation", () => {
  const before = '{\n    "model": "opus",\n    "env": {\n        "A": "b"\n    }\n}\n';
  const merged = mergeClaudeSettings(before, { ANTHROPIC_BASE_URL: URL_8317 });
  assertEquals(JSON.parse(textOf(merged)), { model: "opus", env: { A: "b", ANTHROPIC_BASE_URL: URL_8317 } });
  assertMatch(textOf(merged), /^\{\n {4}"model"/);
});

Deno.test("mergeClaudeSettings() warns of what would win over the key, and refuses what is no object", () => {
  const merged = mergeClaudeSettings('{"env":{"ANTHROPIC_API_KEY":"SENT-own"},"apiKeyHelper":"x"}', {});
  assertEquals(merged.ok ? merged.notes.length : 0, 2);
  for (const text of ["[]", "{", '{"env":[]}']) assertEquals(mergeClaudeSettings(text, {}).ok, false);
});

Deno.test("mergeDotenv() replaces a variable where it stands, and adds the others", () => {
  const merged = mergeDotenv("# mine\nexport OPENAI_API_KEY=old\nOTHER=1", {
    OPENAI_BASE_URL: "u",
    OPENAI_API_KEY: "k",
  });
  assertEquals(merged.ok && merged.text, "# mine\nexport OPENAI_API_KEY=k\nOTHER=1\nOPENAI_BASE_URL=u\n");
});

Deno.test("clients prints settings to paste, with a placeholder where no key is known", async () => {
  using line = new CommandLine();
  const codex = await line.run("clients", "codex");
  assert(codex.out.startsWith(`model_provider = "holdfast"\n\n[model_providers.holdfast]\n${OURS}`));
  assertMatch(codex.out, /Set HOLDFAST_KEY/);
  const claude = await line.run("clients", "claude-code", "--url", "https://ai.example/");
  assertMatch(
    claude.out,
    /^export ANTHROPIC_BASE_URL=https:\/\/ai\.example\nexport ANTHROPIC_AUTH_TOKEN=YOUR-CLIENT-KEY\n/,
  );
  const openai = await line.run("clients", "openai", "--json");
  assertEquals(
    openai.json.settings,
    `export OPENAI_BASE_URL=${URL_8317}/v1\nexport OPENAI_API_KEY=YOUR-CLIENT-KEY\n`,
  );
  using known = new CommandLine({ env: { HOLDFAST_KEY: "SENT-key'1" } });
  assertMatch((await known.run("clients", "claude-code")).out, /AUTH_TOKEN='SENT-key'\\''1'\n/);
  line.configure({ port: 0 });
  assertEquals((await line.run("clients", "codex")).code, 2);
});

Deno.test("clients --write merges into the client's file, keeps the old one, and does nothing twice", async () => {
  using line = new CommandLine({ clock: new FakeClock(), env: { HOLDFAST_KEY: "SENT-client-1" } });
  const settings = line.write("home/.claude/settings.json", '{"model":"opus"}', 0o644);
  const run = await line.run("clients", "claude-code", "--write", "--json");
  const stamp = new Date(FAKE_START_MS).toISOString().slice(0, 10).replaceAll("-", "");
  assertEquals([run.code, run.json.written], [0, true]);
  assertMatch(run.json.backup, new RegExp(`settings\\.json\\.before-holdfast-${stamp}-`));
  assertEquals(Deno.readTextFileSync(run.json.backup), '{"model":"opus"}');
  assertEquals(JSON.parse(Deno.readTextFileSync(settings)).env, {
    ANTHROPIC_BASE_URL: URL_8317,
    ANTHROPIC_AUTH_TOKEN: "SENT-client-1",
  });
  assertEquals(Deno.statSync(settings).mode! & 0o777, 0o600, "it holds a key now");
  const again = await line.run("clients", "claude-code", "--write");
  assertMatch(again.out, /has these settings already/);
  assertEquals(line.folder.names("home/.claude").length, 2);
});

Deno.test("clients --write makes a missing file, follows links, and leaves the mode of a file without a key", async () => {
  using line = new CommandLine();
  const real = line.write("dotfiles/config.toml", 'model = "m"\n', 0o644);
  Deno.mkdirSync(line.folder.file("home/.codex"));
  Deno.symlinkSync(real, line.folder.file("home/.codex/config.toml"));
  assertMatch((await line.run("clients", "codex", "--write")).out, /Set HOLDFAST_KEY/);
  assertMatch(Deno.readTextFileSync(real), /model_provider = "holdfast"/);
  assertEquals(Deno.statSync(real).mode! & 0o777, 0o644);
  assert(Deno.lstatSync(line.folder.file("home/.codex/config.toml")).isSymlink);
  const made = await line.run("clients", "codex", "--write", "--file", "fresh/config.toml", "--json");
  assertEquals([made.json.written, made.json.backup], [true, null]);
});

Deno.test("clients --write needs a key where the settings hold one, and says where it cannot merge", async () => {
  using line = new CommandLine();
  const keyless = await line.run("clients", "openai", "--write");
  assertEquals(keyless.code, 2);
  assertMatch(keyless.err, /holdfast users add NAME/);
  line.configure({ "api-keys": ["SENT-static"] });
  assertEquals((await line.run("clients", "openai", "--write")).code, 0);
  assertMatch(Deno.readTextFileSync(line.folder.file(".env")), /OPENAI_API_KEY=SENT-static/);
  line.write("home/.codex/config.toml", "model = ");
  const refused = await line.run("clients", "codex", "--write");
  assertEquals(refused.code, 1);
  assertMatch(refused.err, /Cannot merge into .*config\.toml: it is not TOML/);
  assertEquals(Deno.readTextFileSync(line.folder.file("home/.codex/config.toml")), "model = ");
});
