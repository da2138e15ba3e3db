/**
 * An upstream's event stream as the answer to a client: held, committed and relayed, or gathered into one document.
 */
import type { ErrorFacts, Evidence } from "../core/evidence.ts";
import { HeaderFields } from "../core/header_fields.ts";
import type { Outcome } from "../core/outcome.ts";
import type { UpstreamResponse } from "../ports.ts";
import { renderStreamFailure, translateBareError } from "../protocol/answer.ts";
import { dialectOf } from "../protocol/dialects.ts";
import { readErrorValue } from "../protocol/error_body.ts";
import { AGGREGATE_LIMIT_BYTES, ResponsesAggregator } from "../protocol/responses_aggregate.ts";
import type { StreamTranslation } from "../protocol/translate/translator.ts";
import { AnswerStream, type FailingFrame, joinBytes } from "./answer_stream.ts";
import {
  answerHeaders,
  type Attempting,
  type AttemptInput,
  type AttemptResult,
  judge,
  type RelayAnswer,
  SUCCESS,
} from "./attempt_runner.ts";
import type { ProxyDeps } from "./deps.ts";
import { hideInBytes } from "./echoed_secrets.ts";
import { failOpen, withholdingSlot } from "./recovery.ts";
import { isEndedByShutdown } from "./request_context.ts";
import type { RecoverySlot } from "./recovery_slots.ts";
import {
  drainStream,
  type HoldPolicy,
  type HoldResult,
  holdStream,
  type RelayEnd,
  relayStream,
} from "./stream_relay.ts";
import { Answer } from "./answer.ts";

export async function readStreamAnswer(
  deps: ProxyDeps,
  input: AttemptInput,
  attempting: Attempting,
  response: UpstreamResponse,
): Promise<AttemptResult> {
  const { context, launch, plan } = input;
  if (response.body === null) return attempting.fail({ kind: "malformed", detail: "no_body" });
  const translation = attempting.answer === null || !context.wantsStream
    ? null
    : attempting.answer.translator.startStream(attempting.answer.context);
  const stream = openStream(deps, input, attempting, response, translation);
  if (!context.wantsStream) return await gather(deps, input, attempting, stream, response);

  const slot = withholdingSlot(input);
  const policy = slot === null ? bootstrapPolicy(deps) : withholdPolicy(deps, input, slot);
  const hold = await holdStream(stream, policy, deps.clock);
  const headers = streamHeaders(attempting, response, context.id);
  if (hold.kind === "failed") {
    stream.cancel();
    return attempting.fail(hold.evidence, {
      kind: "held",
      headers,
      held: hold.held,
      failureFrame: relayedFailure(input, stream, translation),
      facts: factsOf(hold.evidence),
    });
  }
  if (slot !== null && (hold.why === "overflow" || hold.why === "unknown_payload")) {
    failOpen(deps, input, hold.why);
  }
  if (stream.sawOutput || stream.terminal !== null) {
    deps.pool.progress(plan, launch, "semantic", deps.clock.now());
  }
  input.hooks.commit(launch);
  let semantic = stream.sawOutput;
  let outcome: Outcome | null = null;
  const judgeEnd = (end: RelayEnd): Outcome => {
    if (end.kind === "success") return SUCCESS;
    const evidence: Evidence = end.kind === "cancelled" ? { kind: "client_cancelled" } : end.evidence;
    const judged = judge(deps, attempting.entry, launch, evidence, context.match.route.base);
    // A client that did not read until we stopped has not left.
    const endedByUs = evidence.kind === "client_cancelled" && isEndedByShutdown(context);
    return endedByUs ? { ...judged, origin: "local", code: "shutting_down" } : judged;
  };
  const { timeouts, streaming } = deps.config();
  const body = relayStream(stream, hold.held, {
    clock: deps.clock,
    idleMs: timeouts.idleMs,
    keepaliveMs: streaming.keepaliveMs,
    failureFrame: (evidence) => {
      outcome = judgeEnd({ kind: "failed", evidence });
      if (evidence.kind === "client_cancelled") {
        if (!isEndedByShutdown(context)) return null;
        return endedFrame(input, stream, translation, ENDED_BY_SHUTDOWN);
      }
      return hideInBytes(
        committedFailure(input, stream, translation, evidence, outcome),
        attempting.credential,
      );
    },
    traffic: deps.traffic,
    onHeldDelivered: () => input.slot?.release(),
    onEnd: (end) => {
      if (!semantic && stream.sawOutput) {
        semantic = true;
        deps.pool.progress(plan, launch, "semantic", deps.clock.now());
      }
      input.hooks.finished(launch, outcome ?? judgeEnd(end), 200, stream.usage);
    },
  });
  return { kind: "committed", response: new Answer(body, { headers }) };
}

