/** Streams over real sockets, however the network cuts them: what goes in comes out, in order, once, and ends truly. */
import { assert, assertEquals } from "@std/assert";
import {
  chatDelta,
  chatDone,
  chatFinish,
  completed,
  created,
  delay,
  delta,
  dripping,
  encoded,
  type Encoding,
  error,
  event,
  failed,
  failure,
  fin,
  gate,
  hold,
  itemDone,
  json,
  ok,
  raw,
  type Reply,
  stream,
  text,
} from "../../lib/demo/simulated_replies.ts";
import { LeavingClient, WAYS } from "../support/leaving_client.ts";
import { type Rig, startRig } from "../support/rig.ts";

const ENCODER = new TextEncoder();
const SSE = { "content-type": "text/event-stream" };

const frame = (type: string, fields: Record<string, unknown>, end = "\n") =>
  `event: ${type}${end}data: ${JSON.stringify({ type, ...fields })}${end}${end}`;
const CREATED = frame("response.created", { response: { id: "r1" } });
const COMPLETED = frame("response.completed", {
  response: { id: "r1", output: [], usage: { input_tokens: 1, output_tokens: 1 } },
});
const deltaFrame = (words: string, end = "\n") => frame("response.output_text.delta", { delta: words }, end);

/** Everything a legal stream may hold, multi-byte characters in the middle. */
const WHOLE =
  `: hello\n\n${CREATED}${deltaFrame("é北🚀", "\r\n")}id: 7\nretry: 1000\n: é\n${deltaFrame("x", "\r")}` +
  `${COMPLETED}`;

const ask = (rig: Rig, init: RequestInit = {}) => rig.responses({ stream: true }, init);
const typesOf = (body: string) => [...body.matchAll(/"type":"([a-z._]+)"/g)].map((match) => match[1]!);

// ---------------------------------------------------------------- bytes

Deno.test("B063 B064 a stream cut in two at every byte reaches the client byte for byte", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const bytes = ENCODER.encode(WHOLE);
  const step = (from: number, to?: number) => ({ kind: "bytes" as const, bytes: bytes.slice(from, to) });
  const cutAt = async (cut: number) => {
    const answer = await ask(rig);
    assertEquals(await answer.text(), WHOLE, `near the cut at ${cut}`);
  };
  // Some at a time: which answer gets which cut does not matter.
  for (let from = 1; from < bytes.length; from += 25) {
    const some = Array.from({ length: Math.min(25, bytes.length - from) }, (_, index) => from + index);
    rig.account("A").script(...some.map((cut) => stream([step(0, cut), delay(1), step(cut)])));
    await Promise.all(some.map(cutAt));
  }
});

const cuts: { name: string; reply: Reply }[] = [
  { name: "one byte a write", reply: dripping(stream([text(WHOLE)]), 1) },
  { name: "all in one write", reply: stream([text(WHOLE)]) },
  {
    name: "a write for each line",
    reply: stream(WHOLE.split(/(?<=\n)/).flatMap((line) => [text(line), delay(1)])),
  },
  { name: "raw until the close", reply: { ...raw(200, WHOLE, SSE), framing: "close" as const } },
  { name: "counted bytes", reply: raw(200, WHOLE, SSE) },
];
for (const { name, reply } of cuts) {
  Deno.test(`B064 the same events in the same bytes: ${name}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").script(reply);
    assertEquals(await (await ask(rig)).text(), WHOLE);
  });
}

for (const path of ["/v1/chat/completions", "/v1/messages"]) {
  Deno.test(`B063 characters cut anywhere stay whole through translation: ${path}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    const bytes = ENCODER.encode(deltaFrame("é北🚀"));
    for (let cut = 1; cut < bytes.length; cut += 3) {
      const part = (from: number, to?: number) => ({ kind: "bytes" as const, bytes: bytes.slice(from, to) });
      rig.account("A").script(
        stream([created(), part(0, cut), delay(0), part(cut), itemDone("é北🚀"), completed()]),
      );
      const messages = [{ role: "user", content: "hi" }];
      const answer = await rig.call(path, { model: "m1", max_tokens: 9, messages, stream: true });
      const body = await answer.text();
      assert(body.includes("é北🚀") && !body.includes("\ufffd"), `cut at ${cut}: ${body}`);
    }
  });
}

