/**
 * The management interface of design.md 7: JSON over HTTP with the admin key; reads what is, switches accounts.
 *
 * No CORS, ever: a web page of somebody else must not drive it.
 */
import { z } from "zod";
import type { HeaderLookup } from "../core/evidence.ts";
import type { AccountId } from "../core/domain.ts";
import type { Clock, Digest, Log } from "../ports.ts";
import { readClientKey } from "./admission.ts";
import type { DecisionLog } from "./decision_log.ts";
import { viewDecision } from "./decision_view.ts";
import type { EventFeed } from "./event_feed.ts";
import { readJsonInput } from "./json_input.ts";
import { json } from "./local_routes.ts";
import type { AccountView, PoolRuntime } from "./pool_runtime.ts";
import type { StateView } from "./state_view.ts";
import type { Answer } from "./answer.ts";
import type { ClientRequest } from "./client_request.ts";

export interface ManagementDeps {
  readonly adminKeyHash: () => string | null;
  readonly digest: Digest;
  readonly clock: Clock;
  readonly log: Log;
  readonly pool: PoolRuntime;
  readonly decisions: DecisionLog;
  readonly state: StateView;
  readonly feed: EventFeed;
  /** Further calls (`users`, `usage`, `/v0/user/…`); null where the path is none of theirs. */
  readonly more: (
    request: ClientRequest,
    path: string,
    search: string,
    isAdmin: () => boolean,
  ) => Promise<Answer> | Answer | null;
  /** Ends the process: a change could not be stored, or an invariant is broken (ruling 9). */
  readonly fatal: (error: unknown) => void;
}

const PREFIX = "/v0/management/";
/** Longer than any id, and than any e-mail. */
const MAX_NAME_LENGTH = 512;
const ACCOUNT_PATH = /^accounts\/([^/]+)(?:\/(reset|topped-up))?$/;
const ENABLED = z.strictObject(
  { enabled: z.boolean({ error: "must be true or false" }) },
  { error: "must be a JSON object" },
);
/** Never in the address: what a person types may be a whole e-mail, and addresses are kept in logs of front proxies. */
const NAMED_PATH = "accounts/named";
const NAMED = z.strictObject(
  {
    name: z.string({ error: "must be a text" }).min(1, "must not be empty").max(
      MAX_NAME_LENGTH,
      `must be at most ${MAX_NAME_LENGTH} characters`,
    ),
  },
  { error: "must be a JSON object" },
);
const REQUEST_PATH = /^requests\/([A-Za-z0-9_-]{1,80})$/;

export function createManagement(
  deps: ManagementDeps,
): (request: ClientRequest, path: string, search: string) => Answer | Promise<Answer> | null {
  return guarded(deps.fatal, (request, path, search) => {
    const other = deps.more(request, path, search, () => isAdmin(deps, request.headers));
    if (other !== null) return other;
    if (!path.startsWith(PREFIX)) return problem(404, "not_found", "There is no such call");
    if (deps.adminKeyHash() === null) {
      return problem(404, "not_found", "Management is off: set admin-api-key");
    }
    if (!isAdmin(deps, request.headers)) {
      return problem(401, "invalid_api_key", "The admin key is missing or wrong");
    }
    return route(deps, request, path.slice(PREFIX.length), search);
  });
}

/** The admin key, compared as digests in constant time. */
export function isAdmin(
  deps: Pick<ManagementDeps, "adminKeyHash" | "digest">,
  headers: HeaderLookup,
): boolean {
  const wanted = deps.adminKeyHash();
  const key = readClientKey(headers);
  return wanted !== null && key !== null && deps.digest.equal(wanted, deps.digest.sha256(key));
}

type Routes = (request: ClientRequest, path: string, search: string) => Answer | Promise<Answer> | null;

