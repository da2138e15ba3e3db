/** One request in full: how it ended, why, step by step, and a timeline. */
import { labelOf } from "./accounts.js";
import { byId, el, setText } from "./dom.js";
import { clockTime, duration, secondTime, timeOf } from "./format.js";

const shown = { id: null, now: Date.now };

/**
 * @param now  the proxy's time, epoch ms.
 * @param closed  called when the drawer has gone.
 */
export function createDrawer(now, closed) {
  shown.now = now;
  const drawer = byId("drawer");
  byId("drawer-close").addEventListener("click", () => drawer.close());
  // The dialog covers its own box; a click outside of that falls on the dialog element itself.
  drawer.addEventListener("click", (event) => {
    if (event.target !== drawer) return;
    const box = drawer.getBoundingClientRect();
    if (event.clientX < box.left || event.clientX > box.right) drawer.close();
  });
  drawer.addEventListener("close", () => {
    shown.id = null;
    closed();
  });
}

export async function openDrawer(id) {
  shown.id = id;
  setText(byId("drawer-title"), "Request");
  byId("drawer-body").replaceChildren(el("p", { class: "sub" }, "Loading"));
  byId("drawer").showModal();
  byId("drawer-title").focus();
  const told = await load(id);
  // Another one was opened, or it was closed, while this one was on its way.
  if (shown.id !== id) return;
  if (told.problem !== undefined) byId("drawer-body").replaceChildren(el("p", {}, told.problem));
  else show(told);
}

async function load(id) {
  try {
    const answer = await fetch(`/status/requests/${encodeURIComponent(id)}`);
    if (answer.ok) return await answer.json();
    if (answer.status === 401) return { problem: "You are logged out: load the page again to log in." };
    return { problem: `This request is no longer kept: only the last 1,000 are.` };
  } catch {
    return { problem: "The proxy cannot be reached now." };
  }
}

function show(told) {
  setText(byId("drawer-title"), told.title);
  byId("drawer-body").replaceChildren(
    ...[
      told.because === null ? null : el("p", { class: "because" }, `${told.because}.`),
      timeline(told),
      el("h3", {}, "What happened"),
      story(told),
      others(told),
      el("h3", {}, "Facts"),
      facts(told),
    ].filter((node) => node !== null),
  );
}

function story(told) {
  if (told.story.length === 0) return el("p", {}, "Nothing was sent to any account.");
  return el(
    "ol",
    { class: "story" },
    ...told.story.map((line) =>
      el(
        "li",
        { "data-tone": line.tone },
        el("span", { class: "offset" }, `+${duration(line.offset_ms)}`),
        el("span", {}, `${line.text}.`),
      )
    ),
  );
}

/** Who could not be asked, or not again, and why. */
function others(told) {
  if (told.others.length === 0) return null;
  const nowMs = shown.now();
  return el(
    "section",
    {},
    el("h3", {}, "Accounts that were blocked when it ended"),
    el(
      "ul",
      { class: "others" },
      ...told.others.map((other) => {
        const untilMs = timeOf(other.until);
        return el(
          "li",
          {},
          el("bdi", { class: "name", title: other.account }, labelOf(other.account)),
          el("span", {}, `${other.words}${untilMs === null ? "" : ` (until ${clockTime(untilMs, nowMs)})`}.`),
        );
      }),
    ),
  );
}

function facts(told) {
  const atMs = timeOf(told.at);
  const rows = [
    ["Request", told.request_id],
    ["Model", told.model ?? "none named"],
    ["Route", told.route],
    ["Key", told.tenant],
    ["Came at", `${secondTime(atMs)}, ${new Date(atMs).toDateString()}`],
    ["Took", told.ended_at === null ? "under way" : duration(timeOf(told.ended_at) - atMs)],
    [
      "Client was told",
      told.status === 0 ? leaving(told.code) : `${told.status} ${told.code ?? ""}`.trim(),
    ],
    ["Rounds", String(told.rounds)],
  ];
  return el(
    "dl",
    { class: "facts" },
    ...rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, el("bdi", {}, value))]),
  );
}

function leaving(code) {
  return code === "client_cancelled" ? "a part of its answer, then it left" : "nothing, it had left";
}

// ---------------------------------------------------------------- the timeline

function timeline(told) {
  const startMs = timeOf(told.at);
  const endMs = Math.max(startMs + 1, timeOf(told.ended_at) ?? startMs);
  if (told.attempts.length + told.waits.length === 0) return null;
  const lanes = new Map();
  const lane = (name) => {
    if (!lanes.has(name)) lanes.set(name, []);
    return lanes.get(name);
  };
  for (const attempt of told.attempts) {
    lane(labelOf(attempt.account)).push({
      fromMs: timeOf(attempt.started_at),
      toMs: timeOf(attempt.ended_at) ?? endMs,
      tone: attempt.outcome === "success" ? "good" : "bad",
    });
  }
  for (const wait of told.waits) {
    lane("Waiting").push({ fromMs: timeOf(wait.from), toMs: timeOf(wait.until), tone: "wait" });
  }
  const place = (atMs) => Math.min(100, Math.max(0, ((atMs - startMs) / (endMs - startMs)) * 100));
  const tracks = [...lanes].map(([name, spans]) =>
    el(
      "div",
      { class: "lane" },
      el("bdi", { class: "lane-name" }, name),
      el("div", { class: "track" }, ...spans.map((span) => spanNode(span, place))),
    )
  );
  return el(
    "div",
    { class: "timeline", role: "img", "aria-label": timelineWords(told, lanes.size, endMs - startMs) },
    ...tracks,
    el(
      "div",
      { class: "lane axis" },
      el("span", { class: "lane-name" }),
      el("div", { class: "track" }, el("span", {}, "0"), el("span", {}, duration(endMs - startMs))),
    ),
  );
}

function spanNode({ fromMs, toMs, tone }, place) {
  const node = el("span", { "data-tone": tone });
  node.style.left = `${place(fromMs)}%`;
  node.style.width = `${place(toMs) - place(fromMs)}%`;
  return node;
}

function timelineWords(told, laneCount, tookMs) {
  return `Timeline of ${
    duration(tookMs)
  } in ${laneCount} lanes: ${told.attempts.length} attempts, ${told.waits.length} waits. The list below tells the same.`;
}