Deno.test("B063 a stream that ends inside a character is reported as incomplete, in whole frames", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const bytes = ENCODER.encode(
    CREATED + deltaFrame("a") + 'event: response.output_text.delta\ndata: {"delta":"🚀',
  );
  rig.account("A").script(stream([{ kind: "bytes", bytes: bytes.slice(0, -2) }]));
  const body = await (await ask(rig)).text();
  assertEquals(typesOf(body), ["response.created", "response.output_text.delta", "response.failed"]);
  assert(body.startsWith(CREATED + deltaFrame("a")));
});

Deno.test("B065 frames of data lines alone, glued in one read, stay two events, and the terminal is seen", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const done = 'data: {"type":"response.output_item.done","item":{}}\n\n';
  const end = 'data: {"type":"response.completed","response":{"id":"r1"}}\n\n';
  rig.account("A").script(stream([text(done + end), hold()]));
  assertEquals(await (await ask(rig)).text(), done + end);
  assertEquals((await rig.lastDecision()).code, null);
});

const variants: { name: string; sent: string; added?: string }[] = [
  {
    name: "no blank after the colon",
    sent: WHOLE.replaceAll("data: ", "data:").replaceAll("event: ", "event:"),
  },
  { name: "CRLF", sent: (CREATED + deltaFrame("a") + COMPLETED).replaceAll("\n", "\r\n") },
  { name: "CR alone", sent: (CREATED + deltaFrame("a") + COMPLETED).replaceAll("\n", "\r") },
  { name: "a byte-order mark", sent: `\ufeff${WHOLE}` },
  { name: "comments between frames", sent: `: ping\n\n${CREATED}: ping\n\n${deltaFrame("a")}${COMPLETED}` },
  {
    name: "a last frame without its blank line",
    sent: CREATED + deltaFrame("a") + COMPLETED.slice(0, -1),
    added: "\n",
  },
  { name: "a last frame without any line end", sent: CREATED + COMPLETED.slice(0, -2), added: "\n\n" },
];
for (const { name, sent, added = "" } of variants) {
  Deno.test(`B066 a legal way to write a stream passes as it came: ${name}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").script(stream([text(sent)]));
    const answer = await ask(rig);
    // Compared as bytes: a decoder would take the mark away.
    assertEquals(await answer.bytes(), ENCODER.encode(sent + added));
    const decision = await rig.lastDecision();
    assertEquals([decision.status, decision.code], [200, null]);
  });
}

for (const padding of ["null", "true", "0", "[]", '"x"']) {
  Deno.test(`B068 a padding frame (${padding}) is left out, and the answer is whole`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").script(
      stream([text(CREATED + deltaFrame("AB")), event(null, padding), text(deltaFrame("CD") + COMPLETED)]),
    );
    assertEquals(await (await ask(rig)).text(), CREATED + deltaFrame("AB") + deltaFrame("CD") + COMPLETED);
  });
}

Deno.test("B068 a frame that is no JSON fails the stream; nothing but padding is no answer", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 0 } });
  rig.account("A").script(
    stream([text(CREATED + deltaFrame("AB")), event(null, "{bad json"), text(COMPLETED)]),
    stream([event(null, "null"), event(null, "null")]),
  );
  assertEquals(typesOf(await (await ask(rig)).text()).at(-1), "response.failed");
  await rig.pass(60_000);
  const empty = await ask(rig);
  assertEquals([empty.status, (await empty.json()).error.code], [502, "upstream_unavailable"]);
});

Deno.test("B069 (ruling 24) private events of Codex pass on its own protocol, and a chat client sees none", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const steps = [
    event("codex.response.metadata", { type: "codex.response.metadata" }),
    created(),
    event("responsesapi.websocket_timing", { type: "responsesapi.websocket_timing" }),
    delta("ok"),
    itemDone("ok"),
    completed(),
  ];
  rig.account("A").script(stream(steps), stream(steps));
  assertEquals(
    typesOf(await (await ask(rig)).text()).filter((type) => !type.startsWith("response.")).slice(0, 2),
    [
      "codex.response.metadata",
      "responsesapi.websocket_timing",
    ],
  );
  const chat = await rig.call("/v1/chat/completions", {
    model: "m1",
    messages: [{ role: "user", content: "x" }],
    stream: true,
  });
  assert(!/codex\.|websocket_timing/.test(await chat.text()));
});

Deno.test("B070 a notice that a limit is reached cuts no stream, and the success behind it counts for more", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const notice = event("codex.rate_limits", {
    type: "codex.rate_limits",
    rate_limits: {
      primary: { used_percent: 100, window_minutes: 300, reset_at: 1_800_018_000 },
      limit_reached: true,
    },
  });
  rig.account("A").script(stream([notice, created(), gate(Promise.resolve()), delta("ok"), completed()]));
  const body = await (await ask(rig)).text();
  assert(body.includes('"ok"') && body.includes("response.completed"));
  assertEquals([(await rig.lastDecision()).code, (await rig.accountState("A")).state], [null, "healthy"]);
});

Deno.test("B074 nothing follows the terminal, and text that looks like one is text", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const looks = deltaFrame("data: [DONE]\n\nevent: response.completed");
  rig.account("A").script(
    stream([
      text(CREATED + looks + COMPLETED + 'data: {"choices":[],"note":1}\n\ndata: [DONE]\n\n' + COMPLETED),
    ]),
    stream([text(CREATED + looks + COMPLETED), delay(50), text("data: [DONE]\n\n")]),
  );
  for (let turn = 0; turn < 2; turn++) {
    assertEquals(await (await ask(rig)).text(), CREATED + looks + COMPLETED);
  }
});

// ---------------------------------------------------------------- sizes

Deno.test("a frame of many megabytes, and megabytes without a newline, pass whole", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const giant = deltaFrame("x".repeat(12_000_000));
  rig.account("A").script(dripping(stream([text(CREATED + giant + COMPLETED)]), 65_536));
  const body = await (await ask(rig)).text();
  assertEquals(
    body.length === (CREATED + giant + COMPLETED).length && body === CREATED + giant + COMPLETED,
    true,
  );
});

Deno.test("a line without end is given up at the framer's limit, not kept for ever", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 0 } });
  function* endless() {
    yield text(`${CREATED}data: {"type":"response.output_text.delta","delta":"`);
    while (true) yield text("x".repeat(1_048_576));
  }
  rig.account("A").script(stream(endless()));
  const answer = await rig.until(ask(rig), 60_000);
  const body = await rig.until(answer.text(), 60_000);
  assert(answer.status === 502 || typesOf(body).at(-1) === "response.failed", `${answer.status}`);
  await rig.until(rig.provider.hits[0]!.left);
});

