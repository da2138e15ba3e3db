/** Ways out of withholding: fail open, and slots that come back on every path (2D.2, rows 43 and 44, P9, P10). */
import { assert, assertEquals } from "@std/assert";
import {
  completed,
  created,
  delta,
  event,
  failed,
  failure,
  gate,
  hold,
  itemDone,
  messageStart,
  ok,
  type Reply,
  rst,
  type Step,
  stream,
  text,
} from "../../lib/demo/simulated_replies.ts";
import { eventually } from "../support/eventually.ts";
import { LONG_INPUT } from "../support/long_input.ts";
import {
  BodyReader,
  decisionOf,
  isIdle,
  launchesOf,
  newGate,
  recoveryNotes,
  startRecoveryRig,
  wireText,
} from "../support/recovery_rig.ts";
import { openRigSocket } from "../support/rig_sockets.ts";
import type { Rig } from "../support/rig.ts";

const LOST = [created("resp_lost"), delta("lost")];
const WON = [created("resp_won"), delta("won"), itemDone("won"), completed("resp_won")];
const UNKNOWN = event("response.zz_new", { type: "response.zz_new", zz: 1 });

const openings: readonly {
  name: string;
  why: string;
  keys?: Record<string, number>;
  first: readonly Step[];
}[] = [
  {
    name: "the chunk that no longer fits",
    why: "overflow",
    keys: { "max-buffer-bytes": 1_000 },
    first: [created(), delta("a"), delta("é北🚀".repeat(100))],
  },
  { name: "an event nobody knows", why: "unknown_payload", first: [created(), delta("a"), UNKNOWN] },
  { name: "an event nobody knows, first of all", why: "unknown_payload", first: [UNKNOWN] },
];
for (const c of openings) {
  Deno.test(`${c.name} lets the stream go at once: prefix, that chunk and the rest, each byte once`, async () => {
    await using rig = await startRecoveryRig(["A"], c.keys);
    const [more, rest] = [newGate(), newGate()];
    const steps = [...c.first, delta("b")];
    const last = [delta("z".repeat(5_000)), completed()];
    rig.account("A").script(
      stream([...c.first, gate(more.opened), delta("b"), gate(rest.opened), ...last]),
    );
    const answer = await rig.responses({ stream: true });
    const reader = new BodyReader(rig, answer);
    await reader.until(wireText(c.first));
    more.open();
    await reader.until(wireText(steps));
    // The upstream is not done, and the slot is free already.
    assert(isIdle(rig));
    rest.open();
    assertEquals(await reader.end(), wireText([...steps, ...last]));
    const decision = await decisionOf(rig);
    assertEquals([recoveryNotes(decision), launchesOf(decision)], [[`failed_open:${c.why}`], ["A first"]]);
    assertEquals(Object.entries(rig.app.recoverySlots.figures.failedOpen).filter(([, count]) => count > 0), [
      [c.why, 1],
    ]);
  });

  Deno.test(`${c.name}, then a failure: told inside the stream, and nothing is sent again`, async () => {
    await using rig = await startRecoveryRig(["A", "B"], c.keys);
    const steps = [...c.first, delta("b"), failed("server_error")];
    rig.account("A").script(stream(steps));
    assertEquals(await (await rig.responses({ stream: true })).text(), wireText(steps));
    assertEquals([rig.hits("A"), rig.hits("B")], [1, 0]);
    await rig.eventually(() => isIdle(rig));
  });
}

Deno.test("a relaunch may fail open as well; the client sees that attempt alone", async () => {
  await using rig = await startRecoveryRig(["A"], { "max-buffer-bytes": 2_000 });
  const steps = [created("resp_big"), delta("z".repeat(3_000)), completed("resp_big")];
  rig.account("A").script(stream([...LOST, rst()]), stream(steps));
  assertEquals(await (await rig.responses({ stream: true })).text(), wireText(steps));
  assertEquals(recoveryNotes(await decisionOf(rig)), ["failed_open:overflow", "recovered"]);
});

Deno.test("one frame longer than the buffer passes through whole", async () => {
  await using rig = await startRecoveryRig(["A"], { "max-buffer-bytes": 10_000 });
  const steps = [created(), delta("z".repeat(300_000)), completed()];
  rig.account("A").script(stream(steps));
  assertEquals(await (await rig.responses({ stream: true })).text(), wireText(steps));
  assertEquals(recoveryNotes(await decisionOf(rig)), ["failed_open:overflow"]);
});

