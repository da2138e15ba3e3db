/** What an upgrade asks for, and the runtime's server socket as a bridge meets it. */
import { assert, assertEquals } from "@std/assert";
import {
  acceptUpgrade,
  type ClientSocket,
  isSendableCode,
  readUpgradeOffer,
} from "../../lib/proxy/client_socket.ts";
import { eventually } from "../support/eventually.ts";
import { mustOpenWs } from "../support/ws_client.ts";

const HANDSHAKE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  "sec-websocket-version": "13",
};

const offers: { name: string; headers: Record<string, string>; want: readonly string[] | null }[] = [
  { name: "the plain handshake", headers: {}, want: [] },
  { name: "one of several connection words", headers: { connection: "keep-alive, upgrade" }, want: [] },
  { name: "another version", headers: { "sec-websocket-version": "8" }, want: null },
  { name: "an empty key", headers: { "sec-websocket-key": " " }, want: null },
  { name: "no upgrade among the connection words", headers: { connection: "close" }, want: null },
  {
    name: "protocols, joined either way",
    headers: { "sec-websocket-protocol": "a,b, c" },
    want: ["a", "b", "c"],
  },
  {
    name: "protocols that carry a key",
    headers: {
      "sec-websocket-protocol":
        "realtime, openai-insecure-api-key.SENT-x, OpenAI-Organization.o, openai-project.p",
    },
    want: ["realtime"],
  },
  { name: "words that are no tokens", headers: { "sec-websocket-protocol": "a b, (c), ,d" }, want: ["d"] },
];
for (const { name, headers, want } of offers) {
  Deno.test(`readUpgradeOffer() ${want === null ? "refuses" : "reads"} ${name}`, () => {
    assertEquals(readUpgradeOffer(new Headers({ ...HANDSHAKE, ...headers }))?.protocols ?? null, want);
  });
}

Deno.test("isSendableCode() knows the codes a close frame may carry, at every border", () => {
  const sendable = [1000, 1003, 1007, 1014, 3000, 4999];
  const not = [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000];
  assertEquals(sendable.map(isSendableCode), sendable.map(() => true));
  assertEquals(not.map(isSendableCode), not.map(() => false));
});

/** A server that upgrades every request; what it got of the last one is kept. */
function upgradeServer(silenceSeconds: number, protocol = "") {
  const events: string[] = [];
  let socket: ClientSocket | null = null;
  const abort = new AbortController();
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, signal: abort.signal, onListen: () => {} },
    (request) => {
      const upgraded = acceptUpgrade(
        request,
        new Headers({ "x-models-etag": "e1" }),
        protocol,
        silenceSeconds,
      )!;
      socket = upgraded.socket;
      socket.onmessage = ({ data }) =>
        events.push(typeof data === "string" ? data : `${data.constructor.name}`);
      socket.onerror = () => events.push("error");
      socket.onclose = ({ code, wasClean }) => events.push(`close ${code} ${wasClean}`);
      return upgraded.response;
    },
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}/`,
    events,
    socket: () => socket!,
    async [Symbol.asyncDispose]() {
      abort.abort();
      await server.finished;
    },
  };
}

Deno.test("acceptUpgrade() answers with the given headers and subprotocol, however the client joined its own", async () => {
  await using server = upgradeServer(10, "b");
  // `ws` joins with a bare comma, which the runtime's own option takes for one protocol.
  await using client = await mustOpenWs(server.url, { protocols: ["a", "b"] });
  assertEquals([client.protocol, client.headers.get("x-models-etag")], ["b", "e1"]);
  client.send("text");
  client.send(new Uint8Array([1]));
  await eventually(() => server.events.length === 2);
  assertEquals(server.events, ["text", "ArrayBuffer"]);
});

Deno.test("B091 a silent client is pinged after half the silence, and stays as long as it answers", async () => {
  await using server = upgradeServer(0.2);
  await using client = await mustOpenWs(server.url);
  await eventually(() => client.pings.length >= 4);
  assertEquals(server.events, []);
});

Deno.test("B093 a client that answers no ping is gone after the silence", async () => {
  await using server = upgradeServer(0.2);
  await using client = await mustOpenWs(server.url, { autoPong: false });
  await eventually(() => server.events.length > 0);
  assertEquals(server.events[0], "error");
  assertEquals((await client.closed).code, 1001);
  assert(server.events.includes("close 1001 false"));
});
