/**
 * Managed users: the operator's calls below `/v0/management/users`, and what a user may do below `/v0/user`.
 *
 * A key is shown in the one answer that made it and kept only as a SHA-256 digest. A user's id owns sessions and
 * usage, so that a new key changes neither (design.md 5, 7).
 */
import { z } from "zod";
import { type AccountStore, type Clock, type Digest, type Ids, type Log, StoreConflict } from "../ports.ts";
import type { ManagedUser } from "../ports.ts";
import { readClientKey } from "./admission.ts";
import { isoTime } from "./decision_view.ts";
import { readJsonInput } from "./json_input.ts";
import { json } from "./local_routes.ts";
import { problem } from "./management.ts";
import { Answer } from "./answer.ts";
import type { ClientRequest } from "./client_request.ts";

export interface UserRoutesDeps {
  readonly accounts: AccountStore;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly ids: Ids;
  readonly log: Log;
}

const USERS = "/v0/management/users";
const USER_PATH = /^\/v0\/management\/users\/([A-Za-z0-9_-]{1,80})(\/api-key\/reset)?$/;
const OWN_KEY = "/v0/user/api-key";

/** 24 random bytes: 192 bits, 32 characters after the prefix by which scanners and our log know a key. */
const KEY_BYTES = 24;
const USER_ID_BYTES = 12;
/** Of the digest; as long as the hint of a configured key, and of no use for guessing the key. */
const KEY_HINT_LENGTH = 12;
/** Users are held in memory and asked for by every request. */
const USER_LIMIT = 10_000;

/** A name is for people and goes into terminals and pages. */
const NAME = z.string({ error: "must be text" }).transform((name) => name.trim()).pipe(
  z.string()
    .refine((name) => name.length >= 1 && name.length <= 64, "must be 1..64 characters")
    .refine((name) => !/\p{Cc}|\p{Cf}|\p{Co}|\p{Cn}/u.test(name), "must not hold control characters")
    .refine((name) => name.isWellFormed(), "must be well-formed text"),
);
const ENABLED = z.boolean({ error: "must be true or false" });
const OBJECT = { error: "must be a JSON object" };
const NEW_USER = z.strictObject({ name: NAME, enabled: ENABLED.default(true) }, OBJECT);
const USER_CHANGE = z.strictObject({ name: NAME.optional(), enabled: ENABLED.optional() }, OBJECT)
  .refine((change) => Object.keys(change).length > 0, 'must name "name" or "enabled"');
const NOTHING = z.strictObject({}, OBJECT);

/** @returns null where the path is none of these, or the caller is not the operator. */
export function createUserRoutes(
  deps: UserRoutesDeps,
): (request: ClientRequest, path: string, isAdmin: () => boolean) => Answer | Promise<Answer> | null {
  return (request, path, isAdmin) => {
    if (path === OWN_KEY || path === `${OWN_KEY}/reset`) return serveOwnKey(deps, request, path);
    if (path !== USERS && !path.startsWith(`${USERS}/`)) return null;
    // Wording a refusal is management's: with the admin key or without, every call of it refuses alike.
    if (!isAdmin()) return null;
    if (path === USERS) {
      if (request.method === "GET") return json({ users: deps.accounts.users().map(viewUser) });
      return request.method === "POST" ? createUser(deps, request) : noSuchCall();
    }
    const match = USER_PATH.exec(path);
    if (match === null) return noSuchCall();
    const user = deps.accounts.users().find(({ id }) => id === match[1]);
    if (user === undefined) return problem(404, "not_found", "There is no such user");
    if (match[2] !== undefined) {
      return request.method === "POST" ? rotate(deps, request, user, "operator") : noSuchCall();
    }
    if (request.method === "GET") return json(viewUser(user));
    return request.method === "PATCH" ? changeUser(deps, request, user) : noSuchCall();
  };
}