Deno.test("no slot free: ordinary streaming from the first byte, and a failure goes the ordinary way", async () => {
  await using rig = await startRecoveryRig(["A", "B", "C"], { "max-concurrent": 1 });
  const [first, second] = [newGate(), newGate()];
  rig.account("A").script(stream([...WON.slice(0, 2), gate(first.opened), ...WON.slice(2)]));
  rig.account("B").script(stream([created("resp_lost"), failed("server_error")]));
  const streamed = [created("resp_c"), delta("c"), completed("resp_c")];
  rig.account("C").script(stream([...streamed.slice(0, 2), gate(second.opened), streamed[2]!]));
  const withheld = rig.responses({ stream: true });
  await rig.eventually(() => rig.app.recoverySlots.figures.heldBytes > 0);
  const reader = new BodyReader(rig, await rig.responses({ stream: true }));
  await reader.until(wireText(streamed.slice(0, 2)));
  assertEquals(rig.app.recoverySlots.held, 1);
  second.open();
  assertEquals(await reader.end(), wireText(streamed));
  const decision = await decisionOf(rig, 1);
  assertEquals([recoveryNotes(decision), launchesOf(decision)], [["failed_open:no_slot"], [
    "B first",
    "C failover",
  ]]);
  first.open();
  assertEquals(await (await withheld).text(), wireText(WON));
  await rig.eventually(() => isIdle(rig));
});

const endings: readonly { name: string; run(rig: Rig): Promise<void> }[] = [
  { name: "a success", run: (rig) => finish(rig, [stream(WON)]) },
  { name: "a success after a relaunch", run: (rig) => finish(rig, [stream([...LOST, rst()]), stream(WON)]) },
  { name: "exhaustion", run: (rig) => finish(rig, lost(3)) },
  { name: "408", run: (rig) => finish(rig, [stream(LOST), stream(LOST), stream(LOST)]) },
  { name: "a refusal of the request", run: (rig) => finish(rig, [failure(400, { code: "invalid_value" })]) },
  {
    name: "a fault of the request after output, relayed",
    run: (rig) => finish(rig, [stream([...LOST, failed("invalid_prompt")])]),
  },
  { name: "a 429", run: (rig) => finish(rig, [failure(429, { headers: { "retry-after": "7200" } })]) },
  { name: "a JSON answer", run: (rig) => finish(rig, [stream(WON)], false) },
  { name: "a JSON answer that fails", run: (rig) => finish(rig, lost(3), false) },
  {
    name: "a JSON fault of the request",
    run: (rig) => finish(rig, [stream([...LOST, failed("invalid_prompt")])], false),
  },
  {
    name: "no account at all",
    run: async (rig) => {
      rig.app.pool.setEnabled((await rig.accountState("A"))["id"] as string, false, rig.clock.now());
      await finish(rig, []);
    },
  },
  { name: "a client that leaves while it is withheld", run: (rig) => leave(rig, stream([...LOST, hold()])) },
  {
    name: "a client that leaves while the answer is delivered",
    run: async (rig) => {
      const steps = [created(), ...Array.from({ length: 60 }, () => delta("z".repeat(100_000))), completed()];
      rig.account("A").script(stream(steps));
      const answer = await rig.responses({ stream: true, input: LONG_INPUT });
      const reader = answer.body!.getReader();
      await reader.read();
      assertEquals(rig.app.recoverySlots.held, 1, "the slot answers for what the client has not taken");
      await reader.cancel();
    },
  },
  {
    name: "a client that leaves while a relayed fault is delivered",
    run: async (rig) => {
      const steps = [
        created(),
        ...Array.from({ length: 60 }, () => delta("z".repeat(100_000))),
        failed("invalid_prompt"),
      ];
      rig.account("A").script(stream(steps));
      const answer = await rig.responses({ stream: true, input: LONG_INPUT });
      const reader = answer.body!.getReader();
      await reader.read();
      assertEquals(rig.app.recoverySlots.held, 1);
      await reader.cancel();
    },
  },
  {
    name: "a client that leaves after a fail-open",
    run: async (rig) => {
      rig.account("A").script(stream([created(), UNKNOWN, hold()]));
      const reader = new BodyReader(rig, await rig.responses({ stream: true, input: LONG_INPUT }));
      await reader.until("zz_new");
      await reader.cancel();
    },
  },
  { name: "the idle limit", run: (rig) => finish(rig, [stream([...LOST, hold()])]) },
];
for (const c of endings) {
  Deno.test(`the slot comes back, and no byte stays: ${c.name}`, async () => {
    await using rig = await startRecoveryRig(["A"], {}, {
      "request-retry": 0,
      timeouts: { "idle-seconds": 30 },
    });
    await c.run(rig);
    await rig.eventually(() => isIdle(rig) && rig.app.decisions.latest(1).length === 1);
    assert(rig.app.recoverySlots.figures.heldMs >= 0);
  });
}

function lost(count: number): Reply[] {
  return Array.from({ length: count }, () => stream([...LOST, rst()]));
}

async function finish(rig: Rig, replies: readonly Reply[], wantsStream = true): Promise<void> {
  rig.account("A").script(...replies);
  const answer = await rig.responses({ stream: wantsStream });
  await rig.until(answer.text());
}

async function leave(rig: Rig, reply: Reply): Promise<void> {
  rig.account("A").script(reply);
  const abort = new AbortController();
  const answering = rig.responses({ stream: true, input: LONG_INPUT }, { signal: abort.signal }).catch(() =>
    null
  );
  await rig.eventually(() => rig.app.recoverySlots.figures.heldBytes > 0);
  await rig.clock.advance(100);
  abort.abort();
  await answering;
  // The clock stands still: it is the leaving that ends it, not the idle limit.
  await eventually(() => rig.app.decisions.latest(1)[0]?.status === 0);
}