// ---------------------------------------------------------------- codings

const CODINGS: { name: string; encoding: Encoding | null; label?: string | null }[] = [
  { name: "gzip", encoding: "gzip" },
  { name: "br", encoding: "br" },
  { name: "deflate", encoding: "deflate" },
  { name: "zstd", encoding: "zstd" },
  { name: "gzip, br", encoding: "gzip, br" },
  { name: "gzip without a label", encoding: "gzip", label: null },
];
for (const { name, encoding, label } of CODINGS) {
  for (const accept of ["gzip, br, zstd", "identity"]) {
    Deno.test(`B079 answers packed as ${name} reach a client that accepts ${accept} plain and unlabelled`, async () => {
      await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 0 } });
      const pack = (reply: Reply) =>
        label === undefined ? encoded(reply, encoding) : encoded(reply, encoding, label);
      const limit = { type: "usage_limit_reached", extra: { resets_in_seconds: 600 } };
      rig.account("A").script(
        pack(json({ data: [] })),
        pack(stream([created(), delta("é"), completed()])),
        pack(failure(429, limit)),
      );
      const headers = { "accept-encoding": accept };
      const document = await rig.call("/v1/alpha/search", { id: "s", model: "m1" }, { headers });
      assertEquals([document.status, await document.json()], [200, { data: [] }]);
      const streamed = await ask(rig, { headers });
      if (name !== "gzip without a label") {
        assertEquals(typesOf(await streamed.text()).at(-1), "response.completed");
        const limited = await ask(rig, { headers });
        assertEquals([limited.status, limited.headers.get("retry-after")], [429, "600"]);
        await limited.body?.cancel();
        assertEquals(limited.headers.get("content-encoding"), null);
      } else {
        await streamed.body?.cancel();
        rig.account("A").next();
      }
      for (const answer of [document, streamed]) {
        assertEquals(
          [answer.headers.get("content-encoding"), answer.headers.get("content-length")].includes("gzip"),
          false,
        );
      }
    });
  }
}

