/** The providers: circuit, rest, probe; and the network's pause above everything. */
import { accounts } from "./accounts.js";
import { arrange, byId, cell, el, setAttribute, setHidden, setText } from "./dom.js";
import { clockTime, countdown, plural, timeOf } from "./format.js";

const state = { providers: [], pause: null };
const rows = new Map();

export function mergeProviders({ providers, network_pause: pause }) {
  state.providers = providers;
  state.pause = pause;
}

export function drawProviders(nowMs) {
  const ids = new Set(state.providers.map(({ id }) => id));
  for (const id of rows.keys()) if (!ids.has(id)) rows.delete(id);
  arrange(byId("provider-rows"), state.providers.map((provider) => rowOf(provider, nowMs)));
  tickPause(nowMs);
}

/** What changes with time alone. */
export function tickProviders(nowMs) {
  for (const provider of state.providers) rowOf(provider, nowMs);
  tickPause(nowMs);
}

function tickPause(nowMs) {
  const { pause } = state;
  const banner = byId("pause");
  setHidden(banner, pause === null);
  if (pause === null) return;
  setText(
    banner,
    `The network is paused ${endOf(pause, nowMs)}: ${pause.providers.join(" and ")} could not be reached.`,
  );
}

function endOf({ until, probe }, nowMs) {
  const untilMs = timeOf(until);
  if (untilMs !== null && untilMs > nowMs) return `for ${countdown(untilMs - nowMs)}`;
  if (probe.state !== "leased") return "until the next request has tested it";
  const leaseMs = timeOf(probe.lease_until);
  return leaseMs !== null && leaseMs > nowMs
    ? `while one request tests it, for ${countdown(leaseMs - nowMs)} at most`
    : "while one request tests it";
}

function rowOf(provider, nowMs) {
  let row = rows.get(provider.id);
  if (row === undefined) {
    row = createRow(provider);
    rows.set(provider.id, row);
  }
  const { parts } = row;
  const own = [...accounts.values()].filter((account) => account.provider === provider.id);
  const circuit = circuitOf(provider, own.length, nowMs);
  const serving = own.filter((account) => account.state === "healthy").length;
  setText(parts.detail, `${provider.kind} · ${serving} of ${plural(own.length, "account")} can serve`);
  setText(parts.circuit, circuit.word);
  setAttribute(parts.circuit, "data-state", circuit.tone);
  setText(parts.words, circuit.words);
  const restMs = timeOf(provider.cooldown?.until ?? null);
  const rests = restMs !== null && restMs > nowMs;
  setAttribute(parts.rest, "class", rests ? "countdown" : "sub");
  setText(parts.rest, rests ? countdown(restMs - nowMs) : "–");
  setText(parts.restAt, rests ? `until ${clockTime(restMs, nowMs)}` : "");
  const leaseMs = timeOf(provider.probe.lease_until);
  setText(parts.probe, provider.probe.state === "leased" ? "One request is testing" : "Idle");
  setText(
    parts.probeAt,
    leaseMs !== null && leaseMs > nowMs ? `for ${countdown(leaseMs - nowMs)} at most` : "",
  );
  const nextMs = timeOf(provider.next_retry_at);
  setText(parts.next, nextOf(provider, own.length, nextMs, nowMs));
  return row.node;
}

function createRow(provider) {
  const parts = {
    detail: el("div", { class: "sub" }),
    circuit: el("span", { class: "state" }),
    words: el("div", { class: "sub" }),
    rest: el("span", { class: "countdown" }),
    restAt: el("div", { class: "sub" }),
    probe: el("span"),
    probeAt: el("div", { class: "sub" }),
    next: el("span"),
  };
  const node = el(
    "tr",
    { role: "row" },
    el(
      "th",
      { role: "rowheader", scope: "row", class: "c-name" },
      el("bdi", { class: "name" }, provider.id),
      parts.detail,
    ),
    cell("c-circuit", "Circuit", parts.circuit, parts.words),
    cell("c-back", "Rests for", parts.rest, parts.restAt),
    cell("c-probe", "Probe", parts.probe, parts.probeAt),
    cell("c-next", "Next try", parts.next),
  );
  return { node, parts };
}

/** Closed: traffic flows. Open: nothing is sent. Half-open: exactly one request may test it. */
function circuitOf({ circuit, cooldown }, count, nowMs) {
  if (circuit?.state === "open") return { word: "Open", tone: "unavailable", words: `${circuit.words}.` };
  if (cooldown !== null && (timeOf(cooldown.until) ?? 0) > nowMs) {
    return { word: "Open", tone: "parked", words: `It rests: ${cooldown.words}.` };
  }
  // A rest that ran out while nothing new was told.
  const halfOpen = circuit?.words ?? (cooldown === null ? null : "The next request tests it");
  if (halfOpen !== null) return { word: "Half-open", tone: "cooling", words: `${halfOpen}.` };
  if (count === 0) return { word: "–", tone: "disabled", words: "It has no account." };
  return { word: "Closed", tone: "healthy", words: "Requests flow." };
}

function nextOf(provider, count, nextMs, nowMs) {
  if (count === 0) return "–";
  if (provider.circuit?.state === "open") return "When somebody acts";
  return nextMs === null || nextMs <= nowMs ? "Now" : clockTime(nextMs, nowMs);
}
