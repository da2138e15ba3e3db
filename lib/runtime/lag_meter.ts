/**
 * How late the event loop is: a timer that should have fired already tells what everybody else waits, too.
 */
const INTERVAL_MS = 250;

export interface LagMeter {
  stop(): void;
}

/**
 * Measures four times a second until stopped.
 *
 * @param observe  called with the lateness in seconds; timers are whole ms, so up to 1 ms of it is theirs.
 */
export function startLagMeter(observe: (lagSeconds: number) => void): LagMeter {
  let dueMs = performance.now() + INTERVAL_MS;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    observe(Math.max(0, nowMs - dueMs) / 1_000);
    dueMs = nowMs + INTERVAL_MS;
  }, INTERVAL_MS);
  return { stop: () => clearInterval(timer) };
}
