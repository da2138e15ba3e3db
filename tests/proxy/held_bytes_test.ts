import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { joinBytes } from "../../lib/proxy/answer_stream.ts";
import { HeldBytes } from "../../lib/proxy/held_bytes.ts";

const BUFFER_BYTES = 65_536;

/** A read of a few bytes, as the network gives it: a view at the head of a large buffer. */
function networkPiece(length: number, fill = 7): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new ArrayBuffer(Math.max(length, BUFFER_BYTES)), 0, length).fill(fill);
}

Deno.test("take() gives back what was added, byte for byte, in pieces that share no buffer and are never empty", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 100_000 }), { maxLength: 40 }), (pieces) => {
      const held = new HeldBytes();
      for (const piece of pieces) held.add(new Uint8Array(piece));
      const whole = joinBytes(pieces.map((piece) => new Uint8Array(piece)));
      assertEquals(held.length, whole.length);
      const taken = held.take();
      assertEquals(joinBytes(taken), whole);
      assertEquals(new Set(taken.map((piece) => piece.buffer)).size, taken.length);
      assert(taken.every((piece) => piece.length > 0));
      assertEquals([held.length, held.take()], [0, []]);
    }),
    { numRuns: 60 },
  );
});

Deno.test("a few pieces are given back as they came, uncopied", () => {
  const held = new HeldBytes();
  const pieces = [1, 2, 3, 4].map((fill) => networkPiece(20, fill));
  for (const piece of pieces) held.add(piece);
  assertEquals(held.take().map((piece) => piece.buffer), pieces.map((piece) => piece.buffer));
});

Deno.test("many small reads take about their own length, not a network buffer each", () => {
  const held = new HeldBytes();
  for (let count = 0; count < 10_000; count++) held.add(networkPiece(200));
  const taken = held.take();
  const allocated = taken.reduce((sum, piece) => sum + piece.buffer.byteLength, 0);
  assertEquals(taken.reduce((sum, piece) => sum + piece.length, 0), 2_000_000);
  assert(allocated < 2_000_000 + 6 * BUFFER_BYTES, `${allocated}`);
});
