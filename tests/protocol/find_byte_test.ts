/** `indexOfByte` against the engine's own search, over the borders of windows and blocks. */
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { indexOfByte } from "../../lib/protocol/find_byte.ts";

const QUOTE = 0x22;

Deno.test("indexOfByte() finds what the engine's own search finds", () => {
  const content = fc.uint8Array({ maxLength: 300 });
  fc.assert(fc.property(content, fc.nat(255), fc.nat(310), fc.nat(20), (content, byte, from, offset) => {
    const bytes = content.subarray(Math.min(offset, content.length));
    assertEquals(indexOfByte(bytes, byte, from), bytes.indexOf(byte, from));
  }));
});

/** Around the ends of the windows, 1 KiB, 4, then 16 KiB each, and of the blocks of 64 between them. */
for (const border of [0, 64, 128, 1_024, 1_088, 5_120, 21_504, 37_888, 54_272]) {
  Deno.test(`indexOfByte() finds a byte around place ${border}`, () => {
    for (let at = Math.max(0, border - 17); at <= border + 17; at++) {
      const bytes = new Uint8Array(200_000).fill(0x61);
      bytes[at] = QUOTE;
      assertEquals(indexOfByte(bytes, QUOTE), at);
      assertEquals(indexOfByte(bytes.subarray(at), QUOTE), 0);
      assertEquals(indexOfByte(bytes, QUOTE, at), at);
      assertEquals(indexOfByte(bytes, QUOTE, at + 1), -1);
    }
  });
}

Deno.test("indexOfByte() sees every byte of every sixteen", () => {
  for (let byte = 0; byte < 256; byte += 15) {
    for (let at = 0; at < 128; at++) {
      const bytes = new Uint8Array(128).fill(byte ^ 0x80);
      bytes[at] = byte;
      assertEquals(indexOfByte(bytes, byte), at);
    }
  }
});

Deno.test("indexOfByte() looks at nothing before or behind its view, nor at what was searched before", () => {
  const whole = new Uint8Array(3_000).fill(QUOTE);
  assertEquals(indexOfByte(whole, QUOTE), 0);
  for (const length of [0, 1, 63, 64, 65, 1_000, 1_024, 1_025, 2_000]) {
    const bytes = whole.subarray(500, 500 + length).fill(0x61);
    assertEquals(indexOfByte(bytes, QUOTE), -1, `${length}`);
    whole.fill(QUOTE);
    assertEquals(indexOfByte(whole, QUOTE), 0);
  }
});

/** Runs `body` with a module of its own (the finder is made once) and with what it finds as `WebAssembly`. */
async function withEngine(
  engine: typeof WebAssembly | undefined,
  body: (find: typeof indexOfByte) => void,
): Promise<void> {
  const { WebAssembly } = globalThis;
  const set = (value: unknown) =>
    Object.defineProperty(globalThis, "WebAssembly", {
      value,
      configurable: true,
      writable: true,
      enumerable: false,
    });
  set(engine);
  try {
    const own = await import(`../../lib/protocol/find_byte.ts?${engine === undefined ? "without" : "with"}`);
    body(own.indexOfByte);
  } finally {
    set(WebAssembly);
  }
}

Deno.test("indexOfByte() has a module that this engine takes", async () => {
  const { Module, Instance } = WebAssembly;
  const made: WebAssembly.Instance[] = [];
  const counting = {
    Module,
    Instance: class extends Instance {
      constructor(module: WebAssembly.Module) {
        super(module);
        made.push(this);
      }
    },
  };
  await withEngine(counting as unknown as typeof WebAssembly, (find) => {
    assertEquals(find(new Uint8Array([1, 2, 3]), 3), 2);
    assertEquals(find(new Uint8Array([1, 2, 3]), 4), -1);
  });
  assertEquals(made.length, 1);
});

Deno.test("indexOfByte() also works where the engine compiles nothing", async () => {
  await withEngine(undefined, (find) => {
    const bytes = new Uint8Array(100_000);
    bytes[99_999] = QUOTE;
    assertEquals(find(bytes, QUOTE, 5), 99_999);
    assertEquals(find(bytes, 1), -1);
  });
});
