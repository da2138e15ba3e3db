import { assertEquals } from "@std/assert";
import { judge, median, renderTable } from "./report.ts";
import type { Row } from "./scenarios.ts";

const medians: { name: string; values: number[]; want: number }[] = [
  { name: "one", values: [7], want: 7 },
  { name: "an odd number, unsorted", values: [9, 1, 5], want: 5 },
  { name: "an even number", values: [4, 1, 10, 2], want: 3 },
  { name: "two digits beside one", values: [10, 9, 100], want: 10 },
  { name: "none", values: [], want: NaN },
];
for (const c of medians) {
  Deno.test(`median() takes the middle of ${c.name}`, () => {
    assertEquals(median(c.values), c.want);
  });
}

const targets: { name: string; target: NonNullable<Row["target"]>; ours: number; want: boolean }[] = [
  { name: "the ratio on the bound", target: { of: "ratio", atLeast: 0.65 }, ours: 65, want: true },
  { name: "the ratio below the bound", target: { of: "ratio", atLeast: 0.65 }, ours: 64.9, want: false },
  { name: "the difference on the bound", target: { of: "difference", atMost: 5 }, ours: 105, want: true },
  { name: "the difference above it", target: { of: "difference", atMost: 5 }, ours: 105.1, want: false },
  { name: "the figure itself on the bound", target: { of: "value", atMost: 90 }, ours: 90, want: true },
  { name: "the figure itself above it", target: { of: "value", atMost: 90 }, ours: 90.1, want: false },
  { name: "a figure that could not be read", target: { of: "value", atMost: 90 }, ours: NaN, want: false },
];
for (const c of targets) {
  Deno.test(`judge() ${c.want ? "passes" : "fails"} ${c.name}`, () => {
    const row: Row = { figure: "f", label: "f", digits: 1, target: c.target };
    assertEquals(judge({ row, passThrough: [{ f: 100 }], holdfast: [{ f: c.ours }] }).reached, c.want);
  });
}

Deno.test("renderTable() shows medians, the ratio, and what was missed", () => {
  const row: Row = { figure: "rps", label: "requests/s", digits: 0, target: { of: "ratio", atLeast: 0.65 } };
  const passThrough = [{ rps: 90 }, { rps: 110 }, { rps: 100 }];
  const table = renderTable([
    { row, passThrough, holdfast: [{ rps: 20 }, { rps: 60 }, { rps: 61 }] },
    {
      row: { figure: "rps", label: "of nothing", digits: 1 },
      passThrough: [{ rps: 0 }],
      holdfast: [{ rps: 3 }],
    },
  ]);
  assertEquals(table.split("\n").slice(2), [
    "| requests/s | 100 | 60 | 0.60 | ratio ≥ 0.65 | **no** |",
    "| of nothing | 0.0 | 3.0 | – |  |  |",
  ]);
});
