/** What streams carry besides text and calls: log probabilities, cut answers, endings and noise of every kind. */
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { translatorFor } from "../../../lib/protocol/translate/compose.ts";
import type { JsonObject } from "../../../lib/protocol/translate/json.ts";
import { Lanes } from "../../../lib/protocol/translate/lanes.ts";
import { accumulateChat, accumulateMessages, accumulateResponses } from "../../support/accumulators.ts";
import { answerContext, translateStream } from "../../support/translation.ts";

// deno-lint-ignore no-explicit-any -- JSON of three protocols, looked into by each test
type Loose = Record<string, any>;

const created = { type: "response.created", response: { id: "resp_1", created_at: 1_760_000_000 } };
const delta = (text: string, members: JsonObject = {}) => ({
  type: "response.output_text.delta",
  output_index: 0,
  content_index: 0,
  delta: text,
  ...members,
});
const message = (text: string, members: JsonObject = {}) => ({
  type: "message",
  id: "msg_1",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [], ...members }],
});
const done = (item: JsonObject) => ({ type: "response.output_item.done", output_index: 0, item });
const completed = (members: JsonObject = {}) => ({
  type: "response.completed",
  response: { id: "resp_1", created_at: 1_760_000_000, status: "completed", output: [], ...members },
});
const whole = (text: string, members: JsonObject = {}) => ({
  ...completed({ output: [message(text, members)] }).response,
});

// ---- stop sequences

const letters = fc.string({ unit: fc.constantFrom("a", "b", "\n"), minLength: 1, maxLength: 4 });

Deno.test("a cut stream tells what the cut answer tells, wherever its pieces end", () => {
  const chat = translatorFor("chat", "responses")!;
  const messages = translatorFor("messages", "responses")!;
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c", "\n"), minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(text, fc.array(letters, { minLength: 1, maxLength: 3 }), fc.nat(5), (text, cutAt, size) => {
      const pieces = text.match(new RegExp(`[^]{1,${size + 1}}`, "g"))!.map((piece) => delta(piece));
      const events = [created, ...pieces, done(message(text)), completed()];
      const ends = [...text].map((_, at) => at + 1);
      const end = ends.find((at) => cutAt.some((one) => text.slice(0, at).endsWith(one)));
      const first = end === undefined
        ? text.length
        : Math.min(...cutAt.filter((one) => text.slice(0, end).endsWith(one)).map((one) => end - one.length));
      for (const translator of [chat, messages]) {
        const context = answerContext({ cutAt });
        const answer = translator.answer(whole(text), context);
        const told = translateStream(translator, events, context);
        const streamed = translator === chat ? accumulateChat(told) : accumulateMessages(told);
        assertEquals(answer.ok && JSON.parse(JSON.stringify(answer.body)), streamed.answer);
        const body = streamed.answer as Loose;
        const said = translator === chat
          ? body.choices[0].message.content
          : body.content.map((block: Loose) => block.text).join("");
        assertEquals(said, text.slice(0, first));
        if (translator === messages) {
          assertEquals(body.stop_reason, first < text.length ? "stop_sequence" : "end_turn");
        }
      }
    }),
  );
});

const crossings = [
  { text: "ba", cutAt: ["b", "ba"], said: "", by: "b" },
  { text: "ba", cutAt: ["ba", "b"], said: "", by: "b" },
  { text: "abcde", cutAt: ["bcd", "c"], said: "ab", by: "c" },
  { text: "abcde", cutAt: ["c", "bc"], said: "a", by: "bc" },
];
for (const { text, cutAt, said, by } of crossings) {
  Deno.test(`of stop sequences ${cutAt.join(" and ")} in ${text} the one whole first cuts`, () => {
    const translator = translatorFor("messages", "responses")!;
    const context = answerContext({ cutAt });
    const answer = translator.answer(whole(text), context);
    for (const size of [1, 2, text.length]) {
      const pieces = text.match(new RegExp(`[^]{1,${size}}`, "g"))!.map((piece) => delta(piece));
      const told = translateStream(
        translator,
        [created, ...pieces, done(message(text)), completed()],
        context,
      );
      const body = accumulateMessages(told).answer as Loose;
      assertEquals([body.content.map((block: Loose) => block.text).join(""), body.stop_sequence], [said, by]);
      assertEquals(answer.ok && JSON.parse(JSON.stringify(answer.body)), body);
    }
  });
}

