/** Medians, ratios and the Markdown table of a benchmark run. */
import type { Figures, Row } from "./scenarios.ts";

export interface Measured {
  readonly row: Row;
  /** One entry a repetition. */
  readonly passThrough: readonly Figures[];
  readonly holdfast: readonly Figures[];
}

export interface Judged {
  readonly label: string;
  readonly passThrough: number;
  readonly holdfast: number;
  readonly ratio: number;
  readonly target: string;
  /** Null where nothing is asked. */
  readonly reached: boolean | null;
}

export function judge({ row, passThrough, holdfast }: Measured): Judged {
  const theirs = median(passThrough.map((figures) => figures[row.figure] ?? NaN));
  const ours = median(holdfast.map((figures) => figures[row.figure] ?? NaN));
  const ratio = ours / theirs;
  const { target } = row;
  if (target === undefined) {
    return { label: row.label, passThrough: theirs, holdfast: ours, ratio, target: "", reached: null };
  }
  const value = target.of === "ratio" ? ratio : target.of === "difference" ? ours - theirs : ours;
  const { atLeast, atMost } = target;
  const word = target.of === "ratio" ? "ratio" : target.of === "difference" ? "added" : "";
  return {
    label: row.label,
    passThrough: theirs,
    holdfast: ours,
    ratio,
    target: `${word} ${atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`}`.trim(),
    reached: (atLeast === undefined || value >= atLeast) && (atMost === undefined || value <= atMost),
  };
}

/** The table, one line a row; `digits` are those of the row. */
export function renderTable(measured: readonly Measured[]): string {
  const lines = measured.map((one) => {
    const { label, passThrough, holdfast, ratio, target, reached } = judge(one);
    const digits = one.row.digits;
    // Against next to nothing a ratio says nothing.
    const compared = passThrough >= 0.01 ? ratio : NaN;
    return `| ${label} | ${show(passThrough, digits)} | ${show(holdfast, digits)} | ${show(compared, 2)} | ` +
      `${target} | ${reached === null ? "" : reached ? "yes" : "**no**"} |`;
  });
  return [
    "| measured | pass-through | Holdfast | ratio | target | reached |",
    "|---|--:|--:|--:|---|---|",
    ...lines,
  ].join("\n");
}

/** The middle one; of an even number the mean of the two in the middle. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return sorted.length === 0 ? NaN : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function show(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : "–";
}
