import { assertEquals, assertNotEquals } from "@std/assert";
import fc from "fast-check";
import {
  codexAccountId,
  compareCopies,
  credentialOwner,
  fingerprintInput,
  isEmailMeant,
  maskEmail,
  parseCredentialFile,
  readTimeMs,
} from "../../lib/core/credential.ts";
import {
  claudeCodeText,
  codexAuthText,
  codexFlatText,
  fakeJwt,
  recordOf,
} from "../support/credential_texts.ts";

const NOW_MS = 1_800_000_000_000;
const END_MS = NOW_MS + 3_600_000;
const LOGIN = {
  account: "acc-1",
  user: "user-1",
  email: "jo@example.com",
  plan: "plus",
  expiresAtMs: END_MS,
};

Deno.test("parseCredentialFile() reads Codex's own auth.json", () => {
  const found = recordOf(codexAuthText(LOGIN));
  assertEquals({ ...found, tokens: null }, {
    format: "codex_auth",
    kind: "codex",
    tokens: null,
    refreshAtMs: END_MS - 300_000,
    accountId: "acc-1",
    userId: "user-1",
    email: "jo@example.com",
    plan: "plus",
    lastRefreshAtMs: Date.UTC(2027, 0, 15, 7),
    disabled: false,
  });
  assertEquals(found.tokens, {
    accessToken: fakeJwt(LOGIN),
    idToken: fakeJwt(LOGIN),
    refreshToken: "rt_SENT-REFRESH-1",
    expiresAtMs: END_MS,
  });
});

Deno.test("parseCredentialFile() reads a flat codex file, with and without its type", () => {
  const typed = recordOf(codexFlatText(LOGIN, { disabled: true }));
  assertEquals([typed.format, typed.accountId, typed.userId, typed.disabled], [
    "codex_flat",
    "acc-1",
    "user-1",
    true,
  ]);
  const untyped = recordOf(codexFlatText(LOGIN, { type: undefined }));
  assertEquals([untyped.format, untyped.email], ["codex_flat", "jo@example.com"]);
});

Deno.test("parseCredentialFile() reads Claude Code's file", () => {
  const found = recordOf(claudeCodeText({ expiresAtMs: END_MS }));
  assertEquals(found.format, "claude_code");
  assertEquals([found.kind, found.plan, credentialOwner(found)], ["anthropic", "max", null]);
  assertEquals(found.tokens, {
    accessToken: "sk-ant-oat01-SENT-ACCESS-1",
    refreshToken: "sk-ant-ort01-SENT-REFRESH-1",
    idToken: null,
    expiresAtMs: END_MS,
  });
});

Deno.test("parseCredentialFile() reads the SDK's file with its expiry in seconds", () => {
  const found = recordOf(JSON.stringify({
    version: 1,
    type: "oauth_token",
    access_token: "SENT-A",
    refresh_token: "SENT-R",
    expires_at: END_MS / 1_000,
  }));
  assertEquals([found.format, found.kind, found.tokens.expiresAtMs], ["anthropic_sdk", "anthropic", END_MS]);
});

Deno.test("parseCredentialFile() reads a flat claude file and names its owner by organisation and account", () => {
  const found = recordOf(JSON.stringify({
    access_token: "SENT-A",
    refresh_token: "SENT-R",
    last_refresh: "2027-01-15T07:00:00Z",
    email: "jo@example.com",
    account_uuid: "u-1",
    organization_uuid: "o-1",
    type: "claude",
    expired: "2027-01-15T09:00:00Z",
  }));
  assertEquals([found.format, credentialOwner(found), found.tokens.expiresAtMs], [
    "claude_flat",
    "o-1:u-1",
    END_MS,
  ]);
});

Deno.test("parseCredentialFile() takes camelCase tokens and a byte order mark", () => {
  const found = recordOf(`\ufeff${
    JSON.stringify({
      tokens: { idToken: fakeJwt(LOGIN), accessToken: "SENT-A", refreshToken: "SENT-R", accountId: "acc-9" },
    })
  }`);
  assertEquals([found.tokens.accessToken, found.accountId, found.userId], ["SENT-A", "acc-9", "user-1"]);
});

