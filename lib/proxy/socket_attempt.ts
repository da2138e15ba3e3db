/**
 * One launch over a WebSocket: dial the upstream, and only when it is open answer the client's handshake.
 *
 * A refused handshake is an answer like any other: judged, repaired, passed over, relayed. From the upgrade on the
 * socket lives by itself; its turns are booked as they end, and nothing is sent again.
 */
import { classify } from "../core/classify.ts";
import type { Outcome } from "../core/outcome.ts";
import type { DialResult } from "../ports.ts";
import { readErrorFacts } from "../protocol/error_body.ts";
import { markHop } from "../protocol/hops.ts";
import { filterResponseHeaders, websocketUpgradeHeaders } from "../protocol/headers.ts";
import {
  type AttemptInput,
  type AttemptResult,
  describeOutgoing,
  judge,
  noteTurnState,
  type PreparedLaunch,
  prepareLaunch,
  SUCCESS,
} from "./attempt_runner.ts";
import { Answer } from "./answer.ts";
import type { Upgrade } from "./client_request.ts";
import type { UpgradeOffer } from "./client_socket.ts";
import type { ProxyDeps } from "./deps.ts";
import { hideInText } from "./echoed_secrets.ts";
import { type EndedTurn, SocketFrames } from "./socket_frames.ts";
import { type BridgeEnd, CLIENT_SILENCE_MS, WebSocketBridge } from "./websocket_bridge.ts";

/** What the client was told when its socket was opened. */
export const UPGRADED_STATUS = 101;
/** The official client waits 15 s for its socket: an upstream that is slower serves nobody. */
const HANDSHAKE_LIMIT_MS = 15_000;
/** Above the 16 MiB that Codex states for itself. */
const MAX_MESSAGE_BYTES = 33_554_432;

export interface SocketAttempt {
  readonly upgrade: Upgrade;
  readonly offer: UpgradeOffer;
  /** Codex's name of a model, or `null` when another provider serves it. */
  readonly upstreamModel: (model: string) => string | null;
}

/** Runs one launch of an upgrade; what it commits is the 101. */
export async function runSocketAttempt(
  deps: ProxyDeps,
  input: AttemptInput,
  socket: SocketAttempt,
): Promise<AttemptResult> {
  const { context, launch } = input;
  const prepared = await prepareLaunch(deps, input);
  if (!prepared.ok) return prepared.result;
  const { entry, credential, fail } = prepared;
  const outgoing = { ...describeOutgoing(input, entry, context.protocol), streaming: false, websocket: true };
  const { timeouts } = deps.config();
  const nowMs = deps.clock.now();
  const handshakeLimitMs = timeouts.firstByteMs > 0
    ? Math.min(timeouts.firstByteMs, HANDSHAKE_LIMIT_MS)
    : HANDSHAKE_LIMIT_MS;
  const url = entry.descriptor.url(outgoing, entry.settings, credential);
  const headers = entry.descriptor.headers(outgoing, entry.settings, credential);
  markHop(url.replace(/^ws/, "http"), headers, context.headers, deps.instanceId);
  const dialled = await deps.dialer.dial({
    url,
    headers,
    protocols: socket.offer.protocols,
    connectTimeoutMs: timeouts.connectMs,
    handshakeTimeoutMs: launch.leaseUntilMs === null
      ? handshakeLimitMs
      : Math.max(1, Math.min(handshakeLimitMs, launch.leaseUntilMs - nowMs)),
    maxPayloadBytes: MAX_MESSAGE_BYTES,
    attempt: launch.attempt,
  }, context.abort.signal);
  if (!dialled.ok) return refused(deps, input, dialled, fail);
  return bridge(deps, input, socket, dialled.socket, prepared);
}

function refused(
  deps: ProxyDeps,
  input: AttemptInput,
  dialled: Exclude<DialResult, { ok: true }>,
  fail: PreparedLaunch["fail"],
): AttemptResult {
  if (dialled.status === null) return fail(dialled.evidence);
  const { status, headers } = dialled;
  deps.pool.progress(input.plan, input.launch, "head", deps.clock.now());
  // A good answer that is no upgrade comes from somebody else, e.g. a captive portal (B149).
  if (status < 300) return fail({ kind: "malformed", detail: "not_a_websocket" });
  const bytes = new Uint8Array(dialled.body);
  const facts = readErrorFacts(bytes, headers.get("content-type"));
  return fail({ kind: "http", status, headers, error: facts }, {
    kind: "http",
    status,
    headers: filterResponseHeaders(headers, false),
    bytes,
    facts,
  });
}

