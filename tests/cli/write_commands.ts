/** Writes docs/commands.md: `deno task docs`. */
import { COMMANDS } from "../../lib/cli/commands.ts";
import { commandsMarkdown } from "../../lib/cli/help.ts";

export const COMMANDS_FILE = new URL("../../docs/commands.md", import.meta.url);

/** The form in which the file is kept. */
export function printCommands(): string {
  return commandsMarkdown(COMMANDS);
}

if (import.meta.main) Deno.writeTextFileSync(COMMANDS_FILE, printCommands());
