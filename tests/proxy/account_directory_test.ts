import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { type AccountChanges, anthropicTokenUrl } from "../../lib/proxy/account_entries.ts";
import { createCredentialFiles } from "../../lib/store/credential_files.ts";
import { AccountDirectory } from "../../lib/proxy/account_directory.ts";
import { createClock } from "../../lib/runtime/clock.ts";
import { createDigest } from "../../lib/runtime/digest.ts";
import { accountHarness, AUTH_DIR, claudeProvider } from "../support/account_harness.ts";
import { claudeCodeText, codexAuthText, codexFlatText, fakeJwt } from "../support/credential_texts.ts";
import { FAKE_START_MS } from "../support/fake_clock.ts";
import { memoryLog } from "../support/memory_log.ts";

const A = `${AUTH_DIR}/auth.json`;
const B = `${AUTH_DIR}/b.json`;
const LATER_MS = FAKE_START_MS + 8 * 3_600_000;
const ALICE = {
  account: "w1",
  user: "alice",
  email: "alice@example.com",
  plan: "plus",
  expiresAtMs: LATER_MS,
};
const BOB = { ...ALICE, user: "bob", email: "bob@example.com" };
const NOTHING: AccountChanges[] = [];

function summary(changes: readonly AccountChanges[]) {
  return changes.map(({ removed, added, updated }) => ({
    removed,
    added: added.map((entry) => entry.account.id),
    updated: updated.map(({ entry, cause }) => `${entry.account.id} ${cause}`),
  }));
}

Deno.test("start() makes an account of each file and each configured key, sorted by id", async () => {
  await using h = await accountHarness({
    files: {
      [B]: codexFlatText(BOB),
      [A]: codexAuthText(ALICE),
      "/home/.claude/.credentials.json": claudeCodeText({ expiresAtMs: LATER_MS }),
      [`${AUTH_DIR}/version.json`]: '{"latest":"1"}',
    },
    providers: [
      claudeProvider([
        { id: "work", apiKey: "sk-ant-SENT-KEY", credentialsPath: null },
        { id: "sub", apiKey: null, credentialsPath: "/home/.claude/.credentials.json" },
        { id: "none", apiKey: null, credentialsPath: "/home/none.json" },
      ]),
    ],
  });
  assertEquals(
    h.directory.accounts().map((
      { id, provider, enabled, refreshable },
    ) => [id, provider, enabled, refreshable]),
    [
      ["claude:sub", "claude", true, true],
      ["claude:work", "claude", true, false],
      ["codex:w1:alice", "codex", true, true],
      ["codex:w1:bob", "codex", true, true],
    ],
  );
  const alice = h.directory.get("codex:w1:alice")!;
  assertEquals(
    { ...alice, account: null, credential: null, refresh: null },
    {
      account: null,
      kind: "codex",
      credential: null,
      refresh: null,
      validity: { expiresAtMs: LATER_MS, refreshAtMs: LATER_MS - 300_000 },
      upstreamAccountId: "w1",
      email: "alice@example.com",
      plan: "plus",
      paths: [A],
      owner: "w1:alice",
    },
  );
  assertEquals(alice.credential, {
    kind: "oauth",
    accountHeader: "w1",
    tokens: {
      accessToken: fakeJwt(ALICE),
      idToken: fakeJwt(ALICE),
      refreshToken: "rt_SENT-REFRESH-1",
      expiresAtMs: LATER_MS,
    },
  });
  assertEquals(h.directory.credential("claude:work"), { kind: "api_key", apiKey: "sk-ant-SENT-KEY" });
  assertEquals(h.directory.get("claude:sub")?.refresh?.url, "http://127.0.0.1:9/v1/oauth/token");
  assertEquals(h.directory.get("none"), null);
  assertEquals(h.log.scan(["SENT", "alice@", "bob@"]), []);
});

for (
  const [baseUrl, want] of [
    ["https://api.anthropic.com", "https://platform.claude.com/v1/oauth/token"],
    ["http://127.0.0.1:9", "http://127.0.0.1:9/v1/oauth/token"],
  ] as const
) {
  Deno.test(`anthropicTokenUrl() of ${baseUrl}`, () => assertEquals(anthropicTokenUrl(baseUrl), want));
}

