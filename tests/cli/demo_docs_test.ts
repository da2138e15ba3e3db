/** README.md and its Chinese twin show the demo as it is printed. */
import { stripVTControlCharacters } from "node:util";
import { assert, assertEquals } from "@std/assert";
import { CommandLine } from "../support/command_line.ts";

/** The lines of the block that shows the demo; what is left out there is an ellipsis. */
function shownIn(path: string): string[] {
  const text = Deno.readTextFileSync(new URL(`../../${path}`, import.meta.url));
  const block = /^```\n(1\. [\s\S]*?)^```/m.exec(text)?.[1] ?? "";
  return linesOf(block).filter((line) => line.trim() !== "…");
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "").map((line) => line.replace(/\d+ ms/, "N ms"));
}

Deno.test("README and its Chinese twin show the demo as it is printed", async () => {
  using line = new CommandLine();
  const run = await line.run("demo");
  assertEquals(run.code, 0);
  const printed = linesOf(stripVTControlCharacters(run.out));
  const shown = shownIn("README.md");
  assert(shown.length > 5, "README shows no demo");
  assertEquals(shown.filter((one) => !printed.includes(one)), []);
  assertEquals(shownIn("docs/zh/README.md"), shown);
});
