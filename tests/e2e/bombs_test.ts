/** B167: small packed bodies that unpack to much, from clients and from upstreams: refused, and memory stays bounded. */
import { assert, assertEquals } from "@std/assert";
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib";
import { raw } from "../../lib/demo/simulated_replies.ts";
import { ProcessRig } from "../support/process_rig.ts";

const MIB = 1_048_576;
/** Unpacked; a thousandth of it packed. */
const BOMB_BYTES = 96 * MIB;
/** Beyond what the process took before: several of the largest bodies there may be, a fraction of the bombs. */
const MEMORY_LIMIT_BYTES = 400 * MIB;
const HEADERS = { authorization: "Bearer SENT-key-client-1", "content-type": "application/json" };

const FASTEST = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const zeros = new Uint8Array(BOMB_BYTES);
const bombs: Record<string, Uint8Array<ArrayBuffer>> = {
  gzip: bytes(gzipSync(zeros, { level: 1 })),
  zstd: bytes(zstdCompressSync(zeros)),
  br: bytes(brotliCompressSync(zeros, FASTEST)),
};
bombs["zstd, gzip"] = bytes(gzipSync(bombs["zstd"]!));
bombs["gzip, br"] = bytes(brotliCompressSync(bombs["gzip"]!));

function bytes(buffer: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(buffer);
}

/** The most memory the process ever had, where the system tells. */
function peakBytes(rig: ProcessRig): number {
  if (Deno.build.os !== "linux") return 0;
  return Number(/VmHWM:\s+(\d+) kB/.exec(Deno.readTextFileSync(`/proc/${rig.pid}/status`))?.[1]) * 1_024;
}

Deno.test("64 packed request bombs at once are 413, unpacked no further than a body may be long", async () => {
  await using rig = await ProcessRig.create(["A"]);
  await rig.start();
  const before = peakBytes(rig);
  const codings = Object.keys(bombs);
  const answers = await Promise.all(Array.from({ length: 64 }, async (_, index) => {
    const coding = codings[index % codings.length]!;
    const answer = await rig.call({}, {
      headers: { ...HEADERS, "content-encoding": coding },
      body: bombs[coding]!,
    });
    await answer.body?.cancel();
    return answer.status;
  }));
  assertEquals(new Set(answers), new Set([413]));
  assertEquals(rig.provider.hits.length, 0);
  const grown = peakBytes(rig) - before;
  assert(grown < MEMORY_LIMIT_BYTES, `${Math.round(grown / MIB)} MiB`);
});

const upstream: {
  name: string;
  path: string;
  status: number;
  type: string;
  stream: boolean;
  before: string;
}[] = [
  {
    name: "an error",
    path: "/v1/responses",
    status: 500,
    type: "application/json",
    stream: false,
    before: "",
  },
  {
    name: "a refusal",
    path: "/v1/responses",
    status: 400,
    type: "text/html",
    stream: false,
    before: "<html>",
  },
  {
    name: "a stream",
    path: "/v1/responses",
    status: 200,
    type: "text/event-stream",
    stream: true,
    before: "data: ",
  },
  {
    name: "a stream of empty lines",
    path: "/v1/responses",
    status: 200,
    type: "text/event-stream",
    stream: true,
    before: "\n\n",
  },
  {
    name: "a gathered stream",
    path: "/v1/chat/completions",
    status: 200,
    type: "text/event-stream",
    stream: false,
    before: "data: ",
  },
  {
    name: "a whole answer",
    path: "/v1/responses/compact",
    status: 200,
    type: "application/json",
    stream: false,
    before: '{"output":"',
  },
];

Deno.test("an upstream's packed bomb ends in a failure, and takes bounded memory", async (t) => {
  await using rig = await ProcessRig.create(["A"], { "request-retry": 0 });
  await rig.start();
  const before = peakBytes(rig);
  let sent = 0;
  for (const { name, path, status, type, stream, before: start } of upstream) {
    const plain = new Uint8Array(BOMB_BYTES);
    // Letters: zeros could be told from text at once.
    plain.fill(start === "\n\n" ? 10 : 0x61);
    plain.set(new TextEncoder().encode(start));
    // Each of these is an event to look at: a quarter of them is plenty.
    const taken = start === "\n\n" ? plain.subarray(0, BOMB_BYTES / 4) : plain;
    const packed = bytes(brotliCompressSync(taken, FASTEST));
    await t.step(name, async () => {
      const headers = { "content-type": type, "content-encoding": "br" };
      rig.provider.account("SENT-tok-A").script(raw(status, packed, headers));
      const answer = await fetch(`${rig.url}${path}`, {
        method: "POST",
        headers: HEADERS,
        body: JSON.stringify({
          model: "m1",
          stream,
          ...(path.includes("chat") ? { messages: [{ role: "user", content: "x" }] } : { input: "x" }),
        }),
      });
      const { count, end, broken } = await readAll(answer);
      assert(count < 80 * MIB, `${count} bytes of the bomb reached the client`);
      const failed = answer.status >= 400 || broken || end.includes("failed") || end.includes("error");
      assert(failed, `${answer.status} ${count} ${end}`);
      assertEquals(rig.provider.hits.length, ++sent, `the bomb was not asked for: ${answer.status} ${end}`);
      const admin = { method: "POST", headers: { authorization: "Bearer SENT-key-admin-1" } };
      const id = encodeURIComponent("codex:acct-A:user-A");
      await (await fetch(`${rig.url}/v0/management/accounts/${id}/reset`, admin)).body?.cancel();
    });
  }
  const grown = peakBytes(rig) - before;
  assert(grown < MEMORY_LIMIT_BYTES, `${Math.round(grown / MIB)} MiB`);
  assertEquals((await (await fetch(`${rig.url}/healthz`)).json()).status, "ok");
});

/** Counts what comes and keeps its end. */
async function readAll(answer: Response): Promise<{ count: number; end: string; broken: boolean }> {
  let count = 0;
  let end = "";
  try {
    for await (const piece of answer.body ?? []) {
      count += piece.length;
      end = (end + new TextDecoder().decode(piece.slice(-2_000))).slice(-2_000);
    }
  } catch {
    return { count, end, broken: true };
  }
  return { count, end, broken: false };
}