/** Every change of the folder, reconciled within 2 s without any hint from the system. */
const reconciled: readonly {
  name: string;
  act: (h: Awaited<ReturnType<typeof accountHarness>>) => void;
  want: ReturnType<typeof summary>;
}[] = [
  {
    name: "added",
    act: (h) => h.disk.put(B, codexFlatText(BOB)),
    want: [{ removed: [], added: ["codex:w1:bob"], updated: [] }],
  },
  {
    name: "removed",
    act: (h) => h.disk.files.delete(A),
    want: [{ removed: ["codex:w1:alice"], added: [], updated: [] }],
  },
  {
    name: "given new tokens",
    act: (h) => h.disk.put(A, codexAuthText({ ...ALICE, serial: "2" })),
    want: [{ removed: [], added: [], updated: ["codex:w1:alice replaced"] }],
  },
  {
    name: "given to another account",
    act: (h) => h.disk.put(A, codexAuthText(BOB)),
    want: [{ removed: ["codex:w1:alice"], added: ["codex:w1:bob"], updated: [] }],
  },
  {
    name: "renamed",
    act: (h) => h.disk.rename(A, `${AUTH_DIR}/renamed.json`),
    want: [
      { removed: [], added: [], updated: ["codex:w1:alice details"] },
      { removed: [], added: [], updated: ["codex:w1:alice details"] },
    ],
  },
  {
    name: "archived",
    act: (h) => h.disk.rename(A, `${AUTH_DIR}/auth.archived.json`),
    want: [{ removed: ["codex:w1:alice"], added: [], updated: [] }],
  },
  {
    name: "logged out (JSON without tokens)",
    act: (h) => h.disk.put(A, '{"OPENAI_API_KEY":null,"tokens":null}'),
    want: [{ removed: ["codex:w1:alice"], added: [], updated: [] }],
  },
  {
    name: "disabled in the file",
    act: (h) => h.disk.put(A, codexAuthText(ALICE, { disabled: true })),
    want: [{ removed: [], added: [], updated: ["codex:w1:alice details"] }],
  },
  {
    name: "rewritten with the same content",
    act: (h) => h.disk.put(A, codexAuthText(ALICE)),
    want: [],
  },
];
for (const c of reconciled) {
  Deno.test(`a file ${c.name} is reconciled within 2 s`, async () => {
    await using h = await accountHarness({ files: { [A]: codexAuthText(ALICE) } });
    // The worst moment: just after a look.
    await h.clock.advance(3_001);
    await c.act(h);
    await h.clock.advance(2_000);
    assertEquals(summary(h.changes), c.want);
  });
}

Deno.test("a rename and a token replacement keep the id and show the new path", async () => {
  await using h = await accountHarness({ files: { [A]: codexAuthText(ALICE) } });
  const before = h.directory.get("codex:w1:alice")!;
  await h.disk.rename(A, B);
  h.disk.put(B, codexAuthText({ ...ALICE, serial: "2" }));
  await h.clock.advance(2_000);
  const after = h.directory.get("codex:w1:alice")!;
  assertNotEquals(after.account.fingerprint, before.account.fingerprint);
  assertEquals(after.paths, [B]);
  assert(h.changes.every((change) => change.removed.length === 0 && change.added.length === 0));
});

Deno.test("a file that is half-written for 4.9 s keeps its account; the whole one is taken at once", async () => {
  await using h = await accountHarness({ files: { [A]: codexAuthText(ALICE) } });
  const whole = codexAuthText({ ...ALICE, serial: "2" });
  h.disk.put(A, whole.slice(0, 300));
  await h.clock.advance(4_900);
  assertEquals(h.changes, NOTHING);
  assertEquals(h.directory.notes(), [{ file: "auth.json", reason: "unfinished" }]);
  h.disk.put(A, whole);
  await h.clock.advance(2_000);
  assertEquals(summary(h.changes), [{ removed: [], added: [], updated: ["codex:w1:alice replaced"] }]);
});

