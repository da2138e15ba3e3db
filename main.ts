/**
 * The program: reads its arguments, runs one command, ends with its exit code.
 */
import { runCommand } from "./lib/cli/run.ts";

if (import.meta.main) Deno.exit(await runCommand(Deno.args));