Deno.test("B079 a plain stream that claims gzip is served as what it is", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(encoded(stream([text(WHOLE)]), null, "gzip"));
  assertEquals(await (await ask(rig)).text(), WHOLE);
});

Deno.test("B079 a plain stream that claims br is 502, and blames no login", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 0 } });
  rig.account("A").script(encoded(stream([text(WHOLE)]), null, "br"));
  const answer = await ask(rig);
  assertEquals([answer.status, (await answer.json()).error.code], [502, "upstream_unavailable"]);
  assertEquals((await rig.accountState("A")).state, "cooling");
});

// ---------------------------------------------------------------- silence

for (const recovery of [0, 2]) {
  Deno.test(`B077 100 s of silence in a stream end nothing, recovery attempts ${recovery}`, async () => {
    await using rig = await startRig({
      accounts: ["A"],
      config: { streaming: { recovery: { attempts: recovery } } },
    });
    const more = Promise.withResolvers<void>();
    rig.account("A").script(ok("warm"), stream([created(), gate(more.promise), completed()]));
    // Fake time outruns a first connection, which is slower than those that follow.
    await (await ask(rig)).text();
    const answering = ask(rig);
    await rig.until(rig.provider.hitCount(2));
    for (let second = 0; second < 100; second++) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      await rig.clock.advance(1_000);
    }
    more.resolve();
    const answer = await answering;
    assertEquals([answer.status, typesOf(await answer.text()).at(-1)], [200, "response.completed"]);
    assertEquals(rig.provider.hits.length, 2);
  });
}

Deno.test("silence beyond idle-seconds: before commit the next account serves, after it the stream fails in words", async () => {
  await using rig = await startRig({
    accounts: ["A", "B"],
    config: { timeouts: { "idle-seconds": 20 }, streaming: { bootstrap: { "max-hold-seconds": 60 } } },
  });
  rig.account("A").script(stream([created(), hold()]));
  rig.account("B").script(stream([created(), delta("half"), hold()]));
  const answer = await rig.until(ask(rig));
  const body = await rig.until(answer.text());
  assert(body.includes('"half"'));
  assertEquals(typesOf(body).at(-1), "response.failed");
  for (const hit of rig.provider.hits) await rig.until(hit.left);
  assertEquals([rig.hits("A"), rig.hits("B")], [1, 1]);
});

Deno.test("idle-seconds 0 waits for ever", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { timeouts: { "idle-seconds": 0 } } });
  const more = Promise.withResolvers<void>();
  rig.account("A").script(stream([created(), delta("a"), gate(more.promise), completed()]));
  const answer = await ask(rig);
  await rig.clock.advance(3_600_000);
  more.resolve();
  assertEquals(typesOf(await answer.text()).at(-1), "response.completed");
});

for (const seconds of [0, 5]) {
  Deno.test(`keep-alive comments come ${seconds === 0 ? "never when not configured" : "after commit alone"}`, async () => {
    await using rig = await startRig({
      accounts: ["A"],
      config: { streaming: { "keepalive-seconds": seconds } },
    });
    const [more, last] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    rig.account("A").script(
      stream([created(), gate(more.promise), delta("a"), gate(last.promise), completed()]),
    );
    let answered = false;
    const answering = rig.responses({ stream: true }).finally(() => answered = true);
    await rig.until(rig.provider.hitCount(1));
    await new Promise((resolve) => setTimeout(resolve, 20));
    assertEquals(answered, false, "a comment would commit a stream that may still be taken back");
    more.resolve();
    const answer = await answering;
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let body = "";
    while (!body.includes('"a"')) body += (await reader.read()).value;
    const reading = (async () => {
      for (let part = await reader.read(); !part.done; part = await reader.read()) body += part.value;
    })();
    for (let second = 0; second < 22; second++) await rig.clock.advance(1_000);
    last.resolve();
    await reading;
    assertEquals(body.match(/^: keep-alive$/gm)?.length ?? 0, seconds === 0 ? 0 : 4);
    assertEquals(typesOf(body).at(-1), "response.completed");
  });
}

