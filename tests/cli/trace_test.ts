/** Deno's own OpenTelemetry, collected for real: every request of the demo is a span with its attempts below. */
import { assert, assertEquals } from "@std/assert";
import { fileURLToPath } from "node:url";

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
}

Deno.test("with OTEL_DENO=true each request is one span, and its attempts are children of it", async () => {
  const spans: Span[] = [];
  let received = "";
  await using collector = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    async (request) => {
      const text = await request.text();
      received += text;
      if (new URL(request.url).pathname === "/v1/traces") {
        // deno-lint-ignore no-explicit-any -- the collector's protocol, read as far as needed
        const { resourceSpans } = JSON.parse(text) as any;
        for (const { scopeSpans } of resourceSpans) {
          for (const { scope, spans: some } of scopeSpans) if (scope.name === "holdfast") spans.push(...some);
        }
      }
      return Response.json({});
    },
  );
  const main = fileURLToPath(new URL("../../main.ts", import.meta.url));
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", main, "demo", "--json"],
    env: {
      OTEL_DENO: "true",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.addr.port}`,
    },
  }).output();
  assertEquals(code, 0);
  const { scenes } = JSON.parse(new TextDecoder().decode(stdout));
  const requests = spans.filter(({ name }) => name === "request responses");
  assertEquals(requests.length, scenes.length);
  const wanted = scenes.map((scene: { decision: { attempts: unknown[] } }) => scene.decision.attempts.length);
  const children = requests.map(({ spanId, traceId }) =>
    spans.filter((span) => span.parentSpanId === spanId && span.traceId === traceId).length
  );
  assertEquals(children.toSorted(), wanted.toSorted());
  assert(!received.includes("hf_demo_key"));
});
