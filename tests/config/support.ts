/** What the tests of the configuration share: an environment, and answers as lines of text. */
import { type ConfigEnvironment, formatMistake, parseConfig } from "../../lib/config.ts";
import type { Config } from "../../lib/config_types.ts";

export function environmentWith(
  variables: Readonly<Record<string, string>> = {},
  homeDir: string | null = "/home/ann",
): ConfigEnvironment {
  return { homeDir, get: (name) => Object.hasOwn(variables, name) ? variables[name] : undefined };
}

export const PLAIN_ENVIRONMENT = environmentWith();

/** The configuration of a text that has to be right. */
export function configOf(text: string, environment = PLAIN_ENVIRONMENT): Config {
  const parsed = parseConfig(text, environment);
  if (!parsed.ok) throw new Error(parsed.mistakes.map(formatMistake).join("\n"));
  return parsed.config;
}

/** Every mistake as people read it, without the words all of them begin with; empty when the text is right. */
export function mistakesOf(text: string, environment = PLAIN_ENVIRONMENT): string[] {
  const parsed = parseConfig(text, environment);
  return parsed.ok
    ? []
    : parsed.mistakes.map((mistake) => formatMistake(mistake).replace("Cannot parse config: ", ""));
}

export function warningsOf(text: string, environment = PLAIN_ENVIRONMENT): readonly string[] {
  const parsed = parseConfig(text, environment);
  if (!parsed.ok) throw new Error(parsed.mistakes.map(formatMistake).join("\n"));
  return parsed.warnings;
}
