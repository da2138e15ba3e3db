/** After the upgrade: what passes, what is booked, and that nothing is ever sent twice. */
import { assert, assertEquals } from "@std/assert";
import {
  accept,
  close,
  completed,
  created,
  delay,
  delta,
  error,
  errorFrame,
  event,
  failed,
  gate,
  ok,
  ping,
  receive,
  responsesTurn,
  rst,
  type Step,
} from "../../lib/demo/simulated_replies.ts";
import { LONG_HEADER, LONG_INPUT, VERY_LONG_INPUT } from "../support/long_input.ts";
import { openRigSocket } from "../support/rig_sockets.ts";
import { type Rig, startRig } from "../support/rig.ts";

const MIB = 1_048_576;

const state = async (rig: Rig, name: string) => (await rig.accountState(name)).state;
const webSocketHits = (rig: Rig) => rig.provider.hits.filter(({ lane }) => lane === "websocket").length;

Deno.test("B096 the upstream dies right after the first frame: one upstream connection, one 1011, nothing replayed", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.provider.anyone.websocket.otherwise(accept([receive(), rst()]));
  await using client = await openRigSocket(rig);
  client.create();
  assertEquals(await rig.until(client.closed), { code: 1011, reason: "" });
  assertEquals([webSocketHits(rig), client.frames], [1, []]);
  await rig.eventually(() => rig.app.decisions.latest(1)[0]?.status === 101);
  const decision = await rig.lastDecision();
  assertEquals([decision.code, decision.attempts.length], ["socket_closed", 1]);
  assertEquals([await state(rig, "A"), await state(rig, "B")], ["healthy", "healthy"], "row 48");
});

Deno.test("B097 the last frame and the close arrive together: the frame, then close 1000, 200 times", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.otherwise(accept([receive(), completed(), close(1000, "done")]));
  const run = async () => {
    await using client = await openRigSocket(rig);
    client.create();
    assertEquals(await rig.until(client.closed), { code: 1000, reason: "done" });
    assertEquals(client.frames.length, 1);
  };
  for (let batch = 0; batch < 10; batch++) await Promise.all(Array.from({ length: 20 }, run));
  await rig.eventually(() => rig.app.decisions.latest(500).length === 200);
  assert(rig.app.decisions.latest(500).every(({ status, code }) => status === 101 && code === null));
  assert(!/"level":"(error|warn)"/.test(await rig.readLog()));
});

Deno.test("B097 the upstream closes while the client sends a large frame: the close is passed on", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.otherwise(accept([receive(), close(1012, "restart")]));
  for (let run = 0; run < 20; run++) {
    await using client = await openRigSocket(rig);
    client.create();
    client.send("x".repeat(MIB));
    client.send("x".repeat(MIB));
    assertEquals(await rig.until(client.closed), { code: 1012, reason: "restart" });
  }
});

const closes = [
  { name: "1000 with a reason", step: close(1000, "bye"), want: { code: 1000, reason: "bye" } },
  { name: "1001", step: close(1001), want: { code: 1001, reason: "" } },
  { name: "1009", step: close(1009, "too big"), want: { code: 1009, reason: "too big" } },
  { name: "1011", step: close(1011), want: { code: 1011, reason: "" } },
  { name: "an application's", step: close(4321, "é"), want: { code: 4321, reason: "é" } },
];
for (const { name, step, want } of closes) {
  Deno.test(`the upstream's close reaches the client as it was: ${name}; nobody is blamed`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").websocket.script(accept([receive(), created(), step]));
    await using client = await openRigSocket(rig);
    client.create();
    assertEquals(await rig.until(client.closed), want);
    assertEquals(await state(rig, "A"), "healthy");
  });
}

Deno.test("B092 a close on an idle socket is passed on when it comes; the next turn is never written", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.script(accept([receive(), ...responsesTurn("one"), close(1011, "idle")]));
  await using client = await openRigSocket(rig);
  client.create();
  assertEquals(await rig.until(client.closed), { code: 1011, reason: "idle" });
  assertEquals(rig.provider.hits[0]!.frames.length, 1);
});

