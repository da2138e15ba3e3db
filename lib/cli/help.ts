/**
 * Help texts, and docs/commands.md, out of the table of commands.
 */
import { type Command, COMMON_OPTIONS, EXIT_MEANINGS, type Option, type Positional } from "./command.ts";
import { displayWidth, type Painter } from "./terminal.ts";

export function programHelp(commands: readonly Command[], paint: Painter): string {
  return [
    "Holdfast: a proxy between coding clients and the accounts their owner has.",
    "",
    `${paint.strong("Usage:")} holdfast [command] [options]`,
    "",
    ...columns(commands.map(({ name, summary }) => [name, summary])),
    "",
    ...columns([
      ["--version", "Print the version"],
      ["--help", "Print this, or a command's help"],
    ]),
    "",
    paint.strong("Every command:"),
    ...columns(COMMON_OPTIONS.filter(({ name }) => name !== "help").map(optionRow)),
    "",
    paint.strong("Exit codes:"),
    ...columns(exitRows()),
    "",
    paint.strong("Environment:"),
    ...columns(ENVIRONMENT),
    "",
  ].join("\n");
}

export function commandHelp(command: Command, path: string, paint: Painter): string {
  const options = [...command.options ?? [], ...COMMON_OPTIONS];
  const subcommands = command.subcommands ?? [];
  const positionals = command.positionals ?? [];
  return [
    command.summary,
    ...command.details === undefined ? [] : ["", command.details],
    "",
    `${paint.strong("Usage:")} ${usage(command, path)}`,
    ...section("Commands:", subcommands.map((one) => [nameOf(one, command), one.summary]), paint),
    ...section("Arguments:", positionals.map(positionalRow), paint),
    ...section("Options:", options.map(optionRow), paint),
    ...section("Examples:", command.examples.map((example) => [example, ""]), paint),
    "",
  ].join("\n");
}

/** The whole of docs/commands.md. */
export function commandsMarkdown(commands: readonly Command[]): string {
  const pages = commands.flatMap((command) => [
    ...commandPage(command, command.name, "##"),
    ...(command.subcommands ?? []).flatMap((one) =>
      commandPage(one, `${command.name} ${one.name}`, "###", command)
    ),
  ]);
  return [
    "# Commands",
    "",
    "Made from the table of commands by `deno task docs`; do not edit.",
    "",
    "`holdfast <command>` is the binary; the same is `deno task holdfast <command>` from a checkout, and",
    "`deno run -A --no-config holdfast.js <command>` with the one file.",
    "",
    "| command | what it does |",
    "| --- | --- |",
    ...commands.map(({ name, summary }) => `| [\`${name}\`](#${name}) | ${summary} |`),
    "",
    "Every command understands `--config FILE`, `--json` (one JSON document on stdout instead of text; errors as",
    '`{"error":{"code","message"}}`) and `--help`. Tables and colours are for terminals: elsewhere rows are',
    "tab-separated, without a head. `NO_COLOR` is respected.",
    "",
    "| exit code | meaning |",
    "| --- | --- |",
    ...exitRows().map(([code, meaning]) => `| ${code} | ${meaning} |`),
    "",
    "| variable | meaning |",
    "| --- | --- |",
    ...ENVIRONMENT.map(([name, meaning]) => `| \`${name}\` | ${meaning} |`),
    "",
    "Without `--config` and `HOLDFAST_CONFIG`, `holdfast.yaml` of the working folder is read, else the one in",
    "`~/.config/holdfast` (`XDG_CONFIG_HOME` is respected); where there is none, the defaults hold.",
    "",
    ...pages,
  ].join("\n");
}

const ENVIRONMENT: readonly (readonly [string, string])[] = [
  ["HOLDFAST_CONFIG", "Configuration to use, where --config does not say"],
  ["HOLDFAST_URL", "The running Holdfast, where --url does not say"],
  ["HOLDFAST_ADMIN_KEY", "Its admin key, where it is not the configuration's"],
  ["HOLDFAST_KEY", "Client key that `clients` writes into settings, and that Codex reads"],
];

function exitRows(): [string, string][] {
  return Object.entries(EXIT_MEANINGS).map(([code, meaning]) => [code, meaning]);
}

function commandPage(command: Command, path: string, mark: string, parent?: Command): string[] {
  const implied = parent?.implied === command.name ? ` What \`${parent.name}\` alone means.` : "";
  const options = command.options ?? [];
  return [
    `${mark} ${mark === "##" ? command.name : path}`,
    "",
    `${command.summary}.${command.details === undefined ? "" : ` ${command.details}`}${implied}`,
    "",
    ...command.subcommands === undefined ? ["```", usage(command, path), "```", ""] : [],
    ...(command.positionals ?? []).map(positionalRow).map(([name, told]) => `- \`${name}\`: ${told}`),
    ...options.map(optionRow).map(([name, told]) => `- \`${name}\`: ${told}`),
    ...(command.positionals ?? []).length + options.length > 0 ? [""] : [],
    ...command.subcommands === undefined ? ["```sh", ...command.examples, "```", ""] : [],
  ];
}

function usage(command: Command, path: string): string {
  if (command.subcommands !== undefined) return `holdfast ${path} <command> [options]`;
  const positionals = (command.positionals ?? []).map(({ name, required, rest }) => {
    const shown = rest === true ? `${name}...` : name;
    return required ? shown : `[${shown}]`;
  });
  return ["holdfast", path, ...positionals, "[options]"].join(" ");
}

function nameOf(subcommand: Command, parent: Command): string {
  return subcommand.name === parent.implied ? `${subcommand.name} (default)` : subcommand.name;
}

function positionalRow({ name, summary, choices }: Positional): [string, string] {
  return [name, choices === undefined ? summary : `${summary}: ${choices.join(", ")}`];
}

function optionRow({ name, value, summary, choices }: Option): [string, string] {
  const told = choices === undefined ? summary : `${summary}: ${choices.join(", ")}`;
  return [value === null ? `--${name}` : `--${name} ${value}`, told];
}

function section(title: string, rows: readonly (readonly [string, string])[], paint: Painter): string[] {
  return rows.length === 0 ? [] : ["", paint.strong(title), ...columns(rows)];
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([name]) => displayWidth(name)));
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`.trimEnd());
}
