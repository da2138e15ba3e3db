/** Where the memory of a body goes that is not sent: back, unless something is still put into it. */
import { assert, assertEquals } from "@std/assert";
import { gzipSync } from "node:zlib";
import { HeaderFields } from "../../lib/core/header_fields.ts";
import { borrowBytes, dropIdleBuffers } from "../../lib/core/spare_buffers.ts";
import { BodyWatch } from "../../lib/proxy/body_pace.ts";
import { type ClientRequest, ownRequest, type RequestSource } from "../../lib/proxy/client_request.ts";
import { type BodyResult, readRequestBody, type RequestBody } from "../../lib/proxy/request_body.ts";
import { createInflate } from "../../lib/runtime/inflate.ts";
import { FakeClock } from "../support/fake_clock.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const LENGTH = 100_000;
const GRACE_MS = 1_000;

function request(headers: Record<string, string>, source: Partial<RequestSource>): ClientRequest {
  return {
    ...ownRequest("POST", "/", null),
    headers: HeaderFields.from(headers),
    body: { read: () => Promise.resolve(null), whole: () => Promise.resolve(0), cancel: () => {}, ...source },
  };
}

function read(asked: ClientRequest, clock = new FakeClock()): Promise<BodyResult> {
  dropIdleBuffers();
  dropIdleBuffers();
  const watch = new BodyWatch(clock);
  return readRequestBody(asked, {
    inflate: createInflate(),
    watch,
    graceMs: GRACE_MS,
    mustInspect: true,
    tooSlow: () => {},
  }).finally(() => watch.close());
}

function fill(into: Bytes): void {
  into.fill(7);
}

/** Whether the next one to ask for so much gets what this body was put into. */
function isBack(length: number): boolean {
  return borrowBytes(length)[0] !== 0;
}

function wholeOf(result: BodyResult): RequestBody & { kind: "bytes" } {
  if (!result.ok || result.body.kind !== "bytes") throw new Error(`Not read: ${JSON.stringify(result)}`);
  return result.body;
}

const DECLARED = { "content-length": String(LENGTH) };

Deno.test("the memory of an upload that broke off is used again", async () => {
  const result = await read(request(DECLARED, {
    whole(into) {
      fill(into);
      return Promise.reject(new Error("cut"));
    },
  }));
  assertEquals(result, { ok: false, problem: "aborted" });
  assert(isBack(LENGTH));
});

Deno.test("the memory of a body that is shorter than declared is used again", async () => {
  const result = await read(request(DECLARED, {
    whole(into) {
      fill(into);
      return Promise.resolve(LENGTH - 1);
    },
  }));
  assertEquals(result, { ok: false, problem: "bad_length" });
  assert(isBack(LENGTH));
});

Deno.test("the memory of an upload that is too slow is nobody's: it may still come", async () => {
  const clock = new FakeClock();
  const reading = read(
    request(DECLARED, {
      whole(into) {
        fill(into);
        return new Promise(() => {});
      },
    }),
    clock,
  );
  await clock.advance(GRACE_MS + 1_000);
  assertEquals(await reading, { ok: false, problem: "too_slow" });
  assert(!isBack(LENGTH));
});

Deno.test("the memory of a packed body is used again once it is unpacked", async () => {
  const plain = crypto.getRandomValues(new Uint8Array(65_536));
  const double = new Uint8Array(2 * plain.length);
  double.set(plain);
  double.set(plain, plain.length);
  const packed = gzipSync(double);
  const headers = { "content-length": String(packed.length), "content-encoding": "gzip" };
  for (const isSound of [true, false]) {
    const result = await read(request(headers, {
      whole(into) {
        into.set(packed);
        if (!isSound) into.fill(7, 10);
        return Promise.resolve(packed.length);
      },
    }));
    assertEquals(result.ok, isSound);
    if (isSound) assertEquals(wholeOf(result).bytes, double);
    assert(isBack(packed.length));
  }
});

Deno.test("a body that states no packing worth the name stays as it came", async () => {
  const headers = { ...DECLARED, "content-encoding": "identity, identity" };
  const result = await read(request(headers, {
    whole(into) {
      fill(into);
      return Promise.resolve(LENGTH);
    },
  }));
  const { bytes } = wholeOf(result);
  assertEquals([bytes.length, bytes[LENGTH - 1]], [LENGTH, 7]);
  assert(!isBack(LENGTH));
});

Deno.test("the chunks of a body of unknown length are put together and given back", async () => {
  const chunks: Bytes[] = [1, 2, 3].map((mark) => new Uint8Array(65_536).fill(mark));
  const rest = [...chunks];
  const result = await read(request({}, { read: () => Promise.resolve(rest.shift() ?? null) }));
  const { bytes, known } = wholeOf(result);
  assertEquals([bytes.length, known], [3 * 65_536, false]);
  assertEquals([0, 65_535, 65_536, 131_072, 196_607].map((at) => bytes[at]), [1, 1, 2, 3, 3]);
  assertEquals(chunks.map(({ length }) => length), [0, 0, 0]);
});
