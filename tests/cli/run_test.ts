import { assert, assertEquals, assertMatch } from "@std/assert";
import { type Command, EXIT_MEANINGS } from "../../lib/cli/command.ts";
import { COMMANDS } from "../../lib/cli/commands.ts";
import { VERSION } from "../../lib/version.ts";
import { CommandLine } from "../support/command_line.ts";

const all: readonly { readonly path: string; readonly command: Command }[] = COMMANDS.flatMap((command) => [
  { path: command.name, command },
  ...(command.subcommands ?? []).map((one) => ({ path: `${command.name} ${one.name}`, command: one })),
]);

const calls: readonly { words: string; code: number; out?: RegExp; err?: RegExp }[] = [
  { words: "--version", code: 0, out: new RegExp(`^holdfast ${VERSION.replaceAll(".", "\\.")}\\n$`) },
  { words: "-V", code: 0, out: /^holdfast / },
  { words: "--help", code: 0, out: /doctor +Look at/ },
  { words: "help", code: 0, out: /Exit codes:/ },
  { words: "help users add", code: 0, out: /Usage: holdfast users add NAME \[options\]/ },
  { words: "acounts", code: 2, err: /^There is no command "acounts"; did you mean accounts\?\n$/ },
  { words: "nonsense", code: 2, err: /see holdfast --help/ },
  { words: "users ad", code: 2, err: /There is no command "ad"; did you mean add\?/ },
  { words: "users add", code: 2, err: /NAME is missing.*\nSee: holdfast users add --help/ },
  { words: "clients", code: 2, err: /Commands:/ },
  { words: "doctor --ofline", code: 2, err: /There is no option --ofline; did you mean --offline\?/ },
  { words: "completions ksh", code: 2, err: /SHELL must be one of bash, zsh, fish/ },
  { words: "serve now", code: 2, err: /Cannot understand "now"/ },
];
for (const c of calls) {
  Deno.test(`holdfast ${c.words} ends with ${c.code}`, async () => {
    using line = new CommandLine();
    const run = await line.run(...c.words.split(" "));
    assertEquals(run.code, c.code);
    if (c.out !== undefined) assertMatch(run.out, c.out);
    if (c.err !== undefined) assertMatch(run.err, c.err);
    assertEquals([run.out === "", run.err === ""], [c.out === undefined, c.err === undefined]);
  });
}

Deno.test("a mistake under --json is one JSON document on stdout, and nothing else", async () => {
  using line = new CommandLine();
  const run = await line.run("users", "add", "--json");
  assertEquals([run.code, run.json.error.code, run.err], [2, "usage", ""]);
  const unknown = await line.run("nonsense", "--json");
  assertEquals([unknown.code, unknown.json.error.code, unknown.err], [2, "unknown_command", ""]);
});

Deno.test("a configuration with mistakes stops every command that reads it, each mistake on a line", async () => {
  using line = new CommandLine();
  line.configure({ prot: 1, "max-retry-interval": -1 });
  for (const words of [["accounts"], ["config", "show"], ["clients", "codex"], ["serve"]]) {
    const run = await line.run(...words);
    assertEquals(run.code, 2, words.join(" "));
    if (words[0] !== "serve") assertEquals(run.err.split("\n").length, 3, run.err);
  }
});

Deno.test("help is coloured on a terminal that wants colours only", async () => {
  using plain = new CommandLine({ terminal: 80 });
  using coloured = new CommandLine({ terminal: 80, coloured: true });
  assert(!(await plain.run("doctor", "--help")).out.includes("\x1b["));
  assert((await coloured.run("doctor", "--help")).out.includes("\x1b[1mUsage:\x1b[0m"));
});

for (const { path, command } of all) {
  Deno.test(`holdfast ${path} can be asked for help, with an example of itself`, async () => {
    using line = new CommandLine();
    const run = await line.run(...path.split(" "), "--help");
    assertEquals(run.code, 0);
    assert(run.out.startsWith(command.summary));
    assert(
      command.examples.some((example) => example.includes(`holdfast ${path}`) || path === "serve"),
      path,
    );
    assert(!command.summary.endsWith("."), "a summary is no sentence");
  });
}

Deno.test("every exit code is explained in the help", async () => {
  using line = new CommandLine();
  const { out } = await line.run("--help");
  for (const [code, meaning] of Object.entries(EXIT_MEANINGS)) {
    assert(out.includes(`  ${code}  ${meaning}\n`));
  }
});