/** Whatever these calls may expect is an answer; what they throw is a store that is gone. */
function guarded(fatal: (error: unknown) => void, routes: Routes): Routes {
  const end = (error: unknown): never => {
    fatal(error);
    throw error;
  };
  return (request, path, search) => {
    try {
      const answer = routes(request, path, search);
      return answer instanceof Promise ? answer.catch(end) : answer;
    } catch (error) {
      return end(error);
    }
  };
}

function route(
  deps: ManagementDeps,
  request: ClientRequest,
  call: string,
  search: string,
): Answer | Promise<Answer> {
  const nowMs = deps.clock.now();
  if (request.method === "GET") {
    switch (call) {
      case "accounts":
        return json({ accounts: deps.state.accounts(nowMs) });
      case "providers":
        return json(deps.state.gates(nowMs));
      case "requests": {
        const limit = Number(new URLSearchParams(search).get("limit") ?? 100);
        if (!Number.isInteger(limit) || limit < 1 || limit > 1_000) {
          return problem(400, "invalid_request", `"limit" must be 1..1000, got ${JSON.stringify(limit)}`);
        }
        return json({ requests: deps.decisions.latest(limit).map(viewDecision) });
      }
      case "events":
        return deps.feed.open({ detail: "full", isAllowed: () => isAdmin(deps, request.headers) });
    }
    const one = REQUEST_PATH.exec(call);
    if (one !== null) {
      const record = deps.decisions.find(one[1]!);
      return record === null
        ? problem(404, "not_found", "That request is not among the last 1,000")
        : json(viewDecision(record));
    }
  }
  if (request.method === "POST" && call === NAMED_PATH) return findAccounts(deps, request, nowMs);
  const account = ACCOUNT_PATH.exec(call);
  if (account !== null) return changeAccount(deps, request, account[1]!, account[2] ?? null, nowMs);
  return problem(404, "not_found", "There is no such call");
}

/** Changes nothing: which accounts somebody means. No account is called so, since every id has a colon. */
async function findAccounts(deps: ManagementDeps, request: ClientRequest, nowMs: number): Promise<Answer> {
  const input = await readJsonInput(request, NAMED);
  if (!input.ok) return problem(input.status, input.code, input.message);
  return json({ accounts: deps.state.accountsNamed(input.value.name, nowMs) });
}

async function changeAccount(
  deps: ManagementDeps,
  request: ClientRequest,
  encodedId: string,
  action: string | null,
  nowMs: number,
): Promise<Answer> {
  let id: AccountId;
  try {
    id = decodeURIComponent(encodedId);
  } catch {
    return problem(400, "invalid_request", "The account id is badly encoded");
  }
  const find = (): AccountView | undefined =>
    deps.pool.describeAccounts(nowMs).find((view) => view.account.id === id);
  const before = find();
  if (before === undefined) return noSuchAccount();
  if (action === null && request.method === "GET") return json(deps.state.account(before));
  if (action === null && request.method === "PATCH") {
    const input = await readJsonInput(request, ENABLED);
    if (!input.ok) return problem(input.status, input.code, input.message);
    const { enabled } = input.value;
    if (!deps.pool.setEnabled(id, enabled, nowMs)) return noSuchAccount();
    deps.log.write("info", enabled ? "account_enabled" : "account_disabled", { account: id });
  } else if (action === "reset" && request.method === "POST") {
    deps.pool.resetAccount(id, nowMs);
    deps.log.write("info", "account_reset", { account: id });
  } else if (action === "topped-up" && request.method === "POST") {
    deps.pool.toppedUp(id, nowMs);
    deps.log.write("info", "account_topped_up", { account: id });
  } else {
    return problem(404, "not_found", "There is no such call");
  }
  const after = find();
  return after === undefined ? noSuchAccount() : json(deps.state.account(after));
}

function noSuchAccount(): Answer {
  return problem(404, "not_found", "There is no such account");
}

export function problem(status: number, code: string, message: string): Answer {
  return json({ error: { message, type: "management_error", code, param: null } }, status);
}
