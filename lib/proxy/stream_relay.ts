/**
 * Holding a stream back until it may be committed, and relaying it afterwards.
 */
import type { Evidence } from "../core/evidence.ts";
import type { ByteSource, Clock, Scheduled } from "../ports.ts";
import { type AnswerStream, joinBytes } from "./answer_stream.ts";
import { HeldBytes } from "./held_bytes.ts";
import { Traffic } from "./traffic.ts";

export interface HoldPolicy {
  /** `output`: the bootstrap hold (ruling 5). `success`: recovery withholds until a terminal success. */
  readonly until: "output" | "success";
  readonly maxEvents: number;
  readonly maxBytes: number;
  /** Absolute end of the hold, UTC epoch ms; Infinity for none. */
  readonly untilMs: number;
  readonly idleMs: number;
  /** Recovery: an event nobody knows lets the stream go, and an unfinished frame counts towards `maxBytes`. */
  readonly guarded?: true;
  /** Somebody else gathers the events as they go by: no bytes are kept. */
  readonly keepsNothing?: true;
  /** Told how many bytes are held back, whenever that changed. */
  readonly onHeld?: (bytes: number) => void;
  /** Called once, at the first output, which the hold may outlast by far. */
  readonly onOutput?: () => void;
}

export type HoldResult =
  | {
    readonly kind: "commit";
    readonly held: Uint8Array<ArrayBuffer>[];
    readonly why: "output" | "success" | "bound" | "overflow" | "unknown_payload";
  }
  | { readonly kind: "failed"; readonly evidence: Evidence; readonly held: Uint8Array<ArrayBuffer>[] };

/** Reads until the policy lets the stream go, or it fails first. Nothing of it has reached the client yet. */
export async function holdStream(
  stream: AnswerStream,
  policy: HoldPolicy,
  clock: Clock,
): Promise<HoldResult> {
  const held = new HeldBytes();
  let heldBytes = 0;
  let sawOutput = false;
  let bound: { promise: Promise<"bound">; scheduled: Scheduled } | null = null;
  const idle = new IdleWatch(
    clock,
    policy.idleMs,
    () => stream.expire({ kind: "transport", cause: "idle_timeout", pooled: false }),
  );
  try {
    for (;;) {
      if (Number.isFinite(policy.untilMs)) {
        bound ??= boundAt(clock, policy.untilMs);
        const first = await Promise.race([
          stream.read().then(() => "read" as const, () => "read" as const),
          bound.promise,
        ]);
        if (first === "bound") return { kind: "commit", held: held.take(), why: "bound" };
      }
      let widestBytes = heldBytes;
      if (stream.terminal === null) {
        const pieces = await stream.take();
        idle.touch();
        widestBytes += stream.widestBytes;
        for (const piece of pieces) {
          heldBytes += piece.length;
          if (policy.keepsNothing !== true) held.add(piece);
        }
      }
      if (stream.sawOutput && !sawOutput) {
        sawOutput = true;
        policy.onOutput?.();
      }
      const released = judgeHold(stream, policy, heldBytes, widestBytes);
      // What passes the bound is on its way to the client: it was never held.
      if (released === null || released === "success") policy.onHeld?.(heldBytes + stream.unfinishedBytes);
      if (released !== null) return { kind: "commit", held: held.take(), why: released };
      if (stream.terminal?.kind === "failed") {
        return { kind: "failed", evidence: stream.terminal.evidence, held: held.take() };
      }
    }
  } finally {
    bound?.scheduled.cancel();
    idle.stop();
  }
}

/**
 * Why the stream may go now; null while it may not, or has failed.
 *
 * A guarded hold asks for its bound and for unknown events before anything else, so that what becomes of a stream does
 * not depend on where the network cut it.
 *
 * @param widestBytes  what was held together with each frame that was just looked at, at the most: a frame that came
 *                     in pieces would have been held like that before it was whole.
 */
