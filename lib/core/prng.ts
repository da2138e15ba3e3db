/**
 * Chance without a source: numbers hashed from a seed and names, and a small seeded stream for tools.
 *
 * Decisions use `hashUnit` only. A shared stream would make one account's number depend on how many others
 * drew before it, and so the final error on the order of accounts (state-machine-facts 3.4).
 */

/** Anything a decision may be keyed by. */
export type HashPart = string | number;

/** @returns an unsigned 32-bit number that depends on every part and on their order. */
export function hash32(...parts: readonly HashPart[]): number {
  let hash = 0x811c9dc5;
  for (const part of parts) {
    const text = typeof part === "string" ? part : String(part);
    for (let at = 0; at < text.length; at++) {
      hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    }
    // A separator no text contains twice in a row, so that ("ab","c") and ("a","bc") differ.
    hash = Math.imul(hash ^ 0x1f, 0x01000193);
  }
  return avalanche(hash);
}

/** @returns a number in [0, 1) that depends on every part alone. */
export function hashUnit(...parts: readonly HashPart[]): number {
  return hash32(...parts) / 0x1_0000_0000;
}

/** Draws numbers in [0, 1); the same seed gives the same numbers. */
export type Prng = () => number;

/** A seeded stream (mulberry32) for simulations and tests; not for secrets. */
export function createPrng(seed: number): Prng {
  let state = avalanche(seed >>> 0);
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

/** FNV alone leaves neighbours close together; the finalizer of MurmurHash3 spreads them. */
function avalanche(value: number): number {
  let hash = value >>> 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
