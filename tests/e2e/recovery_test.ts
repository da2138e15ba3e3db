/** Failed streams made again, unseen by the client (state-machine-facts 2D, rows 18 to 42), over real sockets. */
import { assert, assertEquals } from "@std/assert";
import {
  completed,
  created,
  delta,
  error,
  failed,
  failure,
  fin,
  gate,
  hangUp,
  hold,
  incomplete,
  inProgress,
  itemDone,
  ok,
  raw,
  type Reply,
  reset,
  rst,
  type Step,
  stream,
  text,
  tokens,
} from "../../lib/demo/simulated_replies.ts";
import { eventually } from "../support/eventually.ts";
import { LONG_INPUT, VERY_LONG_INPUT } from "../support/long_input.ts";
import {
  decisionOf,
  isIdle,
  launchesOf,
  newGate,
  recoveryNotes,
  startRecoveryRig,
  wireText,
} from "../support/recovery_rig.ts";

const LOST = [created("resp_lost"), delta("lost")];
const WON = [created("resp_won"), delta("won"), itemDone("won"), completed("resp_won")];

/** The status, with the body read and let go. */
async function statusOf(answering: Promise<Response>): Promise<number> {
  const answer = await answering;
  await answer.text();
  return answer.status;
}

const eligible: readonly { name: string; reply: Reply }[] = [
  { name: "HTTP 408", reply: failure(408) },
  { name: "HTTP 500", reply: failure(500) },
  { name: "HTTP 502", reply: failure(502) },
  { name: "HTTP 503", reply: failure(503) },
  { name: "HTTP 504", reply: failure(504) },
  { name: "HTTP 529", reply: failure(529, { type: "overloaded_error" }) },
  { name: "HTTP 503 with a short Retry-After", reply: failure(503, { headers: { "retry-after": "2" } }) },
  { name: "a connection that closes before its head", reply: hangUp() },
  { name: "a connection that is reset inside its head", reply: reset("HTTP/1.1 200 OK\r\n") },
  { name: "a failure event after output", reply: stream([...LOST, failed("server_error")]) },
  { name: "a nested error event", reply: stream([...LOST, error("server_is_overloaded")]) },
  { name: "a failure event at once", reply: stream([failed("server_error")]) },
  { name: "a reset after output", reply: stream([...LOST, rst()]) },
  { name: "a close in the middle of the body", reply: stream([...LOST, fin()]) },
  { name: "a clean end without a terminal", reply: stream(LOST) },
  { name: "a stream without any event", reply: stream([]) },
  { name: "data that is no JSON", reply: stream([...LOST, text("data: {broken\n\n")]) },
  { name: "a page instead of a stream", reply: raw(200, "<html></html>", { "content-type": "text/html" }) },
];
for (const c of eligible) {
  Deno.test(`recovery makes a stream again on the same account, and nothing of the lost one shows: ${c.name}`, async () => {
    await using rig = await startRecoveryRig(["A", "B"]);
    rig.account("A").script(c.reply, stream(WON));
    const answer = await rig.responses({ stream: true });
    assertEquals([answer.status, await rig.until(answer.text())], [200, wireText(WON)]);
    const decision = await decisionOf(rig);
    assertEquals(launchesOf(decision), ["A first", "A recovery"]);
    assertEquals([decision.status, decision.code, recoveryNotes(decision)], [200, null, ["recovered"]]);
    // Neither a cooldown nor a strike was booked for what nobody saw (P21).
    assertEquals((await rig.accountState("A")).state, "healthy");
    assertEquals(rig.app.pool.describeProviders(rig.clock.now())[0]!.strikes, 0);
    assert(isIdle(rig));
  });
}

