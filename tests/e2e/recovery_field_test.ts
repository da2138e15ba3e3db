/** Field cases that name recovery, with it on: B024, B037, B041, B044, B071, B077, B084, B158. */
import { assert, assertEquals } from "@std/assert";
import {
  chatDelta,
  chatRole,
  completed,
  created,
  delta,
  event,
  failed,
  failure,
  fin,
  messageStart,
  ok,
  raw,
  type Reply,
  rst,
  type Step,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { LONG_INPUT } from "../support/long_input.ts";
import {
  decisionOf,
  isIdle,
  launchesOf,
  recoveryOn,
  startRecoveryRig,
  wireText,
} from "../support/recovery_rig.ts";
import { type Rig, startRig } from "../support/rig.ts";

const RESPS = { path: "/v1/responses", body: { model: "m1", input: "hi", stream: true } };
const CHATS = {
  path: "/v1/chat/completions",
  body: { model: "m1", messages: [{ role: "user", content: "hi" }], stream: true },
};
const MSGS = {
  path: "/v1/messages",
  body: { model: "m1", max_tokens: 64, messages: [{ role: "user", content: "hi" }], stream: true },
};
const STREAMS = [RESPS, CHATS, MSGS];

const OVERLOADED = event("error", {
  type: "error",
  error: { type: "overloaded_error", message: "Overloaded" },
});

/** Two anthropic accounts, tokens `SENT-tok-A` and `SENT-tok-B`. */
async function startClaudeRig(more: Record<string, unknown> = {}): Promise<Rig> {
  const rig = await startRig({ accounts: [] });
  await rig.stop();
  const accounts = ["A", "B"].map((id) => ({ id, "api-key": `SENT-tok-${id}` }));
  rig.reconfigure(recoveryOn({}, {
    providers: [{ id: "claude", kind: "anthropic", "base-url": rig.provider.url, accounts }],
    ...more,
  }));
  await rig.start();
  return rig;
}

const CLAUDE = { ...MSGS.body, model: "claude/claude-opus-4-8" };

Deno.test("B037 both accounts fail behind a held-back stream: HTTP 502 JSON, not one SSE byte", async () => {
  await using rig = await startClaudeRig({ "request-retry": 0 });
  for (const token of ["SENT-tok-A", "SENT-tok-B"]) {
    rig.provider.account(token).otherwise(
      stream([messageStart(), PING, token.endsWith("A") ? rst() : OVERLOADED]),
    );
  }
  const answer = await rig.call("/v1/messages", CLAUDE);
  assertEquals([answer.status, answer.headers.get("content-type")], [502, "application/json"]);
  const body = await answer.json();
  assertEquals([body.type, body.error.code], ["error", "upstream_unavailable"]);
});

const PING = event("ping", { type: "ping" });

Deno.test("B037 with the second account healthy: one message_start in all, its own", async () => {
  await using rig = await startClaudeRig();
  rig.provider.account("SENT-tok-A").otherwise(stream([messageStart(), PING, rst()]));
  rig.provider.account("SENT-tok-B").otherwise(ok("B"));
  const text = await (await rig.call("/v1/messages", CLAUDE)).text();
  assertEquals(text.match(/event: message_start/g)?.length, 1);
  assert(text.includes('"B"') && text.includes("message_stop"));
});

Deno.test("B041 context too long: one hit, passed on, nobody cooled, also inside a stream with recovery", async () => {
  await using rig = await startRecoveryRig(["A", "B", "C"]);
  rig.account("A").script(failure(400, { code: "context_length_exceeded" }));
  const plain = await rig.call("/v1/chat/completions", { ...CHATS.body, stream: false });
  assertEquals([plain.status, (await plain.json()).error.code], [400, "context_length_exceeded"]);
  rig.account("B").script(stream([created(), failed("context_length_exceeded")]));
  const streamed = await rig.call(RESPS.path, RESPS.body);
  assert((await streamed.text()).includes("context_length_exceeded"));
  assertEquals([rig.hits("A"), rig.hits("B"), rig.hits("C")], [1, 1, 0]);
  for (const name of ["A", "B"]) assertEquals((await rig.accountState(name)).state, "healthy");
});

Deno.test("B044 a rate limit told inside the stream is a 429 before any byte, streaming or not; the account waits as told", async (t) => {
  for (const wantsStream of [true, false]) {
    await t.step(wantsStream ? "CHATS" : "CHAT", async () => {
      await using rig = await startRecoveryRig(["A"], {}, { "request-retry": 0 });
      rig.account("A").script(
        stream([
          created(),
          delta("a"),
          failed("rate_limit_exceeded", "Rate limit reached. Please try again in 11s."),
        ]),
      );
      const answer = await rig.call(CHATS.path, { ...CHATS.body, stream: wantsStream });
      assertEquals([answer.status, answer.headers.get("retry-after")], [429, "11"]);
      assertEquals((await answer.json()).error.code, "rate_limited");
      assertEquals((await rig.accountState("A")).state, "cooling");
    });
  }
});

const cuts: readonly { name: string; end: Step | null }[] = [
  { name: "FIN", end: fin() },
  { name: "RST", end: rst() },
  { name: "a clean end", end: null },
];
for (const { name, end } of cuts) {
  Deno.test(`B071 a stream that just stops (${name}) with recovery: the second attempt's answer only`, async (t) => {
    for (const { path, body } of STREAMS) {
      for (const wantsStream of [true, false]) {
        await t.step(`${path} ${wantsStream}`, async () => {
          await using rig = await startRecoveryRig(["A", "B"]);
          rig.account("A").script(
            stream([created("resp_half"), delta("half"), ...(end === null ? [] : [end])]),
            ok("whole"),
          );
          const answer = await rig.call(path, { ...body, stream: wantsStream });
          const text = await answer.text();
          assert(answer.status === 200 && text.includes("whole") && !text.includes("half"), text);
        });
      }
    }
  });
}

Deno.test("B071 a chat upstream that stops with neither finish_reason nor [DONE]: made again", async () => {
  await using rig = await startRig({ accounts: [] });
  await rig.stop();
  rig.reconfigure(recoveryOn({}, {
    providers: [{
      id: "lab",
      kind: "openai",
      "base-url": `${rig.provider.url}/v1`,
      models: ["qwen3"],
      accounts: [{ id: "l", "api-key": "SENT-tok-L" }],
    }],
  }));
  await rig.start();
  rig.provider.account("SENT-tok-L").script(stream([chatRole(), chatDelta("half")]), ok("whole"));
  const text = await (await rig.call(CHATS.path, { ...CHATS.body, model: "lab/qwen3" })).text();
  assert(text.includes("whole") && !text.includes("half") && text.includes("[DONE]"), text);
});

Deno.test("B024 with recovery a stream that broke after text is never two answers in one", async () => {
  await using rig = await startRecoveryRig(["A", "B"], { attempts: 1 });
  const broken = stream([created("resp_a"), delta("Hel"), delta("lo"), rst()]);
  rig.account("A").script(broken, broken);
  const steps = [created("resp_b"), delta("World"), completed("resp_b")];
  rig.account("B").script(stream(steps));
  const answer = await rig.call(RESPS.path, RESPS.body);
  assertEquals(await answer.text(), wireText(steps));
  assertEquals(launchesOf(await decisionOf(rig)), ["A first", "A recovery", "B failover"]);
});

Deno.test("B084 an early failure in one segment with the head ends the same way every time, on and off", async (t) => {
  const early: Reply = {
    ...raw(200, wireText([failed("server_error")]), {
      "content-type": "text/event-stream",
      connection: "close",
    }),
    framing: "close",
  };
  for (const attempts of [0, 1]) {
    for (const { path, body } of STREAMS) {
      await t.step(`${path}, attempts ${attempts}`, async () => {
        await using rig = await startRecoveryRig(["A"], { attempts }, { "request-retry": 0 });
        rig.account("A").otherwise(early);
        for (let run = 0; run < 40; run++) {
          const answer = await rig.call(path, body);
          assertEquals([answer.status, answer.headers.get("content-type")], [502, "application/json"]);
          await answer.body?.cancel();
          await rig.pass(120_000);
        }
      });
    }
  }
});

Deno.test("B158 clients that do not read slow the upstream down; on close all is freed within 2 s", async () => {
  await using rig = await startRecoveryRig(["A"], { "max-buffer-bytes": 2_097_152 });
  const CLIENTS = 10;
  const DELTA_BYTES = 65_536;
  const DELTAS = 3_200;
  let sent = 0;
  function* endless(): Generator<Step> {
    yield created();
    for (let count = 0; count < DELTAS; count++) {
      sent++;
      yield delta("z".repeat(DELTA_BYTES));
    }
    yield completed();
  }
  rig.account("A").otherwise({ kind: "dynamic", make: () => stream(endless()) });
  const answers = await rig.until(
    Promise.all(
      Array.from({ length: CLIENTS }, () => rig.call(RESPS.path, { ...RESPS.body, input: LONG_INPUT })),
    ),
    60_000,
  );
  // All have failed open and nobody reads. Once the buffers on the way are full, the upstream stands still.
  let [before, stood] = [-1, 0];
  await rig.eventually(() => {
    stood = sent === before ? stood + 1 : 0;
    before = sent;
    return stood >= 80;
  });
  assert(sent < CLIENTS * DELTAS / 4, `${sent} of ${CLIENTS * DELTAS} deltas were taken from the upstream`);
  const { heldBytes, heldBytesPeak } = rig.app.recoverySlots.figures;
  assert(heldBytesPeak <= CLIENTS * 2_097_152, `${heldBytes} ${heldBytesPeak}`);
  const beganMs = performance.now();
  await Promise.all(answers.map((answer) => answer.body!.cancel()));
  await Promise.all(rig.provider.hits.map(({ left }) => left));
  await rig.eventually(() => isIdle(rig));
  assert(performance.now() - beganMs < 2_000);
});
