import { assertEquals } from "@std/assert";
import type { DecisionRecord } from "../../lib/core/decision.ts";
import { type RequestSpan, traceDecision } from "../../lib/proxy/trace_spans.ts";
import { openTracer } from "../../lib/runtime/tracer.ts";

const RECORD: DecisionRecord = {
  requestId: "req_1",
  atMs: 1_000,
  route: "responses",
  model: "m1",
  tenant: "user:1",
  status: 429,
  code: "rate_limited",
  rule: "all_limited",
  rounds: 2,
  endedAtMs: 9_000,
  waits: [{ fromMs: 2_000, untilMs: 4_000, reason: "cooldown" }],
  candidates: [],
  attempts: [{
    id: "req_1#1",
    account: "codex:a",
    provider: "codex",
    model: "m1",
    round: 1,
    cause: "first",
    probe: "none",
    startedAtMs: 1_100,
    endedAtMs: 1_900,
    outcome: "limited:usage_limit_reached",
    status: 429,
    row: 20,
  }],
  notes: [],
  movedTo: null,
};

function trace(record: DecisionRecord): { span: RequestSpan; children: readonly RequestSpan[] } {
  const seen: { span: RequestSpan; children: readonly RequestSpan[] }[] = [];
  traceDecision({ record: (span, children) => void seen.push({ span, children }) }, record);
  assertEquals(seen.length, 1);
  return seen[0]!;
}

Deno.test("traceDecision() gives one span a request, its attempts as children, its waits as events", () => {
  const { span, children } = trace(RECORD);
  assertEquals([span.name, span.kind, span.startMs, span.endMs, span.error], [
    "request responses",
    "server",
    1_000,
    9_000,
    "rate_limited",
  ]);
  assertEquals([span.attributes["holdfast.request_id"], span.attributes["http.response.status_code"]], [
    "req_1",
    429,
  ]);
  assertEquals(span.events, [
    { name: "wait", atMs: 2_000, attributes: { "holdfast.reason": "cooldown", "holdfast.wait_ms": 2_000 } },
  ]);
  const [attempt] = children;
  assertEquals([
    children.length,
    attempt?.name,
    attempt?.kind,
    attempt?.startMs,
    attempt?.endMs,
    attempt?.error,
  ], [
    1,
    "attempt codex",
    "client",
    1_100,
    1_900,
    "limited",
  ]);
  assertEquals(attempt?.attributes["holdfast.outcome"], "limited");
});

const results = [
  { name: "a success", change: { status: 200, code: null, rule: null }, want: null },
  { name: "a client that left", change: { status: 0, code: "client_gone" }, want: null },
  {
    name: "a fault of the request, in the upstream's words",
    change: { status: 400, code: "SENT-word" },
    want: "relayed",
  },
] as const;
for (const c of results) {
  Deno.test(`traceDecision() calls ${c.name} ${c.want ?? "no error"}`, () => {
    const { span } = trace({ ...RECORD, ...c.change });
    assertEquals(span.error, c.want);
    assertEquals(JSON.stringify(span).includes("SENT-"), false);
  });
}

for (
  const [value, isOn] of [[undefined, false], ["", false], ["false", false], ["true", true], [
    "1",
    true,
  ]] as const
) {
  Deno.test(`openTracer() ${isOn ? "traces" : "is nothing"} with OTEL_DENO=${value}`, () => {
    assertEquals(openTracer("0", () => value) !== null, isOn);
  });
}