async function createUser(deps: UserRoutesDeps, request: ClientRequest): Promise<Answer> {
  const input = await readJsonInput(request, NEW_USER);
  if (!input.ok) return problem(input.status, input.code, input.message);
  if (deps.accounts.users().length >= USER_LIMIT) {
    return problem(409, "conflict", `There are ${USER_LIMIT} users already`);
  }
  const { key, ...fields } = makeKey(deps);
  const user: ManagedUser = {
    id: `usr_${deps.ids.secret(USER_ID_BYTES)}`,
    ...input.value,
    ...fields,
    createdAtMs: fields.keyCreatedAtMs,
  };
  const conflict = tryStore(() => deps.accounts.createUser(user));
  if (conflict !== null) return conflict;
  deps.log.write("info", "user_created", { user: user.id });
  return json({ ...viewUser(user), api_key: key }, 201);
}

async function changeUser(deps: UserRoutesDeps, request: ClientRequest, known: ManagedUser): Promise<Answer> {
  const input = await readJsonInput(request, USER_CHANGE);
  if (!input.ok) return problem(input.status, input.code, input.message);
  const { name, enabled } = input.value;
  const before = current(deps, known);
  const user = { ...before, name: name ?? before.name, enabled: enabled ?? before.enabled };
  const conflict = tryStore(() => deps.accounts.updateUser(user));
  if (conflict !== null) return conflict;
  deps.log.write("info", "user_changed", { user: user.id, enabled: user.enabled });
  return json(viewUser(user));
}

async function rotate(
  deps: UserRoutesDeps,
  request: ClientRequest,
  known: ManagedUser,
  by: "operator" | "user",
): Promise<Answer> {
  const input = await readJsonInput(request, NOTHING);
  if (!input.ok) return problem(input.status, input.code, input.message);
  const before = current(deps, known);
  // Two rotations with one old key: the second of them no longer has the right to make one.
  if (by === "user" && before.keyHash !== known.keyHash) return invalidKey();
  const { key, ...fields } = makeKey(deps);
  const user = { ...before, ...fields };
  const conflict = tryStore(() => deps.accounts.updateUser(user));
  if (conflict !== null) return conflict;
  deps.log.write("info", "user_key_reset", { user: user.id, by });
  return json({ ...viewUser(user), api_key: key });
}

/** The user's own key is what the call is made with; the answer to its reset is the only one that shows the next. */
function serveOwnKey(deps: UserRoutesDeps, request: ClientRequest, path: string): Answer | Promise<Answer> {
  const caller = findCaller(deps, request);
  if (caller instanceof Answer) return caller;
  if (path === OWN_KEY) return request.method === "GET" ? json(viewUser(caller)) : noSuchCall();
  return request.method === "POST" ? rotate(deps, request, caller, "user") : noSuchCall();
}

function findCaller(deps: UserRoutesDeps, request: ClientRequest): ManagedUser | Answer {
  const key = readClientKey(request.headers);
  const user = key === null ? null : deps.accounts.userByKeyHash(deps.digest.sha256(key));
  if (user === null) return invalidKey();
  return user.enabled ? user : problem(403, "key_disabled", "This key is disabled");
}

/** The row as it is after the body was awaited: somebody else may have changed it meanwhile. */
function current(deps: UserRoutesDeps, known: ManagedUser): ManagedUser {
  return deps.accounts.users().find(({ id }) => id === known.id) ?? known;
}

function makeKey(
  deps: UserRoutesDeps,
): Pick<ManagedUser, "keyHash" | "keyHint" | "keyCreatedAtMs"> & { key: string } {
  const key = `hf_${deps.ids.secret(KEY_BYTES)}`;
  const keyHash = deps.digest.sha256(key);
  return { key, keyHash, keyHint: keyHash.slice(0, KEY_HINT_LENGTH), keyCreatedAtMs: deps.clock.now() };
}

function tryStore(write: () => void): Answer | null {
  try {
    write();
    return null;
  } catch (error) {
    if (error instanceof StoreConflict) return problem(409, "conflict", "Another user has this name");
    throw error;
  }
}

export function viewUser(user: ManagedUser): Record<string, unknown> {
  return {
    id: user.id,
    name: user.name,
    enabled: user.enabled,
    key_hint: user.keyHint,
    created_at: isoTime(user.createdAtMs),
    key_created_at: isoTime(user.keyCreatedAtMs),
  };
}

function invalidKey(): Answer {
  return problem(401, "invalid_api_key", "This is not the key of a managed user");
}

function noSuchCall(): Answer {
  return problem(404, "not_found", "There is no such call");
}