// ---------------------------------------------------------------- failures told

const bare: { name: string; data: unknown; code: string }[] = [
  {
    name: "nested",
    data: { type: "error", error: { type: null, code: "server_error", message: "m" } },
    code: "server_error",
  },
  {
    name: "flat",
    data: { type: "error", code: "server_error", message: "m", param: null },
    code: "server_error",
  },
];
for (const { name, data, code } of bare) {
  Deno.test(`a bare ${name} error event after output becomes response.failed`, async () => {
    await using rig = await startRig({ accounts: ["A", "B"] });
    rig.account("A").script(stream([text(CREATED + deltaFrame("a")), event("error", data), failed(code)]));
    const body = await (await ask(rig)).text();
    assertEquals(body.startsWith(CREATED + deltaFrame("a")), true);
    const frames = body.slice((CREATED + deltaFrame("a")).length);
    assertEquals(frames.split("\n\n").length, 2, "one frame, the end");
    const told = JSON.parse(/^data: (.*)$/m.exec(frames)![1]!);
    assertEquals([told.type, told.response.status, told.response.error.code], [
      "response.failed",
      "failed",
      code,
    ]);
    assertEquals(rig.hits("B"), 0);
  });
}

Deno.test("an error event before any output is passed over like any failure", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(stream([created(), error("server_is_overloaded"), failed("server_is_overloaded")]));
  rig.account("B").script(ok("B"));
  const body = await (await ask(rig)).text();
  assert(body.includes('"B"') && !body.includes("overloaded"));
});

Deno.test("an upstream that closes its side in the middle is a cut, one that never closes after the terminal is none", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(stream([created(), delta("a"), fin()]), stream([text(WHOLE), hold()]));
  assertEquals(typesOf(await (await ask(rig)).text()).at(-1), "response.failed");
  await rig.pass(60_000);
  assertEquals(await (await ask(rig)).text(), WHOLE);
  await rig.until(rig.provider.hits[1]!.left);
});

for (const way of WAYS) {
  Deno.test(`a client that ${way} in the middle of a stream frees its upstream, and blames nobody`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").script(stream([created(), delta("a"), hold()]));
    const shape = { name: "100 KB in two writes", bodyBytes: 100_000, pauseMs: 5 };
    using client = await LeavingClient.open(rig.app.server.port, shape);
    await client.ask({ fields: { stream: true } });
    await client.until("output_text.delta");
    client.leave(way);
    await rig.until(rig.provider.hits[0]!.left);
    await rig.eventually(() => rig.app.decisions.latest(1).length === 1);
    assertEquals((await rig.accountState("A")).state, "healthy");
  });
}

// ---------------------------------------------------------------- other protocols, where the bytes are theirs

Deno.test("a chat stream of an OpenAI-compatible host passes byte for byte, its private fields too", async () => {
  await using rig = await startRig({ accounts: [] });
  const providers = [{
    id: "lab",
    kind: "openai",
    "base-url": `${rig.provider.url}/v1`,
    models: ["qwen3"],
    accounts: [{ id: "k", "api-key": "SENT-lab-key" }],
  }];
  rig.reconfigure({ providers });
  await rig.restart();
  const sent =
    ': x\n\ndata: {"choices":[{"index":0,"delta":{"content":"é"}}],"private":1e2}\r\n\r\ndata:{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  rig.provider.account("SENT-lab-key").script(
    stream([text(sent)]),
    stream([chatDelta("a"), chatFinish(), chatDone()]),
  );
  const answer = await rig.call("/v1/chat/completions", {
    model: "qwen3",
    messages: [{ role: "user", content: "x" }],
    stream: true,
  });
  assertEquals(await answer.text(), sent);
  const again = await rig.call("/v1/chat/completions", { model: "qwen3", messages: [], stream: true });
  assert((await again.text()).endsWith("data: [DONE]\n\n"));
});
