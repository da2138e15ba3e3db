/**
 * Ends an attempt that gets no response head in time (design.md ruling 16).
 *
 * First the connect limit, at which a probe tells connecting from waiting; then the first-byte limit. One scheduled
 * call at a time, none left behind.
 */
import type { Clock, Scheduled, UpstreamRequest } from "../ports.ts";
import { canConnect, type Endpoint, PROBE_LIMIT_MS } from "./connect_probe.ts";
import type { EgressProxy } from "./egress_proxy.ts";
import { AttemptEnded } from "./transport_error.ts";

export interface WatchedWay {
  readonly proxy: EgressProxy | null;
  /** What a connect probe knocks at. */
  readonly endpoint: Endpoint;
}

export class HeadWatch {
  readonly #clock: Clock;
  readonly #way: WatchedWay;
  readonly #controller: AbortController;
  readonly #firstByteAtMs: number;
  #probing: AbortController | null = null;
  #scheduled: Scheduled | null = null;
  #stopped = false;

  constructor(clock: Clock, request: UpstreamRequest, way: WatchedWay, controller: AbortController) {
    this.#clock = clock;
    this.#way = way;
    this.#controller = controller;
    const nowMs = clock.now();
    this.#firstByteAtMs = request.firstByteTimeoutMs === 0 ? Infinity : nowMs + request.firstByteTimeoutMs;
    const connectAtMs = nowMs + request.connectTimeoutMs;
    if (connectAtMs < this.#firstByteAtMs) {
      this.#scheduled = clock.schedule(connectAtMs, () => void this.#probe());
    } else {
      this.#awaitFirstByte();
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#scheduled?.cancel();
    this.#probing?.abort();
  }

  async #probe(): Promise<void> {
    this.#awaitFirstByte();
    this.#probing = new AbortController();
    const connected = await canConnect(this.#way.endpoint, PROBE_LIMIT_MS, this.#clock, this.#probing.signal);
    if (!connected) this.#end(this.#way.proxy === null ? "connect_timeout" : "egress_proxy");
  }

  #awaitFirstByte(): void {
    if (this.#firstByteAtMs === Infinity) return;
    this.#scheduled = this.#clock.schedule(this.#firstByteAtMs, () => this.#end("first_byte_timeout"));
  }

  #end(cause: "connect_timeout" | "egress_proxy" | "first_byte_timeout"): void {
    if (this.#stopped) return;
    this.stop();
    this.#controller.abort(new AttemptEnded({ kind: "transport", cause, pooled: false }));
  }
}