const never: readonly { name: string; reply: Reply; status: number; code: string }[] = [
  { name: "400", reply: failure(400, { code: "invalid_value" }), status: 400, code: "invalid_value" },
  { name: "413", reply: failure(413, { code: "too_large" }), status: 413, code: "too_large" },
  { name: "422", reply: failure(422, { code: "invalid_value" }), status: 422, code: "invalid_value" },
  { name: "404", reply: failure(404, { code: "not_here" }), status: 404, code: "not_here" },
  { name: "a 403 of policy", reply: failure(403, { code: "policy" }), status: 403, code: "policy" },
  {
    name: "429",
    reply: failure(429, { type: "usage_limit_reached", headers: { "retry-after": "7200" } }),
    status: 429,
    code: "rate_limited",
  },
  {
    name: "a 429 told inside the stream, after output",
    reply: stream([...LOST, failed("usage_limit_reached", "limit", { resets_in_seconds: 7200 })]),
    status: 429,
    code: "rate_limited",
  },
  {
    name: "503 whose own minimum lies past the window",
    reply: failure(503, { headers: { "retry-after": "7200" } }),
    status: 502,
    code: "upstream_unavailable",
  },
  { name: "402", reply: failure(402, { code: "billing" }), status: 503, code: "auth_unavailable" },
];
for (const c of never) {
  Deno.test(`recovery leaves alone what another attempt cannot mend: ${c.name}`, async () => {
    await using rig = await startRecoveryRig(["A"], {}, { "request-retry": 0 });
    rig.account("A").script(c.reply);
    const answer = await rig.responses({ stream: true });
    assertEquals([answer.status, (await answer.json()).error.code], [c.status, c.code]);
    assertEquals(rig.hits("A"), 1);
    assertEquals(recoveryNotes(await decisionOf(rig)), []);
    assert(isIdle(rig));
  });
}

Deno.test("an answer that ends as incomplete is an answer, and no failure to recover from", async () => {
  await using rig = await startRecoveryRig(["A"]);
  const steps = [...LOST, incomplete("max_output_tokens")];
  rig.account("A").script(stream(steps));
  assertEquals(await (await rig.responses({ stream: true })).text(), wireText(steps));
  assertEquals(launchesOf(await decisionOf(rig)), ["A first"]);
});

Deno.test("the winner's headers alone reach the client, and its chunks in order, once", async () => {
  await using rig = await startRecoveryRig(["A"]);
  rig.account("A").script(
    stream([...LOST, failed("server_error")], { "x-lost": "1", "openai-model": "lost" }),
    stream(WON, { "openai-model": "won" }),
  );
  const answer = await rig.responses({ stream: true });
  assertEquals([answer.headers.get("x-lost"), answer.headers.get("openai-model")], [null, "won"]);
  assertEquals(await answer.text(), wireText(WON));
});

Deno.test("two losing attempts, then one clean answer", async () => {
  await using rig = await startRecoveryRig(["A", "B"]);
  rig.account("A").script(stream([...LOST, rst()]), stream([...LOST, failed("server_error")]), stream(WON));
  assertEquals(await (await rig.responses({ stream: true })).text(), wireText(WON));
  const decision = await decisionOf(rig);
  assertEquals(launchesOf(decision), ["A first", "A recovery", "A recovery"]);
  const waits = decision.waits.map(({ reason, fromMs, untilMs }) => [reason, untilMs - fromMs] as const);
  assert(waits.every(([reason, ms]) => reason === "recovery_backoff" && ms <= 500), JSON.stringify(waits));
});

Deno.test("nothing of an answer is with the client before its terminal, and no keep-alive either (C23)", async () => {
  await using rig = await startRecoveryRig(["A"], {}, { streaming: { "keepalive-seconds": 1 } });
  const terminal = newGate();
  rig.account("A").script(stream([...WON.slice(0, -1), gate(terminal.opened), WON.at(-1)!]));
  let answered = false;
  const answering = rig.responses({ stream: true }).then((answer) => {
    answered = true;
    return answer;
  });
  await rig.eventually(() => rig.app.recoverySlots.figures.heldBytes === wireText(WON.slice(0, -1)).length);
  for (let second = 0; second < 60; second++) await rig.clock.advance(1_000);
  assertEquals(answered, false);
  terminal.open();
  assertEquals(await (await answering).text(), wireText(WON));
});