Deno.test("B093 a client that vanishes, half-closes or resets frees its upstream at once, 30 times", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.otherwise(accept([receive(), created()]));
  const ways = ["destroy", "resetAndDestroy", "end"] as const;
  for (let run = 0; run < 30; run++) {
    await using client = await openRigSocket(rig, { headers: LONG_HEADER });
    // A second turn before the first has ended, as in B164.
    client.create({ instructions: LONG_INPUT });
    client.create({ instructions: VERY_LONG_INPUT });
    await client.next();
    client.tcp[ways[run % 3]!]();
    const hit = rig.provider.hits[run]!;
    await rig.until(hit.left);
    assertEquals(hit.signals.filter((signal) => signal.startsWith("close")), ["close 1001 "]);
  }
  await rig.eventually(() => rig.app.decisions.latest(100).length === 30);
  assertEquals((await rig.accountState("A")).in_flight, 0);
  assertEquals(rig.provider.openConnections, 0);
  assertEquals(await state(rig, "A"), "healthy");
});

Deno.test("B091 a turn that is silent for minutes completes; the upstream is pinged meanwhile", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const opened = Promise.withResolvers<void>();
  rig.account("A").websocket.script(accept([receive(), created(), gate(opened.promise), completed()]));
  await using client = await openRigSocket(rig);
  client.create();
  await client.next();
  const hit = rig.provider.hits[0]!;
  for (let minute = 0; minute < 6; minute++) {
    await rig.clock.advance(25_000);
    await rig.eventually(() => hit.signals.filter((signal) => signal.startsWith("ping")).length > minute);
    // The client is pinged as well; behind its own ping its answer has come, before more time passes.
    client.socket.ping(`minute ${minute}`);
    await rig.eventually(() => client.pongs.includes(`minute ${minute}`));
  }
  opened.resolve();
  assertEquals(await client.until("response.completed"), ["response.completed"]);
});

Deno.test("B091 a ping of either side is answered at once with the same payload", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.script(accept([ping("up-1"), receive(), completed()]));
  await using client = await openRigSocket(rig);
  client.socket.ping("down-1");
  await rig.eventually(() => client.pongs.length === 1 && rig.provider.hits[0]!.signals.length === 1);
  assertEquals([client.pongs, rig.provider.hits[0]!.signals], [["down-1"], ["pong up-1"]]);
});

Deno.test("B092 an upstream that stopped reading gives the client 1011 within two ping periods", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.script(accept([receive(), { kind: "deaf" }]));
  await using client = await openRigSocket(rig);
  client.create();
  await rig.eventually(() => rig.provider.hits[0]!.frames.length === 1);
  const beganMs = rig.clock.now();
  const closed = await rig.until(client.closed);
  assertEquals(closed.code, 1011);
  const tookMs = rig.clock.now() - beganMs;
  assert(tookMs <= 60_000, `${tookMs}`);
  assertEquals((await rig.accountState("A")).in_flight, 0);
});

