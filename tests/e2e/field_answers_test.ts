/** Field cases of kind (b), (g) and (i): retries and final answers, what survives, what is the network's fault. */
import { assert, assertEquals } from "@std/assert";
import {
  completed,
  created,
  delta,
  failed,
  failure,
  fin,
  itemDone,
  json,
  ok,
  raw,
  rst,
  stream,
  text,
} from "../../lib/demo/simulated_replies.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";

const R0 = { "request-retry": 0 };

async function statusOf(rig: Rig, fields: Record<string, unknown> = {}): Promise<string> {
  const answer = await rig.responses(fields);
  const body = await answer.json();
  return answer.status === 200 ? body.output[0].content[0].text : `${answer.status} ${body.error.code}`;
}

Deno.test("the remaining wait is told in whole seconds, counting down, never 0 (B029)", async () => {
  await using rig = await startRig({ accounts: ["A"], config: R0 });
  rig.account("A").script(failure(429, { type: "usage_limit_reached", headers: { "retry-after": "29" } }));
  const first = await rig.responses();
  assertEquals([first.status, first.headers.get("retry-after")], [429, "29"]);
  await first.body?.cancel();
  const began = rig.clock.now();
  await rig.pass(10_400);
  const spent = (rig.clock.now() - began) / 1000;
  const second = await rig.responses();
  const told = Number(second.headers.get("retry-after"));
  assert(told >= 18 - spent + 10 && told <= 19, `${told} after ${spent}`);
  await second.body?.cancel();
});

Deno.test("Retry-After as a date is measured against the upstream's own clock (B030)", async (t) => {
  const imf = (atMs: number): string => new Date(atMs).toUTCString();
  await t.step("IMF-fixdate", async () => {
    await using rig = await startRig({ accounts: ["A"], config: R0 });
    rig.account("A").script(
      failure(429, {
        type: "usage_limit_reached",
        headers: { "retry-after": imf(rig.clock.now() + 90_000), date: imf(rig.clock.now()) },
      }),
    ).otherwise(ok("A"));
    const first = await rig.responses();
    const told = Number(first.headers.get("retry-after"));
    assert(told >= 88 && told <= 90, `${told}`);
    await first.body?.cancel();
    await rig.pass(92_000);
    assertEquals(await statusOf(rig), "A");
  });
  await t.step("our clock is five minutes fast", async () => {
    await using rig = await startRig({ accounts: ["A"], config: R0 });
    const theirs = rig.clock.now() - 300_000;
    rig.account("A").script(
      failure(429, {
        type: "usage_limit_reached",
        headers: { "retry-after": imf(theirs + 90_000), date: imf(theirs) },
      }),
    );
    const answer = await rig.responses();
    await answer.body?.cancel();
    const told = answer.headers.get("retry-after");
    assert(Number(told) >= 88 && Number(told) <= 91, `${told}`);
  });
  await t.step("a date in the past is no time", async () => {
    await using rig = await startRig({ accounts: ["A"], config: R0 });
    rig.account("A").script(
      failure(429, {
        type: "rate_limit",
        code: "rate_limit_exceeded",
        headers: { "retry-after": imf(rig.clock.now() - 90_000) },
      }),
    );
    const answer = await rig.responses();
    await answer.body?.cancel();
    const told = Number(answer.headers.get("retry-after"));
    assert(told >= 1 && told <= 60, `${told}`);
  });
});

Deno.test("a wait spelled out in prose is understood (B032)", async (t) => {
  for (const [prose, seconds] of [["6m0s", 360], ["20m", 1_200], ["1h2m3s", 3_723], ["350ms", 1]] as const) {
    await t.step(prose, async () => {
      await using rig = await startRig({ accounts: ["A"], config: R0 });
      rig.account("A").script(
        failure(429, {
          code: "rate_limit_exceeded",
          message: `Rate limit reached. Please try again in ${prose}.`,
        }),
      );
      const answer = await rig.responses();
      assertEquals([answer.status, answer.headers.get("retry-after")], [429, String(seconds)]);
      await answer.body?.cancel();
    });
  }
});

Deno.test("a huge Retry-After on a timeout is no deadline; on a 429 it is kept in full and can be cleared (B034)", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(failure(504, { headers: { "retry-after": "86400" } }), ok("A"));
  assertEquals(await statusOf(rig), "A");
  rig.account("A").script(
    failure(429, { type: "usage_limit_reached", headers: { "retry-after": "2592000" } }),
  ).otherwise(ok("A"));
  const answer = await rig.responses();
  assertEquals([answer.status, answer.headers.get("retry-after")], [429, "2592000"]);
  await answer.body?.cancel();
  await rig.pass(86_400_000);
  assertEquals(await statusOf(rig), "429 rate_limited");
  const id = encodeURIComponent(String((await rig.accountState("A"))["id"]));
  await (await rig.admin(`accounts/${id}/reset`, { method: "POST" })).body?.cancel();
  assertEquals(await statusOf(rig), "A");
});

