/** Field cases of kind (a), selection and cooldown, over real sockets. */
import { assert, assertEquals } from "@std/assert";
import { created, failure, hold, json, ok, silence, stream } from "../../lib/demo/simulated_replies.ts";
import { VERY_LONG_INPUT } from "../support/long_input.ts";
import { type Rig, startRig } from "../support/rig.ts";

const R0 = { "request-retry": 0 };

async function whoServes(rig: Rig, session: string | null = null): Promise<string> {
  const answer = await rig.responses({}, session === null ? {} : { headers: { "session-id": session } });
  const body = await answer.json();
  return answer.status === 200 ? body.output[0].content[0].text : `${answer.status}`;
}

function limited(seconds: number): ReturnType<typeof failure> {
  return failure(429, { type: "usage_limit_reached", headers: { "retry-after": String(seconds) } });
}

Deno.test("a short 5xx is never auth_unavailable, and its cooldown never outlasts max-retry-interval (B001)", async () => {
  await using rig = await startRig({ accounts: ["A"], config: R0 });
  rig.account("A").script(failure(503)).otherwise(ok("A"));
  for (const wait of [0, 1_000]) {
    await rig.pass(wait);
    const answer = await rig.responses();
    assertEquals([answer.status, (await answer.json()).error.code], [502, "upstream_unavailable"]);
  }
  await rig.pass(30_000);
  assertEquals(await whoServes(rig), "A");
});

Deno.test("a stray 404 is passed on and cools nobody; model_not_found excludes that model alone (B006)", async () => {
  await using rig = await startRig({ accounts: ["A"], config: R0 });
  rig.account("A").script(json({ detail: "Not Found" }, 404), ok("A"));
  const stray = await rig.responses();
  assertEquals(stray.status, 404);
  await stray.body?.cancel();
  assertEquals(await whoServes(rig), "A");

  rig.account("A").script(failure(404, { code: "model_not_found" }), ok("A"));
  for (let turn = 0; turn < 2; turn++) {
    const answer = await rig.responses();
    assertEquals([answer.status, (await answer.json()).error.code], [404, "model_not_found"]);
  }
  assertEquals(rig.hits("A"), 3);
  const other = await rig.responses({ model: "m2" });
  assertEquals((await other.json()).status, "completed");
});

Deno.test("a conversation leaves its exhausted account inside one request, and stays where it went (B009)", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  for (const name of ["A", "B"]) rig.account(name).otherwise(ok(name));
  const first = await whoServes(rig, "s1");
  const second = first === "A" ? "B" : "A";
  rig.account(first).script(limited(3_600));
  assertEquals(await whoServes(rig, "s1"), second);
  assertEquals(await whoServes(rig, "s1"), second);
  assertEquals(rig.hits(first), 2);
});

Deno.test("after one blip a conversation moves once and does not wander (B010)", async () => {
  await using rig = await startRig({ accounts: ["A", "B", "C"] });
  for (const name of ["A", "B", "C"]) rig.account(name).otherwise(ok(name));
  const first = await whoServes(rig, "s1");
  rig.account(first).script(failure(503));
  const served: string[] = [];
  for (let turn = 0; turn < 10; turn++) {
    served.push(await whoServes(rig, "s1"));
    await rig.pass(3_000);
  }
  assertEquals(new Set(served).size, 1, served.join(" "));
  assert(served[0] !== first);
});

Deno.test("20 concurrent requests of one session whose account cools end on one binding (B010)", async () => {
  await using rig = await startRig({ accounts: ["A", "B", "C"] });
  for (const name of ["A", "B", "C"]) rig.account(name).otherwise(ok(name));
  const first = await whoServes(rig, "s1");
  rig.account(first).otherwise(limited(3_600));
  const served = await Promise.all(Array.from({ length: 20 }, () => whoServes(rig, "s1")));
  assertEquals(new Set(served).size, 1, served.join(" "));
  assertEquals(await whoServes(rig, "s1"), served[0]!);
});

Deno.test("new sessions and keyless requests are spread evenly; known sessions stay (B011)", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  for (const name of ["A", "B"]) rig.account(name).otherwise(ok(name));
  const homes = new Map<string, string>();
  for (let index = 0; index < 20; index++) homes.set(`s${index}`, await whoServes(rig, `s${index}`));
  const onA = [...homes.values()].filter((name) => name === "A").length;
  assert(Math.abs(onA - 10) <= 1, `${onA}`);
  const before = rig.hits("A");
  for (let index = 0; index < 20; index++) await whoServes(rig);
  assert(Math.abs(rig.hits("A") - before - 10) <= 1);
  for (const [session, home] of homes) assertEquals(await whoServes(rig, session), home);
});

Deno.test("the binding of a conversation survives a restart", async () => {
  await using rig = await startRig({ accounts: ["A", "B", "C"] });
  for (const name of ["A", "B", "C"]) rig.account(name).otherwise(ok(name));
  const homes = new Map<string, string>();
  for (let index = 0; index < 6; index++) homes.set(`s${index}`, await whoServes(rig, `s${index}`));
  await rig.restart();
  for (const [session, home] of homes) assertEquals(await whoServes(rig, session), home);
});

