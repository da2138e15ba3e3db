/** The main job over real sockets: a healthy account serves, a refused one is passed over, the truth is told. */
import { assert, assertEquals } from "@std/assert";
import {
  completed,
  created,
  delta,
  failed,
  failure,
  fin,
  inProgress,
  itemDone,
  ok,
  raw,
  rst,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { startRig } from "../support/rig.ts";

Deno.test("a 429 with Retry-After on the first account: the second serves, the first rests until its time", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(failure(429, { type: "usage_limit_reached", headers: { "retry-after": "3600" } }))
    .otherwise(ok("A"));
  rig.account("B").otherwise(ok("B"));
  const first = await rig.responses({ stream: true });
  assertEquals(first.status, 200);
  assert((await first.text()).includes('"B"'));
  for (let turn = 0; turn < 3; turn++) await (await rig.responses({ stream: true })).body?.cancel();
  assertEquals(rig.hits("A"), 1);
  await rig.restart();
  await (await rig.responses({ stream: true })).body?.cancel();
  assertEquals(rig.hits("A"), 1);
  await rig.pass(3_600_000);
  const texts = [await (await rig.responses()).text(), await (await rig.responses()).text()];
  assert(texts.some((text) => text.includes('"A"')), "A is back after its time");
});

Deno.test("all accounts limited: 429 with the earliest time, nothing is force-selected, also after a restart", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(failure(429, { type: "usage_limit_reached", headers: { "retry-after": "7200" } }));
  rig.account("B").script(failure(429, { type: "usage_limit_reached", headers: { "retry-after": "3600" } }));
  const answer = await rig.responses();
  assertEquals(answer.status, 429);
  assertEquals(answer.headers.get("retry-after"), "3600");
  const body = await answer.json();
  assertEquals(body.error.type, "usage_limit_reached");
  assertEquals(body.error.code, "rate_limited");
  await rig.restart();
  const again = await rig.responses();
  assertEquals(again.status, 429);
  const waitSeconds = Number(again.headers.get("retry-after"));
  assert(waitSeconds <= 3600 && waitSeconds > 3500, `${waitSeconds}`);
  assert((await again.json()).error.message.includes("have exhausted their quota"));
  assertEquals([rig.hits("A"), rig.hits("B")], [1, 1]);
});

Deno.test("a short rate limit is called one where it was just told; a refusal from memory keeps its fixed words", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const limit = { message: "Rate limit reached, slow down", headers: { "retry-after": "45" } };
  rig.account("A").script(failure(429, { code: "rate_limit_exceeded", ...limit }));
  const { error } = await (await rig.responses()).json();
  assertEquals(error.message, "All accounts are rate limited; try again in 45s");
  // Codex shows a time for this type alone.
  assertEquals([error.type, error.resets_in_seconds], ["usage_limit_reached", 45]);
  const again = await (await rig.responses()).json();
  assert(again.error.message.startsWith("All accounts have exhausted their quota (cached quota state, "));
  assertEquals(rig.hits("A"), 1);
});

Deno.test("a stream that fails before its first output is served by the next account, as one clean stream", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(stream([created("resp_a"), inProgress("resp_a"), failed("server_error")]));
  rig.account("B").script(
    stream([created("resp_b"), delta("hello"), itemDone("hello"), completed("resp_b")]),
  );
  const answer = await rig.responses({ stream: true });
  assertEquals(answer.status, 200);
  const text = await answer.text();
  assert(!text.includes("resp_a"));
  assertEquals(text.match(/response\.created/g)?.length, 2);
  assertEquals(rig.hits("A"), 1);
  assertEquals(rig.hits("B"), 1);
});

Deno.test("the stream of the serving account reaches the client byte for byte", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const bytes =
    ': hello\n\nevent: response.created\ndata: {"type":"response.created","response":{"id":"r1"}}\n\n' +
    'event: response.output_text.delta\r\ndata: {"type":"response.output_text.delta","delta":"é北🚀"}\r\n\r\n' +
    'id: 7\nevent: response.completed\ndata: {"type":"response.completed","response":{"id":"r1","output":[]}}\n\n';
  rig.account("A").script(raw(200, bytes, { "content-type": "text/event-stream" }));
  const answer = await rig.responses({ stream: true });
  assertEquals(await answer.text(), bytes);
});

