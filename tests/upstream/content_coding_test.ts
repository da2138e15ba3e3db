import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import {
  brotliCompressSync,
  constants,
  createZstdCompress,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { startSimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import {
  bytes,
  encoded,
  type Encoding,
  failure,
  gate,
  ok,
  raw,
  type Reply,
  type Step,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { decodeAnswer, undoMissingLabel, UNPACKED_LIMIT_BYTES } from "../../lib/upstream/content_coding.ts";
import type { AnswerBody } from "../../lib/ports.ts";
import { BrokenConnection, readBodyFailure, UndecodableBody } from "../../lib/upstream/transport_error.ts";
import { bodyFrom } from "../support/answer_bodies.ts";
import { eventually } from "../support/eventually.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { answerOf, requestTo, send, testUpstream, textOf } from "../support/upstream_request.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const TEXT = JSON.stringify({ text: "äöü ".repeat(2_000) });
const PLAIN: Bytes = new TextEncoder().encode(TEXT);

const pack = {
  gzip: (plain: Bytes) => new Uint8Array(gzipSync(plain)),
  br: (plain: Bytes) => new Uint8Array(brotliCompressSync(plain)),
  zstd: (plain: Bytes) => new Uint8Array(zstdCompressSync(plain)),
  deflate: (plain: Bytes) => new Uint8Array(deflateSync(plain)),
  "raw deflate": (plain: Bytes) => new Uint8Array(deflateRawSync(plain)),
};

/** A body in pieces, as the wire gives them; `cancelled` tells whether it was let go. */
function bodyOf(content: Bytes, pieceBytes = content.length || 1) {
  let at = 0;
  const state = { cancelled: false };
  const stream = new ReadableStream<Bytes>({
    pull(controller) {
      if (at >= content.length) return controller.close();
      controller.enqueue(content.slice(at, at + pieceBytes));
      at += pieceBytes;
    },
    cancel: () => void (state.cancelled = true),
  }, { highWaterMark: 0 });
  const body = bodyFrom(stream);
  return { body, state };
}

async function decodedText(content: Bytes, encoding: string | null, pieceBytes?: number): Promise<string> {
  const { body } = bodyOf(content, pieceBytes);
  return await new Response(decodeAnswer(body, encoding, false) ?? body).text();
}

// ---------------------------------------------------------------- labels that say the truth, and labels that do not

const decodings: { name: string; content: Bytes; label: string | null }[] = [
  { name: "plain without a label", content: PLAIN, label: null },
  { name: "plain as identity", content: PLAIN, label: "identity" },
  { name: "gzip", content: pack.gzip(PLAIN), label: "gzip" },
  { name: "br", content: pack.br(PLAIN), label: "br" },
  { name: "zstd", content: pack.zstd(PLAIN), label: "zstd" },
  { name: "ZSTD in capitals", content: pack.zstd(PLAIN), label: " ZSTD " },
  { name: "deflate", content: pack.deflate(PLAIN), label: "deflate" },
  { name: "raw bytes under deflate", content: pack["raw deflate"](PLAIN), label: "deflate" },
  { name: "x-gzip beside zstd", content: pack.zstd(pack.gzip(PLAIN)), label: "x-gzip, identity, zstd" },
  { name: "gzip, then br", content: pack.br(pack.gzip(PLAIN)), label: "gzip, br" },
  { name: "zstd, then gzip", content: pack.gzip(pack.zstd(PLAIN)), label: "zstd,gzip" },
  { name: "plain under gzip", content: PLAIN, label: "gzip" },
  { name: "plain under zstd", content: PLAIN, label: "zstd" },
  { name: "plain under deflate", content: PLAIN, label: "deflate" },
  { name: "plain under two labels", content: PLAIN, label: "zstd, gzip" },
  { name: "gzip under two labels", content: pack.gzip(PLAIN), label: "gzip, zstd" },
  { name: "nothing under zstd", content: new Uint8Array(), label: "zstd" },
  { name: "nothing under gzip, br", content: new Uint8Array(), label: "gzip, br" },
];
for (const c of decodings) {
  Deno.test(`decodeAnswer() gives the plain bytes: ${c.name}`, async () => {
    const want = c.content.length === 0 ? "" : TEXT;
    assertEquals(await decodedText(c.content, c.label), want);
    assertEquals(await decodedText(c.content, c.label, 1), want);
  });
}

for (let cut = 1; cut <= 8; cut++) {
  Deno.test(`decodeAnswer() recognises packed bytes cut after ${cut} bytes`, async () => {
    assertEquals(await decodedText(pack.br(pack.gzip(PLAIN)), "gzip, br", cut), TEXT);
    assertEquals(await decodedText(pack.zstd(PLAIN), "zstd", cut), TEXT);
    assertEquals(await decodedText(new TextEncoder().encode("{}"), "zstd", cut), "{}");
  });
}

const undecodable: { name: string; content: Bytes; label: string | null }[] = [
  { name: "an unknown coding", content: PLAIN, label: "foo" },
  { name: "three codings", content: pack.gzip(pack.gzip(pack.gzip(PLAIN))), label: "gzip, gzip, gzip" },
  { name: "a cut gzip", content: pack.br(pack.gzip(PLAIN).slice(0, -20)), label: "gzip, br" },
  {
    name: "a broken zstd",
    content: pack.zstd(PLAIN).map((byte, at) => at > 10 ? byte ^ 0x55 : byte),
    label: "zstd",
  },
  { name: "plain bytes that should be br", content: PLAIN, label: "br" },
];
for (const c of undecodable) {
  Deno.test(`decodeAnswer() fails as undecodable, not as a broken connection: ${c.name}`, async () => {
    const error = await assertRejects(() => decodedText(c.content, c.label));
    assertEquals(error instanceof UndecodableBody, true, String(error));
    assertEquals(readBodyFailure(error), { kind: "malformed", detail: "undecodable_body" });
  });
}

for (const label of [null, "", "identity"]) {
  for (const eventStream of [true, false]) {
    Deno.test(`decodeAnswer() costs a body labelled ${label} nothing (${eventStream})`, () => {
      assertEquals(decodeAnswer(bodyOf(PLAIN).body, label, eventStream), null);
    });
  }
}

const forgotten: { name: string; content: Bytes; want: Bytes }[] = [
  { name: "gzip", content: pack.gzip(PLAIN), want: PLAIN },
  { name: "zstd", content: pack.zstd(PLAIN), want: PLAIN },
  { name: "plain", content: PLAIN, want: PLAIN },
  { name: "nothing", content: new Uint8Array(), want: new Uint8Array() },
  {
    name: "a cut gzip, as it is",
    content: pack.gzip(PLAIN).slice(0, 30),
    want: pack.gzip(PLAIN).slice(0, 30),
  },
];
for (const c of forgotten) {
  Deno.test(`undoMissingLabel() gives what the bytes say: ${c.name}`, () => {
    assertEquals(undoMissingLabel(c.content, PLAIN.length), c.want);
  });
}

Deno.test("undoMissingLabel() leaves alone what would unpack beyond its limit", () => {
  for (const packed of [pack.gzip(PLAIN), pack.zstd(PLAIN)]) {
    assertEquals(undoMissingLabel(packed, PLAIN.length - 1), packed);
  }
});

Deno.test("decodeAnswer() passes the source's own failure on as it is", async () => {
  const { body } = bodyOf(pack.zstd(PLAIN).slice(0, 20));
  const source: AnswerBody = {
    ...body,
    async read() {
      const piece = await body.read();
      if (piece === null) throw new BrokenConnection();
      return piece;
    },
  };
  const error = await assertRejects(() => new Response(decodeAnswer(source, "zstd", false)).text());
  assertEquals(readBodyFailure(error), { kind: "transport", cause: "reset_in_body", pooled: false });
});

/** Several blocks that do not pack: the first comes out long before the last went in. */
function randomBytes(length: number): Bytes {
  const random = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(random.subarray(at, at + 65_536));
  return random;
}

const letGo: { name: string; label: string | null; content: Bytes }[] = [
  { name: "plain under gzip", label: "gzip", content: PLAIN },
  { name: "zstd", label: "zstd", content: pack.zstd(randomBytes(1_000_000)) },
];
for (const c of letGo) {
  for (const readFirst of [false, true]) {
    Deno.test(`cancelling a decoded body lets its source go: ${c.name}, ${readFirst ? "begun" : "not begun"}`, async () => {
      const { body, state } = bodyOf(c.content, 1_000);
      const decoded = decodeAnswer(body, c.label, false)!;
      if (readFirst) await decoded.read();
      decoded.cancel();
      assertEquals(await decoded.read(), null);
      await eventually(() => state.cancelled);
    });
  }
}

// ---------------------------------------------------------------- bounds (B167)

for (const over of [-1, 0, 1]) {
  Deno.test(`decodeAnswer() unpacks at most its limit: ${over} bytes over`, async () => {
    const limit = 100_000;
    for (
      const [label, content] of [
        ["zstd", pack.zstd(new Uint8Array(limit + over))],
        ["gzip", pack.gzip(new Uint8Array(limit + over))],
      ] as const
    ) {
      const pending = new Response(decodeAnswer(bodyOf(content).body, label, false, limit))
        .arrayBuffer();
      if (over <= 0) assertEquals((await pending).byteLength, limit + over);
      else {
        const error = await assertRejects(() => pending);
        assertEquals(readBodyFailure(error), { kind: "malformed", detail: "oversized_body" });
      }
    }
  });
}

Deno.test("a decoded body fills what it is given, and keeps the rest for the next read", async () => {
  const decoded = decodeAnswer(bodyOf(pack.gzip(PLAIN)).body, "gzip", false)!;
  const whole = new Uint8Array(PLAIN.length);
  let at = 0;
  for (let piece = await decoded.read(whole.subarray(at, at + 7)); piece !== null;) {
    assertEquals(piece.length <= 7 && piece.byteOffset === at, true);
    at += piece.length;
    piece = at < whole.length ? await decoded.read(whole.subarray(at, at + 7)) : null;
  }
  assertEquals(new TextDecoder().decode(whole), TEXT);
  assertEquals(await decoded.read(), null);
});

Deno.test("a bomb ends as an oversized body, and long before it is unpacked", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  // 256 MiB of zeros, a quarter of a megabyte packed.
  const bomb = pack.gzip(new Uint8Array(4 * UNPACKED_LIMIT_BYTES));
  const zstdBomb = pack.zstd(new Uint8Array(4 * UNPACKED_LIMIT_BYTES));
  for (const [label, content] of [["gzip", bomb], ["zstd", zstdBomb]] as const) {
    provider.anyone.script(
      raw(200, content, { "content-type": "application/json", "content-encoding": label }),
    );
    const response = answerOf(await send(upstream, requestTo(provider.url)));
    let unpackedBytes = 0;
    const error = await assertRejects(async () => {
      for await (const chunk of response.body!) unpackedBytes += chunk.length;
    });
    assertEquals(upstream.bodyFailure(error), { kind: "malformed", detail: "oversized_body" });
    assertEquals(unpackedBytes <= UNPACKED_LIMIT_BYTES, true);
  }
});

// ---------------------------------------------------------------- through the client (B079)

const codings: (Encoding | null)[] = [null, "gzip", "br", "zstd", "deflate", "gzip, br"];
const answers: { name: string; reply: Reply; body: string; want: string }[] = [
  { name: "a JSON answer", reply: ok("hello"), body: "{}", want: '"text":"hello"' },
  { name: "an event stream", reply: ok("hello"), body: '{"stream":true}', want: "response.completed" },
  {
    name: "a JSON 429",
    reply: failure(429, { code: "usage_limit_reached", extra: { resets_in_seconds: 60 } }),
    body: "{}",
    want: '"resets_in_seconds":60',
  },
];
for (const coding of codings) {
  for (const c of answers) {
    Deno.test(`send() gives ${c.name} decoded, with honest headers: ${coding ?? "plain"}`, async () => {
      const clock = new FakeClock();
      await using provider = await startSimulatedProvider({ clock });
      using upstream = testUpstream(clock);
      provider.anyone.script(encoded(c.reply, coding));
      const request = requestTo(`${provider.url}/v1/responses`, { body: new TextEncoder().encode(c.body) });
      const result = await send(upstream, request);
      const { headers, contentLength } = answerOf(result);
      const text = await textOf(result);
      assertStringIncludes(text, c.want);
      assertEquals(headers.has("content-encoding"), false);
      const length = headers.get("content-length");
      assertEquals(length === null || Number(length) === new TextEncoder().encode(text).length, true);
      assertEquals(contentLength === null ? null : String(contentLength), length);
    });
  }
}

Deno.test("send() reads a plain answer that claims gzip, keeping status and headers", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  const claims = { "content-encoding": "gzip", "retry-after": "60" };
  provider.anyone.script(raw(429, '{"error":{"code":"usage_limit_reached"}}', claims));
  const response = answerOf(await send(upstream, requestTo(provider.url)));
  assertEquals([response.status, response.headers.get("retry-after")], [429, "60"]);
  assertEquals(await new Response(response.body).text(), '{"error":{"code":"usage_limit_reached"}}');
});

Deno.test("a zstd event stream is decoded event by event, as it comes", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  const first = Promise.withResolvers<void>();
  const [one, two] = await flushedZstd(["data: 1\n\n", "data: 2\n\n"]);
  const steps: Step[] = [bytes(one!), gate(first.promise), bytes(two!)];
  provider.anyone.script(stream(steps, { "content-encoding": "zstd" }));
  const response = answerOf(await send(upstream, requestTo(provider.url)));
  const body = response.body!;
  assertEquals(new TextDecoder().decode((await body.read())!), "data: 1\n\n");
  first.resolve();
  assertEquals(new TextDecoder().decode((await body.read())!), "data: 2\n\n");
  assertEquals(await body.read(), null);
});

/** Each part as the bytes a server would have flushed for it. */
async function flushedZstd(parts: readonly string[]): Promise<Bytes[]> {
  const packer = createZstdCompress();
  const chunks: Bytes[] = [];
  packer.on("data", (chunk: Uint8Array) => chunks.push(new Uint8Array(chunk)));
  const pieces: Bytes[] = [];
  for (const part of parts) {
    packer.write(part);
    await new Promise<void>((resolve) => packer.flush(constants.ZSTD_e_flush, resolve));
    pieces.push(new Uint8Array(await new Blob(chunks.splice(0)).arrayBuffer()));
  }
  const ended = new Promise<void>((resolve) => packer.once("end", resolve));
  packer.end();
  await ended;
  pieces[pieces.length - 1] = new Uint8Array(await new Blob([pieces.at(-1)!, ...chunks]).arrayBuffer());
  return pieces;
}
