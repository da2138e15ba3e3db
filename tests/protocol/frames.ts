/** Helpers of the protocol tests: bytes from text, text from bytes, streams cut into chunks. */
import { type SseFrame, SseFramer } from "../../lib/protocol/sse.ts";

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return ENCODER.encode(text);
}

export function textOf(bytes: Uint8Array): string {
  return DECODER.decode(bytes);
}

export function join(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** The bytes in pieces that end at the given offsets. */
export function cutAt(bytes: Uint8Array<ArrayBuffer>, cuts: readonly number[]): Uint8Array<ArrayBuffer>[] {
  const edges = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((edge, index) => bytes.slice(edges[index], edge));
}

export interface Framed {
  readonly frames: SseFrame[];
  readonly tail: Uint8Array<ArrayBuffer>;
}

/** Runs a whole stream through a new framer. */
export function frameAll(chunks: readonly Uint8Array<ArrayBuffer>[]): Framed {
  const framer = new SseFramer();
  const frames = chunks.flatMap((chunk) => framer.push(chunk));
  frames.push(...framer.end());
  return { frames, tail: framer.tail() };
}

/** What a reader of events sees, without the bytes. */
export function eventsOf(frames: readonly SseFrame[]): { event: string | null; data: string | null }[] {
  return frames.map((frame) => ({ event: frame.event, data: frame.data() }));
}

/** The one frame of a text. */
export function frame(text: string): SseFrame {
  const { frames } = frameAll([bytesOf(text)]);
  if (frames.length !== 1) throw new Error(`Expected one frame, got ${frames.length}`);
  return frames[0]!;
}

/** A frame as OpenAI writes it: event line and the same type in front of the data. */
export function event(type: string, rest: Record<string, unknown> = {}): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
}