Deno.test("a 401 inside recovery is one refresh within the same budget", async () => {
  await using rig = await startRecoveryRig(["A"]);
  rig.account("A").script(stream([...LOST, rst()]), failure(401, { code: "token_expired" }));
  rig.provider.account("SENT-ref-A").tokens.script(tokens({ access_token: "SENT-tok-A2", expires_in: 3600 }));
  rig.provider.account("SENT-tok-A2").script(stream([...LOST, failed("server_error")]), stream(WON));
  assertEquals(await (await rig.responses({ stream: true })).text(), wireText(WON));
  assertEquals(launchesOf(await decisionOf(rig)), ["A first", "A recovery", "A repair", "A recovery"]);
});

Deno.test("spent attempts: the last failure is booked once, and the next account serves", async () => {
  await using rig = await startRecoveryRig(["A", "B"]);
  rig.account("A").script(...Array.from({ length: 3 }, () => stream([...LOST, failed("server_error")])));
  rig.account("B").script(stream(WON));
  assertEquals(await (await rig.responses({ stream: true })).text(), wireText(WON));
  const decision = await decisionOf(rig);
  assertEquals(launchesOf(decision), ["A first", "A recovery", "A recovery", "B failover"]);
  assertEquals(recoveryNotes(decision), ["recovery_exhausted"]);
  assertEquals((await rig.accountState("A")).state, "cooling");
  // One failure on the ladder, not three: its first step is over within four seconds.
  await rig.pass(4_001);
  assertEquals((await rig.accountState("A")).state, "healthy");
});

Deno.test("the budget travels over accounts: what one spent, the next does not have", async () => {
  await using rig = await startRecoveryRig(["A", "B", "C"]);
  const limited = failure(429, { type: "usage_limit_reached", headers: { "retry-after": "3600" } });
  rig.account("A").script(stream([...LOST, rst()]), limited);
  rig.account("B").script(stream([...LOST, rst()]), stream([...LOST, rst()]));
  rig.account("C").script(stream(WON));
  assertEquals(await (await rig.responses({ stream: true })).text(), wireText(WON));
  assertEquals(launchesOf(await decisionOf(rig)), [
    "A first",
    "A recovery",
    "B failover",
    "B recovery",
    "C failover",
  ]);
});

Deno.test("nobody left: the client gets our JSON error and not one byte of a stream", async () => {
  await using rig = await startRecoveryRig(["A"], {}, { "request-retry": 0 });
  rig.account("A").script(...Array.from({ length: 3 }, () => stream([...LOST, failed("server_error")])));
  const answer = await rig.responses({ stream: true });
  assertEquals([answer.status, answer.headers.get("content-type")], [502, "application/json"]);
  const body = await answer.text();
  assertEquals(JSON.parse(body).error.code, "upstream_unavailable");
  assert(!body.includes("resp_lost") && !body.includes("event:"));
});

Deno.test("incomplete to the end: 408, nobody rests, no other account is asked (row 40)", async () => {
  await using rig = await startRecoveryRig(["A", "B"], { attempts: 1 });
  rig.account("A").script(stream(LOST), stream(LOST));
  const answer = await rig.responses({ stream: true });
  assertEquals([answer.status, (await answer.json()).error.code], [408, "stream_incomplete"]);
  assertEquals([rig.hits("A"), rig.hits("B")], [2, 0]);
  assertEquals((await rig.accountState("A")).state, "healthy");
  assertEquals(recoveryNotes(await decisionOf(rig)), ["recovery_exhausted"]);
});