Deno.test("a file that stays broken loses its account 5 s after it was first seen so", async () => {
  await using h = await accountHarness({ files: { [A]: codexAuthText(ALICE) } });
  h.disk.put(A, "");
  await h.clock.advance(1_500);
  // Being rewritten in pieces does not start the grace again.
  h.disk.put(A, "{");
  await h.clock.advance(4_999);
  assertEquals(h.directory.accounts().length, 1);
  await h.clock.advance(1);
  assertEquals(summary(h.changes), [{ removed: ["codex:w1:alice"], added: [], updated: [] }]);
});

Deno.test("a file that is removed and made again within the gap of an editor keeps its account", async () => {
  await using h = await accountHarness({ files: { [A]: codexAuthText(ALICE) } });
  h.disk.files.delete(A);
  await h.directory.rescan();
  await h.clock.advance(399);
  h.disk.put(A, codexAuthText(ALICE));
  await h.clock.advance(2_000);
  assertEquals(h.changes, NOTHING);
});

Deno.test("a new file that is half-written is no account until it is whole", async () => {
  await using h = await accountHarness();
  h.disk.put(A, codexAuthText(ALICE).slice(0, 100));
  await h.clock.advance(2_000);
  assertEquals(h.directory.accounts(), []);
  h.disk.put(A, codexAuthText(ALICE));
  await h.clock.advance(2_000);
  assertEquals(summary(h.changes), [{ removed: [], added: ["codex:w1:alice"], updated: [] }]);
});

Deno.test("a change that leaves the file's stamp as it was is found while the stamp is young", async () => {
  await using h = await accountHarness({ files: { [A]: codexAuthText({ ...ALICE, serial: "1" }) } });
  const file = h.disk.files.get(A)!;
  file.text = codexAuthText({ ...ALICE, serial: "2" });
  await h.clock.advance(1_500);
  assertEquals(summary(h.changes), [{ removed: [], added: [], updated: ["codex:w1:alice replaced"] }]);
});

Deno.test("a folder that cannot be read for a while loses no account", async () => {
  await using h = await accountHarness({ files: { [A]: codexAuthText(ALICE) } });
  h.disk.before = (operation) => {
    if (operation === "entries") throw Object.assign(new Error("no"), { code: "EACCES" });
  };
  await h.clock.advance(10_000);
  assertEquals(h.changes, NOTHING);
});

/** Ruling 22: two files of one account are one. */
Deno.test("copies of one account collapse into the newest refresh; when it goes, the other takes over", async () => {
  await using h = await accountHarness({
    files: {
      [A]: codexAuthText({ ...ALICE, serial: "old", lastRefresh: "2027-01-15T06:00:00Z" }),
      [B]: codexFlatText({ ...ALICE, serial: "new", lastRefresh: "2027-01-15T07:00:00Z" }),
    },
  });
  assertEquals(h.directory.accounts().length, 1);
  assertEquals(h.directory.get("codex:w1:alice")?.paths, [B, A]);
  assertEquals(h.directory.notes(), [{ file: "auth.json", reason: "duplicate" }]);
  h.disk.files.delete(B);
  await h.clock.advance(2_000);
  assertEquals(h.directory.get("codex:w1:alice")?.paths, [A]);
  assertEquals(summary(h.changes).at(-1), { removed: [], added: [], updated: ["codex:w1:alice replaced"] });
});

