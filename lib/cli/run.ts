/**
 * From the words of a command line to the exit code: finds the command, runs it, prints its report.
 */
import { suggest } from "../config_suggest.ts";
import { VERSION } from "../version.ts";
import { parseArguments } from "./args.ts";
import { type Call, type Command, EXIT, type ExitCode, problem, type Report } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { commandHelp, programHelp } from "./help.ts";
import { createHost, type Host, type Sink } from "./host.ts";
import { painter, type Style } from "./terminal.ts";

export async function runCommand(words: readonly string[], host: Host = createHost()): Promise<ExitCode> {
  const found = findCommand(words);
  switch (found.kind) {
    case "version":
      host.stdout.write(`holdfast ${VERSION}\n`);
      return EXIT.ok;
    case "help":
      host.stdout.write(programHelp(COMMANDS, styleOf(host.stdout, host).paint));
      return EXIT.ok;
    case "unknown":
      return print(problem(EXIT.usage, "unknown_command", found.message), host, words.includes("--json"));
    case "command":
      return await runFound(found, host);
  }
}

type Found =
  | { readonly kind: "version" | "help" }
  | { readonly kind: "unknown"; readonly message: string }
  | {
    readonly kind: "command";
    readonly command: Command;
    /** `accounts show`. */
    readonly path: string;
    readonly words: readonly string[];
  };

function findCommand(words: readonly string[]): Found {
  const [first, ...rest] = words;
  if (first === "--version" || first === "-V") return { kind: "version" };
  if (first === "--help" || first === "-h") return { kind: "help" };
  if (first === "help") return rest.length === 0 ? { kind: "help" } : findCommand([...rest, "--help"]);
  const isServe = first === undefined || first.startsWith("-");
  const command = COMMANDS.find(({ name }) => name === (isServe ? "serve" : first));
  if (command === undefined) return unknown(first!, COMMANDS, "holdfast --help");
  if (command.subcommands === undefined) {
    return { kind: "command", command, path: command.name, words: isServe ? words : rest };
  }
  const [second, ...further] = rest;
  if (second !== undefined && !second.startsWith("-")) {
    const subcommand = command.subcommands.find(({ name }) => name === second);
    if (subcommand === undefined) {
      return unknown(second, command.subcommands, `holdfast ${command.name} --help`);
    }
    return { kind: "command", command: subcommand, path: `${command.name} ${second}`, words: further };
  }
  const implied = command.subcommands.find(({ name }) => name === command.implied);
  if (implied === undefined || rest.includes("--help") || rest.includes("-h")) {
    return { kind: "command", command, path: command.name, words: rest };
  }
  return { kind: "command", command: implied, path: `${command.name} ${implied.name}`, words: rest };
}

function unknown(word: string, known: readonly Command[], help: string): Found {
  const meant = suggest(word, known.map(({ name }) => name));
  const hint = meant === null ? `see ${help}` : `did you mean ${meant}?`;
  return { kind: "unknown", message: `There is no command ${JSON.stringify(word)}; ${hint}` };
}

async function runFound(found: Extract<Found, { kind: "command" }>, host: Host): Promise<ExitCode> {
  const { command, path, words } = found;
  const parsed = parseArguments(command, words);
  const json = words.includes("--json");
  if (!parsed.ok) {
    const message = `${parsed.mistakes.map(capitalise).join("\n")}\nSee: holdfast ${path} --help`;
    return print(problem(EXIT.usage, "usage", message), host, json);
  }
  const { positionals, options, flags } = parsed.arguments;
  if (flags.has("help")) {
    host.stdout.write(commandHelp(command, path, styleOf(host.stdout, host).paint));
    return EXIT.ok;
  }
  if (command.run === undefined) {
    host.stderr.write(commandHelp(command, path, styleOf(host.stderr, host).paint));
    return EXIT.usage;
  }
  const call: Call = {
    host,
    positionals,
    positional: (index) => positionals[index] ?? "",
    option: (name) => options.get(name) ?? null,
    flag: (name) => flags.has(name),
    json,
  };
  return print(await command.run(call), host, json);
}

function print(report: Report, host: Host, json: boolean): ExitCode {
  if (report.kind === "problem") {
    const { code, message, exit } = report;
    if (json) host.stdout.write(`${JSON.stringify({ error: { code, message } }, null, 2)}\n`);
    else host.stderr.write(`${styleOf(host.stderr, host).paint.bad(message)}\n`);
    return exit;
  }
  if (!json) host.stdout.write(report.text(styleOf(host.stdout, host)));
  else if (report.json !== undefined) host.stdout.write(`${JSON.stringify(report.json, null, 2)}\n`);
  return report.exit;
}

function styleOf(sink: Sink, host: Host): Style {
  return {
    paint: painter(sink.coloured),
    isTerminal: sink.isTerminal,
    width: sink.width,
    nowMs: host.clock.now(),
  };
}

function capitalise(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