for (const key of ["expired", "expire", "expires_at", "expiresAt", "expiry", "expires"]) {
  for (const value of ["2027-01-15T09:00:00Z", END_MS / 1_000, END_MS, String(END_MS / 1_000)]) {
    Deno.test(`parseCredentialFile() reads ${key}: ${value} of an opaque token`, () => {
      const text = codexFlatText({ ...LOGIN, opaqueAccess: "SENT-OPAQUE" }, { [key]: value });
      assertEquals(recordOf(text).tokens.expiresAtMs, END_MS);
    });
  }
}

Deno.test("parseCredentialFile() keeps a file that holds only a refresh token", () => {
  const found = recordOf(JSON.stringify({ type: "codex", refresh_token: "SENT-R", access_token: "" }));
  assertEquals([found.tokens.accessToken, found.tokens.refreshToken], ["", "SENT-R"]);
});

const rejected = [
  { name: "empty", text: "", want: "unfinished" },
  { name: "blank", text: " \n", want: "unfinished" },
  { name: "half of a file", text: codexAuthText(LOGIN).slice(0, 200), want: "unfinished" },
  { name: "a list", text: "[]", want: "not_a_credential" },
  { name: "a number", text: "7", want: "not_a_credential" },
  { name: "null", text: "null", want: "not_a_credential" },
  { name: "other JSON (version.json)", text: '{"latest_version":"0.171.0"}', want: "not_a_credential" },
  { name: "another type", text: '{"type":"gemini","access_token":"SENT-A"}', want: "other_type" },
  { name: "key only", text: '{"OPENAI_API_KEY":"sk-SENT-KEY","tokens":null}', want: "api_key_only" },
  { name: "logged out", text: '{"OPENAI_API_KEY":null,"tokens":null}', want: "no_tokens" },
  { name: "empty tokens", text: '{"type":"codex","access_token":"","refresh_token":" "}', want: "no_tokens" },
  { name: "tokens that are no text", text: '{"type":"codex","access_token":7}', want: "no_tokens" },
  { name: "token with a line break", text: '{"type":"codex","access_token":"SENT\\nX"}', want: "no_tokens" },
] as const;
for (const c of rejected) {
  Deno.test(`parseCredentialFile() answers ${c.want}: ${c.name}`, () => {
    const parsed = parseCredentialFile(c.text);
    assertEquals(parsed.kind === "ignored" ? parsed.reason : parsed.kind, c.want);
  });
}

Deno.test("parseCredentialFile() calls every proper prefix of a file unfinished", () => {
  const text = codexAuthText(LOGIN);
  for (let end = 0; end < text.length; end++) {
    assertEquals(parseCredentialFile(text.slice(0, end)).kind, "unfinished");
  }
});

Deno.test("parseCredentialFile() never throws, whatever JSON it is given", () => {
  fc.assert(fc.property(fc.json(), fc.constantFrom("codex", "claude", "oauth_token"), (json, type) => {
    parseCredentialFile(json);
    parseCredentialFile(`{"type":"${type}","access_token":${json},"expired":${json},"tokens":${json}}`);
    parseCredentialFile(`{"tokens":${json},"claudeAiOauth":${json}}`);
  }));
});

/** Field case B056: one e-mail, three accounts; workspace and user decide. */
const owners = [
  { name: "first", login: { account: "w1", user: "x" }, want: "codex:w1:x" },
  { name: "other workspace", login: { account: "w2", user: "x" }, want: "codex:w2:x" },
  { name: "other user of a workspace", login: { account: "w1", user: "y" }, want: "codex:w1:y" },
  {
    name: "first again, new plan and tokens",
    login: { account: "w1", user: "x", plan: "team", serial: "2" },
    want: "codex:w1:x",
  },
  { name: "no user", login: { account: "w1" }, want: "codex:path-0123456789abcdef" },
  { name: "no workspace", login: { user: "x" }, want: "codex:path-0123456789abcdef" },
  {
    name: "user id that is an e-mail",
    login: { account: "w1", user: "u@x.y" },
    want: "codex:path-0123456789abcdef",
  },
  { name: "id with a slash", login: { account: "../w", user: "x" }, want: "codex:path-0123456789abcdef" },
] as const;
for (const c of owners) {
  Deno.test(`codexAccountId() is ${c.want}: ${c.name}`, () => {
    const found = recordOf(codexAuthText({ email: "u1@example.com", ...c.login }));
    assertEquals(codexAccountId(found, "0123456789abcdef0123"), c.want);
  });
}

