import { assert, assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import { createIds, createRandom } from "../../lib/runtime/chance.ts";
import { parseAttemptId } from "../../lib/core/domain.ts";

Deno.test("createRandom() repeats its row for the same seed and differs for another", () => {
  const draw = (seed: number) => {
    const random = createRandom(seed);
    return Array.from({ length: 8 }, () => random.next());
  };
  assertEquals(draw(7), draw(7));
  assertNotEquals(draw(7), draw(8));
});

Deno.test("createRandom() is uniform in [0, 1): every tenth gets its share", () => {
  const random = createRandom(1);
  const shares = new Array<number>(10).fill(0);
  for (let i = 0; i < 10_000; i++) {
    const value = random.next();
    assert(value >= 0 && value < 1);
    shares[Math.floor(value * 10)]! += 1;
  }
  for (const share of shares) assert(share > 850 && share < 1_150, String(shares));
});

for (const seed of [-1, 1.5, NaN, 2 ** 32]) {
  Deno.test(`createRandom() refuses the seed ${seed}`, () => {
    assertThrows(() => createRandom(seed), RangeError);
  });
}

Deno.test("requestId() is req_ and 24 URL-safe characters, makes attempt ids, and never repeats", () => {
  const ids = createIds();
  const seen = new Set<string>();
  for (let i = 0; i < 1_000; i++) {
    const id = ids.requestId();
    assert(/^req_[A-Za-z0-9_-]{24}$/.test(id), id);
    assertEquals(parseAttemptId(`${id}:1`), { request: id, counter: 1 });
    seen.add(id);
  }
  assertEquals(seen.size, 1_000);
});

for (const [bytes, length] of [[1, 2], [16, 22], [32, 43]] as const) {
  Deno.test(`secret() of ${bytes} bytes is ${length} base64url characters`, () => {
    const ids = createIds();
    assert(new RegExp(`^[A-Za-z0-9_-]{${length}}$`).test(ids.secret(bytes)));
    if (bytes > 1) assertNotEquals(ids.secret(bytes), ids.secret(bytes));
  });
}
