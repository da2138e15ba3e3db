/** Logins against a scripted authorization server: what is asked, what is checked, what is kept. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { readPasted } from "../../lib/cli/login_claude.ts";
import { unsignedToken } from "../../lib/demo/demo_accounts.ts";
import { AuthorizationServer, challengeOf, type ScriptedAnswer } from "../support/authorization_server.ts";
import { CommandLine, type CommandLineOptions } from "../support/command_line.ts";
import { eventually } from "../support/eventually.ts";
import { ImpatientClock } from "../support/impatient_clock.ts";

const USERCODE = "/api/accounts/deviceauth/usercode";
const POLL = "/api/accounts/deviceauth/token";
const TOKEN = "/oauth/token";
const CODEX_CLIENT = "app_EMoamEEZ73f0CkXaXp7hrann";

function ok(json: unknown): ScriptedAnswer {
  return { status: 200, json };
}
const PENDING: ScriptedAnswer = { status: 403, json: { error: "authorization_pending" } };
const CODE = ok({ device_auth_id: "SENT-device", user_code: "ABCD-EFGH", interval: "5" });
const GRANTED = ok({ authorization_code: "SENT-code", code_challenge: "x", code_verifier: "SENT-verifier" });

function tokensOf(name: string, plan = "plus"): ScriptedAnswer {
  return ok({
    access_token: `SENT-access-${name}`,
    refresh_token: `SENT-refresh-${name}`,
    id_token: unsignedToken({
      email: `${name}@example.com`,
      "https://api.openai.com/auth": {
        chatgpt_account_id: `acct-${name}`,
        chatgpt_user_id: `user-${name}`,
        chatgpt_plan_type: plan,
      },
    }),
    expires_in: 3_600,
  });
}

interface Desk extends AsyncDisposable {
  readonly line: CommandLine;
  readonly server: AuthorizationServer;
  readonly authDir: string;
}

function desk(options: CommandLineOptions = {}): Desk {
  const line = new CommandLine(options);
  const server = new AuthorizationServer();
  line.configure({
    "auth-dir": line.folder.file("accounts"),
    database: { path: line.folder.file("state/holdfast.db") },
    "proxy-url": "direct",
  });
  return {
    line,
    server,
    authDir: line.folder.file("accounts"),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      line[Symbol.dispose]();
    },
  };
}

function secretsIn(text: string): string[] {
  return text.match(/SENT-[A-Za-z0-9-]+/g) ?? [];
}

Deno.test("login codex shows a code, waits until it is entered, and saves the account for the pool", async () => {
  const clock = new ImpatientClock();
  await using d = desk({ clock });
  d.server.script(USERCODE, CODE).script(
    POLL,
    PENDING,
    { status: 404, json: {} },
    { status: 502, json: {} },
    GRANTED,
  )
    .script(TOKEN, tokensOf("me"));
  const run = await d.line.run("login", "codex", "--issuer", d.server.url, "--json");
  assertEquals([run.code, run.json.email, run.json.plan], [0, "m***@example.com", "plus"]);
  assertMatch(run.err, new RegExp(`Open ${d.server.url}/codex/device in a browser.*\\n\\n {2}ABCD-EFGH\\n`));
  assertEquals(clock.slept, [5_000, 5_000, 5_000, 5_000]);
  assertEquals(d.server.calls(USERCODE)[0]?.fields, { client_id: CODEX_CLIENT });
  assertEquals(d.server.calls(POLL)[0]?.fields, { device_auth_id: "SENT-device", user_code: "ABCD-EFGH" });
  const [exchange] = d.server.calls(TOKEN);
  assertEquals(exchange?.contentType, "application/x-www-form-urlencoded");
  assertEquals(exchange?.fields, {
    grant_type: "authorization_code",
    code: "SENT-code",
    redirect_uri: `${d.server.url}/deviceauth/callback`,
    client_id: CODEX_CLIENT,
    code_verifier: "SENT-verifier",
  });
  const saved = JSON.parse(Deno.readTextFileSync(run.json.path));
  assertEquals([saved.type, saved.access_token, saved.refresh_token, saved.account_id], [
    "codex",
    "SENT-access-me",
    "SENT-refresh-me",
    "acct-me",
  ]);
  assertEquals(Deno.statSync(run.json.path).mode! & 0o777, 0o600);
  assert(run.json.path.startsWith(`${d.authDir}/`));
  assertEquals(secretsIn(run.out + run.err), []);
});

Deno.test("login codex again renews the account's file instead of making another", async () => {
  await using d = desk({ clock: new ImpatientClock() });
  d.server.script(USERCODE, CODE).script(POLL, GRANTED).script(
    TOKEN,
    tokensOf("me"),
    ok({
      ...tokensOf("me").json as Record<string, unknown>,
      access_token: "SENT-access-again",
    }),
  );
  const first = await d.line.run("login", "codex", "--issuer", d.server.url, "--json");
  const again = await d.line.run("login", "codex", "--issuer", d.server.url, "--json");
  assertEquals([again.json.result, again.json.path], ["updated", first.json.path]);
  assertEquals([...Deno.readDirSync(d.authDir)].length, 1);
  assertEquals(JSON.parse(Deno.readTextFileSync(first.json.path)).access_token, "SENT-access-again");
});

const refusals: readonly {
  name: string;
  script: (server: AuthorizationServer) => void;
  code: string;
  want: RegExp;
}[] = [
  {
    name: "device codes are switched off",
    script: (server) => void server.script(USERCODE, { status: 404, json: {} }),
    code: "device_code_off",
    want: /holdfast login codex --browser/,
  },
  {
    name: "the issuer gives no code",
    script: (server) =>
      void server.script(USERCODE, {
        status: 400,
        json: { error: { code: "SENT-word", message: "SENT-m" } },
      }),
    code: "refused",
    want: /gives no device code \(400\)$/m,
  },
  {
    name: "the login is denied",
    script: (server) =>
      void server.script(USERCODE, CODE).script(POLL, { status: 400, json: { error: "access_denied" } }),
    code: "refused",
    want: /The login was refused \(400 access_denied\)/,
  },
  {
    name: "nobody enters the code",
    script: (server) => void server.script(USERCODE, CODE).script(POLL, PENDING),
    code: "timeout",
    want: /not entered within 15 minutes/,
  },
  {
    name: "the code is not taken",
    script: (server) =>
      void server.script(USERCODE, CODE).script(POLL, GRANTED)
        .script(TOKEN, { status: 400, json: { error: "invalid_grant", error_description: "SENT-code" } }),
    code: "refused",
    want: /Cannot sign in: 127\.0\.0\.1:\d+ refuses the login \(400 invalid_grant\)/,
  },
  {
    name: "the answer holds no token",
    script: (server) =>
      void server.script(USERCODE, CODE).script(POLL, GRANTED).script(TOKEN, ok({ access_token: "" })),
    code: "refused",
    want: /gave no token/,
  },
  {
    name: "the login names no account",
    script: (server) =>
      void server.script(USERCODE, CODE).script(POLL, GRANTED).script(TOKEN, ok({ access_token: "SENT-a" })),
    code: "no_account",
    want: /names no ChatGPT account/,
  },
];
for (const c of refusals) {
  Deno.test(`login codex says why it did not work, and saves nothing: ${c.name}`, async () => {
    await using d = desk({ clock: new ImpatientClock() });
    c.script(d.server);
    const run = await d.line.run("login", "codex", "--issuer", d.server.url, "--json");
    assertEquals([run.code, run.json.error.code], [1, c.code]);
    assertMatch(run.json.error.message, c.want);
    assertEquals(secretsIn(run.out + run.err), []);
    assertEquals(d.line.folder.names(), ["holdfast.yaml", "home"]);
  });
}

Deno.test("login codex says that the issuer cannot be reached, and what is no address", async () => {
  await using d = desk();
  const run = await d.line.run("login", "codex", "--issuer", "http://127.0.0.1:1");
  assertEquals(run.code, 1);
  assertMatch(run.err, /Cannot sign in: 127\.0\.0\.1:1 refuses connections/);
  const plain = await d.line.run("login", "codex", "--issuer", "http://auth.example");
  assertEquals(plain.code, 2);
  assertMatch(plain.err, /--issuer must be an https URL/);
});

/** Signs in like a browser: follows the address that would be opened. */
function browserThat(visits: string[]): (url: string) => boolean {
  return (url) => visits.push(url) > 0;
}

