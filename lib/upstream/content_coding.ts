/**
 * Undoes content codings of answers, also where label and bytes disagree (field case B079).
 *
 * `fetch` itself undoes a body labelled exactly `gzip` or `br`, natively and without a hop in JavaScript; that is
 * why nothing else is asked for. What an upstream sends regardless (zstd, deflate, stacked codings, plain bytes
 * under a label) is undone here. Bodies without a label pass untouched, because a look at their first bytes would
 * cost every answer a hop (50 us, half a request); whoever has read one whole asks `undoMissingLabel`.
 */
import { pipeline, Readable, type Transform } from "node:stream";
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
  gunzipSync,
  zstdDecompressSync,
} from "node:zlib";
import { UndecodableBody } from "./transport_error.ts";

type Bytes = Uint8Array<ArrayBuffer>;
type Body = ReadableStream<Bytes>;

/** What is asked of upstreams: the codings `fetch` undoes natively. */
export const ACCEPTED_CODINGS = "gzip,br";

/** A packed answer that is not an event stream may unpack to this much; more is a bomb (B167). */
export const UNPACKED_LIMIT_BYTES = 67_108_864;

/** Nobody stacks more than two codings; more is an attack or an accident. */
const MAX_CODINGS = 2;

export interface DecodedBody {
  readonly body: Body;
  /** True when the bytes are no longer those of the wire, so that coding and length headers must go. */
  readonly changed: boolean;
}

/**
 * @param encoding  `content-encoding` as received, or null.
 * @param eventStream  the body is unbounded by nature and read as it comes.
 * @param limitBytes  bound for everything packed that is not an event stream.
 */
export function decodeAnswer(
  body: Body,
  encoding: string | null,
  eventStream: boolean,
  limitBytes: number = UNPACKED_LIMIT_BYTES,
): DecodedBody {
  const codings = parseCodings(encoding);
  if (codings.length === 0) return { body, changed: false };
  const native = codings.length === 1 && (codings[0] === "gzip" || codings[0] === "br");
  if (native) return { body: eventStream ? body : bounded(body, limitBytes), changed: true };
  return { body: unpack(body, codings, eventStream ? Infinity : limitBytes), changed: true };
}

/** As `decodeAnswer`, for a body that did not come through `fetch`: nothing has been undone yet. */
export function unpackAnswer(body: Body, encoding: string | null): Body {
  return unpack(body, parseCodings(encoding), UNPACKED_LIMIT_BYTES);
}

/**
 * Unpacks a whole body whose label was forgotten (gzip and zstd can be told by their first bytes).
 *
 * @param limitBytes  longest plain body believed.
 * @returns the bytes as they are when they are not packed, or cannot be unpacked within the limit.
 */
export function undoMissingLabel(whole: Bytes, limitBytes: number): Bytes {
  const options = { maxOutputLength: limitBytes };
  try {
    if (looksGzip(whole)) return new Uint8Array(gunzipSync(whole, options));
    if (looksZstd(whole)) return new Uint8Array(zstdDecompressSync(whole, options));
  } catch {
    // Looks packed and is not, or is a bomb: the reader of the bytes will not understand them, which is the truth.
  }
  return whole;
}

/** Codings in the order they were applied, `identity` left out. */
function parseCodings(encoding: string | null): readonly string[] {
  if (encoding === null) return [];
  return encoding.toLowerCase().split(",").map((name) => name.trim())
    .filter((name) => name !== "" && name !== "identity")
    .map((name) => name === "x-gzip" ? "gzip" : name);
}

/** Takes the codings off one by one; each layer first looks whether the bytes really are what the label says. */
function unpack(body: Body, codings: readonly string[], limitBytes: number): Body {
  return fromGenerator(layers(body, codings, limitBytes), body);
}

async function* layers(body: Body, codings: readonly string[], limitBytes: number): AsyncGenerator<Bytes> {
  if (codings.length > MAX_CODINGS) throw new UndecodableBody("undecodable_body");
  let layer: AsyncIterable<Bytes> = readAll(body);
  for (const coding of codings.toReversed()) {
    const peeked = await peek(layer);
    const transform = chooseDecoder(coding, peeked.head);
    layer = transform === null ? peeked.all : inflate(peeked.all, transform);
  }
  yield* limited(layer, limitBytes);
}

