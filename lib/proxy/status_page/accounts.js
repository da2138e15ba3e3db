/** The accounts: state, reason, countdown and quota, those that need somebody first. */
import { arrange, byId, cell, el, setAttribute, setHidden, setText } from "./dom.js";
import {
  accountLabel,
  ago,
  clockTime,
  countdown,
  distance,
  number,
  plural,
  shorten,
  timeOf,
} from "./format.js";

/** More than this are shown when asked for. */
const FIRST_ROWS = 12;
/** More than this are found by searching. */
const MOST_ROWS = 500;
const STATES = ["unavailable", "parked", "cooling", "healthy", "disabled"];
const STATE_WORDS = {
  healthy: "Healthy",
  cooling: "Cooling",
  parked: "Parked",
  unavailable: "Unavailable",
  disabled: "Disabled",
};
const SOURCES = {
  usage_page: "usage page",
  response_headers: "answer headers",
  stream_event: "stream notice",
  websocket_frame: "WebSocket notice",
  snapshot: "stored reading",
};

/** id -> account as the server tells it. */
export const accounts = new Map();
/** id -> its row, made when it is first shown. */
const rows = new Map();
const view = { filter: "all", search: "", all: false };

export function createAccounts(changed) {
  byId("account-filter").addEventListener("change", (event) => {
    view.filter = event.target.value;
    changed();
  });
  byId("account-search").addEventListener("input", (event) => {
    view.search = event.target.value.trim().toLowerCase();
    changed();
  });
  byId("more-accounts").addEventListener("click", () => {
    view.all = !view.all;
    changed();
  });
}

export function mergeAccounts({ full, accounts: changed, removed }) {
  if (full) accounts.clear();
  for (const account of changed) accounts.set(account.id, account);
  for (const id of removed) accounts.delete(id);
  for (const id of rows.keys()) if (!accounts.has(id)) rows.delete(id);
}

export function drawAccounts(nowMs) {
  const sorted = [...accounts.values()].sort(byNeed);
  const wanted = sorted.filter(isWanted);
  const shown = wanted.slice(0, view.all ? MOST_ROWS : FIRST_ROWS);
  arrange(byId("account-rows"), shown.map((account) => rowOf(account, nowMs).node));
  drawEmpty(wanted.length);
  const more = byId("more-accounts");
  setHidden(more, wanted.length <= FIRST_ROWS);
  setText(more, view.all ? `Show the first ${FIRST_ROWS}` : moreWords(wanted.length));
  setHidden(byId("account-search"), accounts.size <= FIRST_ROWS && view.search === "");
  drawOverview(sorted, nowMs);
}

function moreWords(count) {
  if (count <= MOST_ROWS) return `Show all ${plural(count, "account")}`;
  return `Show ${MOST_ROWS} of ${plural(count, "account")}`;
}

/** What changes with time alone. */
export function tickAccounts(nowMs) {
  for (const row of rows.values()) {
    if (row.node.isConnected) tickRow(row, nowMs);
  }
  drawNextBack([...accounts.values()], nowMs);
}

export function labelOf(id) {
  const account = accounts.get(id);
  return account === undefined ? shorten(id) : accountLabel(account);
}

export function servingCount() {
  return [...accounts.values()].filter(({ state }) => state === "healthy").length;
}

function byNeed(a, b) {
  return STATES.indexOf(a.state) - STATES.indexOf(b.state) || (a.id < b.id ? -1 : 1);
}

function isWanted(account) {
  if (view.filter === "serving" && account.state !== "healthy") return false;
  if (view.filter === "blocked" && account.state === "healthy") return false;
  if (view.search === "") return true;
  const text = `${account.id} ${account.email ?? ""} ${account.plan ?? ""} ${account.state}`;
  return text.toLowerCase().includes(view.search);
}

function drawEmpty(count) {
  const empty = byId("no-accounts");
  setHidden(empty, count > 0);
  setText(
    empty,
    accounts.size === 0
      ? "No account yet: put an auth.json into auth-dir, or configure providers."
      : "No account matches.",
  );
}

// ---------------------------------------------------------------- one row

function rowOf(account, nowMs) {
  let row = rows.get(account.id);
  if (row === undefined) {
    row = createRow(account);
    rows.set(account.id, row);
  }
  const changed = row.account !== account;
  if (changed) updateRow(row, account);
  // Rows in sight are kept in time by the second.
  if (changed || !row.node.isConnected) tickRow(row, nowMs);
  return row;
}

function createRow(account) {
  const parts = {
    name: el("bdi", { class: "name" }),
    detail: el("div", { class: "sub id" }),
    state: el("span", { class: "state" }),
    words: el("div", { class: "sub" }),
    notes: el("div", { class: "sub notes" }),
    back: el("time", { class: "countdown" }),
    backAt: el("div", { class: "sub" }),
    quota: el("div", { class: "windows" }),
    load: el("span"),
    last: el("span"),
  };
  const node = el(
    "tr",
    { role: "row" },
    el("th", { role: "rowheader", scope: "row", class: "c-name" }, parts.name, parts.detail),
    cell("c-state", "State", parts.state, parts.words, parts.notes),
    cell("c-back", "Back in", parts.back, parts.backAt),
    cell("c-quota", "Quota used", parts.quota),
    cell("c-load num", "In flight", parts.load),
    cell("c-last num", "Last success", parts.last),
  );
  return { node, parts, account: null, untilMs: null, lastMs: null, timed: [], id: account.id };
}

