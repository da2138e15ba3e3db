/**
 * Memory for bytes: small ones from a common block, large ones given back at once.
 *
 * A buffer of its own costs an allocation and an entry in the collector's books, eight times what a part of a block
 * does. Large bodies left to the collector pile up until it runs, and each new one gets pages the system has to clear
 * first: reading 8 MiB then takes nearly twice as long.
 */

/** What keeps one small piece alive keeps this much. */
const BLOCK_BYTES = 8_192;
/** Longer ones would waste the rest of a block too often. */
const SMALL_BYTES = 2_048;

let block = new Uint8Array(BLOCK_BYTES);
let used = 0;

/** Zeros, as `new Uint8Array(length)` gives them; the memory of small ones lies in a buffer with that of others. */
export function makeBytes(length: number): Uint8Array<ArrayBuffer> {
  if (length > SMALL_BYTES) return new Uint8Array(length);
  if (used + length > BLOCK_BYTES) {
    block = new Uint8Array(BLOCK_BYTES);
    used = 0;
  }
  const start = used;
  used += length;
  return block.subarray(start, used);
}

/** Below, the collector does it as well. */
const LARGE_BYTES = 65_536;

/**
 * Frees the memory of `bytes`, which are empty afterwards. Small ones, and parts of a larger buffer, stay as they are.
 */
export function freeBytes(bytes: Uint8Array<ArrayBuffer>): void {
  const { buffer } = bytes;
  if (bytes.length >= LARGE_BYTES && bytes.length === buffer.byteLength) buffer.transfer(0);
}
