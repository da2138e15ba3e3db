/**
 * One launch over HTTP: prepare, send, read the answer until it may be committed, or say what went wrong.
 *
 * Decides nothing: evidence goes to `classify`, the pool decides what follows.
 */
import { classify } from "../core/classify.ts";
import type { AccountId, ClientProtocol } from "../core/domain.ts";
import type { ErrorFacts, Evidence } from "../core/evidence.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Launch, RequestSpec } from "../core/retry_plan.ts";
import type { UpstreamResponse } from "../ports.ts";
import { readErrorFacts, readErrorValue } from "../protocol/error_body.ts";
import { filterResponseHeaders } from "../protocol/headers.ts";
import type { RouteBase } from "../protocol/route.ts";
import { dialectOf } from "../protocol/dialects.ts";
import { renderStreamFailure, translateBareError } from "../protocol/answer.ts";
import { AGGREGATE_LIMIT_BYTES, ResponsesAggregator } from "../protocol/responses_aggregate.ts";
import type { TokenUsage } from "../protocol/stream_dialect.ts";
import type { OutgoingRequest } from "../providers/provider.ts";
import { AnswerStream } from "./answer_stream.ts";
import type { ProviderEntry, ProxyDeps } from "./deps.ts";
import type { RequestContext } from "./request_context.ts";
import type { RequestPlan } from "./pool_runtime.ts";
import type { RecoverySlot } from "./recovery_slots.ts";
import { holdStream, type RelayEnd, relayStream } from "./stream_relay.ts";
import { prepareBody } from "./upstream_body.ts";
import { readWholeAnswer } from "./whole_answer.ts";

/** What of an upstream answer may still be passed to the client, should the pool decide so. */
export type RelayAnswer =
  | {
    readonly kind: "http";
    readonly status: number;
    readonly headers: Headers;
    readonly bytes: Uint8Array<ArrayBuffer>;
    readonly facts: ErrorFacts;
  }
  | { readonly kind: "passed"; readonly response: Response }
  /** A failure inside a held stream: what was held, and the failing frame, both in the client's protocol. */
  | {
    readonly kind: "held";
    readonly headers: Headers;
    readonly held: Uint8Array<ArrayBuffer>[];
    readonly failureFrame: Uint8Array<ArrayBuffer> | null;
    readonly facts: ErrorFacts;
  };

export type AttemptResult =
  | { readonly kind: "committed"; readonly response: Response }
  | {
    readonly kind: "failed";
    readonly outcome: Outcome;
    readonly fingerprint: string | null;
    readonly relay: RelayAnswer | null;
  };

/** The rest of the request's life after commit: the runner hands it in, the attempt calls it once. */
export interface AttemptHooks {
  /** Nothing may be launched any more. */
  commit(launch: Launch): void;
  /** The committed answer is over. */
  finished(launch: Launch, outcome: Outcome, status: number, usage: TokenUsage | null): void;
  /** The committed body broke without a frame to say so in. */
  bodyBroke(launch: Launch, evidence: Evidence, status: number): void;
}

export interface AttemptInput {
  readonly context: RequestContext;
  readonly spec: RequestSpec;
  readonly plan: RequestPlan;
  readonly launch: Launch;
  readonly slot: RecoverySlot | null;
  readonly turnStateAccount: AccountId | null;
  readonly hooks: AttemptHooks;
}