function updateRow(row, account) {
  const { parts } = row;
  row.account = account;
  row.untilMs = timeOf(account.until);
  row.lastMs = timeOf(account.last_success_at);
  setText(parts.name, accountLabel(account));
  const plan = account.plan === null ? "" : ` · ${account.plan}`;
  setText(
    parts.detail,
    account.email === null ? `${account.provider}${plan}` : `${shorten(account.id)}${plan}`,
  );
  setAttribute(parts.detail, "title", account.id);
  setText(parts.state, STATE_WORDS[account.state]);
  setAttribute(parts.state, "data-state", account.state);
  setText(parts.words, account.words ?? "");
  setText(parts.notes, notesOf(account).join(" "));
  setAttribute(parts.back, "datetime", account.until);
  setText(parts.load, account.in_flight === 0 ? "–" : number(account.in_flight));
  drawWindows(row, account);
}

function notesOf(account) {
  const notes = [];
  if (account.deadline_contradicted) {
    notes.push("A newer reading shows headroom: the deadline may be out of date.");
  }
  if (account.models_excluded.length > 0) {
    notes.push(
      `Without ${account.models_excluded.slice(0, 4).join(", ")}${
        account.models_excluded.length > 4 ? " and others" : ""
      }.`,
    );
  }
  return notes;
}

function drawWindows(row, account) {
  row.timed = [];
  const { windows, observed_at: observedAt, source } = account.quota;
  const nodes = windows.slice(0, 6).map((window) => windowNode(row, window));
  const parkMs = account.state === "parked" ? null : timeOf(account.park_until);
  if (parkMs !== null) {
    const note = el("div", { class: "sub" });
    row.timed.push((nowMs) =>
      setText(note, parkMs > nowMs ? `Parked until ${clockTime(parkMs, nowMs)}, then asked again` : "")
    );
    nodes.push(note);
  }
  if (observedAt !== null) {
    const seen = el("div", { class: "sub" });
    const seenMs = timeOf(observedAt);
    row.timed.push((nowMs) => setText(seen, `${SOURCES[source] ?? "reading"}, ${ago(nowMs - seenMs)}`));
    nodes.push(seen);
  }
  row.parts.quota.replaceChildren(
    ...(nodes.length > 0 ? nodes : [el("span", { class: "sub" }, "no reading")]),
  );
}

function windowNode(row, window) {
  const used = window.used_percent;
  const name = window.model_family === null ? window.name : `${window.name} ${window.model_family}`;
  const resetMs = timeOf(window.reset_at);
  const reset = el("span", { class: "sub reset" });
  if (resetMs !== null) {
    row.timed.push((nowMs) =>
      setText(
        reset,
        resetMs > nowMs
          ? `resets ${clockTime(resetMs, nowMs)}, in ${distance(resetMs - nowMs)}`
          : "reset is due",
      )
    );
  }
  const filled = el("span");
  filled.style.width = `${Math.min(100, Math.max(0, used ?? 0))}%`;
  const meter = el("span", {
    class: "meter",
    role: "meter",
    "aria-label": `${name} window used`,
    "aria-valuemin": "0",
    "aria-valuemax": "100",
    "aria-valuenow": String(Math.min(100, Math.max(0, Math.round(used ?? 0)))),
    "aria-valuetext": used === null ? "not reported" : `${Math.round(used)} percent`,
    "data-level": used === null ? "none" : used >= 98 ? "full" : used >= 80 ? "high" : "fine",
  }, filled);
  const percent = el("span", { class: "percent" }, used === null ? "–" : `${Math.round(used)} %`);
  return el("div", { class: "window" }, el("span", { class: "window-name" }, name), meter, percent, reset);
}

function tickRow(row, nowMs) {
  const { parts, untilMs, lastMs } = row;
  const runs = untilMs !== null && untilMs > nowMs;
  setAttribute(parts.back, "class", runs ? "countdown" : "sub");
  setText(parts.back, runs ? countdown(untilMs - nowMs) : untilMs === null ? "–" : "now");
  setText(parts.backAt, runs ? `at ${clockTime(untilMs, nowMs)}` : "");
  setText(parts.last, lastMs === null ? "–" : ago(nowMs - lastMs));
  for (const tick of row.timed) tick(nowMs);
}

// ---------------------------------------------------------------- the overview

const shares = new Map();

function drawOverview(sorted, nowMs) {
  const counts = STATES.map((state) => [state, sorted.filter((account) => account.state === state).length]);
  const serving = servingCount();
  setText(byId("serving"), number(serving));
  setText(byId("of-accounts"), `of ${plural(sorted.length, "account")} can serve`);
  for (const [state, count] of counts) {
    let part = shares.get(state);
    if (part === undefined) {
      part = el("span", { "data-state": state });
      shares.set(state, part);
    }
    part.style.flexGrow = String(count);
  }
  arrange(byId("share"), [...shares.values()].reverse());
  const open = sorted.reduce((sum, account) => sum + account.in_flight, 0);
  const words = counts.filter(([state, count]) => count > 0 && state !== "healthy")
    .map(([state, count]) => `${number(count)} ${state}`);
  if (open > 0) words.push(`${plural(open, "request")} in flight`);
  setText(byId("states"), words.join(" · "));
  drawNextBack(sorted, nowMs);
}

function drawNextBack(all, nowMs) {
  let next = null;
  for (const account of all) {
    const untilMs = account.state === "healthy" || account.state === "disabled"
      ? null
      : timeOf(account.until);
    if (untilMs !== null && untilMs > nowMs && (next === null || untilMs < next.untilMs)) {
      next = { untilMs, account };
    }
  }
  setText(
    byId("next-back"),
    next === null ? "" : `${accountLabel(next.account)} is back in ${countdown(next.untilMs - nowMs)}`,
  );
}
