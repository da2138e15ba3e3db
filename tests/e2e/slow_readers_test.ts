/** B158: clients that do not read hold their upstreams back, and cost no more than the small buffers on the way. */
import { assert, assertEquals } from "@std/assert";
import { accept, created, delta, receive, type Step, stream } from "../../lib/demo/simulated_replies.ts";
import { LONG_INPUT } from "../support/long_input.ts";
import { openRigSocket } from "../support/rig_sockets.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";

const MIB = 1_048_576;
const CLIENTS = 6;
/** Noise: what compresses well would fit whole into the buffers on the way. */
const CHUNK = crypto.getRandomValues(new Uint8Array(24_576)).toBase64();
/**
 * What may be taken from an upstream nobody reads: the buffers of the kernel for two loopback connections make the
 * most of it, and what is not taken cannot be held.
 */
const TAKEN_LIMIT_BYTES = 32 * MIB;
const STREAM_CHUNKS = 100 * MIB / CHUNK.length;

/** 100 MiB of deltas; counts what the provider could write. */
function flood() {
  const written = { bytes: 0 };
  function* steps(): Generator<Step> {
    yield created();
    for (let chunk = 0; chunk < STREAM_CHUNKS; chunk++) {
      yield delta(CHUNK);
      written.bytes += CHUNK.length;
    }
  }
  return { written, steps };
}

/** Waits until nothing more gets through. */
async function untilStill(counts: readonly { bytes: number }[]): Promise<void> {
  let before = -1;
  for (let still = 0; still < 5;) {
    await new Promise((resolve) => setTimeout(resolve, 60));
    const now = counts.reduce((sum, { bytes }) => sum + bytes, 0);
    still = now === before && now > 0 ? still + 1 : 0;
    before = now;
  }
}

async function openStream(rig: Rig): Promise<Deno.TcpConn> {
  const { hostname, port } = new URL(rig.app.url);
  const connection = await Deno.connect({ hostname, port: Number(port) });
  const body = JSON.stringify({ model: "m1", input: LONG_INPUT, stream: true });
  await connection.write(new TextEncoder().encode(
    `POST /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${CLIENT_KEY}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  ));
  return connection;
}

for (const attempts of [0, 2]) {
  Deno.test(`B158 streams nobody reads hold their upstreams back, recovery attempts ${attempts}`, async () => {
    const config = { streaming: { recovery: { attempts, "max-buffer-bytes": MIB } } };
    await using rig = await startRig({ accounts: ["A"], config });
    const floods = Array.from({ length: CLIENTS }, flood);
    rig.account("A").script(...floods.map(({ steps }) => stream(steps())));
    const connections: Deno.TcpConn[] = [];
    for (let client = 0; client < CLIENTS; client++) connections.push(await openStream(rig));
    await untilStill(floods.map(({ written }) => written));
    for (const { written } of floods) assert(written.bytes < TAKEN_LIMIT_BYTES, `${written.bytes}`);

    // A slow reader gets what it takes, and nothing beyond a buffer's worth of more is fetched for it.
    const bytes = new Uint8Array(10_240);
    for (let read = 0; read < 20; read++) assert((await connections[0]!.read(bytes) ?? 0) > 0);
    for (const connection of connections) connection.close();
    await rig.until(Promise.all(rig.provider.hits.map(({ left }) => left)), 2_000);
    await rig.eventually(async () => (await rig.accountState("A")).in_flight === 0);
    assertEquals((await rig.accountState("A")).state, "healthy");
  });
}

Deno.test("B158 sockets nobody reads hold their upstreams back, and are given up after a while", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const floods = Array.from({ length: CLIENTS }, flood);
  rig.account("A").websocket.script(...floods.map(({ steps }) => accept(answering(steps()))));
  const clients = [];
  for (let client = 0; client < CLIENTS; client++) {
    const socket = await openRigSocket(rig);
    socket.socket.pause();
    socket.create({ instructions: LONG_INPUT });
    clients.push(socket);
  }
  await untilStill(floods.map(({ written }) => written));
  for (const { written } of floods) assert(written.bytes < TAKEN_LIMIT_BYTES, `${written.bytes}`);

  // Half of them leave; the others are found out.
  for (const socket of clients.slice(0, CLIENTS / 2)) socket.tcp.destroy();
  await rig.until(Promise.all(rig.provider.hits.slice(0, CLIENTS / 2).map(({ left }) => left)), 4_000);
  await rig.until(Promise.all(rig.provider.hits.map(({ left }) => left)), 30_000);
  assertEquals((await rig.accountState("A")).in_flight, 0);
  for (const socket of clients) await socket[Symbol.asyncDispose]();
});

/** Waits for the turn first; made step by step, for the whole flood at once would be the memory it measures. */
function* answering(steps: Iterable<Step>): Generator<Step> {
  yield receive();
  yield* steps;
}
