/** Token repair over real sockets: one refresh, one retry on the same account, then the next account. */
import { assert, assertEquals } from "@std/assert";
import { failure, ok, tokens } from "../../lib/demo/simulated_replies.ts";
import { type Rig, startRig } from "../support/rig.ts";

const REFUSED = failure(401, { code: "token_expired", message: "Your authentication token has expired." });

/** Lets the account's refresh token be worth a new access token, which is scripted with `reply`. */
function refreshesTo(rig: Rig, name: string, token: string): ReturnType<Rig["provider"]["account"]> {
  rig.provider.account(`SENT-ref-${name}`).tokens.script(
    tokens({ access_token: token, refresh_token: `SENT-ref2-${name}`, expires_in: 3600 }),
  );
  return rig.provider.account(token);
}

Deno.test("a first 401 is repaired: one refresh, one retry on the same account, and the new tokens are on disk", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(REFUSED);
  refreshesTo(rig, "A", "SENT-tok-A2").script(ok("A again"));
  const answer = await rig.responses();
  assertEquals(answer.status, 200);
  assert((await answer.text()).includes("A again"));
  const file = JSON.parse(Deno.readTextFileSync(`${rig.authDir}/A.json`));
  assertEquals([file.access_token, file.refresh_token, file.account_id], [
    "SENT-tok-A2",
    "SENT-ref2-A",
    "acct-A",
  ]);
  assertEquals(Deno.statSync(`${rig.authDir}/A.json`).mode! & 0o777, 0o600);
  const decision = await rig.lastDecision();
  assertEquals(decision.attempts.map(({ cause }) => cause), ["first", "repair"]);
});

Deno.test("continued 401 after a refresh fails over, is remembered over a restart, and ends with new material", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(REFUSED);
  refreshesTo(rig, "A", "SENT-tok-A2").script(REFUSED);
  rig.account("B").otherwise(ok("B"));
  assert((await (await rig.responses()).text()).includes('"B"'));
  await rig.restart();
  assert((await (await rig.responses()).text()).includes('"B"'));
  assertEquals(rig.provider.hitsOf("SENT-tok-A2").length, 1);
  await rig.stop();
  rig.writeAccount("A", {
    access_token: "SENT-tok-A3",
    refresh_token: "SENT-ref-A3",
    last_refresh: "2026-06-01T00:00:00Z",
  });
  rig.provider.account("SENT-tok-A3").otherwise(ok("A"));
  await rig.start();
  const texts = [await (await rig.responses()).text(), await (await rig.responses()).text()];
  assert(texts.some((text) => text.includes('"A"')), "new material makes A usable");
});

Deno.test("invalid_grant: 503 when nobody is left, one token call only, also after a restart", async () => {
  await using rig = await startRig({ accounts: ["A"], credential: { expired: "2020-01-01T00:00:00Z" } });
  rig.provider.account("SENT-ref-A").tokens.script(failure(400, { code: "invalid_grant", message: "dead" }));
  for (let turn = 0; turn < 3; turn++) {
    const answer = await rig.responses();
    assertEquals([answer.status, (await answer.json()).error.code], [503, "auth_unavailable"]);
  }
  await rig.restart();
  const answer = await rig.responses();
  assertEquals([answer.status, (await answer.json()).error.code], [503, "auth_unavailable"]);
  assertEquals(rig.provider.hitsOf("SENT-ref-A", "tokens").length, 1);
  assertEquals(rig.hits("A"), 0);
});

Deno.test("a token about to expire is refreshed before the launch", async () => {
  await using rig = await startRig({ accounts: [] });
  rig.writeAccount("A", { expired: new Date(rig.clock.now() + 60_000).toISOString() });
  await rig.restart();
  refreshesTo(rig, "A", "SENT-tok-A2").script(ok("A"));
  assertEquals((await (await rig.responses()).json()).status, "completed");
  assertEquals(rig.hits("A"), 0);
});

Deno.test("12 concurrent 401s make one refresh, and all are served", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(REFUSED);
  refreshesTo(rig, "A", "SENT-tok-A2").otherwise(ok("A"));
  const answers = await Promise.all(Array.from({ length: 12 }, () => rig.responses()));
  for (const answer of answers) {
    assertEquals([answer.status, (await answer.json()).status], [200, "completed"]);
  }
  assertEquals(rig.provider.hitsOf("SENT-ref-A", "tokens").length, 1);
  assertEquals(rig.hits("A"), 12);
});

Deno.test("a parameter fault dressed as 401 stops at once; the account stays usable (B040)", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(
    failure(401, { type: "invalid_request_error", code: "invalid_parameter" }),
    ok("A"),
  );
  const bad = await rig.responses();
  assertEquals([bad.status, (await bad.json()).error.code], [401, "invalid_parameter"]);
  assertEquals((await (await rig.responses()).json()).status, "completed");
  assertEquals(rig.provider.hitsOf("SENT-ref-A", "tokens").length, 0);
});

Deno.test("the token endpoint fails for a moment: others serve, the account rests shortly and comes back (B054)", async () => {
  await using rig = await startRig({
    accounts: ["A"],
    credential: { expired: "2020-01-01T00:00:00Z" },
    config: { "request-retry": 0 },
  });
  const endpoint = rig.provider.account("SENT-ref-A").tokens;
  endpoint.script(
    failure(503),
    failure(503),
    failure(503),
    tokens({ access_token: "SENT-tok-A2", refresh_token: "SENT-ref2-A", expires_in: 3600 }),
  );
  rig.provider.account("SENT-tok-A2").otherwise(ok("A"));
  const first = await rig.responses();
  assertEquals([first.status, (await first.json()).error.code], [502, "upstream_unavailable"]);
  await rig.pass(60_000);
  assertEquals((await (await rig.responses()).json()).status, "completed");
});

Deno.test("a once-only request is never repaired by a second send: its 401 is passed on, a refresh follows", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(REFUSED);
  refreshesTo(rig, "A", "SENT-tok-A2").otherwise(ok("A"));
  const answer = await rig.call("/backend-api/wham/apps", { jsonrpc: "2.0", id: 1, method: "tools/call" });
  assertEquals(answer.status, 401);
  await answer.body?.cancel();
  await rig.eventually(async () => (await rig.accountState("A"))["state"] === "healthy");
  assertEquals([rig.hits("A"), rig.provider.hitsOf("SENT-ref-A", "tokens").length], [1, 1]);
  const next = await rig.responses();
  assertEquals((await next.json()).status, "completed");
});
