/**
 * The one SSE framer: cuts a byte stream into frames in a single linear pass, without changing a byte.
 *
 * A frame's `raw` is a view of the chunk it lies in; only frames that cross chunks are copied. Nothing is
 * decoded until somebody asks. It knows nothing of what events mean: that is the dialects' part.
 * Sources: WHATWG HTML section 9.2; glued frames and the 50 MB limit from state-machine-facts 2D.3.
 */
import { DraftFrame, encodeFrame, type SseFrame } from "./sse_frame.ts";

export { closedBytes, encodeFrame } from "./sse_frame.ts";
export type { SseFrame } from "./sse_frame.ts";

export interface SseLimits {
  /** Longest frame kept; beyond it the framer gives up with `failure`. */
  readonly maxFrameBytes?: number;
}

/** A generated image arrives as one base64 data line; the peers' line limit is 50 MB as well. */
export const SSE_FRAME_LIMIT_BYTES = 52_428_800;

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;
const EMPTY = new Uint8Array(0);
const PENDING_MIN_BYTES = 512;
const ENCODER = new TextEncoder();
const DATA = ENCODER.encode("data");
const EVENT = ENCODER.encode("event");

/**
 * Feed chunks with `push`, then call `end` once.
 *
 * The `raw` of all frames in order, followed by `tail()`, is the input byte for byte. Where the input is cut
 * never changes the events; an LF that arrives after its CR was taken opens the next frame's `raw`.
 */
export class SseFramer {
  readonly #maxFrameBytes: number;
  #failure: "frame_too_large" | null = null;
  /** Bytes of a frame that began in an earlier chunk, from its first one on. */
  #pending: Uint8Array<ArrayBuffer> = EMPTY;
  #pendingLength = 0;
  #frame = new DraftFrame();
  /** Where the line being read begins, counted from the first byte of its frame. */
  #lineAt = 0;
  #atStreamStart = true;
  #afterCr = false;

  constructor(limits: SseLimits = {}) {
    this.#maxFrameBytes = limits.maxFrameBytes ?? SSE_FRAME_LIMIT_BYTES;
  }

  /** Set once a frame grew beyond the limit: from then on nothing more is read and `tail` is empty. */
  get failure(): "frame_too_large" | null {
    return this.#failure;
  }

  /** Bytes of the unfinished frame. */
  get pendingBytes(): number {
    return this.#pendingLength;
  }

  /** The bytes after the last frame given. */
  tail(): Uint8Array<ArrayBuffer> {
    return this.#pending.subarray(0, this.#pendingLength);
  }

