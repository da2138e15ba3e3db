/** A copy of the database for the operator, taken while the service runs or stands still. */
import { dirname, resolve } from "node:path";
import { StoreFailure } from "../ports.ts";
import { openDatabase } from "./database.ts";
import { storeFailure } from "./store_error.ts";

const ACTION = "back up the database";

/**
 * Writes a consistent, private copy of everything committed so far.
 *
 * @param path  the database, see `openDatabase`
 * @param to    the copy; its folder is made if missing
 * @throws StoreFailure when `to` exists, or either side cannot be read or written
 */
export async function backupDatabase(path: string, to: string): Promise<void> {
  const target = resolve(to);
  requireAbsent(target);
  using database = openDatabase(path, { readOnly: true });
  try {
    Deno.mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    await database.copyTo(target, ACTION);
  } catch (error) {
    throw storeFailure(ACTION, target, error);
  }
}

function requireAbsent(path: string): void {
  try {
    Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw error;
  }
  throw new StoreFailure(
    "back up the database",
    `a file of that name exists already; choose another (${path})`,
  );
}