export async function runAttempt(deps: ProxyDeps, input: AttemptInput): Promise<AttemptResult> {
  const { context, launch, plan } = input;
  const nowMs = deps.clock.now();
  const entry = deps.provider(launch.provider);
  if (entry === null) {
    throw new Error(`Cannot launch on a provider that is not configured: ${launch.provider}`);
  }
  const fail = (
    evidence: Evidence,
    fingerprint: string | null,
    relay: RelayAnswer | null = null,
  ): AttemptResult => ({
    kind: "failed",
    outcome: judge(deps, entry, launch, evidence, context.match.route.base),
    fingerprint,
    relay,
  });

  const ready = deps.credentials.ready(launch.account, nowMs);
  const usable = ready !== null
    ? { ok: true as const, ...ready }
    : await deps.credentials.prepare(launch.account, context.abort.signal);
  if (!usable.ok) return fail(usable.evidence, null);
  if (context.abort.signal.aborted) return fail({ kind: "client_cancelled" }, usable.fingerprint);

  const upstreamProtocol = entry.descriptor.upstreamProtocol(context.protocol, entry.settings);
  const outgoing = describeOutgoing(input, entry, upstreamProtocol);
  const prepared = prepareBody(context, launch, entry, outgoing);
  if (!prepared.ok) return fail({ kind: "malformed", detail: prepared.problem }, usable.fingerprint);
  const { timeouts } = deps.config();
  const result = await deps.upstream.send({
    method: context.method,
    url: entry.descriptor.url(outgoing, entry.settings, usable.credential),
    headers: entry.descriptor.headers(outgoing, entry.settings, usable.credential),
    body: prepared.body,
    bodyLength: prepared.length,
    fresh: launch.fresh,
    connectTimeoutMs: timeouts.connectMs,
    firstByteTimeoutMs: launch.leaseUntilMs === null
      ? timeouts.firstByteMs
      : Math.max(1, launch.leaseUntilMs - nowMs),
    attempt: launch.attempt,
  }, context.abort.signal);
  if (!result.ok) return fail(result.evidence, usable.fingerprint);

  const { response } = result;
  deps.pool.progress(plan, launch, "head", deps.clock.now());
  noteHeaders(deps, input, entry, response);
  if (response.status >= 300) return await readRefusal(deps, response, fail, usable.fingerprint);

  const contentType = response.headers.get("content-type") ?? "";
  const isStream = contentType.startsWith("text/event-stream") || (contentType === "" && outgoing.streaming);
  if (context.protocol === "raw" && context.match.route.replay === "once") {
    return passThrough(input, response);
  }
  if (!isStream || context.protocol === "raw") {
    return await readWholeAnswer(
      deps,
      input,
      entry,
      upstreamProtocol,
      response,
      (evidence, relay) => fail(evidence, usable.fingerprint, relay),
    );
  }
  return await readStreamAnswer(
    deps,
    input,
    entry,
    upstreamProtocol,
    response,
    (evidence, relay) => fail(evidence, usable.fingerprint, relay),
  );
}

export type Fail = (evidence: Evidence, relay?: RelayAnswer | null) => AttemptResult;

export function judge(
  deps: ProxyDeps,
  entry: ProviderEntry,
  launch: Launch,
  evidence: Evidence,
  base: RouteBase,
): Outcome {
  const nowMs = deps.clock.now();
  const signal = entry.descriptor.readSignal(evidence, { nowMs, model: launch.model, base });
  return classify(evidence, signal, { nowMs });
}

function describeOutgoing(
  input: AttemptInput,
  entry: ProviderEntry,
  upstreamProtocol: ClientProtocol,
): OutgoingRequest {
  const { context, launch } = input;
  return {
    route: context.match.route,
    upstreamPath: context.match.upstreamPath,
    search: context.search,
    method: context.method,
    clientHeaders: context.headers,
    protocol: upstreamProtocol,
    streaming: context.wantsStream || entry.descriptor.alwaysStreams(context.match.route),
    // Turn state belongs to the account that issued it (ruling 8).
    keepTurnState: input.turnStateAccount === launch.account,
    websocket: false,
  };
}

function noteHeaders(
  deps: ProxyDeps,
  input: AttemptInput,
  entry: ProviderEntry,
  response: UpstreamResponse,
): void {
  const quota = entry.descriptor.readQuotaHeaders(response.headers, deps.clock.now());
  // Figures on a refusal speak of the deadline that came with it; only a 2xx makes a park (ruling 1).
  if (quota === null || response.status >= 300) return;
  const nowMs = deps.clock.now();
  deps.pool.observeQuota(
    input.launch.account,
    { ...quota, observedAtMs: nowMs, source: "response_headers" },
    nowMs,
  );
}