Deno.test("compareCopies() puts the newest refresh first, whatever the order of the files", () => {
  const copy = (path: string, lastRefresh: string, expiresAtMs = END_MS) => ({
    path,
    record: recordOf(codexAuthText({ ...LOGIN, lastRefresh, expiresAtMs })),
  });
  const copies = [
    copy("/d", "2027-01-15T06:00:00Z"),
    copy("/c", "2027-01-15T07:00:00Z"),
    copy("/b", "2027-01-15T07:00:00Z", END_MS + 60_000),
    copy("/a", "2027-01-15T07:00:00Z"),
  ];
  fc.assert(fc.property(fc.shuffledSubarray(copies, { minLength: 4 }), (shuffled) => {
    assertEquals([...shuffled].sort(compareCopies).map((one) => one.path), ["/b", "/a", "/c", "/d"]);
  }));
});

Deno.test("fingerprintInput() changes with access or refresh token, kind or key, and with nothing else", () => {
  const tokens = { accessToken: "SENT-A", refreshToken: "SENT-R" };
  const base = fingerprintInput(tokens);
  assertEquals(fingerprintInput({ ...tokens }), base);
  assertNotEquals(fingerprintInput({ ...tokens, accessToken: "SENT-B" }), base);
  assertNotEquals(fingerprintInput({ ...tokens, refreshToken: null }), base);
  assertNotEquals(fingerprintInput({ apiKey: "SENT-A" }), fingerprintInput({ apiKey: "SENT-B" }));
  assertNotEquals(
    fingerprintInput({ accessToken: "ab", refreshToken: "c" }),
    fingerprintInput({ accessToken: "a", refreshToken: "bc" }),
  );
});

const emails = [
  ["john.doe@example.com", "j***@example.com"],
  ["a@b.c", "a***@b.c"],
  ["x@y@z.org", "x***@z.org"],
  ["no-at-sign", "***"],
  ["@b.c", "***"],
  ["", "***"],
] as const;
for (const [email, want] of emails) {
  Deno.test(`maskEmail() makes ${want} of "${email}"`, () => assertEquals(maskEmail(email), want));
}

const meant = [
  { text: "john.doe@example.com", want: true },
  { text: "John.Doe@Example.COM", want: true },
  { text: "john.doe", want: true },
  { text: "j***@example.com", want: true },
  { text: "john", want: false },
  { text: "john.doe@", want: false },
  { text: "ohn.doe@example.com", want: false },
  { text: "example.com", want: false },
  { text: "", want: false },
] as const;
for (const { text, want } of meant) {
  Deno.test(`isEmailMeant() is ${want} for "${text}"`, () => {
    assertEquals(isEmailMeant("John.doe@example.com", text), want);
  });
}

Deno.test("isEmailMeant() takes an address without a name for nothing shorter than itself", () => {
  assertEquals(["", "@b.c", "b.c"].map((text) => isEmailMeant("@b.c", text)), [false, true, false]);
});

const times = [
  { value: "2027-01-15T08:00:00Z", want: NOW_MS },
  { value: "2027-01-15T08:00:00.123456789Z", want: NOW_MS + 123 },
  { value: "2027-01-15t10:00:00+02:00", want: NOW_MS },
  { value: "2027-01-15 08:00:00Z", want: NOW_MS },
  { value: "2027-01-15T08:00:00", want: null },
  { value: "2027-13-45T99:00:00Z", want: null },
  { value: "tomorrow", want: null },
  { value: "", want: null },
  { value: 1_800_000_000, want: NOW_MS },
  { value: 1_800_000_000_000, want: NOW_MS },
  { value: "1800000000", want: NOW_MS },
  { value: 0, want: null },
  { value: -1, want: null },
  { value: NaN, want: null },
  { value: Infinity, want: null },
  { value: 1e300, want: null },
  { value: null, want: null },
  { value: {}, want: null },
] as const;
for (const c of times) {
  Deno.test(`readTimeMs() of ${typeof c.value} ${String(c.value)}`, () =>
    assertEquals(readTimeMs(c.value), c.want));
}
