import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  displayWidth,
  duration,
  painter,
  printable,
  relativeTime,
  type Style,
  table,
} from "../../lib/cli/terminal.ts";

const NOW_MS = Date.parse("2027-01-15T08:00:00Z");

function style(width: number | null, coloured = false): Style {
  return {
    paint: painter(coloured),
    isTerminal: width !== null,
    width: width ?? Number.MAX_SAFE_INTEGER,
    nowMs: NOW_MS,
  };
}

const ROWS = [["codex:one", { text: "healthy", paint: "good" as const }], ["b", ""]] as const;

Deno.test("table() is aligned under a head on a terminal, without trailing blanks", () => {
  assertEquals(table(["ID", "STATE"], ROWS, style(80)), "ID         STATE\ncodex:one  healthy\nb\n");
});

Deno.test("table() is tab-separated without a head elsewhere", () => {
  assertEquals(table(["ID", "STATE"], ROWS, style(null)), "codex:one\thealthy\nb\t\n");
});

Deno.test("table() colours a cell without moving its column", () => {
  const coloured = table(["ID", "STATE", "N"], [["a", { text: "up", paint: "good" }, "1"]], style(80, true));
  assertEquals(coloured.split("\n")[1], "a   \x1b[32mup\x1b[0m     1");
});

Deno.test("table() is nothing without rows", () => {
  assertEquals([table(["ID"], [], style(80)), table(["ID"], [], style(null))], ["", ""]);
});

Deno.test("table() cuts the widest columns until a line fits, and never breaks one", () => {
  fc.assert(fc.property(
    fc.array(fc.array(fc.string({ unit: "grapheme", maxLength: 40 }), { minLength: 3, maxLength: 3 }), {
      minLength: 1,
      maxLength: 6,
    }),
    fc.integer({ min: 28, max: 100 }),
    (rows, width) => {
      const lines = table(["A", "B", "C"], rows, style(width)).split("\n").slice(0, -1);
      return lines.length === rows.length + 1 && lines.every((line) => displayWidth(line) <= width);
    },
  ));
});

const widths = [["abc", 3], ["日本", 4], ["é", 1], ["e\u0301", 1], ["🚀", 2], ["", 0]] as const;
for (const [text, want] of widths) {
  Deno.test(`displayWidth() of ${JSON.stringify(text)} is ${want}`, () => {
    assertEquals(displayWidth(text), want);
  });
}

Deno.test("printable() lets nothing through that moves the cursor or turns text around", () => {
  assertEquals(printable("a\x1b[2Jb\r\nc\u202ed\u2028"), "a�[2Jb��c�d�");
});

const durations = [
  [0, "0 ms"],
  [999, "999 ms"],
  [1_000, "1 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [90_500, "1 min 30 s"],
  [3_600_000, "1 h"],
  [3_660_000, "1 h 1 min"],
  [86_400_000 * 2 + 3_600_000 * 5, "2 d 5 h"],
  [-5, "0 ms"],
] as const;
for (const [ms, want] of durations) {
  Deno.test(`duration() of ${ms} ms is ${want}`, () => {
    assertEquals(duration(ms), want);
  });
}

const times = [
  ["2027-01-15T08:05:00Z", "in 5 min"],
  ["2027-01-15T08:00:00Z", "in 0 ms"],
  ["2027-01-15T07:59:00Z", "1 min ago"],
  [null, ""],
  ["soon", ""],
] as const;
for (const [iso, want] of times) {
  Deno.test(`relativeTime() of ${iso} is "${want}"`, () => {
    assertEquals(relativeTime(iso, NOW_MS), want);
  });
}
