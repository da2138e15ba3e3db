/**
 * Which command was asked for. One table: the dispatcher, `--help` and the completions read the same.
 */
import { VERSION } from "../version.ts";
import { runDemo } from "./demo.ts";
import { runServe } from "./serve.ts";

export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly usage: string;
  /** @returns the exit code. */
  run(args: readonly string[]): Promise<number>;
}

/** 0 fine, 1 failed, 2 called wrongly. */
export const EXIT_USAGE = 2;

export const COMMANDS: readonly Command[] = [
  {
    name: "serve",
    summary: "Run the proxy (what happens without a command)",
    usage: "holdfast serve [--config FILE]",
    run: runServe,
  },
  {
    name: "demo",
    summary: "Show the main job on simulated providers, with no account and no network",
    usage: "holdfast demo [--keep]",
    run: runDemo,
  },
];

export async function runCommand(args: readonly string[]): Promise<number> {
  const first = args[0];
  if (first === "--version" || first === "-V") {
    console.log(`holdfast ${VERSION}`);
    return 0;
  }
  if (first === "--help" || first === "-h" || first === "help") {
    console.log(helpText());
    return 0;
  }
  if (first === undefined || first.startsWith("-")) return await runServe(args);
  const command = COMMANDS.find(({ name }) => name === first);
  if (command === undefined) {
    console.error(`holdfast: there is no command ${JSON.stringify(first)}; see holdfast --help`);
    return EXIT_USAGE;
  }
  if (args.includes("--help") || args.includes("-h")) {
    console.log(`${command.summary}\n\nUsage: ${command.usage}`);
    return 0;
  }
  return await command.run(args.slice(1));
}

function helpText(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  const lines = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return [
    "Holdfast: a proxy between coding clients and the accounts their owner has.",
    "",
    "Usage: holdfast [command] [options]",
    "",
    ...lines,
    "",
    "  --version  Print the version",
    "  --help     Print this, or a command's help",
  ].join("\n");
}
