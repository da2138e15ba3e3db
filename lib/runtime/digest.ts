/** SHA-256 and constant-time comparison. Synchronous, because deciding must not wait. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { Digest } from "../ports.ts";

const encoder = new TextEncoder();

export function createDigest(): Digest {
  return {
    sha256: (data) => createHash("sha256").update(data).digest("hex"),
    equal(a, b) {
      const left = encoder.encode(a);
      const right = encoder.encode(b);
      // Digests have one length; a different one is no secret.
      return left.length === right.length && timingSafeEqual(left, right);
    },
  };
}