const faults: readonly { name: string; steps: readonly Step[] }[] = [
  { name: "at once", steps: [created("resp_ctx"), failed("context_length_exceeded")] },
  { name: "after output", steps: [created("resp_ctx"), delta("a"), delta("b"), failed("invalid_prompt")] },
];
for (const c of faults) {
  Deno.test(`a failure of the request itself is released as it came, ${c.name}: status 200, all of it, nothing more`, async () => {
    await using rig = await startRecoveryRig(["A", "B"]);
    rig.account("A").script(stream(c.steps));
    const answer = await rig.responses({ stream: true });
    assertEquals([answer.status, await answer.text()], [200, wireText(c.steps)]);
    assertEquals([rig.hits("A"), rig.hits("B")], [1, 0]);
    await rig.eventually(() => isIdle(rig));
    assertEquals((await rig.accountState("A")).state, "healthy");
  });
}

Deno.test("a failure of the request itself, met by a relaunch, is that attempt's alone", async () => {
  await using rig = await startRecoveryRig(["A"]);
  const steps = [created("resp_ctx"), failed("context_length_exceeded")];
  rig.account("A").script(stream([...LOST, rst()]), stream(steps));
  assertEquals(await (await rig.responses({ stream: true })).text(), wireText(steps));
});

Deno.test("no relaunch starts after the window, however many attempts are left", async () => {
  await using rig = await startRecoveryRig(["A", "B"], { attempts: 5, "max-retry-window-seconds": 20 });
  const end = newGate();
  rig.account("A").script(stream([...LOST, gate(end.opened), failed("server_error")]));
  rig.account("B").script(stream(WON));
  const answering = rig.responses({ stream: true });
  await rig.until(rig.provider.hitCount(1));
  await rig.pass(20_001);
  end.open();
  assertEquals(await (await answering).text(), wireText(WON));
  const decision = await decisionOf(rig);
  assertEquals(launchesOf(decision), ["A first", "B failover"]);
  assertEquals(recoveryNotes(decision), ["recovery_exhausted"]);
});

Deno.test("the window stops no attempt that is running: a slow healthy stream completes (B077)", async () => {
  await using rig = await startRecoveryRig(["A"], { "max-retry-window-seconds": 20 });
  const end = newGate();
  rig.account("A").script(stream([...WON.slice(0, 1), gate(end.opened), ...WON.slice(1)]));
  const answering = rig.responses({ stream: true });
  await rig.eventually(() => rig.app.recoverySlots.figures.heldBytes > 0);
  for (let step = 0; step < 100; step++) await rig.clock.advance(1_000);
  end.open();
  assertEquals(await (await answering).text(), wireText(WON));
  assertEquals(rig.hits("A"), 1);
});

Deno.test("a stream that hangs after its first events is given up at the idle limit and not asked again there", async () => {
  await using rig = await startRecoveryRig(["A", "B"], {}, { timeouts: { "idle-seconds": 30 } });
  rig.account("A").script(stream([...LOST, hold()]));
  rig.account("B").script(stream(WON));
  const answering = rig.responses({ stream: true });
  await rig.eventually(() => rig.app.recoverySlots.figures.heldBytes > 0);
  await rig.clock.advance(29_000);
  assertEquals(rig.hits("B"), 0);
  assertEquals(await (await rig.until(answering)).text(), wireText(WON));
  assertEquals(launchesOf(await decisionOf(rig)), ["A first", "B failover"]);
});

Deno.test("an attempt that probes is withheld like any other, but not made again (B037, C28)", async () => {
  await using rig = await startRecoveryRig(["A"], { attempts: 1 }, { "request-retry": 0 });
  // Two requests that fail for good open the provider's cooldown.
  for (let request = 1; request <= 2; request++) {
    rig.account("A").script(failure(503), failure(503));
    assertEquals(await statusOf(rig.responses({ stream: true })), 502);
    await rig.pass(10_000);
  }
  await rig.pass(120_000);
  rig.account("A").script(stream([created("resp_lost"), failed("server_error")]));
  const failing = await rig.responses({ stream: true });
  assertEquals([failing.status, (await failing.json()).error.code], [502, "upstream_unavailable"]);
  const failedProbe = await decisionOf(rig, 3);
  assertEquals(failedProbe.attempts.map(({ cause, probe }) => [cause, probe]), [["first", "provider"]]);
  await rig.pass(120_000);
  const [output, terminal] = [newGate(), newGate()];
  rig.account("A").script(
    stream([WON[0]!, gate(output.opened), ...WON.slice(1, -1), gate(terminal.opened), WON.at(-1)!]),
  );
  const answering = rig.responses({ stream: true });
  const probeOf = () => rig.app.pool.describeProviders(rig.clock.now())[0]!.probe.state === "leased";
  await rig.eventually(() => rig.app.recoverySlots.figures.heldBytes > 0);
  assertEquals(probeOf(), true);
  output.open();
  // The first output opens the gate for everybody, long before the terminal (C26).
  await rig.eventually(() => !probeOf());
  assert(rig.app.recoverySlots.figures.heldBytes > 0);
  terminal.open();
  assertEquals(await (await answering).text(), wireText(WON));
});

