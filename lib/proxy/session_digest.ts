/**
 * The digest under which a session signal is remembered: SHA-256 of tenant, kind and value joined by NUL
 * (state-machine-facts 2A.8 #5). Raw values go no further than here.
 */
import type { SessionSignal } from "../protocol/session_signals.ts";
import type { Tenant } from "./admission.ts";
import type { ProxyDeps } from "./deps.ts";
import { LruMap } from "../core/lru.ts";

export function digestSignal(deps: Pick<ProxyDeps, "digest">, tenant: Tenant, signal: SessionSignal): string {
  const text = `${tenant.id}\0${signal.kind}\0${signal.value}`;
  if (text.length > KEPT_CHARACTERS) return deps.digest.sha256(text);
  let digest = kept.get(text);
  if (digest === undefined) kept.set(text, digest = deps.digest.sha256(text));
  return digest;
}

/** A conversation names itself with each of its turns; ids are short, and what is not is no id. */
const KEPT_CHARACTERS = 256;
const KEPT_DIGESTS = 2_048;
const kept = new LruMap<string, string>(KEPT_DIGESTS);
