/** Withholding until success, the ways out of it, and the delivery of what was held (2D.2, rows 36 to 43). */
import { assert, assertEquals } from "@std/assert";
import type { Evidence } from "../../lib/core/evidence.ts";
import {
  deliverPieces,
  type HoldPolicy,
  type HoldResult,
  holdStream,
  type RelayEnd,
  relayStream,
} from "../../lib/proxy/stream_relay.ts";
import { FakeClock, settle } from "../support/fake_clock.ts";
import {
  BROKEN,
  COMPLETED,
  CREATED,
  FAILED,
  fed,
  FedStream,
  textDelta,
  textOf,
  UNKNOWN,
} from "../support/held_streams.ts";
import type { ByteSource } from "../../lib/ports.ts";
import { readText } from "../support/answers.ts";

const IDLE_MS = 300_000;

function withholding(maxBytes = 1_000_000, more: Partial<HoldPolicy> = {}): HoldPolicy {
  return {
    until: "success",
    maxEvents: Infinity,
    maxBytes,
    untilMs: Infinity,
    idleMs: IDLE_MS,
    guarded: true,
    ...more,
  };
}

function relay(stream: FedStream["stream"], held: Uint8Array<ArrayBuffer>[], more: {
  clock?: FakeClock;
  keepaliveMs?: number;
  onHeldDelivered?: () => void;
  onEnd?: (end: RelayEnd) => void;
} = {}): ByteSource {
  return relayStream(stream, held, {
    clock: more.clock ?? new FakeClock(),
    idleMs: IDLE_MS,
    keepaliveMs: more.keepaliveMs ?? 0,
    failureFrame: (evidence: Evidence) => new TextEncoder().encode(`[${evidence.kind}]`),
    onEnd: more.onEnd ?? (() => {}),
    ...(more.onHeldDelivered === undefined ? {} : { onHeldDelivered: more.onHeldDelivered }),
  });
}

const DELTAS = ["a", "é北🚀", "c".repeat(300)].map(textDelta).join("");
const PREFIX = CREATED + DELTAS;

const endings: readonly { name: string; text: string; want: string }[] = [
  { name: "a whole answer is let go at its terminal", text: PREFIX + COMPLETED, want: "success" },
  { name: "a failure after output is no answer", text: PREFIX + FAILED, want: "failed:in_stream" },
  { name: "a clean end after output is incomplete", text: PREFIX, want: "failed:incomplete" },
  { name: "nothing at all is malformed", text: "", want: "failed:malformed" },
  { name: "broken data is malformed", text: `${PREFIX}data: {oops\n\n`, want: "failed:malformed" },
  { name: "an unknown event lets go", text: PREFIX + UNKNOWN + COMPLETED, want: "unknown_payload" },
  { name: "an unknown first event lets go", text: UNKNOWN + COMPLETED, want: "unknown_payload" },
  { name: "an unknown event before a failure lets go", text: UNKNOWN + FAILED, want: "unknown_payload" },
];
for (const c of endings) {
  Deno.test(`holdStream(): ${c.name}, wherever the bytes are cut`, async () => {
    const bytes = c.text.length;
    for (let cut = 0; cut <= bytes; cut += cut < 40 || cut > bytes - 40 ? 1 : 7) {
      const chunks = [c.text.slice(0, cut), c.text.slice(cut)].filter((chunk) => chunk !== "");
      const hold = await holdStream(fed(...chunks), withholding(), new FakeClock());
      assertEquals(nameOf(hold), c.want, `cut at ${cut}`);
    }
  });
}

function nameOf(hold: HoldResult): string {
  return hold.kind === "commit" ? hold.why : `failed:${hold.evidence.kind}`;
}

Deno.test("what was held and what follows are the stream, each byte once, wherever the hold ends", async () => {
  const whole = PREFIX + UNKNOWN + DELTAS + COMPLETED;
  for (const maxBytes of [0, 1, PREFIX.length - 1, PREFIX.length, PREFIX.length + 1, 1_000_000]) {
    for (let size = 1; size < whole.length; size += size < 12 ? 1 : 61) {
      const bytes = new TextEncoder().encode(whole);
      const source = new FedStream();
      const decoder = new TextDecoder();
      for (let at = 0; at < bytes.length; at += size) {
        source.feed(decoder.decode(bytes.subarray(at, at + size), { stream: true }));
      }
      source.end();
      const hold = await holdStream(source.stream, withholding(maxBytes), new FakeClock());
      assert(hold.kind === "commit");
      assertEquals(await readText(relay(source.stream, hold.held)), whole);
    }
  }
});