Deno.test("a once-only request is sent once, whatever becomes of it, and takes no slot", async () => {
  await using rig = await startRecoveryRig(["A"]);
  rig.account("A").script(
    failure(503, { code: "busy" }),
    stream([...LOST.slice(0, 1), failed("server_error")]),
  );
  const apps = await rig.call("/backend-api/wham/apps", { a: 1 });
  assertEquals([apps.status, (await apps.json()).error.code], [503, "busy"]);
  await rig.pass(10_000);
  // A body of unknown length may not be sent again either.
  const chunked = new Blob([JSON.stringify({ model: "m1", input: "hi", stream: true })]).stream();
  const answer = await rig.call("/v1/responses", null, { body: chunked });
  await answer.body?.cancel();
  assertEquals(rig.hits("A"), 2);
  assertEquals(rig.app.recoverySlots.figures.heldMs, 0);
});

Deno.test("a client that leaves while its stream is withheld ends everything, and cools nobody (P11)", async () => {
  await using rig = await startRecoveryRig(["A", "B"]);
  rig.account("A").script(stream([...LOST, hold()]));
  const leave = new AbortController();
  const answering = rig.responses({ stream: true, input: VERY_LONG_INPUT }, { signal: leave.signal }).catch(
    () => null,
  );
  await rig.eventually(() => rig.app.recoverySlots.figures.heldBytes > 0);
  leave.abort();
  await answering;
  await rig.until(rig.provider.hits[0]!.left);
  const decision = await decisionOf(rig);
  assertEquals([decision.status, decision.code, launchesOf(decision)], [0, "client_gone", ["A first"]]);
  await rig.pass(60_000);
  assertEquals([rig.hits("A"), rig.hits("B"), isIdle(rig)], [1, 0, true]);
  assertEquals((await rig.accountState("A")).state, "healthy");
});

Deno.test("a client that leaves during the back-off is followed by no launch (P11)", async () => {
  await using rig = await startRecoveryRig(["A", "B"], {
    "initial-backoff-milliseconds": 30_000,
    "max-backoff-milliseconds": 30_000,
  });
  rig.account("A").script(stream([...LOST, rst()]));
  const leave = new AbortController();
  const answering = rig.responses({ stream: true, input: LONG_INPUT }, { signal: leave.signal }).catch(() =>
    null
  );
  await rig.until(rig.provider.hitCount(1));
  await rig.until(rig.provider.hits[0]!.left);
  await rig.clock.advance(100);
  leave.abort();
  await answering;
  // The clock stands still: the back-off must not run out before the leaving is noticed.
  await eventually(() => rig.app.decisions.latest(1).length > 0);
  await rig.pass(60_000);
  const decision = await rig.lastDecision();
  assertEquals([decision.status, rig.hits("B"), isIdle(rig)], [0, 0, true]);
  assertEquals((await rig.accountState("A")).state, "healthy");
});

