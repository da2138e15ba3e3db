/** The feed of finished requests, newest first. Few rows, many requests: the rest stays in memory. */
import { labelOf } from "./accounts.js";
import { arrange, byId, cell, el, nextFrame, setAttribute, setHidden, setText, soon } from "./dom.js";
import { duration, number, secondTime, timeOf } from "./format.js";

const KEPT = 1_000;
const SHOWN = 80;

const RESULTS = {
  served: "Served",
  refused: "Refused",
  failed: "Failed",
  left: "Client left",
};

/** Newest first. */
let kept = [];
let pending = [];
const rows = new Map();
const feed = { filter: "all", held: false, pointed: false, focused: false, opened: false };

/** @param open  shows one request in full. */
export function createRequests(open) {
  const body = byId("request-rows");
  const hold = byId("hold");
  hold.addEventListener("click", () => {
    feed.held = !feed.held;
    setAttribute(hold, "aria-pressed", String(feed.held));
    take();
  });
  byId("show-new").addEventListener("click", () => take(true));
  byId("request-filter").addEventListener("change", (event) => {
    feed.filter = event.target.value;
    take(true);
  });
  // Rows must not run away from under a finger or the keyboard's focus.
  body.addEventListener("pointerenter", ({ pointerType }) => (feed.pointed = pointerType === "mouse"));
  body.addEventListener("pointerleave", () => {
    feed.pointed = false;
    take();
  });
  body.addEventListener("focusin", () => (feed.focused = true));
  body.addEventListener("focusout", () => {
    feed.focused = false;
    take();
  });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row === null || String(getSelection()) !== "") return;
    feed.opened = true;
    row.querySelector("button").focus();
    open(row.dataset.request);
  });
}

export function drawerClosed() {
  feed.opened = false;
  take();
}

/** What was there before this page, or before it could read again. */
export function replaceRequests(requests) {
  const known = new Set(requests.map(({ request_id: id }) => id));
  const news = pending.filter(({ request_id: id }) => !known.has(id));
  kept = requests;
  pending = news;
  take(true);
}

export function addRequest(request) {
  pending.push(request);
  if (pending.length > KEPT) pending.shift();
  take();
}

function take(now = false) {
  if (now) nextFrame(drawRequests);
  else soon(drawUnlessHeld);
}

/** Asked when it is drawn, not when it was wanted: somebody may have put a finger on a row in between. */
function drawUnlessHeld() {
  if (feed.held || feed.pointed || feed.focused || feed.opened) drawNews();
  else drawRequests();
}

function drawNews() {
  const button = byId("show-new");
  const count = pending.length;
  setHidden(button, count === 0);
  setText(button, `Show ${count >= KEPT ? `${KEPT} or more` : number(count)} new`);
}

function drawRequests() {
  if (pending.length > 0) {
    const seen = new Set(kept.slice(0, SHOWN).map(({ request_id: id }) => id));
    const news = pending.filter(({ request_id: id }) => !seen.has(id)).reverse();
    kept = news.concat(kept).slice(0, KEPT);
    pending = [];
  }
  const shown = kept.filter(isWanted).slice(0, SHOWN);
  const ids = new Set(shown.map(({ request_id: id }) => id));
  for (const id of rows.keys()) if (!ids.has(id)) rows.delete(id);
  arrange(byId("request-rows"), shown.map(rowOf));
  const empty = byId("no-requests");
  setHidden(empty, shown.length > 0);
  setText(empty, kept.length === 0 ? "No request has come yet." : "No request matches.");
  drawNews();
}

function isWanted(request) {
  switch (feed.filter) {
    case "moved":
      return request.attempts > 1 || request.waited_ms > 0 || request.rounds > 1;
    case "failed":
      return request.result !== "served";
    default:
      return true;
  }
}

function rowOf(request) {
  const known = rows.get(request.request_id);
  if (known !== undefined) return known;
  const node = createRow(request);
  rows.set(request.request_id, node);
  return node;
}

function createRow(request) {
  const time = secondTime(timeOf(request.ended_at ?? request.at));
  const result = RESULTS[request.result];
  const status = request.status === null || request.status === 0 ? "" : String(request.status);
  const code = request.code === null || request.status === 0 ? "" : ` ${request.code}`;
  const account = request.account === null ? "nobody was asked" : labelOf(request.account);
  const button = el("button", {
    type: "button",
    class: "row-button",
    "aria-haspopup": "dialog",
    "aria-label": `${time}, ${result}: tell the whole decision`,
  }, time);
  return el(
    "tr",
    { role: "row", "data-request": request.request_id, "data-result": request.result },
    el("th", { role: "rowheader", scope: "row", class: "c-time" }, button),
    cell(
      "c-result",
      "Outcome",
      el("span", { class: "state", "data-state": request.result }, result),
      el("span", { class: "sub code" }, `${status}${code}`),
    ),
    cell("c-model", "Model", el("bdi", { title: request.model }, request.model ?? "–")),
    cell("c-account", "Account", el("bdi", { title: request.account }, account)),
    cell("c-small num", "Attempts", mark(request.attempts > 1, number(request.attempts))),
    cell("c-small num", "Rounds", mark(request.rounds > 1, number(request.rounds))),
    cell("c-small num", "Waited", mark(request.waited_ms > 0, waited(request.waited_ms))),
    cell("c-small num", "Took", request.took_ms === null ? "–" : duration(request.took_ms)),
  );
}

function mark(isUnusual, text) {
  return el("span", { class: isUnusual ? "unusual" : null }, text);
}

function waited(ms) {
  return ms === 0 ? "–" : duration(ms);
}
