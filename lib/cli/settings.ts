/**
 * Finds and reads the configuration for a command.
 */
import { join, resolve } from "node:path";
import { formatMistake, type Mistake, parseConfig } from "../config.ts";
import type { Config } from "../config_types.ts";
import { environmentOf, type Host } from "./host.ts";

export interface LoadedConfig {
  readonly config: Config;
  readonly warnings: readonly string[];
  /** Absolute; null when there is no file and defaults are used. */
  readonly path: string | null;
}

export type ConfigLoad = { readonly ok: true; readonly loaded: LoadedConfig } | {
  readonly ok: false;
  /** One line a mistake. */
  readonly message: string;
  /** Empty when the file could not be read. */
  readonly mistakes: readonly Mistake[];
  readonly path: string;
};

const FILE_NAME = "holdfast.yaml";

/**
 * Reads the file named on the command line or by HOLDFAST_CONFIG; else `holdfast.yaml` of the working folder, else
 * the one of the user's configuration folder; where there is none, the defaults.
 */
export function loadConfig(named: string | null, host: Host): ConfigLoad {
  const found = findConfig(named, host);
  if (found === null) return parse("", null, host);
  const path = resolve(host.workingDir, found);
  let text: string;
  try {
    text = Deno.readTextFileSync(path);
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound ? "there is no such file" : "it cannot be read";
    return { ok: false, message: `Cannot read config ${path}: ${why}`, mistakes: [], path };
  }
  return parse(text, path, host);
}

/** The file that is used; null where nobody named one and none lies in the usual places. */
export function findConfig(named: string | null, host: Host): string | null {
  const wanted = named ?? host.env("HOLDFAST_CONFIG") ?? "";
  if (wanted !== "") return wanted;
  if (exists(join(host.workingDir, FILE_NAME))) return FILE_NAME;
  const inHome = homeConfigPath(host);
  return exists(inHome) ? inHome : null;
}

/** `~/.config/holdfast/holdfast.yaml`; XDG_CONFIG_HOME is respected where it is absolute. */
export function homeConfigPath(host: Host): string {
  const xdg = host.env("XDG_CONFIG_HOME") ?? "";
  const base = xdg.startsWith("/") ? xdg : join(host.homeDir, ".config");
  return join(base, "holdfast", FILE_NAME);
}

function parse(text: string, path: string | null, host: Host): ConfigLoad {
  const parsed = parseConfig(text, environmentOf(host));
  if (parsed.ok) return { ok: true, loaded: { config: parsed.config, warnings: parsed.warnings, path } };
  const { mistakes } = parsed;
  return { ok: false, message: mistakes.map(formatMistake).join("\n"), mistakes, path: path ?? "" };
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
