/** The last hour as three small charts, one column a minute. */
import { el, setText, svg } from "./dom.js";
import { clockTime, duration, number, plural } from "./format.js";

const MINUTES = 60;
const MINUTE_MS = 60_000;
const WIDTH = 240;
const HEIGHT = 48;
const STEP = WIDTH / MINUTES;

const CHARTS = [
  {
    id: "chart-requests",
    title: "Requests",
    series: ["served", "refused", "failed", "left"],
    total: (minutes) => number(sum(minutes, requestsOf)),
    unit: "in the last hour",
    note: (minutes) => {
      const moved = sum(minutes, (minute) => minute.moved);
      return `${number(Math.max(...minutes.map(requestsOf)))} a minute at most · ${number(moved)} moved`;
    },
    tell: (minute) => `${plural(requestsOf(minute), "request")}, ${number(minute.moved)} moved`,
  },
  {
    id: "chart-errors",
    title: "Not served",
    series: ["failed", "refused"],
    total: (minutes) => number(sum(minutes, (minute) => minute.failed + minute.refused)),
    unit: (minutes) =>
      share(sum(minutes, (minute) => minute.failed + minute.refused), sum(minutes, requestsOf)),
    note: (minutes) =>
      `${number(sum(minutes, (minute) => minute.failed))} failed · ${
        number(sum(minutes, (minute) => minute.refused))
      } refused`,
    tell: (minute) => `${number(minute.failed)} failed, ${number(minute.refused)} refused`,
  },
  {
    id: "chart-waits",
    title: "Waits",
    series: ["waitedMs"],
    total: (minutes) => number(sum(minutes, (minute) => minute.waits)),
    unit: (minutes) => share(sum(minutes, (minute) => minute.waits), sum(minutes, requestsOf)),
    note: (minutes) => `${duration(sum(minutes, (minute) => minute.waitedMs))} waited in all`,
    tell: (minute) => `${plural(minute.waits, "wait")}, ${duration(minute.waitedMs)} in all`,
  },
];

const views = [];
const known = new Map();

export function createCharts() {
  for (const chart of CHARTS) views.push(createChart(chart));
}

/** Takes counters of minutes, new ones and such as were told before. */
export function mergeMinutes(minutes) {
  for (const minute of minutes) known.set(minute.atMs, minute);
  for (const atMs of known.keys()) {
    if (known.size <= MINUTES * 2) break;
    known.delete(atMs);
  }
}

export function drawCharts(nowMs) {
  const last = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS;
  const minutes = Array.from({ length: MINUTES }, (_, at) => {
    const atMs = last - (MINUTES - 1 - at) * MINUTE_MS;
    return known.get(atMs) ?? emptyMinute(atMs);
  });
  for (const view of views) drawChart(view, minutes, nowMs);
}

function createChart(chart) {
  const figure = document.getElementById(chart.id);
  const total = el("span");
  const unit = el("span", { class: "unit" });
  const note = el("p", { class: "sub" });
  const paths = chart.series.map((name) => svg("path", { class: `series ${name}` }));
  const cursor = svg("rect", { class: "cursor", width: STEP, height: HEIGHT, y: 0, visibility: "hidden" });
  const plot = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": chart.title,
    },
    cursor,
    ...paths,
  );
  figure.append(
    el("figcaption", {}, el("h3", {}, chart.title), el("p", { class: "figure" }, total, " ", unit)),
    plot,
    note,
  );
  const view = { chart, total, unit, note, paths, plot, cursor, minutes: [], nowMs: 0, pointed: null };
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * MINUTES);
    view.pointed = Math.min(MINUTES - 1, Math.max(0, column));
    showNote(view);
  });
  plot.addEventListener("pointerleave", () => {
    view.pointed = null;
    showNote(view);
  });
  return view;
}

function drawChart(view, minutes, nowMs) {
  const { chart } = view;
  view.minutes = minutes;
  view.nowMs = nowMs;
  const top = Math.max(1, ...minutes.map((minute) => sum(chart.series, (name) => minute[name])));
  const base = new Array(MINUTES).fill(0);
  for (const [at, name] of chart.series.entries()) {
    let d = "";
    for (const [column, minute] of minutes.entries()) {
      const value = minute[name];
      if (value === 0) continue;
      const from = HEIGHT - (base[column] / top) * HEIGHT;
      base[column] += value;
      const to = HEIGHT - (base[column] / top) * HEIGHT;
      // A single failure among thousands must still be seen.
      d += bar(column, Math.min(to, from - 1.5), from);
    }
    if (view.paths[at].getAttribute("d") !== d) view.paths[at].setAttribute("d", d);
  }
  setText(view.total, chart.total(minutes));
  setText(view.unit, typeof chart.unit === "string" ? chart.unit : chart.unit(minutes));
  const spoken = `${chart.title}, minute by minute: ${chart.note(minutes)}`;
  if (view.plot.getAttribute("aria-label") !== spoken) view.plot.setAttribute("aria-label", spoken);
  showNote(view);
}

function showNote(view) {
  const { chart, minutes, pointed, cursor } = view;
  cursor.setAttribute("visibility", pointed === null ? "hidden" : "visible");
  if (pointed === null) return setText(view.note, chart.note(minutes));
  cursor.setAttribute("x", String(pointed * STEP));
  const minute = minutes[pointed];
  setText(view.note, `${clockTime(minute.atMs, view.nowMs)}: ${chart.tell(minute)}`);
}

function bar(column, top, bottom) {
  const left = (column * STEP + 0.5).toFixed(1);
  return `M${left} ${bottom.toFixed(1)}V${top.toFixed(1)}h${STEP - 1}V${bottom.toFixed(1)}z`;
}

function requestsOf(minute) {
  return minute.served + minute.refused + minute.failed + minute.left;
}

function share(part, whole) {
  if (whole === 0) return "in the last hour";
  const percent = (part / whole) * 100;
  return percent > 0 && percent < 0.1 ? "under 0.1 %" : `${percent.toFixed(percent < 10 ? 1 : 0)} %`;
}

function sum(items, valueOf) {
  return items.reduce((total, item) => total + valueOf(item), 0);
}

function emptyMinute(atMs) {
  return { atMs, served: 0, refused: 0, failed: 0, left: 0, moved: 0, waits: 0, waitedMs: 0 };
}
