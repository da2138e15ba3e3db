/** Commands that ask a running Holdfast: accounts, users, explain, why. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { failure, ok } from "../../lib/demo/simulated_replies.ts";
import { CommandLine, type CommandLineOptions } from "../support/command_line.ts";
import { attempt, decision } from "../support/decisions.ts";
import { ADMIN_KEY, type Rig, startRig } from "../support/rig.ts";

const A = "codex:acct-A:user-A";
const B = "codex:acct-B:user-B";

function lineTo(rig: Rig, options: CommandLineOptions = {}): CommandLine {
  return new CommandLine({
    clock: rig.clock,
    ...options,
    env: { HOLDFAST_URL: rig.app.url, HOLDFAST_ADMIN_KEY: ADMIN_KEY, ...options.env },
  });
}

/** A is limited for an hour, B serves. */
async function rigWithOneLimited(): Promise<Rig> {
  const rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(failure(429, { type: "usage_limit_reached", headers: { "retry-after": "3600" } }));
  rig.account("B").otherwise(ok("B"));
  await (await rig.responses()).text();
  return rig;
}

Deno.test("accounts tells state, reason and when an account is back, as a table and as lines", async () => {
  await using rig = await rigWithOneLimited();
  using terminal = lineTo(rig, { terminal: 120 });
  const table = await terminal.run("accounts");
  assertEquals([table.code, table.err], [0, ""]);
  const [head, first, second] = table.out.split("\n");
  assertMatch(head!, /^ID +STATE +REASON +BACK/);
  assertMatch(first!, /^codex:acct-A:user-A +cooling +deadline \(retry after\) +in 59 min 59 s|in 1 h/);
  assertMatch(second!, /^codex:acct-B:user-B +healthy/);
  using piped = lineTo(rig);
  const lines = (await piped.run("accounts", "list")).out.trimEnd().split("\n");
  assertEquals(lines.map((line) => line.split("\t").slice(0, 2)), [[A, "cooling"], [B, "healthy"]]);
  const { json } = await piped.run("accounts", "--json");
  assertEquals(json.accounts.map(({ id }: { id: string }) => id), [A, B]);
});

Deno.test("accounts are switched by any part of an id that fits one alone", async () => {
  await using rig = await rigWithOneLimited();
  using line = lineTo(rig);
  const disabled = await line.run("accounts", "disable", "acct-B", "--json");
  assertEquals([disabled.code, disabled.json.id, disabled.json.state], [0, B, "disabled"]);
  const enabled = await line.run("accounts", "enable", B);
  assertMatch(enabled.out, /State +healthy/);
  const reset = await line.run("accounts", "reset", "acct-A", "--json");
  assertEquals(reset.json.state, "healthy");
  const shown = await line.run("accounts", "show", "acct-A");
  assertMatch(shown.out, /^codex:acct-A:user-A\n +State +healthy\n/);
  assertEquals((await line.run("accounts", "topped-up", "acct-A")).code, 0);
  const ambiguous = await line.run("accounts", "show", "acct");
  assertEquals([ambiguous.code, ambiguous.err], [2, `"acct" could be any of:\n  ${A}\n  ${B}\n`]);
  const unknown = await line.run("accounts", "show", "acct-Z", "--json");
  assertEquals([unknown.code, unknown.json.error.code], [5, "not_found"]);
});

Deno.test("accounts are named by their e-mail, whole or before its @, and no answer ever shows it whole", async () => {
  await using rig = await startRig({ accounts: [] });
  rig.writeAccount("A", { email: "anna@example.test" });
  rig.writeAccount("B", { email: "bert@example.test" });
  await rig.restart();
  using line = lineTo(rig);
  for (const name of ["anna", "Anna@Example.test", "a***@example.test"]) {
    const shown = await line.run("accounts", "show", name, "--json");
    assertEquals([name, shown.code, shown.json.id, shown.json.email], [name, 0, A, "a***@example.test"]);
    assert(!shown.out.includes("anna@"), shown.out);
  }
  assertEquals((await line.run("accounts", "disable", "bert", "--json")).json.state, "disabled");
  // One letter more each time would spell the address out.
  for (const name of ["ann", "nna@example.test", "@example.test", "anna@"]) {
    assertEquals([name, (await line.run("accounts", "show", name)).code], [name, 5]);
  }
  assertEquals((await rig.readLog()).includes("@example.test"), false);
});

