/**
 * The digest under which a session signal is remembered: SHA-256 of tenant, kind and value joined by NUL
 * (state-machine-facts 2A.8 #5). Raw values go no further than here.
 */
import type { SessionSignal } from "../protocol/session_signals.ts";
import type { Tenant } from "./admission.ts";
import type { ProxyDeps } from "./deps.ts";

export function digestSignal(deps: Pick<ProxyDeps, "digest">, tenant: Tenant, signal: SessionSignal): string {
  return deps.digest.sha256(`${tenant.id}\0${signal.kind}\0${signal.value}`);
}