function openStream(
  deps: ProxyDeps,
  input: AttemptInput,
  attempting: Attempting,
  response: UpstreamResponse,
  translation: StreamTranslation | null,
): AnswerStream {
  return new AnswerStream({
    body: response.body!,
    headers: response.headers,
    dialect: dialectOf(attempting.upstreamProtocol),
    translation,
    observer: {
      quota: (reading) => {
        const nowMs = deps.clock.now();
        deps.pool.observeQuota(input.launch.account, {
          ...reading,
          observedAtMs: nowMs,
          source: "stream_event",
        }, nowMs);
      },
    },
    bodyFailure: (error) => deps.upstream.bodyFailure(error),
  });
}

/** The bootstrap hold (ruling 5): until the first output, within three bounds. */
function bootstrapPolicy(deps: ProxyDeps): HoldPolicy {
  const { streaming, timeouts } = deps.config();
  return {
    until: "output",
    maxEvents: streaming.bootstrap.maxEvents,
    maxBytes: streaming.bootstrap.maxBytes,
    untilMs: deps.clock.now() + streaming.bootstrap.maxHoldMs,
    idleMs: timeouts.idleMs,
  };
}

/** Recovery withholds until a terminal success; only its byte bound and unknown events let go earlier. */
function withholdPolicy(deps: ProxyDeps, input: AttemptInput, slot: RecoverySlot): HoldPolicy {
  const { streaming, timeouts } = deps.config();
  return {
    until: "success",
    maxEvents: Infinity,
    maxBytes: streaming.recovery.maxBufferBytes,
    untilMs: Infinity,
    idleMs: timeouts.idleMs,
    guarded: true,
    onHeld: slot.hold,
    // A probe's lease must not last as long as the answer (C26).
    onOutput: () => deps.pool.progress(input.plan, input.launch, "semantic", deps.clock.now()),
  };
}

function factsOf(evidence: Evidence): ErrorFacts {
  return evidence.kind === "in_stream" ? evidence.error : readErrorValue(null);
}

/** The failing frame as the client may be shown it: a request-scoped failure keeps the upstream's own words. */
function relayedFailure(
  input: AttemptInput,
  stream: AnswerStream,
  translation: StreamTranslation | null,
): Uint8Array<ArrayBuffer> | null {
  const failing = stream.failing;
  if (failing === null) return null;
  return translation === null
    ? ownFailure(input, stream, failing)
    : joinBytes(translation.push(failing.frame, failing.facts));
}

/** Same protocol: the frame as it came, except that a bare `error` becomes what Codex acts on. */
function ownFailure(
  input: AttemptInput,
  stream: AnswerStream,
  failing: FailingFrame,
): Uint8Array<ArrayBuffer> {
  const { context } = input;
  const reworded = context.protocol !== "responses" ? null : translateBareError(failing.frame, {
    requestId: context.id,
    ...(stream.responseId === null ? {} : { responseId: stream.responseId }),
  });
  return reworded ?? failing.bytes;
}

function committedFailure(
  input: AttemptInput,
  stream: AnswerStream,
  translation: StreamTranslation | null,
  evidence: Evidence,
  outcome: Outcome,
): Uint8Array<ArrayBuffer> {
  if (stream.failing !== null && (translation === null || outcome.kind === "request_fault")) {
    return relayedFailure(input, stream, translation)!;
  }
  return endedFrame(input, stream, translation, evidence.kind === "incomplete" ? INCOMPLETE : BROKEN);
}