Deno.test("context too long is tried once, with any body size, and cools nobody (B041)", async () => {
  await using rig = await startRig({ accounts: ["A", "B", "C"] });
  for (const name of ["A", "B", "C"]) {
    rig.account(name).otherwise(failure(400, { code: "context_length_exceeded", message: "Too long" }));
  }
  assertEquals(await statusOf(rig, { input: "x".repeat(4_194_304) }), "400 context_length_exceeded");
  assertEquals(rig.hits("A") + rig.hits("B") + rig.hits("C"), 1);
});

Deno.test("a multipart upload is never sent twice (B042)", async () => {
  await using rig = await startRig({ accounts: ["A", "B"], checkScript: false });
  rig.account("A").otherwise(failure(503, { message: "busy" }));
  rig.account("B").otherwise(ok("B"));
  const form = new FormData();
  form.set("image", new Blob([new Uint8Array(1_048_576)]), "a.png");
  form.set("prompt", "a cat");
  const answer = await rig.until(
    fetch(`${rig.app.url}/v1/images/edits`, {
      method: "POST",
      headers: { authorization: `Bearer ${CLIENT_KEY}` },
      body: form,
    }),
  );
  // The upstream's own status is kept for what is sent once (ruling 24).
  assertEquals([answer.status, rig.hits("A") + rig.hits("B")], [503, 1]);
  await answer.body?.cancel();
  assert(rig.provider.hits[0]!.body.length > 1_048_576);
});

Deno.test("only pings and then the end: the next account serves (B028)", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").otherwise(stream([text(": ping\n\n"), text(": ping\n\n"), fin()]));
  rig.account("B").otherwise(ok("B"));
  const answer = await rig.responses({ stream: true });
  assert((await answer.text()).includes('"B"'));
  assertEquals([rig.hits("A"), rig.hits("B")], [1, 1]);
});

Deno.test("half an answer and a clean end: an explicit failure, nobody marked; JSON clients get 408 (B071)", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  // In order to its last chunk: a connection that breaks off is another case.
  const half = stream([created("resp_half"), delta("half")]);
  for (const name of ["A", "B"]) rig.account(name).otherwise(half);
  const streamed = await rig.responses({ stream: true });
  assert((await streamed.text()).trimEnd().split("\n\n").at(-1)!.includes("response.failed"));
  const told = await statusOf(rig);
  assertEquals(told, "408 stream_incomplete");
  assertEquals(rig.hits("A") + rig.hits("B"), 2);
  for (const name of ["A", "B"]) assertEquals((await rig.accountState(name))["state"], "healthy");
});

Deno.test("a failure in the very first frame is the same answer every time (B084)", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { ...R0, "max-retry-interval": 1 } });
  rig.account("A").otherwise(stream([failed("server_error"), fin()]));
  for (let turn = 0; turn < 20; turn++) {
    const answer = await rig.responses({ stream: turn % 2 === 0 });
    assertEquals([answer.status, (await answer.json()).error.code], [502, "upstream_unavailable"]);
    await rig.pass(120_000);
  }
});

Deno.test("what survives a crash depends on the kind of state alone (B123)", async (t) => {
  const cases = [
    { name: "503", reply: failure(503), kept: false },
    { name: "408", reply: failure(408), kept: false },
    { name: "429 without a time", reply: failure(429, { code: "rate_limit_exceeded" }), kept: false },
    {
      name: "429 with a time",
      reply: failure(429, { type: "usage_limit_reached", headers: { "retry-after": "600" } }),
      kept: true,
    },
    { name: "model not found", reply: failure(404, { code: "model_not_found" }), kept: false },
  ];
  for (const { name, reply, kept } of cases) {
    await t.step(name, async () => {
      await using rig = await startRig({ accounts: ["A"], config: R0 });
      rig.account("A").script(reply);
      await (await rig.responses({ stream: true })).body?.cancel();
      await rig.restart();
      if (kept) {
        assertEquals(await statusOf(rig), "429 rate_limited");
      } else {
        rig.account("A").script(ok("A"));
        assertEquals(await statusOf(rig), "A");
      }
    });
  }
});

Deno.test("a reading from before a restart parks from its own time, not from the start (B124)", async () => {
  await using rig = await startRig({
    accounts: ["A"],
    config: { ...R0, quota: { "poll-interval-seconds": 60 } },
  });
  const page = json({
    plan_type: "plus",
    rate_limit: {
      allowed: false,
      limit_reached: true,
      primary_window: {
        used_percent: 100,
        limit_window_seconds: 604_800,
        reset_after_seconds: 259_200,
        reset_at: Math.floor(rig.clock.now() / 1000) + 259_200,
      },
      secondary_window: null,
    },
  });
  rig.account("A").usage.script(page).otherwise(failure(503));
  rig.account("A").otherwise(ok("A"));
  await rig.eventually(async () => (await rig.accountState("A"))["state"] === "parked");
  await rig.stop();
  rig.clock.jump(20 * 60_000);
  await rig.start();
  const answer = await rig.responses();
  assertEquals(answer.status, 429);
  assert(Number(answer.headers.get("retry-after")) <= 600);
  await answer.body?.cancel();
  await rig.stop();
  rig.clock.jump(11 * 60_000);
  await rig.start();
  assertEquals(await statusOf(rig), "A");
});

