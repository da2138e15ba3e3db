import { assert, assertEquals } from "@std/assert";
import { clientSettings } from "../../lib/cli/client_settings.ts";
import { createHost, programOf } from "../../lib/cli/host.ts";

const programs = [
  {
    from: "a binary",
    url: "file:///tmp/deno-compile-holdfast/lib/cli/host.ts",
    standalone: true,
    want: "holdfast",
  },
  {
    from: "a checkout",
    url: "file:///home/jo/holdfast/lib/cli/host.ts",
    standalone: false,
    want: "deno task holdfast",
  },
  {
    from: "the one file",
    url: "file:///opt/holdfast/holdfast.js",
    standalone: false,
    want: "deno run -A --no-config /opt/holdfast/holdfast.js",
  },
  {
    from: "the one file in a folder with a blank",
    url: "file:///home/jo/my%20tools/holdfast.js",
    standalone: false,
    want: "deno run -A --no-config '/home/jo/my tools/holdfast.js'",
  },
] as const;
for (const c of programs) {
  Deno.test(`programOf() is what calls ${c.from}`, () =>
    assertEquals(programOf(c.url, c.standalone), c.want));
}

Deno.test("createHost() knows that these tests run from a checkout", () => {
  assertEquals(createHost().program, "deno task holdfast");
});

Deno.test("clientSettings() ends with commands as they are called here", () => {
  const text = clientSettings("http://127.0.0.1:8317", "hf_1", "deno task holdfast");
  assert(
    text.endsWith(
      "\n  deno task holdfast clients codex --write\n  deno task holdfast clients claude-code --write\n",
    ),
  );
});
