/**
 * Finds and reads the configuration for a command.
 */
import { type ConfigEnvironment, formatMistake, parseConfig } from "../config.ts";
import type { Config } from "../config_types.ts";

export interface LoadedConfig {
  readonly config: Config;
  readonly warnings: readonly string[];
  /** Null when there is no file and defaults are used. */
  readonly path: string | null;
}

export type ConfigLoad = { readonly ok: true; readonly loaded: LoadedConfig } | {
  readonly ok: false;
  readonly message: string;
};

/** What the configuration may ask of the environment. */
export function configEnvironment(): ConfigEnvironment {
  return {
    homeDir: Deno.env.get("HOME") ?? Deno.env.get("USERPROFILE") ?? Deno.cwd(),
    get: (name) => Deno.env.get(name),
  };
}

/**
 * Reads the file named on the command line, else `holdfast.yaml` of the working folder when there is one, else the
 * defaults.
 */
export function loadConfig(named: string | null): ConfigLoad {
  const path = named ?? (exists("holdfast.yaml") ? "holdfast.yaml" : null);
  let text = "";
  if (path !== null) {
    try {
      text = Deno.readTextFileSync(path);
    } catch (error) {
      const why = error instanceof Deno.errors.NotFound ? "there is no such file" : "it cannot be read";
      return { ok: false, message: `Cannot read config ${path}: ${why}` };
    }
  }
  const parsed = parseConfig(text, configEnvironment());
  if (!parsed.ok) return { ok: false, message: parsed.mistakes.map(formatMistake).join("\n") };
  return { ok: true, loaded: { config: parsed.config, warnings: parsed.warnings, path } };
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

/** Value of `--name VALUE` or `--name=VALUE`; null when absent. */
export function readOption(args: readonly string[], name: string): string | null {
  for (const [index, arg] of args.entries()) {
    if (arg === `--${name}`) return args[index + 1] ?? null;
    if (arg.startsWith(`--${name}=`)) return arg.slice(name.length + 3);
  }
  return null;
}

/** Arguments that none of these options explains, for a clear complaint. */
export function unknownArguments(
  args: readonly string[],
  valued: readonly string[],
  flags: readonly string[],
): string[] {
  const unknown: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const arg = args[index]!;
    const name = arg.replace(/^--/, "").split("=")[0]!;
    if (!arg.startsWith("--")) unknown.push(arg);
    else if (valued.includes(name)) index += arg.includes("=") ? 0 : 1;
    else if (!flags.includes(name)) unknown.push(arg);
  }
  return unknown;
}
