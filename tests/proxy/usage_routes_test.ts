/** Usage as it is read out of real answers: streamed, aggregated, one document, failed; and how it is told. */
import { assertEquals } from "@std/assert";
import { failure, ok } from "../../lib/demo/simulated_replies.ts";
import { json } from "../../lib/demo/simulated_reply.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";
import { FAKE_START_MS } from "../support/fake_clock.ts";

const TOKENS = { input_tokens: 10, cached_tokens: 4, output_tokens: 5, reasoning_tokens: 0 };
const NO_TOKENS = { input_tokens: 0, cached_tokens: 0, output_tokens: 0, reasoning_tokens: 0 };

interface Report {
  readonly totals: Record<string, number>;
  readonly tenants: readonly {
    readonly tenant: string;
    readonly user: { readonly id: string; readonly name: string } | null;
    readonly totals: Record<string, number>;
    readonly keys: readonly { readonly key_hint: string; readonly totals: Record<string, number> }[];
    readonly models: readonly Record<string, unknown>[];
  }[];
}

async function report(rig: Rig, query = ""): Promise<Report> {
  const answer = await rig.admin(`usage${query}`);
  assertEquals(answer.status, 200);
  return await answer.json();
}

async function ask(rig: Rig, fields: Record<string, unknown>, init: RequestInit = {}): Promise<void> {
  await (await rig.responses(fields, init)).text();
}

