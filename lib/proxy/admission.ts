/**
 * Who is calling: a client key, a managed user's key, or (on a few routes) one of our own accounts' tokens.
 *
 * Keys are compared as SHA-256 digests, so that neither length nor prefix of a key shows in the time taken.
 */
import type { Digest, ManagedUser } from "../ports.ts";
import type { HeaderLookup } from "../core/evidence.ts";
import type { Route } from "../protocol/route.ts";

export interface Tenant {
  /** Owner of affinity and usage: `user:<id>`, `key:<12 hex>` or `account:<12 hex>`. Rotating a user's key keeps it. */
  readonly id: string;
  /** Safe to log. */
  readonly keyHint: string;
  readonly userId: string | null;
}

export type Admission =
  | { readonly ok: true; readonly tenant: Tenant }
  | { readonly ok: false; readonly problem: "invalid_api_key" | "key_disabled" };

export interface AdmissionSources {
  readonly digest: Digest;
  /** SHA-256 digests of the configured keys and of the first-run key. */
  readonly staticKeyHashes: () => ReadonlySet<string>;
  readonly userByKeyHash: (hash: string) => ManagedUser | null;
  readonly isOwnAccountToken: (token: string) => boolean;
}

const BEARER = /^Bearer +/i;

/** The key of a request: `Authorization: Bearer`, bare `Authorization`, or `x-api-key`, for all protocols. */
export function readClientKey(headers: HeaderLookup): string | null {
  const authorization = headers.get("authorization");
  const key = authorization !== null ? authorization.replace(BEARER, "") : headers.get("x-api-key");
  const trimmed = key?.trim() ?? "";
  return trimmed === "" ? null : trimmed;
}

export function admit(
  headers: HeaderLookup,
  route: Pick<Route, "admitsAccountToken">,
  sources: AdmissionSources,
): Admission {
  const key = readClientKey(headers);
  if (key === null) return { ok: false, problem: "invalid_api_key" };
  const hash = sources.digest.sha256(key);
  const hint = hash.slice(0, 12);
  if (sources.staticKeyHashes().has(hash)) {
    return { ok: true, tenant: { id: `key:${hint}`, keyHint: hint, userId: null } };
  }
  const user = sources.userByKeyHash(hash);
  if (user !== null) {
    if (!user.enabled) return { ok: false, problem: "key_disabled" };
    return { ok: true, tenant: { id: `user:${user.id}`, keyHint: user.keyHint, userId: user.id } };
  }
  if (route.admitsAccountToken && sources.isOwnAccountToken(key)) {
    return { ok: true, tenant: { id: `account:${hint}`, keyHint: hint, userId: null } };
  }
  return { ok: false, problem: "invalid_api_key" };
}
