/**
 * How text looks: colours and tables for people at a terminal, plain lines everywhere else.
 *
 * Off a terminal a table is tab-separated and without a head, so that `cut` and `awk` read it as it is.
 */
export interface Painter {
  strong(text: string): string;
  faint(text: string): string;
  good(text: string): string;
  warn(text: string): string;
  bad(text: string): string;
}

export interface Style {
  readonly paint: Painter;
  readonly isTerminal: boolean;
  readonly width: number;
  readonly nowMs: number;
}

/** NO_COLOR (any value) and TERM=dumb are respected. */
export function isColoured(): boolean {
  return !Deno.noColor && Deno.env.get("TERM") !== "dumb";
}

export function painter(coloured = isColoured() && Deno.stdout.isTerminal()): Painter {
  const paint = (code: string) => (text: string): string => coloured ? `\x1b[${code}m${text}\x1b[0m` : text;
  return { strong: paint("1"), faint: paint("2"), good: paint("32"), warn: paint("33"), bad: paint("31") };
}

export function terminalWidth(): number {
  try {
    return Deno.consoleSize().columns;
  } catch {
    return 80;
  }
}

/** A cell, with the colour of its text; the colour takes no room. */
export interface Cell {
  readonly text: string;
  readonly paint?: keyof Painter;
}
export type Row = readonly (string | Cell)[];

const GAP = "  ";
/** No column is cut below this, however narrow the terminal. */
const NARROWEST = 8;

/** @returns lines, each ended by a newline; "" without rows. */
export function table(head: readonly string[], rows: readonly Row[], style: Style): string {
  const cells = rows.map((row) => row.map(toCell));
  if (!style.isTerminal) {
    return cells.map((row) => `${row.map(({ text }) => text).join("\t")}\n`).join("");
  }
  if (cells.length === 0) return "";
  const all = [head.map((text) => ({ text, paint: "faint" as const })), ...cells];
  const widths = fitWidths(
    head.map((_, column) => Math.max(...all.map((row) => displayWidth(row[column]?.text ?? "")))),
    style.width,
  );
  return all.map((row) => `${paintRow(row, widths, style.paint).trimEnd()}\n`).join("");
}

function paintRow(row: readonly Cell[], widths: readonly number[], paint: Painter): string {
  return row.map(({ text, paint: colour }, column) => {
    const width = widths[column] ?? 0;
    const cut = cutTo(text, width);
    const padding = " ".repeat(Math.max(0, width - displayWidth(cut)));
    return (colour === undefined ? cut : paint[colour](cut)) + padding;
  }).join(GAP);
}

/** Takes room from the widest column first, until the line fits. */
function fitWidths(wanted: readonly number[], limit: number): number[] {
  const widths = [...wanted];
  const total = () => widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1));
  while (total() > limit) {
    const widest = Math.max(...widths);
    if (widest <= NARROWEST) break;
    const column = widths.indexOf(widest);
    const next = Math.max(NARROWEST, ...widths.filter((width) => width < widest));
    widths[column] = Math.max(next === widest ? widest - 1 : next, widest - (total() - limit));
  }
  return widths;
}

function toCell(cell: string | Cell): Cell {
  return typeof cell === "string" ? { text: printable(cell) } : { ...cell, text: printable(cell.text) };
}

function cutTo(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let cut = "";
  for (const character of text) {
    if (displayWidth(cut) + displayWidth(character) > width - 1) break;
    cut += character;
  }
  return `${cut}…`;
}

/** Chinese, Japanese and Korean characters and most pictures take two columns. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;

export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text) {
    if (/\p{Mark}/u.test(character)) continue;
    width += WIDE.test(character) ? 2 : 1;
  }
  return width;
}

/** Without what would move the cursor, change colours or break a table: a client chose this text. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}/gu, "�");
}

/** `2 h 5 min`, `45 s`, `120 ms`: the two largest units, rounded down. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const units: readonly (readonly [string, number])[] = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    [
      "s",
      1_000,
    ],
  ];
  const first = units.findIndex(([, size]) => ms >= size);
  const [unit, size] = units[first]!;
  const whole = Math.floor(ms / size);
  const next = units[first + 1];
  const rest = next === undefined ? 0 : Math.floor((ms - whole * size) / next[1]);
  return rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${next![0]}`;
}

/** `in 5 min` or `5 min ago` of a time as management gives it; "" for none. */
export function relativeTime(iso: string | null, nowMs: number): string {
  const atMs = iso === null ? NaN : Date.parse(iso);
  if (Number.isNaN(atMs)) return "";
  return atMs >= nowMs ? `in ${duration(atMs - nowMs)}` : `${duration(nowMs - atMs)} ago`;
}
