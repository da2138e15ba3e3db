import { assertEquals, assertStrictEquals } from "@std/assert";
import { CODEX } from "../../lib/providers/codex.ts";
import { descriptorFor } from "../../lib/providers/registry.ts";

Deno.test("descriptorFor() gives each kind its own descriptor", () => {
  assertStrictEquals(descriptorFor("codex"), CODEX);
  for (const kind of ["codex", "anthropic", "zai", "openai"] as const) {
    assertEquals(descriptorFor(kind)?.kind ?? kind, kind);
  }
});
