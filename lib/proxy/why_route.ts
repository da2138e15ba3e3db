/**
 * `GET /v0/management/why?model=`: who could serve a model right now, and what speaks against everybody else.
 *
 * Looks only. It does not turn a pool's ring, so that asking changes nobody's place.
 */
import { z } from "zod";
import type { CandidateRecord } from "../core/decision.ts";
import type { ClientProtocol, Target } from "../core/domain.ts";
import {
  CODEX_PROVIDER,
  type ListedModels,
  type ModelNames,
  resolveModel,
} from "../core/model_resolution.ts";
import type { Clock } from "../ports.ts";
import { isoTime, viewBlock } from "./decision_view.ts";
import { readQueryInput } from "./json_input.ts";
import { json } from "./local_routes.ts";
import { problem } from "./management.ts";
import type { Answer } from "./answer.ts";
import type { ClientRequest } from "./client_request.ts";

export interface WhyRouteDeps {
  readonly names: () => ModelNames;
  readonly listed: () => ListedModels;
  readonly clock: Clock;
  readonly pool: {
    explain(targets: readonly Target[], nowMs: number): readonly CandidateRecord[];
  };
}

const WHY = "/v0/management/why";
const PROTOCOLS = ["responses", "chat", "messages"] as const;
const QUERY = z.strictObject({
  model: z.string({ error: "must be a model name" }).min(1, "must not be empty").max(
    256,
    "must be at most 256 characters",
  ),
  protocol: z.enum(PROTOCOLS, { error: `must be one of ${PROTOCOLS.join(", ")}` }).optional(),
});

/** @returns null where the path is not this one, or the caller is not the operator. */
export function createWhyRoute(
  deps: WhyRouteDeps,
): (request: ClientRequest, path: string, search: string, isAdmin: () => boolean) => Answer | null {
  return (request, path, search, isAdmin) => {
    if (path !== WHY || request.method !== "GET" || !isAdmin()) return null;
    const input = readQueryInput(search, QUERY);
    if (!input.ok) return problem(input.status, input.code, input.message);
    return json(explainModel(deps, input.value.model, input.value.protocol ?? "responses"));
  };
}

function explainModel(deps: WhyRouteDeps, model: string, protocol: ClientProtocol): Record<string, unknown> {
  const names = deps.names();
  const nowMs = deps.clock.now();
  const { targets, fallbacks, pool } = resolveModel(names, deps.listed(), protocol, model);
  const explain = (target: Target, fallback: boolean): Candidate[] =>
    deps.pool.explain([target], nowMs).map(({ account, block }) => ({ account, block, target, fallback }));
  const candidates = [
    ...targets.flatMap((target) => explain(target, false)),
    ...fallbacks.flatMap((target) => explain(target, true)),
  ];
  const free = candidates.filter(({ block }) => block === null);
  const known = new Set([CODEX_PROVIDER, ...names.providers.map(({ id }) => id)]);
  return {
    model,
    protocol,
    resolved_by: pool !== null ? "pool" : resolvedBy(names, deps.listed(), known, model),
    pool,
    targets: targets.map(({ provider, model, weight }) => ({ provider, model, weight })),
    fallbacks,
    served_now: free.length > 0,
    next_at: free.length > 0 ? null : isoTime(earliest(candidates)),
    candidates: candidates.map(({ account, block, target, fallback }) => ({
      account,
      provider: target.provider,
      model: target.model,
      fallback,
      ...viewBlock(block),
    })),
  };
}

type Candidate = CandidateRecord & { readonly target: Target; readonly fallback: boolean };

/** Blocks without a clock give no moment. */
function earliest(candidates: readonly Candidate[]): number | null {
  const times = candidates.flatMap(({ block }) => block?.untilMs ?? []);
  return times.length === 0 ? null : Math.min(...times);
}

/** Which rule of the configuration sent the name where it goes. */
function resolvedBy(
  names: ModelNames,
  listed: ListedModels,
  known: ReadonlySet<string>,
  model: string,
): "alias" | "provider" | "list" | "default" {
  if (names.models.some(({ alias }) => alias === model)) return "alias";
  if (model.includes("/") && known.has(model.slice(0, model.indexOf("/")))) return "provider";
  const isListed = names.providers.some(({ models }) => models.includes(model)) ||
    [...listed.values()].some((models) => models.has(model));
  return isListed ? "list" : "default";
}
