import { assert, assertEquals } from "@std/assert";
import { createLog, formatJson, formatPretty, type LogSink } from "../../lib/runtime/log.ts";
import type { LogLevel } from "../../lib/ports.ts";
import { FAKE_START_MS, FakeClock, settle } from "../support/fake_clock.ts";
import { memoryLog } from "../support/memory_log.ts";

class Sink implements LogSink {
  isTerminal = false;
  colour = false;
  writes: string[] = [];
  gate: Promise<void> = Promise.resolve();
  fails = false;
  async write(text: string): Promise<void> {
    this.writes.push(text);
    await this.gate;
    if (this.fails) throw new Error("EPIPE");
  }
}

const JSON_AT_INFO = { level: "info", format: "json" } as const;

Deno.test("write() gathers lines and hands them over together 50 ms after the first", async () => {
  const clock = new FakeClock();
  const sink = new Sink();
  const log = createLog(JSON_AT_INFO, clock, sink);
  log.write("info", "started", { port: 8317 });
  await clock.advance(49);
  log.write("warn", "second");
  assertEquals(sink.writes, []);
  await clock.advance(1);
  assertEquals(sink.writes.length, 1);
  assertEquals(sink.writes[0]!.trimEnd().split("\n").map((line) => JSON.parse(line)), [
    { at: "2027-01-15T08:00:00.000Z", level: "info", event: "started", port: 8317 },
    { at: "2027-01-15T08:00:00.049Z", level: "warn", event: "second" },
  ]);
  assertEquals(clock.pendingCount, 0);
});

Deno.test("lines that come while others are written wait their time too, and go out together", async () => {
  const clock = new FakeClock();
  const sink = new Sink();
  const log = createLog(JSON_AT_INFO, clock, sink);
  const gate = Promise.withResolvers<void>();
  sink.gate = gate.promise;
  log.write("info", "first");
  await clock.advance(50);
  log.write("info", "second");
  gate.resolve();
  await settle();
  log.write("info", "third");
  assertEquals(sink.writes.length, 1);
  await clock.advance(50);
  assertEquals(sink.writes.length, 2);
  assertEquals(sink.writes[1]!.trimEnd().split("\n").length, 2);
  log.write("info", "fourth");
  await log.flush();
  assertEquals(sink.writes.length, 3);
  assertEquals(clock.pendingCount, 0);
});

Deno.test("write() does not wait for the time once 64 KiB are held", async () => {
  const clock = new FakeClock();
  const sink = new Sink();
  const log = createLog(JSON_AT_INFO, clock, sink);
  for (let i = 0; sink.writes.length === 0 && i < 1_000; i++) {
    log.write("info", "line", { text: "x".repeat(400) });
  }
  assert(sink.writes[0]!.length >= 65_536 && sink.writes[0]!.length < 66_100);
  await log.close();
});

const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];
for (const lowest of levels) {
  Deno.test(`write() keeps ${lowest} and above`, async () => {
    const sink = new Sink();
    const log = createLog({ level: lowest, format: "json" }, new FakeClock(), sink);
    for (const level of levels) log.write(level, level);
    await log.close();
    const events = sink.writes.join("").trimEnd().split("\n").map((line) => JSON.parse(line).event);
    assertEquals(events, levels.slice(levels.indexOf(lowest)));
  });
}

Deno.test("setLevel() takes effect at once", async () => {
  const sink = new Sink();
  const log = createLog(JSON_AT_INFO, new FakeClock(), sink);
  log.write("debug", "before");
  log.setLevel("debug");
  log.write("debug", "after");
  await log.close();
  assertEquals(JSON.parse(sink.writes.join("")).event, "after");
});

Deno.test("close() writes the rest, leaves no timer, and takes nothing more", async () => {
  const clock = new FakeClock();
  const sink = new Sink();
  const log = createLog(JSON_AT_INFO, clock, sink);
  log.write("error", "last_words");
  await log.close();
  log.write("error", "too_late");
  await log.close();
  assertEquals(sink.writes.length, 1);
  assertEquals(clock.pendingCount, 0);
});