function bridge(
  deps: ProxyDeps,
  input: AttemptInput,
  socket: SocketAttempt,
  upstream: Extract<DialResult, { ok: true }>["socket"],
  { credential, fail }: PreparedLaunch,
): AttemptResult {
  const { context, launch, plan, hooks } = input;
  const { clock, pool } = deps;
  const openedAtMs = clock.now();
  pool.progress(plan, launch, "head", openedAtMs);
  noteTurnState(deps, input, upstream.headers);
  const headers = websocketUpgradeHeaders(upstream.headers);
  headers.set("x-request-id", context.id);
  const client = context.abort.signal.aborted
    ? null
    : socket.upgrade.accept(headers, upstream.protocol, CLIENT_SILENCE_MS);
  if (client === null) {
    upstream.terminate();
    return fail({ kind: "client_cancelled" });
  }
  // The 101 is the whole answer to the handshake: the provider is open again, whatever its turns will say.
  pool.progress(plan, launch, "semantic", openedAtMs);
  hooks.commit(launch);
  deps.log.write("info", "socket_open", { request_id: context.id, account: launch.account });

  let failure: Outcome | null = null;
  const lease = launch.leaseUntilMs === null
    ? null
    : clock.schedule(launch.leaseUntilMs, () =>
      book({ outcome: UNTESTED, startedAtMs: openedAtMs, model: null }));
  const book = (turn: Parameters<typeof pool.turnEnded>[2]): void => {
    lease?.cancel();
    guard(deps, () => pool.turnEnded(plan, launch, turn, clock.now()));
  };
  const frames = new SocketFrames({
    dialect: context.match.route.name === "realtime_ws" ? "realtime" : "responses",
    openedAtMs,
    now: () => clock.now(),
    upstreamModel: socket.upstreamModel,
    moved: context.spec.bound !== null && context.spec.bound !== launch.account,
    onQuota: (quota) => {
      const observedAtMs = clock.now();
      guard(
        deps,
        () =>
          pool.observeQuota(launch.account, { ...quota, observedAtMs, source: "stream_event" }, observedAtMs),
      );
    },
    onTurn: (turn) => {
      const outcome = judgeTurn(deps, input, turn);
      failure = outcome === null || outcome.kind === "success" ? null : outcome;
      countTurn(deps, input, turn, failure !== null);
      if (outcome !== null) book({ outcome, startedAtMs: turn.startedAtMs, model: turn.model });
    },
  });
  const joined = new WebSocketBridge({
    clock,
    client,
    upstream,
    frames,
    traffic: deps.traffic,
    hide: (text) => hideInText(text, credential),
    signal: context.abort.signal,
    onEnd: (end) => {
      lease?.cancel();
      deps.log.write("info", "socket_closed", { request_id: context.id, by: end.by, ...endWords(end) });
      hooks.closed(launch, endOutcome(end, frames.isBusy, failure), UPGRADED_STATUS);
    },
    onClosed: () => leave(),
  });
  const leave = deps.sockets.add(joined);
  return { kind: "committed", response: new Answer(null, { status: UPGRADED_STATUS }) };
}

function judgeTurn(deps: ProxyDeps, input: AttemptInput, turn: EndedTurn): Outcome | null {
  if (turn.evidence === null) return null;
  if (turn.evidence.kind === "success") return SUCCESS;
  const { launch, context } = input;
  const entry = deps.provider(launch.provider);
  // The provider was taken out of the configuration while its socket was open: nobody is left to judge.
  if (entry === null) return null;
  return judge(deps, entry, { ...launch, model: turn.model }, turn.evidence, context.match.route.base);
}

function countTurn(
  deps: ProxyDeps,
  { context, launch }: AttemptInput,
  turn: EndedTurn,
  failed: boolean,
): void {
  const { tenant } = context;
  deps.usage.add(
    {
      tenant: tenant.id,
      keyHint: tenant.keyHint,
      provider: launch.provider,
      model: turn.model ?? "",
      effort: turn.effort ?? "",
    },
    turn.usage,
    failed,
    deps.clock.now(),
  );
}

/** For the record alone: how a socket ends is nobody's fault (row 48). */
function endOutcome(end: BridgeEnd, isBusy: boolean, failure: Outcome | null): Outcome {
  if (!isBusy) return failure ?? SUCCESS;
  if (end.by === "client") return { ...UNTESTED, row: 48 };
  const code = end.by === "upstream" ? "socket_closed" : end.why;
  return { ...classify({ kind: "incomplete" }, null, { nowMs: 0 }), row: 48, status: null, code };
}

const UNTESTED: Outcome = classify({ kind: "client_cancelled" }, null, { nowMs: 0 });

function endWords(end: BridgeEnd): Record<string, string | boolean> {
  switch (end.by) {
    case "client":
      return {};
    case "upstream":
      return { clean: end.clean };
    case "proxy":
      return { why: end.why };
  }
}

/** Frames come outside of any request's promise: a store that is gone ends the process from here too (ruling 9). */
function guard(deps: ProxyDeps, action: () => void): void {
  try {
    action();
  } catch (error) {
    deps.fatal(error);
  }
}
