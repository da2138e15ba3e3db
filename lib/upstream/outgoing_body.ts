/**
 * Puts request bodies into the one form `fetch` never repeats by itself (design.md ruling 15).
 *
 * `fetch` repeats a request when its pooled connection dies unanswered and the body is null, text or bytes. A Blob
 * is sent once and still has a length. Ours is one in name only: it hands out the bytes it was given, which saves
 * the copy and the bookkeeping of a real one (a tenth of a small request, a third of a megabyte's).
 */
type Bytes = Uint8Array<ArrayBuffer>;

export interface OutgoingBody {
  /** null: no body, or an empty one (an empty Blob would go out chunked). */
  readonly body: Blob | ReadableStream<Bytes> | null;
  /** True when the stream we read from broke: the sender is gone, whatever the upstream made of it. */
  sourceFailed(): boolean;
}

export function outgoingBody(
  body: Bytes | ReadableStream<Bytes> | null,
  length: number | null,
): OutgoingBody {
  if (body === null) return { body: null, sourceFailed: () => false };
  if (body instanceof Uint8Array) {
    const blob = body.length === 0 ? null : new StreamedBlob(streamOf(body), body.length);
    return { body: blob, sourceFailed: () => false };
  }
  if (length === 0) {
    void body.cancel().catch(() => {});
    return { body: null, sourceFailed: () => false };
  }
  const watched = watch(body, length);
  return {
    body: length === null ? watched.stream : new StreamedBlob(watched.stream, length),
    sourceFailed: watched.failed,
  };
}

/** `fetch` takes its size for the length and reads its stream once. */
class StreamedBlob extends Blob {
  readonly #source: ReadableStream<Bytes>;
  readonly #size: number;

  constructor(source: ReadableStream<Bytes>, size: number) {
    super([]);
    this.#source = source;
    this.#size = size;
  }

  override get size(): number {
    return this.#size;
  }

  override stream(): ReadableStream<Bytes> {
    return this.#source;
  }
}

function streamOf(bytes: Bytes): ReadableStream<Bytes> {
  let at = 0;
  return new ReadableStream<Bytes>({
    pull(controller) {
      controller.enqueue(bytes.subarray(at, at + PIECE_BYTES));
      at += PIECE_BYTES;
      if (at >= bytes.length) controller.close();
    },
  }, { highWaterMark: 0 });
}

/** What a socket takes in one go. */
const PIECE_BYTES = 65_536;

/** Passes a stream on, remembering whether it broke or ended before its promised length. */
function watch(source: ReadableStream<Bytes>, length: number | null) {
  const reader = source.getReader();
  let failed = false;
  let passedBytes = 0;
  const stream = new ReadableStream<Bytes>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        passedBytes += value?.length ?? 0;
        if (done && length !== null && passedBytes < length) {
          throw new RangeError(`Cannot send body: ${length} bytes were promised, got ${passedBytes}`);
        }
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        failed = true;
        controller.error(error);
        await reader.cancel(error).catch(() => {});
      }
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
  return { stream, failed: () => failed };
}
