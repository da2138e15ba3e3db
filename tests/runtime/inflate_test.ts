import { assertEquals } from "@std/assert";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { CORRUPT_BROTLI_LIMIT, createInflate } from "../../lib/runtime/inflate.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const PLAIN = new TextEncoder().encode(JSON.stringify({ model: "m1", input: "é北🚀 ".repeat(500) }));
const PACKERS: Readonly<Record<string, (plain: Bytes) => Bytes>> = {
  gzip: (plain) => new Uint8Array(gzipSync(plain)),
  br: (plain) => new Uint8Array(brotliCompressSync(plain)),
  zstd: (plain) => new Uint8Array(zstdCompressSync(plain)),
  deflate: (plain) => new Uint8Array(deflateSync(plain)),
};
const { decode } = createInflate();

for (const [coding, pack] of Object.entries(PACKERS)) {
  const packed = pack(PLAIN);
  Deno.test(`decode() undoes ${coding}, up to the limit and not a byte beyond`, async () => {
    for (const over of [-1, 0, 1]) {
      const got = await decode(packed, coding, PLAIN.length - over);
      const want = over <= 0 ? { ok: true, bytes: PLAIN } : { ok: false, problem: "too_large" };
      assertEquals(got as unknown, want);
    }
  });

  Deno.test(`decode() calls ${coding} corrupt that is cut, changed or something else`, async () => {
    const changed = packed.slice();
    changed.fill(0xff, 4, 12);
    // The runtime takes a cut zstd body for what it holds up to there; its length tells that it is not whole.
    const cut = coding === "zstd" ? [] : [packed.slice(0, -3), packed.slice(0, 5)];
    for (const bytes of [...cut, changed, PLAIN]) {
      const got = await decode(bytes, coding, 1_000_000);
      assertEquals(got, { ok: false, problem: "corrupt" });
    }
  });

  for (const [outer, packAgain] of Object.entries(PACKERS)) {
    Deno.test(`decode() undoes ${coding}, then ${outer}`, async () => {
      const got = await decode(packAgain(packed), `${coding} , ${outer.toUpperCase()}`, 1_000_000);
      assertEquals(got, { ok: true, bytes: PLAIN });
    });
  }
}

Deno.test("decode() looks into no brotli any more after some corrupt bodies, and into everything else", async () => {
  const inflate = createInflate();
  // Its decoder keeps 12 KB of this for good.
  const corrupt = Uint8Array.fromHex("1b6300f825c202b140a0b4");
  for (let count = 0; count < CORRUPT_BROTLI_LIMIT; count++) {
    assertEquals(await inflate.decode(PACKERS["br"]!(PLAIN), "br", 1_000_000), { ok: true, bytes: PLAIN });
    assertEquals(await inflate.decode(corrupt, "br", 1_000_000), { ok: false, problem: "corrupt" });
  }
  for (const coding of ["br", "gzip, BR"]) {
    const got = await inflate.decode(PACKERS["br"]!(PLAIN), coding, 1_000_000);
    assertEquals(got, { ok: false, problem: "unknown_coding" });
  }
  assertEquals(await inflate.decode(PACKERS["gzip"]!(PLAIN), "gzip", 1_000_000), { ok: true, bytes: PLAIN });
});

const others = [
  { coding: "identity", want: { ok: true, bytes: PLAIN } },
  { coding: "", want: { ok: true, bytes: PLAIN } },
  { coding: "compress", want: { ok: false, problem: "unknown_coding" } },
  { coding: "gzip, gzip, gzip", want: { ok: false, problem: "unknown_coding" } },
  { coding: "constructor", want: { ok: false, problem: "unknown_coding" } },
  { coding: "__proto__", want: { ok: false, problem: "unknown_coding" } },
] as const;
for (const { coding, want } of others) {
  Deno.test(`decode() of ${JSON.stringify(coding)} is ${want.ok ? "the bytes" : want.problem}`, async () => {
    assertEquals(await decode(PLAIN, coding, 1_000_000) as unknown, want);
  });
}
