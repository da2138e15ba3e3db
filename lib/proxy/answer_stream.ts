/**
 * One upstream stream on its way to one client: read, understood, held back, then relayed.
 *
 * Exactly one JavaScript hop: the upstream's body feeds the framer, and whole frames go out as the bytes they came
 * in. Only whole frames leave, so that a failure can still be worded in the client's protocol at a frame border.
 */
import type { Evidence, HeaderLookup } from "../core/evidence.ts";
import type { QuotaReading } from "../core/records.ts";
import type { AnswerBody } from "../ports.ts";
import { closedBytes, type SseFrame, SseFramer } from "../protocol/sse.ts";
import type { EventFacts, StreamDialect, TokenUsage } from "../protocol/stream_dialect.ts";
import { judgeStreamEnd, observeEvent, STREAM_START } from "../protocol/terminal_event.ts";
import type { StreamTranslation } from "../protocol/translate/translator.ts";
import { mergeUsage } from "../protocol/token_usage.ts";

/** The event that made the stream a failure. */
export interface FailingFrame {
  readonly frame: SseFrame;
  readonly facts: EventFacts;
  /** As it came, with its blank line. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** What became of the stream so far. `terminal` is set once and never changes. */
export type StreamTerminal = { readonly kind: "success" } | {
  readonly kind: "failed";
  readonly evidence: Evidence;
};

export interface StreamObserver {
  /** A quota notice inside the stream. */
  quota(reading: Omit<QuotaReading, "observedAtMs" | "source">): void;
}

export interface AnswerStreamOptions {
  readonly body: AnswerBody;
  /** Headers the stream came with: a failure inside it is judged together with them. */
  readonly headers: HeaderLookup;
  readonly dialect: StreamDialect;
  /** Rewrites frames into the client's protocol; null where both speak the same. */
  readonly translation: StreamTranslation | null;
  readonly observer: StreamObserver;
  readonly bodyFailure: (error: unknown) => Evidence;
}

const NO_BYTES: readonly Uint8Array<ArrayBuffer>[] = [];
const NO_FRAMES: readonly SseFrame[] = [];
const READY = Promise.resolve();

export class AnswerStream {
  readonly #body: AnswerBody;
  readonly #framer = new SseFramer();
  readonly #options: AnswerStreamOptions;
  #pending: Promise<Uint8Array<ArrayBuffer> | null> | null = null;
  /** Frames that came together with the first output, not looked at yet. */
  #waiting: readonly SseFrame[] = NO_FRAMES;
  #progress = STREAM_START;
  /** The frame looked at was cut inside its last CRLF; the LF opens the frame after it, which `#beginsWithLf`. */
  #lacksLf = false;
  #beginsWithLf = false;

  terminal: StreamTerminal | null = null;
  /** The first event that carries output was seen. */
  sawOutput = false;
  /** An event was seen that nobody knows. */
  sawUnknown = false;
  /** The first semantic or terminal event of any kind; comments and padding do not count. */
  eventCount = 0;
  /** The most the last `take` had in hand at once: what it gave before a frame, and that frame as it came. */
  widestBytes = 0;
  usage: TokenUsage | null = null;
  responseId: string | null = null;
  /** The event behind a failed terminal, when an event told of it. */
  failing: FailingFrame | null = null;
  /** Called for every frame in order; set by the aggregating reader. */
  onFrame: ((frame: SseFrame, facts: EventFacts) => void) | null = null;

  constructor(options: AnswerStreamOptions) {
    this.#options = options;
    this.#body = options.body;
  }