const INCOMPLETE = {
  status: 408,
  code: "stream_incomplete",
  message: "The upstream ended the stream before it was complete",
};
const BROKEN = {
  status: 502,
  code: "upstream_unavailable",
  message: "The upstream failed while it was answering",
};
const ENDED_BY_SHUTDOWN = { status: 503, code: "shutting_down", message: "The proxy is shutting down" };

/** The end of a stream in our own words. */
function endedFrame(
  { context }: AttemptInput,
  stream: AnswerStream,
  translation: StreamTranslation | null,
  failure: typeof BROKEN,
): Uint8Array<ArrayBuffer> {
  if (translation !== null) return joinBytes(translation.end({ kind: "failed", failure }));
  return renderStreamFailure(context.protocol, {
    ...failure,
    requestId: context.id,
    ...(stream.responseId === null ? {} : { responseId: stream.responseId }),
  });
}

function streamHeaders(attempting: Attempting, response: UpstreamResponse, requestId: string): HeaderFields {
  const headers = answerHeaders(attempting, response, requestId);
  headers.set("content-type", "text/event-stream; charset=utf-8");
  headers.set("cache-control", "no-cache");
  return headers;
}

/** Whole answer for a JSON client out of a stream (ruling 11); nothing is committed before its terminal. */
async function gather(
  deps: ProxyDeps,
  input: AttemptInput,
  attempting: Attempting,
  stream: AnswerStream,
  response: UpstreamResponse,
): Promise<AttemptResult> {
  const { context, launch, plan } = input;
  const aggregator = new ResponsesAggregator(response.headers);
  stream.onFrame = (frame, facts) => aggregator.add(frame, facts);
  const hold = await holdGathered(deps, input, stream);
  const fail = (evidence: Evidence): AttemptResult => {
    stream.cancel();
    const relay: RelayAnswer = {
      kind: "held",
      headers: new HeaderFields(),
      held: [],
      failureFrame: null,
      facts: factsOf(evidence),
    };
    return attempting.fail(evidence, relay);
  };
  if (hold.kind === "failed") return fail(hold.evidence);
  if (hold.why !== "success") return fail({ kind: "malformed", detail: "answer_too_large" });
  const whole = aggregator.result();
  if (!whole.ok) return fail(whole.evidence);
  let document = whole.json;
  if (attempting.answer !== null) {
    const translated = attempting.answer.translator.answer(document, attempting.answer.context);
    if (!translated.ok) return fail(evidenceOf(translated.problem, response));
    document = translated.body;
  }
  drainStream(stream, deps.clock);
  deps.pool.progress(plan, launch, "semantic", deps.clock.now());
  const headers = answerHeaders(attempting, response, context.id);
  headers.set("content-type", "application/json");
  headers.delete("cache-control");
  input.hooks.commit(launch);
  input.hooks.finished(launch, SUCCESS, 200, stream.usage);
  const text = JSON.stringify(document);
  deps.traffic.bytesToClients += text.length;
  return { kind: "committed", response: new Answer(text, { headers }) };
}

/** Reads to the end without keeping what the aggregator keeps; past recovery's bounds without recovery. */
async function holdGathered(deps: ProxyDeps, input: AttemptInput, stream: AnswerStream): Promise<HoldResult> {
  const slot = withholdingSlot(input);
  if (slot !== null) {
    const hold = await holdStream(
      stream,
      { ...withholdPolicy(deps, input, slot), keepsNothing: true },
      deps.clock,
    );
    if (hold.kind === "failed" || (hold.why !== "overflow" && hold.why !== "unknown_payload")) return hold;
    failOpen(deps, input, hold.why);
    slot.release();
  }
  return await holdStream(stream, {
    until: "success",
    maxEvents: Infinity,
    maxBytes: AGGREGATE_LIMIT_BYTES,
    untilMs: Infinity,
    idleMs: deps.config().timeouts.idleMs,
    keepsNothing: true,
  }, deps.clock);
}

/** A translated answer's problem with the headers it came with. */
export function evidenceOf(
  problem: NonNullable<StreamTranslation["problem"]>,
  response: UpstreamResponse,
): Evidence {
  return problem.kind === "in_stream" ? { ...problem, headers: response.headers } : problem;
}
