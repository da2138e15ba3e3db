/**
 * What was used: requests and tokens by user, key, provider, model and effort, in 10-minute UTC buckets.
 *
 * Everything comes out of the store as it was counted when requests ended; nothing is estimated.
 */
import type { HeaderLookup } from "../core/evidence.ts";
import { z } from "zod";
import type { AccountStore, Clock, ManagedUser, UsageCount, UsageKey, UsageQuery } from "../ports.ts";
import type { Admission } from "./admission.ts";
import { isoTime } from "./decision_view.ts";
import { type Input, readQueryInput } from "./json_input.ts";
import { json } from "./local_routes.ts";
import { problem } from "./management.ts";
import { USAGE_BUCKET_MS } from "./usage_recorder.ts";
import type { Answer } from "./answer.ts";
import type { ClientRequest } from "./client_request.ts";

export interface UsageRoutesDeps {
  readonly accounts: AccountStore;
  readonly clock: Clock;
  /** Who a key belongs to; only keys of clients count, not accounts' own tokens. */
  readonly admit: (headers: HeaderLookup) => Admission;
  /** Writes what is still waiting to be counted. */
  readonly flush: () => void;
}

const TOTALS = "/v0/management/usage";
const EVENTS = "/v0/management/usage/events";
const OWN_TODAY = "/v0/user/usage/today";
const DAY_MS = 86_400_000;
const EVENT_LIMIT = 10_000;
const DEFAULT_EVENT_LIMIT = 1_000;

/** RFC 3339 with its offset, or a UTC date; anything looser is read differently by different programs. */
const TIME = z.string().refine(
  (text) =>
    /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2}))?$/.test(text) &&
    Date.parse(text) >= 0,
  "must be a time like 2026-01-31T00:00:00Z or a date like 2026-01-31",
).transform((text) => Date.parse(text));
const LABEL = z.string().min(1, "must not be empty").max(256, "must be at most 256 characters");
const RANGE = {
  from: TIME.optional(),
  to: TIME.optional(),
  /** A managed user's id. */
  user: LABEL.optional(),
  tenant: LABEL.optional(),
};
const WHOLE_NUMBER = `must be 1..${EVENT_LIMIT}`;
const TOTALS_QUERY = z.strictObject(RANGE);
const EVENTS_QUERY = z.strictObject({
  ...RANGE,
  limit: z.string().regex(/^[1-9]\d{0,5}$/, WHOLE_NUMBER).transform(Number)
    .refine((limit) => limit <= EVENT_LIMIT, WHOLE_NUMBER).optional(),
});

/** @returns null where the path is none of these, or the caller is not the operator. */
export function createUsageRoutes(
  deps: UsageRoutesDeps,
): (request: ClientRequest, path: string, search: string, isAdmin: () => boolean) => Answer | null {
  return (request, path, search, isAdmin) => {
    const isRead = request.method === "GET";
    if (path === OWN_TODAY) {
      return isRead ? serveToday(deps, request) : problem(404, "not_found", "There is no such call");
    }
    if ((path !== TOTALS && path !== EVENTS) || !isRead || !isAdmin()) return null;
    return path === TOTALS ? serveTotals(deps, search) : serveEvents(deps, search);
  };
}

function serveTotals(deps: UsageRoutesDeps, search: string): Answer {
  const input = readRange(readQueryInput(search, TOTALS_QUERY), deps.clock.now());
  if (!input.ok) return problem(input.status, input.code, input.message);
  deps.flush();
  const rows = deps.accounts.usageTotals(input.value);
  const users = usersByTenant(deps.accounts);
  return json({
    ...viewRange(input.value),
    totals: viewCount(sum(rows)),
    tenants: [...Map.groupBy(rows, ({ key }) => key.tenant)].map(([tenant, ofTenant]) => ({
      ...viewTenant(tenant, users),
      totals: viewCount(sum(ofTenant)),
      keys: [...Map.groupBy(ofTenant, ({ key }) => key.keyHint)].map(([hint, ofKey]) => ({
        key_hint: hint,
        totals: viewCount(sum(ofKey)),
      })),
      models: viewModels(ofTenant),
    })),
  });
}