Deno.test("a region refusal is never the account's fault: it comes back with the way out (B147)", async () => {
  await using rig = await startRig({ accounts: ["A"], config: R0 });
  const refused = failure(403, {
    code: "unsupported_country_region_territory",
    message: "Country, region, or territory not supported",
  });
  rig.account("A").script(refused, refused, refused).otherwise(ok("A"));
  const seen: string[] = [];
  for (let turn = 0; turn < 6; turn++) {
    seen.push(await statusOf(rig));
    await rig.pass(61_000);
  }
  assert(seen.slice(0, 3).every((answer) => answer === "502 upstream_unavailable"), seen.join());
  assertEquals(seen.at(-1), "A");
  assertEquals(rig.provider.hitsOf("SENT-ref-A", "tokens").length, 0);
  await rig.restart();
  assertEquals(await statusOf(rig), "A");
});

Deno.test("a challenge page in front of the provider cools no account and is not walked through the pool (B148, ruling 4)", async () => {
  await using rig = await startRig({ accounts: ["A", "B"], config: R0, checkScript: false });
  const page = raw(403, `<html><title>Just a moment...</title>${"x".repeat(30_000)}</html>`, {
    "content-type": "text/html",
    "cf-mitigated": "challenge",
  });
  for (const name of ["A", "B"]) rig.account(name).script(page).otherwise(ok(name));
  const answer = await rig.responses();
  const body = await answer.text();
  assertEquals(answer.status, 502);
  assert(!body.includes("<html>"));
  assertEquals(rig.hits("A") + rig.hits("B"), 1);
  for (const name of ["A", "B"]) assertEquals((await rig.accountState(name))["state"], "healthy");
  await rig.pass(61_000);
  const again = await rig.responses();
  await again.body?.cancel();
});

Deno.test("a portal that answers 200 for everything is no success: no token replaced, 302 not followed (B149)", async () => {
  await using rig = await startRig({ accounts: [], config: R0 });
  rig.writeAccount("A", { expired: new Date(rig.clock.now() + 60_000).toISOString() });
  await rig.restart();
  const portal = raw(200, "<html>Sign in to Wi-Fi</html>", { "content-type": "text/html" });
  rig.provider.account("SENT-ref-A").tokens.otherwise(portal);
  rig.account("A").script(portal, raw(302, "", { location: "http://127.0.0.1:9/portal" })).otherwise(ok("A"));
  for (let turn = 0; turn < 2; turn++) {
    assertEquals(await statusOf(rig), "502 upstream_unavailable");
    await rig.pass(30_000);
  }
  const file = JSON.parse(Deno.readTextFileSync(`${rig.authDir}/A.json`));
  assertEquals([file.access_token, file.refresh_token], ["SENT-tok-A", "SENT-ref-A"]);
});

Deno.test("a refused connection is told as 502, moves no conversation, and is over when the host is back (B146)", async () => {
  await using rig = await startRig({
    accounts: ["A", "B"],
    config: { ...R0, "max-retry-interval": 2 },
    checkScript: false,
  });
  for (const name of ["A", "B"]) rig.account(name).script(ok(name));
  const bound = await rig.responses({}, { headers: { "session-id": "s1" } });
  const home = (await bound.json()).output[0].content[0].text;
  const dead = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const deadUrl = `http://127.0.0.1:${(dead.addr as Deno.NetAddr).port}`;
  dead.close();
  const live = rig.app;
  await live.reload({ ...rig.config(), codexBaseUrl: `${deadUrl}/backend-api/codex` });
  for (let turn = 0; turn < 3; turn++) {
    const answer = await rig.responses({}, { headers: { "session-id": "s1" } });
    assertEquals([answer.status, (await answer.json()).error.code], [502, "upstream_unavailable"]);
    await rig.pass(2_000);
  }
  await live.reload(rig.config());
  await rig.pass(60_000);
  for (const name of ["A", "B"]) rig.account(name).otherwise(ok(name));
  const after = await rig.responses({}, { headers: { "session-id": "s1" } });
  assertEquals([after.status, (await after.json()).output[0].content[0].text], [200, home]);
});

Deno.test("a stream broken off before its first output is tried elsewhere", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").otherwise(stream([created("resp_a"), rst()]));
  rig.account("B").otherwise(stream([created("resp_b"), delta("hi"), itemDone("hi"), completed("resp_b")]));
  const answer = await rig.responses({ stream: true });
  const body = await answer.text();
  assert(body.includes("resp_b") && !body.includes("resp_a"));
});
