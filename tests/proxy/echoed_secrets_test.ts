import { assertEquals } from "@std/assert";
import type { Credential } from "../../lib/ports.ts";
import { hideInBytes, hideInText } from "../../lib/proxy/echoed_secrets.ts";

const OAUTH: Credential = {
  kind: "oauth",
  tokens: {
    accessToken: "SENT-token-2",
    refreshToken: "SENT-token-2-refresh",
    idToken: null,
    expiresAtMs: null,
  },
  accountHeader: "acct",
};

const cases: readonly { name: string; credential: Credential; text: string; hidden: string }[] = [
  {
    name: "a key, wherever it stands",
    credential: { kind: "api_key", apiKey: "SENT-key-1" },
    text: "SENT-key-1, Bearer SENT-key-1",
    hidden: "[redacted], Bearer [redacted]",
  },
  {
    name: "a secret that begins as another does",
    credential: OAUTH,
    text: "SENT-token-2-refresh SENT-token-2",
    hidden: "[redacted] [redacted]",
  },
  {
    name: "nothing that is too short to be meant",
    credential: OAUTH,
    text: "no such acct",
    hidden: "no such acct",
  },
];
for (const { name, credential, text, hidden } of cases) {
  Deno.test(`what is hidden of an upstream's words: ${name}`, () => {
    assertEquals(hideInText(text, credential), hidden);
    const bytes = new TextEncoder().encode(`é ${text} 字`);
    assertEquals(new TextDecoder().decode(hideInBytes(bytes, credential)), `é ${hidden} 字`);
  });
}

Deno.test("words without a secret stay the same bytes, also where they are no text", () => {
  const bytes = new Uint8Array([0xff, 0x00, 0xc3, 0x28]);
  assertEquals(hideInBytes(bytes, OAUTH) === bytes, true);
  const secret = new TextEncoder().encode("SENT-token-2");
  const hidden = hideInBytes(new Uint8Array([0xff, ...secret, 0xfe]), OAUTH);
  assertEquals([hidden[0], hidden.at(-1), hidden.length], [0xff, 0xfe, 2 + "[redacted]".length]);
});
