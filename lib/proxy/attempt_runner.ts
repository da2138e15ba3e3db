/**
 * One launch over HTTP: prepare, send, read the answer until it may be committed, or say what went wrong.
 *
 * Decides nothing: evidence goes to `classify`, the pool decides what follows.
 */
import { classify } from "../core/classify.ts";
import type { AccountId, ClientProtocol } from "../core/domain.ts";
import type { ErrorFacts, Evidence, HeaderLookup } from "../core/evidence.ts";
import type { HeaderFields } from "../core/header_fields.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Launch, RequestSpec } from "../core/retry_plan.ts";
import { type Credential, StoreFailure, type UpstreamResponse } from "../ports.ts";
import { renderLocal } from "../protocol/answer.ts";
import { readErrorFacts } from "../protocol/error_body.ts";
import { filterResponseHeaders } from "../protocol/headers.ts";
import { markHop } from "../protocol/hops.ts";
import type { RouteBase } from "../protocol/route.ts";
import type { TokenUsage } from "../protocol/stream_dialect.ts";
import type { OutgoingRequest } from "../providers/provider.ts";
import type { ProviderEntry, ProxyDeps } from "./deps.ts";
import type { RequestPlan } from "./pool_runtime.ts";
import type { RecoverySlot } from "./recovery_slots.ts";
import type { RequestContext } from "./request_context.ts";
import { pinAnswer } from "./resource_pins.ts";
import { digestSignal } from "./session_digest.ts";
import { readStreamAnswer } from "./stream_answer.ts";
import type { AnswerTranslating } from "./translation.ts";
import { hideInRelay } from "./echoed_secrets.ts";
import { prepareBody, upstreamProtocolOf } from "./upstream_body.ts";
import { readWholeAnswer } from "./whole_answer.ts";
import { Answer, type AnswerContent } from "./answer.ts";

/** What of an upstream answer may still be passed to the client, should the pool decide so. */
export type RelayAnswer =
  | {
    readonly kind: "http";
    readonly status: number;
    readonly headers: HeaderFields;
    readonly bytes: Uint8Array<ArrayBuffer>;
    readonly facts: ErrorFacts;
  }
  /** Our own refusal of this attempt, made where it failed. */
  | { readonly kind: "passed"; readonly response: Answer; readonly code: string }
  /** A failure inside a held stream: what was held, and the failing frame, both in the client's protocol. */
  | {
    readonly kind: "held";
    readonly headers: HeaderFields;
    readonly held: Uint8Array<ArrayBuffer>[];
    readonly failureFrame: Uint8Array<ArrayBuffer> | null;
    readonly facts: ErrorFacts;
  };

export type AttemptResult =
  | { readonly kind: "committed"; readonly response: Answer }
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
  /** The upgraded connection is over; its turns were booked as they ended. */
  closed(launch: Launch, outcome: Outcome, status: number): void;
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

/** What the readers of an answer need of the attempt it answers. */
export interface Attempting {
  readonly entry: ProviderEntry;
  readonly upstreamProtocol: ClientProtocol;
  /** Null where the answer goes back in the protocol it came in. */
  readonly answer: AnswerTranslating | null;
  fail(evidence: Evidence, relay?: RelayAnswer | null): AttemptResult;
  /** Shown to the upstream, which may send it back (`echoed_secrets.ts`). */
  readonly credential: Credential;
}

export interface PreparedLaunch {
  readonly ok: true;
  readonly entry: ProviderEntry;
  readonly credential: Credential;
  fail(evidence: Evidence, relay?: RelayAnswer | null): AttemptResult;
}

/** What every launch begins with: its provider, and a credential that needs no refresh now. */
export async function prepareLaunch(
  deps: ProxyDeps,
  input: AttemptInput,
): Promise<PreparedLaunch | { readonly ok: false; readonly result: AttemptResult }> {
  const { context, launch } = input;
  const entry = deps.provider(launch.provider);
  if (entry === null) {
    throw new Error(`Cannot launch on a provider that is not configured: ${launch.provider}`);
  }
  let fingerprint: string | null = null;
  let credential: Credential | null = null;
  const fail = (evidence: Evidence, relay: RelayAnswer | null = null): AttemptResult => {
    const outcome = judge(deps, entry, launch, evidence, context.match.route.base);
    return {
      kind: "failed",
      outcome,
      fingerprint,
      relay: outcome.kind === "local_limit"
        ? overloaded(context, deps.clock.now())
        : relay === null || credential === null
        ? relay
        : hideInRelay(relay, credential),
    };
  };

  const ready = deps.credentials.ready(launch.account, deps.clock.now());
  const usable = ready !== null
    ? { ok: true as const, ...ready }
    : await deps.credentials.prepare(launch.account, context.abort.signal);
  if (!usable.ok) return { ok: false, result: fail(usable.evidence) };
  fingerprint = usable.fingerprint;
  credential = usable.credential;
  if (context.abort.signal.aborted) return { ok: false, result: fail({ kind: "client_cancelled" }) };
  return { ok: true, entry, credential, fail };
}

