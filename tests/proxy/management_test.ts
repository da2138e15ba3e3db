import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { DecisionLog } from "../../lib/proxy/decision_log.ts";
import { createManagement, type ManagementDeps } from "../../lib/proxy/management.ts";
import { StoreFailure } from "../../lib/ports.ts";
import { createDigest } from "../../lib/runtime/digest.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { startRig } from "../support/rig.ts";
import { ownRequest } from "../../lib/proxy/client_request.ts";

function management(more: ManagementDeps["more"], fatal: ManagementDeps["fatal"]) {
  return createManagement({
    adminKeyHash: () => null,
    digest: createDigest(),
    clock: new FakeClock(),
    log: { write: () => {} },
    // Nothing of the pool is reached by these calls.
    pool: null as unknown as ManagementDeps["pool"],
    decisions: new DecisionLog(),
    state: null as unknown as ManagementDeps["state"],
    feed: null as unknown as ManagementDeps["feed"],
    more,
    fatal,
  });
}

Deno.test("createManagement() ends the process when a change cannot be stored, at once or later", async () => {
  const gone = new StoreFailure("create user", "the disk is full");
  const fatal: unknown[] = [];
  const note = (error: unknown) => void fatal.push(error);
  const request = ownRequest("GET", "/v0/management/users");
  const atOnce = management(() => {
    throw gone;
  }, note);
  assertThrows(() => atOnce(request, "/v0/management/users", ""), StoreFailure);
  const later = management(() => Promise.reject(gone), note);
  await assertRejects(async () => await later(request, "/v0/management/users", ""), StoreFailure);
  assertEquals(fatal, [gone, gone]);
});

const names: readonly { name: string; body: string; want: string }[] = [
  { name: "nothing", body: "", want: '"name" must be a text' },
  { name: "an empty name", body: '{"name":""}', want: '"name" must not be empty' },
  {
    name: "too long a name",
    body: `{"name":"${"a".repeat(513)}"}`,
    want: '"name" must be at most 512 characters',
  },
  { name: "more than is known", body: '{"name":"a","limit":1}', want: '"limit" is not known here' },
];
Deno.test("asking which accounts a name could mean refuses by field, and answers none, one or several", async (t) => {
  await using rig = await startRig({ accounts: ["A", "AB"] });
  const ask = (body: string) => rig.admin("accounts/named", { method: "POST", body });
  for (const c of names) {
    await t.step(c.name, async () => {
      const answer = await ask(c.body);
      assertEquals([answer.status, (await answer.json()).error.message], [400, c.want]);
    });
  }
  const cases = [
    { name: "codex:acct-A:user-A", want: ["codex:acct-A:user-A"] },
    { name: "acct-A", want: ["codex:acct-A:user-A", "codex:acct-AB:user-AB"] },
    { name: "a".repeat(512), want: [] },
  ];
  for (const { name, want } of cases) {
    await t.step(name.slice(0, 20), async () => {
      const { accounts } = await (await ask(JSON.stringify({ name }))).json();
      assertEquals(accounts.map(({ id }: { id: string }) => id).sort(), [...want].sort());
    });
  }
  await t.step("without the admin key nothing is told", async () => {
    const answer = await fetch(`${rig.app.url}/v0/management/accounts/named`, { method: "POST", body: "{}" });
    await answer.body?.cancel();
    assertEquals(answer.status, 401);
  });
});

const bodies: readonly { name: string; body: string; want: string }[] = [
  { name: "nothing", body: "", want: '"enabled" must be true or false' },
  { name: "a word", body: '{"enabled":"no"}', want: '"enabled" must be true or false' },
  { name: "more than is known", body: '{"enabled":true,"weight":3}', want: '"weight" is not known here' },
  { name: "no JSON", body: "enabled=false", want: "The body is not JSON" },
];
Deno.test("switching an account refuses by name and changes nothing", async (t) => {
  await using rig = await startRig({ accounts: ["A"] });
  const id = "codex:acct-A:user-A";
  for (const c of bodies) {
    await t.step(c.name, async () => {
      const answer = await rig.admin(`accounts/${id}`, { method: "PATCH", body: c.body });
      assertEquals([answer.status, (await answer.json()).error.message], [400, c.want]);
    });
  }
  await t.step("it is still on, and can be switched", async () => {
    assertEquals((await (await rig.admin(`accounts/${id}`)).json()).enabled, true);
    const body = new ReadableStream({
      start(controller) {
        // Chunked: without a declared length.
        controller.enqueue(new TextEncoder().encode('{"enabled":'));
        controller.enqueue(new TextEncoder().encode("false}"));
        controller.close();
      },
    });
    const answer = await rig.admin(`accounts/${encodeURIComponent(id)}`, { method: "PATCH", body });
    assertEquals((await answer.json()).state, "disabled");
  });
});