const borders = [
  { name: "exactly full", room: 0, want: "success" },
  { name: "one byte too long", room: -1, want: "overflow" },
] as const;
for (const c of borders) {
  Deno.test(`holdStream(): a stream ${c.name} is ${c.want}, in one read and in many`, async () => {
    const text = PREFIX + COMPLETED;
    const maxBytes = new TextEncoder().encode(text).length + c.room;
    for (const chunks of [[text], [...text]]) {
      const held: number[] = [];
      const hold = await holdStream(
        fed(...chunks),
        withholding(maxBytes, { onHeld: (bytes) => held.push(bytes) }),
        new FakeClock(),
      );
      assertEquals(hold.kind === "commit" && hold.why, c.want);
      assert(held.every((bytes) => bytes <= maxBytes), "never more than the bound (P10)");
    }
  });
}

Deno.test("an unfinished frame counts towards the bound before it is whole", async () => {
  const source = new FedStream().feed(
    CREATED,
    `event: x\ndata: {"type":"response.output_text.delta","delta":"`,
  );
  const holding = holdStream(source.stream, withholding(5_000), new FakeClock());
  for (let chunk = 0; chunk < 6; chunk++) source.feed("y".repeat(1_000));
  const hold = await holding;
  assertEquals(hold.kind === "commit" && [hold.why, textOf(hold.held)], ["overflow", CREATED]);
  source.feed(`"}\n\n`, COMPLETED).end();
  const rest = await readText(relay(source.stream, hold.held));
  assertEquals(
    rest.length,
    CREATED.length + 6_000 + COMPLETED.length +
      `event: x\ndata: {"type":"response.output_text.delta","delta":""}\n\n`.length,
  );
});

Deno.test("the bootstrap hold neither stops at unknown events by name nor counts unfinished frames", async () => {
  const source = new FedStream().feed(
    CREATED,
    `data: {"type":"response.in_progress","zz":"${"y".repeat(9_000)}`,
  );
  const holding = holdStream(source.stream, {
    until: "output",
    maxEvents: 16,
    maxBytes: 8_000,
    untilMs: Infinity,
    idleMs: IDLE_MS,
  }, new FakeClock());
  await settle();
  source.feed(`"}\n\n`).end();
  const hold = await holding;
  assertEquals(hold.kind === "commit" && hold.why, "overflow");
});

Deno.test("keepsNothing: the same verdicts with nothing in memory", async () => {
  const policy = withholding(1_000_000, { keepsNothing: true });
  const hold = await holdStream(fed(PREFIX, COMPLETED), policy, new FakeClock());
  assertEquals(hold.kind === "commit" && [hold.why, hold.held], ["success", []]);
  const tight = withholding(PREFIX.length - 1, { keepsNothing: true });
  const source = new FedStream().feed(PREFIX);
  const over = await holdStream(source.stream, tight, new FakeClock());
  assertEquals(over.kind === "commit" && over.why, "overflow");
  // The hold that goes on from there sees the same stream.
  source.feed(COMPLETED).end();
  const ordinary = { ...policy, maxBytes: 1_000_000, guarded: undefined };
  const { guarded: _, ...rest } = ordinary;
  const second = await holdStream(source.stream, rest, new FakeClock());
  assertEquals(second.kind === "commit" && second.why, "success");
});

Deno.test("a hold that goes on where the stream has already failed tells its failure at once", async () => {
  const source = new FedStream().feed(UNKNOWN + FAILED);
  const first = await holdStream(source.stream, withholding(), new FakeClock());
  assertEquals(nameOf(first), "unknown_payload");
  const { guarded: _, ...ordinary } = withholding();
  assertEquals(nameOf(await holdStream(source.stream, ordinary, new FakeClock())), "failed:in_stream");
});