async function knock(url: string, query: Record<string, string>): Promise<string> {
  const answer = await fetch(`${url}?${new URLSearchParams(query)}`);
  return `${answer.status} ${await answer.text()}`;
}

Deno.test("login codex --browser proves itself by PKCE and takes only the answer to its own question", async () => {
  const opened: string[] = [];
  await using d = desk({ browser: browserThat(opened) });
  d.server.script(TOKEN, tokensOf("me"));
  const running = d.line.run(
    "login",
    "codex",
    "--browser",
    "--callback-port",
    "0",
    "--issuer",
    d.server.url,
    "--json",
  );
  await eventually(() => opened.length === 1);
  const asked = new URL(opened[0]!);
  const parameters = Object.fromEntries(asked.searchParams);
  assertEquals(`${asked.origin}${asked.pathname}`, `${d.server.url}/oauth/authorize`);
  assertEquals([parameters["response_type"], parameters["client_id"], parameters["code_challenge_method"]], [
    "code",
    CODEX_CLIENT,
    "S256",
  ]);
  assertEquals(parameters["scope"], "openid profile email offline_access");
  const redirect = parameters["redirect_uri"]!;
  assertMatch(redirect, /^http:\/\/localhost:\d+\/auth\/callback$/);
  const local = redirect.replace("localhost", "127.0.0.1");
  const state = parameters["state"]!;
  assertMatch(await knock(local.replace("/auth/callback", "/other"), { code: "SENT-x", state }), /^404/);
  assertMatch(
    await knock(local, { code: "SENT-stolen", state: "another" }),
    /^400 .*answer to another login/,
  );
  assertMatch(await knock(local, { code: "SENT-code", state }), /^200 .*Signed in/);
  const run = await running;
  assertEquals([run.code, run.json.account_id], [0, "acct-me"]);
  const [exchange] = d.server.calls(TOKEN);
  assertEquals(d.server.calls(TOKEN).length, 1);
  assertEquals([exchange?.fields["code"], exchange?.fields["redirect_uri"]], ["SENT-code", redirect]);
  assertEquals(challengeOf(exchange!.fields["code_verifier"]!), parameters["code_challenge"]);
  assertEquals(secretsIn(run.out + run.err), []);
});

