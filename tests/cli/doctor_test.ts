/** The doctor on a healthy machine, and on one with each fault people really have, planted for real. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { fileURLToPath } from "node:url";
import { DatabaseSync } from "node:sqlite";
import { checkAccountStates } from "../../lib/cli/doctor_accounts.ts";
import type { Finding } from "../../lib/cli/finding.ts";
import { parseConfig } from "../../lib/config.ts";
import { failure, ok } from "../../lib/demo/simulated_replies.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { CommandLine, type CommandLineOptions, type Run } from "../support/command_line.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { START_MS } from "../support/pool_driver.ts";
import { ADMIN_KEY, startRig } from "../support/rig.ts";

const HOUR_MS = 3_600_000;

function login(fields: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({
    type: "codex",
    access_token: "SENT-access",
    refresh_token: "SENT-refresh",
    expired: "2099-01-01T00:00:00Z",
    ...fields,
  });
}

/** An upstream that refuses every call without a key, as the real ones do; `date` is its clock. */
class Upstream implements AsyncDisposable {
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  paths: string[] = [];
  date: string | null = null;
  page = false;

  constructor() {
    this.#server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
      const { pathname } = new URL(request.url);
      this.paths.push(pathname);
      const headers = this.date === null ? new Headers() : new Headers({ date: this.date });
      if (this.page) return new Response("<html>", { headers: { "content-type": "text/html" } });
      if (pathname.startsWith("/wrong")) {
        return Response.json({ detail: "Not Found" }, { status: 404, headers });
      }
      return Response.json({ detail: "Unauthorized" }, { status: 401, headers });
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** A port nobody listens on. */
function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}

interface World extends AsyncDisposable {
  readonly line: CommandLine;
  readonly upstream: Upstream;
  readonly authDir: string;
  readonly databasePath: string;
  configure(keys?: Readonly<Record<string, unknown>>): void;
  examine(...words: string[]): Promise<{ run: Run; findings: Finding[] }>;
}

function healthyMachine(options: CommandLineOptions = {}): World {
  const line = new CommandLine(options);
  const upstream = new Upstream();
  line.write("accounts/me.json", login());
  const configure = (keys: Readonly<Record<string, unknown>> = {}) =>
    line.configure({
      port: freePort(),
      "auth-dir": line.folder.file("accounts"),
      database: { path: line.folder.file("state/holdfast.db") },
      "proxy-url": "direct",
      "codex-base-url": `${upstream.url}/codex`,
      "chatgpt-base-url": upstream.url,
      "codex-refresh-token-url": `${upstream.url}/oauth/token`,
      ...keys,
    });
  configure();
  return {
    line,
    upstream,
    authDir: line.folder.file("accounts"),
    databasePath: line.folder.file("state/holdfast.db"),
    configure,
    async examine(...words) {
      const run = await line.run("doctor", "--json", ...words);
      assert(!run.out.includes("SENT-"), run.out);
      return { run, findings: run.json.findings };
    },
    async [Symbol.asyncDispose]() {
      await upstream[Symbol.asyncDispose]();
      line[Symbol.dispose]();
    },
  };
}

function faultsOf(findings: readonly Finding[]): string[] {
  return findings.filter(({ verdict }) => verdict === "fault").map(({ message }) => message);
}

Deno.test("doctor finds nothing wrong with a healthy machine, and uses no token to find out", async () => {
  await using world = healthyMachine();
  const { run, findings } = await world.examine();
  assertEquals([run.code, faultsOf(findings)], [0, []]);
  assertEquals(world.upstream.paths.toSorted(), ["/codex/models", "/oauth/token", "/wham/usage"]);
  const checks = new Set(findings.map(({ check }) => check));
  assertEquals(
    [...checks].sort(),
    ["accounts", "auth_dir", "clock", "config", "credential", "database", "running", "upstream"],
  );
  const told = await world.line.run("doctor");
  assertMatch(told.out, /^ok {7}.*can be read\n/);
  assertMatch(told.out, /\nNothing is wrong\n$/);
  assertEquals(Deno.readTextFileSync(`${world.authDir}/me.json`), login());
});

Deno.test("doctor --offline asks no upstream", async () => {
  await using world = healthyMachine();
  assertEquals((await world.examine("--offline")).run.code, 0);
  assertEquals(world.upstream.paths, []);
});

Deno.test("doctor tells a person at a terminal what it waits for, and wipes it away", async () => {
  await using world = healthyMachine({ terminal: 80 });
  assertEquals((await world.line.run("doctor")).err, "Asking the upstreams …\r\x1b[K");
  assertEquals((await world.examine()).run.err, "");
});

interface Planted {
  readonly name: string;
  readonly options?: () => CommandLineOptions;
  /** Plants the fault; what it returns is undone at the end. */
  plant(world: World): Disposable | AsyncDisposable | void;
  readonly check: string;
  readonly want: RegExp;
  readonly verdict?: Finding["verdict"];
}

const planted: readonly Planted[] = [
  {
    name: "a key file others can read",
    plant: ({ authDir }) => Deno.chmodSync(`${authDir}/me.json`, 0o644),
    check: "credential_file_mode",
    want: /me\.json can be read by other users of this machine \(mode 0644\)/,
  },
  {
    name: "a configuration with keys others can read",
    plant: ({ configure, line }) => {
      configure({ "admin-api-key": "SENT-admin" });
      Deno.chmodSync(line.folder.file("holdfast.yaml"), 0o640);
    },
    check: "config_mode",
    want: /holds keys and can be read by other users of this machine \(mode 0640\)/,
    verdict: "warning",
  },
  {
    name: "an expired token that cannot be renewed",
    plant: ({ line }) =>
      void line.write("accounts/me.json", login({ expired: "2024-01-01T00:00:00Z", refresh_token: "" })),
    check: "credential",
    want: /The token in .*me\.json expired .* ago and cannot be renewed: there is no refresh token/,
  },
  {
    name: "an expired token that can be renewed",
    plant: ({ line }) => void line.write("accounts/me.json", login({ expired: "2024-01-01T00:00:00Z" })),
    check: "credential",
    want: /The token in .*me\.json expired .* ago; it is renewed at its next use/,
    verdict: "warning",
  },
  {
    name: "a base URL that leads elsewhere",
    plant: ({ configure, upstream }) => configure({ "codex-base-url": `${upstream.url}/wrong` }),
    check: "base_url",
    want: /codex-base-url is wrong: http:\/\/127\.0\.0\.1:\d+\/wrong answers 404, which is not the API/,
  },
  {
    name: "a base URL that leads to a web page",
    plant: ({ upstream }) => void (upstream.page = true),
    check: "base_url",
    want: /codex-base-url is wrong: .* answers 200 with a page/,
  },
  {
    name: "a base URL nobody listens at",
    plant: ({ configure }) => configure({ "codex-base-url": `http://127.0.0.1:${freePort()}` }),
    check: "upstream",
    want: /codex-base-url: 127\.0\.0\.1:\d+ refuses connections/,
  },
  {
    name: "a database another Holdfast uses",
    plant: ({ databasePath }) => openDatabase(databasePath),
    check: "database",
    want: new RegExp(`is locked: another process \\(pid ${Deno.pid}\\) uses it`),
  },
  {
    name: "a database another program has locked",
    plant: ({ databasePath }) => {
      openDatabase(databasePath).close();
      const other = new DatabaseSync(databasePath);
      other.exec("BEGIN IMMEDIATE");
      return { [Symbol.dispose]: () => other.close() };
    },
    check: "database",
    want: /locked/,
  },
  {
    name: "a database that is something else",
    plant: ({ line }) =>
      void line.write("state/holdfast.db", "not a database, but long enough to be looked at".repeat(40)),
    check: "database",
    want: /Cannot open the database/,
  },
  {
    name: "a clock that is an hour ahead",
    options: () => ({ clock: new FakeClock(Date.now() + HOUR_MS) }),
    plant: () => {},
    check: "clock",
    want: /The clock of this machine is (59 min|1 h).* ahead/,
  },
  {
    name: "a clock that is an hour behind",
    options: () => ({ clock: new FakeClock(Date.now() - HOUR_MS - 5_000) }),
    plant: () => {},
    check: "clock",
    want: /The clock of this machine is 1 h.* behind/,
  },
  {
    name: "an outbound proxy that is down",
    plant: ({ configure }) => configure({ "proxy-url": `http://me:SENT-password@127.0.0.1:${freePort()}` }),
    check: "outbound_proxy",
    want: /The outbound proxy 127\.0\.0\.1:\d+ is down or refuses/,
  },
  {
    name: "a name that cannot be resolved",
    plant: ({ configure }) => configure({ "codex-base-url": "https://chatgpt.invalid/backend-api/codex" }),
    check: "dns",
    want: /codex-base-url: the name chatgpt\.invalid cannot be resolved \(DNS\)/,
  },
  {
    name: "a port another program has taken",
    plant: ({ configure }) => {
      const other = Deno.serve(
        { port: 0, hostname: "127.0.0.1", onListen: () => {} },
        () => new Response("hello"),
      );
      configure({ port: other.addr.port });
      return { [Symbol.asyncDispose]: () => other.shutdown() };
    },
    check: "port",
    want: /Port \d+ is taken by another program/,
  },
  {
    name: "a port another program has taken and answers nothing on",
    plant: ({ configure }) => {
      const other = Deno.listen({ port: 0, hostname: "127.0.0.1" });
      configure({ port: other.addr.port });
      const closing = (async () => {
        for await (const connection of other) connection.close();
      })();
      return {
        async [Symbol.asyncDispose]() {
          other.close();
          await closing;
        },
      };
    },
    check: "port",
    want: /Port \d+ is taken by another program/,
  },
  {
    name: "an unknown key",
    plant: ({ configure }) => configure({ "max-retry-intervall": 5 }),
    check: "config",
    want: /"max-retry-intervall" is not a known key; did you mean "max-retry-interval"\?/,
  },
  {
    name: "no accounts",
    plant: ({ authDir }) => Deno.removeSync(`${authDir}/me.json`),
    check: "accounts",
    want: /There is no account: no Codex login in /,
  },
  {
    name: "a broken credential file",
    plant: ({ line }) => void line.write("accounts/cut.json", '{"type":"codex","access_to'),
    check: "credential_file",
    want: /cut\.json is not whole JSON/,
  },
  {
    name: "an auth-dir that is a file",
    plant: ({ configure, line }) => configure({ "auth-dir": line.write("file.json", "{}") }),
    check: "auth_dir",
    want: /is not a folder/,
  },
  {
    name: "listening to everybody without a key",
    plant: ({ configure, databasePath }) => {
      openDatabase(databasePath).close();
      configure({ host: "0.0.0.0" });
    },
    check: "client_keys",
    want: /0\.0\.0\.0 can be reached from other machines, and there is no client key/,
  },
];

for (const { name, options, plant, check, want, verdict } of planted) {
  Deno.test(`doctor names the cause: ${name}`, async () => {
    await using world = healthyMachine(options?.() ?? {});
    const undo = plant(world);
    try {
      const { run, findings } = await world.examine();
      const found = findings.filter((finding) => finding.check === check && want.test(finding.message));
      assert(found.length > 0, JSON.stringify(findings, null, 2));
      assertEquals(found[0]!.verdict, verdict ?? "fault");
      assertEquals(run.code, verdict === "warning" ? 0 : 1);
    } finally {
      if (undo !== undefined) {
        await (Symbol.asyncDispose in undo ? undo[Symbol.asyncDispose]() : undo[Symbol.dispose]());
      }
    }
  });
}

Deno.test("doctor names the cause: an auth-dir that cannot be written", async () => {
  await using world = healthyMachine();
  Deno.chmodSync(world.authDir, 0o555);
  // The superuser passes by file modes; without this capability it does not.
  const prefix = Deno.uid() === 0 ? ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-all"] : [];
  const main = fileURLToPath(new URL("../../main.ts", import.meta.url));
  const [command, ...args] = [...prefix, Deno.execPath(), "run", "-A", main, "doctor", "--offline", "--json"];
  const { code, stdout } = await new Deno.Command(command!, { args, cwd: world.line.folder.path }).output();
  Deno.chmodSync(world.authDir, 0o755);
  const { findings } = JSON.parse(new TextDecoder().decode(stdout));
  assertEquals(code, 1);
  assertEquals(faultsOf(findings).length, 1, JSON.stringify(findings));
  assertMatch(
    faultsOf(findings)[0]!,
    /auth-dir .* cannot be written \(EACCES\): renewed tokens could not be saved/,
  );
});

Deno.test("doctor names the cause: all accounts parked, of the running Holdfast", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  const nowMs = rig.clock.now();
  for (const name of ["A", "B"]) {
    rig.app.pool.observeQuota(`codex:acct-${name}:user-${name}`, {
      observedAtMs: nowMs,
      source: "usage_page",
      windows: [{ name: "5h", usedPercent: 100, resetAtMs: nowMs + 2 * HOUR_MS, modelFamily: null }],
      limitReached: true,
      servesBeyondWindows: false,
      creditsAvailable: null,
      plan: null,
    }, nowMs);
  }
  const { findings } = await examineRig(rig);
  assertEquals(faultsOf(findings), [
    "All 2 accounts are parked, their quota is used up: the first is back in 30 min",
  ]);
});

