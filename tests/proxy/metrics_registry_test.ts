import { assert, assertEquals, assertThrows } from "@std/assert";
import { MetricsRegistry, SERIES_LIMIT } from "../../lib/proxy/metrics_registry.ts";

Deno.test("render() writes counters, gauges and histograms as Prometheus reads them", () => {
  const registry = new MetricsRegistry();
  const requests = registry.counter("a_total", "Requests", ["route", "result"]);
  requests.inc(["x", "ok"]);
  requests.inc(["x", "ok"], 2);
  requests.inc(["y", "ok"]);
  registry.gauge("b", "Now", [], (gauge) => gauge.set(1.5));
  const seconds = registry.histogram("c_seconds", "Time", ["route"], [0.1, 1]);
  for (const value of [0.1, 0.100001, 7]) seconds.observe(value, ["x"]);
  assertEquals(
    registry.render(),
    `# HELP a_total Requests
# TYPE a_total counter
a_total{route="x",result="ok"} 3
a_total{route="y",result="ok"} 1
# HELP b Now
# TYPE b gauge
b 1.5
# HELP c_seconds Time
# TYPE c_seconds histogram
c_seconds_bucket{route="x",le="0.1"} 1
c_seconds_bucket{route="x",le="1"} 2
c_seconds_bucket{route="x",le="+Inf"} 3
c_seconds_sum{route="x"} 7.200001
c_seconds_count{route="x"} 3
`,
  );
});

Deno.test("render() escapes what would break a line", () => {
  const registry = new MetricsRegistry();
  registry.counter("a_total", "One\\two\nlines", ["x"]).inc(['say "hi"\\\n']);
  assertEquals(registry.render().split("\n").slice(0, 3), [
    "# HELP a_total One\\\\two\\nlines",
    "# TYPE a_total counter",
    'a_total{x="say \\"hi\\"\\\\\\n"} 1',
  ]);
});

Deno.test("a gauge says only what is so at this scrape", () => {
  const registry = new MetricsRegistry();
  let states = ["healthy", "healthy", "cooling"];
  registry.gauge("accounts", "", ["state"], (gauge) => states.forEach((state) => gauge.add(1, [state])));
  assert(registry.render().includes('accounts{state="healthy"} 2\naccounts{state="cooling"} 1\n'));
  states = ["cooling"];
  assertEquals(registry.render().split("\n").filter((line) => line.startsWith("accounts{")), [
    'accounts{state="cooling"} 1',
  ]);
});

Deno.test("a metric never has more series than its bound: further labels are counted together", () => {
  const registry = new MetricsRegistry();
  const counter = registry.counter("a_total", "", ["id"]);
  const histogram = registry.histogram("b", "", ["id"], [1]);
  for (let id = 0; id < SERIES_LIMIT + 5; id++) {
    counter.inc([`id-${id}`]);
    histogram.observe(1, [`id-${id}`]);
  }
  const lines = registry.render().split("\n");
  assertEquals(lines.filter((line) => line.startsWith("a_total{")).length, SERIES_LIMIT + 1);
  assertEquals(lines.filter((line) => line.startsWith('a_total{id="other"}')), ['a_total{id="other"} 5']);
  assertEquals(lines.filter((line) => line.startsWith("b_count{")).length, SERIES_LIMIT + 1);
});

Deno.test("a counter's name ends in _total, and no name is used twice", () => {
  const registry = new MetricsRegistry();
  assertThrows(() => registry.counter("requests", ""), RangeError);
  registry.counter("requests_total", "");
  assertThrows(() => registry.histogram("requests_total", "", [], []), RangeError);
});
