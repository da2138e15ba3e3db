/**
 * From a client's HTTP request to the one answer it gets.
 */
import type { AccountId } from "../core/domain.ts";
import type { DecisionRecord } from "../core/decision.ts";
import { assessReplay, type BodyKnowledge } from "../core/replay.ts";
import { CODEX_PROVIDER, resolveModel } from "../core/model_resolution.ts";
import type { Launch, RequestSpec } from "../core/retry_plan.ts";
import { type LocalKind, renderLocal } from "../protocol/answer.ts";
import { matchRoute, type Route, type RouteMatch } from "../protocol/route.ts";
import { readSessionSignals, type SessionSignal } from "../protocol/session_signals.ts";
import type { TokenUsage } from "../protocol/stream_dialect.ts";
import { type AdmissionSources, admit, type Tenant } from "./admission.ts";
import type { ProxyDeps } from "./deps.ts";
import type { RequestContext } from "./request_context.ts";
import { digestSignal } from "./session_digest.ts";
import {
  type BodyFields,
  type BodyProblem,
  readBodyFields,
  readRequestBody,
  type RequestBody,
} from "./request_body.ts";
import { runRequest } from "./request_runner.ts";

export interface HandlerDeps extends ProxyDeps {
  readonly admission: AdmissionSources;
  /** `/healthz`, `/v0/…` and the like; null when the path is not local. */
  readonly local: (request: Request, path: string, search: string) => Response | Promise<Response> | null;
  /** Upgrades; null where WebSockets are not served. */
  readonly upgrade: (
    request: Request,
    match: RouteMatch,
    search: string,
    tenant: Tenant,
    id: string,
  ) => Promise<Response>;
  readonly isDraining: () => boolean;
  /** Models each provider is known to list. */
  readonly listedModels: () => ReadonlyMap<string, ReadonlySet<string>>;
}

/** The handler `Deno.serve` calls. Never throws for anything a client or an upstream may do. */
export function createHandler(deps: HandlerDeps): (request: Request) => Response | Promise<Response> {
  return (request) => {
    const { path, search } = splitUrl(request.url);
    const local = deps.local(request, path, search);
    if (local !== null) return local;
    const upgrade = request.headers.get("upgrade");
    const match = matchRoute(request.method, path, upgrade !== null && upgrade.toLowerCase() === "websocket");
    const id = deps.ids.requestId();
    if (match === null) return refuse(deps, "not_found", "raw", id);
    if (deps.isDraining()) return refuse(deps, "shutting_down", match.route.protocol, id);
    const admission = admit(request.headers, match.route, deps.admission);
    if (!admission.ok) return refuse(deps, admission.problem, match.route.protocol, id);
    if (match.route.websocket) return deps.upgrade(request, match, search, admission.tenant, id);
    return serve(deps, request, match, search, admission.tenant, id);
  };
}