Deno.test("a reader that does not read costs 1 MiB at most, and the loss is told afterwards", async () => {
  const clock = new FakeClock();
  const sink = new Sink();
  const gate = Promise.withResolvers<void>();
  sink.gate = gate.promise;
  const log = createLog(JSON_AT_INFO, clock, sink);
  log.write("info", "first");
  await clock.advance(50);
  for (let i = 0; i < 5_000; i++) log.write("info", "line", { text: "x".repeat(400) });
  assertEquals(sink.writes.length, 1);
  gate.resolve();
  await log.close();
  const text = sink.writes.join("");
  assert(text.length < 1_100_000);
  const lines = text.trimEnd().split("\n").map((line) => JSON.parse(line));
  const dropped = lines.find((line) => line.event === "log_records_dropped");
  assertEquals(lines.length - 2 + dropped.count, 5_000);
});

Deno.test("a sink that fails loses its lines and nothing else", async () => {
  const sink = new Sink();
  sink.fails = true;
  const log = createLog(JSON_AT_INFO, new FakeClock(), sink);
  log.write("info", "lost");
  await log.flush();
  sink.fails = false;
  log.write("info", "kept");
  await log.close();
  assertEquals(JSON.parse(sink.writes.at(-1)!).event, "kept");
});

Deno.test("format auto is pretty on a terminal and JSON elsewhere", async () => {
  for (const isTerminal of [true, false]) {
    const sink = new Sink();
    sink.isTerminal = isTerminal;
    const log = createLog({ level: "info", format: "auto" }, new FakeClock(), sink);
    log.write("info", "started");
    await log.close();
    assertEquals(sink.writes[0]!.startsWith("{"), !isTerminal);
  }
});

Deno.test("formatPretty() shows time, level, event and fields in one line", () => {
  assertEquals(
    formatPretty(
      FAKE_START_MS + 7,
      "warn",
      "cooled",
      { account: "codex:a:b", why: "two words", n: 3 },
      false,
    ),
    '08:00:00.007 WARN  cooled account=codex:a:b why="two words" n=3\n',
  );
  assertEquals(
    formatPretty(FAKE_START_MS, "error", "cooled", { n: 3 }, true),
    "\x1b[90m08:00:00.000\x1b[0m \x1b[31mERROR\x1b[0m cooled \x1b[90mn=\x1b[0m3\n",
  );
});

Deno.test("no value can move the cursor of a terminal or begin a line of its own", () => {
  const nasty = "a\nb\x1b[31m\x9b31m\x7f\u2028c";
  for (
    const line of [
      formatPretty(0, "info", "event", { nasty }, false),
      formatJson(0, "info", "event", { nasty }),
    ]
  ) {
    assertEquals(line.indexOf("\n"), line.length - 1);
    assert(!line.includes("\x1b"));
  }
  assert(!/[\x7f-\x9f\u2028]/.test(formatPretty(0, "info", "event", { nasty }, false)));
});

Deno.test("a field cannot pose as the record's own time, level or event", () => {
  const record = JSON.parse(formatJson(0, "info", "real", { event: "forged", level: "x", at: "y" }));
  assertEquals([record.event, record.level, record.at], ["real", "info", "1970-01-01T00:00:00.000Z"]);
  assertEquals(record.event_field, "forged");
});

Deno.test("an event that is not one word of ours is cleaned", () => {
  assertEquals(
    JSON.parse(formatJson(0, "info", "Bearer SENT-ACC went\nwrong")).event,
    "Bearer_[redacted]_went_wrong",
  );
});

Deno.test("memoryLog() finds a secret that came through and says which", () => {
  const log = memoryLog();
  log.write("info", "one", { detail: "SENT-LEAK", refresh_token: "SENT-HIDDEN" });
  assertEquals(log.scan(["SENT-LEAK", "SENT-HIDDEN", "SENT-OTHER"]), ["SENT-LEAK"]);
  assertEquals(log.events(), ["one"]);
});

Deno.test("the real sink of the process can be closed without leaving anything behind", async () => {
  const log = createLog({ level: "error", format: "auto" }, new FakeClock());
  log.write("info", "below_the_level");
  await log.close();
  await settle();
});
