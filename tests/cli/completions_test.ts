import { assert, assertEquals } from "@std/assert";
import { CommandLine } from "../support/command_line.ts";

async function script(shell: string): Promise<string> {
  using line = new CommandLine();
  const run = await line.run("completions", shell);
  assertEquals(run.code, 0);
  return run.out;
}

/** What bash would offer after these words; the last one is being typed. */
async function offered(words: readonly string[]): Promise<string[]> {
  const lines = [
    await script("bash"),
    `COMP_WORDS=(holdfast ${words.map((word) => `'${word}'`).join(" ")})`,
    `COMP_CWORD=${words.length}`,
    "_holdfast",
    'printf "%s\\n" "${COMPREPLY[@]}"',
  ];
  const { stdout, code, stderr } = await new Deno.Command("bash", {
    args: ["--norc", "-c", lines.join("\n")],
    cwd: Deno.makeTempDirSync(),
  }).output();
  assertEquals([code, new TextDecoder().decode(stderr)], [0, ""]);
  return new TextDecoder().decode(stdout).split("\n").filter((word) => word !== "");
}

const cases: readonly { words: readonly string[]; want: readonly string[] }[] = [
  { words: ["do"], want: ["doctor"] },
  { words: ["--v"], want: ["--version"] },
  { words: ["accounts", "di"], want: ["disable"] },
  { words: ["config", "ch"], want: ["check"] },
  { words: ["clients", "c"], want: ["codex", "claude-code"] },
  { words: ["clients", "codex", "--w"], want: ["--write"] },
  { words: ["completions", "z"], want: ["zsh"] },
  { words: ["why", "m", "--pro"], want: ["--protocol"] },
  { words: ["doctor", "--of"], want: ["--offline"] },
];
for (const c of cases) {
  Deno.test(`completions bash offers ${c.want.join(", ")} after: ${c.words.join(" ")}`, async () => {
    assertEquals(await offered(c.words), c.want);
  });
}

for (const shell of ["zsh", "fish"]) {
  Deno.test(`completions ${shell} names every command and balances its quotes`, async () => {
    const text = await script(shell);
    for (const word of ["accounts", "topped-up", "reset-key", "offline", "claude-code"]) {
      assert(text.includes(word), word);
    }
    for (const line of text.split("\n")) {
      if (!line.startsWith("#")) assertEquals((line.match(/'/g)?.length ?? 0) % 2, 0, line);
    }
  });
}