Deno.test("login codex --browser says that the login was refused, and that its port is taken", async () => {
  const opened: string[] = [];
  await using d = desk({ browser: browserThat(opened) });
  const running = d.line.run("login", "codex", "--browser", "--callback-port", "0", "--issuer", d.server.url);
  await eventually(() => opened.length === 1);
  const { searchParams } = new URL(opened[0]!);
  const local = searchParams.get("redirect_uri")!.replace("localhost", "127.0.0.1");
  await knock(local, {
    error: "access_denied",
    error_description: "SENT-why",
    state: searchParams.get("state")!,
  });
  const run = await running;
  assertEquals([run.code, run.err.includes("The login was refused (access_denied)")], [1, true]);
  const taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const second = await d.line.run("login", "codex", "--browser", "--callback-port", `${taken.addr.port}`);
  taken.close();
  assertEquals(second.code, 1);
  assertMatch(second.err, /Port \d+ is taken/);
});

const CLAUDE_TOKENS = ok({
  access_token: "SENT-oat",
  refresh_token: "SENT-ort",
  token_type: "Bearer",
  expires_in: 28_800,
  account: { uuid: "11112222-3333", email_address: "me@example.com" },
  organization: { uuid: "org-1", name: "SENT-organisation" },
});

/** A person who reads the state off the address that was shown, and pastes the code with it. */
function pasting(make: (state: string) => string): { line: CommandLine; server: AuthorizationServer } {
  const typed: string[] = [];
  const server = new AuthorizationServer();
  const line = new CommandLine({
    typed,
    browser: (url) => {
      typed[0] = make(new URL(url).searchParams.get("state")!);
      return true;
    },
  });
  return { line, server };
}

async function signInAtClaude(
  make: (state: string) => string,
  script: ScriptedAnswer = CLAUDE_TOKENS,
  work: (line: CommandLine, server: AuthorizationServer) => Promise<void> = async () => {},
) {
  const { line, server } = pasting(make);
  try {
    server.script("/v1/oauth/token", script);
    line.configure({ database: { path: line.folder.file("state/holdfast.db") }, "proxy-url": "direct" });
    const run = await line.run("login", "claude", "--token-url", `${server.url}/v1/oauth/token`, "--json");
    await work(line, server);
    return {
      run,
      calls: server.calls("/v1/oauth/token"),
      saved: run.code === 0 ? Deno.readTextFileSync(run.json.path) : null,
    };
  } finally {
    await server[Symbol.asyncDispose]();
    line[Symbol.dispose]();
  }
}

