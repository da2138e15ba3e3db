import { assertEquals } from "@std/assert";
import { createDigest } from "../../lib/runtime/digest.ts";

const digest = createDigest();

Deno.test("sha256() gives lower-case hex, the same for text and its UTF-8 bytes", () => {
  assertEquals(
    digest.sha256("abc"),
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
  assertEquals(digest.sha256("é"), digest.sha256(new Uint8Array([0xc3, 0xa9])));
  assertEquals(digest.sha256("").length, 64);
});

const cases = [
  { name: "equal", a: "ab12", b: "ab12", want: true },
  { name: "first character differs", a: "ab12", b: "bb12", want: false },
  { name: "last character differs", a: "ab12", b: "ab13", want: false },
  { name: "shorter", a: "ab1", b: "ab12", want: false },
  { name: "longer in bytes only", a: "abé", b: "abe", want: false },
  { name: "both empty", a: "", b: "", want: true },
] as const;
for (const c of cases) {
  Deno.test(`equal() is ${c.want}: ${c.name}`, () => assertEquals(digest.equal(c.a, c.b), c.want));
}
