/** Requests that come before the one ahead of them was answered. */
import { assertEquals } from "@std/assert";
import process from "node:process";
import { Answer } from "../../lib/proxy/answer.ts";
import { HANDSHAKE, listen, wire } from "../support/bare_listener.ts";
import { eventually } from "../support/eventually.ts";
import { RawClient } from "../support/raw_client.ts";

Deno.test("requests sent ahead leave nothing on their connection, however many there were", async () => {
  const warnings: string[] = [];
  const warn = ({ name }: Error): void => void warnings.push(name);
  process.on("warning", warn);
  await using server = await listen(async ({ target }) => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    return new Answer(target);
  });
  using client = await RawClient.open(server.port);
  await client.send(Array.from({ length: 20 }, (_, at) => wire(`GET /${at}`)).join(""));
  const answers = await client.answers(20);
  assertEquals(answers.map(({ body }) => body), Array.from({ length: 20 }, (_, at) => `/${at}`));
  process.off("warning", warn);
  assertEquals(warnings, []);
});

Deno.test("requests sent ahead on a connection that ends are counted as over", async () => {
  await using server = await listen(() => new Promise<Answer>(() => {}));
  const client = await RawClient.open(server.port);
  await client.send(wire("GET /1") + wire("GET /2") + wire("GET /3"));
  await eventually(() => server.openCount === 3);
  client.close();
  await eventually(() => server.openCount === 0);
});

for (const refused of [false, true]) {
  const outcome = refused ? "refused" : "accepted";
  Deno.test(`a handshake sent behind a request that waits is ${outcome} in its turn`, async () => {
    const first = Promise.withResolvers<Answer>();
    const asked: string[] = [];
    await using server = await listen(({ target, upgrade }) => {
      asked.push(target);
      if (upgrade === null) return first.promise;
      if (refused) return new Answer("no", { status: 404 });
      upgrade.accept(new Headers(), "", 1_000);
      return new Answer(null, { status: 101 });
    });
    using client = await RawClient.open(server.port);
    await client.send(wire("GET /first") + wire("GET /second", HANDSHAKE));
    await client.readUntil(() => false, 50);
    assertEquals([client.received, client.closed, asked], ["", false, ["/first"]]);
    first.resolve(new Answer("one"));
    const second = `HTTP/1.1 ${refused ? 404 : 101} `;
    await client.readUntil((text) => text.includes(second), 2_000);
    assertEquals(client.received.split("\r\n")[0], "HTTP/1.1 200 OK");
    assertEquals(client.received.indexOf(second), client.received.indexOf("one") + 3);
  });
}

Deno.test("a client that leaves with a handshake behind its request leaves that request", async () => {
  const left = Promise.withResolvers<void>();
  const came = Promise.withResolvers<void>();
  await using server = await listen((request) => {
    request.whenLeft(left.resolve);
    came.resolve();
    return new Promise<Answer>(() => {});
  });
  const client = await RawClient.open(server.port);
  await client.send(wire("GET /first") + wire("GET /second", HANDSHAKE));
  await came.promise;
  client.close();
  await left.promise;
  await eventually(() => server.openCount === 0);
});

Deno.test("requests that are never served, behind a last one or beyond the limit, are not waited for", async () => {
  const shapes = [
    { answer: { connection: "close" }, ahead: 3 },
    { answer: {}, ahead: 40 },
  ];
  for (const { answer, ahead } of shapes) {
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    await using server = await listen(async () => {
      asked.resolve();
      await gate.promise;
      return new Answer("done", { headers: answer });
    });
    const client = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    await client.write(new TextEncoder().encode(wire("GET /").repeat(ahead)));
    await asked.promise;
    gate.resolve();
    try {
      while (await client.read(new Uint8Array(1_000)) !== null);
    } catch {
      // Reset is an end as well.
    }
    client.close();
    await eventually(() => server.openCount === 0, 2_000);
  }
});
