/** The program as people run it: start, signals, crashes, and refusals that name their cause. */
import { assert, assertEquals } from "@std/assert";
import {
  completed,
  created,
  delay,
  delta,
  failure,
  hold,
  itemDone,
  ok,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { eventually } from "../support/eventually.ts";
import { ProcessRig } from "../support/process_rig.ts";

Deno.test("SIGTERM lets a stream under way finish, refuses new requests, and ends with 0 within 5 s", async () => {
  await using rig = await ProcessRig.create(["A"]);
  rig.provider.account("SENT-tok-A").script(
    stream([created(), delta("Hel"), delay(1_000), delta("lo"), itemDone("Hello"), completed()]),
  );
  await rig.start();
  const answer = await rig.call({ stream: true });
  const began = performance.now();
  rig.signal("SIGTERM");
  const text = await answer.text();
  assert(text.includes('"lo"') && text.includes("response.completed"), "the stream was cut");
  assertEquals(await rig.ended(), 0);
  assert(performance.now() - began < 5_000);
});

Deno.test("SIGTERM ends even a stream that hangs, within 5 s, and tells its client", async () => {
  await using rig = await ProcessRig.create(["A"]);
  rig.provider.account("SENT-tok-A").script(stream([created(), delta("Hel"), hold()]));
  await rig.start();
  const answer = await rig.call({ stream: true });
  const began = performance.now();
  rig.signal("SIGTERM");
  await answer.text().catch(() => "");
  assertEquals(await rig.ended(), 0);
  assert(performance.now() - began < 5_000);
});

Deno.test("kill -9 right after a 429: the deadline is there after the restart, and nothing is sent before it", async () => {
  await using rig = await ProcessRig.create(["A"]);
  rig.provider.account("SENT-tok-A").script(
    failure(429, { type: "usage_limit_reached", headers: { "retry-after": "7200" } }),
  );
  await rig.start();
  const first = await rig.call();
  assertEquals(first.status, 429);
  rig.signal("SIGKILL");
  await first.body?.cancel();
  await rig.ended();
  await rig.start();
  const again = await rig.call();
  const seconds = Number(again.headers.get("retry-after"));
  assert(again.status === 429 && seconds > 7_100 && seconds <= 7_200, `${again.status} ${seconds}`);
  await again.body?.cancel();
  assertEquals(rig.provider.hits.length, 1);
  rig.signal("SIGINT");
  assertEquals(await rig.ended(), 0);
});

Deno.test("the first start makes a key, shows it once with settings, and it works after a restart", async () => {
  await using rig = await ProcessRig.create(["A"], { "api-keys": [] });
  rig.provider.account("SENT-tok-A").otherwise(ok("A"));
  await rig.start();
  await eventually(() => rig.stdout.includes("HOLDFAST_KEY"));
  const key = /hf_[A-Za-z0-9_-]{20,}/.exec(rig.stdout)![0];
  assert(rig.stdout.includes("ANTHROPIC_BASE_URL") && !rig.stderr.includes(key));
  assert(rig.stdout.includes("\n  deno task holdfast clients codex --write\n"), rig.stdout);
  rig.signal("SIGTERM");
  await rig.ended();
  await rig.start();
  const answer = await rig.call({}, {
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
  });
  assertEquals([answer.status, (await answer.json()).status], [200, "completed"]);
  assert(!rig.stdout.includes("hf_"));
});

Deno.test("without any account it starts, says what to do, and /readyz answers 503 with the reason", async () => {
  await using rig = await ProcessRig.create([]);
  await rig.start();
  const ready = await fetch(`${rig.url}/readyz`);
  assertEquals(ready.status, 503);
  assert((await ready.json()).reason.includes("auth-dir"));
  assertEquals((await (await fetch(`${rig.url}/healthz`)).json()).status, "ok");
  await eventually(() => rig.stderr.includes("no_accounts"));
  rig.writeAccount("A");
  await eventuallyReady(rig);
  rig.signal("SIGTERM");
  assertEquals(await rig.ended(), 0);
});

async function eventuallyReady(rig: ProcessRig): Promise<void> {
  const endMs = performance.now() + 5_000;
  for (;;) {
    const ready = await fetch(`${rig.url}/readyz`);
    await ready.body?.cancel();
    if (ready.status === 200) return;
    assert(performance.now() < endMs, "a new account was not seen within 5 s");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

Deno.test("what keeps it from starting is said in one line, with a non-zero code", async (t) => {
  await t.step("an unknown key, with a suggestion", async () => {
    await using rig = await ProcessRig.create(["A"], { "request-retries": 3 });
    await rig.start();
    assertEquals(await rig.ended(), 2);
    assert(/request-retries.*request-retry/.test(rig.stderr), rig.stderr);
  });
  await t.step("an open listener without keys", async () => {
    await using rig = await ProcessRig.create(["A"], { host: "0.0.0.0", "api-keys": [] });
    await rig.start();
    assertEquals(await rig.ended(), 1);
    assert(rig.stderr.includes("0.0.0.0") && rig.stderr.includes("api-keys"), rig.stderr);
  });
  await t.step("a second process on one database", async () => {
    await using rig = await ProcessRig.create(["A"]);
    await rig.start();
    await using second = await ProcessRig.create(["A"]);
    second.writeConfig({ database: { path: rig.folder.file("state/holdfast.db") } });
    await second.start();
    assertEquals(await second.ended(), 1);
    assertEquals(second.stderr.trim().split("\n").length, 1, second.stderr);
    assert(/another|already|in use/i.test(second.stderr), second.stderr);
  });
  await t.step("a port that is taken", async () => {
    await using rig = await ProcessRig.create(["A"]);
    using _taken = Deno.listen({ hostname: "127.0.0.1", port: rig.port });
    await rig.start();
    assertEquals(await rig.ended(), 1);
    assert(rig.stderr.includes(`${rig.port}`), rig.stderr);
  });
});

Deno.test("SIGHUP and a changed file reload the configuration; a broken file leaves the running one", async () => {
  await using rig = await ProcessRig.create(["A"]);
  rig.provider.account("SENT-tok-A").otherwise(ok("A"));
  await rig.start();
  rig.writeConfig({ "api-keys": ["SENT-key-client-2"] });
  rig.signal("SIGHUP");
  await eventually(() => rig.stderr.includes("config_reloaded"));
  const old = await rig.call();
  assertEquals(old.status, 401);
  await old.body?.cancel();
  rig.writeConfig({ "api-keys": ["SENT-key-client-2"], "no-such-key": 1 });
  await eventually(() => rig.stderr.includes("no-such-key"), 10_000);
  const answer = await rig.call({}, {
    headers: { authorization: "Bearer SENT-key-client-2", "content-type": "application/json" },
  });
  assertEquals(answer.status, 200);
  await answer.body?.cancel();
  // Who reads the log line by line can go on.
  const lines = rig.stderr.trimEnd().split("\n").map((line) => JSON.parse(line));
  const refused = lines.filter(({ event }) => event === "reload_refused");
  assertEquals(refused.length, 1);
  assert(refused[0].problems.some((problem: string) => problem.includes("no-such-key")), refused[0].problems);
});