Deno.test("a cut answer ends as whole even where the upstream ran into its limit", () => {
  const response = {
    ...whole("one STOP two"),
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
  };
  const answer = translatorFor("messages", "responses")!.answer(response, answerContext({ cutAt: ["STOP"] }));
  const body = answer.ok ? answer.body : {};
  assertEquals([body.stop_reason, body.stop_sequence], ["stop_sequence", "STOP"]);
});

// ---- log probabilities

const logprob = (token: string) => ({ token, logprob: -0.1, top_logprobs: [{ token, logprob: -0.1 }] });
const chatLogprob = (token: string) => {
  const entry = { token, bytes: [...new TextEncoder().encode(token)], logprob: -0.1 };
  return { ...entry, top_logprobs: [entry] };
};

Deno.test("log probabilities of a Responses upstream reach a chat client, whole and streamed", () => {
  const translator = translatorFor("chat", "responses")!;
  const events = [
    created,
    delta("Gr", { logprobs: [logprob("Gr")] }),
    delta("ü", { logprobs: [logprob("ü")] }),
    done(message("Grü", { logprobs: [logprob("Gr"), logprob("ü")] })),
    completed(),
  ];
  const { answer } = accumulateChat(translateStream(translator, events));
  const plain = translator.answer(whole("Grü", { logprobs: [logprob("Gr"), logprob("ü")] }), answerContext());
  assertEquals(plain.ok && plain.body, answer);
  const choice = (answer!.choices as Loose[])[0]!;
  assertEquals(choice.logprobs, { content: [chatLogprob("Gr"), chatLogprob("ü")], refusal: null });
});

Deno.test("log probabilities of a chat upstream reach a Responses client, whole and streamed", () => {
  const translator = translatorFor("responses", "chat")!;
  const chunk = (content: string, finish: string | null = null) => ({
    id: "chatcmpl-1",
    created: 1_760_000_000,
    choices: [{
      index: 0,
      delta: { content },
      logprobs: { content: [chatLogprob(content)], refusal: null },
      finish_reason: finish,
    }],
  });
  const { answer } = accumulateResponses(
    translateStream(translator, [chunk("a"), chunk("b", "stop"), "[DONE]"]),
  );
  const plain = translator.answer({
    id: "chatcmpl-1",
    created: 1_760_000_000,
    choices: [{
      index: 0,
      message: { role: "assistant", content: "ab" },
      logprobs: { content: [chatLogprob("a"), chatLogprob("b")], refusal: null },
      finish_reason: "stop",
    }],
  }, answerContext());
  assertEquals(plain.ok && JSON.parse(JSON.stringify(plain.body)), answer);
  const part = (answer!.output as Loose[])[0]!.content[0];
  assertEquals(part.logprobs, [chatLogprob("a"), chatLogprob("b")]);
});

// ---- endings and noise of Responses upstreams

const quiet: { name: string; events: (JsonObject | string)[] }[] = [
  {
    name: "Codex's own events (B069)",
    events: [{ type: "codex.rate_limits", rate_limits: {} }, { type: "codex.response.metadata" }],
  },
  { name: "keepalives", events: [{ type: "keepalive" }] },
  { name: "null data", events: ["null"] },
  {
    name: "progress of hosted tools",
    events: [{ type: "response.web_search_call.searching", output_index: 9 }],
  },
  { name: "a second opening", events: [created] },
];
for (const { name, events } of quiet) {
  Deno.test(`a chat client hears nothing of ${name}`, () => {
    const translator = translatorFor("chat", "responses")!;
    const bare = [created, delta("hi"), completed()];
    const noisy = [created, ...events, delta("hi"), ...events, completed()];
    assertEquals(translateStream(translator, noisy), translateStream(translator, bare));
  });
}

const endings: { name: string; event: JsonObject; code: string | null }[] = [
  { name: "response.completed", event: completed(), code: null },
  { name: "response.done", event: { ...completed(), type: "response.done" }, code: null },
  {
    name: "response.done of a failed response",
    event: {
      type: "response.done",
      response: { status: "failed", error: { code: "server_error", message: "m" } },
    },
    code: "server_error",
  },
  {
    name: "a nested error",
    event: { type: "error", error: { code: "slow_down", message: "m" } },
    code: "slow_down",
  },
  {
    name: "a flat error",
    event: { type: "error", code: "server_error", message: "m" },
    code: "server_error",
  },
];
for (const client of ["chat", "messages"] as const) {
  for (const { name, event, code } of endings) {
    Deno.test(`a ${client} client hears one end of ${name}, whatever follows`, () => {
      const translator = translatorFor(client, "responses")!;
      const told = translateStream(translator, [created, delta("hi"), event, completed(), event]);
      const { answer, error } = client === "chat" ? accumulateChat(told) : accumulateMessages(told);
      assertEquals([answer === null, error === null], [code !== null, code === null]);
      if (client === "chat") assertEquals(error?.code ?? null, code);
    });
  }
}