function judgeHold(
  stream: AnswerStream,
  policy: HoldPolicy,
  heldBytes: number,
  widestBytes: number,
): Extract<HoldResult, { kind: "commit" }>["why"] | null {
  if (policy.guarded === true) {
    if (Math.max(widestBytes, heldBytes) > policy.maxBytes) return "overflow";
    if (stream.sawUnknown) return "unknown_payload";
    if (heldBytes + stream.unfinishedBytes > policy.maxBytes) return "overflow";
  }
  if (stream.terminal !== null) return stream.terminal.kind === "success" ? "success" : null;
  if (policy.until === "output" && stream.sawOutput) return "output";
  return heldBytes > policy.maxBytes || stream.eventCount >= policy.maxEvents ? "overflow" : null;
}

function boundAt(clock: Clock, atMs: number): { promise: Promise<"bound">; scheduled: Scheduled } {
  const { promise, resolve } = Promise.withResolvers<"bound">();
  return { promise, scheduled: clock.schedule(atMs, () => resolve("bound")) };
}

export type RelayEnd =
  | { readonly kind: "success" }
  | { readonly kind: "failed"; readonly evidence: Evidence }
  /** The client left. */
  | { readonly kind: "cancelled" };

export interface RelayOptions {
  readonly clock: Clock;
  readonly idleMs: number;
  /** 0 = off. Comment frames while the upstream is silent. */
  readonly keepaliveMs: number;
  /** The frame that tells the client how its stream ended, in its own protocol; null where nobody is left to be told. */
  readonly failureFrame: (evidence: Evidence) => Uint8Array<ArrayBuffer> | null;
  /** Called exactly once. */
  readonly onEnd: (end: RelayEnd) => void;
  /** Called once when the client has taken what was held back, and asks for more. */
  readonly onHeldDelivered?: () => void;
  readonly traffic?: Traffic;
}

const KEEPALIVE = new TextEncoder().encode(": keep-alive\n\n");

/** Held bytes up to this many go out as one piece; more of them piece by piece, never all of them twice in memory. */
const JOIN_LIMIT_BYTES = 65_536;

/** The committed stream as an answer's body: held bytes first, then whole frames as they come, then one true end. */
export function relayStream(
  stream: AnswerStream,
  held: Uint8Array<ArrayBuffer>[],
  options: RelayOptions,
): ByteSource {
  let over = false;
  let delivered = false;
  const queue = inDelivery(held);
  const traffic = options.traffic ?? new Traffic();
  traffic.openStreams++;
  traffic.bytesToClients += held.reduce((sum, piece) => sum + piece.length, 0);
  const end = (result: RelayEnd): void => {
    if (over) return;
    over = true;
    watch.stop();
    traffic.openStreams--;
    options.onEnd(result);
  };
  /** Ends the wait for the upstream, which goes on, with a comment. */
  let interrupt: ((why: "keepalive") => void) | null = null;
  const watch = new IdleWatch(
    options.clock,
    options.idleMs,
    () => stream.expire({ kind: "transport", cause: "idle_timeout", pooled: false }),
    options.keepaliveMs,
    () => interrupt?.("keepalive"),
  );
  // Until the client has what was held, which may be cut anywhere, and asks for more, nobody is silent.
  watch.pause();
  let taking: Promise<readonly Uint8Array<ArrayBuffer>[]> | null = null;
  const takeOrKeepAlive = async (): Promise<readonly Uint8Array<ArrayBuffer>[] | "keepalive"> => {
    const { promise, resolve } = Promise.withResolvers<"keepalive">();
    interrupt = resolve;
    const first = await Promise.race([taking ??= stream.take(), promise]);
    interrupt = null;
    if (first !== "keepalive") taking = null;
    return first;
  };
  const finish = (): void => {
    const terminal = stream.terminal!;
    if (terminal.kind === "failed") {
      const frame = options.failureFrame(terminal.evidence);
      if (frame !== null && frame.length > 0) queue.push(frame);
      stream.cancel();
      end(terminal);
    } else {
      drainStream(stream, options.clock);
      end({ kind: "success" });
    }
  };
  return {
    async read() {
      const next = queue.shift();
      if (next !== undefined) return next;
      if (over) return null;
      if (!delivered) {
        delivered = true;
        options.onHeldDelivered?.();
      }
      watch.resume();
      while (stream.terminal === null) {
        const pieces = options.keepaliveMs > 0 ? await takeOrKeepAlive() : await stream.take();
        if (over) return null;
        if (pieces === "keepalive") return KEEPALIVE;
        watch.touch();
        for (const piece of pieces) {
          traffic.bytesToClients += piece.length;
          queue.push(piece);
        }
        if (pieces.length > 0 && stream.terminal === null) {
          watch.pause();
          return queue.shift()!;
        }
      }
      finish();
      return queue.shift() ?? null;
    },
    cancel() {
      stream.cancel();
      end({ kind: "cancelled" });
    },
  };
}

