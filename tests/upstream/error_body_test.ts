import { assertEquals } from "@std/assert";
import { gzipSync } from "node:zlib";
import { startSimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import {
  bytes,
  dripping,
  encoded,
  failure,
  gate,
  hold,
  raw,
  type Reply,
  rst,
  type Step,
  stream,
  text,
} from "../../lib/demo/simulated_replies.ts";
import { ERROR_BODY_LIMIT_BYTES, ERROR_BODY_WAIT_MS, readErrorBody } from "../../lib/upstream/error_body.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { answerOf, requestTo, send, testUpstream } from "../support/upstream_request.ts";

function failing(steps: readonly Step[]): Reply {
  return { ...stream(steps), status: 500 };
}

const LIMITED = failure(429, { code: "usage_limit_reached", extra: { resets_in_seconds: 60 } });
const LIMITED_TEXT =
  '{"error":{"message":"simulated 429","type":null,"code":"usage_limit_reached","resets_in_seconds":60}}';

const cases: { name: string; reply: Reply; want: string }[] = [
  { name: "a JSON body", reply: LIMITED, want: LIMITED_TEXT },
  { name: "a gzip body", reply: encoded(LIMITED, "gzip"), want: LIMITED_TEXT },
  { name: "a zstd body", reply: encoded(LIMITED, "zstd"), want: LIMITED_TEXT },
  { name: "stacked codings", reply: encoded(LIMITED, "gzip, br"), want: LIMITED_TEXT },
  { name: "a gzip body that forgot its label", reply: encoded(LIMITED, "gzip", null), want: LIMITED_TEXT },
  { name: "a body in single bytes", reply: dripping(LIMITED, 1), want: LIMITED_TEXT },
  { name: "nothing", reply: raw(500, ""), want: "" },
  { name: "what came before a reset", reply: failing([text("before"), rst()]), want: "before" },
  { name: "nothing of an undecodable body", reply: encoded(raw(500, "plain"), null, "br"), want: "" },
];
for (const c of cases) {
  Deno.test(`readErrorBody() gives ${c.name}`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    using upstream = testUpstream(clock);
    // A reset throws away what the other side has not read yet, so it waits until the head was seen.
    const seen = Promise.withResolvers<void>();
    provider.anyone.script(
      c.name.includes("reset") ? failing([text("before"), gate(seen.promise), rst()]) : c.reply,
    );
    const response = answerOf(await send(upstream, requestTo(provider.url)));
    const pending = readErrorBody(response, ERROR_BODY_LIMIT_BYTES, clock);
    seen.resolve();
    assertEquals(new TextDecoder().decode(await pending), c.want);
    assertEquals(clock.pendingCount, 0);
  });
}

for (const size of [99, 100, 101, 100_000]) {
  Deno.test(`readErrorBody() reads at most its limit of 100 bytes: ${size}`, async () => {
    const clock = new FakeClock();
    await using provider = await startSimulatedProvider({ clock });
    using upstream = testUpstream(clock);
    provider.anyone.script(raw(500, "x".repeat(size)));
    const response = answerOf(await send(upstream, requestTo(provider.url)));
    assertEquals((await readErrorBody(response, 100, clock)).length, Math.min(size, 100));
  });
}

Deno.test("readErrorBody() reads the limit of a bomb and lets the rest go", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  const bomb = new Uint8Array(gzipSync(new Uint8Array(50_000_000)));
  const steps = [bytes(bomb), hold()];
  provider.anyone.script({ ...stream(steps, { "content-encoding": "gzip" }), status: 429 });
  const response = answerOf(await send(upstream, requestTo(provider.url)));
  const body = await readErrorBody(response, ERROR_BODY_LIMIT_BYTES, clock);
  assertEquals(body.length, ERROR_BODY_LIMIT_BYTES);
  await provider.hits[0]!.left;
});

Deno.test("readErrorBody() gives what has come when the rest does not come in time", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  using upstream = testUpstream(clock);
  provider.anyone.script(failing([text('{"error":'), hold()]));
  const response = answerOf(await send(upstream, requestTo(provider.url)));
  const pending = readErrorBody(response, ERROR_BODY_LIMIT_BYTES, clock);
  await clock.advance(ERROR_BODY_WAIT_MS - 1);
  assertEquals(clock.pendingCount, 1);
  await clock.advance(1);
  assertEquals(new TextDecoder().decode(await pending), '{"error":');
  await provider.hits[0]!.left;
});

Deno.test("readErrorBody() gives nothing for an answer without a body", async () => {
  assertEquals((await readErrorBody({ body: null }, 100, new FakeClock())).length, 0);
});