async function readRefusal(
  deps: ProxyDeps,
  response: UpstreamResponse,
  fail: (evidence: Evidence, fingerprint: string | null, relay: RelayAnswer | null) => AttemptResult,
  fingerprint: string,
): Promise<AttemptResult> {
  const bytes = await deps.upstream.readErrorBody(response);
  const facts = readErrorFacts(bytes, response.headers.get("content-type"));
  const headers = filterResponseHeaders(response.headers, false);
  return fail(
    { kind: "http", status: response.status, headers: response.headers, error: facts },
    fingerprint,
    {
      kind: "http",
      status: response.status,
      headers,
      bytes,
      facts,
    },
  );
}

/** Once-only raw routes: the upstream's answer as it is, natively, without a hop. */
function passThrough(input: AttemptInput, response: UpstreamResponse): AttemptResult {
  const headers = filterResponseHeaders(response.headers, false);
  headers.set("x-request-id", input.context.id);
  if (response.contentLength !== null) headers.set("content-length", String(response.contentLength));
  input.hooks.commit(input.launch);
  input.hooks.finished(input.launch, SUCCESS, response.status, null);
  return { kind: "committed", response: new Response(response.body, { status: response.status, headers }) };
}

export const SUCCESS: Outcome = classify({ kind: "success" }, null, { nowMs: 0 });

async function readStreamAnswer(
  deps: ProxyDeps,
  input: AttemptInput,
  entry: ProviderEntry,
  upstreamProtocol: ClientProtocol,
  response: UpstreamResponse,
  fail: Fail,
): Promise<AttemptResult> {
  const { context, launch, plan, slot } = input;
  if (response.body === null) return fail({ kind: "malformed", detail: "no_body" });
  const config = deps.config();
  const dialect = dialectOf(upstreamProtocol);
  const stream: AnswerStream = new AnswerStream({
    body: response.body,
    headers: response.headers,
    dialect,
    translation: null,
    observer: {
      quota: (reading) => {
        const nowMs = deps.clock.now();
        deps.pool.observeQuota(
          launch.account,
          { ...reading, observedAtMs: nowMs, source: "stream_event" },
          nowMs,
        );
      },
    },
    bodyFailure: (error) => deps.upstream.bodyFailure(error),
    rewriteFailure: context.protocol !== "responses" ? null : (frame) =>
      translateBareError(frame, {
        requestId: context.id,
        ...(stream.responseId === null ? {} : { responseId: stream.responseId }),
      }),
  });
  if (!context.wantsStream) return await aggregate(deps, input, stream, response, fail);

  const { bootstrap } = config.streaming;
  const withheld = slot !== null && launch.probe === "none";
  const hold = await holdStream(
    stream,
    withheld
      ? {
        until: "success",
        maxEvents: Infinity,
        maxBytes: config.streaming.recovery.maxBufferBytes,
        untilMs: Infinity,
        idleMs: config.timeouts.idleMs,
      }
      : {
        until: "output",
        maxEvents: bootstrap.maxEvents,
        maxBytes: bootstrap.maxBytes,
        untilMs: deps.clock.now() + bootstrap.maxHoldMs,
        idleMs: config.timeouts.idleMs,
      },
    deps.clock,
  );
  const headers = streamHeaders(response, context.id);
  if (hold.kind === "failed") {
    stream.cancel();
    const facts = hold.evidence.kind === "in_stream" ? hold.evidence.error : readErrorValue(null);
    return fail(hold.evidence, {
      kind: "held",
      headers,
      held: hold.held,
      failureFrame: stream.failureFrame,
      facts,
    });
  }
  if (withheld && hold.why === "overflow") deps.recoverySlots.failedOpen.overflow++;
  if (stream.sawOutput || stream.terminal !== null) {
    deps.pool.progress(plan, launch, "semantic", deps.clock.now());
  }
  input.hooks.commit(launch);
  let semantic = stream.sawOutput;
  const body = relayStream(stream, hold.held, {
    clock: deps.clock,
    idleMs: config.timeouts.idleMs,
    keepaliveMs: config.streaming.keepaliveMs,
    failureFrame: (evidence) =>
      renderStreamFailure(context.protocol, {
        code: evidence.kind === "incomplete" ? "stream_incomplete" : "upstream_unavailable",
        message: evidence.kind === "incomplete"
          ? "The upstream ended the stream before it was complete"
          : "The upstream connection failed",
        requestId: context.id,
        ...(stream.responseId === null ? {} : { responseId: stream.responseId }),
      }),
    onHeldDelivered: () => slot?.release(),
    onEnd: (end) => {
      if (!semantic && stream.sawOutput) {
        semantic = true;
        deps.pool.progress(plan, launch, "semantic", deps.clock.now());
      }
      input.hooks.finished(
        launch,
        outcomeOf(deps, entry, launch, end, context.match.route.base),
        200,
        stream.usage,
      );
    },
  });
  return { kind: "committed", response: new Response(body, { status: 200, headers }) };
}

