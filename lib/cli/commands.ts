/**
 * Every command. One table: the dispatcher, the help, the completions and docs/commands.md read it.
 */
import { ACCOUNTS } from "./accounts.ts";
import { BACKUP } from "./backup_command.ts";
import { CLIENTS } from "./clients.ts";
import { type Command, ended } from "./command.ts";
import { completionsCommand } from "./completions.ts";
import { CONFIG } from "./config_command.ts";
import { runDemo } from "./demo.ts";
import { DOCTOR } from "./doctor.ts";
import { EXPLAIN, WHY } from "./explain.ts";
import { IMPORT } from "./import.ts";
import { LOGIN } from "./login.ts";
import { runServe } from "./serve.ts";
import { USERS } from "./users.ts";

export const COMMANDS: readonly Command[] = [
  {
    name: "serve",
    summary: "Run the proxy (what happens without a command)",
    details:
      "SIGHUP or a changed file reloads the configuration; SIGINT and SIGTERM end the process, after what is under way had 4 seconds to finish.",
    examples: ["holdfast", "holdfast serve --config /etc/holdfast/holdfast.yaml"],
    run: async (call) => ended(await runServe(call)),
  },
  {
    name: "demo",
    summary: "Show the main job on simulated providers, with no account and no network",
    options: [{
      name: "keep",
      value: null,
      summary: "Keep running afterwards, for clients to be tried on it",
    }],
    examples: ["holdfast demo", "holdfast demo --keep"],
    run: runDemo,
  },
  ACCOUNTS,
  USERS,
  EXPLAIN,
  WHY,
  DOCTOR,
  LOGIN,
  IMPORT,
  CONFIG,
  CLIENTS,
  BACKUP,
  completionsCommand(() => COMMANDS),
];