Deno.test("the process stops while streams are withheld: every slot comes back", async () => {
  await using rig = await startRecoveryRig(["A"]);
  rig.account("A").script(stream([...LOST, hold()]), stream([...LOST, hold()]));
  const answering = [1, 2].map(() =>
    rig.responses({ stream: true }).then((answer) => answer.text(), () => "")
  );
  const slots = rig.app.recoverySlots;
  await rig.eventually(() => slots.held === 2);
  await rig.eventually(() => slots.figures.heldBytes === 2 * wireText(LOST).length);
  await rig.stop();
  await Promise.all(answering);
  assertEquals([slots.figures.held, slots.figures.heldBytes], [0, 0]);
});

Deno.test("a losing attempt's bytes are gone before the next one is sent", async () => {
  await using rig = await startRecoveryRig(["A"], {
    "initial-backoff-milliseconds": 30_000,
    "max-backoff-milliseconds": 30_000,
  });
  const end = newGate();
  rig.account("A").script(stream([...LOST, gate(end.opened), rst()]), stream(WON));
  const answering = rig.responses({ stream: true });
  const slots = rig.app.recoverySlots;
  await rig.eventually(() => slots.figures.heldBytes === wireText(LOST).length);
  end.open();
  await rig.until(rig.provider.hits[0]!.left);
  // Still in its back-off, with the slot but without a byte.
  await rig.eventually(() => slots.figures.heldBytes === 0);
  assertEquals([slots.held, rig.hits("A")], [1, 1]);
  assertEquals(await (await answering).text(), wireText(WON));
});

Deno.test("a JSON answer past the bound goes on without recovery, and its slot is free at once", async () => {
  await using rig = await startRecoveryRig(["A", "B"], { "max-buffer-bytes": 1_000 });
  const [rest, again] = [newGate(), newGate()];
  const big = [created(), delta("z".repeat(2_000))];
  rig.account("A").script(stream([...big, gate(rest.opened), rst()]));
  rig.account("B").script(stream([gate(again.opened), ...big, rst()]));
  const answering = rig.responses({});
  await rig.eventually(() => rig.hits("A") === 1 && isIdle(rig) && rig.app.recoverySlots.figures.heldMs >= 0);
  rest.open();
  await rig.eventually(() => rig.hits("B") === 1);
  rig.account("A").otherwise(ok("A"));
  rig.account("B").otherwise(ok("B"));
  again.open();
  assertEquals((await answering).status, (await (await answering).text(), 200));
  const decision = await decisionOf(rig);
  assertEquals(launchesOf(decision).filter((launch) => launch.endsWith("recovery")), []);
  assertEquals(recoveryNotes(decision), ["failed_open:overflow"]);
});

Deno.test("a JSON answer may be larger than the bound, and stays whole", async () => {
  await using rig = await startRecoveryRig(["A"], { "max-buffer-bytes": 1_000 });
  rig.account("A").script(ok("z".repeat(50_000)));
  const answer = await (await rig.responses({})).json();
  assertEquals(answer.output[0].content[0].text.length, 50_000);
});

Deno.test("WebSocket turns are never recovered after the upgrade, and take no slot", async () => {
  await using rig = await startRecoveryRig(["A", "B"]);
  rig.account("A").websocket.script({
    kind: "accept",
    headers: {},
    protocol: null,
    steps: [{ kind: "receive" }, created("resp_lost"), delta("lost"), failed("server_error")],
  });
  await using client = await openRigSocket(rig);
  client.create({ model: "gpt-5.5" });
  const seen = await client.until("response.failed");
  assert(seen.includes("response.output_text.delta"));
  assertEquals([rig.hits("A"), rig.hits("B"), rig.app.recoverySlots.figures.heldMs], [1, 0, 0]);
});

Deno.test("comments and odd line ends are withheld and let go byte for byte", async () => {
  await using rig = await startRecoveryRig(["A"]);
  const bytes =
    ': hello\r\n\r\nevent: response.created\rdata: {"type":"response.created","response":{"id":"r1"}}\r\r' +
    'event: response.output_text.delta\r\ndata: {"type":"response.output_text.delta","delta":"é北🚀"}\r\n\r\n' +
    'id: 7\nevent: response.completed\ndata: {"type":"response.completed","response":{"id":"r1","output":[]}}\n\n';
  rig.account("A").script(stream([...LOST, rst()]), stream([text(bytes)]));
  assertEquals(await (await rig.responses({ stream: true })).text(), bytes);
});

Deno.test("what comes after the terminal is not for the client", async () => {
  await using rig = await startRecoveryRig(["A"]);
  rig.account("A").script(stream([...WON, delta("late"), messageStart()]));
  assertEquals(await (await rig.responses({ stream: true })).text(), wireText(WON));
});