async function serve(
  deps: HandlerDeps,
  request: Request,
  match: RouteMatch,
  search: string,
  tenant: Tenant,
  id: string,
): Promise<Response> {
  const { route } = match;
  const receivedAtMs = deps.clock.now();
  const abort = new AbortController();
  const watched = { request, abort, sinceMs: receivedAtMs };
  deps.cancelWatch.add(watched);
  const headers = request.headers;
  const contentType = headers.get("content-type");
  const isJson = contentType === null || contentType.includes("json");
  const read = await readRequestBody(request, deps.inflate, isJson && route.namesModel);
  if (!read.ok) {
    deps.cancelWatch.remove(watched);
    return refuseBody(deps, read.problem, route, id);
  }
  const inspected = inspect(read.body, route, isJson);
  if (!inspected.ok) {
    deps.cancelWatch.remove(watched);
    return refuse(
      deps,
      inspected.tooLarge ? "request_too_large" : "invalid_request",
      route.protocol,
      id,
      inspected.problem,
    );
  }
  const fields = inspected.fields;
  const sessions = digestSessions(deps, tenant, readSessionSignals(headers, fields));
  const turnState = headers.get("x-codex-turn-state");
  const turnStateAccount = turnState === null ? null : deps.pool.lookupBinding(
    [digestSignal(deps, tenant, { kind: "turn_state", value: turnState })],
    receivedAtMs,
  );
  const spec = describeRequest(deps, {
    id,
    tenant,
    match,
    method: request.method,
    contentType,
    body: read.body,
    fields,
    sessions,
    turnStateAccount,
    idempotencyKey: headers.get("idempotency-key"),
    receivedAtMs,
  });
  if (spec.targets.length + spec.fallbacks.length === 0) {
    deps.cancelWatch.remove(watched);
    return refuse(
      deps,
      "not_found",
      route.protocol,
      id,
      "No configured provider of this model serves this route",
    );
  }
  const context: RequestContext = {
    id,
    receivedAtMs,
    method: request.method,
    search,
    match,
    protocol: route.protocol,
    headers,
    tenant,
    body: read.body,
    fields,
    wantsStream: fields?.stream === true,
    spec,
    abort,
  };
  const recovery = deps.config().streaming.recovery;
  const slot = recovery.attempts > 0 && spec.replay === "replayable" && route.protocol !== "raw"
    ? deps.recoverySlots.tryAcquire(recovery.maxConcurrent)
    : null;
  const started = slot === null
    ? context
    : { ...context, spec: { ...spec, recoveryAttempts: recovery.attempts } };
  try {
    return await runRequest(deps, {
      context: started,
      slot,
      turnStateAccount,
      onDone: (record, usage, launch) => recordDone(deps, started, record, usage, launch),
    });
  } finally {
    deps.cancelWatch.remove(watched);
  }
}

type Inspection =
  | { readonly ok: true; readonly fields: BodyFields | null }
  | { readonly ok: false; readonly tooLarge: boolean; readonly problem: string };

function inspect(body: RequestBody, route: Route, isJson: boolean): Inspection {
  if (!route.namesModel) return { ok: true, fields: null };
  if (body.kind === "stream") return { ok: true, fields: null };
  if (body.kind === "none") {
    return route.protocol === "raw"
      ? { ok: true, fields: null }
      : { ok: false, tooLarge: false, problem: "The request has no body" };
  }
  if (!isJson && route.protocol === "raw") return { ok: true, fields: null };
  const read = readBodyFields(body.bytes);
  if (read.ok) return { ok: true, fields: read.fields };
  return { ok: false, tooLarge: false, problem: `The request body is not a JSON object: ${read.problem}` };
}

interface Described {
  readonly id: string;
  readonly tenant: Tenant;
  readonly match: RouteMatch;
  readonly method: string;
  readonly contentType: string | null;
  readonly body: RequestBody;
  readonly fields: BodyFields | null;
  readonly sessions: readonly string[];
  readonly turnStateAccount: AccountId | null;
  readonly idempotencyKey: string | null;
  readonly receivedAtMs: number;
}

function describeRequest(deps: HandlerDeps, described: Described): RequestSpec {
  const { match, body, fields, sessions } = described;
  const config = deps.config();
  const replay = assessReplay(
    match.route.replay,
    described.method,
    described.contentType,
    describeBody(body),
  );
  const model = fields?.model ?? null;
  const serves = ({ provider }: { readonly provider: string }): boolean =>
    deps.provider(provider)?.descriptor.serves(match.route) ?? false;
  const resolved = match.route.base === "any"
    ? resolveModel(config, deps.listedModels(), match.route.protocol, model)
    : { targets: [{ provider: CODEX_PROVIDER, model }], fallbacks: [], pool: null };
  const route = resolved.pool === null ? resolved : deps.pool.rotate(resolved.pool) ?? resolved;
  const bound = described.turnStateAccount ??
    (sessions.length === 0 ? null : deps.pool.lookupBinding(sessions, described.receivedAtMs));
  return {
    id: described.id,
    route: match.route.name,
    tenant: described.tenant.id,
    model,
    targets: route.targets.filter(serves),
    fallbacks: route.fallbacks.filter(serves),
    replay: replay.replayable ? "replayable" : "once",
    bound,
    session: sessions[0] ?? null,
    aliases: sessions.slice(1),
    pinned: fields?.previousResponseId != null && bound !== null,
    recoveryAttempts: 0,
    idempotency: described.idempotencyKey === null
      ? null
      : deps.digest.sha256(`${described.tenant.id}\0idempotency\0${described.idempotencyKey}`),
    attemptTimeoutMs: config.timeouts.firstByteMs,
  };
}

