import { assertEquals } from "@std/assert";
import { COMMANDS_FILE, printCommands } from "./write_commands.ts";

Deno.test("docs/commands.md is what the table of commands says; `deno task docs` writes it", () => {
  assertEquals(Deno.readTextFileSync(COMMANDS_FILE), printCommands());
});
