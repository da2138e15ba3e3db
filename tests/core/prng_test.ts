import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { createPrng, hash32, hashUnit } from "../../lib/core/prng.ts";

Deno.test("hash32() tells parts, their order and their borders apart", () => {
  assertEquals(hash32("a", 1), hash32("a", 1));
  assertNotEquals(hash32("a", "b"), hash32("b", "a"));
  assertNotEquals(hash32("ab", "c"), hash32("a", "bc"));
  assertNotEquals(hash32("a"), hash32("a", ""));
});

Deno.test("hashUnit() fills [0, 1) evenly for neighbouring names", () => {
  const buckets = new Array<number>(10).fill(0);
  for (let at = 0; at < 10_000; at++) {
    const unit = hashUnit(3, `req_${at}`);
    assert(unit >= 0 && unit < 1);
    buckets[Math.floor(unit * 10)]!++;
  }
  for (const count of buckets) assert(count > 850 && count < 1_150, `${buckets}`);
});

Deno.test("createPrng() repeats itself for a seed and differs between seeds", () => {
  const draw = (seed: number) => Array.from({ length: 5 }, createPrng(seed));
  assertEquals(draw(1), draw(1));
  assertNotEquals(draw(1), draw(2));
  assert(draw(3).every((unit) => unit >= 0 && unit < 1));
});
