/**
 * Buffers for large bodies, used again.
 *
 * Memory that was never used costs the system's clearing of each page, at 8 MiB more than the copy into it. Whoever
 * gives a buffer back loses it: what still has it under another name finds it empty.
 */

import { makeBytes } from "./byte_memory.ts";

/** Smaller ones the allocator keeps by itself. */
const SMALLEST_BYTES = 65_536;
/** Kept in all while nobody uses them. */
const SPARE_LIMIT_BYTES = 67_108_864;

/** Buffers of one capacity that wait for their next use. */
interface Shelf {
  readonly spares: ArrayBuffer[];
  /** The fewest that were there since `dropIdleBuffers`: so many were not needed. */
  leastCount: number;
}

const SHELVES = new Map<number, Shelf>();
/** Buffers made here: others have a length that nobody asks for again. */
const OWN = new WeakSet<ArrayBuffer>();
let spareBytes = 0;

/** @returns bytes whose content is left over from an earlier use: the caller fills all it hands on. */
export function borrowBytes(length: number): Uint8Array<ArrayBuffer> {
  if (length < SMALLEST_BYTES) return makeBytes(length);
  const capacity = capacityFor(length);
  const shelf = SHELVES.get(capacity);
  let buffer = shelf?.spares.pop();
  if (shelf === undefined || buffer === undefined) buffer = new ArrayBuffer(capacity);
  else {
    spareBytes -= capacity;
    shelf.leastCount = Math.min(shelf.leastCount, shelf.spares.length);
  }
  OWN.add(buffer);
  return new Uint8Array(buffer, 0, length);
}

/** Whether the whole buffer behind these bytes was borrowed for them. */
export function isBorrowed(bytes: Uint8Array<ArrayBuffer>): boolean {
  return OWN.has(bytes.buffer);
}

/** Takes back what was borrowed. Nothing, not even a write under way, may use it any more. */
export function returnBytes(bytes: Uint8Array<ArrayBuffer>): void {
  if (!OWN.delete(bytes.buffer)) return;
  const capacity = bytes.buffer.byteLength;
  if (spareBytes + capacity > SPARE_LIMIT_BYTES) {
    bytes.buffer.transfer(0);
    return;
  }
  let shelf = SHELVES.get(capacity);
  if (shelf === undefined) SHELVES.set(capacity, shelf = { spares: [], leastCount: 0 });
  shelf.spares.push(bytes.buffer.transfer());
  spareBytes += capacity;
}

/** Frees the buffers that were not needed since the last call. */
export function dropIdleBuffers(): void {
  for (const [capacity, shelf] of SHELVES) {
    for (const spare of shelf.spares.splice(0, shelf.leastCount)) {
      spare.transfer(0);
      spareBytes -= capacity;
    }
    shelf.leastCount = shelf.spares.length;
    if (shelf.spares.length === 0) SHELVES.delete(capacity);
  }
}

/** Steps of a quarter to an eighth: a conversation that grows keeps its buffers for a while. */
function capacityFor(length: number): number {
  const step = 2 ** (Math.floor(Math.log2(length - 1)) - 2);
  return Math.ceil(length / step) * step;
}