for (const direction of ["client to upstream", "upstream to client"] as const) {
  Deno.test(`B099 12 MiB in one message pass whole, ${direction}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    const text = JSON.stringify({ type: "response.create", model: "m1", filler: "é".repeat(6 * MIB) });
    const up = direction === "client to upstream";
    const steps: Step[] = up ? [receive(), completed()] : [receive(), event(null, text), completed()];
    rig.account("A").websocket.script(accept(steps));
    await using client = await openRigSocket(rig);
    client.send(up ? text : "go");
    const seen = await rig.until(client.next());
    if (up) assertEquals(rig.provider.hits[0]!.frames[0] === text, true);
    else assertEquals(seen === text, true);
  });
}

Deno.test("frames arriving right behind the 101 come first, in order; binary frames pass as they are", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const early = Array.from({ length: 50 }, (_, index) => event(null, `early ${index}`));
  const bytes = new Uint8Array([0, 1, 254, 255]);
  rig.account("A").websocket.script(accept([...early, { kind: "bytes", bytes }, receive()]));
  await using client = await openRigSocket(rig);
  const sent = new Uint8Array([9, 8]);
  client.send(sent);
  for (let index = 0; index < 50; index++) assertEquals(await client.next(), `early ${index}`);
  assertEquals(await client.next(), bytes);
  await rig.eventually(() => rig.provider.hits[0]!.frames.length === 1);
  assertEquals(rig.provider.hits[0]!.frames, [sent]);
});

// ---------------------------------------------------------------- what frames do to the account

const books: { name: string; steps: Step[]; state: string; persisted?: boolean }[] = [
  { name: "a good turn", steps: responsesTurn("x"), state: "healthy" },
  {
    name: "429 with a stated time",
    steps: [errorFrame(429, { error: { type: "usage_limit_reached", resets_in_seconds: 3_600 } })],
    state: "cooling",
    persisted: true,
  },
  {
    name: "429 whose time is in the frame's headers",
    steps: [
      errorFrame(429, {
        error: { type: "usage_limit_reached", message: "The usage limit has been reached" },
        headers: { "X-Codex-Primary-Used-Percent": 100, "X-Codex-Primary-Reset-At": 1_800_009_000 },
      }),
    ],
    state: "cooling",
    persisted: true,
  },
  { name: "an overload", steps: [error("server_is_overloaded")], state: "cooling" },
  { name: "response.failed", steps: [created(), failed("server_error")], state: "cooling" },
  { name: "the 60 minutes of a socket", steps: [errorFrame(400, LIMIT_REACHED())], state: "healthy" },
  { name: "a context too long", steps: [created(), failed("context_length_exceeded")], state: "healthy" },
  {
    name: "a request at fault",
    steps: [errorFrame(400, { error: { type: "invalid_request_error" } })],
    state: "healthy",
  },
  {
    name: "a model the account lacks",
    steps: [errorFrame(400, {
      error: {
        type: "invalid_request_error",
        message: "The 'm1' model is not supported when using Codex with a ChatGPT account.",
      },
    })],
    state: "healthy",
  },
];
for (const { name, steps, state: want, persisted = false } of books) {
  Deno.test(`a turn over a socket is booked on its account: ${name}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").websocket.script(accept([receive(), ...steps, receive()]));
    await using client = await openRigSocket(rig);
    client.create();
    for (const step of steps) if (step.kind === "event") assertEquals(await client.next(), step.data);
    const account = await rig.accountState("A");
    assertEquals([account.state, account.persisted], [want, persisted]);
    assertEquals(webSocketHits(rig), 1);
    if (name.includes("lacks")) assertEquals(account.models_excluded, ["m1"]);
    client.send("next");
  });
}

Deno.test("the key an upstream sends back in a frame or as it closes does not reach the client", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const echo = "authorization: Bearer SENT-tok-A";
  rig.account("A").websocket.script(
    accept([
      receive(),
      created(),
      errorFrame(400, { error: { type: "invalid_request_error", message: echo } }),
      failed("invalid_prompt", echo),
      close(1008, echo),
    ]),
  );
  await using client = await openRigSocket(rig);
  client.create();
  const told = [await client.next(), await client.next(), await client.next()].join();
  const { reason } = await client.closed;
  assertEquals(`${told} ${reason}`.match(/SENT-tok-A/), null, told);
  assertEquals([told.match(/\[redacted\]/g)?.length, reason], [2, "authorization: Bearer [redacted]"]);
});

function LIMIT_REACHED() {
  return {
    error: {
      type: "invalid_request_error",
      code: "websocket_connection_limit_reached",
      message:
        "Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.",
    },
  };
}

Deno.test("an error event and the response.failed behind it are one failure", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.script(
    accept([
      receive(),
      error("server_error"),
      failed("server_error"),
      receive(),
      ...responsesTurn("x"),
      receive(),
    ]),
  );
  await using client = await openRigSocket(rig);
  client.create();
  await client.until("response.failed");
  const { events } = await (await rig.admin("usage/events")).json();
  assertEquals([events.length, events[0].requests, events[0].failures], [1, 1, 1]);
  await rig.clock.advance(1);
  client.create();
  await client.until("response.completed");
  assertEquals(await state(rig, "A"), "healthy", "a success on the same socket ends the rest");
  client.send("end");
});

Deno.test("B070 a quota notice on a socket parks the account for others, and its own turn goes on", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const notice = event("codex.rate_limits", {
    type: "codex.rate_limits",
    rate_limits: {
      primary: { used_percent: 100, window_minutes: 300, reset_at: 1_800_009_000 },
      limit_reached: true,
    },
  });
  rig.account("A").websocket.script(
    accept([receive(), notice, created(), delta("ok"), gate(Promise.resolve()), receive()]),
  );
  await using client = await openRigSocket(rig);
  client.create();
  assertEquals(await client.until("response.output_text.delta"), [
    "codex.rate_limits",
    "response.created",
    "response.output_text.delta",
  ]);
  assertEquals(await state(rig, "A"), "parked");
  client.send("still here");
});

