import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { isNewerState, mergeTokens } from "../../lib/core/credential_merge.ts";
import { claudeCodeText, codexAuthText, codexFlatText, recordOf } from "../support/credential_texts.ts";

const NOW_MS = 1_800_000_000_000;
const NEW = {
  accessToken: "SENT-A2",
  refreshToken: "SENT-R2",
  idToken: "SENT-I2",
  expiresAtMs: NOW_MS + 3_600_000,
};
const LOGIN = { account: "acc-1", user: "user-1" };

const sdkText = JSON.stringify({
  version: 1,
  type: "oauth_token",
  access_token: "SENT-A1",
  expires_at: 1_700_000_000,
});

const merged = [
  {
    name: "auth.json",
    text: codexAuthText(LOGIN, { agent_identity: { kept: [1, 2] } }),
    want: {
      auth_mode: "chatgpt",
      OPENAI_API_KEY: null,
      tokens: { id_token: "SENT-I2", access_token: "SENT-A2", refresh_token: "SENT-R2", account_id: "acc-1" },
      last_refresh: "2027-01-15T08:00:00.000Z",
      agent_identity: { kept: [1, 2] },
    },
  },
  {
    name: "flat file",
    text: codexFlatText(LOGIN, { priority: 3 }),
    want: {
      id_token: "SENT-I2",
      access_token: "SENT-A2",
      refresh_token: "SENT-R2",
      account_id: "acc-1",
      last_refresh: "2027-01-15T08:00:00.000Z",
      email: "",
      type: "codex",
      priority: 3,
      expired: "2027-01-15T09:00:00.000Z",
    },
  },
  {
    name: "Claude Code's file",
    text: claudeCodeText(),
    want: {
      claudeAiOauth: {
        accessToken: "SENT-A2",
        refreshToken: "SENT-R2",
        expiresAt: NOW_MS + 3_600_000,
        scopes: ["user:inference", "user:profile"],
        subscriptionType: "max",
        rateLimitTier: "default_claude_max_20x",
        idToken: "SENT-I2",
      },
      mcpOAuth: { server: { token: "SENT-MCP" } },
    },
  },
  {
    name: "SDK's file, expiry in its own unit",
    text: sdkText,
    want: {
      version: 1,
      type: "oauth_token",
      access_token: "SENT-A2",
      expires_at: (NOW_MS + 3_600_000) / 1_000,
      refresh_token: "SENT-R2",
      id_token: "SENT-I2",
    },
  },
] as const;
for (const c of merged) {
  Deno.test(`mergeTokens() into ${c.name} sets the tokens and keeps the rest`, () => {
    assertEquals(JSON.parse(mergeTokens(c.text, NEW, NOW_MS)!), c.want);
  });
}

const units = [
  { key: "expires_at", old: 1_700_000_000, want: (NOW_MS + 3_600_000) / 1_000 },
  { key: "expiresAt", old: 1_700_000_000_000, want: NOW_MS + 3_600_000 },
  { key: "expiry", old: "1700000000", want: String((NOW_MS + 3_600_000) / 1_000) },
  { key: "expire", old: "2026-01-01T00:00:00Z", want: "2027-01-15T09:00:00.000Z" },
  { key: "expired", old: "nonsense", want: "2027-01-15T09:00:00.000Z" },
] as const;
for (const c of units) {
  Deno.test(`mergeTokens() writes ${c.key} in the unit it had: ${c.old}`, () => {
    const root = JSON.parse(mergeTokens(codexFlatText(LOGIN, { [c.key]: c.old }), NEW, NOW_MS)!);
    assertEquals(root[c.key], c.want);
    assertEquals(Object.keys(root).filter((key) => /expir/.test(key)), [c.key]);
  });
}

Deno.test("mergeTokens() keeps the old token where the answer brought none, or an empty one", () => {
  for (const refreshToken of [undefined, null, ""]) {
    const text = mergeTokens(codexAuthText(LOGIN), {
      accessToken: "SENT-A2",
      ...refreshToken === undefined ? {} : { refreshToken },
    }, NOW_MS)!;
    assertEquals(JSON.parse(text).tokens.refresh_token, "rt_SENT-REFRESH-1");
    assert(!text.includes('""'));
  }
});

Deno.test("mergeTokens() keeps camelCase names, indentation, last line feed and big numbers", () => {
  const text =
    '{\n    "tokens": {\n        "accessToken": "SENT-A1"\n    },\n    "id": 12345678901234567890,\n    "x": 1.50\n}\n';
  assertEquals(
    mergeTokens(text, { accessToken: "SENT-A2", refreshToken: "SENT-R2" }, NOW_MS),
    '{\n    "tokens": {\n        "accessToken": "SENT-A2",\n        "refreshToken": "SENT-R2"\n    },\n' +
      '    "id": 12345678901234567890,\n    "x": 1.50,\n    "last_refresh": "2027-01-15T08:00:00.000Z"\n}\n',
  );
  assert(!mergeTokens(codexFlatText(LOGIN), NEW, NOW_MS)!.includes("\n"));
});

for (
  const text of ["", "{", "[]", '{"tokens":null,"OPENAI_API_KEY":"sk-SENT-K"}', '{"type":"gemini"}', "{}"]
) {
  Deno.test(`mergeTokens() is null where no credential is left: ${text}`, () => {
    assertEquals(mergeTokens(text, NEW, NOW_MS), null);
  });
}

Deno.test("mergeTokens() keeps every unknown field, and reads back as the tokens it wrote", () => {
  const extra = fc.dictionary(fc.string({ minLength: 3 }).map((key) => `x_${key}`), fc.jsonValue());
  fc.assert(fc.property(extra, (fields) => {
    // One way through JSON first: it has no -0.
    const kept = JSON.parse(JSON.stringify(fields));
    const text = mergeTokens(codexAuthText(LOGIN, kept), NEW, NOW_MS)!;
    const root = JSON.parse(text);
    for (const key of Object.keys(kept)) assertEquals(root[key], kept[key]);
    const record = recordOf(text);
    assertEquals([record.tokens.accessToken, record.tokens.refreshToken], ["SENT-A2", "SENT-R2"]);
    assertEquals(record.lastRefreshAtMs, NOW_MS);
  }));
});

const current = codexAuthText(LOGIN);
const other = codexAuthText({ ...LOGIN, refreshToken: "rt_SENT-2" });
const states = [
  { name: "other tokens of the same owner", left: other, want: true },
  { name: "other tokens, written at the same moment", left: other, laterMs: 0, want: true },
  { name: "other tokens, but the file was written after it", left: other, laterMs: -1, want: false },
  { name: "a file cut in the middle", current: current.slice(0, 90), left: other, laterMs: -1, want: true },
  { name: "an empty file", current: "", left: other, laterMs: -1, want: true },
  { name: "a file that is no credential any more", current: "{}", left: other, want: false },
  { name: "the same tokens", left: current, want: false },
  { name: "another owner", left: codexAuthText({ account: "acc-2", user: "user-1" }), want: false },
  { name: "a copy cut in the middle", left: other.slice(0, -20), want: false },
  { name: "another make", left: codexFlatText({ ...LOGIN, serial: "2" }), want: false },
  { name: "nothing", left: "", want: false },
] as const;
for (const c of states) {
  Deno.test(`isNewerState() is ${c.want} for ${c.name}`, () => {
    const file = { text: "current" in c ? c.current : current, modifiedAtMs: 1_000 };
    const leftBehind = { text: c.left, modifiedAtMs: 1_000 + ("laterMs" in c ? c.laterMs : 5) };
    assertEquals(isNewerState(file, leftBehind), c.want);
  });
}