function outcomeOf(
  deps: ProxyDeps,
  entry: ProviderEntry,
  launch: Launch,
  end: RelayEnd,
  base: RouteBase,
): Outcome {
  switch (end.kind) {
    case "success":
      return SUCCESS;
    case "cancelled":
      return judge(deps, entry, launch, { kind: "client_cancelled" }, base);
    case "failed":
      return judge(deps, entry, launch, end.evidence, base);
  }
}

function streamHeaders(response: UpstreamResponse, requestId: string): Headers {
  const headers = filterResponseHeaders(response.headers, false);
  headers.set("content-type", "text/event-stream; charset=utf-8");
  headers.set("cache-control", "no-cache");
  headers.set("x-request-id", requestId);
  return headers;
}

/** Whole answer for a JSON client out of a stream (ruling 11); nothing is committed before its terminal. */
async function aggregate(
  deps: ProxyDeps,
  input: AttemptInput,
  stream: AnswerStream,
  response: UpstreamResponse,
  fail: Fail,
): Promise<AttemptResult> {
  const { context, launch, plan } = input;
  const aggregator = new ResponsesAggregator(response.headers);
  stream.onFrame = (frame, facts) => aggregator.add(frame, facts);
  const hold = await holdStream(stream, {
    until: "success",
    maxEvents: Infinity,
    maxBytes: AGGREGATE_LIMIT_BYTES,
    untilMs: Infinity,
    idleMs: deps.config().timeouts.idleMs,
  }, deps.clock);
  const facts = hold.kind === "failed" && hold.evidence.kind === "in_stream"
    ? hold.evidence.error
    : readErrorValue(null);
  const relay: RelayAnswer = { kind: "held", headers: new Headers(), held: [], failureFrame: null, facts };
  if (hold.kind === "failed") {
    stream.cancel();
    return fail(hold.evidence, relay);
  }
  const whole = hold.why === "success"
    ? aggregator.result()
    : { ok: false as const, evidence: { kind: "malformed", detail: "too_large" } as Evidence };
  if (!whole.ok) {
    stream.cancel();
    return fail(whole.evidence, relay);
  }
  stream.drain();
  deps.pool.progress(plan, launch, "semantic", deps.clock.now());
  const headers = filterResponseHeaders(response.headers, false);
  headers.set("content-type", "application/json");
  headers.delete("cache-control");
  headers.set("x-request-id", context.id);
  input.hooks.commit(launch);
  input.hooks.finished(launch, SUCCESS, 200, stream.usage);
  return { kind: "committed", response: new Response(JSON.stringify(whole.json), { status: 200, headers }) };
}
