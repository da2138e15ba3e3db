import { assert, assertEquals } from "@std/assert";
import { REDACTED, redactFields, redactText } from "../../lib/runtime/redaction.ts";

const JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJTRU5ULVNVQiJ9.SENT-SIGNATURE";

const texts = [
  {
    name: "bearer header",
    text: "401 for Bearer SENT-ACC, retry",
    want: `401 for Bearer ${REDACTED}, retry`,
  },
  { name: "basic header", text: "authorization: basic SENT-B64=", want: `authorization: basic ${REDACTED}` },
  { name: "platform key", text: "key sk-proj-SENT_1-2 end", want: `key ${REDACTED} end` },
  { name: "Anthropic tokens", text: "sk-ant-oat01-SENT sk-ant-ort01-SENT", want: `${REDACTED} ${REDACTED}` },
  { name: "Codex refresh token", text: "used rt_SENT-REFRESH.abc", want: `used ${REDACTED}` },
  { name: "client key", text: "hf_SENT1234567890", want: REDACTED },
  { name: "whole JWT", text: `token ${JWT} refused`, want: `token ${REDACTED} refused` },
  { name: "cut JWT", text: `token ${JWT.slice(0, 25)}`, want: `token ${REDACTED}` },
  { name: "JWT with a blank in its header", text: "eyAiYWxnIjoibm9uZSJ9.SENT.x", want: REDACTED },
  {
    name: "proxy password",
    text: "via http://u:SENT-P@proxy.test:3128/x",
    want: `via http://${REDACTED}@proxy.test:3128/x`,
  },
  { name: "query key", text: "GET /v1?key=SENT-Q&x=1", want: `GET /v1?key=${REDACTED}&x=1` },
  {
    name: "authorization code",
    text: "http://localhost:1455/auth/callback?code=SENT-C&state=SENT-S",
    want: `http://localhost:1455/auth/callback?code=${REDACTED}&state=${REDACTED}`,
  },
  { name: "e-mail", text: "login john.doe+x@mail.example.com", want: "login j***@mail.example.com" },
  { name: "masked e-mail", text: "j***@example.com", want: "j***@example.com" },
  {
    name: "account file named after an e-mail",
    text: "codex-jo@example.com-pro.json",
    want: "c***@example.com-pro.json",
  },
  { name: "account id", text: "codex:0b6f-acc:user-AbC", want: "codex:0b6f-acc:user-AbC" },
  {
    name: "request id with letters like a key",
    text: "req_eyes_hf-x-rtc_123",
    want: "req_eyes_hf-x-rtc_123",
  },
  { name: "realtime call id", text: "rtc_0123456789abcdef", want: "rtc_0123456789abcdef" },
  { name: "plain sentence", text: "they said key=1", want: "they said key=1" },
] as const;
for (const c of texts) {
  Deno.test(`redactText() on a ${c.name}`, () => {
    assertEquals(redactText(c.text), c.want);
    assertEquals(redactText(redactText(c.text)), c.want);
  });
}

Deno.test("redactText() hides before it cuts, so that no head of a token survives at the border", () => {
  for (let lead = 480; lead <= 515; lead++) {
    const text = redactText(`${"x".repeat(lead)} sk-ant-oat01-SENTSENTSENT`);
    assert(!text.includes("sk-"), text.slice(-40));
    assert(text.length <= 513);
  }
});

const secretNames = [
  "access_token",
  "accessToken",
  "Authorization",
  "x-api-key",
  "API_KEY",
  "refresh-token",
  "cookie",
  "password",
  "session",
  "session_id",
  "body",
  "turn_state",
];
for (const name of secretNames) {
  Deno.test(`redactFields() hides the text of "${name}" whatever it looks like`, () => {
    assertEquals(redactFields({ [name]: "SENT-X" }), { [name]: REDACTED });
    assertEquals(redactFields({ [name]: ["SENT-X", 1] }), { [name]: [REDACTED, 1] });
  });
}

Deno.test("redactFields() keeps numbers, booleans and null, drops undefined, looks into lists", () => {
  assertEquals(
    redactFields({ tokens: 12, ok: true, none: null, gone: undefined, list: ["Bearer SENT-1", "plain"] }),
    { tokens: 12, ok: true, none: null, list: [`Bearer ${REDACTED}`, "plain"] },
  );
});

Deno.test("redactFields() bounds lists and texts", () => {
  const safe = redactFields({ list: Array.from({ length: 100 }, (_, i) => i), text: "y".repeat(5_000) });
  assertEquals((safe.list as number[]).length, 32);
  assertEquals((safe.text as string).length, 513);
});
