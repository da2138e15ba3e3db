/** docs/operations.md and its Chinese twin: every command and metric in them exists, and they say the same things. */
import { assert, assertEquals } from "@std/assert";
import type { Command } from "../../lib/cli/command.ts";
import { COMMANDS } from "../../lib/cli/commands.ts";
import { parseArguments } from "../../lib/cli/args.ts";
import { ADMIN_KEY, startRig } from "../support/rig.ts";

const FILES = { en: "docs/operations.md", zh: "docs/zh/operations.md" } as const;

function read(path: string): string {
  return Deno.readTextFileSync(new URL(`../../${path}`, import.meta.url));
}

/** Everything that is written as code, in blocks and in lines. */
function codeOf(text: string): string[] {
  const blocks = [...text.matchAll(/^```[a-z]*\n([\s\S]*?)^```/gm)].flatMap(([, block]) =>
    block!.split("\n")
  );
  const spans = [...text.replaceAll(/^```[\s\S]*?^```/gm, "").matchAll(/`([^`\n]+)`/g)].map(([, code]) =>
    code!
  );
  return [...blocks, ...spans];
}

function commandsIn(text: string): string[] {
  return codeOf(text).flatMap((line) =>
    /(?:^|\s)holdfast (?!\\)([a-z-]+(?: [^#|]*)?)/.exec(line)?.[1]?.trim() ?? []
  )
    .filter((words) => COMMANDS.some(({ name }) => name === words.split(" ")[0]) || /^[a-z-]+$/.test(words));
}

/** The mistakes of a command line, as the program would name them. */
function mistakesOf(line: string): readonly string[] {
  const words = line.replaceAll(/\$\([^)]*\)/g, "X").split(/\s+/).filter((word) => word !== "");
  const command = COMMANDS.find(({ name }) => name === words[0]);
  if (command === undefined) return [`there is no command ${words[0]}`];
  let found: Command = command;
  let rest = words.slice(1);
  if (command.subcommands !== undefined) {
    const inner = command.subcommands.find(({ name }) => name === rest[0]);
    if (inner === undefined && rest.length > 0) return [`there is no command ${line}`];
    // Named alone, as a family.
    if (inner === undefined) return [];
    found = inner;
    rest = rest.slice(1);
  }
  const parsed = parseArguments(found, rest);
  return parsed.ok
    ? []
    : parsed.mistakes.filter((mistake) => rest.length > 0 || !mistake.includes("is missing"));
}

for (const [language, path] of Object.entries(FILES)) {
  Deno.test(`${path} names only commands and options that there are`, () => {
    const commands = commandsIn(read(path));
    assert(commands.length > 25, `${commands.length} commands were found`);
    const wrong = commands.flatMap((line) => mistakesOf(line).map((mistake) => `${line}: ${mistake}`));
    assertEquals(wrong, [], language);
  });
}

Deno.test("docs/operations.md and its twin have the same sections, code, tables and links", () => {
  const shape = (text: string) => ({
    headings: (text.match(/^#+ /gm) ?? []).map((mark) => mark.length),
    blocks: [...text.matchAll(/^```[a-z]*\n([\s\S]*?)^```/gm)].map(([, block]) =>
      block!.replaceAll(/ *#.*$/gm, "")
    ),
    rows: (text.match(/^\|/gm) ?? []).length,
    items: (text.match(/^\d+\. /gm) ?? []).length,
  });
  assertEquals(shape(read(FILES.zh)), shape(read(FILES.en)));
});

Deno.test("docs/operations.md names only metrics that there are", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const metrics = await (await fetch(`${rig.app.url}/metrics`, { headers })).text();
  const known = new Set([...metrics.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!));
  for (const path of Object.values(FILES)) {
    const named = [...read(path).matchAll(/holdfast_[a-z_]+/g)].map(([name]) => name.replace(/_bucket$/, ""));
    assertEquals(named.filter((name) => !known.has(name)), []);
    assert(named.length > 5);
  }
});

Deno.test("docs/holdfast.service starts the program as it wants to be started", () => {
  const unit = read("docs/holdfast.service");
  const start = /^ExecStart=\/usr\/local\/bin\/holdfast (.+)$/m.exec(unit)![1]!;
  assertEquals(mistakesOf(start), []);
  assert(
    /^# ExecStart=.*--v8-flags=.*--no-config/m.test(unit),
    "the single file needs its flags",
  );
  assert(/^RestartPreventExitStatus=2$/m.test(unit));
});
