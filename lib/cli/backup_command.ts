/** `holdfast backup`: a copy of the database, also while Holdfast runs. */
import { resolve } from "node:path";
import { StoreFailure } from "../ports.ts";
import { backupDatabase } from "../store/backup.ts";
import { answer, type Command, EXIT, problem } from "./command.ts";
import { withConfig } from "./management_client.ts";

export const BACKUP: Command = {
  name: "backup",
  summary: "Copy the database to a file, also while Holdfast runs",
  details:
    "The copy is whole and private. Account files are not in it: they are Codex's and Claude's, and lie in auth-dir.",
  positionals: [{ name: "FILE", summary: "where the copy goes; must not exist yet", required: true }],
  examples: ["holdfast backup /var/backups/holdfast-$(date +%F).db"],
  run: (call) =>
    withConfig(call, async ({ config }) => {
      const to = resolve(call.host.workingDir, call.positional(0));
      try {
        await backupDatabase(config.databasePath, to);
      } catch (error) {
        if (error instanceof StoreFailure) {
          return problem(EXIT.failed, "not_copied", error.message);
        }
        throw error;
      }
      const json = { from: config.databasePath, to, bytes: Deno.statSync(to).size };
      return answer(json, ({ paint }) => `${paint.good(`Copied to ${to}`)}\n`);
    }),
};