Deno.test("doctor names the cause: all accounts limited, also when Holdfast has ended", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(failure(429, { type: "usage_limit_reached", headers: { "retry-after": "7200" } }));
  await (await rig.responses()).text();
  assertMatch(
    faultsOf((await examineRig(rig)).findings)[0]!,
    /All 1 account rest: the first is back in (2 h|1 h 59 min)/,
  );
  const config = rig.config();
  await rig.stop();
  using line = new CommandLine({ clock: rig.clock });
  line.configure({ "auth-dir": config.authDir, database: { path: config.databasePath }, port: freePort() });
  const { json } = await line.run("doctor", "--offline", "--json");
  const stored = faultsOf(json.findings).filter((message) => message.startsWith("All 1 account"));
  assertMatch(
    stored[0]!,
    /All 1 account were blocked when Holdfast ended: the first is back in (2 h|1 h 59 min)/,
  );
});

Deno.test("doctor points at a deadline that a newer usage reading contradicts", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(failure(429, { type: "usage_limit_reached", headers: { "retry-after": "7200" } }));
  rig.account("B").otherwise(ok("B"));
  await (await rig.responses()).text();
  await rig.pass(60_000);
  rig.app.pool.observeQuota("codex:acct-A:user-A", {
    observedAtMs: rig.clock.now(),
    source: "usage_page",
    windows: [{ name: "5h", usedPercent: 3, resetAtMs: null, modelFamily: null }],
    limitReached: false,
    servesBeyondWindows: false,
    creditsAvailable: null,
    plan: null,
  }, rig.clock.now());
  const { run, findings } = await examineRig(rig);
  assertEquals(run.code, 0);
  const found = findings.find(({ message }) => message.includes("a newer usage reading shows headroom"));
  assertEquals([found?.verdict, found?.remedy], [
    "warning",
    "To end the block early: holdfast accounts reset codex:acct-A:user-A",
  ]);
});

