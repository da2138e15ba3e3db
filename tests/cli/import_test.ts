/** Logins of a machine taken over: found, verified at a scripted provider, copied or named (B062). */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { failure } from "../../lib/demo/simulated_replies.ts";
import { json, tokens, usage } from "../../lib/demo/simulated_reply.ts";
import { type SimulatedProvider, startSimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import { unsignedToken } from "../../lib/demo/demo_accounts.ts";
import { parseConfig } from "../../lib/config.ts";
import { CommandLine, type CommandLineOptions } from "../support/command_line.ts";

class Machine implements AsyncDisposable {
  constructor(readonly line: CommandLine, readonly provider: SimulatedProvider) {}

  get authDir(): string {
    return this.line.folder.file("accounts");
  }

  configure(keys: Readonly<Record<string, unknown>> = {}): void {
    this.line.configure({
      "auth-dir": this.authDir,
      database: { path: this.line.folder.file("state/holdfast.db") },
      "proxy-url": "direct",
      "codex-base-url": `${this.provider.url}/backend-api/codex`,
      "chatgpt-base-url": `${this.provider.url}/backend-api`,
      "codex-refresh-token-url": `${this.provider.url}/oauth/token`,
      ...keys,
    });
  }

  /** A provider that is asked for Claude logins. */
  claude(credentials: string): Record<string, unknown> {
    return {
      providers: [{
        id: "claude",
        kind: "anthropic",
        "base-url": this.provider.url,
        accounts: [{ id: "me", credentials }],
      }],
    };
  }

  account(token: string) {
    return this.provider.account(token);
  }

  async import(...words: string[]) {
    const run = await this.line.run("import", "--json", ...words);
    assert(!run.out.includes("SENT-"), run.out);
    return run;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.provider.close();
    this.line[Symbol.dispose]();
    this.provider.assertDone();
  }
}

async function machine(options: CommandLineOptions = {}): Promise<Machine> {
  const provider = await startSimulatedProvider({
    clock: { now: () => Date.now(), sleepUntil: () => Promise.resolve(true) },
  });
  const made = new Machine(new CommandLine(options), provider);
  Deno.mkdirSync(made.authDir);
  made.configure();
  return made;
}

const FUTURE = "2099-01-01T00:00:00Z";
const PAST = "2024-01-01T00:00:00Z";

function codexLogin(name: string, expired: string, fields: Record<string, unknown> = {}): string {
  return JSON.stringify({
    type: "codex",
    access_token: `SENT-tok-${name}`,
    refresh_token: `SENT-ref-${name}`,
    id_token: unsignedToken({
      email: `${name}@example.com`,
      "https://api.openai.com/auth": { chatgpt_account_id: `acct-${name}`, chatgpt_user_id: `user-${name}` },
    }),
    account_id: `acct-${name}`,
    expired,
    last_refresh: "2026-01-01T00:00:00Z",
    extra: "kept",
    ...fields,
  });
}

function results(run: { readonly json: { readonly logins: readonly Record<string, unknown>[] } }) {
  return run.json.logins.map((
    { source, result, login },
  ) => [String(source).split("/").at(-1), result, login]);
}

Deno.test("import takes a working login over, verified, and its file is private and whole", async () => {
  await using m = await machine();
  m.line.write("found/one.json", codexLogin("one", FUTURE), 0o644);
  m.account("SENT-tok-one").usage.script(usage());
  const run = await m.import("found");
  assertEquals([run.code, results(run)], [0, [["one.json", "copied", "verified"]]]);
  assertEquals(run.json.logins[0].email, "o***@example.com");
  const path = `${m.authDir}/one.json`;
  assertEquals(Deno.statSync(path).mode! & 0o777, 0o600);
  assertEquals(Deno.readTextFileSync(path), codexLogin("one", FUTURE));
  assertEquals(m.provider.hitsOf("SENT-ref-one"), []);
});

Deno.test("import refuses the dead one of three with a plain reason, and the other two are usable", async () => {
  await using m = await machine();
  for (const name of ["a", "dead", "z"]) {
    m.line.write(`found/${name}.json`, codexLogin(name, name === "dead" ? PAST : FUTURE));
  }
  for (const name of ["a", "z"]) m.account(`SENT-tok-${name}`).usage.script(usage());
  m.account("SENT-ref-dead").tokens.script(
    json({ error: "invalid_grant", error_description: "SENT-words" }, 400),
  );
  const run = await m.import("found");
  assertEquals([run.code, results(run)], [1, [
    ["a.json", "copied", "verified"],
    ["dead.json", "refused", "refused"],
    ["z.json", "copied", "verified"],
  ]]);
  assertEquals(
    run.json.logins[1].reason,
    "its token has expired, and the issuer refuses to renew it; sign in again",
  );
  assertEquals([...Deno.readDirSync(m.authDir)].map(({ name }) => name).sort(), ["a.json", "z.json"]);
});

const unreachable = [
  {
    name: "the token endpoint is down",
    expired: PAST,
    lane: "tokens",
    reply: failure(503),
    why: /could not be asked/,
  },
  {
    name: "it answers with a page",
    expired: PAST,
    lane: "tokens",
    reply: failure(400),
    why: /could not be asked/,
  },
  {
    name: "the usage page is down",
    expired: FUTURE,
    lane: "usage",
    reply: failure(500),
    why: /answered 500/,
  },
] as const;
for (const c of unreachable) {
  Deno.test(`import takes a login over unverified, never as dead: ${c.name}`, async () => {
    await using m = await machine();
    m.line.write("found/one.json", codexLogin("one", c.expired));
    const key = c.lane === "tokens" ? "SENT-ref-one" : "SENT-tok-one";
    m.account(key).lane(c.lane).script(
      c.lane === "tokens" && c.name.includes("page") ? json(["not", "an object"], 400) : c.reply,
    );
    const run = await m.import("found/one.json");
    assertEquals([run.code, results(run)], [0, [["one.json", "copied", "unverified"]]]);
    assertMatch(run.json.logins[0].reason, c.why);
    assertEquals(Deno.readTextFileSync(`${m.authDir}/one.json`), codexLogin("one", c.expired));
  });
}

Deno.test("import renews an expired token once, and saves it where it was found too", async () => {
  await using m = await machine();
  const source = m.line.write("found/one.json", codexLogin("one", PAST));
  m.account("SENT-ref-one").tokens.script(
    tokens({ access_token: "SENT-tok-new", refresh_token: "SENT-ref-new", expires_in: 3600 }),
  );
  const run = await m.import("found");
  assertEquals(results(run), [["one.json", "copied", "verified"]]);
  for (const path of [source, `${m.authDir}/one.json`]) {
    const saved = JSON.parse(Deno.readTextFileSync(path));
    assertEquals([saved.access_token, saved.refresh_token, saved.extra], [
      "SENT-tok-new",
      "SENT-ref-new",
      "kept",
    ]);
  }
});

Deno.test("import renews a token that is refused although it has not expired", async () => {
  await using m = await machine();
  m.line.write("found/one.json", codexLogin("one", FUTURE));
  m.account("SENT-tok-one").usage.script(failure(401, { message: "SENT-echo" }));
  m.account("SENT-ref-one").tokens.script(json({ error: { code: "refresh_token_reused" } }, 401));
  const run = await m.import("found");
  assertEquals([run.code, run.json.logins[0].reason], [
    1,
    "its token is refused, and the issuer refuses to renew it; sign in again",
  ]);
});

Deno.test("import --offline asks nobody, --dry-run changes nothing", async () => {
  await using m = await machine();
  m.line.write("found/one.json", codexLogin("one", PAST));
  assertEquals(results(await m.import("found", "--dry-run")), [["one.json", "found", "unchecked"]]);
  assertEquals([...Deno.readDirSync(m.authDir)].length, 0);
  assertEquals(results(await m.import("found", "--offline")), [["one.json", "copied", "unverified"]]);
  assertEquals(m.provider.hits.length, 0);
});

Deno.test("import twice leaves one file; a newer login of the same account is merged into it", async () => {
  await using m = await machine();
  m.line.write("found/one.json", codexLogin("one", FUTURE));
  assertEquals(results(await m.import("found", "--offline")), [["one.json", "copied", "unverified"]]);
  assertEquals(results(await m.import("found", "--offline")), [["one.json", "in place", "unverified"]]);
  m.line.write(
    "found/one.json",
    codexLogin("one", FUTURE, { access_token: "SENT-newer", last_refresh: "2026-02-01T00:00:00Z" }),
  );
  assertEquals(results(await m.import("found", "--offline")), [["one.json", "updated", "unverified"]]);
  assertEquals([...Deno.readDirSync(m.authDir)].length, 1);
  assertEquals(JSON.parse(Deno.readTextFileSync(`${m.authDir}/one.json`)).access_token, "SENT-newer");
});

Deno.test("import never writes over a file of another account", async () => {
  await using m = await machine();
  m.line.write("accounts/one.json", codexLogin("other", FUTURE));
  m.line.write("found/one.json", codexLogin("one", FUTURE));
  const run = await m.import("found", "--offline");
  assertMatch(run.json.logins[0].path, /one-2\.json$/);
  assertEquals(JSON.parse(Deno.readTextFileSync(`${m.authDir}/one.json`)).account_id, "acct-other");
});

Deno.test("import finds what programs leave in their usual places, and names Claude logins for the configuration", async () => {
  await using m = await machine();
  m.line.write(
    "home/.codex/auth.json",
    JSON.stringify({
      OPENAI_API_KEY: null,
      tokens: { access_token: "SENT-a", refresh_token: "SENT-b", id_token: "", account_id: "acct-official" },
    }),
  );
  m.line.write("home/.codex/history.json", "{}");
  const claude = m.line.write(
    "home/.claude/.credentials.json",
    JSON.stringify({
      claudeAiOauth: { accessToken: "SENT-c", refreshToken: "SENT-d", expiresAt: Date.parse(FUTURE) },
    }),
  );
  m.line.write("home/.cli-proxy-api/codex-me.json", codexLogin("cpa", FUTURE));
  m.line.write("accounts/here.json", codexLogin("here", FUTURE));
  const run = await m.import("--offline");
  assertEquals(results(run).sort(), [
    [".credentials.json", "to configure", "unverified"],
    ["auth.json", "copied", "unverified"],
    ["codex-me.json", "copied", "unverified"],
    ["here.json", "in place", "unverified"],
  ]);
  assertEquals(run.json.provider, {
    id: "claude",
    kind: "anthropic",
    accounts: [{ id: "login", credentials: claude }],
  });
  const parsed = parseConfig(JSON.stringify({ providers: [run.json.provider] }), {
    homeDir: "/h",
    get: () => undefined,
  });
  assertEquals(parsed.ok, true);
  assertEquals(run.json.shared_login, true);
  assertEquals([...Deno.readDirSync(m.authDir)].map(({ name }) => name).sort(), [
    "codex-acctoffi.json",
    "codex-me.json",
    "here.json",
  ]);
  const told = await m.line.run("import", "--offline");
  assertMatch(told.out, /For the configuration, so that Claude is served:\n\nproviders:\n/);
});

Deno.test("import verifies and renews Claude logins where they are", async () => {
  await using m = await machine();
  const path = m.line.write(
    "claude.json",
    JSON.stringify({
      claudeAiOauth: { accessToken: "SENT-c", refreshToken: "SENT-d", expiresAt: 1_700_000_000_000 },
      mcpOAuth: { kept: true },
    }),
  );
  m.configure(m.claude(path));
  m.account("SENT-d").tokens.script(
    tokens({ access_token: "SENT-e", refresh_token: "SENT-f", expires_in: 28_800 }),
  );
  const run = await m.import("claude.json");
  assertEquals([results(run), run.json.provider], [[["claude.json", "to configure", "verified"]], null]);
  const saved = JSON.parse(Deno.readTextFileSync(path));
  assertEquals([saved.claudeAiOauth.accessToken, saved.claudeAiOauth.refreshToken, saved.mcpOAuth], [
    "SENT-e",
    "SENT-f",
    { kept: true },
  ]);
});

Deno.test("import says that nothing was found, and where else a login may be", async () => {
  await using m = await machine();
  const run = await m.line.run("import");
  assertEquals(run.code, 5);
  assertMatch(run.err, /No Codex or Claude login was found on this machine\n.*keyring/);
  m.line.write("found/other.json", "{}");
  assertEquals((await m.line.run("import", "found")).code, 5);
});

Deno.test("import says which of the named paths do not exist, and then asks no provider and takes nothing over", async () => {
  await using m = await machine();
  m.line.write("found/one.json", codexLogin("one", FUTURE));
  const alone = await m.line.run("import", "missing");
  assertEquals(alone.code, 5);
  assertMatch(alone.err, /Cannot import: \/\S+\/missing does not exist/);
  assert(!/keyring|was found/.test(alone.err), alone.err);
  const among = await m.line.run("import", "found", "found/two.json", "found/one.json/three");
  assertEquals(among.code, 5);
  assertMatch(among.err, /found\/two\.json does not exist\n.*found\/one\.json\/three does not exist/);
  assertEquals([...Deno.readDirSync(m.authDir)], []);
});

Deno.test("import keeps a renewed login although its source cannot be written", async () => {
  await using m = await machine();
  const source = m.line.write("found/one.json", codexLogin("one", PAST));
  // A folder in the way of the temporary file: no write beside the source succeeds, for nobody.
  Deno.mkdirSync(m.line.folder.file("found/.one.json.pending.new/x"), { recursive: true });
  m.account("SENT-ref-one").tokens.script(tokens({ access_token: "SENT-tok-new", expires_in: 3600 }));
  const run = await m.import(source);
  assertEquals([run.code, results(run)], [0, [["one.json", "copied", "verified"]]]);
  assertMatch(run.json.logins[0].reason, /that copy is dead/);
  assertEquals(JSON.parse(Deno.readTextFileSync(`${m.authDir}/one.json`)).access_token, "SENT-tok-new");
});
