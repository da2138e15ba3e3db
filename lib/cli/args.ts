/**
 * Words of a command line, told apart by what the command says it takes.
 */
import { suggest } from "../config_suggest.ts";
import { type Command, COMMON_OPTIONS, type Option } from "./command.ts";

export interface Arguments {
  readonly positionals: readonly string[];
  readonly options: ReadonlyMap<string, string>;
  readonly flags: ReadonlySet<string>;
}

export type ParsedArguments =
  | { readonly ok: true; readonly arguments: Arguments }
  /** Every mistake, in the order of the words. */
  | { readonly ok: false; readonly mistakes: readonly string[] };

/** `--name VALUE`, `--name=VALUE`, `--flag`, positionals; everything after `--` is a positional. */
export function parseArguments(command: Command, words: readonly string[]): ParsedArguments {
  const known = [...command.options ?? [], ...COMMON_OPTIONS];
  const positionals: string[] = [];
  const options = new Map<string, string>();
  const flags = new Set<string>();
  const mistakes: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index]!;
    if (word === "--") {
      positionals.push(...words.slice(index + 1));
      break;
    }
    if (word === "-h") {
      flags.add("help");
      continue;
    }
    if (!word.startsWith("-") || word === "-") {
      positionals.push(word);
      continue;
    }
    const [name, inline] = splitOption(word);
    const option = known.find((one) => one.name === name);
    if (option === undefined) {
      mistakes.push(unknownOption(word, name, known));
    } else if (option.value === null) {
      if (inline !== null) mistakes.push(`--${name} takes no value`);
      flags.add(name);
    } else {
      const value = inline ?? words[++index] ?? null;
      if (value === null || value === "") mistakes.push(`--${name} needs a value: --${name} ${option.value}`);
      else if (options.has(name)) mistakes.push(`--${name} is given more than once`);
      else if (option.choices !== undefined && !option.choices.includes(value)) {
        mistakes.push(wrongChoice(`--${name}`, option.choices, value));
      } else options.set(name, value);
    }
  }
  if (!flags.has("help")) mistakes.push(...checkPositionals(command, positionals));
  return mistakes.length > 0
    ? { ok: false, mistakes }
    : { ok: true, arguments: { positionals, options, flags } };
}

function checkPositionals(command: Command, given: readonly string[]): string[] {
  const wanted = command.positionals ?? [];
  const mistakes: string[] = [];
  for (const [index, positional] of wanted.entries()) {
    const value = given[index];
    if (value === undefined) {
      if (positional.required) mistakes.push(`${positional.name} is missing: ${positional.summary}`);
    } else if (positional.choices !== undefined && !positional.choices.includes(value)) {
      mistakes.push(wrongChoice(positional.name, positional.choices, value));
    }
  }
  const isOpen = wanted.at(-1)?.rest === true;
  if (!isOpen && given.length > wanted.length) {
    mistakes.push(
      `cannot understand ${given.slice(wanted.length).map((word) => JSON.stringify(word)).join(" ")}`,
    );
  }
  return mistakes;
}

function splitOption(word: string): [name: string, inline: string | null] {
  const name = word.replace(/^--?/, "");
  const equals = name.indexOf("=");
  return equals < 0 ? [name, null] : [name.slice(0, equals), name.slice(equals + 1)];
}

/** Only the name is repeated: the value may be a key. */
function unknownOption(word: string, name: string, known: readonly Option[]): string {
  const meant = suggest(name, known.map((option) => option.name));
  const shown = word.startsWith("--") ? `--${name}` : `-${name}`;
  return `there is no option ${shown}${meant === null ? "" : `; did you mean --${meant}?`}`;
}

function wrongChoice(what: string, choices: readonly string[], value: string): string {
  const meant = suggest(value, choices);
  const hint = meant === null ? "" : `; did you mean ${meant}?`;
  return `${what} must be one of ${choices.join(", ")}, got ${JSON.stringify(value)}${hint}`;
}