Deno.test("users are added, switched and given new keys, which are shown once", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  using line = lineTo(rig, { terminal: 100 });
  assertMatch((await line.run("users")).out, /There is no managed user/);
  const added = await line.run("users", "add", "laptop");
  const key = /hf_[A-Za-z0-9_-]{32}/.exec(added.out)?.[0];
  assert(key !== undefined, added.out);
  const served = await rig.responses({}, { headers: { authorization: `Bearer ${key}` } });
  assertEquals(served.status, 200);
  await served.text();
  assertMatch((await line.run("users", "list")).out, /^NAME +ID +STATE.*\nlaptop +usr_\S+ +enabled/);
  assertMatch((await line.run("users", "disable", "laptop")).out, /State +disabled/);
  assertMatch((await line.run("users", "enable", "laptop")).out, /State +enabled/);
  const renewed = await line.run("users", "reset-key", "laptop", "--json");
  assert(renewed.json.api_key !== key);
  assert(!(await line.run("users", "show", "laptop", "--json")).out.includes("hf_"));
  const taken = await line.run("users", "add", "laptop");
  assertEquals([taken.code, taken.err], [1, "Another user has this name\n"]);
  assertEquals((await line.run("users", "show", "nobody")).code, 5);
});

Deno.test("users work on the database itself where no Holdfast runs", async () => {
  using line = new CommandLine();
  line.configure({ database: { path: line.folder.file("state/holdfast.db") }, port: 1 });
  const added = await line.run("users", "add", "first", "--json");
  assertEquals([added.code, added.json.name], [0, "first"]);
  assertMatch((await line.run("users", "list")).out, /^first\tusr_/);
  assertEquals((await line.run("users", "add", "first")).code, 1);
  assertEquals((await line.run("users", "show", "second")).code, 5);
  const reset = await line.run("users", "reset-key", "first", "--json");
  assert(reset.json.api_key !== added.json.api_key);
});

Deno.test("users say how to go on when the running Holdfast holds the database and has no admin key", async () => {
  await using rig = await startRig({ accounts: [], config: { "admin-api-key": "" } });
  using line = new CommandLine();
  line.configure({ database: { path: rig.config().databasePath } });
  const run = await line.run("users", "list");
  assertEquals(run.code, 1);
  assertMatch(run.err, /another process.*is using it.*or set "admin-api-key"/s);
});

Deno.test("explain tells a failover attempt by attempt", async () => {
  await using rig = await rigWithOneLimited();
  using line = lineTo(rig);
  const last = await line.run("explain");
  assertEquals(last.code, 0);
  assertMatch(last.out, /^Served by codex:acct-B:user-B at the second attempt after (\d+ ms|\d+\.\d s)\n/);
  assertMatch(last.out, /\+0 ms +Sent to codex:acct-A:user-A; it is at a limit \(429 /);
  assertMatch(last.out, /Moved on to codex:acct-B:user-B; it answered after/);
  assertMatch(last.out, /\ncodex:acct-A:user-A\tdeadline \(retry after\)\tin 59 min/);
  const id = rig.app.decisions.latest(1)[0]!.requestId;
  const named = await line.run("explain", id, "--json");
  assertEquals([named.json.request_id, named.json.attempts.length], [id, 2]);
  const unknown = await line.run("explain", "req_unknown");
  assertEquals([unknown.code, unknown.err], [5, "That request is not among the last 1,000\n"]);
});

Deno.test("explain tells of waits and of a refusal without any attempt", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(failure(503, { code: "server_is_overloaded" }), ok("A"));
  await (await rig.responses()).text();
  using line = lineTo(rig);
  assertMatch(
    (await line.run("explain", "last")).out,
    /Waited \d\.\d s until the first account was free again/,
  );
  await rig.admin(`accounts/${A}`, { method: "PATCH", body: '{"enabled":false}' }).then((answer) =>
    answer.body?.cancel()
  );
  await (await rig.responses()).text();
  const refused = await line.run("explain");
  assertMatch(
    refused.out,
    /^The client was told 503 auth_unavailable.*\nEvery account is switched off.*Nothing was sent\n/,
  );
});

Deno.test("explain writes every span of a story alike: the end, the moments of the steps, what each took", async () => {
  await using rig = await startRig({ accounts: [] });
  const atMs = rig.clock.now() - 10_000;
  const failed = { outcome: "transient:overloaded", status: 503, startedAtMs: atMs, endedAtMs: atMs + 40 };
  rig.app.decisions.add(decision({
    atMs,
    endedAtMs: atMs + 4_750,
    attempts: [
      attempt(failed),
      attempt({ round: 2, cause: "round", startedAtMs: atMs + 3_880, endedAtMs: atMs + 4_750 }),
    ],
    waits: [{ fromMs: atMs + 40, untilMs: atMs + 3_880, reason: "cooldown" }],
  }));
  using line = lineTo(rig);
  const { out } = await line.run("explain");
  assertMatch(out, /^Served by .* after 4\.8 s\n/);
  assertMatch(out, /\n {2}\+0 ms +Sent to .* after 40 ms\n/);
  assertMatch(out, /\n {2}\+40 ms +Waited 3\.8 s until/);
  assertMatch(out, /\n {2}\+3\.9 s +A new round began with .*; it answered after 870 ms\n/);
});

Deno.test("explain before the first request says that there was none", async () => {
  await using rig = await startRig({ accounts: [] });
  using line = lineTo(rig);
  const run = await line.run("explain");
  assertEquals([run.code, run.err], [5, "No request has come yet\n"]);
});

