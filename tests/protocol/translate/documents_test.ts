/** The documents of translation say what the translators do. */
import { assertEquals } from "@std/assert";
import { TABLES, withTables } from "../../support/translation_tables.ts";
import { DOCUMENTS } from "./write_docs.ts";

for (const { file, language } of DOCUMENTS) {
  const name = file.pathname.slice(file.pathname.indexOf("docs/"));
  Deno.test(`${name} has every table, as the translators make it today`, () => {
    const text = Deno.readTextFileSync(file);
    const hint =
      "fill it with: deno run --allow-read --allow-write=docs tests/protocol/translate/write_docs.ts";
    assertEquals(withTables(text, language) === text, true, hint);
    const named = [...text.matchAll(/<!-- table:([a-z-]+) -->/g)].map((match) => match[1]);
    assertEquals(named.sort(), Object.keys(TABLES).sort());
  });
}

Deno.test("the table of conversations has no pair that loses anything", () => {
  const table = TABLES.conversations!("en");
  assertEquals([table.includes("✗"), table.includes("?")], [false, false]);
});