function serveEvents(deps: UsageRoutesDeps, search: string): Answer {
  const input = readRange(readQueryInput(search, EVENTS_QUERY), deps.clock.now());
  if (!input.ok) return problem(input.status, input.code, input.message);
  deps.flush();
  const limit = input.value.limit ?? DEFAULT_EVENT_LIMIT;
  // One more than asked for tells whether there are more.
  const rows = deps.accounts.usage({ ...input.value, limit: limit + 1 });
  const users = usersByTenant(deps.accounts);
  return json({
    ...viewRange(input.value),
    bucket_minutes: USAGE_BUCKET_MS / 60_000,
    events: rows.toReversed().slice(0, limit).map(({ bucketAtMs, key, count }) => ({
      at: isoTime(bucketAtMs),
      ...viewTenant(key.tenant, users),
      key_hint: key.keyHint,
      ...viewModel(key),
      ...viewCount(count),
    })),
    truncated: rows.length > limit,
  });
}

/** The caller's own usage since midnight UTC; whoever holds a client key may ask, with or without a managed user. */
function serveToday(deps: UsageRoutesDeps, request: ClientRequest): Answer {
  const admission = deps.admit(request.headers);
  if (!admission.ok) {
    return admission.problem === "key_disabled"
      ? problem(403, "key_disabled", "This key is disabled")
      : problem(401, "invalid_api_key", "The client key is missing or wrong");
  }
  const nowMs = deps.clock.now();
  const fromMs = nowMs - nowMs % DAY_MS;
  deps.flush();
  const rows = deps.accounts.usageTotals({ fromMs, toMs: nowMs + 1, tenant: admission.tenant.id });
  return json({
    date: new Date(fromMs).toISOString().slice(0, 10),
    ...viewRange({ fromMs, toMs: nowMs }),
    totals: viewCount(sum(rows)),
    models: viewModels(rows),
  });
}

interface RangeQuery {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly user?: string | undefined;
  readonly tenant?: string | undefined;
  readonly limit?: number | undefined;
}

/** The last 24 hours where nothing else is asked for. */
function readRange(
  input: Input<RangeQuery>,
  nowMs: number,
): Input<UsageQuery & { limit: number | undefined }> {
  if (!input.ok) return input;
  const { from, to, user, tenant, limit } = input.value;
  const toMs = to ?? nowMs + 1;
  const fromMs = from ?? Math.max(0, toMs - DAY_MS);
  const mistake = user !== undefined && tenant !== undefined
    ? '"user" and "tenant" must not be given together'
    : fromMs >= toMs
    ? '"from" must be before "to"'
    : null;
  if (mistake !== null) return { ok: false, status: 400, code: "invalid_request", message: mistake };
  return {
    ok: true,
    value: { fromMs, toMs, tenant: user === undefined ? tenant ?? null : `user:${user}`, limit },
  };
}

type Row = { readonly key: UsageKey; readonly count: UsageCount };

function viewRange({ fromMs, toMs }: Pick<UsageQuery, "fromMs" | "toMs">): Record<string, unknown> {
  return { from: isoTime(fromMs), to: isoTime(toMs) };
}

function viewTenant(tenant: string, users: ReadonlyMap<string, ManagedUser>): Record<string, unknown> {
  const user = users.get(tenant) ?? null;
  return { tenant, user: user === null ? null : { id: user.id, name: user.name } };
}

function usersByTenant(accounts: AccountStore): ReadonlyMap<string, ManagedUser> {
  return new Map(accounts.users().map((user) => [`user:${user.id}`, user]));
}

function viewModels(rows: readonly Row[]): Record<string, unknown>[] {
  const groups = Map.groupBy(rows, ({ key }) => JSON.stringify([key.provider, key.model, key.effort]));
  return [...groups.values()].map((group) => ({ ...viewModel(group[0]!.key), ...viewCount(sum(group)) }));
}

function viewModel(key: UsageKey): Record<string, unknown> {
  return { provider: key.provider, model: key.model, effort: key.effort === "" ? null : key.effort };
}

function viewCount(count: UsageCount): Record<string, number> {
  return {
    requests: count.requests,
    failures: count.failures,
    input_tokens: count.inputTokens,
    cached_tokens: count.cachedTokens,
    output_tokens: count.outputTokens,
    reasoning_tokens: count.reasoningTokens,
  };
}

function sum(rows: readonly Row[]): UsageCount {
  const total = (of: keyof UsageCount): number => rows.reduce((all, { count }) => all + count[of], 0);
  return {
    requests: total("requests"),
    failures: total("failures"),
    inputTokens: total("inputTokens"),
    cachedTokens: total("cachedTokens"),
    outputTokens: total("outputTokens"),
    reasoningTokens: total("reasoningTokens"),
  };
}