/** @returns the decoder for what the bytes are, or null when they are plain already. */
function chooseDecoder(coding: string, head: Bytes): Transform | null {
  switch (coding) {
    case "gzip":
      return looksGzip(head) ? createGunzip() : null;
    case "zstd":
      return looksZstd(head) ? createZstdDecompress() : null;
    case "deflate":
      if (looksZlib(head)) return createInflate();
      return looksText(head) ? null : createInflateRaw();
    case "br":
      // Brotli has no magic number.
      return head.length === 0 ? null : createBrotliDecompress();
    default:
      throw new UndecodableBody("undecodable_body");
  }
}

function looksGzip(head: Bytes): boolean {
  return head[0] === 0x1f && head[1] === 0x8b && head[2] === 0x08;
}

function looksZstd(head: Bytes): boolean {
  return head[0] === 0x28 && head[1] === 0xb5 && head[2] === 0x2f && head[3] === 0xfd;
}

/** RFC 1950: method 8 and a header that is a multiple of 31. */
function looksZlib(head: Bytes): boolean {
  return head.length >= 2 && (head[0]! & 0x0f) === 8 && (head[0]! * 256 + head[1]!) % 31 === 0;
}

/** How JSON, SSE and HTML begin; an empty body is plain too. */
function looksText(head: Bytes): boolean {
  return head.length === 0 || '{["<:de \r\n\t'.includes(String.fromCharCode(head[0]!));
}

/** Reads until the longest magic number is there, and gives everything back in order. */
async function peek(source: AsyncIterable<Bytes>): Promise<{ head: Bytes; all: AsyncIterable<Bytes> }> {
  const iterator = source[Symbol.asyncIterator]();
  const seen: Bytes[] = [];
  let seenBytes = 0;
  while (seenBytes < MAGIC_BYTES) {
    const next = await iterator.next();
    if (next.done) break;
    seen.push(next.value);
    seenBytes += next.value.length;
  }
  const head = seen.length === 1 ? seen[0]! : concat(seen, seenBytes);
  return { head, all: replay(seen, iterator) };
}

const MAGIC_BYTES = 4;

async function* replay(seen: readonly Bytes[], rest: AsyncIterator<Bytes>): AsyncGenerator<Bytes> {
  try {
    yield* seen;
    while (true) {
      const next = await rest.next();
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await rest.return?.();
  }
}

function concat(chunks: readonly Bytes[], length: number): Bytes {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

/** Runs bytes through a zlib stream; its errors become `UndecodableBody`, those of the source stay what they are. */
async function* inflate(source: AsyncIterable<Bytes>, transform: Transform): AsyncGenerator<Bytes> {
  let sourceError: { readonly error: unknown } | null = null;
  async function* watched(): AsyncGenerator<Bytes> {
    try {
      yield* source;
    } catch (error) {
      sourceError = { error };
      throw error;
    }
  }
  const output = pipeline(Readable.from(watched()), transform, () => {});
  try {
    for await (const chunk of output) {
      // Copied: zlib hands out slices of one pooled buffer.
      yield new Uint8Array(chunk as Uint8Array);
    }
  } catch (error) {
    const cause = sourceError as { readonly error: unknown } | null;
    throw cause === null ? new UndecodableBody("undecodable_body", { cause: error }) : cause.error;
  }
}

function bounded(body: Body, limitBytes: number): Body {
  return fromGenerator(limited(readAll(body), limitBytes), body);
}

async function* limited(source: AsyncIterable<Bytes>, limitBytes: number): AsyncGenerator<Bytes> {
  let totalBytes = 0;
  for await (const chunk of source) {
    totalBytes += chunk.length;
    if (totalBytes > limitBytes) throw new UndecodableBody("oversized_body");
    yield chunk;
  }
}

/** Reads a stream; leaving early cancels it, so that its connection is closed. */
async function* readAll(body: Body): AsyncGenerator<Bytes> {
  const reader = body.getReader();
  let ended = false;
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) {
        ended = true;
        return;
      }
      yield value;
    }
  } finally {
    if (!ended) await reader.cancel().catch(() => {});
  }
}

/** `source` is cancelled here when the answer is dropped before anybody read from it: a generator never begun runs no `finally`. */
function fromGenerator(generator: AsyncGenerator<Bytes>, source: Body): Body {
  return new ReadableStream<Bytes>({
    async pull(controller) {
      const next = await generator.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
    async cancel(reason) {
      await generator.return(undefined);
      if (!source.locked) await source.cancel(reason);
    },
  }, { highWaterMark: 0 });
}
