/**
 * What a command is: one shape that the dispatcher, the help, the completions and docs/commands.md read alike.
 *
 * A command gives a report and prints nothing by itself, so that `--json` holds for every one of them. Only what is
 * under way for long (a server, a login, the demo) speaks meanwhile, through its host.
 */
import type { Host } from "./host.ts";
import type { Style } from "./terminal.ts";

export const EXIT = {
  ok: 0,
  /** It was tried and did not work, or a check found something wrong. */
  failed: 1,
  /** Called wrongly, or with a configuration that has mistakes or cannot be read. */
  usage: 2,
  /** The command needs a running Holdfast, and none answers. */
  notRunning: 3,
  /** The running Holdfast refuses: another admin key, or management is off. */
  refused: 4,
  /** There is no such account, user or request. */
  notFound: 5,
} as const;
export type ExitCode = typeof EXIT[keyof typeof EXIT];

export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: "fine",
  1: "it did not work, or a check found something wrong",
  2: "called wrongly, or the configuration has mistakes or cannot be read",
  3: "no running Holdfast answers",
  4: "the running Holdfast refuses: wrong admin key, or management is off",
  5: "there is no such account, user or request",
};

export interface Option {
  readonly name: string;
  /** What its value is called in help; null for a switch. */
  readonly value: string | null;
  readonly summary: string;
  /** The only values there are. */
  readonly choices?: readonly string[];
}

export interface Positional {
  readonly name: string;
  readonly summary: string;
  readonly required: boolean;
  /** Takes all that follow. */
  readonly rest?: boolean;
  readonly choices?: readonly string[];
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  /** Further sentences for the command's own help. */
  readonly details?: string;
  readonly positionals?: readonly Positional[];
  readonly options?: readonly Option[];
  readonly examples: readonly string[];
  readonly subcommands?: readonly Command[];
  /** The subcommand meant when none is named. */
  readonly implied?: string;
  readonly run?: (call: Call) => Promise<Report>;
}

export interface Call {
  readonly host: Host;
  /** Missing positionals are "". */
  positional(index: number): string;
  readonly positionals: readonly string[];
  /** Value of an option, or null. */
  option(name: string): string | null;
  flag(name: string): boolean;
  /** The caller reads JSON: nothing else may go to stdout. */
  readonly json: boolean;
}

export type Report =
  | {
    readonly kind: "answer";
    readonly exit: ExitCode;
    /** The whole of stdout under `--json`; undefined: the command has written what there is. */
    readonly json: unknown;
    readonly text: (style: Style) => string;
  }
  | {
    readonly kind: "problem";
    readonly exit: ExitCode;
    /** A fixed snake_case word. */
    readonly code: string;
    /** One or several lines for people. */
    readonly message: string;
  };

/** A result with its two faces. */
export function answer(json: unknown, text: (style: Style) => string, exit: ExitCode = EXIT.ok): Report {
  return { kind: "answer", exit, json, text };
}

export function problem(exit: ExitCode, code: string, message: string): Report {
  return { kind: "problem", exit, code, message };
}

/**
 * Tells a person at a terminal what is being waited for, and wipes it away afterwards. Pipes and `--json` see nothing.
 */
export async function withProgress<T>(call: Call, text: string, work: () => Promise<T>): Promise<T> {
  const { stderr } = call.host;
  const isShown = stderr.isTerminal && !call.json;
  if (isShown) stderr.write(text);
  try {
    return await work();
  } finally {
    if (isShown) stderr.write("\r\x1b[K");
  }
}

/** For commands that wrote everything while they ran. */
export function ended(exit: ExitCode): Report {
  return { kind: "answer", exit, json: undefined, text: () => "" };
}

/** Every command understands these. */
export const COMMON_OPTIONS: readonly Option[] = [
  { name: "config", value: "FILE", summary: "Configuration to use" },
  { name: "json", value: null, summary: "Print one JSON document instead of text" },
  { name: "help", value: null, summary: "Print this help" },
];
