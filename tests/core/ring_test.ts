import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { expandRing, readRing, type RingMember } from "../../lib/core/ring.ts";

function member(provider: string, weight: number): RingMember {
  return { provider, model: "m", weight };
}

function names(slots: readonly { provider: string }[]): string {
  return slots.map((slot) => slot.provider).join("");
}

const rings = [
  { name: "even", members: [member("a", 1), member("b", 1)], want: "ab" },
  { name: "three to one: spread, not clumped", members: [member("a", 3), member("b", 1)], want: "aaba" },
  { name: "three, two, one", members: [member("a", 3), member("b", 2), member("c", 1)], want: "abacba" },
  { name: "nobody", members: [], want: "" },
] as const;
for (const c of rings) {
  Deno.test(`expandRing() turns ${c.want || "into nothing"}: ${c.name}`, () => {
    assertEquals(names(expandRing(c.members)), c.want);
  });
}

const mistakes = [
  { name: "weight 0", members: [member("a", 0)] },
  { name: "weight 101", members: [member("a", 101)] },
  { name: "half a weight", members: [member("a", 1.5)] },
  { name: "257 slots", members: [member("a", 100), member("b", 100), member("c", 57)] },
] as const;
for (const c of mistakes) {
  Deno.test(`expandRing() refuses ${c.name}`, () => {
    assertThrows(() => expandRing(c.members), RangeError);
  });
}

Deno.test("expandRing() allows weight 100 and 256 slots", () => {
  assertEquals(expandRing([member("a", 100), member("b", 100), member("c", 56)]).length, 256);
});

Deno.test("readRing() meets every member once, from the cursor on", () => {
  const slots = expandRing([member("a", 3), member("b", 2), member("c", 1)]);
  assertEquals([0, 1, 2, 3, 4, 5].map((cursor) => names(readRing(slots, cursor))), [
    "abc",
    "bac",
    "acb",
    "cba",
    "bac",
    "abc",
  ]);
});

Deno.test("readRing() keeps two models of one provider apart", () => {
  const slots = expandRing([{ provider: "a", model: "m", weight: 1 }, {
    provider: "a",
    model: "n",
    weight: 1,
  }]);
  assertEquals(readRing(slots, 0).length, 2);
});

Deno.test("expandRing() serves in proportion to the weights over one turn", () => {
  const weights = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 5 });
  fc.assert(fc.property(weights, (given) => {
    const slots = expandRing(given.map((weight, at) => member(`p${at}`, weight)));
    for (const [at, weight] of given.entries()) {
      assertEquals(slots.filter((slot) => slot.provider === `p${at}`).length, weight);
    }
    assert(slots.length <= 256);
  }));
});