Deno.test("a stream that hangs after its first events is withheld no longer than the idle limit", async () => {
  const clock = new FakeClock();
  const source = new FedStream().feed(CREATED);
  const holding = holdStream(source.stream, withholding(), clock);
  await clock.advance(IDLE_MS - 1);
  source.feed(textDelta("late"));
  await clock.advance(IDLE_MS - 1);
  let ended = false;
  holding.then(() => ended = true);
  await settle();
  assertEquals(ended, false);
  await clock.advance(1);
  const hold = await holding;
  assertEquals(hold.kind === "failed" && hold.evidence, {
    kind: "transport",
    cause: "idle_timeout",
    pooled: false,
  });
  assertEquals([source.cancelled, clock.pendingCount], [true, 0]);
});

Deno.test("a connection that breaks is told as it is, and leaves no timer behind", async () => {
  const clock = new FakeClock();
  const source = new FedStream().feed(PREFIX);
  const holding = holdStream(source.stream, withholding(), clock);
  await settle();
  source.break();
  const hold = await holding;
  assertEquals(hold.kind === "failed" && hold.evidence, BROKEN);
  assertEquals(clock.pendingCount, 0);
});

Deno.test("what was held is delivered piece by piece, and reported only when more is asked for", async () => {
  const big = textDelta("z".repeat(400_000));
  const source = new FedStream().feed(
    CREATED,
    big,
    ...Array.from({ length: 40 }, () => textDelta("q".repeat(4_000))),
  );
  source.feed(COMPLETED).end();
  const hold = await holdStream(source.stream, withholding(), new FakeClock());
  assert(hold.kind === "commit" && hold.held.length > 3);
  let delivered = false;
  const reader = relay(source.stream, hold.held, { onHeldDelivered: () => void (delivered = true) });
  let length = 0;
  while (length < CREATED.length + big.length) {
    length += (await reader.read())!.length;
    assertEquals(delivered, false);
  }
  while (await reader.read() !== null);
  assertEquals(delivered, true);
});

Deno.test("keep-alive comments come only where a client waits for a silent upstream, never between held pieces", async () => {
  const clock = new FakeClock();
  const deltas = Array.from({ length: 60 }, () => textDelta("q".repeat(3_000)));
  const source = new FedStream().feed(CREATED, ...deltas);
  const hold = await holdStream(source.stream, withholding(170_000), clock);
  assert(hold.kind === "commit" && hold.why === "overflow" && hold.held.length > 1);
  const reader = relay(source.stream, hold.held, { clock, keepaliveMs: 1_000 });
  let text = "";
  const decoder = new TextDecoder();
  const whole = CREATED + deltas.join("");
  while (text.length < whole.length) {
    // The client is slower than the keep-alive; it must get data all the same, and no comment inside a frame.
    await clock.advance(1_500);
    text += decoder.decode((await reader.read())!, { stream: true });
  }
  assertEquals(text, whole);
  const waiting = reader.read();
  await clock.advance(1_000);
  assertEquals(decoder.decode((await waiting)!), ": keep-alive\n\n");
  source.feed(COMPLETED).end();
  assertEquals(decoder.decode((await reader.read())!), COMPLETED);
  assertEquals(await reader.read(), null);
});

Deno.test("a client that takes its time is not the upstream's silence", async () => {
  const clock = new FakeClock();
  const source = new FedStream().feed(CREATED, textDelta("a"));
  const ends: RelayEnd[] = [];
  const reader = relay(source.stream, [], { clock, onEnd: (end) => ends.push(end) });
  await reader.read();
  await reader.read();
  // Nobody asks for more: the upstream has no way to speak.
  await clock.advance(3 * IDLE_MS);
  assertEquals(ends, []);
  const next = reader.read();
  source.feed(textDelta("b"));
  assert((await next)!.length > 0);
  // Asked, and silent from there on: the limit counts from the question.
  const asked = reader.read();
  await clock.advance(IDLE_MS - 1);
  assertEquals(ends, []);
  await clock.advance(1);
  await asked;
  assertEquals(ends[0]?.kind, "failed");
});

Deno.test("deliverPieces() tells once whether the client took everything", async () => {
  const pieces =
    () => [new Uint8Array(50_000).fill(1), new Uint8Array(50_000).fill(2), new Uint8Array(7).fill(3)];
  const ends: boolean[] = [];
  assertEquals((await readText(deliverPieces(pieces(), (all) => ends.push(all)))).length, 100_007);
  const body = deliverPieces(pieces(), (all) => ends.push(all));
  await body.read();
  body.cancel();
  assertEquals(ends, [true, false]);
});