/**
 * Pieces that are all there is, as an answer's body: never more of them on the way than the client has asked for.
 *
 * @param onEnd  called exactly once; true when the client has taken everything.
 */
export function deliverPieces(
  pieces: readonly Uint8Array<ArrayBuffer>[],
  onEnd: (all: boolean) => void,
): ByteSource {
  const queue = inDelivery([...pieces]);
  let over = false;
  const end = (all: boolean): void => {
    if (over) return;
    over = true;
    onEnd(all);
  };
  return {
    read() {
      const next = queue.shift();
      if (next === undefined) end(true);
      return Promise.resolve(next ?? null);
    },
    cancel: () => end(false),
  };
}

/** What was held, in the pieces it is delivered in. */
function inDelivery(held: Uint8Array<ArrayBuffer>[]): Uint8Array<ArrayBuffer>[] {
  const length = held.reduce((sum, piece) => sum + piece.length, 0);
  if (length === 0) return [];
  return length <= JOIN_LIMIT_BYTES ? [joinBytes(held)] : held;
}

const DRAIN_MS = 1_000;

/** After the terminal the rest is read and dropped for a moment, so that the connection can be used again. */
export function drainStream(stream: AnswerStream, clock: Clock): void {
  const scheduled = clock.schedule(clock.now() + DRAIN_MS, () => stream.cancel());
  stream.drain().finally(() => scheduled.cancel());
}

/** Notices silence, by one coarse schedule a stream instead of a timer a chunk. */
class IdleWatch {
  readonly #clock: Clock;
  readonly #idleMs: number;
  readonly #onIdle: () => void;
  readonly #keepaliveMs: number;
  readonly #onKeepalive: () => void;
  #lastMs: number;
  #lastKeepaliveMs: number;
  #scheduled: Scheduled | null = null;
  #stopped = false;
  #paused = false;

  constructor(
    clock: Clock,
    idleMs: number,
    onIdle: () => void,
    keepaliveMs = 0,
    onKeepalive: () => void = () => {},
  ) {
    this.#clock = clock;
    this.#idleMs = idleMs;
    this.#onIdle = onIdle;
    this.#keepaliveMs = keepaliveMs;
    this.#onKeepalive = onKeepalive;
    this.#lastMs = this.#lastKeepaliveMs = clock.now();
    this.#arm();
  }

  touch(): void {
    this.#lastMs = this.#lastKeepaliveMs = this.#clock.now();
  }

  /** Nobody asks for more: that nothing comes is not the upstream's silence, and no keep-alive shortens it. */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.touch();
  }

  stop(): void {
    this.#stopped = true;
    this.#scheduled?.cancel();
  }

  #arm(): void {
    const idleAtMs = this.#idleMs > 0 ? this.#lastMs + this.#idleMs : Infinity;
    const keepaliveAtMs = this.#keepaliveMs > 0 ? this.#lastKeepaliveMs + this.#keepaliveMs : Infinity;
    const dueMs = Math.min(idleAtMs, keepaliveAtMs);
    if (dueMs === Infinity) return;
    this.#scheduled = this.#clock.schedule(dueMs, () => this.#check());
  }

  #check(): void {
    if (this.#stopped) return;
    const nowMs = this.#clock.now();
    if (this.#paused) this.#lastMs = this.#lastKeepaliveMs = nowMs;
    if (this.#idleMs > 0 && nowMs - this.#lastMs >= this.#idleMs) return this.#onIdle();
    if (this.#keepaliveMs > 0 && nowMs - this.#lastKeepaliveMs >= this.#keepaliveMs) {
      this.#lastKeepaliveMs = nowMs;
      this.#onKeepalive();
    }
    this.#arm();
  }
}
