/**
 * Undoes content codings of answers, also where label and bytes disagree (field case B079).
 *
 * Bodies without a label pass untouched, and so do plain bytes under a label that can be told from them; whoever has
 * read an unlabelled body whole asks `undoMissingLabel`.
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
import type { AnswerBody } from "../ports.ts";
import { UndecodableBody } from "./transport_error.ts";

type Bytes = Uint8Array<ArrayBuffer>;
/** What is asked of upstreams. */
export const ACCEPTED_CODINGS = "gzip,br";

/** A packed answer that is not an event stream may unpack to this much; more is a bomb (B167). */
export const UNPACKED_LIMIT_BYTES = 67_108_864;

/** Nobody stacks more than two codings; more is an attack or an accident. */
const MAX_CODINGS = 2;

/**
 * @param encoding  `content-encoding` as received, or null.
 * @param eventStream  the body is unbounded by nature and read as it comes.
 * @param limitBytes  bound for everything packed that is not an event stream.
 * @returns `null` when the bytes are those of the wire; else coding and length headers no longer hold.
 */
export function decodeAnswer(
  body: AnswerBody,
  encoding: string | null,
  eventStream: boolean,
  limitBytes: number = UNPACKED_LIMIT_BYTES,
): AnswerBody | null {
  const codings = parseCodings(encoding);
  if (codings.length === 0) return null;
  const plain = layers(body, codings, eventStream ? Infinity : limitBytes);
  return new IteratedBody(plain, () => body.cancel());
}

/** As `decodeAnswer`, for a body that did not come over an `Upstream`. */
export function unpackAnswer(source: AsyncIterable<Bytes>, encoding: string | null): AnswerBody {
  return new IteratedBody(layers(source, parseCodings(encoding), UNPACKED_LIMIT_BYTES), () => {});
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
async function* layers(
  source: AsyncIterable<Bytes>,
  codings: readonly string[],
  limitBytes: number,
): AsyncGenerator<Bytes> {
  if (codings.length > MAX_CODINGS) throw new UndecodableBody("undecodable_body");
  let layer = source;
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

async function* limited(source: AsyncIterable<Bytes>, limitBytes: number): AsyncGenerator<Bytes> {
  let totalBytes = 0;
  for await (const chunk of source) {
    totalBytes += chunk.length;
    if (totalBytes > limitBytes) throw new UndecodableBody("oversized_body");
    yield chunk;
  }
}

/** A generator's bytes as a body. */
class IteratedBody implements AnswerBody {
  readonly #bytes: AsyncGenerator<Bytes>;
  readonly #letGo: () => void;
  #rest: Bytes | null = null;
  #over = false;

  /** @param letGo  ends the source, also while it is being read. */
  constructor(bytes: AsyncGenerator<Bytes>, letGo: () => void) {
    this.#bytes = bytes;
    this.#letGo = letGo;
  }

  async read(into?: Bytes): Promise<Bytes | null> {
    const piece = this.#rest ?? await this.#next();
    this.#rest = null;
    if (piece === null || into === undefined) return piece;
    const count = Math.min(piece.length, into.length);
    into.set(piece.subarray(0, count));
    if (count < piece.length) this.#rest = piece.subarray(count);
    return into.subarray(0, count);
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.#rest = null;
    this.#letGo();
    this.#bytes.return(undefined).catch(() => {});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Bytes> {
    try {
      for (let piece = await this.read(); piece !== null; piece = await this.read()) yield piece;
    } finally {
      this.cancel();
    }
  }

  async #next(): Promise<Bytes | null> {
    if (this.#over) return null;
    try {
      const { done, value } = await this.#bytes.next();
      // Let go meanwhile: what came is for nobody.
      if (!done && !this.#over) return value;
    } catch (error) {
      if (!this.#over) {
        this.cancel();
        throw error;
      }
    }
    this.#over = true;
    return null;
  }
}