/** Field case B056. */
Deno.test("four logins of one e-mail are three accounts, and the fourth updates the first in place", async () => {
  const mail = { email: "u1@example.com", expiresAtMs: LATER_MS };
  await using h = await accountHarness({
    files: {
      [`${AUTH_DIR}/1.json`]: codexFlatText({ ...mail, account: "w1", user: "x", plan: "plus" }),
      [`${AUTH_DIR}/2.json`]: codexFlatText({ ...mail, account: "w2", user: "x" }),
      [`${AUTH_DIR}/3.json`]: codexFlatText({ ...mail, account: "w1", user: "y" }),
    },
  });
  assertEquals(h.directory.accounts().map((one) => one.id), ["codex:w1:x", "codex:w1:y", "codex:w2:x"]);
  h.disk.put(
    `${AUTH_DIR}/4.json`,
    codexFlatText({
      ...mail,
      account: "w1",
      user: "x",
      plan: "team",
      serial: "2",
      lastRefresh: "2027-01-15T07:30:00Z",
    }),
  );
  await h.clock.advance(2_000);
  assertEquals(summary(h.changes), [{ removed: [], added: [], updated: ["codex:w1:x replaced"] }]);
  assertEquals(h.directory.get("codex:w1:x")?.plan, "team");
});

Deno.test("a configured file that now holds another owner is a removal and an addition of its id", async () => {
  const path = "/home/claude.json";
  const login = (user: string) =>
    JSON.stringify({
      type: "claude",
      access_token: `SENT-${user}`,
      refresh_token: "SENT-R",
      account_uuid: user,
      organization_uuid: "o",
    });
  await using h = await accountHarness({
    files: { [path]: login("u1") },
    providers: [claudeProvider([{ id: "sub", apiKey: null, credentialsPath: path }])],
  });
  h.disk.put(path, login("u2"));
  await h.clock.advance(2_000);
  assertEquals(summary(h.changes), [{ removed: ["claude:sub"], added: ["claude:sub"], updated: [] }]);
});

Deno.test("a login in the wrong place is no account and is named", async () => {
  const path = "/home/codex.json";
  await using h = await accountHarness({
    files: { [path]: codexAuthText(ALICE), [A]: claudeCodeText() },
    providers: [claudeProvider([{ id: "sub", apiKey: null, credentialsPath: path }])],
  });
  assertEquals(h.directory.accounts(), []);
  assertEquals(h.directory.notes(), [
    { file: "/home/codex.json", reason: "wrong_kind" },
    { file: "auth.json", reason: "wrong_kind" },
  ]);
});

Deno.test("a file that gives an account is not complained about, neither at the start nor when it comes", async () => {
  await using h = await accountHarness({ files: { [A]: codexAuthText(ALICE) }, providers: [] });
  h.disk.put(B, codexAuthText(BOB));
  await h.directory.rescan();
  assertEquals(h.directory.accounts().length, 2);
  assertEquals(h.log.events().filter((event) => event === "credential_file_noted"), []);
});

Deno.test("a file with only a refresh token is an account without a credential yet", async () => {
  await using h = await accountHarness({ files: { [A]: '{"type":"codex","refresh_token":"SENT-R"}' } });
  const [account] = h.directory.accounts();
  assert(/^codex:path-[0-9a-f]{16}$/.test(account!.id));
  assertEquals(h.directory.credential(account!.id), null);
  assertEquals(h.refresher.isDue(account!.id, h.clock.now()), true);
});

Deno.test("reconfigure() removes what is no longer named at once, and adds what is new", async () => {
  await using h = await accountHarness({
    files: { [A]: codexAuthText(ALICE), "/other/x.json": codexAuthText(BOB) },
    providers: [claudeProvider([{ id: "work", apiKey: "sk-SENT-1", credentialsPath: null }])],
  });
  await h.directory.reconfigure({
    ...h.config,
    authDir: "/other",
    providers: [claudeProvider([{ id: "home", apiKey: "sk-SENT-2", credentialsPath: null }])],
  });
  assertEquals(summary(h.changes), [{
    removed: ["claude:work", "codex:w1:alice"],
    added: ["claude:home", "codex:w1:bob"],
    updated: [],
  }]);
  await h.directory.reconfigure({
    ...h.config,
    authDir: "/other",
    providers: [claudeProvider([{ id: "home", apiKey: "sk-SENT-3", credentialsPath: null }])],
  });
  assertEquals(summary(h.changes).at(-1)?.updated, ["claude:home replaced"]);
});

