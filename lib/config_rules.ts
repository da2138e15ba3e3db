/**
 * Rules over values and over several keys: what the shape alone cannot say.
 *
 * They run on a file that may have holes where the shape was already wrong, so that every mistake is told in one
 * go and none is told twice. Each rule looks only at what is there.
 */
import { checkBaseUrl } from "./config_address_rules.ts";
import { DEFAULT_CONFIG_VALUES as DEFAULTS } from "./config_defaults.ts";
import { Findings, type PartialFile, type Seen } from "./config_findings.ts";
import { formatPath } from "./config_mistakes.ts";
import { checkModels } from "./config_model_rules.ts";
import { checkProviders } from "./config_provider_rules.ts";
import type { KeyPath } from "./config_keys.ts";
import {
  type ConfigEnvironment,
  isInside,
  readListenHost,
  readPath,
  readProxyUrl,
  readSecret,
  resolveDatabasePath,
} from "./config_values.ts";
import { isLoopbackHost } from "./core/ip_address.ts";

/** Shorter keys can be guessed where others can reach the port. */
const SHORT_KEY_CHARACTERS = 16;

/**
 * Every rule on the whole file.
 *
 * @param removed  true for places whose value was wrong and is missing: its default is no value to judge by.
 */
export function checkRules(
  file: PartialFile,
  removed: (path: KeyPath) => boolean,
  environment: ConfigEnvironment,
): Findings {
  const findings = new Findings(environment, removed);
  checkListener(file, findings);
  checkPaths(file, findings);
  checkRetry(file, findings);
  for (const key of ["codex-base-url", "chatgpt-base-url", "codex-refresh-token-url"] as const) {
    const text = file[key];
    if (text !== undefined) checkBaseUrl([key], text, file, findings);
  }
  const proxy = file["proxy-url"];
  if (proxy !== undefined) findings.take(["proxy-url"], proxy, readProxyUrl);
  checkProviders(file, findings);
  checkModels(file, findings);
  return findings;
}

/** Host, client keys, admin key: who may come in. */
function checkListener(file: PartialFile, findings: Findings): void {
  const host = findings.take(["host"], file.host ?? DEFAULTS.host, readListenHost);
  const open = host !== null && !isLoopbackHost(host);
  const seen: Seen = new Map();
  const check = (path: KeyPath, text: string) => {
    const key = findings.take(path, text, readSecret);
    if (key === null) return;
    const other = seen.get(key);
    // Each key is its own tenant, and an admin key that is a client's opens the management to that client.
    if (other !== undefined) findings.refusePlainly(path, `must not be the same key as "${other}"`);
    seen.set(key, formatPath(path));
    if (open && key.length < SHORT_KEY_CHARACTERS) {
      findings.warn(path, `is shorter than ${SHORT_KEY_CHARACTERS} characters and the host is not loopback`);
    }
  };
  for (const [at, text] of (file["api-keys"] ?? []).entries()) {
    if (text !== undefined) check(["api-keys", at], text);
  }
  const admin = file["admin-api-key"];
  if (admin !== undefined && admin !== "") check(["admin-api-key"], admin);
}

/** The watcher of auth-dir would see every write of a database inside it. */
function checkPaths(file: PartialFile, findings: Findings): void {
  const folder = findings.take(["auth-dir"], file["auth-dir"] ?? DEFAULTS["auth-dir"], readPath);
  const path = ["database", "path"];
  const text = file.database?.path ?? DEFAULTS.database.path;
  const database = findings.take(path, text, resolveDatabasePath);
  if (folder !== null && database !== null && isInside(database, folder)) {
    findings.refuse(path, `must not be inside "auth-dir"`, database);
  }
}

function checkRetry(file: PartialFile, findings: Findings): void {
  const rounds = file["request-retry"];
  if (file["max-retry-interval"] === 0 && rounds !== undefined && rounds > 0) {
    findings.warn(["request-retry"], `has no effect while "max-retry-interval" is 0`);
  }
  const base = ["streaming", "recovery"];
  const initialPath = [...base, "initial-backoff-milliseconds"];
  const maxPath = [...base, "max-backoff-milliseconds"];
  if (!findings.isSound(initialPath) || !findings.isSound(maxPath)) return;
  const recovery = file.streaming?.recovery ?? {};
  const initial = recovery["initial-backoff-milliseconds"] ??
    DEFAULTS.streaming.recovery["initial-backoff-milliseconds"];
  const max = recovery["max-backoff-milliseconds"] ?? DEFAULTS.streaming.recovery["max-backoff-milliseconds"];
  if (initial > max) {
    findings.refuse(initialPath, `must not be above "${formatPath(maxPath)}" (${max})`, initial);
  }
}
