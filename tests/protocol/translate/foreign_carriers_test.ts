/** Our carriers leave requests that nothing translates, and nothing else changes. */
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { withoutForeignCarriers } from "../../../lib/protocol/translate/foreign_carriers.ts";
import type { TranslatedProtocol } from "../../../lib/protocol/translate/translator.ts";

function cleaned(protocol: TranslatedProtocol, body: string): string {
  return new TextDecoder().decode(withoutForeignCarriers(protocol, new TextEncoder().encode(body)));
}

const OURS = '{"type":"thinking","thinking":"a","signature":"hf.enc1:rs_1:1::gAAA"}';
// Escapes, odd space, a long number and a signature: what a second writer would change (B112).
const SIGNED =
  '{"type" : "thinking","thinking":"\\u00e9é \\/ [1e2, 1234567890123456789]","signature":"EqQB\\/=="}';
const TEXT = '{"type":"text","text":"\\"hf.enc1: ]}"}';
const message = (content: string) => `{ "role":"assistant", "content" : [${content}] }`;
const body = (...messages: string[]) =>
  `{"model":"m" ,"messages" : [ ${messages.join(" , ")} ] ,"max_tokens":9}`;
const user = '{"role":"user","content":"hf.enc1: hi"}';

const cases: { name: string; protocol: TranslatedProtocol; body: string; want: string }[] = [
  {
    name: "a block before a signed one",
    protocol: "messages",
    body: body(user, message(`${OURS} , ${SIGNED},${TEXT}`)),
    want: body(user, message(`${SIGNED},${TEXT}`)),
  },
  {
    name: "a block behind a signed one",
    protocol: "messages",
    body: body(user, message(`${SIGNED} , ${OURS}`), user),
    want: body(user, message(SIGNED), user),
  },
  {
    name: "blocks on both sides",
    protocol: "messages",
    body: body(message(`${OURS},${TEXT},${OURS},${OURS}`)),
    want: body(message(TEXT)),
  },
  {
    name: "a message of nothing else",
    protocol: "messages",
    body: body(user, message(`${OURS},${OURS}`), user),
    want: body(user, user),
  },
  {
    name: "the last message, of nothing else",
    protocol: "messages",
    body: body(user, message(OURS)),
    want: body(user),
  },
  {
    name: "nothing where there is none of ours",
    protocol: "messages",
    body: body(user, message(`${SIGNED},${TEXT}`)),
    want: body(user, message(`${SIGNED},${TEXT}`)),
  },
  {
    name: "reasoning items of each carrier",
    protocol: "responses",
    body:
      '{"input":[{"type":"reasoning","encrypted_content":"hf.sig1:x"},{"type":"reasoning","encrypted_content":"gA"},' +
      '{"encrypted_content":"hf.red1:x","type":"reasoning"}, {"type":"reasoning","encrypted_content":"hf.txt1:"}]}',
    want: '{"input":[{"type":"reasoning","encrypted_content":"gA"}]}',
  },
  {
    name: "nothing of a bare question",
    protocol: "responses",
    body: '{"input":"\\"hf.sig1:"}',
    want: '{"input":"\\"hf.sig1:"}',
  },
  {
    name: "nothing of a body that is no JSON",
    protocol: "messages",
    body: '{"messages":["hf.enc1:',
    want: '{"messages":["hf.enc1:',
  },
  { name: "nothing of chat", protocol: "chat", body: body(message(OURS)), want: body(message(OURS)) },
];
for (const c of cases) {
  Deno.test(`withoutForeignCarriers() takes out ${c.name}`, () => {
    assertEquals(cleaned(c.protocol, c.body), c.want);
  });
}

Deno.test("withoutForeignCarriers() gives the same bytes back when nothing is ours", () => {
  const bytes = new TextEncoder().encode(body(user, message(SIGNED)));
  assertEquals(withoutForeignCarriers("messages", bytes) === bytes, true);
});

Deno.test("withoutForeignCarriers() does what parsing, filtering and writing would", () => {
  const block = fc.oneof(
    fc.constant(OURS),
    fc.constant(SIGNED),
    fc.string().map((text) => JSON.stringify({ type: "text", text })),
  );
  const gap = fc.constantFrom("", " ", "\n\t");
  const contents = fc.array(fc.tuple(fc.array(block, { maxLength: 4 }), gap), { maxLength: 4 });
  fc.assert(fc.property(contents, (turns) => {
    const messages = turns.map(([blocks, space]) =>
      message(space + blocks.join(`${space},${space}`) + space)
    );
    const text = `{"messages":[${messages.join(",")}]}`;
    const want = JSON.parse(text).messages.flatMap((one: { content: { signature?: string }[] }) => {
      const content = one.content.filter((part) => !part.signature?.startsWith("hf.enc1:"));
      return content.length === 0 && one.content.length > 0 ? [] : [{ ...one, content }];
    });
    assertEquals(JSON.parse(cleaned("messages", text)), { messages: want });
  }));
});