  /**
   * Bytes of a frame that has not come whole yet; 0 while whole ones wait before it, and after the terminal.
   *
   * Together with `widestBytes` this tells how much a hold ever has in hand, wherever the bytes were cut.
   */
  get unfinishedBytes(): number {
    if (this.terminal !== null || this.#waiting.length > 0) return 0;
    const pending = this.#framer.pendingBytes;
    return this.#lacksLf && pending > 0 && this.#framer.tail()[0] === LF ? pending - 1 : pending;
  }

  /**
   * Starts (or continues) the next read without consuming it, so that a caller may stop waiting for it and somebody
   * else take it over: a hold that ends by time hands its unfinished read to the relay.
   */
  read(): Promise<unknown> {
    if (this.#waiting.length > 0) return READY;
    return this.#pending ??= this.#body.read();
  }

  /**
   * Consumes the read that `read()` started. The first output ends what is given at once, and so does the first event
   * nobody knows: what comes before the commit must not depend on how the network cut the stream.
   *
   * @returns the bytes to hand on, whole frames only; empty when a frame is still unfinished or the stream has ended.
   *          Never throws: a broken body becomes `terminal`.
   */
  async take(): Promise<readonly Uint8Array<ArrayBuffer>[]> {
    this.widestBytes = 0;
    if (this.#waiting.length > 0) return this.#process(this.#waiting);
    let bytes: Uint8Array<ArrayBuffer> | null;
    try {
      bytes = await (this.#pending ??= this.#body.read());
    } catch (error) {
      this.#pending = null;
      this.#fail(this.#options.bodyFailure(error));
      return NO_BYTES;
    }
    this.#pending = null;
    if (this.terminal !== null) return NO_BYTES;
    return bytes === null ? this.#finish() : this.#process(this.#framer.push(bytes));
  }

  /** Ends the stream from our side with this evidence (idle limit, watchdog); the pending read resolves as done. */
  expire(evidence: Evidence): void {
    if (this.terminal === null) this.terminal = { kind: "failed", evidence };
    this.cancel();
  }

  /** Reads and drops what follows the terminal, so that the connection can be used again. Never throws. */
  async drain(): Promise<void> {
    try {
      while (await (this.#pending ??= this.#body.read()) !== null) this.#pending = null;
    } catch {
      // The terminal was already seen: how the connection ends after it changes nothing.
    }
  }

  /** Lets go of the upstream. Safe to call twice. */
  cancel(): void {
    this.#body.cancel();
  }

  #process(frames: readonly SseFrame[]): readonly Uint8Array<ArrayBuffer>[] {
    if (this.terminal !== null) return NO_BYTES;
    const out = this.#accept(frames);
    const { failure } = this.#framer;
    if (failure !== null && this.#waiting.length === 0) this.#fail({ kind: "malformed", detail: failure });
    return out;
  }

  #accept(frames: readonly SseFrame[], given = new GivenBytes()): readonly Uint8Array<ArrayBuffer>[] {
    this.#waiting = NO_FRAMES;
    if (frames.length === 0) return given.pieces;
    const { translation, dialect } = this.#options;
    for (let index = 0; index < frames.length; index++) {
      const frame = frames[index]!;
      this.#beginsWithLf = this.#lacksLf;
      this.#lacksLf = endsInsideCrlf(frame.raw);
      const cameBytes = frame.raw.length - (this.#beginsWithLf && frame.raw[0] === LF ? 1 : 0) +
        (this.#lacksLf ? 1 : 0);
      this.widestBytes = Math.max(this.widestBytes, given.length + cameBytes);
      const facts = dialect.readEvent(frame);
      if (facts.usage !== null) this.usage = mergeUsage(this.usage, facts.usage);
      if (facts.quota !== null) this.#options.observer.quota(facts.quota);
      if (facts.responseId !== null) this.responseId = facts.responseId;
      this.#progress = observeEvent(this.#progress, facts);
      this.onFrame?.(frame, facts);
      switch (facts.class) {
        case "padding":
          // Legal noise that breaks strict clients (B068).
          continue;
        case "comment":
          if (translation === null) given.append(this.#ownBytes(frame));
          continue;
        case "malformed":
          this.#fail(judgeStreamEnd(this.#progress, this.#options.headers));
          return given.pieces;
        case "failure":
          this.eventCount++;
          this.#fail(judgeStreamEnd(this.#progress, this.#options.headers));
          this.failing = { frame, facts, bytes: this.#ownBytes(frame).slice() };
          return given.pieces;
        case "success":
          this.eventCount++;
          if (translation === null) given.append(this.#ownBytes(frame));
          else if (!this.#translate(translation, frame, facts, given)) return given.pieces;
          else given.push(translation.end({ kind: "closed" }));
          this.terminal = { kind: "success" };
          // Whatever follows a terminal is not for the client (B074).
          return given.pieces;
        case "lifecycle":
        case "output":
          this.eventCount++;
          if (translation === null) given.append(this.#ownBytes(frame));
          else if (!this.#translate(translation, frame, facts, given)) return given.pieces;
          if (this.#isFirstOfItsKind(facts)) {
            this.#waiting = frames.slice(index + 1);
            return given.pieces;
          }
      }
    }
    return given.pieces;
  }

  #isFirstOfItsKind(facts: EventFacts): boolean {
    const isFirstUnknown = facts.unknown === true && !this.sawUnknown;
    const isFirstOutput = facts.class === "output" && !this.sawOutput;
    if (isFirstUnknown) this.sawUnknown = true;
    if (isFirstOutput) this.sawOutput = true;
    return isFirstUnknown || isFirstOutput;
  }

  /** The frame as a client of the same protocol gets it: an LF that came too late for its CR belongs to it. */
  #ownBytes(frame: SseFrame): Uint8Array<ArrayBuffer> {
    const closed = closedBytes(frame);
    const bytes = this.#beginsWithLf && closed[0] === LF ? closed.subarray(1) : closed;
    return this.#lacksLf ? joinBytes([bytes, LAST_LF]) : bytes;
  }

  #finish(): readonly Uint8Array<ArrayBuffer>[] {
    const given = new GivenBytes();
    this.#accept(this.#framer.end(), given);
    while (this.#waiting.length > 0) this.#accept(this.#waiting, given);
    if (this.terminal !== null) return given.pieces;
    const evidence = judgeStreamEnd(this.#progress, this.#options.headers);
    if (evidence.kind !== "success") {
      this.#fail(evidence);
    } else {
      // A chat stream may end without [DONE] once it has said why it finished.
      if (this.#options.translation !== null) given.push(this.#options.translation.end({ kind: "closed" }));
      this.terminal = { kind: "success" };
    }
    return given.pieces;
  }

  /** @returns false when the event cannot be carried over: the stream has failed then. */
  #translate(
    translation: StreamTranslation,
    frame: SseFrame,
    facts: EventFacts,
    given: GivenBytes,
  ): boolean {
    const pieces = translation.push(frame, facts);
    const { problem } = translation;
    if (problem === null) {
      given.push(pieces);
      return true;
    }
    this.#fail(problem.kind === "in_stream" ? { ...problem, headers: this.#options.headers } : problem);
    return false;
  }

  #fail(evidence: Evidence): void {
    this.terminal ??= { kind: "failed", evidence };
  }
}

const LF = 0x0a;
const CR = 0x0d;
const LAST_LF = Uint8Array.of(LF);

/** True for a frame of CRLF lines that came without its last byte. */
function endsInsideCrlf(bytes: Uint8Array): boolean {
  return bytes.at(-1) === CR && bytes.at(-2) === LF && bytes.at(-3) === CR;
}

/** What one take hands on. */
class GivenBytes {
  readonly pieces: Uint8Array<ArrayBuffer>[] = [];
  length = 0;

  push(pieces: readonly Uint8Array<ArrayBuffer>[]): void {
    for (const piece of pieces) {
      this.pieces.push(piece);
      this.length += piece.length;
    }
  }

  /** Appends bytes, joining them with the last piece when both lie side by side in one buffer. */
  append(piece: Uint8Array<ArrayBuffer>): void {
    const { pieces } = this;
    const last = pieces[pieces.length - 1];
    this.length += piece.length;
    if (
      last !== undefined && last.buffer === piece.buffer &&
      last.byteOffset + last.byteLength === piece.byteOffset
    ) {
      const length = last.byteLength + piece.byteLength;
      pieces[pieces.length - 1] = new Uint8Array(last.buffer, last.byteOffset, length);
    } else pieces.push(piece);
  }
}

export function joinBytes(pieces: readonly Uint8Array<ArrayBuffer>[]): Uint8Array<ArrayBuffer> {
  if (pieces.length === 1) return pieces[0]!;
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
