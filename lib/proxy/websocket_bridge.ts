/**
 * Two open WebSockets joined: frames in order, close codes as they came, neither side outliving the other.
 *
 * The upstream is held back while the client is slow; the client cannot be held back, so its frames wait in a
 * bounded queue. Nothing is ever sent twice: what breaks after the upgrade ends both sides.
 */
import type { Clock, Scheduled, UpstreamSocket } from "../ports.ts";
import { type ClientSocket, isSendableCode } from "./client_socket.ts";
import type { ClientFrame } from "./socket_frames.ts";
import type { Traffic } from "./traffic.ts";
import { UpstreamFlow } from "./socket_flow.ts";

/** Silence after which the upstream is pinged; middle boxes drop connections after a minute of it. */
export const PING_MS = 25_000;
/** A client is pinged after half of this and gone after all of it. */
export const CLIENT_SILENCE_MS = 50_000;
/** Largest message of a client, and most that may wait for the upstream; the same as for bodies. */
export const CLIENT_QUEUE_BYTES = 33_554_432;
/** An upgrade the client did not see within this time is lost. */
const OPEN_LIMIT_MS = 10_000;
/** After our close the other side may still say its own; then it is not waited for any longer. */
const CLOSE_LIMIT_MS = 2_000;

const NO_STATUS = 1005;
const GOING_AWAY = 1001;
const TOO_BIG = 1009;
const BROKEN = 1011;
const TRY_LATER = 1013;

export type BridgeEnd =
  | { readonly by: "client" }
  | { readonly by: "upstream"; readonly clean: boolean }
  | {
    readonly by: "proxy";
    readonly why:
      | "shutting_down"
      | "client_too_fast"
      | "client_stalled"
      | "upstream_silent"
      | "message_too_big";
  };

/** Looks at frames on their way. */
export interface FrameWatch {
  readonly isBusy: boolean;
  fromClient(text: string): ClientFrame;
  /** @returns whether it may be an end or an error. */
  fromUpstream(text: string): boolean;
}

export interface BridgeOptions {
  readonly clock: Clock;
  readonly client: ClientSocket;
  readonly upstream: UpstreamSocket;
  readonly frames: FrameWatch;
  readonly traffic?: Traffic;
  /** Takes out of the upstream's words what the account had to show it. */
  readonly hide: (text: string) => string;
  /** Ends both sides at once, with 1001. */
  readonly signal: AbortSignal;
  /** Called once, as soon as one side is over. */
  readonly onEnd: (end: BridgeEnd) => void;
  /** Called once, when the client's side is closed as well, or will not be. */
  readonly onClosed: () => void;
}

export class WebSocketBridge {
  readonly #options: BridgeOptions;
  readonly #flow: UpstreamFlow;
  #state: "opening" | "open" | "over" = "opening";
  /** Close as soon as no turn is under way. */
  #draining = false;
  /** A ping went out, and nothing was heard since. */
  #isWaiting = false;
  #backlogBytes = 0;
  #timer: Scheduled;
  #upstreamLimit: Scheduled | null = null;
  #isClosed = false;

