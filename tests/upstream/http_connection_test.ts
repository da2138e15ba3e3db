import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Socket } from "node:net";
import { POOL_IDLE_MS } from "../../lib/upstream/connection_pool.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { rawServer } from "../support/rude_sockets.ts";
import { answerOf, requestTo, send, testUpstream, textOf } from "../support/upstream_request.ts";

/** A server that answers each request's head with the next of these, and counts its connections. */
async function scripted(answers: readonly string[]) {
  let at = 0;
  const sockets: Socket[] = [];
  const server = await rawServer((socket) => {
    sockets.push(socket);
    socket.on("data", () => socket.write(answers[at++] ?? "HTTP/1.1 500 Unscripted\r\n\r\n", "latin1"));
  });
  return {
    url: `http://127.0.0.1:${server.port}/`,
    sockets,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

const kept: { name: string; first: string; reused: boolean }[] = [
  { name: "a counted body", first: OK, reused: true },
  {
    name: "a chunked body",
    first: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    reused: true,
  },
  {
    name: "an empty chunked body",
    first: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    reused: true,
  },
  { name: "an empty body", first: "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", reused: true },
  { name: "no body", first: "HTTP/1.1 204 No Content\r\n\r\n", reused: true },
  {
    name: "connection: close",
    first: OK.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"),
    reused: false,
  },
  { name: "bytes behind the body", first: `${OK}HTTP/1.1 200 OK\r\n`, reused: false },
  { name: "HTTP/1.0", first: OK.replace("1.1", "1.0"), reused: false },
];
for (const c of kept) {
  Deno.test(`a connection is ${c.reused ? "used again" : "given up"} after ${c.name}`, async () => {
    await using server = await scripted([c.first, OK]);
    using upstream = testUpstream(new FakeClock());
    await textOf(await send(upstream, requestTo(server.url)));
    assertEquals(await textOf(await send(upstream, requestTo(server.url))), "ok");
    assertEquals(server.sockets.length, c.reused ? 1 : 2);
  });
}

Deno.test("an idle connection on which something comes is not used again: the next answer is the next request's", async () => {
  await using server = await scripted([OK, OK]);
  using upstream = testUpstream(new FakeClock());
  await textOf(await send(upstream, requestTo(server.url)));
  server.sockets[0]!.write("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nsmuggled");
  const gone = new Promise((resolve) => server.sockets[0]!.once("close", resolve));
  await gone;
  assertEquals(await textOf(await send(upstream, requestTo(server.url))), "ok");
  assertEquals(server.sockets.length, 2);
});

Deno.test("an idle connection that the upstream closed is noticed before it is used", async () => {
  await using server = await scripted([OK, OK]);
  using upstream = testUpstream(new FakeClock());
  await textOf(await send(upstream, requestTo(server.url)));
  const closed = new Promise((resolve) => server.sockets[0]!.once("close", resolve));
  server.sockets[0]!.end();
  await closed;
  assertEquals(await textOf(await send(upstream, requestTo(server.url))), "ok");
  assertEquals(server.sockets.length, 2);
});

for (const [name, ms, count] of [["before", POOL_IDLE_MS - 1, 1], ["at", POOL_IDLE_MS, 2]] as const) {
  Deno.test(`a connection is ${count === 1 ? "still used" : "closed"} ${name} the end of its idle time`, async () => {
    const clock = new FakeClock();
    await using server = await scripted([OK, OK]);
    using upstream = testUpstream(clock);
    await textOf(await send(upstream, requestTo(server.url)));
    clock.jump(ms);
    await textOf(await send(upstream, requestTo(server.url)));
    assertEquals(server.sockets.length, count);
  });
}

Deno.test("close() lets an answer under way end, and keeps none of its connections", async () => {
  await using server = await scripted(["HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab"]);
  const upstream = testUpstream(new FakeClock());
  const { body } = answerOf(await send(upstream, requestTo(server.url)));
  upstream.close();
  const closed = new Promise((resolve) => server.sockets[0]!.once("close", resolve));
  server.sockets[0]!.write("cd");
  let text = "";
  for await (const piece of body!) text += new TextDecoder().decode(piece);
  assertEquals(text, "abcd");
  await closed;
});

Deno.test("an answer that comes before the whole request is heard is an answer, and ends the request", async () => {
  await using server = await rawServer((socket) => {
    socket.once("data", () => {
      socket.pause();
      socket.write("HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig");
    });
  });
  using upstream = testUpstream(new FakeClock());
  const body = new Uint8Array(30_000_000);
  const result = await send(upstream, requestTo(`http://127.0.0.1:${server.port}/`, { body }));
  assertEquals(answerOf(result).status, 413);
  assertEquals(await textOf(result), "big");
});

Deno.test("a body of megabytes arrives whole, through every way of reading", async () => {
  const bytes = new Uint8Array(3_000_000);
  for (let at = 0; at < bytes.length; at++) bytes[at] = at * 7;
  const digest = async (data: Uint8Array<ArrayBuffer>) =>
    new Uint8Array(await crypto.subtle.digest("SHA-256", data)).toHex();
  const want = await digest(bytes);
  for (const framing of ["content-length: 3000000", "transfer-encoding: chunked", "connection: close"]) {
    await using server = await rawServer((socket) => {
      socket.on("data", () => {
        socket.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`);
        const chunked = framing.includes("chunked");
        for (let at = 0; at < bytes.length; at += 70_001) {
          const piece = bytes.subarray(at, at + 70_001);
          if (chunked) socket.write(`${piece.length.toString(16)}\r\n`);
          socket.write(piece);
          if (chunked) socket.write("\r\n");
        }
        if (chunked) socket.write("0\r\n\r\n");
        else if (framing.includes("close")) socket.end();
      });
    });
    using upstream = testUpstream(new FakeClock());
    const url = `http://127.0.0.1:${server.port}/`;
    const pieces = answerOf(await send(upstream, requestTo(url))).body!;
    assertEquals(await digest(new Uint8Array(await new Response(pieces).arrayBuffer())), want, framing);
    const { body } = answerOf(await send(upstream, requestTo(url)));
    const into = new Uint8Array(bytes.length);
    for (let at = 0; at < into.length;) {
      const piece = await body!.read(into.subarray(at, at + 100_003));
      if (piece === null) throw new Error(`The body ended after ${at} bytes`);
      assert(piece.buffer === into.buffer && piece.byteOffset === at);
      at += piece.length;
    }
    assertEquals(await body!.read(into), null);
    assertEquals(await digest(into), want, framing);
  }
});

Deno.test("what was read is not written over by what is read after it", async () => {
  await using server = await scripted(["HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab"]);
  using upstream = testUpstream(new FakeClock());
  const { body } = answerOf(await send(upstream, requestTo(server.url)));
  const first = await body!.read();
  server.sockets[0]!.write("cd");
  const second = await body!.read();
  assertEquals([first, second].map((piece) => new TextDecoder().decode(piece!)), ["ab", "cd"]);
  assertEquals(await body!.read(), null);
});

Deno.test("a body cancelled while it is read gives null and closes its connection, and cancelling again does nothing", async () => {
  await using server = await scripted(["HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"]);
  using upstream = testUpstream(new FakeClock());
  const { body } = answerOf(await send(upstream, requestTo(server.url)));
  const pending = body!.read();
  const closed = new Promise((resolve) => server.sockets[0]!.once("close", resolve));
  body!.cancel();
  body!.cancel();
  assertEquals(await pending, null);
  assertEquals(await body!.read(), null);
  await closed;
});

Deno.test("reads after a broken body give null: its failure is told once", async () => {
  await using server = await rawServer((socket) => {
    socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab"));
  });
  using upstream = testUpstream(new FakeClock());
  const { body } = answerOf(await send(upstream, requestTo(`http://127.0.0.1:${server.port}/`)));
  assertEquals((await body!.read())?.length, 2);
  await assertRejects(() => body!.read());
  assertEquals(await body!.read(), null);
});

Deno.test("a hundred requests at once each get their own answer", async () => {
  await using server = await rawServer((socket) => {
    socket.on("data", (data) => {
      const number = /x-number: (\d+)/.exec(String(data))![1]!;
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${number.length}\r\n\r\n`);
      setTimeout(() => socket.write(number), Number(number) % 7);
    });
  });
  using upstream = testUpstream(new FakeClock());
  const url = `http://127.0.0.1:${server.port}/`;
  for (let round = 0; round < 2; round++) {
    const texts = await Promise.all(Array.from({ length: 100 }, async (_, index) => {
      const headers = new Headers({ "x-number": String(index) });
      return await textOf(await send(upstream, requestTo(url, { headers })));
    }));
    assertEquals(texts, Array.from({ length: 100 }, (_, index) => String(index)));
  }
});
