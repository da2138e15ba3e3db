/** What a stop waits for. */
import { assertEquals } from "@std/assert";
import { Answer } from "../../lib/proxy/answer.ts";
import { HANDSHAKE, listen, wire } from "../support/bare_listener.ts";
import { eventually } from "../support/eventually.ts";
import { RawClient } from "../support/raw_client.ts";

for (const [name, head] of [["a request", ""], ["a handshake", HANDSHAKE]] as const) {
  Deno.test(`stop() waits for ${name} that is under way, and its client is answered`, async () => {
    const came = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<Answer>();
    await using server = await listen(() => {
      came.resolve();
      return answer.promise;
    });
    using client = await RawClient.open(server.port);
    await client.send(wire("GET /", head));
    await came.promise;
    assertEquals(server.openCount, 1);
    const stopped = server.stop(5_000);
    await client.readUntil(() => client.closed, 50);
    assertEquals(client.closed, false);
    answer.resolve(new Answer("late", { status: 404 }));
    assertEquals((await client.answers(1)).map(({ status, body }) => `${status} ${body}`), ["404 late"]);
    await stopped;
  });

  Deno.test(`stop() does not wait for ${name} whose client has left`, async () => {
    const came = Promise.withResolvers<void>();
    await using server = await listen(() => {
      came.resolve();
      return new Promise<Answer>(() => {});
    });
    const client = await RawClient.open(server.port);
    await client.send(wire("GET /", head));
    await came.promise;
    client.close();
    await eventually(() => server.openCount === 0);
  });
}