  constructor(options: BridgeOptions) {
    this.#options = options;
    const { client, clock, upstream, signal } = options;
    this.#flow = new UpstreamFlow(clock, client, upstream, () => this.#stop("client_stalled", TRY_LATER));
    client.onopen = () => this.#open();
    client.onmessage = (event) => this.#fromClient(event.data);
    client.onerror = () => this.#clientGone(0, "");
    client.onclose = (event) => this.#clientGone(event.wasClean ? event.code : 0, event.reason);
    this.#timer = clock.schedule(clock.now() + OPEN_LIMIT_MS, () => this.#clientGone(0, ""));
    signal.addEventListener("abort", this.#onAbort, { once: true });
    if (signal.aborted) this.#onAbort();
  }

  /** Ends the socket with 1001 as soon as no turn is under way: at once when it is idle. */
  drain(): void {
    this.#draining = true;
    this.#closeWhenIdle();
  }

  #open(): void {
    const { client, clock, upstream } = this.#options;
    if (this.#state === "over") return client.close(GOING_AWAY);
    this.#state = "open";
    this.#timer.cancel();
    this.#timer = clock.schedule(clock.now() + PING_MS, () => this.#checkUpstream());
    // What arrived since the handshake comes now, in order.
    upstream.listen({
      frame: (data) => this.#fromUpstream(data),
      ping: this.#heard,
      pong: this.#heard,
      drain: this.#heard,
      close: (code, reason, clean) => this.#upstreamClosed(code, reason, clean),
    });
    this.#closeWhenIdle();
  }

  #fromClient(data: string | ArrayBuffer): void {
    if (this.#state !== "open") return;
    const { client, frames, traffic, upstream } = this.#options;
    const length = typeof data === "string" ? data.length : data.byteLength;
    if (length > CLIENT_QUEUE_BYTES) return this.#stop("message_too_big", TOO_BIG);
    if (traffic !== undefined) traffic.bytesFromClients += length;
    if (typeof data !== "string") upstream.send(new Uint8Array(data));
    else {
      const frame = frames.fromClient(data);
      if (frame.kind === "answer") return client.send(frame.text);
      upstream.send(frame.text);
    }
    if (upstream.bufferedAmount > CLIENT_QUEUE_BYTES) this.#stop("client_too_fast", TRY_LATER);
  }

  #fromUpstream(data: string | Uint8Array): void {
    this.#heard();
    if (this.#state !== "open") return;
    const { client, frames, traffic } = this.#options;
    if (traffic !== undefined) traffic.bytesToClients += data.length;
    // A deadline is on disk before the client hears of it.
    const mayEcho = typeof data === "string" && frames.fromUpstream(data);
    client.send(mayEcho ? this.#options.hide(data) : data as string | Uint8Array<ArrayBuffer>);
    this.#flow.sent(data.length);
    this.#closeWhenIdle();
  }

  // ------------------------------------------------------------ who is still there

  readonly #heard = (): void => void (this.#isWaiting = false);

  #checkUpstream(): void {
    const { clock, upstream } = this.#options;
    const nowMs = clock.now();
    // Nothing can be heard while it is held back; bytes that leave prove as much as bytes that come.
    const { bufferedAmount } = upstream;
    if (this.#flow.isPaused || bufferedAmount < this.#backlogBytes) this.#isWaiting = false;
    this.#backlogBytes = bufferedAmount;
    if (this.#isWaiting) return this.#stop("upstream_silent", BROKEN);
    this.#isWaiting = true;
    upstream.ping();
    this.#timer = clock.schedule(nowMs + PING_MS, () => this.#checkUpstream());
  }

  // ------------------------------------------------------------ ends

  readonly #onAbort = (): void => this.#stop("shutting_down", GOING_AWAY);

  #closeWhenIdle(): void {
    if (this.#draining && this.#state === "open" && !this.#options.frames.isBusy) {
      this.#stop("shutting_down", GOING_AWAY);
    }
  }

  /** The client closed (`code` as it said), or is lost (0). */
  #clientGone(code: number, reason: string): void {
    this.#closed();
    if (this.#state === "over") return;
    if (code === 0) this.#closeUpstream(GOING_AWAY, "");
    else this.#closeUpstream(code, reason);
    this.#end({ by: "client" });
  }

  #upstreamClosed(code: number, reason: string, clean: boolean): void {
    this.#upstreamLimit?.cancel();
    if (this.#state === "over") return;
    // What the upstream did wrong says nothing to the client: to it the connection broke.
    if (clean) this.#closeClient(code, this.#options.hide(reason));
    else this.#closeClient(BROKEN, "");
    this.#end({ by: "upstream", clean });
  }

  #stop(why: Extract<BridgeEnd, { by: "proxy" }>["why"], code: number): void {
    if (this.#state === "over") return;
    if (why === "upstream_silent") this.#options.upstream.terminate();
    else this.#closeUpstream(GOING_AWAY, "");
    this.#closeClient(code, REASONS[why]);
    this.#end({ by: "proxy", why });
  }

  #closeUpstream(code: number, reason: string): void {
    const { clock, upstream } = this.#options;
    upstream.close(code, reason);
    // Whoever does not answer the close must not keep the turn running.
    this.#upstreamLimit = clock.schedule(clock.now() + CLOSE_LIMIT_MS, () => upstream.terminate());
  }

  #closeClient(code: number, reason: string): void {
    const { client } = this.#options;
    if (code === NO_STATUS) client.close();
    else client.close(isSendableCode(code) ? code : BROKEN, reason);
  }

  #end(end: BridgeEnd): void {
    this.#state = "over";
    this.#timer.cancel();
    this.#flow.stop();
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    if (end.by !== "client") {
      const { clock } = this.#options;
      this.#timer = clock.schedule(clock.now() + CLOSE_LIMIT_MS, () => this.#closed());
    }
    this.#options.onEnd(end);
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer.cancel();
    this.#options.onClosed();
  }
}

const REASONS: Readonly<Record<Extract<BridgeEnd, { by: "proxy" }>["why"], string>> = {
  shutting_down: "The proxy is shutting down",
  client_too_fast: "The upstream takes frames more slowly than they come",
  client_stalled: "The client does not read",
  upstream_silent: "The upstream does not answer",
  message_too_big: "The message is too large",
};
