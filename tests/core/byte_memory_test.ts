import { assertEquals } from "@std/assert";
import { freeBytes, makeBytes } from "../../lib/core/byte_memory.ts";

const cases: readonly { name: string; bytes: () => Uint8Array<ArrayBuffer>; freed: boolean }[] = [
  { name: "64 KiB", bytes: () => new Uint8Array(65_536), freed: true },
  { name: "8 MiB", bytes: () => new Uint8Array(8_388_608), freed: true },
  { name: "a byte less than 64 KiB", bytes: () => new Uint8Array(65_535), freed: false },
  {
    name: "the beginning of a larger buffer",
    bytes: () => new Uint8Array(200_000).subarray(0, 199_999),
    freed: false,
  },
  { name: "the end of a larger buffer", bytes: () => new Uint8Array(200_000).subarray(1), freed: false },
];
for (const c of cases) {
  Deno.test(`freeBytes() ${c.freed ? "frees" : "leaves alone"} ${c.name}`, () => {
    const bytes = c.bytes();
    const { length } = bytes;
    freeBytes(bytes);
    assertEquals(bytes.length, c.freed ? 0 : length);
    // Bytes of one body may be known under several names.
    freeBytes(bytes);
  });
}

Deno.test("makeBytes() gives zeros that nobody else has, of every length", () => {
  const lengths = [0, 1, 100, 700, 2_047, 2_048, 2_049, 100_000];
  const all = Array.from({ length: 300 }, (_, index) => {
    const bytes = makeBytes(lengths[index % lengths.length]!);
    assertEquals(bytes.length, lengths[index % lengths.length]);
    assertEquals(bytes.every((byte) => byte === 0), true);
    return bytes.fill(index % 251 + 1);
  });
  all.forEach((bytes, index) => assertEquals(bytes.every((byte) => byte === index % 251 + 1), true));
});

Deno.test("freeBytes() leaves alone what shares its memory", () => {
  const [one, other] = [makeBytes(2_000), makeBytes(2_000)];
  freeBytes(one);
  assertEquals([one.length, other.length], [2_000, 2_000]);
});