Deno.test("why names who can serve a model, and what speaks against the others", async () => {
  await using rig = await rigWithOneLimited();
  using line = lineTo(rig);
  const now = await line.run("why", "gpt-5.5");
  assertEquals(now.code, 0);
  assertMatch(now.out, /1 of 2 accounts can serve it now/);
  assertMatch(now.out, /codex:acct-A:user-A\tgpt-5.5\tdeadline \(retry after\)\tin /);
  assertMatch(now.out, /codex:acct-B:user-B\tgpt-5.5\tcan serve/);
  await line.run("accounts", "disable", "acct-B");
  const later = await line.run("why", "gpt-5.5", "--json");
  assertEquals([later.code, later.json.served_now, later.json.resolved_by], [1, false, "default"]);
  assertEquals(Date.parse(later.json.next_at) > rig.clock.now(), true);
  assertMatch((await line.run("why", "gpt-5.5")).out, /Nobody can serve it now; the first is back in/);
});

const RESOLUTIONS = [
  { model: "fast", by: "alias", target: "codex/gpt-5.4-mini" },
  { model: "mix", by: "pool", target: "lab/qwen3" },
  { model: "lab/any/thing", by: "provider", target: "lab/any/thing" },
  { model: "qwen3", by: "list", target: "lab/qwen3" },
  { model: "unheard-of", by: "default", target: "codex/unheard-of" },
] as const;
Deno.test("why says which rule sent a name where it goes", async (t) => {
  await using rig = await startRig({
    accounts: ["A"],
    config: {
      providers: [{
        id: "lab",
        kind: "openai",
        "base-url": "http://127.0.0.1:1/v1",
        models: ["qwen3"],
        accounts: [{ id: "k", "api-key": "SENT-lab" }],
      }],
      models: [{ alias: "fast", provider: "codex", model: "gpt-5.4-mini" }],
      pools: [{ name: "mix", members: [{ provider: "lab", model: "qwen3" }] }],
    },
  });
  using line = lineTo(rig);
  for (const { model, by, target } of RESOLUTIONS) {
    await t.step(model, async () => {
      const { json } = await line.run("why", model, "--json");
      const [first] = json.targets;
      assertEquals([json.resolved_by, `${first.provider}/${first.model}`], [by, target]);
    });
  }
  await t.step("a wrong query is named", async () => {
    const answer = await rig.admin("why?modell=x");
    assertEquals(
      [answer.status, (await answer.json()).error.message],
      [400, '"model" must be a model name; "modell" is not known here'],
    );
  });
});

const CANNOT: readonly { name: string; env: Record<string, string>; code: number; want: RegExp }[] = [
  {
    name: "nothing listens",
    env: { HOLDFAST_URL: "http://127.0.0.1:1" },
    code: 3,
    want: /^Holdfast is not running at /,
  },
  {
    name: "a wrong admin key",
    env: { HOLDFAST_ADMIN_KEY: "SENT-wrong" },
    code: 4,
    want: /has another admin key/,
  },
  { name: "no admin key", env: { HOLDFAST_ADMIN_KEY: "" }, code: 4, want: /There is no admin key/ },
  { name: "a URL that is none", env: { HOLDFAST_URL: "here" }, code: 2, want: /--url must be a URL/ },
  {
    name: "another machine over plain http",
    env: { HOLDFAST_URL: "http://192.0.2.1:8317" },
    code: 2,
    want: /sent over https, or to this machine itself/,
  },
];
Deno.test("what keeps a command from the running Holdfast is said, with its own exit code", async (t) => {
  await using rig = await startRig({ accounts: [] });
  for (const c of CANNOT) {
    await t.step(c.name, async () => {
      using line = lineTo(rig, { env: c.env });
      const run = await line.run("accounts");
      assertEquals([run.code, run.out], [c.code, ""]);
      assertMatch(run.err, c.want);
    });
  }
  await t.step("management is off", async () => {
    await rig.app.reload({ ...rig.config(), adminApiKey: "" });
    using line = lineTo(rig);
    const run = await line.run("accounts", "--json");
    assertEquals([run.code, run.json.error.code], [4, "management_off"]);
  });
  await t.step("something else listens", async () => {
    await using other = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      () => new Response("hi"),
    );
    using line = lineTo(rig, { env: { HOLDFAST_URL: `http://127.0.0.1:${other.addr.port}` } });
    const run = await line.run("accounts");
    assertEquals(run.code, 3);
    assertMatch(run.err, /is not Holdfast/);
  });
});

Deno.test("a model name that holds escape sequences cannot reach the terminal", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  await (await rig.responses({ model: "m\x1b[2J\x07" })).text();
  using line = lineTo(rig, { terminal: 80 });
  const { out } = await line.run("explain");
  assert(!out.includes("\x1b") && !out.includes("\x07"), out);
});