/** This machine is at a limit of its own: said as that, never as the upstream's. */
function overloaded(context: RequestContext, nowMs: number): RelayAnswer {
  const rendered = renderLocal(context.protocol, "overloaded_local", { requestId: context.id, nowMs });
  return {
    kind: "passed",
    response: new Answer(rendered.body, { status: rendered.status, headers: rendered.headers }),
    code: "overloaded",
  };
}

export async function runAttempt(deps: ProxyDeps, input: AttemptInput): Promise<AttemptResult> {
  const { context, launch, plan } = input;
  const launching = await prepareLaunch(deps, input);
  if (!launching.ok) return launching.result;
  const { entry, credential, fail } = launching;
  const nowMs = deps.clock.now();

  const upstreamProtocol = upstreamProtocolOf(context, entry);
  const outgoing = describeOutgoing(input, entry, upstreamProtocol);
  const prepared = prepareBody(context, launch, entry, outgoing, deps.ids, nowMs);
  if (!prepared.ok) return refuseUncarried(context, prepared, nowMs);
  noteTranslation(plan, prepared.answer);
  const { timeouts } = deps.config();
  const url = entry.descriptor.url(outgoing, entry.settings, credential);
  const headers = entry.descriptor.headers(outgoing, entry.settings, credential);
  markHop(url, headers, context.headers, deps.instanceId);
  const result = await deps.upstream.send({
    method: context.method,
    url,
    headers,
    body: prepared.body,
    bodyLength: prepared.length,
    fresh: launch.fresh,
    connectTimeoutMs: timeouts.connectMs,
    firstByteTimeoutMs: launch.leaseUntilMs === null
      ? timeouts.firstByteMs
      : Math.max(1, launch.leaseUntilMs - nowMs),
    firstByteIsFixed: launch.leaseUntilMs !== null,
    attempt: launch.attempt,
  }, context.abort.signal);
  if (!result.ok) return fail(result.evidence);

  const { response } = result;
  const attempting: Attempting = {
    entry,
    upstreamProtocol,
    answer: prepared.answer,
    fail,
    credential,
  };
  deps.pool.progress(plan, launch, "head", deps.clock.now());
  const group = entry.descriptor.sharedLimitKey(response.headers, credential);
  if (group !== null) deps.pool.noteLimitGroup(launch.account, group);
  noteHeaders(deps, input, entry, response);
  if (response.status >= 300) {
    return await readRefusal(deps, attempting, response, context.abort.signal);
  }
  const { route } = context.match;
  if (context.protocol === "raw" && route.replay === "once") {
    return await passThrough(deps, attempting, input, response);
  }
  const contentType = response.headers.get("content-type") ?? "";
  const isStream = contentType.startsWith("text/event-stream") || (contentType === "" && outgoing.streaming);
  return isStream && context.protocol !== "raw"
    ? await readStreamAnswer(deps, input, attempting, response)
    : await readWholeAnswer(deps, input, attempting, response);
}

/** Longest list and longest note of one translation in a decision record. */
const NOTES_KEPT = 20;
const NOTE_LIMIT_CHARACTERS = 200;

/** What a translation left out is told in the decision, once a request. */
function noteTranslation(plan: RequestPlan, answer: AnswerTranslating | null): void {
  if (answer === null || plan.record.notes.some((note) => note.startsWith("translated"))) return;
  const { client, upstream } = answer.translator;
  plan.record.notes.push(`translated: ${client} to ${upstream}`);
  for (const note of answer.notes.slice(0, NOTES_KEPT)) {
    plan.record.notes.push(note.slice(0, NOTE_LIMIT_CHARACTERS));
  }
}