/** Ruling 14. */
Deno.test("isOwnAccountToken() knows live access tokens, also the one before a replacement, and nothing else", async () => {
  const old = { ...ALICE, serial: "1", expiresAtMs: FAKE_START_MS + 60_000 };
  await using h = await accountHarness({
    files: { [A]: codexAuthText(old) },
    providers: [claudeProvider([{ id: "work", apiKey: "sk-SENT-KEY", credentialsPath: null }])],
  });
  h.disk.put(A, codexAuthText({ ...ALICE, serial: "2" }));
  await h.clock.advance(2_000);
  const tokens = [
    { token: fakeJwt(old), want: true },
    { token: fakeJwt({ ...ALICE, serial: "2" }), want: true },
    { token: fakeJwt({ ...ALICE, serial: "3" }), want: false },
    { token: "rt_SENT-REFRESH-1", want: false },
    { token: "sk-SENT-KEY", want: false },
    { token: "", want: false },
  ];
  for (const { token, want } of tokens) assertEquals(h.directory.isOwnAccountToken(token), want);
  await h.clock.advance(58_000);
  assertEquals(h.directory.isOwnAccountToken(fakeJwt(old)), false);
  h.disk.files.delete(A);
  await h.clock.advance(2_000);
  assertEquals(h.directory.isOwnAccountToken(fakeJwt({ ...ALICE, serial: "2" })), false);
});

Deno.test("a crash between the issuer's answer and the rename is made good at the next start", async () => {
  await using h = await accountHarness({
    files: {
      [A]: codexAuthText(ALICE),
      [`${AUTH_DIR}/.auth.json.pending`]: codexAuthText({
        ...ALICE,
        serial: "2",
        refreshToken: "rt_SENT-NEW",
      }),
    },
  });
  assertEquals(h.directory.get("codex:w1:alice")?.refresh?.refreshToken, "rt_SENT-NEW");
  assertEquals([...h.disk.files.keys()], [A]);
  assert(h.log.events().includes("credential_file_completed"));
});

Deno.test("nothing is written and nothing is logged while nothing changes", async () => {
  await using h = await accountHarness({
    files: { [A]: codexAuthText(ALICE), [`${AUTH_DIR}/models_cache.json`]: "{}", [B]: "{" },
  });
  const before = h.log.events().length;
  await h.clock.advance(60_000);
  assertEquals(h.log.events().length, before);
  assertEquals(h.disk.writes, []);
});

Deno.test("ten thousand configured keys cost a look nothing", async () => {
  const accounts = Array.from(
    { length: 10_000 },
    (_, i) => ({ id: `k${i}`, apiKey: `SENT-${i}`, credentialsPath: null }),
  );
  let hashedCount = 0;
  const real = createDigest();
  const digest = { ...real, sha256: (data: string | Uint8Array) => (hashedCount += 1, real.sha256(data)) };
  await using h = await accountHarness({ providers: [claudeProvider(accounts)], digest });
  const before = h.directory.accounts();
  assertEquals(hashedCount, 10_000);
  for (let look = 0; look < 50; look++) await h.directory.rescan();
  assertEquals(hashedCount, 10_000);
  assertEquals(h.directory.accounts() === before, true);
});

Deno.test("on a real folder a change is seen through the system's hint, and everything is closed again", async () => {
  const dir = await Deno.makeTempDir();
  const clock = createClock();
  const directory = new AccountDirectory({
    config: { authDir: dir, providers: [], codexRefreshTokenUrl: "http://127.0.0.1/" },
    files: createCredentialFiles(),
    clock,
    digest: createDigest(),
    log: memoryLog(),
    onFatal: (error) => {
      throw error;
    },
  });
  try {
    await directory.start();
    const changed = Promise.withResolvers<AccountChanges>();
    directory.subscribe(changed.resolve);
    const startedAt = performance.now();
    await Deno.writeTextFile(`${dir}/auth.json`, codexAuthText(ALICE));
    const changes = await changed.promise;
    assertEquals(changes.added.map((entry) => entry.account.id), ["codex:w1:alice"]);
    assert(performance.now() - startedAt < 1_400, "sooner than the next regular look");
  } finally {
    await directory.close();
    await Deno.remove(dir, { recursive: true });
  }
});
