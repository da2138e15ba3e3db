/** Answers in pieces of every size, as they reach the client. */
import { assertEquals } from "@std/assert";
import type { ByteSource } from "../../lib/ports.ts";
import { Answer } from "../../lib/proxy/answer.ts";
import { listen } from "../support/bare_listener.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** Around the sizes where a piece is framed here, by the runtime, and given back when it is out. */
const SIZES = [1, 15, 16, 255, 256, 4_095, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1_000_000];

/** Bytes that tell their place in the whole. */
function pieces(sizes: readonly number[]): Bytes[] {
  let at = 0;
  return sizes.map((size) => new Uint8Array(size).map(() => at++ % 251));
}

function sourceOf(list: readonly Bytes[]): ByteSource & { readCount: number; cancelled: boolean } {
  const rest = [...list];
  return {
    readCount: 0,
    cancelled: false,
    async read() {
      // Some pieces are there at once, some come later.
      if (rest.length % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      this.readCount++;
      return rest.shift() ?? null;
    },
    cancel() {
      this.cancelled = true;
    },
  };
}

function assertCounts(whole: Uint8Array, length: number): void {
  assertEquals(whole.length, length);
  assertEquals(whole.findIndex((byte, at) => byte !== at % 251), -1);
}

const TOTAL = SIZES.reduce((sum, size) => sum + size, 0);

for (const order of ["rising", "falling", "mixed"] as const) {
  Deno.test(`an answer of unknown length comes whole and in order, its connection serves on: ${order}`, async () => {
    const sizes = order === "rising"
      ? SIZES
      : order === "falling"
      ? SIZES.toReversed()
      : SIZES.flatMap((size, index) => index % 2 === 0 ? [size, 1] : [size]);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    await using server = await listen(() => new Answer(sourceOf(pieces(sizes))));
    const client = Deno.createHttpClient({ poolMaxIdlePerHost: 1 });
    for (let round = 0; round < 2; round++) {
      const answer = await fetch(`http://127.0.0.1:${server.port}/`, { client });
      assertCounts(await answer.bytes(), total);
    }
    client.close();
  });
}

Deno.test("an answer whose length is known comes without chunks", async () => {
  await using server = await listen(() =>
    new Answer(sourceOf(pieces(SIZES)), { headers: { "content-length": String(TOTAL) } })
  );
  const answer = await fetch(`http://127.0.0.1:${server.port}/`);
  assertEquals(answer.headers.get("transfer-encoding"), null);
  assertCounts(await answer.bytes(), TOTAL);
});

Deno.test("answers that are there already come whole, whatever their length, again and again on one connection", async () => {
  let turn = 0;
  await using server = await listen(() => new Answer(pieces([SIZES[turn++ % SIZES.length]!])[0]!));
  const client = Deno.createHttpClient({ poolMaxIdlePerHost: 1 });
  for (const size of [...SIZES, ...SIZES]) {
    const answer = await fetch(`http://127.0.0.1:${server.port}/`, { client });
    assertCounts(await answer.bytes(), size);
  }
  client.close();
});

Deno.test("a client of HTTP/1.0 gets no chunks: its answer ends with the connection", async () => {
  await using server = await listen(() => new Answer(sourceOf(pieces(SIZES))));
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  await connection.write(new TextEncoder().encode("GET / HTTP/1.0\r\nhost: x\r\n\r\n"));
  const whole = new Uint8Array(await new Response(connection.readable).arrayBuffer());
  const head = new TextDecoder().decode(whole.subarray(0, 1_000));
  const begin = head.indexOf("\r\n\r\n") + 4;
  assertEquals(/transfer-encoding/i.test(head.slice(0, begin)), false);
  assertCounts(whole.subarray(begin), TOTAL);
});

for (const size of [1_000, 100_000]) {
  for (const framing of ["chunks", "a length"]) {
    Deno.test(`a client that does not read holds its answer's source up, and gets all of it later: ${framing}, ${size} bytes a piece`, async () => {
      const count = 40_000_000 / size;
      const source = sourceOf([]);
      source.read = async function () {
        // The timers of others have their turn as well.
        if (this.readCount % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
        if (this.readCount === count) return null;
        const from = this.readCount++ * size;
        return new Uint8Array(size).map((_, at) => (from + at) % 251);
      };
      const headers: Record<string, string> = framing === "chunks" ? {} : { "content-length": "40000000" };
      await using server = await listen(() => new Answer(source, { headers }));
      const answer = await fetch(`http://127.0.0.1:${server.port}/`);
      let before = 0;
      while (before !== source.readCount || before === 0) {
        before = source.readCount;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      // What the sockets of both ends take, not all of it.
      assertEquals(source.readCount * size < 25_000_000, true, `${source.readCount * size} bytes were read`);
      assertCounts(await answer.bytes(), 40_000_000);
    });
  }
}