function describeBody(body: RequestBody): BodyKnowledge {
  switch (body.kind) {
    case "none":
      return { kind: "none", lengthBytes: 0 };
    case "bytes":
      return { kind: body.known ? "known" : "unknown", lengthBytes: body.bytes.length };
    case "stream":
      return body.length === null
        ? { kind: "unknown", lengthBytes: null }
        : { kind: "over_limit", lengthBytes: body.length };
  }
}

function digestSessions(deps: ProxyDeps, tenant: Tenant, signals: readonly SessionSignal[]): string[] {
  return signals.map((signal) => digestSignal(deps, tenant, signal));
}

function recordDone(
  deps: ProxyDeps,
  context: RequestContext,
  record: DecisionRecord,
  usage: TokenUsage | null,
  launch: Launch | null,
): void {
  deps.decisions.add(record);
  const nowMs = deps.clock.now();
  const failed = record.code !== null;
  deps.usage.add(
    {
      tenant: context.tenant.id,
      keyHint: context.tenant.keyHint,
      provider: launch?.provider ?? context.spec.targets[0]?.provider ?? "",
      model: launch?.model ?? context.spec.model ?? "",
      effort: context.fields?.effort ?? "",
    },
    usage,
    failed,
    nowMs,
  );
  deps.log.write(failed ? "warn" : "info", "request_done", {
    request_id: context.id,
    route: record.route,
    model: record.model,
    tenant: record.tenant,
    status: record.status,
    code: record.code,
    rule: record.rule,
    account: launch?.account ?? null,
    attempts: record.attempts.length,
    rounds: record.rounds,
    waited_ms: record.waits.reduce((sum, wait) => sum + wait.untilMs - wait.fromMs, 0),
    duration_ms: nowMs - context.receivedAtMs,
    input_tokens: usage?.inputTokens,
    output_tokens: usage?.outputTokens,
  });
  for (const attempt of record.attempts) {
    if (attempt.outcome === "success" && record.attempts.length === 1) continue;
    deps.log.write("info", "attempt", {
      request_id: context.id,
      attempt: attempt.id,
      account: attempt.account,
      round: attempt.round,
      cause: attempt.cause,
      outcome: attempt.outcome,
      status: attempt.status,
    });
  }
  for (const candidate of failed ? record.candidates : []) {
    deps.log.write("info", "candidate_blocked", {
      request_id: context.id,
      account: candidate.account,
      block: candidate.block?.kind ?? null,
      source: candidate.block?.source ?? null,
      until: candidate.block?.untilMs == null ? null : new Date(candidate.block.untilMs).toISOString(),
    });
  }
}

function refuse(
  deps: ProxyDeps,
  problem: LocalKind,
  protocol: Route["protocol"],
  id: string,
  detail?: string,
): Response {
  const rendered = renderLocal(protocol, problem, { requestId: id, nowMs: deps.clock.now() }, detail);
  deps.log.write("info", "request_refused", { request_id: id, code: problem, status: rendered.status });
  return new Response(rendered.body, { status: rendered.status, headers: rendered.headers });
}

function refuseBody(deps: ProxyDeps, problem: BodyProblem, route: Route, id: string): Response {
  switch (problem) {
    case "bad_length":
      return refuse(
        deps,
        "invalid_request",
        route.protocol,
        id,
        "The request body does not have the length it declares",
      );
    case "aborted":
      return refuse(
        deps,
        "invalid_request",
        route.protocol,
        id,
        "The request body ended before it was complete",
      );
    case "unknown_coding":
      return refuse(deps, "unsupported_encoding", route.protocol, id);
    case "corrupt_coding":
      return refuse(deps, "invalid_request", route.protocol, id, "The request body cannot be decompressed");
    case "too_large":
      return refuse(deps, "request_too_large", route.protocol, id);
  }
}

/** Path and query of an absolute request URL, byte for byte as received. */
export function splitUrl(url: string): { path: string; search: string } {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  if (start < 0) return { path: "/", search: "" };
  const query = url.indexOf("?", start);
  return query < 0
    ? { path: url.slice(start), search: "" }
    : { path: url.slice(start, query), search: url.slice(query) };
}
