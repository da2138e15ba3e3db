/** The memory of request bodies, with a server that answers before it has read. */
import { assertEquals } from "@std/assert";
import { borrowBytes, dropIdleBuffers } from "../../lib/core/spare_buffers.ts";
import { forgetBytes, whileSent } from "../../lib/upstream/body_memory.ts";
import { HttpConnection } from "../../lib/upstream/http_connection.ts";
import { createClock } from "../../lib/runtime/clock.ts";
import { answerOf, requestTo, send, testUpstream } from "../support/upstream_request.ts";

const LARGE_BYTES = 8_388_608;

Deno.test("forgetBytes() frees what nobody sends", () => {
  const bytes = new Uint8Array(LARGE_BYTES);
  forgetBytes(bytes);
  assertEquals(bytes.length, 0);
});

for (const fails of [false, true]) {
  Deno.test(`bytes forgotten while two send them are freed after the last, which ${fails ? "fails" : "ends"}`, async () => {
    const bytes = new Uint8Array(LARGE_BYTES);
    const [first, last] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const sends = [first, last].map(({ promise }) => whileSent(bytes, () => promise).catch(() => {}));
    forgetBytes(bytes);
    first.resolve();
    await sends[0];
    assertEquals(bytes.length, LARGE_BYTES);
    if (fails) last.reject(new Error("broken"));
    else last.resolve();
    await sends[1];
    assertEquals(bytes.length, 0);
  });
}

for (const fails of [false, true]) {
  const outcome = fails
    ? "of a send that failed is nobody's any more"
    : "of bytes that were sent is used again";
  Deno.test(`the memory ${outcome}, also when others sent them after it`, async () => {
    dropIdleBuffers();
    dropIdleBuffers();
    const bytes = borrowBytes(LARGE_BYTES).fill(7);
    await whileSent(bytes, () => fails ? Promise.reject(new Error("broken")) : Promise.resolve()).catch(
      () => {},
    );
    await whileSent(bytes, () => Promise.resolve());
    forgetBytes(bytes);
    // A body that needed no changes is known twice.
    forgetBytes(bytes);
    assertEquals(borrowBytes(LARGE_BYTES)[0], fails ? 0 : 7);
  });
}

Deno.test("bytes that were sent stay for the next attempt", async () => {
  const bytes = new Uint8Array(LARGE_BYTES);
  await whileSent(bytes, () => Promise.resolve());
  assertEquals(bytes.length, LARGE_BYTES);
});

Deno.test("a body forgotten while its head is still being written goes out whole", async () => {
  const goOn = Promise.withResolvers<void>();
  const written: number[] = [];
  const answer = new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
  let reads = 0;
  const connection = new HttpConnection({
    async write(bytes) {
      if (written.length === 0) await goOn.promise;
      written.push(bytes.length);
      return bytes.length;
    },
    read(into) {
      if (reads++ > 0) return new Promise(() => {});
      into.set(answer);
      return Promise.resolve(answer.length);
    },
    close: () => {},
  });
  const body = borrowBytes(LARGE_BYTES);
  const head = "POST / HTTP/1.1\r\n\r\n";
  await connection.exchange({ method: "POST", head, body }, () => {});
  forgetBytes(body);
  goOn.resolve();
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals(written, [head.length, LARGE_BYTES]);
  assertEquals(body.length, 0);
});

Deno.test("a body forgotten once its answer began still goes out whole", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const peer = listener.accept();
  using upstream = testUpstream(createClock());
  const body = new Uint8Array(LARGE_BYTES).map((_, index) => index % 251);
  const sending = send(
    upstream,
    requestTo(`http://127.0.0.1:${(listener.addr as Deno.NetAddr).port}/`, { body }),
  );
  using connection = await peer;
  await connection.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"));
  const answer = answerOf(await sending);
  upstream.forget(body);
  const got = new Uint8Array(LARGE_BYTES + 4_096);
  let at = 0;
  const isWhole = () => {
    const end = headEnd(got.subarray(0, at));
    return end !== -1 && at - end === LARGE_BYTES;
  };
  while (!isWhole()) {
    const read = await inTime(connection.read(got.subarray(at)));
    if (read === null) break;
    at += read;
  }
  const sent = got.subarray(headEnd(got.subarray(0, at)), at);
  assertEquals(sent.length, LARGE_BYTES);
  assertEquals(sent.findIndex((byte, index) => byte !== index % 251), -1);
  await connection.write(new TextEncoder().encode("ok"));
  assertEquals(await new Response(answer.body).text(), "ok");
  assertEquals(body.length, 0);
  listener.close();
});

/** @returns `null` when it takes longer than anybody would wait. */
async function inTime<T>(value: Promise<T>): Promise<T | null> {
  const late = Promise.withResolvers<null>();
  const timer = setTimeout(() => late.resolve(null), 5_000);
  try {
    return await Promise.race([value, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function headEnd(bytes: Uint8Array): number {
  for (let at = 0; at + 4 <= Math.min(bytes.length, 4_096); at++) {
    if (bytes[at] === 13 && bytes[at + 1] === 10 && bytes[at + 2] === 13 && bytes[at + 3] === 10) {
      return at + 4;
    }
  }
  return -1;
}