const pauses: readonly { name: string; aheadMs: number; probe?: "leased"; want: string }[] = [
  {
    name: "its last second",
    aheadMs: 1_000,
    want: "Nothing is sent for 1 s: several providers could not be reached",
  },
  {
    name: "it is over, untested",
    aheadMs: 0,
    want: "The next request tests the network: several providers could not be reached",
  },
  {
    name: "it is over, and one request tests it",
    aheadMs: -5_000,
    probe: "leased",
    want: "One request is testing the network: several providers could not be reached",
  },
];
for (const { name, aheadMs, probe, want } of pauses) {
  Deno.test(`doctor tells of the network's pause what holds now: ${name}`, () => {
    const account = {
      id: "a",
      state: "healthy",
      reason: null,
      until: null,
      deadline_contradicted: false,
    } as const;
    const until = new Date(START_MS + aheadMs).toISOString();
    const pause = { until, probe: { state: probe ?? "idle" } };
    const state = { accounts: { accounts: [account] }, providers: { providers: [], network_pause: pause } };
    const parsed = parseConfig("", { homeDir: "/home/nobody", get: () => undefined });
    if (!parsed.ok) throw new Error("The defaults are refused");
    const findings = checkAccountStates(parsed.config, state, 1, START_MS);
    assertEquals(findings.find((finding) => finding.check === "network")?.message, want);
  });
}

