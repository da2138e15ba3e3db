/** What an upgrade asks for, and the runtime's server socket as a bridge meets it. */
import { assertEquals } from "@std/assert";
import { type ClientSocket, isSendableCode, readUpgradeOffer } from "../../lib/proxy/client_socket.ts";
import { eventually } from "../support/eventually.ts";
import { mustOpenWs } from "../support/ws_client.ts";
import { HeaderFields } from "../../lib/core/header_fields.ts";
import { Answer } from "../../lib/proxy/answer.ts";
import { listen } from "../support/bare_listener.ts";

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
  { name: "protocols named twice", headers: { "sec-websocket-protocol": "a, b,a" }, want: ["a", "b"] },
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
async function upgradeServer(silenceMs: number, protocol = "") {
  const events: string[] = [];
  let socket: ClientSocket | null = null;
  const server = await listen(({ upgrade }) => {
    socket = upgrade!.accept(HeaderFields.from({ "x-models-etag": "e1" }), protocol, silenceMs)!;
    socket.onmessage = ({ data }) =>
      events.push(typeof data === "string" ? data : `${data.constructor.name}`);
    socket.onerror = () => events.push("error");
    socket.onclose = ({ code, wasClean }) => events.push(`close ${code} ${wasClean}`);
    return new Answer(null, { status: 101 });
  });
  return {
    url: `http://127.0.0.1:${server.port}/`,
    events,
    socket: () => socket!,
    [Symbol.asyncDispose]: () => server.stop(0),
  };
}

Deno.test("an upgrade is answered with the given headers and subprotocol, however the client joined its own", async () => {
  await using server = await upgradeServer(10_000, "b");
  await using client = await mustOpenWs(server.url, { protocols: ["a", "b"] });
  assertEquals([client.protocol, client.headers.get("x-models-etag")], ["b", "e1"]);
  client.send("text");
  client.send(new Uint8Array([1]));
  await eventually(() => server.events.length === 2);
  assertEquals(server.events, ["text", "ArrayBuffer"]);
});

Deno.test("B091 a silent client is pinged after half the silence, and stays as long as it answers", async () => {
  await using server = await upgradeServer(200);
  await using client = await mustOpenWs(server.url);
  await eventually(() => client.pings.length >= 4);
  assertEquals(server.events, []);
});

Deno.test("B093 a client that answers no ping is gone after the silence", async () => {
  await using server = await upgradeServer(200);
  await using client = await mustOpenWs(server.url, { autoPong: false });
  await eventually(() => server.events.length > 0);
  assertEquals(server.events, ["close 1006 false"]);
  await client.closed;
});
