/** `indexOfText` against the engine's own search, over windows' borders and beyond. */
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { indexOfText } from "../../lib/protocol/find_text.ts";

const ENCODER = new TextEncoder();

Deno.test("indexOfText() finds what a search of the whole finds", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", '"', "é"), maxLength: 40 });
  const wanted = fc.string({ unit: fc.constantFrom("a", "b", '"'), minLength: 1, maxLength: 4 });
  fc.assert(fc.property(text, wanted, fc.nat(45), (text, wanted, from) => {
    const bytes = ENCODER.encode(text);
    const latin = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    const found = latin.indexOf(wanted, from);
    assertEquals(indexOfText(bytes, wanted, from), from > latin.length ? -1 : found);
  }));
});

/** Around the ends of the windows: 1 KiB, 4, then 16 KiB each. */
for (const border of [0, 1_024, 5_120, 21_504, 37_888, 54_272]) {
  Deno.test(`indexOfText() finds a mark that lies across byte ${border}`, () => {
    for (let shift = -6; shift <= 6; shift++) {
      const at = border + shift;
      if (at < 0) continue;
      const bytes = new Uint8Array(200_000).fill(0x61);
      bytes.set(ENCODER.encode('"hf.'), at);
      assertEquals(indexOfText(bytes, '"hf.'), at);
      assertEquals(indexOfText(bytes.subarray(at), '"hf.'), 0);
      assertEquals(indexOfText(bytes, '"hf.', at + 1), -1);
    }
  });
}

Deno.test("indexOfText() finds the place among bytes that are no text, and among characters of several bytes", () => {
  const bytes = fc.uint8Array({ maxLength: 60 });
  fc.assert(fc.property(bytes, bytes, (before, after) => {
    const whole = new Uint8Array([...before, ...ENCODER.encode('"hf.'), ...after]);
    const naive = Array.from(whole, (byte) => String.fromCharCode(byte)).join("").indexOf('"hf.');
    assertEquals(indexOfText(whole, '"hf.'), naive);
  }));
  const cyrillic = ENCODER.encode("д".repeat(5_000) + '"hf.' + "д".repeat(100));
  assertEquals(indexOfText(cyrillic, '"hf.'), 10_000);
  assertEquals(indexOfText(cyrillic, '"hf.', 10_001), -1);
});

Deno.test("indexOfText() does not look beyond its view", () => {
  const whole = ENCODER.encode('xx"hf.');
  assertEquals(indexOfText(whole.subarray(0, 5), '"hf.'), -1);
  assertEquals(indexOfText(new Uint8Array(0), "a"), -1);
});