Deno.test("an Anthropic client gets interleaved calls of a Responses upstream one after the other (B105)", () => {
  const call = (index: number, name: string, args: string) => ({
    type: "function_call",
    id: `fc_${index}`,
    call_id: `call_${index}`,
    name,
    arguments: args,
  });
  const added = (index: number, item: JsonObject) => ({
    type: "response.output_item.added",
    output_index: index,
    item: { ...item, arguments: "" },
  });
  const piece = (index: number, delta: string) => ({
    type: "response.function_call_arguments.delta",
    output_index: index,
    item_id: `fc_${index}`,
    delta,
  });
  const [f, g] = [call(0, "f", '{"a":1}'), call(1, "g", '{"b":2}')];
  const { answer } = accumulateMessages(translateStream(translatorFor("messages", "responses")!, [
    created,
    added(0, f!),
    added(1, g!),
    piece(0, '{"a"'),
    piece(1, '{"b"'),
    piece(0, ":1}"),
    piece(1, ":2}"),
    { type: "response.output_item.done", output_index: 1, item: g },
    { type: "response.output_item.done", output_index: 0, item: f },
    completed(),
  ]));
  const blocks = (answer!.content as Loose[]).map(({ id, name, input }) => [id, name, input]);
  assertEquals(blocks, [["call_0", "f", { a: 1 }], ["call_1", "g", { b: 2 }]]);
});

// ---- what Anthropic hosts leave out or add

const start = { type: "message_start", message: { id: "msg_1", content: [] } };
const stop = [{ type: "message_delta", delta: { stop_reason: "tool_use" } }, { type: "message_stop" }];

Deno.test("a tool's input that came with its opening counts when no pieces follow", () => {
  const block = { type: "tool_use", id: "toolu_1", name: "f", input: { a: 1 } };
  const events = [
    start,
    { type: "content_block_start", index: 0, content_block: block },
    { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: "" } },
    { type: "content_block_stop", index: 0 },
    ...stop,
  ];
  const { answer } = accumulateResponses(translateStream(translatorFor("responses", "messages")!, events));
  assertEquals((answer!.output as Loose[])[0]!.arguments, '{"a":1}');
});

Deno.test("an Anthropic stream that ends without message_stop is told as incomplete", () => {
  const told = translateStream(translatorFor("responses", "messages")!, [start, stop[0]!]);
  assertEquals(accumulateResponses(told).error?.code, "stream_incomplete");
});

Deno.test("an overload as the first event is told in Codex's words", () => {
  const event = { type: "error", error: { type: "overloaded_error", message: "Overloaded", details: null } };
  const stream = translatorFor("responses", "messages")!.startStream(answerContext());
  const told = translateStream({ ...translatorFor("responses", "messages")!, startStream: () => stream }, [
    event,
  ]);
  assertEquals(accumulateResponses(told).error, { code: "server_is_overloaded", message: "Overloaded" });
  assertEquals(stream.problem?.kind === "in_stream" && stream.problem.error.type, "overloaded_error");
});

// ---- lanes

Deno.test("Lanes put out every event once, lane after lane, in the order of their opening", () => {
  const step = fc.record({ lane: fc.nat(3), close: fc.boolean() });
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const lanes = new Lanes<string>();
    const open = [lanes.open(), lanes.open(), lanes.open(), lanes.open()];
    const wanted: string[][] = [[], [], [], []];
    const out: string[] = [];
    steps.forEach(({ lane, close }, n) => {
      if (open[lane]!.closed) return;
      open[lane]!.emit(`${lane}:${n}`);
      wanted[lane]!.push(`${lane}:${n}`);
      if (close) open[lane]!.close();
      out.push(...lanes.take());
    });
    for (const lane of open) lane.close();
    out.push(...lanes.take());
    assertEquals(out, wanted.flat());
  }));
});
