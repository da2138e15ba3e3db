import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { readJwtClaims } from "../../lib/core/jwt.ts";
import { fakeJwt } from "../support/credential_texts.ts";

function jwtOf(payload: unknown): string {
  const bytes = new TextEncoder().encode(typeof payload === "string" ? payload : JSON.stringify(payload));
  return `eyJhbGciOiJub25lIn0.${bytes.toBase64({ alphabet: "base64url", omitPadding: true })}.SENT-SIG`;
}

Deno.test("readJwtClaims() reads every claim at its path", () => {
  const token = fakeJwt({
    account: "acc-1",
    user: "user-1",
    email: "jo@example.com",
    plan: "plus",
    issuedAtMs: 1_800_000_000_000,
    expiresAtMs: 1_800_003_600_000,
  });
  assertEquals(readJwtClaims(token), {
    accountId: "acc-1",
    userId: "user-1",
    email: "jo@example.com",
    plan: "plus",
    issuedAtMs: 1_800_000_000_000,
    expiresAtMs: 1_800_003_600_000,
  });
});

const cases = [
  {
    name: "email at the top before the profile's",
    payload: { email: "a@b.c", "https://api.openai.com/profile": { email: "x@y.z" } },
    key: "email",
    want: "a@b.c",
  },
  {
    name: "user_id where chatgpt_user_id is missing",
    payload: { "https://api.openai.com/auth": { user_id: "u2" } },
    key: "userId",
    want: "u2",
  },
  {
    name: "empty user id",
    payload: { "https://api.openai.com/auth": { chatgpt_user_id: " " } },
    key: "userId",
    want: null,
  },
  { name: "non-ASCII e-mail", payload: { email: "jö@例え.jp" }, key: "email", want: "jö@例え.jp" },
  { name: "fractional exp", payload: { exp: 1_800_000_000.5 }, key: "expiresAtMs", want: 1_800_000_000_500 },
  { name: "exp as text", payload: { exp: "1800000000" }, key: "expiresAtMs", want: null },
  { name: "negative exp", payload: { exp: -1 }, key: "expiresAtMs", want: null },
  { name: "exp of zero", payload: { exp: 0 }, key: "expiresAtMs", want: null },
  { name: "exp beyond any calendar", payload: { exp: 1e308 }, key: "expiresAtMs", want: null },
  {
    name: "auth claim that is a list",
    payload: { "https://api.openai.com/auth": ["x"] },
    key: "accountId",
    want: null,
  },
] as const;
for (const c of cases) {
  Deno.test(`readJwtClaims() with ${c.name}`, () => {
    assertEquals(readJwtClaims(jwtOf(c.payload))?.[c.key], c.want);
  });
}

const opaque = [
  "",
  "SENT-OPAQUE",
  "a.b",
  "a.b.c.d",
  "a..c",
  jwtOf("not json"),
  jwtOf([1]),
  jwtOf("null"),
  "x.%%%.y",
];
for (const token of opaque) {
  Deno.test(`readJwtClaims() is null for ${JSON.stringify(token.slice(0, 24))}`, () => {
    assertEquals(readJwtClaims(token), null);
  });
}

Deno.test("readJwtClaims() never throws, whatever it is given", () => {
  fc.assert(fc.property(fc.string(), fc.json(), (text, json) => {
    readJwtClaims(text);
    readJwtClaims(jwtOf(json));
    readJwtClaims(`a.${text}.b`);
  }));
});