  /** @returns the frames this chunk completes. The chunk must not be written to afterwards. */
  push(chunk: Uint8Array<ArrayBuffer>): SseFrame[] {
    const frames: SseFrame[] = [];
    if (chunk.length === 0 || this.#failure !== null) return frames;
    let at = 0;
    if (this.#afterCr && chunk[0] === LF) {
      at = 1;
      this.#lineAt++;
    }
    this.#afterCr = false;
    // What of the chunk is neither in a frame nor in `#pending`.
    let start = 0;
    let lf = chunk.indexOf(LF, at);
    let cr = chunk.indexOf(CR, at);
    while (lf !== -1 || cr !== -1) {
      const isLf = cr === -1 || (lf !== -1 && lf < cr);
      const lineEnd = isLf ? lf : cr;
      const next = isLf || lf !== cr + 1 ? lineEnd + 1 : lineEnd + 2;
      if (!isLf) {
        this.#afterCr = next === chunk.length && next === lineEnd + 1;
        cr = chunk.indexOf(CR, next);
      }
      if (lf !== -1 && lf < next) lf = chunk.indexOf(LF, next);

      const crossing = this.#pendingLength > 0;
      if (crossing) {
        this.#append(chunk, start, next);
        start = next;
      }
      const length = crossing ? this.#pendingLength : next - start;
      if (length > this.#maxFrameBytes) return this.#giveUp(frames);
      const lineLimit = length - (next - lineEnd);
      start = crossing
        ? this.#takePendingLine(frames, lineLimit, start)
        : this.#takeChunkLine(frames, chunk, start, lineLimit, next);
    }
    if (start < chunk.length) this.#append(chunk, start, chunk.length);
    return this.#pendingLength > this.#maxFrameBytes ? this.#giveUp(frames) : frames;
  }

  /**
   * Call when the stream ended. @returns the last frame where only its blank line is missing: its data must
   * be complete JSON (or `[DONE]`). What was cut stays in `tail()`.
   */
  end(): SseFrame[] {
    const frames: SseFrame[] = [];
    if (this.#pendingLength === 0) return frames;
    let limit = this.#pendingLength;
    if (this.#lineAt < limit) {
      const lineStart = this.#lineAt;
      this.#takePendingLine(frames, limit, 0);
      limit = this.#pendingLength;
      // A cut line that is no data says nothing about the complete ones before it.
      if (frames.length === 0 && !isField(this.#pending, lineStart, limit, DATA)) limit = lineStart;
    }
    if (this.#frame.hasData && this.#frame.isComplete(this.#pending, 0)) {
      const bytes = this.#takePending();
      this.#finish(frames, bytes.subarray(0, limit), false);
      this.#append(bytes, limit, bytes.length);
    }
    return frames;
  }

  /** The line ends inside the chunk its frame began in. @returns the new `start`. */
  #takeChunkLine(
    frames: SseFrame[],
    chunk: Uint8Array<ArrayBuffer>,
    start: number,
    lineLimit: number,
    next: number,
  ): number {
    const effect = this.#takeLine(chunk, start, lineLimit, next - start);
    if (effect === "more") return start;
    if (effect === "ends_frame") {
      this.#finish(frames, chunk.subarray(start, next), true);
      return next;
    }
    const split = this.#lineAt;
    this.#finish(frames, chunk.subarray(start, start + split), false);
    this.#takeLine(chunk, start + split, lineLimit - split, next - start - split);
    return start + split;
  }

  /** The line ends the pending bytes. @returns `start`, unchanged. */
  #takePendingLine(frames: SseFrame[], lineLimit: number, start: number): number {
    const effect = this.#takeLine(this.#pending, 0, lineLimit, this.#pendingLength);
    if (effect === "ends_frame") {
      this.#finish(frames, this.#takePending(), true);
    } else if (effect === "starts_frame") {
      const split = this.#lineAt;
      const bytes = this.#takePending();
      this.#finish(frames, bytes.subarray(0, split), false);
      this.#append(bytes, split, bytes.length);
      this.#takeLine(this.#pending, 0, lineLimit - split, this.#pendingLength);
    }
    return start;
  }

  /**
   * Reads one line of the frame that begins at `origin` in `bytes`; `limit` and `next` count from there.
   * On `starts_frame` the line was not taken: a frame must be cut off before it first.
   */
  #takeLine(
    bytes: Uint8Array<ArrayBuffer>,
    origin: number,
    limit: number,
    next: number,
  ): "more" | "ends_frame" | "starts_frame" {
    if (this.#atStreamStart) {
      this.#atStreamStart = false;
      if (bytes[origin] === 0xef && bytes[origin + 1] === 0xbb && bytes[origin + 2] === 0xbf) {
        this.#lineAt = 3;
      }
    }
    const lineAt = this.#lineAt;
    const frame = this.#frame;
    if (lineAt === limit) {
      this.#lineAt = next;
      // Blank lines before a frame belong to the frame that follows.
      return frame.hasLines ? "ends_frame" : "more";
    }
    const at = origin + lineAt;
    const end = origin + limit;
    const isData = isField(bytes, at, end, DATA);
    const isEvent = !isData && isField(bytes, at, end, EVENT);
    // Only here does a frame with data go on with more of it: rare, so its completeness is computed late.
    if ((isData || isEvent) && frame.hasData && frame.isComplete(bytes, origin)) return "starts_frame";
    if (isData) frame.addData(valueStart(bytes, at + 4, end) - origin, limit);
    else if (isEvent) frame.setEvent(valueStart(bytes, at + 5, end) - origin, limit);
    frame.hasLines = true;
    this.#lineAt = next;
    return "more";
  }

  #finish(frames: SseFrame[], raw: Uint8Array<ArrayBuffer>, closed: boolean): void {
    frames.push(this.#frame.finish(raw, closed));
    this.#frame = new DraftFrame();
    this.#lineAt = 0;
  }

  #giveUp(frames: SseFrame[]): SseFrame[] {
    this.#failure = "frame_too_large";
    this.#takePending();
    return frames;
  }

  #takePending(): Uint8Array<ArrayBuffer> {
    const bytes = this.tail();
    this.#pending = EMPTY;
    this.#pendingLength = 0;
    return bytes;
  }

  /** Doubling keeps the copying linear however small the chunks are. */
  #append(bytes: Uint8Array<ArrayBuffer>, from: number, to: number): void {
    const length = this.#pendingLength + to - from;
    if (length > this.#pending.length) {
      const grown = new Uint8Array(Math.max(length, this.#pending.length * 2, PENDING_MIN_BYTES));
      grown.set(this.tail());
      this.#pending = grown;
    }
    this.#pending.set(bytes.subarray(from, to), this.#pendingLength);
    this.#pendingLength = length;
  }
}

/** An event that did not come as SSE (a WebSocket text frame, a translated one) in the shape dialects read. */
export function frameOf(event: string | null, data: string): SseFrame {
  return new SseFramer().push(encodeFrame(event, data))[0]!;
}

/** True when the line `at`..`end` is that field: its name, then a colon or nothing. */
function isField(bytes: Uint8Array, at: number, end: number, name: Uint8Array): boolean {
  const nameEnd = at + name.length;
  if (bytes[at] !== name[0] || nameEnd > end) return false;
  for (let index = 1; index < name.length; index++) {
    if (bytes[at + index] !== name[index]) return false;
  }
  return nameEnd === end || bytes[nameEnd] === COLON;
}

function valueStart(bytes: Uint8Array, nameEnd: number, end: number): number {
  if (nameEnd === end) return end;
  return nameEnd + 1 < end && bytes[nameEnd + 1] === SPACE ? nameEnd + 2 : nameEnd + 1;
}
