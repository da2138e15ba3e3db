/** Chance: numbers for spreading load, and unguessable ids and secrets. The two never share a source. */
import type { Ids, Random } from "../ports.ts";

const URL_SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const REQUEST_ID_LENGTH = 24;
/** Random bytes fetched at once for request ids: one call to the system serves 100 requests. */
const POOL_BYTES = REQUEST_ID_LENGTH * 100;

/**
 * Numbers in [0, 1). Not for secrets.
 *
 * @param seed  unsigned 32-bit; the same seed gives the same row. Left out: a different row each time.
 */
export function createRandom(seed?: number): Random {
  if (seed === undefined) return { next: Math.random };
  if (!Number.isInteger(seed) || seed < 0 || seed > 0xffff_ffff) {
    throw new RangeError(`Cannot make a random source: the seed must be 0..4294967295, got ${seed}`);
  }
  let state = seed;
  return {
    // mulberry32: 32 bits of state, passes gjrand; ample for spreading and for tests that must repeat.
    next: () => {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
    },
  };
}

/** Ids and secrets from the system's cryptographic source. */
export function createIds(): Ids {
  const pool = new Uint8Array(POOL_BYTES);
  let used = POOL_BYTES;
  return {
    requestId() {
      if (used === POOL_BYTES) {
        crypto.getRandomValues(pool);
        used = 0;
      }
      let id = "req_";
      // 6 of each byte's 8 bits are used: 144 bits an id, without bias.
      for (let i = 0; i < REQUEST_ID_LENGTH; i++) id += URL_SAFE[pool[used++]! & 63];
      return id;
    },
    secret(bytes) {
      return crypto.getRandomValues(new Uint8Array(bytes)).toBase64({
        alphabet: "base64url",
        omitPadding: true,
      });
    },
  };
}
