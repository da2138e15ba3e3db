/**
 * Rules over `providers`: ids, addresses by kind, and one credential an account.
 */
import { checkBaseUrl } from "./config_address_rules.ts";
import { DEFAULT_BASE_URLS } from "./config_defaults.ts";
import type { Findings, PartialEntry, PartialFile, Seen } from "./config_findings.ts";
import { formatPath } from "./config_mistakes.ts";
import type { KeyPath } from "./config_keys.ts";
import { readPath, readSecret } from "./config_values.ts";
import { CODEX_PROVIDER } from "./core/model_resolution.ts";

type PartialProvider = PartialEntry<"providers">;
type PartialAccount = NonNullable<NonNullable<PartialProvider["accounts"]>[number]>;

export function checkProviders(file: PartialFile, findings: Findings): void {
  const ids: Seen = new Map();
  const files: Seen = new Map();
  for (const [at, provider] of (file.providers ?? []).entries()) {
    if (provider === undefined) continue;
    const path = ["providers", at];
    if (provider.id !== undefined) {
      // Ids that differ in case only would be one word to the person who reads the log.
      const id = provider.id.toLowerCase();
      if (id === CODEX_PROVIDER) {
        findings.refuse([...path, "id"], "is taken by the provider of auth-dir", provider.id);
      }
      const other = ids.get(id);
      if (other !== undefined) findings.refuse([...path, "id"], `must not repeat "${other}"`, provider.id);
      else ids.set(id, formatPath([...path, "id"]));
    }
    if (provider.plan !== undefined && provider.kind !== undefined && provider.kind !== "zai") {
      findings.refuse([...path, "plan"], "is for providers of kind zai only", provider.plan);
    }
    checkAddress([...path, "base-url"], provider, file, findings);
    checkAccounts(path, provider, files, findings);
    const models: Seen = new Map();
    for (const [index, model] of (provider.models ?? []).entries()) {
      if (model !== undefined) findings.takeOnce([...path, "models", index], model, models);
    }
  }
}

/** What each kind adds to its base decides what the base must not hold already. */
function checkAddress(path: KeyPath, provider: PartialProvider, file: PartialFile, findings: Findings): void {
  const { kind } = provider;
  const text = provider["base-url"];
  if (text === undefined) {
    if (kind !== undefined && DEFAULT_BASE_URLS[kind] === null && findings.isSound(path)) {
      findings.refusePlainly(path, `is required for kind ${kind}`);
    }
    return;
  }
  const url = checkBaseUrl(path, text, file, findings);
  if (url === null) return;
  if (kind === "anthropic" && url.pathname.endsWith("/v1")) {
    findings.refuse(path, "must not end in /v1, which each call adds", text);
  }
  if (kind === "zai" && /\/api\/(?:coding\/)?(?:paas|anthropic)\b/.test(url.pathname)) {
    findings.refuse(path, `must be the host alone; "plan" chooses the address below it`, text);
  }
  if (kind === "openai" && url.pathname === "/") {
    findings.warn(path, "has no path; most hosts serve under /v1");
  }
}

/** @param files  credentials files of all providers: two accounts on one would end each other's tokens. */
function checkAccounts(path: KeyPath, provider: PartialProvider, files: Seen, findings: Findings): void {
  const ids: Seen = new Map();
  const keys: Seen = new Map();
  for (const [at, account] of (provider.accounts ?? []).entries()) {
    if (account === undefined) continue;
    const here = [...path, "accounts", at];
    if (account.id !== undefined) findings.takeOnce([...here, "id"], account.id, ids);
    checkCredentialChoice(here, provider, account, findings);
    if (account["api-key"] !== undefined) {
      const keyPath = [...here, "api-key"];
      const key = findings.take(keyPath, account["api-key"], readSecret);
      const other = key === null ? undefined : keys.get(key);
      if (other !== undefined) findings.warn(keyPath, `is the same key as "${other}"`);
      if (key !== null) keys.set(key, formatPath(keyPath));
    }
    if (account.credentials !== undefined) {
      const file = findings.take([...here, "credentials"], account.credentials, readPath);
      if (file !== null) findings.takeOnce([...here, "credentials"], file, files);
    }
  }
}

function checkCredentialChoice(
  path: KeyPath,
  provider: PartialProvider,
  account: PartialAccount,
  findings: Findings,
): void {
  // A wrong value was still a choice: its own mistake is told already.
  const hasKey = account["api-key"] !== undefined || !findings.isSound([...path, "api-key"]);
  const hasFile = account.credentials !== undefined || !findings.isSound([...path, "credentials"]);
  if (hasKey === hasFile) {
    const has = hasKey ? "both" : "neither";
    findings.refusePlainly(path, `must have exactly one of api-key and credentials, has ${has}`);
  }
  if (hasFile && provider.kind !== undefined && provider.kind !== "anthropic") {
    findings.refusePlainly([...path, "credentials"], "is for providers of kind anthropic only");
  }
}