Deno.test("login claude takes the pasted code, and names the login for the configuration", async () => {
  const { run, calls, saved } = await signInAtClaude((state) => `SENT-code#${state}`);
  assertEquals([run.code, run.json.email], [0, "m***@example.com"]);
  assertMatch(run.json.path, /\/state\/logins\/claude-11112222\.json$/);
  assertEquals(run.json.provider, {
    id: "claude",
    kind: "anthropic",
    accounts: [{ id: "login", credentials: run.json.path }],
  });
  const login = JSON.parse(saved!);
  assertEquals([login.type, login.access_token, login.refresh_token, login.organization_uuid], [
    "claude",
    "SENT-oat",
    "SENT-ort",
    "org-1",
  ]);
  const shown = /https:\/\/claude\.ai\/oauth\/authorize\?\S+/.exec(run.err)![0];
  const asked = Object.fromEntries(new URL(shown).searchParams);
  assertEquals([asked["code"], asked["code_challenge_method"]], ["true", "S256"]);
  const [exchange] = calls;
  assertEquals(exchange?.contentType, "application/json");
  assertEquals(challengeOf(exchange!.fields["code_verifier"]!), asked["code_challenge"]);
  assertEquals([exchange?.fields["code"], exchange?.fields["state"], exchange?.fields["redirect_uri"]], [
    "SENT-code",
    asked["state"],
    asked["redirect_uri"],
  ]);
  assertEquals(secretsIn(run.out + run.err), []);
});

Deno.test("login claude again writes the new tokens into the file that is configured", async () => {
  const { line, server } = pasting((state) => `SENT-code#${state}`);
  await using _server = server;
  using _line = line;
  server.script(
    "/v1/oauth/token",
    CLAUDE_TOKENS,
    ok({ ...CLAUDE_TOKENS.json as object, access_token: "SENT-oat-2" }),
  );
  const path = line.folder.file("state/logins/claude-11112222.json");
  line.configure({
    database: { path: line.folder.file("state/holdfast.db") },
    "proxy-url": "direct",
    providers: [{ id: "claude", kind: "anthropic", accounts: [{ id: "login", credentials: path }] }],
  });
  const words = ["login", "claude", "--token-url", `${server.url}/v1/oauth/token`] as const;
  const first = await line.run(...words);
  assertMatch(first.out, /It is in the configuration already/);
  await line.run(...words);
  assertEquals(JSON.parse(Deno.readTextFileSync(path)).access_token, "SENT-oat-2");
  assertEquals(line.folder.names("state/logins"), ["claude-11112222.json"]);
});

Deno.test("login claude refuses a code of another login before it asks anybody", async () => {
  const { run, calls } = await signInAtClaude(() => "SENT-code#another-state");
  assertEquals([run.code, run.json.error.code, calls.length], [1, "wrong_state", 0]);
});

Deno.test("login claude says so when nothing is pasted, and when the code is not taken", async () => {
  const nothing = await signInAtClaude(() => " ");
  assertEquals([nothing.run.code, nothing.run.json.error.code], [1, "no_code"]);
  const refused = await signInAtClaude((state) => `SENT-code#${state}`, {
    status: 400,
    json: { error: "invalid_grant", error_description: "SENT-code" },
  });
  assertMatch(refused.run.json.error.message, /refuses the login \(400 invalid_grant\)/);
  assertEquals(secretsIn(refused.run.out + refused.run.err), []);
});

const pasted = [
  { text: " abc ", want: { code: "abc", state: null } },
  { text: "abc#st", want: { code: "abc", state: "st" } },
  { text: "abc#", want: { code: "abc", state: null } },
  {
    text: "https://platform.claude.com/oauth/code/callback?code=abc&state=st",
    want: { code: "abc", state: "st" },
  },
  { text: "https://platform.claude.com/oauth/code/callback?code=abc#st", want: { code: "abc", state: "st" } },
  { text: "https://platform.claude.com/oauth/code/callback", want: null },
  { text: "", want: null },
  { text: "#st", want: null },
  { text: "a b", want: null },
] as const;
for (const c of pasted) {
  Deno.test(`readPasted() of ${JSON.stringify(c.text)} is ${JSON.stringify(c.want)}`, () => {
    assertEquals(readPasted(c.text), c.want);
  });
}
