/** Fills the tables of docs/translation.md: `deno run --allow-read --allow-write=docs tests/protocol/translate/write_docs.ts`. */
import { type Language, withTables } from "../../support/translation_tables.ts";

export const DOCUMENTS: readonly { readonly file: URL; readonly language: Language }[] = [
  { file: new URL("../../../docs/translation.md", import.meta.url), language: "en" },
  { file: new URL("../../../docs/zh/translation.md", import.meta.url), language: "zh" },
];

if (import.meta.main) {
  for (const { file, language } of DOCUMENTS) {
    Deno.writeTextFileSync(file, withTables(Deno.readTextFileSync(file), language));
  }
}
