/**
 * From a client's WebSocket handshake to its answer: a 101, or the refusal an HTTP request would get.
 */
import { CODEX_PROVIDER, resolveModel } from "../core/model_resolution.ts";
import type { RouteMatch } from "../protocol/route.ts";
import type { Tenant } from "./admission.ts";
import { readUpgradeOffer } from "./client_socket.ts";
import { describe } from "./describe_request.ts";
import type { HandlerDeps } from "./deps.ts";
import { refuse } from "./refusal.ts";
import { countUsage, recordDone } from "./request_record.ts";
import { runRequest } from "./request_runner.ts";
import { runSocketAttempt, UPGRADED_STATUS } from "./socket_attempt.ts";
import type { Answer } from "./answer.ts";
import type { ClientRequest } from "./client_request.ts";

/** An upgrade runs through the same steps; its launches are handshakes, and its answer is the 101. */
export async function serveSocket(
  deps: HandlerDeps,
  request: ClientRequest,
  match: RouteMatch,
  search: string,
  tenant: Tenant,
  id: string,
): Promise<Answer> {
  const { headers, upgrade } = request;
  const offer = readUpgradeOffer(headers);
  if (offer === null || upgrade === null || request.method !== "GET") {
    return refuse(deps, "invalid_request", match.route.protocol, id, "This is not a WebSocket handshake");
  }
  const receivedAtMs = deps.clock.now();
  const abort = new AbortController();
  request.whenLeft(() => abort.abort());
  const { context, turnStateAccount } = describe(deps, {
    id,
    tenant,
    match,
    method: request.method,
    search,
    contentType: null,
    headers,
    body: { kind: "none" },
    fields: null,
    receivedAtMs,
  }, abort);
  const socket = { upgrade, offer, upstreamModel: (model: string) => codexModel(deps, model) };
  return await runRequest(deps, {
    context,
    slot: null,
    turnStateAccount,
    attempt: (_, input) => runSocketAttempt(deps, input, socket),
    onDone: (record, usage, launch) => {
      // An open socket's turns were counted one by one.
      if (record.status !== UPGRADED_STATUS) countUsage(deps, context, record, usage, launch);
      recordDone(deps, context, record, usage, launch);
    },
  });
}

/** What Codex calls the model a client names, where Codex serves it. */
function codexModel(deps: HandlerDeps, model: string): string | null {
  const resolved = resolveModel(deps.config(), deps.listedModels(), "responses", model);
  const route = resolved.pool === null ? resolved : deps.pool.rotate(resolved.pool) ?? resolved;
  const target = [...route.targets, ...route.fallbacks].find(({ provider }) => provider === CODEX_PROVIDER);
  return target === undefined ? null : target.model ?? model;
}
