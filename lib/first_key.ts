/** Who may call at all: nobody listens to other machines without a key, and a first start makes one. */
import { listensBeyondLoopback } from "./config.ts";
import type { Config } from "./config_types.ts";
import type { Digest, Ids } from "./ports.ts";
import type { SqliteAccountStore } from "./store/account_store.ts";

/** Refused before anything listens, e.g. an open listener without keys. */
export class StartRefused extends Error {
  override readonly name = "StartRefused";
}

/** Beyond loopback somebody must have been let in on purpose; on loopback the first start makes a key. */
export function ensureSomeKey(
  config: Config,
  accounts: SqliteAccountStore,
  ids: Ids,
  digest: Digest,
): string | null {
  if (config.apiKeys.length > 0 || accounts.users().length > 0) return null;
  if (listensBeyondLoopback(config)) {
    throw new StartRefused(
      `Cannot listen on ${config.host}: it can be reached from other machines, so set "api-keys" or add a user first`,
    );
  }
  if (accounts.firstRunKeyHash() !== null) return null;
  const key = `hf_${ids.secret(24)}`;
  accounts.saveFirstRunKeyHash(digest.sha256(key));
  return key;
}
