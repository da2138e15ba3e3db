/** Memory of large bodies, used again: nobody gets what somebody else still has. */
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { borrowBytes, dropIdleBuffers, isBorrowed, returnBytes } from "../../lib/core/spare_buffers.ts";

const MIB = 1_048_576;

/** As at the start of the process. */
function empty(): void {
  dropIdleBuffers();
  dropIdleBuffers();
}

Deno.test("borrowBytes() gives as many as asked for, and memory that came back is used again", () => {
  empty();
  for (const length of [65_536, 65_537, 100_000, MIB, MIB + 1, 8 * MIB, 33_554_432]) {
    const first = borrowBytes(length);
    assertEquals([first.length, isBorrowed(first)], [length, true]);
    first.fill(7);
    returnBytes(first);
    assertEquals([first.length, first.buffer.byteLength], [0, 0]);
    const second = borrowBytes(length);
    assertEquals([second.length, second[0], second[length - 1]], [length, 7, 7]);
    returnBytes(second);
    // Twice changes nothing.
    returnBytes(second);
  }
});

Deno.test("borrowBytes() keeps the buffer of a body that grows a little", () => {
  empty();
  const first = borrowBytes(8 * MIB + 100).fill(7);
  returnBytes(first);
  const grown = borrowBytes(8 * MIB + 60_000);
  assertEquals(grown[8 * MIB], 7);
  returnBytes(grown);
});

Deno.test("borrowBytes() takes at most a quarter more than is needed", () => {
  empty();
  fc.assert(fc.property(fc.integer({ min: 65_536, max: 33_554_432 }), (length) => {
    const bytes = borrowBytes(length);
    const { byteLength } = bytes.buffer;
    returnBytes(bytes);
    assert(byteLength >= length && byteLength <= length * 1.25, `${length}: ${byteLength}`);
  }));
});

Deno.test("small bytes, and those of others, are nobody's to take back", () => {
  const small = borrowBytes(65_535);
  assertEquals([small.length, isBorrowed(small), small.every((byte) => byte === 0)], [65_535, false, true]);
  const other = new Uint8Array(MIB);
  for (const bytes of [small, other]) {
    returnBytes(bytes);
    assert(bytes.length > 0);
  }
});

Deno.test("returnBytes() keeps 64 MiB and frees what is more", () => {
  empty();
  const all = Array.from({ length: 10 }, () => borrowBytes(8 * MIB).fill(7));
  for (const bytes of all) returnBytes(bytes);
  const again = all.map(() => borrowBytes(8 * MIB));
  assertEquals(again.map((bytes) => bytes[0]), [7, 7, 7, 7, 7, 7, 7, 7, 0, 0]);
  for (const bytes of again) returnBytes(bytes);
});

Deno.test("dropIdleBuffers() frees what nobody needed since the last time", () => {
  empty();
  const [one, two] = [borrowBytes(MIB).fill(1), borrowBytes(MIB).fill(2)];
  returnBytes(one);
  returnBytes(two);
  dropIdleBuffers();
  // One of two was enough since.
  returnBytes(borrowBytes(MIB));
  dropIdleBuffers();
  const [kept, fresh] = [borrowBytes(MIB), borrowBytes(MIB)];
  assert(kept[0] !== 0);
  assertEquals(fresh[0], 0);
  returnBytes(kept);
  returnBytes(fresh);
});

Deno.test("whatever is borrowed and returned in whatever order, nobody's bytes are another's", () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ take: fc.constantFrom(65_536, 70_000, 90_000, 131_072, 140_000) }) },
    { weight: 5, arbitrary: fc.record({ giveBack: fc.nat(20) }) },
    { weight: 1, arbitrary: fc.constant({ drop: true as const }) },
  );
  fc.assert(fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const held: { bytes: Uint8Array<ArrayBuffer>; mark: number }[] = [];
    let mark = 0;
    for (const step of steps) {
      if ("take" in step) {
        mark = mark % 250 + 1;
        held.push({ bytes: borrowBytes(step.take).fill(mark), mark });
      } else if ("giveBack" in step) {
        const [given] = held.splice(step.giveBack, 1);
        if (given !== undefined) returnBytes(given.bytes);
      } else dropIdleBuffers();
      for (const { bytes, mark } of held) {
        assertEquals([bytes[0], bytes[bytes.length >> 1], bytes.at(-1)], [mark, mark, mark]);
      }
    }
    for (const { bytes } of held) returnBytes(bytes);
  }));
});