/** A request that cannot be said in this provider's protocol: told which part, nothing sent, nobody blamed. */
function refuseUncarried(
  context: RequestContext,
  refusal: { readonly status: 400 | 413; readonly reason: string },
  nowMs: number,
): AttemptResult {
  const kind = refusal.status === 413 ? "request_too_large" : "invalid_request";
  const rendered = renderLocal(context.protocol, kind, { requestId: context.id, nowMs }, refusal.reason);
  return {
    kind: "failed",
    outcome: {
      kind: "request_fault",
      row: refusal.status === 413 ? 5 : 2,
      scope: "request",
      origin: "local",
      status: refusal.status,
      code: kind,
      state: "none",
    },
    fingerprint: null,
    relay: {
      kind: "passed",
      response: new Answer(rendered.body, { status: rendered.status, headers: rendered.headers }),
      code: kind,
    },
  };
}

export function judge(
  deps: ProxyDeps,
  entry: ProviderEntry,
  launch: Launch,
  evidence: Evidence,
  base: RouteBase,
): Outcome {
  const nowMs = deps.clock.now();
  const signal = entry.descriptor.readSignal(evidence, { nowMs, model: launch.model, base });
  return classify(evidence, signal, { nowMs, model: launch.model });
}

export function describeOutgoing(
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

/** What the head of an answer tells beside the answer: quota figures, and the turn's state. */
function noteHeaders(
  deps: ProxyDeps,
  input: AttemptInput,
  entry: ProviderEntry,
  response: UpstreamResponse,
): void {
  // Figures on a refusal speak of the deadline that came with it; only a 2xx makes a park (ruling 1).
  if (response.status >= 300) return;
  const { launch } = input;
  const nowMs = deps.clock.now();
  const quota = entry.descriptor.readQuotaHeaders(response.headers, nowMs);
  if (quota !== null) {
    deps.pool.observeQuota(
      launch.account,
      { ...quota, observedAtMs: nowMs, source: "response_headers" },
      nowMs,
    );
  }
  noteTurnState(deps, input, response.headers);
}

/** Turn state brings the next request of its turn back to the account that made it (ruling 8). */
export function noteTurnState(
  deps: ProxyDeps,
  { context, launch }: AttemptInput,
  headers: HeaderLookup,
): void {
  const value = headers.get("x-codex-turn-state");
  if (value === null || value === "") return;
  const nowMs = deps.clock.now();
  deps.affinity.bind({
    session: digestSignal(deps, context.tenant, { kind: "turn_state", value }),
    account: launch.account,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + deps.config().routing.sessionTtlMs,
  });
}

async function readRefusal(
  deps: ProxyDeps,
  attempting: Attempting,
  response: UpstreamResponse,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const bytes = await deps.upstream.readErrorBody(response);
  // What was read until the client left says too little to judge anybody by (P11).
  if (signal.aborted) return attempting.fail({ kind: "client_cancelled" });
  const facts = readErrorFacts(bytes, response.headers.get("content-type"));
  const headers = attempting.entry.descriptor.answerHeaders(filterResponseHeaders(response.headers, false));
  return attempting.fail(
    { kind: "http", status: response.status, headers: response.headers, error: facts },
    { kind: "http", status: response.status, headers, bytes, facts },
  );
}

/** The headers of an answer that goes to the client: the upstream's as far as they may, and our id. */
export function answerHeaders(
  attempting: Attempting,
  response: UpstreamResponse,
  requestId: string,
): HeaderFields {
  const headers = attempting.entry.descriptor.answerHeaders(filterResponseHeaders(response.headers, false));
  headers.set("x-request-id", requestId);
  return headers;
}

/** Once-only raw routes: the upstream's answer as it is, and as it comes where nobody has to look at it. */
async function passThrough(
  deps: ProxyDeps,
  attempting: Attempting,
  { context, hooks, launch }: AttemptInput,
  response: UpstreamResponse,
): Promise<AttemptResult> {
  let body: AnswerContent;
  try {
    body = await pinAnswer(deps, context.match, launch.account, response);
  } catch (error) {
    if (error instanceof StoreFailure) throw error;
    return attempting.fail(deps.upstream.bodyFailure(error));
  }
  const headers = answerHeaders(attempting, response, context.id);
  if (response.contentLength !== null) headers.set("content-length", String(response.contentLength));
  hooks.commit(launch);
  hooks.finished(launch, SUCCESS, response.status, null);
  return { kind: "committed", response: new Answer(body, { status: response.status, headers }) };
}

export const SUCCESS: Outcome = classify({ kind: "success" }, null, { nowMs: 0 });
