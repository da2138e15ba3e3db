/**
 * Undoes content codings of request bodies, within a bound.
 *
 * Bombs are stopped at the limit, not after it: nothing larger than `limitBytes` is ever held.
 */
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from "node:zlib";
import type { Inflate, InflateResult } from "../ports.ts";

type Bytes = Uint8Array<ArrayBuffer>;
type Decoder = (bytes: Bytes, limitBytes: number) => Uint8Array | Promise<Uint8Array>;

const MAX_STACKED_CODINGS = 2;
/**
 * Of each corrupt body the runtime's brotli decoder keeps its tables for good (Deno 2.9.6: 12 KB of eleven bytes, up
 * to 3 MB at the worst). Whoever sends that many is no client with a bad line, and nobody else packs with it.
 */
export const CORRUPT_BROTLI_LIMIT = 16;

export function createInflate(): Inflate {
  let corruptBrotli = 0;
  return {
    async decode(bytes, contentEncoding, limitBytes) {
      const usesBrotli = /\bbr\b/i.test(contentEncoding);
      if (usesBrotli && corruptBrotli >= CORRUPT_BROTLI_LIMIT) {
        return { ok: false, problem: "unknown_coding" };
      }
      const result = await decode(bytes, contentEncoding, limitBytes);
      if (usesBrotli && !result.ok && result.problem === "corrupt") corruptBrotli++;
      return result;
    },
  };
}

async function decode(bytes: Bytes, contentEncoding: string, limitBytes: number): Promise<InflateResult> {
  const codings = contentEncoding.split(",").map((coding) => coding.trim().toLowerCase()).filter((coding) =>
    coding !== "" && coding !== "identity"
  );
  if (codings.length > MAX_STACKED_CODINGS) return { ok: false, problem: "unknown_coding" };
  let current = bytes;
  // Codings are listed in the order they were applied: undo them from the last.
  for (const coding of codings.reverse()) {
    const undo = DECODERS.get(coding);
    if (undo === undefined) return { ok: false, problem: "unknown_coding" };
    try {
      const plain = await undo(current, limitBytes);
      current = new Uint8Array(plain.buffer as ArrayBuffer, plain.byteOffset, plain.byteLength);
    } catch (error) {
      return { ok: false, problem: isTooLarge(error) ? "too_large" : "corrupt" };
    }
  }
  return { ok: true, bytes: current };
}

const DECODERS: ReadonlyMap<string, Decoder> = new Map<string, Decoder>(
  Object.entries({
    gzip: (bytes: Bytes, maxOutputLength: number) => gunzipSync(bytes, { maxOutputLength }),
    "x-gzip": (bytes: Bytes, maxOutputLength: number) => gunzipSync(bytes, { maxOutputLength }),
    deflate: (bytes: Bytes, maxOutputLength: number) => inflateSync(bytes, { maxOutputLength }),
    br: decodeBrotli,
    zstd: (bytes: Bytes, maxOutputLength: number) => zstdDecompressSync(bytes, { maxOutputLength }),
  }),
);

/**
 * Twice, because each of the runtime's two decoders can do half of it: `node:zlib` stops at the limit and calls what it
 * could read of a corrupt or cut body the whole of it; the web stream tells those, and unpacks without any limit, which
 * is safe for what is known to be within it.
 */
async function decodeBrotli(bytes: Bytes, maxOutputLength: number): Promise<Uint8Array> {
  const plain = brotliDecompressSync(bytes, { maxOutputLength });
  const check = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("brotli"));
  let checkedBytes = 0;
  for await (const piece of check) checkedBytes += piece.length;
  if (checkedBytes !== plain.length) throw new Error("Cannot decode body: it is no whole brotli body");
  return plain;
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
}
