import { assert, assertEquals } from "@std/assert";
import { responsesDialect } from "../../lib/protocol/responses.ts";
import { type AggregateResult, ResponsesAggregator } from "../../lib/protocol/responses_aggregate.ts";
import { bytesOf, event, frameAll } from "./frames.ts";

const HEADERS = new Headers({ "retry-after": "7" });

function aggregate(stream: string, maxBytes?: number): AggregateResult {
  const aggregator = new ResponsesAggregator(HEADERS, maxBytes);
  for (const frame of frameAll([bytesOf(stream)]).frames) {
    aggregator.add(frame, responsesDialect.readEvent(frame));
  }
  return aggregator.result();
}

const CREATED = event("response.created", { response: { id: "r1", status: "in_progress", output: [] } });
const DELTA = event("response.output_text.delta", { output_index: 0, delta: "x" });
const item = (id: string, index?: number) =>
  event("response.output_item.done", {
    ...(index === undefined ? {} : { output_index: index }),
    item: { id },
  });
const completed = (
  output?: unknown[],
  type = "response.completed",
  status: string | undefined = "completed",
) =>
  event(type, {
    response: {
      id: "r1",
      object: "response",
      ...(status && { status }),
      ...(output && { output }),
      usage: { input_tokens: 3 },
    },
  });

const answers: { name: string; stream: string; output: string[]; status?: string }[] = [
  { name: "items for an empty list", stream: CREATED + DELTA + item("a", 0) + completed([]), output: ["a"] },
  { name: "items for a missing list", stream: CREATED + item("a", 0) + completed(), output: ["a"] },
  {
    name: "items by output_index",
    stream: item("c", 2) + item("a", 0) + item("b", 1) + completed([]),
    output: ["a", "b", "c"],
  },
  {
    name: "items in their order without output_index",
    stream: item("a") + item("b") + completed([]),
    output: ["a", "b"],
  },
  {
    name: "the later of two for one place",
    stream: item("a", 0) + item("b", 0) + completed([]),
    output: ["b"],
  },
  { name: "the terminal's own list", stream: item("a", 0) + completed([{ id: "own" }]), output: ["own"] },
  { name: "a legal empty answer (B121)", stream: CREATED + completed([]), output: [] },
  { name: "the terminal alone", stream: completed([{ id: "own" }]), output: ["own"] },
  { name: "response.done", stream: item("a", 0) + completed([], "response.done"), output: ["a"] },
  {
    name: "an incomplete answer",
    stream: CREATED + DELTA + item("a", 0) + completed([], "response.incomplete", "incomplete"),
    output: ["a"],
    status: "incomplete",
  },
  {
    name: "an incomplete answer that finished no item",
    stream: DELTA + completed([], "response.incomplete", ""),
    output: [],
    status: "incomplete",
  },
  {
    name: "a terminal without status",
    stream: completed([{ id: "own" }], "response.completed", ""),
    output: ["own"],
  },
  {
    name: "padding, comments, private events and [DONE]",
    stream: ": x\n\ndata: null\n\n" + event("codex.rate_limits") + item("a", 0) + completed([]) +
      "data: [DONE]\n\n" + event("codex.rate_limits"),
    output: ["a"],
  },
];
for (const c of answers) {
  Deno.test(`ResponsesAggregator gives ${c.name}`, () => {
    const result = aggregate(c.stream);
    assert(result.ok);
    const json = (result as AggregateResult & { ok: true }).json;
    assertEquals((json["output"] as { id: string }[]).map(({ id }) => id), c.output);
    assertEquals([json["id"], json["status"], json["usage"]], ["r1", c.status ?? "completed", {
      input_tokens: 3,
    }]);
  });
}

const refusals: { name: string; stream: string; maxBytes?: number; want: string }[] = [
  { name: "no event at all", stream: "", want: "malformed no_event" },
  { name: "padding only", stream: "data: null\n\n", want: "malformed no_event" },
  { name: "no terminal", stream: CREATED + item("a", 0), want: "incomplete" },
  {
    name: "output after the terminal",
    stream: completed([]) + item("a", 0),
    want: "malformed data_after_terminal",
  },
  { name: "two terminals", stream: completed([]) + completed([]), want: "malformed data_after_terminal" },
  { name: "bad JSON", stream: CREATED + "data: {bad\n\n" + completed([]), want: "malformed bad_event_data" },
  {
    name: "an item that is none",
    stream: event("response.output_item.done", { item: 3 }) + completed([]),
    want: "malformed bad_event_data",
  },
  {
    name: "an item of bad JSON",
    stream: 'data: {"type":"response.output_item.done","item":{x}}\n\n' + completed([]),
    want: "malformed bad_event_data",
  },
  {
    name: "a terminal without its response",
    stream: event("response.completed"),
    want: "malformed bad_event_data",
  },
  {
    name: "text of which no item tells",
    stream: CREATED + DELTA + completed([]),
    want: "malformed items_missing",
  },
  {
    name: "more than the limit",
    stream: item("a", 0) + item("b", 1) + completed([]),
    maxBytes: 150,
    want: "malformed answer_too_large",
  },
];
for (const c of refusals) {
  Deno.test(`ResponsesAggregator refuses ${c.name}`, () => {
    const result = aggregate(c.stream, c.maxBytes);
    assert(!result.ok);
    const { evidence } = result as AggregateResult & { ok: false };
    assertEquals(evidence.kind === "malformed" ? `malformed ${evidence.detail}` : evidence.kind, c.want);
  });
}

Deno.test("ResponsesAggregator gives a failure as evidence from inside the stream, with the answer's headers (B044)", () => {
  const failed = event("response.failed", {
    response: { error: { code: "rate_limit_exceeded", message: "Please try again in 11s" } },
  });
  const result = aggregate(CREATED + item("a", 0) + failed) as AggregateResult & { ok: false };
  assert(!result.ok && result.evidence.kind === "in_stream");
  const { error, headers } = result.evidence as typeof result.evidence & { kind: "in_stream" };
  assertEquals([error.code, error.message, headers.get("retry-after")], [
    "rate_limit_exceeded",
    "Please try again in 11s",
    "7",
  ]);
});

Deno.test("ResponsesAggregator keeps numbers, strings and order of fields as JSON does", () => {
  const content = { id: "a", text: 'é🚀\u2028"\\', n: 0.1, big: 9007199254740991, z: null, list: [1, [2]] };
  const stream = event("response.output_item.done", { output_index: 0, item: content }) +
    event("response.completed", { response: { zeta: 1, output: [], status: "completed", alpha: [true] } });
  const { json } = aggregate(stream) as AggregateResult & { ok: true };
  assertEquals(
    JSON.stringify(json),
    JSON.stringify({ zeta: 1, output: [content], status: "completed", alpha: [true] }),
  );
});