Deno.test("doctor says what it cannot see without the admin key", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const { run, findings } = await examineRig(rig, { HOLDFAST_ADMIN_KEY: "" });
  assertEquals(run.code, 0);
  assert(
    findings.some(({ message }) =>
      /What the accounts are doing is not known: There is no admin key/.test(message)
    ),
  );
});

Deno.test("doctor tells why the running Holdfast is not ready", async () => {
  await using rig = await startRig({ accounts: [] });
  const { findings } = await examineRig(rig);
  assertMatch(faultsOf(findings).join("\n"), /Holdfast runs at .* but is not ready: No account found/);
});

async function examineRig(
  rig: Awaited<ReturnType<typeof startRig>>,
  env: Record<string, string> = {},
): Promise<{ run: Run; findings: Finding[] }> {
  using line = new CommandLine({
    clock: rig.clock,
    env: { HOLDFAST_URL: rig.app.url, HOLDFAST_ADMIN_KEY: ADMIN_KEY, ...env },
  });
  for (const { name } of Deno.readDirSync(rig.authDir)) Deno.chmodSync(`${rig.authDir}/${name}`, 0o600);
  line.configure({ "auth-dir": rig.authDir, database: { path: rig.config().databasePath } });
  const run = await line.run("doctor", "--offline", "--json");
  return { run, findings: run.json.findings };
}
