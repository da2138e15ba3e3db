import { assertEquals } from "@std/assert";
import { stripForeignReasoning } from "../../lib/proxy/upstream_body.ts";

const cases = [
  {
    name: "reasoning and compaction with encrypted content",
    body:
      `{"input":[{"type":"reasoning","encrypted_content":"x"},{"type":"compaction","encrypted_content":"y"},1]}`,
    want: `{"input":[1]}`,
  },
  {
    name: "nothing but what everybody can read",
    body: `{"input":[ {"type":"reasoning"} ]}`,
    want: `{"input":[ {"type":"reasoning"} ]}`,
  },
  {
    name: "nothing of a text that is no JSON below its top",
    body: `{"input":[nonsense]}`,
    want: `{"input":[nonsense]}`,
  },
  { name: "nothing where there is no input", body: `{"input":"hi"}`, want: `{"input":"hi"}` },
] as const;
for (const { name, body, want } of cases) {
  Deno.test(`stripForeignReasoning() takes out ${name}`, () => {
    assertEquals(new TextDecoder().decode(stripForeignReasoning(new TextEncoder().encode(body))), want);
  });
}
