/** Keeps the page in step with the proxy: one stream of events in, one redraw a frame out. */
import {
  accounts,
  createAccounts,
  drawAccounts,
  mergeAccounts,
  servingCount,
  tickAccounts,
} from "./accounts.js";
import { createCharts, drawCharts, mergeMinutes } from "./charts.js";
import { byId, nextFrame, setAttribute, setText, soon } from "./dom.js";
import { createDrawer, openDrawer } from "./drawer.js";
import { plural, timeOf } from "./format.js";
import { drawProviders, mergeProviders, tickProviders } from "./providers.js";
import { addRequest, createRequests, drawerClosed, replaceRequests } from "./requests.js";

const RETRY_MS = 5_000;
/** A page nobody looks at lets go of its stream after this time. */
const HIDDEN_MS = 60_000;
/** Spoken at most this often. */
const ANNOUNCE_MS = 8_000;

let source = null;
let hiddenTimer = null;
/** What the proxy's clock is ahead of ours: countdowns are right on machines whose clock is not. */
let aheadMs = 0;
let announced = { serving: null, atMs: 0 };

function now() {
  return Date.now() + aheadMs;
}

function setClock(at) {
  aheadMs = timeOf(at) - Date.now();
}

function connect() {
  source?.close();
  source = new EventSource("/status/events");
  source.addEventListener("open", () => showLink("live", "Live"));
  source.addEventListener("error", () => void lost());
  source.addEventListener("state", (event) => {
    const state = JSON.parse(event.data);
    setClock(state.at);
    mergeAccounts(state);
    mergeProviders(state);
    // Whoever has nothing yet does not wait.
    if (state.full) nextFrame(drawState);
    else soon(drawState);
  });
  source.addEventListener("clock", (event) => setClock(JSON.parse(event.data).at));
  source.addEventListener("minutes", (event) => {
    mergeMinutes(JSON.parse(event.data).minutes);
    soon(drawHour);
  });
  source.addEventListener("requests", (event) => replaceRequests(JSON.parse(event.data).requests));
  source.addEventListener("request", (event) => addRequest(JSON.parse(event.data)));
}

/** The browser connects again by itself, unless it was answered with a refusal. */
async function lost() {
  showLink("lost", "Connection lost, trying again");
  if (source.readyState !== EventSource.CLOSED) return;
  try {
    // Any request answers the question; one that does not exist costs least.
    const { status } = await fetch("/status/requests/none");
    if (status === 401 || status === 403) return location.reload();
  } catch {
    // Not there yet.
  }
  setTimeout(() => {
    if (source !== null && source.readyState === EventSource.CLOSED) connect();
  }, RETRY_MS);
}

function showLink(state, text) {
  const link = byId("link");
  if (link.dataset.link === state) return;
  const wasLost = link.dataset.link === "lost";
  setAttribute(link, "data-link", state);
  setText(link, text);
  if (state === "lost" || wasLost) setText(byId("announce"), text);
}

function drawState() {
  const nowMs = now();
  drawAccounts(nowMs);
  drawProviders(nowMs);
  announce();
}

function drawHour() {
  drawCharts(now());
}

/** Says how many accounts can serve when that changes; everything else is there to be read. */
function announce() {
  const serving = servingCount();
  const first = announced.serving === null;
  if (serving === announced.serving || performance.now() - announced.atMs < ANNOUNCE_MS) return;
  announced = { serving, atMs: first ? 0 : performance.now() };
  if (!first) setText(byId("announce"), `${serving} of ${plural(accounts.size, "account")} can serve`);
}

function tick() {
  const nowMs = now();
  tickAccounts(nowMs);
  tickProviders(nowMs);
  drawCharts(nowMs);
  announce();
  // In step with the seconds of the proxy's clock, so that every countdown changes at once.
  setTimeout(() => nextFrame(tick), 1_000 - (now() % 1_000));
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (document.hidden) {
    hiddenTimer = setTimeout(() => {
      source.close();
      source = null;
      showLink("waiting", "Resting");
    }, HIDDEN_MS);
  } else if (source === null) connect();
});

createCharts();
createAccounts(() => nextFrame(drawState));
createDrawer(now, drawerClosed);
createRequests((id) => void openDrawer(id));
connect();
nextFrame(tick);
