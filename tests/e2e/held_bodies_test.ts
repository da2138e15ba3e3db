/** What a request brought is let go once it is answered: a stream may last an hour, and nothing is sent again. */
import { assert, assertEquals } from "@std/assert";
import { created, delta, failure, hold, stream } from "../../lib/demo/simulated_replies.ts";
import { inspectFlag, readHeap } from "../support/heap_probe.ts";
import { borrowBytes, dropIdleBuffers } from "../../lib/core/spare_buffers.ts";
import { startRig } from "../support/rig.ts";
import { freePort, ProcessRig } from "../support/process_rig.ts";

const MIB = 1_048_576;
const STREAMS = 24;
const BODY_BYTES = 8 * MIB;
/** Far less than one body for each of them. */
const KEPT_LIMIT_BYTES = 2 * BODY_BYTES;

const BODY = new TextEncoder().encode(
  `{"model":"m1","stream":true,"input":"${"a fair question ".repeat(BODY_BYTES / 16)}"}`,
);

async function openStream(port: number): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const head = `POST /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer SENT-key-client-1\r\n` +
    `content-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n`;
  await connection.write(new TextEncoder().encode(head));
  for (let at = 0; at < BODY.length;) at += await connection.write(BODY.subarray(at));
  const answer = new Uint8Array(4_096);
  for (let text = ""; !text.includes("output_text.delta");) {
    const count = await connection.read(answer);
    if (count === null) throw new Error(text);
    text += new TextDecoder().decode(answer.subarray(0, count));
  }
  return connection;
}

Deno.test({
  name: "an open stream keeps nothing of its request's body",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await using rig = await ProcessRig.create(["A"]);
    rig.provider.account("SENT-tok-A").otherwise(stream([created(), delta("hello"), hold()]));
    const inspectPort = freePort();
    await rig.start(undefined, { flags: [inspectFlag(inspectPort)] });
    const connections = [await openStream(rig.port)];
    const before = await readHeap(inspectPort);
    try {
      while (connections.length < STREAMS) connections.push(await openStream(rig.port));
      const after = await readHeap(inspectPort);
      const kept = after.buffersBytes + after.usedBytes - before.buffersBytes - before.usedBytes;
      assert(kept < KEPT_LIMIT_BYTES, `${STREAMS} streams keep ${Math.round(kept / MIB)} MiB`);
    } finally {
      for (const connection of connections) connection.close();
    }
  },
});

/** What comes of a body that no account takes. */
const refused: readonly { name: string; body: string; status: number }[] = [
  { name: "every account is at rest", body: new TextDecoder().decode(BODY), status: 429 },
  { name: "it is not JSON", body: "x".repeat(BODY_BYTES), status: 400 },
];
for (const { name, body, status } of refused) {
  Deno.test(`the memory of a body is used again where ${name}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").otherwise(
      failure(429, { type: "usage_limit_reached", headers: { "retry-after": "3600" } }),
    );
    dropIdleBuffers();
    dropIdleBuffers();
    const response = await rig.call("/v1/responses", null, { body });
    assertEquals(response.status, status);
    await response.body?.cancel();
    // A fresh one begins with zeros.
    assertEquals(borrowBytes(body.length)[0], body.charCodeAt(0));
  });
}
