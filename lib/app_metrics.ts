/** Wires what is counted, what is read at a scrape, and the meter of the event loop, to `/metrics`. */
import { addGauges, type GaugeSources } from "./proxy/metrics_gauges.ts";
import { createMetricsRoute, type MetricsRouteDeps } from "./proxy/metrics_route.ts";
import type { Metrics } from "./proxy/metrics.ts";
import { type LagMeter, startLagMeter } from "./runtime/lag_meter.ts";
import type { Answer } from "./proxy/answer.ts";
import type { ClientRequest } from "./proxy/client_request.ts";

/** One timer tick late is 20 ms of our own clock; beyond a second clients notice. */
const LAG_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

export interface MetricsEndpoint {
  answer(request: ClientRequest): Answer;
  close(): void;
}

export function openMetrics(
  { registry }: Metrics,
  sources: Omit<GaugeSources, "residentBytes">,
  access: Omit<MetricsRouteDeps, "render">,
): MetricsEndpoint {
  addGauges(registry, { ...sources, residentBytes: () => Deno.memoryUsage().rss });
  const lag = registry.histogram(
    "holdfast_event_loop_lag_seconds",
    "How late timers fire, measured four times a second from the first scrape on",
    [],
    LAG_SECONDS,
  );
  let meter: LagMeter | null = null;
  let isClosed = false;
  const route = createMetricsRoute({
    ...access,
    render: () => {
      // Nobody who does not scrape pays for it.
      if (!isClosed) meter ??= startLagMeter((seconds) => lag.observe(seconds));
      return registry.render();
    },
  });
  return {
    answer: route,
    close() {
      isClosed = true;
      meter?.stop();
    },
  };
}
