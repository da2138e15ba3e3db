/**
 * What a client's call asks of the pool: which models, which conversation, and whether it may be sent again.
 */
import type { AccountId } from "../core/domain.ts";
import type { HeaderList } from "../core/header_fields.ts";
import { CODEX_PROVIDER, resolveModel } from "../core/model_resolution.ts";
import { assessReplay, type BodyKnowledge } from "../core/replay.ts";
import type { RequestSpec } from "../core/retry_plan.ts";
import type { RouteMatch } from "../protocol/route.ts";
import { readSessionSignals, type SessionSignal } from "../protocol/session_signals.ts";
import type { Tenant } from "./admission.ts";
import type { HandlerDeps } from "./deps.ts";
import type { BodyFields, RequestBody } from "./request_body.ts";
import type { RequestContext } from "./request_context.ts";
import { findPin } from "./resource_pins.ts";
import { digestSignal } from "./session_digest.ts";

/** A client's call as it was read. */
export interface Asked {
  readonly id: string;
  readonly tenant: Tenant;
  readonly match: RouteMatch;
  readonly method: string;
  readonly search: string;
  readonly contentType: string | null;
  readonly headers: HeaderList;
  readonly body: RequestBody;
  readonly fields: BodyFields | null;
  readonly receivedAtMs: number;
}

/** Recognises the conversation, and says what the request wants of the pool. */
export function describe(
  deps: HandlerDeps,
  asked: Asked,
  abort: AbortController,
): { readonly context: RequestContext; readonly turnStateAccount: AccountId | null } {
  const { headers, fields, match, receivedAtMs, tenant } = asked;
  const digest = (signal: SessionSignal) => digestSignal(deps, tenant, signal);
  const sessions = readSessionSignals(headers, fields).map(digest);
  const turnState = headers.get("x-codex-turn-state");
  const turnStateAccount = turnState === null ? null : deps.pool.lookupBinding(
    [digest({ kind: "turn_state", value: turnState })],
    receivedAtMs,
  );
  const context: RequestContext = {
    id: asked.id,
    receivedAtMs,
    method: asked.method,
    search: asked.search,
    match,
    protocol: match.route.protocol,
    headers,
    tenant,
    body: asked.body,
    fields,
    // Nobody looked into a body that streams by: what the upstream makes of it goes back as it comes.
    wantsStream: asked.body.kind === "stream" ? true : fields?.stream === true,
    spec: describeRequest(deps, asked, sessions, turnStateAccount),
    abort,
  };
  return { context, turnStateAccount };
}

function describeRequest(
  deps: HandlerDeps,
  asked: Asked,
  sessions: readonly string[],
  turnStateAccount: AccountId | null,
): RequestSpec {
  const { match, body, fields, headers, receivedAtMs, tenant } = asked;
  const config = deps.config();
  const replay = assessReplay(match.route.replay, asked.method, asked.contentType, describeBody(body));
  const model = fields?.model ?? null;
  const serves = ({ provider }: { readonly provider: string }): boolean =>
    deps.provider(provider)?.descriptor.serves(match.route) ?? false;
  const resolved = match.route.base === "any"
    ? resolveModel(config, deps.listedModels(), match.route.protocol, model)
    : { targets: [{ provider: CODEX_PROVIDER, model }], fallbacks: [], pool: null };
  const route = resolved.pool === null ? resolved : deps.pool.rotate(resolved.pool) ?? resolved;
  const pinnedTo = findPin(deps, match, asked.search, receivedAtMs);
  const bound = pinnedTo ?? turnStateAccount ??
    (sessions.length === 0 ? null : deps.pool.lookupBinding(sessions, receivedAtMs));
  const idempotencyKey = headers.get("idempotency-key");
  return {
    id: asked.id,
    route: match.route.name,
    tenant: tenant.id,
    model,
    targets: route.targets.filter(serves),
    fallbacks: route.fallbacks.filter(serves),
    replay: replay.replayable ? "replayable" : "once",
    bound,
    session: sessions[0] ?? null,
    aliases: sessions.slice(1),
    pinned: pinnedTo !== null || (fields?.previousResponseId != null && bound !== null),
    recoveryAttempts: 0,
    idempotency: idempotencyKey === null
      ? null
      : deps.digest.sha256(`${tenant.id}\0idempotency\0${idempotencyKey}`),
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