Deno.test("figures, notes and management tell what recovery did", async () => {
  await using rig = await startRecoveryRig(["A"], {}, { "request-retry": 0 });
  rig.account("A").script(stream([...LOST, rst()]), stream(WON));
  await (await rig.responses({ stream: true })).text();
  await decisionOf(rig, 1);
  rig.account("A").script(...Array.from({ length: 3 }, () => stream([...LOST, rst()])));
  await (await rig.responses({ stream: true })).text();
  await decisionOf(rig, 2);
  const { recovered, exhausted, withheldBytes, heldBytesPeak, heldMs } = rig.app.recoverySlots.figures;
  const [lost, won] = [wireText(LOST).length, wireText(WON).length];
  assertEquals([recovered, exhausted], [1, 1]);
  assertEquals([withheldBytes, heldBytesPeak], [4 * lost + won, won]);
  assert(heldMs > 0);
  const { requests } = await (await rig.admin("requests?limit=2")).json();
  assertEquals(
    requests.map(({ notes }: { notes: string[] }) => notes.filter((note) => /recover/.test(note))),
    [
      ["recovery_exhausted"],
      ["recovered"],
    ],
  );
});

Deno.test("all six keys are taken over at run time", async () => {
  await using rig = await startRecoveryRig(["A"], { attempts: 0 }, { "request-retry": 0 });
  const reload = async (keys: Record<string, number>) => {
    rig.reconfigure({ "request-retry": 0, streaming: { recovery: keys } });
    assertEquals(await rig.app.reload(rig.config()), []);
  };
  const lost = stream([created("resp_lost"), failed("server_error")]);
  const ask = async (...replies: Reply[]) => {
    rig.account("A").script(...replies);
    const answer = await rig.responses({ stream: true });
    await answer.text();
    const decision = await decisionOf(rig, ++requests);
    await rig.pass(120_000);
    return { status: answer.status, decision };
  };
  let requests = 0;
  const base = { attempts: 3, "max-retry-window-seconds": 3_600 };
  assertEquals((await ask(lost)).status, 502);
  await reload(base);
  assertEquals(launchesOf((await ask(lost, lost, lost, stream(WON))).decision).length, 4);
  await reload({ ...base, "max-buffer-bytes": 10 });
  assertEquals(recoveryNotes((await ask(stream(WON))).decision), ["failed_open:overflow"]);
  await reload({ ...base, "initial-backoff-milliseconds": 30_000, "max-backoff-milliseconds": 30_000 });
  const slow = (await ask(lost, lost, stream(WON))).decision.waits.map(({ fromMs, untilMs }) =>
    untilMs - fromMs
  );
  assert(Math.max(...slow) > 2_000, `${slow}`);
  await reload({ ...base, "max-concurrent": 1 });
  const end = newGate();
  rig.account("A").script(stream([...WON.slice(0, 1), gate(end.opened), ...WON.slice(1)]), stream(WON));
  const first = rig.responses({ stream: true });
  await rig.until(rig.provider.hitCount(rig.provider.hits.length + 1));
  await (await rig.responses({ stream: true })).text();
  assertEquals(recoveryNotes(await decisionOf(rig, ++requests)), ["failed_open:no_slot"]);
  end.open();
  await (await first).text();
  await decisionOf(rig, ++requests);
  await reload({ ...base, "max-retry-window-seconds": 1 });
  const late = newGate();
  rig.account("A").script(stream([...LOST, gate(late.opened), failed("server_error")]));
  const lateAnswer = rig.responses({ stream: true });
  await rig.until(rig.provider.hitCount(rig.provider.hits.length + 1));
  await rig.pass(1_001);
  late.open();
  assertEquals(await statusOf(lateAnswer), 502);
  await reload({ attempts: 0 });
  await rig.pass(120_000);
  assertEquals((await ask(lost)).status, 502);
});

Deno.test("inProgress and created are withheld like everything else", async () => {
  await using rig = await startRecoveryRig(["A"]);
  rig.account("A").script(
    stream([created("resp_lost"), inProgress("resp_lost"), failed("server_error")]),
    ok("won"),
  );
  const answer = await (await rig.responses({ stream: true })).text();
  assertEquals(answer.match(/event: response\.created/g)?.length, 1);
});