for (
  const c of [
    { name: "a streamed answer", fields: { stream: true } },
    { name: "a JSON answer made of a stream", fields: { stream: false } },
  ]
) {
  Deno.test(`usage is read from the terminal event: ${c.name}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").otherwise(ok("A"));
    await ask(rig, { ...c.fields, reasoning: { effort: "high" } });
    const { tenants, totals } = await report(rig);
    assertEquals(totals, { requests: 1, failures: 0, ...TOKENS });
    assertEquals(tenants[0]?.models, [
      { provider: "codex", model: "m1", effort: "high", requests: 1, failures: 0, ...TOKENS },
    ]);
  });
}

Deno.test("usage is read from an answer that is one document", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(json({
    id: "resp_1",
    output: [],
    usage: {
      input_tokens: 7,
      input_tokens_details: { cached_tokens: 2 },
      output_tokens: 3,
      output_tokens_details: { reasoning_tokens: 1 },
      total_tokens: 10,
    },
  }));
  await (await rig.call("/v1/responses/compact", { model: "m1", input: [] })).text();
  assertEquals((await report(rig)).totals, {
    requests: 1,
    failures: 0,
    input_tokens: 7,
    cached_tokens: 2,
    output_tokens: 3,
    reasoning_tokens: 1,
  });
});

Deno.test("a refused request counts once, as a failure without tokens", async () => {
  await using rig = await startRig({ accounts: ["A", "B"], config: { "request-retry": 0 } });
  for (const name of ["A", "B"]) {
    rig.account(name).script(failure(429, { type: "usage_limit_reached", headers: { "retry-after": "60" } }));
  }
  await ask(rig, {});
  assertEquals((await report(rig)).totals, { requests: 1, failures: 1, ...NO_TOKENS });
});

Deno.test("usage is told apart by user, key, model and effort; a new key stays the same user's", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  const made = await rig.admin("users", { method: "POST", body: '{"name":"Ada"}' });
  const user = await made.json();
  const by = (key: string): RequestInit => ({ headers: { authorization: `Bearer ${key}` } });
  await ask(rig, {}, by(user.api_key));
  await ask(rig, { reasoning: { effort: "low" } }, by(user.api_key));
  await ask(rig, { model: "m2" }, by(user.api_key));
  const reset = await rig.admin(`users/${user.id}/api-key/reset`, { method: "POST" });
  const renewed = await reset.json();
  await ask(rig, {}, by(renewed.api_key));
  await ask(rig, {});
  const all = await report(rig);
  assertEquals(all.totals["requests"], 5);
  const ofUser = await report(rig, `?user=${user.id}`);
  assertEquals(ofUser.tenants.length, 1);
  const [ada] = ofUser.tenants;
  assertEquals([ada?.tenant, ada?.user], [`user:${user.id}`, { id: user.id, name: "Ada" }]);
  const counted = ada?.models.map(({ model, effort, requests }) => [model, effort, requests]);
  assertEquals(counted, [["m1", null, 2], ["m1", "low", 1], ["m2", null, 1]]);
  assertEquals(
    new Map(ada?.keys.map(({ key_hint, totals }) => [key_hint, totals["requests"]])),
    new Map([[user.key_hint, 3], [renewed.key_hint, 1]]),
  );
  const own = await rig.call("/v0/user/usage/today", undefined, { method: "GET", ...by(renewed.api_key) });
  const today = await own.json();
  assertEquals([today.date, today.totals.requests, today.models.length], ["2027-01-15", 4, 3]);
  const plain = await rig.call("/v0/user/usage/today", undefined, { method: "GET" });
  assertEquals((await plain.json()).totals.requests, 1);
});

Deno.test("events are 10-minute UTC buckets, newest first, at most `limit` of them", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  const startMs = rig.clock.now() - rig.clock.now() % 600_000;
  await ask(rig, {});
  await ask(rig, {});
  await rig.pass(600_000);
  await ask(rig, {});
  const events = async (query: string) => await (await rig.admin(`usage/events${query}`)).json();
  const all = await events("");
  assertEquals(all.events.map((event: { at: string; requests: number }) => [event.at, event.requests]), [
    [new Date(startMs + 600_000).toISOString(), 1],
    [new Date(startMs).toISOString(), 2],
  ]);
  assertEquals([all.bucket_minutes, all.truncated], [10, false]);
  assertEquals(all.events[0].user, null);
  const newest = await events("?limit=1");
  assertEquals([newest.events.length, newest.events[0].requests, newest.truncated], [1, 1, true]);
  const older = await events(`?to=${new Date(startMs + 600_000).toISOString()}`);
  assertEquals([older.events.length, older.events[0].requests], [1, 2]);
});

Deno.test("usage begins anew at midnight UTC and outlives a restart", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  await ask(rig, {});
  await rig.restart();
  const today = async () => {
    const answer = await rig.call("/v0/user/usage/today", undefined, { method: "GET" });
    const { date, totals } = await answer.json();
    return [date, totals.requests];
  };
  assertEquals(await today(), ["2027-01-15", 1]);
  await rig.pass(FAKE_START_MS - FAKE_START_MS % 86_400_000 + 86_400_000 - rig.clock.now());
  assertEquals(await today(), ["2027-01-16", 0]);
});

Deno.test("nothing is counted while usage is off", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { usage: { enabled: false } } });
  rig.account("A").otherwise(ok("A"));
  await ask(rig, {});
  assertEquals((await report(rig)).totals, { requests: 0, failures: 0, ...NO_TOKENS });
});

const refusals: readonly { query: string; want: string }[] = [
  {
    query: "?from=yesterday",
    want: '"from" must be a time like 2026-01-31T00:00:00Z or a date like 2026-01-31',
  },
  { query: "?from=2026-02-01&to=2026-01-01", want: '"from" must be before "to"' },
  { query: "?from=2026-02-01&to=2026-02-01", want: '"from" must be before "to"' },
  { query: "?user=a&tenant=b", want: '"user" and "tenant" must not be given together' },
  { query: "?user=", want: '"user" must not be empty' },
  { query: "?usr=a", want: '"usr" is not known here' },
  { query: "/events?limit=0", want: '"limit" must be 1..10000' },
  { query: "/events?limit=10001", want: '"limit" must be 1..10000' },
  { query: "/events?limit=1e3", want: '"limit" must be 1..10000' },
  { query: "?limit=10", want: '"limit" is not known here' },
];
Deno.test("a wrong query of usage is refused by name", async (t) => {
  await using rig = await startRig({ accounts: [] });
  for (const c of refusals) {
    await t.step(c.query, async () => {
      const answer = await rig.admin(`usage${c.query}`);
      assertEquals([answer.status, (await answer.json()).error.message], [400, c.want]);
    });
  }
  for (const path of ["usage", "usage/events"]) {
    await t.step(`${path} is the operator's`, async () => {
      const answer = await rig.call(`/v0/management/${path}`, undefined, { method: "GET" });
      assertEquals([answer.status, (await answer.json()).error.code], [401, "invalid_api_key"]);
    });
  }
  await t.step("a wrong key has no usage", async () => {
    const answer = await rig.call("/v0/user/usage/today", undefined, {
      method: "GET",
      headers: { authorization: `Bearer ${CLIENT_KEY}x` },
    });
    assertEquals([answer.status, (await answer.json()).error.code], [401, "invalid_api_key"]);
  });
});
