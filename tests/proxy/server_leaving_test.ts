/** Clients that leave before they were answered, as the listener tells of them. */
import { assertEquals } from "@std/assert";
import { Answer } from "../../lib/proxy/answer.ts";
import type { ClientRequest } from "../../lib/proxy/client_request.ts";
import { HANDSHAKE, listen } from "../support/bare_listener.ts";

const ENCODER = new TextEncoder();

/** A listener whose one request is answered when the test says so. */
async function startRig(handle: (request: ClientRequest) => Promise<Answer> | null = () => null) {
  const read = Promise.withResolvers<ClientRequest>();
  const left = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Answer>();
  let leaves = 0;
  const server = await listen(async (request) => {
    request.whenLeft(() => {
      leaves++;
      left.resolve();
    });
    try {
      while (request.body !== null && await request.body.read() !== null);
      read.resolve(request);
    } catch (error) {
      read.reject(error);
    }
    return await handle(request) ?? await answer.promise;
  }, { headLimitMs: 200 });
  return {
    server,
    read: read.promise,
    left: left.promise,
    answer: (given: Answer) => answer.resolve(given),
    get leaves() {
      return leaves;
    },
    async connect(...pieces: readonly string[]) {
      const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
      for (const piece of pieces) {
        const bytes = ENCODER.encode(piece);
        for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return connection;
    },
    async [Symbol.asyncDispose]() {
      answer.resolve(new Answer(null));
      await server.stop(0);
    },
  };
}

const post = (framing: string) => `POST / HTTP/1.1\r\nhost: x\r\n${framing}\r\n\r\n`;
const sized = (bytes: number) => post(`content-length: ${bytes}`);
const x = (bytes: number) => "x".repeat(bytes);

const shapes: readonly { name: string; pieces: readonly string[] }[] = [
  { name: "no body", pieces: ["GET / HTTP/1.1\r\nhost: x\r\n\r\n"] },
  { name: "100 bytes", pieces: [sized(100) + x(100)] },
  { name: "10 KB", pieces: [sized(10_000) + x(10_000)] },
  { name: "1 MB", pieces: [sized(1_000_000) + x(1_000_000)] },
  { name: "a body apart from its head", pieces: [sized(100), x(100)] },
  { name: "a body in three pieces", pieces: [sized(3_000) + x(1_000), x(1_000), x(1_000)] },
  { name: "chunks", pieces: [post("transfer-encoding: chunked"), `3e8\r\n${x(1_000)}\r\n`, "0\r\n\r\n"] },
  { name: "a large head", pieces: [`${post(`x-a: ${x(5_000)}`)}`] },
  { name: "a WebSocket handshake", pieces: [`GET / HTTP/1.1\r\nhost: x\r\n${HANDSHAKE}\r\n`] },
];
for (const { name, pieces } of shapes) {
  for (
    const [how, leave] of Object.entries({ close: "closes", closeWrite: "says that it has no more to say" })
  ) {
    Deno.test(`a client that ${leave} before its answer is noticed, once: ${name}`, async () => {
      await using rig = await startRig();
      const connection = await rig.connect(...pieces);
      await rig.read;
      if (how === "close") connection.close();
      else await connection.closeWrite();
      await rig.left;
      if (how !== "close") connection.close();
      assertEquals(rig.leaves, 1);
    });
  }
}

Deno.test("a client that leaves in the middle of its body is noticed, and the body does not look whole", async () => {
  await using rig = await startRig();
  const broken = rig.read.then(() => "whole", (error) => error.name);
  const connection = await rig.connect(sized(1_000) + x(500));
  connection.close();
  await rig.left;
  assertEquals(await broken, "BodyCut");
  assertEquals(rig.leaves, 1);
});

Deno.test("a client that has its whole answer has not left, whatever it does next", async () => {
  await using rig = await startRig();
  const connection = await rig.connect(sized(10_000) + x(10_000));
  rig.answer(new Answer("done"));
  await connection.read(new Uint8Array(1_000));
  connection.close();
  await new Promise((resolve) => setTimeout(resolve, 30));
  assertEquals([rig.leaves, rig.server.openCount], [0, 0]);
});

Deno.test("a client that leaves in the middle of its answer ends the answer's source", async () => {
  const cancelled = Promise.withResolvers<void>();
  await using rig = await startRig();
  const connection = await rig.connect(sized(10_000) + x(10_000));
  let given = false;
  rig.answer(
    new Answer({
      read() {
        if (given) return cancelled.promise.then(() => null);
        given = true;
        return Promise.resolve(ENCODER.encode("first"));
      },
      cancel: () => cancelled.resolve(),
    }),
  );
  await connection.read(new Uint8Array(1_000));
  connection.close();
  await cancelled.promise;
  assertEquals(rig.leaves, 1);
});

for (const begun of ["", "GET / HTTP/1.1\r\nhos"]) {
  Deno.test(`a head that never comes whole is 408 and the end: ${JSON.stringify(begun)}`, async () => {
    await using rig = await startRig();
    using connection = await rig.connect(begun);
    const bytes = new Uint8Array(1_000);
    const length = await connection.read(bytes);
    assertEquals(new TextDecoder().decode(bytes.subarray(0, length ?? 0)).slice(0, 12), "HTTP/1.1 408");
    assertEquals(await connection.read(bytes), null);
  });
}

Deno.test("a connection that waits for its answer, or for its next request, has all the time it wants", async () => {
  await using rig = await startRig();
  using connection = await rig.connect(sized(1_000) + x(1_000));
  await rig.read;
  await new Promise((resolve) => setTimeout(resolve, 400));
  rig.answer(new Answer("done"));
  const bytes = new Uint8Array(1_000);
  const ask = async () => new TextDecoder().decode(bytes.subarray(0, (await connection.read(bytes)) ?? 0));
  assertEquals((await ask()).slice(0, 12), "HTTP/1.1 200");
  await new Promise((resolve) => setTimeout(resolve, 400));
  await connection.write(ENCODER.encode(sized(1) + "x"));
  assertEquals((await ask()).slice(0, 12), "HTTP/1.1 200");
  assertEquals(rig.leaves, 0);
});
