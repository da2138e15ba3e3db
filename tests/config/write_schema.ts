/** Writes docs/config.schema.json: `deno run --allow-write=docs tests/config/write_schema.ts`. */
import { configJsonSchema } from "../../lib/config.ts";

export const SCHEMA_FILE = new URL("../../docs/config.schema.json", import.meta.url);

/** The form in which the file is kept. */
export function printSchema(): string {
  return `${JSON.stringify(configJsonSchema(), null, 2)}\n`;
}

if (import.meta.main) Deno.writeTextFileSync(SCHEMA_FILE, printSchema());
