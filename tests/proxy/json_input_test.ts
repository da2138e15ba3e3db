import { assertEquals } from "@std/assert";
import { z } from "zod";
import { INPUT_LIMIT_BYTES, readJsonInput, readQueryInput } from "../../lib/proxy/json_input.ts";
import type { ByteSource } from "../../lib/ports.ts";
import { type ClientRequest, ownRequest } from "../../lib/proxy/client_request.ts";

const SCHEMA = z.strictObject({
  name: z.string({ error: "must be text" }),
  enabled: z.boolean({ error: "must be true or false" }).optional(),
}, { error: "must be a JSON object" });

function post(
  body: string | Uint8Array<ArrayBuffer> | ByteSource | null,
  headers: Record<string, string> = {},
): ClientRequest {
  if (body === null || typeof body === "string" || body instanceof Uint8Array) {
    return ownRequest("POST", "/", body, headers);
  }
  const whole = () => Promise.reject(new Error("Cannot read what never ends"));
  return { ...ownRequest("POST", "/", "", headers), body: { ...body, whole } };
}

const PADDING = (bytes: number) => {
  const empty = '{"name":""}';
  return `{"name":"${"x".repeat(bytes - empty.length)}"}`;
};

const cases: readonly {
  name: string;
  body: string | Uint8Array<ArrayBuffer> | null;
  headers?: Record<string, string>;
  want: string;
}[] = [
  { name: "a right body", body: '{"name":"Ada"}', want: "Ada" },
  { name: "nothing", body: null, want: '400 "name" must be text' },
  { name: "blanks", body: "  ", want: '400 "name" must be text' },
  { name: "text that is no JSON", body: "{", want: "400 The body is not JSON" },
  {
    name: "bytes that are no UTF-8",
    body: new Uint8Array([0x22, 0xff, 0x22]),
    want: "400 The body is not JSON",
  },
  { name: "a list", body: "[]", want: "400 The body must be a JSON object" },
  { name: "null", body: "null", want: "400 The body must be a JSON object" },
  {
    name: "three mistakes",
    body: '{"name":1,"enabled":"yes","nmae":"SENT-key"}',
    want: '400 "name" must be text; "enabled" must be true or false; "nmae" is not known here',
  },
  {
    name: "a field name as long as a key",
    body: `{"name":"a","${"k".repeat(60)}":1}`,
    want: `400 "${"k".repeat(40)}…" is not known here`,
  },
  { name: "exactly the limit", body: PADDING(INPUT_LIMIT_BYTES), want: "x".repeat(INPUT_LIMIT_BYTES - 11) },
  {
    name: "one byte more",
    body: PADDING(INPUT_LIMIT_BYTES + 1),
    want: `413 The body must not exceed ${INPUT_LIMIT_BYTES} bytes`,
  },
  {
    name: "a coded body",
    body: "x",
    headers: { "content-encoding": "gzip" },
    want: "415 The body must be sent without content coding",
  },
];

for (const c of cases) {
  Deno.test(`readJsonInput() reads or names every mistake: ${c.name}`, async () => {
    const input = await readJsonInput(post(c.body, c.headers), SCHEMA);
    assertEquals(input.ok ? input.value.name : `${input.status} ${input.message}`, c.want);
  });
}

Deno.test("readJsonInput() stops reading a body that never ends, whatever length was declared", async () => {
  let pulls = 0;
  const endless = {
    read() {
      pulls++;
      return Promise.resolve(new Uint8Array(1_024).fill(0x20));
    },
    cancel: () => {},
  };
  const input = await readJsonInput(post(endless, { "content-length": "2" }), SCHEMA);
  assertEquals(input.ok ? "read" : input.code, "request_too_large");
  assertEquals(pulls < 20, true);
});

Deno.test("readJsonInput() says so when the body breaks off", async () => {
  const broken = { read: () => Promise.reject(new Error("SENT-reason")), cancel: () => {} };
  const input = await readJsonInput(post(broken), SCHEMA);
  assertEquals(input.ok ? "read" : input.message, "The body ended before it was complete");
});

const queries: readonly { search: string; want: string }[] = [
  { search: "?name=Ada", want: "Ada" },
  { search: "?name=A%20d%C3%A4", want: "A dä" },
  { search: "", want: '"name" must be text' },
  { search: "?name=a&name=b", want: '"name" must be given at most once' },
  { search: "?name=a&limit=SENT-1", want: '"limit" is not known here' },
];
for (const c of queries) {
  Deno.test(`readQueryInput() reads or names every mistake: ${c.search || "nothing"}`, () => {
    const input = readQueryInput(c.search, SCHEMA);
    assertEquals(input.ok ? input.value.name : input.message, c.want);
  });
}