Deno.test("a later, longer deadline lengthens a running short one; a later, shorter one never shortens it (B013)", async () => {
  await using rig = await startRig({ accounts: ["A", "B"], config: R0 });
  for (const name of ["A", "B"]) rig.account(name).otherwise(ok(name));
  let onA = "";
  for (let index = 0; onA === ""; index++) if (await whoServes(rig, `s${index}`) === "A") onA = `s${index}`;
  const hitsBefore = rig.hits("A");
  rig.account("A").script(limited(1), limited(60));
  await Promise.all([whoServes(rig, onA), whoServes(rig, onA)]);
  await rig.pass(5_000);
  for (let turn = 0; turn < 4; turn++) assertEquals(await whoServes(rig), "B");
  assertEquals(rig.hits("A"), hitsBefore + 2);
});

Deno.test("a burst of throttles climbs one step, and the waiters do not wake in one instant (B014)", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const throttle = failure(429, { message: "busy" });
  rig.account("A").script(...Array.from({ length: 12 }, () => throttle)).otherwise(ok("A"));
  const answers = await Promise.all(Array.from({ length: 12 }, () => rig.responses()));
  for (const answer of answers) {
    assert(answer.status === 200 || answer.status === 502 || answer.status === 429, `${answer.status}`);
    await answer.body?.cancel();
  }
  assert(answers.every((answer) => answer.status === 200), answers.map(({ status }) => status).join(" "));
  const waits = rig.app.decisions.latest(12).flatMap(({ waits }) => waits);
  assert(waits.every(({ fromMs, untilMs }) => untilMs - fromMs <= 30_000));
  assert(new Set(waits.map(({ untilMs }) => untilMs)).size > 3, "all wake in the same moment");
});

Deno.test("a deadline that is over needs nobody to clear it (B015)", async () => {
  await using rig = await startRig({ accounts: ["A", "B"], config: R0 });
  rig.account("A").script(limited(60)).otherwise(ok("A"));
  rig.account("B").script(limited(7_200)).otherwise(ok("B"));
  assertEquals(await whoServes(rig), "429");
  await rig.stop();
  rig.clock.jump(25 * 3_600_000);
  await rig.start();
  assertEquals((await rig.accountState("A"))["state"], "healthy");
  assertEquals((await rig.accountState("B"))["state"], "healthy");
  assertEquals(new Set([await whoServes(rig), await whoServes(rig)]), new Set(["A", "B"]));
});

Deno.test("a day-long deadline beside a passing fault: 502; with a near one 429; waited out where rounds allow (B016)", async (t) => {
  for (const order of [["A", "B"], ["B", "A"]] as const) {
    const setUp = (rig: Rig, resetsInSeconds: number): void => {
      rig.account(order[1]).script(
        failure(429, { type: "usage_limit_reached", extra: { resets_in_seconds: resetsInSeconds } }),
      );
      rig.account(order[0]).script(failure(503)).otherwise(ok(order[0]));
    };
    await t.step(`far, no rounds: ${order}`, async () => {
      await using rig = await startRig({ accounts: ["A", "B"], config: R0 });
      setUp(rig, 83_220);
      assertEquals(await whoServes(rig), "502");
    });
    await t.step(`far, with rounds: ${order}`, async () => {
      await using rig = await startRig({ accounts: ["A", "B"] });
      setUp(rig, 83_220);
      assertEquals(await whoServes(rig), order[0]);
    });
    await t.step(`near, no rounds: ${order}`, async () => {
      await using rig = await startRig({ accounts: ["A", "B"], config: R0 });
      setUp(rig, 20);
      const answer = await rig.responses();
      assertEquals(answer.status, 429);
      assert(Number(answer.headers.get("retry-after")) <= 20);
      await answer.body?.cancel();
    });
  }
});

Deno.test("a probe whose client leaves does not stay out for ever (B018)", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 1 } });
  // Two strikes and the end of the request open the provider's cooldown.
  rig.account("A").script(failure(503), failure(503), silence()).otherwise(ok("A"));
  assertEquals(await whoServes(rig), "502");
  await rig.pass(60_000);
  const abort = new AbortController();
  const probe = rig.responses({ input: VERY_LONG_INPUT }, { signal: abort.signal }).then(
    () => "answered",
    () => "left",
  );
  await rig.until(rig.provider.hitCount(3));
  await rig.clock.advance(5_000);
  abort.abort();
  assertEquals(await rig.until(probe), "left");
  await rig.eventually(() => rig.app.decisions.latest(1)[0]?.status === 0);
  assertEquals(await whoServes(rig), "A");
  const { providers } = await (await rig.admin("providers")).json();
  const [{ circuit, cooldown, probe: gate }] = providers;
  assertEquals([circuit, cooldown, gate.state], [null, null, "idle"]);
});

Deno.test("an exhausted account is remembered between requests (B022)", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").otherwise(limited(3_600));
  rig.account("B").otherwise(ok("B"));
  for (let turn = 0; turn < 3; turn++) assertEquals(await whoServes(rig), "B");
  assertEquals(rig.hits("A"), 1);
});

Deno.test("a stream that stays silent after its first event is released at the hold's bound, and ended at the idle limit", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { timeouts: { "idle-seconds": 60 } } });
  rig.account("A").script(stream([created("resp_silent"), hold()]));
  const began = rig.clock.now();
  const answer = await rig.responses({ stream: true });
  assertEquals(answer.status, 200);
  assert(rig.clock.now() - began >= 10_000);
  const text = await rig.until(answer.text());
  assert(text.includes("response.created") && text.includes("response.failed"), text);
  assert(rig.clock.now() - began >= 60_000);
});
