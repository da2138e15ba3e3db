/**
 * Undoes content codings of request bodies, within a bound.
 *
 * Bombs are stopped at the limit, not after it: nothing larger than `limitBytes` is ever held.
 */
import type { Buffer } from "node:buffer";
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from "node:zlib";
import type { Inflate, InflateResult } from "../ports.ts";

const MAX_STACKED_CODINGS = 2;

export function createInflate(): Inflate {
  return { decode };
}

function decode(bytes: Uint8Array<ArrayBuffer>, contentEncoding: string, limitBytes: number): InflateResult {
  const codings = contentEncoding.split(",").map((coding) => coding.trim().toLowerCase()).filter((coding) =>
    coding !== "" && coding !== "identity"
  );
  if (codings.length > MAX_STACKED_CODINGS) return { ok: false, problem: "unknown_coding" };
  let current = bytes;
  // Codings are listed in the order they were applied: undo them from the last.
  for (const coding of codings.reverse()) {
    const undo = DECODERS[coding];
    if (undo === undefined) return { ok: false, problem: "unknown_coding" };
    try {
      const plain = undo(current, limitBytes);
      current = new Uint8Array(plain.buffer as ArrayBuffer, plain.byteOffset, plain.byteLength);
    } catch (error) {
      return { ok: false, problem: isTooLarge(error) ? "too_large" : "corrupt" };
    }
  }
  return { ok: true, bytes: current };
}

const DECODERS: Readonly<Record<string, (bytes: Uint8Array, limitBytes: number) => Buffer>> = {
  gzip: (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength }),
  "x-gzip": (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength }),
  deflate: (bytes, maxOutputLength) => inflateSync(bytes, { maxOutputLength }),
  br: (bytes, maxOutputLength) => brotliDecompressSync(bytes, { maxOutputLength }),
  zstd: (bytes, maxOutputLength) => zstdDecompressSync(bytes, { maxOutputLength }),
};

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
}
