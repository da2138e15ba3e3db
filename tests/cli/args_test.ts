import { assertEquals } from "@std/assert";
import { parseArguments } from "../../lib/cli/args.ts";
import type { Command } from "../../lib/cli/command.ts";

const COMMAND: Command = {
  name: "try",
  summary: "",
  positionals: [
    { name: "WHAT", summary: "what to try", required: true, choices: ["this", "that"] },
    { name: "ID", summary: "id", required: false },
  ],
  options: [
    { name: "file", value: "FILE", summary: "" },
    { name: "shape", value: "SHAPE", summary: "", choices: ["round", "square"] },
    { name: "write", value: null, summary: "" },
  ],
  examples: [],
};
const OPEN: Command = {
  ...COMMAND,
  positionals: [{ name: "FILE", summary: "files", required: false, rest: true }],
};

const cases: readonly { name: string; command?: Command; words: string; want: unknown }[] = [
  { name: "positionals only", words: "this 7", want: { positionals: ["this", "7"], options: {}, flags: [] } },
  {
    name: "options in both spellings, anywhere",
    words: "--file a this --shape=round --write",
    want: { positionals: ["this"], options: { file: "a", shape: "round" }, flags: ["write"] },
  },
  {
    name: "a value with an equals sign",
    words: "this --file=a=b",
    want: { positionals: ["this"], options: { file: "a=b" }, flags: [] },
  },
  {
    name: "everything after -- as it is",
    words: "this -- --write",
    want: { positionals: ["this", "--write"], options: {}, flags: [] },
  },
  {
    name: "any number where the last takes the rest",
    command: OPEN,
    words: "a b c - --json",
    want: { positionals: ["a", "b", "c", "-"], options: {}, flags: ["json"] },
  },
  {
    name: "help without the positional",
    words: "-h",
    want: { positionals: [], options: {}, flags: ["help"] },
  },
  { name: "a missing positional", words: "", want: ["WHAT is missing: what to try"] },
  {
    name: "one that is none of the choices",
    words: "thus",
    want: ['WHAT must be one of this, that, got "thus"; did you mean this?'],
  },
  { name: "one too many", words: "this 7 8 9", want: ['cannot understand "8" "9"'] },
  {
    name: "an unknown option, its value unsaid",
    words: "this --fil=SENT-1",
    want: ["there is no option --fil; did you mean --file?"],
  },
  { name: "an unknown letter", words: "this -x", want: ["there is no option -x"] },
  { name: "an option without its value", words: "this --file", want: ["--file needs a value: --file FILE"] },
  { name: "an empty value", words: "this --file=", want: ["--file needs a value: --file FILE"] },
  { name: "an option twice", words: "this --file a --file b", want: ["--file is given more than once"] },
  { name: "a switch with a value", words: "this --write=yes", want: ["--write takes no value"] },
  {
    name: "a value outside the choices",
    words: "this --shape=oval",
    want: ['--shape must be one of round, square, got "oval"'],
  },
  {
    name: "every mistake at once",
    words: "--what --shape oval",
    want: [
      "there is no option --what",
      '--shape must be one of round, square, got "oval"',
      "WHAT is missing: what to try",
    ],
  },
];

for (const c of cases) {
  Deno.test(`parseArguments() tells words apart or names every mistake: ${c.name}`, () => {
    const parsed = parseArguments(c.command ?? COMMAND, c.words.split(" ").filter((word) => word !== ""));
    const got = parsed.ok
      ? {
        positionals: parsed.arguments.positionals,
        options: Object.fromEntries(parsed.arguments.options),
        flags: [...parsed.arguments.flags],
      }
      : parsed.mistakes;
    assertEquals(got, c.want);
  });
}
