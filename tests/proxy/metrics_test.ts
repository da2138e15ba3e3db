/** `/metrics` of the whole proxy: what is counted, who may read it, and what must never be in it. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import {
  completed,
  created,
  delta,
  event,
  failed,
  failure,
  gate,
  ok,
  type Reply,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { tokens } from "../../lib/demo/simulated_reply.ts";
import { ADMIN_KEY, CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";

async function scrape(rig: Rig): Promise<string> {
  const answer = await fetch(`${rig.app.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
  assertEquals(answer.status, 200);
  assertMatch(answer.headers.get("content-type")!, /^text\/plain; version=0\.0\.4/);
  const text = await answer.text();
  assertWellFormed(text);
  return text;
}

/** One series' value; 0 when it is not there. */
function value(text: string, series: string): number {
  const line = text.split("\n").find((one) => one.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length + 1));
}

const SAMPLE =
  /^[a-z_]+(?:\{[a-z_]+="(?:[^"\\\n]|\\.)*"(?:,[a-z_]+="(?:[^"\\\n]|\\.)*")*\})? (?:[-+]?[\d.]+(?:e[-+]?\d+)?|\+Inf)$/;

function assertWellFormed(text: string): void {
  assert(text.endsWith("\n"));
  const seen = new Set<string>();
  for (const line of text.trimEnd().split("\n")) {
    if (line.startsWith("# ")) continue;
    assert(SAMPLE.test(line), line);
    const series = line.slice(0, line.lastIndexOf(" "));
    assert(!seen.has(series), `twice: ${series}`);
    seen.add(series);
  }
  assert(!text.includes("SENT-"), "a secret is in the metrics");
}

Deno.test("metrics tell of a failover, its attempts, rounds and blocks", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(failure(429, { type: "usage_limit_reached", headers: { "retry-after": "3600" } }));
  rig.account("B").otherwise(ok("B"));
  await (await rig.responses()).text();
  const text = await scrape(rig);
  assertEquals(value(text, 'holdfast_requests_total{route="responses",result="success"}'), 1);
  assertEquals(value(text, 'holdfast_attempts_total{provider="codex",cause="first",outcome="limited"}'), 1);
  assertEquals(
    value(text, 'holdfast_attempts_total{provider="codex",cause="failover",outcome="success"}'),
    1,
  );
  assertEquals(value(text, 'holdfast_failovers_total{provider="codex"}'), 1);
  assertEquals(value(text, "holdfast_rounds_total"), 1);
  assertEquals(value(text, 'holdfast_request_attempts_bucket{le="1"}'), 0);
  assertEquals(value(text, 'holdfast_request_attempts_bucket{le="2"}'), 1);
  assertEquals(value(text, 'holdfast_blocks_recorded_total{kind="deadline",reason="retry_after"}'), 1);
  assertEquals(value(text, 'holdfast_accounts{provider="codex",state="healthy"}'), 1);
  assertEquals(value(text, 'holdfast_accounts{provider="codex",state="cooling"}'), 1);
  assertEquals(value(text, 'holdfast_accounts_blocked{provider="codex",reason="deadline"}'), 1);
  assertEquals(value(text, 'holdfast_tokens_total{provider="codex",kind="input"}'), 10);
  assertEquals(value(text, 'holdfast_tokens_total{provider="codex",kind="cached_input"}'), 4);
  assertEquals(value(text, "holdfast_ready"), 1);
  assert(value(text, "holdfast_client_received_bytes_total") > 10);
  assert(value(text, "holdfast_client_sent_bytes_total") > 10);
  assert(value(text, "process_resident_memory_bytes") > 1_000_000);
});

Deno.test("metrics tell of waits, refusals and requests that are at fault themselves", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(
    failure(503, { code: "server_is_overloaded" }),
    ok("A"),
    failure(400, { code: "SENT-code-of-upstream", type: "invalid_request_error" }),
  );
  await (await rig.responses()).text();
  await (await rig.responses()).text();
  await rig.admin("accounts/codex:acct-A:user-A", { method: "PATCH", body: '{"enabled":false}' }).then((
    answer,
  ) => answer.body?.cancel());
  await (await rig.responses()).text();
  const text = await scrape(rig);
  assertEquals(value(text, 'holdfast_waits_total{reason="cooldown"}'), 1);
  const waited = value(text, 'holdfast_wait_seconds_total{reason="cooldown"}');
  assert(waited >= 2 && waited <= 4, `${waited}`);
  assertEquals(value(text, 'holdfast_requests_total{route="responses",result="relayed"}'), 1);
  assertEquals(value(text, 'holdfast_requests_total{route="responses",result="auth_unavailable"}'), 1);
  assertEquals(value(text, "holdfast_rounds_total"), 4);
});

