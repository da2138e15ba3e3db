/** Answers given while the client still sends its body: it gets them, and its connection is of use or ends in order. */
import { assertEquals } from "@std/assert";
import { connect, type Socket } from "node:net";
import { Answer } from "../../lib/proxy/answer.ts";
import type { ClientRequest } from "../../lib/proxy/client_request.ts";
import { HANDSHAKE, listen, wire } from "../support/bare_listener.ts";
import { eventually } from "../support/eventually.ts";
import { parseAnswers, RawClient } from "../support/raw_client.ts";

/** More than the system and the runtime keep between them. */
const UPLOAD_BYTES = 24_000_000;
const PIECE = "x".repeat(1_000_000);

/** Sends the whole of its body before it reads a byte of the answer, as simple clients do. */
async function upload(port: number, head: string, framing: "length" | "chunks"): Promise<RawClient> {
  const client = await RawClient.open(port);
  const limit = setTimeout(() => client.close(), 10_000);
  const lines = framing === "length" ? `content-length: ${UPLOAD_BYTES}` : "transfer-encoding: chunked";
  await client.send(wire("POST /upload", `${head}${lines}\r\n`));
  for (let sent = 0; sent < UPLOAD_BYTES; sent += PIECE.length) {
    await client.send(framing === "length" ? PIECE : `${PIECE.length.toString(16)}\r\n${PIECE}\r\n`);
  }
  if (framing === "chunks") await client.send("0\r\n\r\n");
  clearTimeout(limit);
  return client;
}

/** How much of the body a refusal may have looked at. */
const looks: Readonly<Record<string, (request: ClientRequest) => Promise<void>>> = {
  "that was not looked at": () => Promise.resolve(),
  "that was begun": async ({ body }) => void await body!.read(),
  "that was begun, and waits": async ({ body }) => {
    await body!.read();
    // Until what may wait for its reader is full.
    await new Promise((resolve) => setTimeout(resolve, 100));
  },
  "that was begun and cancelled": async ({ body }) => {
    await body!.read();
    await new Promise((resolve) => setTimeout(resolve, 100));
    body!.cancel();
  },
};
for (const [name, look] of Object.entries(looks)) {
  for (const framing of ["length", "chunks"] as const) {
    Deno.test(`an upload ${name} is refused in passing, and its connection serves on: ${framing}`, async () => {
      await using server = await listen(async (request) => {
        if (request.body === null) return new Answer("next");
        await look(request);
        return new Answer("refused", { status: 401 });
      });
      using client = await upload(server.port, "", framing);
      await client.send(wire("GET /next"));
      const answers = await client.answers(2);
      assertEquals(answers.map(({ status, body }) => `${status} ${body}`), ["401 refused", "200 next"]);
    });

    Deno.test(`an upload ${name} on a connection that is to end gets its answer and no reset: ${framing}`, async () => {
      await using server = await listen(async (request) => {
        await look(request);
        return new Answer("refused", { status: 401 });
      });
      using client = await upload(server.port, "connection: close\r\n", framing);
      await client.readUntil(() => client.closed, 5_000);
      const answers = parseAnswers(client.received, client.closed);
      assertEquals(answers.map(({ status, body }) => `${status} ${body}`), ["401 refused"]);
    });
  }
}

Deno.test("an upload with an expectation nobody knows is a request like any other", async () => {
  await using server = await listen(({ target }) => new Answer(target));
  using client = await upload(server.port, "expect: the-unexpected\r\n", "length");
  await client.send(wire("GET /next"));
  assertEquals((await client.answers(2)).map(({ body }) => body), ["/upload", "/next"]);
});

Deno.test("an upload whose answer ends the connection is not waited for longer than a moment", async () => {
  await using server = await listen(() =>
    new Answer("refused", { status: 400, headers: { connection: "close" } })
  );
  using client = await RawClient.open(server.port);
  await client.send(wire("POST /upload", "content-length: 10\r\n", "x"));
  assertEquals((await client.answers(1)).map(({ body }) => body), ["refused"]);
  await client.readUntil(() => client.closed, 5_000);
  assertEquals(client.closed, true);
});

Deno.test("a body that goes on being read after its answer is seen to be cut, not whole", async () => {
  const ending = Promise.withResolvers<string>();
  await using server = await listen(async ({ body }) => {
    await body!.read();
    (async () => {
      while (await body!.read() !== null);
    })().then(() => ending.resolve("whole"), () => ending.resolve("cut"));
    return new Answer("early");
  });
  using client = await RawClient.open(server.port);
  await client.send(wire("POST /upload", "content-length: 10\r\n", "x"));
  await client.answers(1);
  assertEquals(await ending.promise, "cut");
});

Deno.test("a handshake that was refused holds no connection open, and no stop up", async () => {
  await using server = await listen(() => new Answer("refused", { status: 401 }));
  // It hears that the proxy has no more to say, and says nothing itself.
  const socket: Socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
  let received = "";
  let isReset = false;
  socket.on("data", (bytes) => received += bytes);
  socket.on("error", () => isReset = true);
  socket.write(wire("GET /", HANDSHAKE));
  await eventually(() => received.endsWith("refused"));
  await eventually(() => server.openCount === 0, 1_000);
  await eventually(() => {
    // A connection that is gone refuses what is sent on it.
    socket.write("x");
    return isReset;
  }, 5_000);
  socket.destroy();
});