Deno.test("a failure after the first output is passed on, and nothing is replayed", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(stream([created(), delta("Hel"), delta("lo"), failed("server_error")]));
  const answer = await rig.responses({ stream: true });
  assertEquals(answer.status, 200);
  const text = await answer.text();
  assert(text.includes('"Hel"') && text.includes('"lo"'));
  assert(text.trimEnd().split("\n\n").at(-1)!.includes("response.failed"));
  assertEquals(rig.hits("B"), 0);
});

Deno.test("a stream cut after its first output ends with a failure in the client's own protocol", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(stream([created("resp_cut"), delta("Hel"), rst()]));
  const answer = await rig.responses({ stream: true });
  const last = (await answer.text()).trimEnd().split("\n\n").at(-1)!;
  assert(last.startsWith("event: response.failed"), last);
  assert(last.includes("resp_cut"));
  assertEquals(rig.hits("B"), 0);
});

Deno.test("an empty stream was no answer: the next account serves; alone it is 502", async () => {
  await using rig = await startRig({ accounts: ["A", "B"], config: { "request-retry": 0 } });
  rig.account("A").script(stream([fin()]));
  rig.account("B").script(ok("B"), stream([fin()]));
  const answer = await rig.responses({ stream: true });
  assertEquals(answer.status, 200);
  assert((await answer.text()).includes('"B"'));
  await rig.pass(1);
  const alone = await rig.responses({ stream: true });
  assertEquals(alone.status, 502);
  assertEquals((await alone.json()).error.code, "upstream_unavailable");
});

Deno.test("a request at fault stops at once, with the upstream's own answer, and cools nobody", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(
    failure(400, { code: "invalid_value", type: "invalid_request_error", message: "Bad image" }),
  ).otherwise(ok("A"));
  rig.account("B").otherwise(ok("B"));
  const answer = await rig.responses();
  assertEquals(answer.status, 400);
  assertEquals((await answer.json()).error.message, "Bad image");
  const listing = await (await rig.admin("accounts")).json();
  assertEquals(listing.accounts.map(({ state }: { state: string }) => state), ["healthy", "healthy"]);
});

Deno.test("context too long inside a held stream: status 200, what was held, the failure, for Codex to act on", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(stream([created("resp_ctx"), failed("context_length_exceeded")]));
  const answer = await rig.responses({ stream: true });
  assertEquals(answer.status, 200);
  const text = await answer.text();
  assert(text.includes("response.created") && text.includes("context_length_exceeded"));
  assertEquals(rig.hits("B"), 0);
});

Deno.test("a model one account lacks is served by another; when all lack it: 404 without further calls", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  const lacks = failure(404, { code: "model_not_found", message: "no such model" });
  rig.account("A").script(lacks);
  rig.account("B").script(ok("B"), lacks);
  const served = await rig.responses();
  assertEquals([served.status, (await served.json()).status], [200, "completed"]);
  const gone = await rig.responses();
  assertEquals(gone.status, 404);
  assertEquals((await gone.json()).error.code, "model_not_found");
  assertEquals((await (await rig.responses()).json()).error.code, "model_not_found");
  assertEquals([rig.hits("A"), rig.hits("B")], [1, 2]);
});

Deno.test("one account, one 503: the client waits it out and is served", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(failure(503, { code: "server_is_overloaded" }), ok("A"));
  const answer = await rig.responses();
  assertEquals([answer.status, (await answer.json()).status], [200, "completed"]);
  const decision = await rig.lastDecision();
  assertEquals(decision.rounds, 2);
  const waitedMs = decision.waits.reduce((sum, wait) => sum + wait.untilMs - wait.fromMs, 0);
  assert(waitedMs >= 2_000 && waitedMs <= 4_000, `${waitedMs}`);
});
