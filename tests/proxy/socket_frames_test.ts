/** What is read off frames on their way, and which few are touched. */
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { type EndedTurn, SocketFrames, type SocketFramesOptions } from "../../lib/proxy/socket_frames.ts";

function watch(options: Partial<SocketFramesOptions> = {}) {
  const turns: EndedTurn[] = [];
  const quotas: unknown[] = [];
  let nowMs = 1_000;
  const frames = new SocketFrames({
    dialect: "responses",
    openedAtMs: 1_000,
    now: () => nowMs,
    upstreamModel: (model) => model === "alias" ? "gpt-5.5" : model === "foreign" ? null : model,
    moved: false,
    onTurn: (turn) => turns.push(turn),
    onQuota: (quota) => quotas.push(quota),
    ...options,
  });
  return { frames, turns, quotas, at: (ms: number) => nowMs = ms };
}

const create = (fields: Record<string, unknown> = {}) =>
  JSON.stringify({ type: "response.create", model: "m1", ...fields });

Deno.test("SocketFrames forwards every text as it came when nothing of it must change", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.json(), fc.jsonValue().map((value) => create({ value }))),
      (text) => {
        const { frames } = watch();
        assertEquals(frames.fromClient(text), { kind: "forward", text });
        frames.fromUpstream(text);
      },
    ),
  );
});

Deno.test("SocketFrames changes the model's bytes alone", () => {
  const { frames } = watch();
  const text = '{"input": ["\\u00e9", 1e2],  "model" : "alias", "type":"response.create" }';
  assertEquals(frames.fromClient(text), { kind: "forward", text: text.replace('"alias"', '"gpt-5.5"') });
});

Deno.test("SocketFrames answers a turn for another provider's model itself, and no turn begins", () => {
  const { frames } = watch();
  const frame = frames.fromClient(create({ model: "foreign" }));
  assertEquals(frame.kind, "answer");
  const json = JSON.parse(frame.text);
  assertEquals([json.type, json.status, json.error.code, json.error.param], [
    "error",
    400,
    "model_not_found",
    "model",
  ]);
  assertEquals(frames.isBusy, false);
});

Deno.test("SocketFrames times a turn from the client's frame to its terminal", () => {
  const { frames, turns, at } = watch();
  at(5_000);
  frames.fromClient(create({ reasoning: { effort: "high" } }));
  assertEquals(frames.isBusy, true);
  frames.fromUpstream('{"type":"response.output_text.delta","delta":"\\"response.completed\\""}');
  assertEquals([frames.isBusy, turns], [true, []]);
  at(9_000);
  const usage = { input_tokens: 7, output_tokens: 3 };
  frames.fromUpstream(JSON.stringify({ type: "response.completed", response: { id: "r1", usage } }));
  assertEquals(frames.isBusy, false);
  const [turn] = turns;
  assertEquals([turn!.startedAtMs, turn!.model, turn!.effort, turn!.evidence], [5_000, "m1", "high", {
    kind: "success",
  }]);
  assertEquals([turn!.usage?.inputTokens, turn!.usage?.outputTokens], [7, 3]);
});

const terminals = [
  { name: "response.done", frame: { type: "response.done", response: { id: "r" } }, want: "success" },
  {
    name: "response.incomplete",
    frame: { type: "response.incomplete", response: { id: "r" } },
    want: "success",
  },
  {
    name: "response.done of a failed response",
    frame: { type: "response.done", response: { status: "failed", error: { code: "x" } } },
    want: "in_stream",
  },
  {
    name: "response.failed",
    frame: { type: "response.failed", response: { error: { code: "server_error" } } },
    want: "in_stream",
  },
  {
    name: "an error with status_code",
    frame: { type: "error", status_code: 429, error: {} },
    want: "in_stream",
  },
  {
    name: "a type that does not lead",
    frame: { response: { id: "r" }, type: "response.completed" },
    want: "success",
  },
];
for (const { name, frame, want } of terminals) {
  Deno.test(`SocketFrames ends a turn at ${name}`, () => {
    const { frames, turns } = watch();
    frames.fromClient(create());
    frames.fromUpstream(JSON.stringify(frame));
    assertEquals(turns.map(({ evidence }) => evidence?.kind), [want]);
  });
}

Deno.test("SocketFrames reads an error frame's status and headers, however their values are typed", () => {
  const { frames, turns } = watch();
  const headers = { "X-Codex-Primary-Used-Percent": 100, "retry-after": "7", flag: true };
  frames.fromUpstream(
    JSON.stringify({ type: "error", status: 429, error: { type: "usage_limit_reached" }, headers }),
  );
  const { evidence, startedAtMs } = turns[0]!;
  if (evidence?.kind !== "in_stream") throw new Error("The frame was no failure");
  assertEquals([evidence.error.status, evidence.error.type, startedAtMs], [
    429,
    "usage_limit_reached",
    1_000,
  ]);
  assertEquals(
    ["x-codex-primary-used-percent", "Retry-After", "flag"].map((header) => evidence.headers.get(header)),
    ["100", "7", "true"],
  );
});

Deno.test("SocketFrames counts one end for each turn", () => {
  const { frames, turns } = watch();
  frames.fromClient(create());
  frames.fromUpstream('{"type":"error","error":{"code":"server_error"}}');
  frames.fromUpstream('{"type":"response.failed","response":{"error":{"code":"server_error"}}}');
  assertEquals(turns.length, 1);
  frames.fromClient(create());
  frames.fromUpstream('{"type":"response.completed","response":{"id":"r"}}');
  assertEquals(turns.length, 2);
});

Deno.test("SocketFrames lets a moved conversation name only answers of this socket, the last 64", () => {
  const { frames } = watch({ moved: true });
  assertEquals(frames.fromClient(create({ previous_response_id: "r0" })).kind, "answer");
  for (let index = 1; index <= 65; index++) {
    frames.fromClient(create());
    frames.fromUpstream(JSON.stringify({ type: "response.completed", response: { id: `r${index}` } }));
  }
  assertEquals(frames.fromClient(create({ previous_response_id: "r1" })).kind, "answer");
  assertEquals(frames.fromClient(create({ previous_response_id: "r2" })).kind, "forward");
  const stayed = watch();
  assertEquals(stayed.frames.fromClient(create({ previous_response_id: "r0" })).kind, "forward");
});

Deno.test("SocketFrames of a realtime call: nothing is held against the account but a stated status", () => {
  const { frames, turns } = watch({ dialect: "realtime" });
  frames.fromUpstream('{"type":"error","error":{"type":"invalid_request_error","code":"bad"}}');
  assertEquals(turns, []);
  frames.fromUpstream(
    '{"type":"response.done","response":{"status":"failed","usage":{"input_tokens":4,"output_tokens":2}}}',
  );
  assertEquals([turns[0]!.evidence, turns[0]!.usage?.inputTokens], [null, 4]);
  frames.fromUpstream('{"type":"error","status":429,"error":{"type":"usage_limit_reached"}}');
  assertEquals(turns[1]!.evidence?.kind, "in_stream");
  assertEquals(frames.fromClient(create({ model: "foreign" })).kind, "forward");
});