Deno.test("metrics tell of streams under way, and that they ended", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const opened = Promise.withResolvers<void>();
  rig.account("A").script(stream([created(), delta("x"), gate(opened.promise), completed()]));
  const answer = await rig.responses({ stream: true });
  const during = await scrape(rig);
  assertEquals(
    [value(during, "holdfast_streams_open"), value(during, "holdfast_requests_in_flight")],
    [1, 1],
  );
  assertEquals(value(during, 'holdfast_attempts_in_flight{provider="codex"}'), 1);
  opened.resolve();
  await answer.text();
  const after = await scrape(rig);
  assertEquals([value(after, "holdfast_streams_open"), value(after, "holdfast_requests_in_flight")], [0, 0]);
});

Deno.test("metrics tell of refreshes, quota windows, bindings and recovery", async () => {
  await using rig = await startRig({
    accounts: ["A", "B"],
    config: { streaming: { recovery: { attempts: 2 } } },
  });
  const nowMs = rig.clock.now();
  rig.app.pool.observeQuota("codex:acct-A:user-A", {
    observedAtMs: nowMs,
    source: "usage_page",
    windows: [{ name: "5h", usedPercent: 42, resetAtMs: nowMs + 60_000, modelFamily: null }],
    limitReached: false,
    servesBeyondWindows: false,
    creditsAvailable: null,
    plan: null,
  }, nowMs);
  rig.account("A").script(failure(401), stream([created(), delta("x"), failed("server_error")])).otherwise(
    ok("A"),
  );
  rig.provider.account("SENT-ref-A").tokens.script(tokens({ access_token: "SENT-tok-A", expires_in: 3_600 }));
  rig.account("B").otherwise(ok("B"));
  await (await rig.responses({ stream: true }, { headers: { "session-id": "SENT-session" } })).text();
  const text = await scrape(rig);
  assertEquals(value(text, 'holdfast_refreshes_total{issuer="codex",result="refreshed"}'), 1);
  assertEquals(value(text, 'holdfast_quota_used_ratio{account="codex:acct-A:user-A",window="5h"}'), 0.42);
  assertEquals(value(text, "holdfast_bindings"), 1);
  assertEquals(value(text, 'holdfast_recovery_requests_total{result="recovered"}'), 1);
  assertEquals(value(text, "holdfast_recovery_slots_held"), 0);
});

Deno.test("metrics tell what recovery made of each request, and what it held back for how long", async () => {
  await using rig = await startRig({
    accounts: ["A"],
    config: {
      "request-retry": 0,
      streaming: {
        recovery: {
          attempts: 1,
          "max-buffer-bytes": 4_000,
          "max-concurrent": 1,
          "max-retry-window-seconds": 3_600,
        },
      },
    },
  });
  const lost = stream([created(), delta("x"), failed("server_error")]);
  const ask = async (...replies: Reply[]): Promise<void> => {
    rig.account("A").script(...replies);
    await (await rig.responses({ stream: true })).text();
    // An exhausted request cools its account.
    await rig.pass(120_000);
  };
  await ask(lost, ok("A"));
  await ask(stream([created(), delta("z".repeat(5_000)), completed()]));
  await ask(stream([created(), event("zz.new", { type: "zz.new" }), completed()]));
  const opened = Promise.withResolvers<void>();
  rig.account("A").script(stream([created(), delta("held"), gate(opened.promise), completed()]), ok("A"));
  const withheld = rig.responses({ stream: true });
  await rig.eventually(() => rig.app.recoverySlots.figures.heldBytes > 0);
  await (await rig.responses({ stream: true })).text();
  const during = await scrape(rig);
  assertEquals(value(during, "holdfast_recovery_slots_held"), 1);
  assert(value(during, "holdfast_recovery_held_bytes") > 0);
  opened.resolve();
  await (await withheld).text();
  await ask(lost, lost);
  const text = await scrape(rig);
  assertEquals(value(text, 'holdfast_recovery_requests_total{result="recovered"}'), 1);
  assertEquals(value(text, 'holdfast_recovery_requests_total{result="exhausted"}'), 1);
  assertEquals(value(text, 'holdfast_recovery_requests_total{result="blocked"}'), 0);
  for (const reason of ["no_slot", "overflow", "unknown_payload"]) {
    assertEquals(value(text, `holdfast_recovery_failed_open_total{reason="${reason}"}`), 1, reason);
  }
  assertEquals([value(text, "holdfast_recovery_slots_held"), value(text, "holdfast_recovery_held_bytes")], [
    0,
    0,
  ]);
  const peak = value(text, "holdfast_recovery_held_bytes_peak");
  assert(peak > 0 && peak <= 4_000, `${peak}`);
  assert(value(text, "holdfast_recovery_withheld_bytes_total") >= peak);
  assertEquals(
    value(text, "holdfast_recovery_held_seconds_total"),
    rig.app.recoverySlots.figures.heldMs / 1_000,
  );
  assert(value(text, "holdfast_recovery_held_seconds_total") > 0);
});