// ---------------------------------------------------------------- models and foreign answers

Deno.test("an alias names the upstream's model in the frame; nothing else of it changes", async () => {
  const models = [{ alias: "fast", provider: "codex", model: "gpt-5.4-mini" }, {
    alias: "other",
    provider: "lab",
    model: "qwen3",
  }];
  const providers = [{
    id: "lab",
    kind: "openai",
    "base-url": "http://127.0.0.1:1/v1",
    models: ["qwen3"],
    accounts: [{ id: "k", "api-key": "none" }],
  }];
  await using rig = await startRig({ accounts: ["A"], config: { models, providers } });
  rig.account("A").websocket.script(ok("x"));
  await using client = await openRigSocket(rig);
  client.send('{ "type":"response.create","model":"fast",  "input":[1e2,"\\u00e9"] }');
  await client.until("response.completed");
  assertEquals(
    rig.provider.hits[0]!.frames,
    ['{ "type":"response.create","model":"gpt-5.4-mini",  "input":[1e2,"\\u00e9"] }'],
  );
  client.create({ model: "other" });
  const refused = await client.json();
  assertEquals([refused.type, refused.status], ["error", 400]);
  assertEquals((refused.error as Record<string, unknown>).code, "model_not_found");
  assertEquals(rig.provider.hits[0]!.frames.length, 1);
});

Deno.test("B095 an answer's id of the account the conversation left is refused here, not asked of the next", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  const reset = { type: "usage_limit_reached", resets_in_seconds: 600 };
  rig.account("A").websocket.script(
    accept([receive(), ...responsesTurn("one"), receive(), errorFrame(429, { error: reset })]),
  );
  rig.account("B").websocket.script(ok("B"));
  const headers = { "session-id": "S" };
  await using first = await openRigSocket(rig, { headers });
  first.create();
  await first.until("response.completed");
  first.create({ previous_response_id: "resp_sim" });
  await first.until("error");
  await first.close();
  await using second = await openRigSocket(rig, { headers });
  second.create({ previous_response_id: "resp_sim" });
  const refused = await second.json();
  assertEquals((refused.error as Record<string, unknown>).code, "previous_response_not_found");
  second.create({ input: ["everything"] });
  await second.until("response.completed");
  second.create({ previous_response_id: "resp_sim", input: ["more"] });
  await second.until("response.completed");
  const frames = rig.provider.hitsOf("SENT-tok-B")[0]!.frames as string[];
  assertEquals(frames.map((frame) => JSON.parse(frame).input), [["everything"], ["more"]]);
  assertEquals(await state(rig, "B"), "healthy");
});

// ---------------------------------------------------------------- stopping

Deno.test("a stop closes an idle socket with 1001 at once, and lets a turn end first", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const opened = Promise.withResolvers<void>();
  rig.account("A").websocket.script(
    accept([receive(), created(), gate(opened.promise), delta("end"), completed(), receive()]),
    accept([receive()]),
  );
  await using busy = await openRigSocket(rig);
  busy.create();
  await busy.next();
  await using idle = await openRigSocket(rig);
  const stopped = rig.app.stop(600_000);
  assertEquals(await rig.until(idle.closed), { code: 1001, reason: "The proxy is shutting down" });
  assertEquals(busy.isClosed, false);
  opened.resolve();
  assertEquals(await rig.until(busy.closed), { code: 1001, reason: "The proxy is shutting down" });
  assertEquals(busy.frames.length, 3);
  await rig.until(stopped);
  rig.forget();
});

Deno.test("a stop whose grace is over ends a turn under way with 1001, and its upstream", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.script(accept([receive(), created(), delay(600_000)]));
  await using busy = await openRigSocket(rig);
  busy.create();
  await busy.next();
  const hit = rig.provider.hits[0]!;
  await rig.stop();
  assertEquals(await busy.closed, { code: 1001, reason: "The proxy is shutting down" });
  await hit.left;
});