Deno.test("names that clients choose are no labels: twenty models make no series", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  // The event loop's lag comes in when its first quarter of a second is over.
  const series = (text: string) =>
    text.split("\n").filter((line) => !line.startsWith("holdfast_event_loop_lag")).length;
  await (await rig.responses({ model: "model-of-a-client" })).text();
  const before = series(await scrape(rig));
  for (let turn = 0; turn < 20; turn++) await (await rig.responses({ model: `model-${turn}` })).text();
  const after = await scrape(rig);
  assertEquals(series(after), before);
  assert(!after.includes("model-"));
});

Deno.test("the event loop's lag is measured from the first scrape on, and not after the stop", async () => {
  await using rig = await startRig({ accounts: [] });
  assertEquals(value(await scrape(rig), "holdfast_event_loop_lag_seconds_count"), 0);
  const deadline = performance.now() + 5_000;
  let text = "";
  while (value(text, "holdfast_event_loop_lag_seconds_count") === 0 && performance.now() < deadline) {
    text = await scrape(rig);
  }
  assert(value(text, "holdfast_event_loop_lag_seconds_count") > 0);
});

const keys = [
  { name: "the admin key", key: ADMIN_KEY, status: 200 },
  { name: "a client key", key: CLIENT_KEY, status: 401 },
  { name: "no key", key: null, status: 401 },
  {
    name: "no key, from behind a proxy that claims to be local",
    key: null,
    status: 401,
    forwarded: "127.0.0.1",
  },
] as const;
for (const c of keys) {
  Deno.test(`/metrics answers ${c.status} to ${c.name}`, async () => {
    await using rig = await startRig({ accounts: [] });
    const headers = new Headers("forwarded" in c ? { "x-forwarded-for": c.forwarded } : {});
    if (c.key !== null) headers.set("authorization", `Bearer ${c.key}`);
    for (const method of ["GET", "HEAD"]) {
      const answer = await fetch(`${rig.app.url}/metrics`, { method, headers });
      assertEquals(answer.status, c.status);
      const text = await answer.text();
      assertEquals(text.includes("holdfast_requests_in_flight"), c.status === 200 && method === "GET");
    }
  });
}

Deno.test("/metrics is off without an admin key", async () => {
  await using rig = await startRig({ accounts: [], config: { "admin-api-key": "" } });
  const answer = await fetch(`${rig.app.url}/metrics`);
  assertEquals([answer.status, (await answer.json()).error.message], [
    404,
    "Metrics are off: set admin-api-key",
  ]);
});

Deno.test("docs/grafana-dashboard.json asks only for metrics that there are", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  await (await rig.responses()).text();
  const text = await scrape(rig);
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!]));
  const dashboard = JSON.parse(
    Deno.readTextFileSync(new URL("../../docs/grafana-dashboard.json", import.meta.url)),
  );
  const queries = dashboard.panels.flatMap((panel: { targets?: { expr: string }[] }) =>
    (panel.targets ?? []).map(({ expr }) => expr)
  );
  assert(queries.length > 20);
  for (const query of queries) {
    for (const [name] of query.matchAll(/\b(?:holdfast|process)_[a-z_]+/g)) {
      const base = name.replace(/_(bucket|sum|count)$/, "");
      assert(types.has(name) || types.get(base) === "histogram", `${name} in ${query}`);
    }
  }
});
