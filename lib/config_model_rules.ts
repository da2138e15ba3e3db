/**
 * Rules over `models` and `pools`: names that mean one thing, targets that exist, rings within bounds.
 */
import { DEFAULT_MEMBER_WEIGHT } from "./config_defaults.ts";
import type { Findings, PartialEntry, PartialFile, Seen } from "./config_findings.ts";
import { formatPath } from "./config_mistakes.ts";
import type { KeyPath } from "./config_keys.ts";
import { suggest } from "./config_suggest.ts";
import { CODEX_PROVIDER } from "./core/model_resolution.ts";

/** Slots of one ring, all weights together. Source: state-machine-facts 2C.1. */
const RING_SLOT_LIMIT = 256;

/** Ids of the providers and the models each says it lists; none: not known. */
type KnownProviders = ReadonlyMap<string, readonly (string | undefined)[]>;

interface PartialTarget {
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
}

export function checkModels(file: PartialFile, findings: Findings): void {
  const providers = knownProviders(file, findings);
  const names: Seen = new Map();
  for (const [at, pool] of (file.pools ?? []).entries()) {
    if (pool === undefined) continue;
    if (pool.name !== undefined) findings.takeOnce(["pools", at, "name"], pool.name, names);
    checkMembers(["pools", at], pool, providers, findings);
    checkFallback(["pools", at], pool, providers, findings);
  }
  // One map for both: a pool is found first, so an alias of its name could never be reached.
  for (const [at, alias] of (file.models ?? []).entries()) {
    if (alias === undefined) continue;
    if (alias.alias !== undefined) findings.takeOnce(["models", at, "alias"], alias.alias, names);
    checkTarget(["models", at], alias, providers, findings);
  }
}

/** @returns null when some id is missing or wrong: then no reference can be called wrong. */
function knownProviders(file: PartialFile, findings: Findings): KnownProviders | null {
  if (!findings.isSound(["providers"])) return null;
  const providers = new Map<string, readonly (string | undefined)[]>([[CODEX_PROVIDER, []]]);
  for (const provider of file.providers ?? []) {
    if (provider?.id === undefined) return null;
    providers.set(provider.id, provider.models ?? []);
  }
  return providers;
}

function checkMembers(
  path: KeyPath,
  pool: PartialEntry<"pools">,
  providers: KnownProviders | null,
  findings: Findings,
): void {
  const seen: Seen = new Map();
  let slots = 0;
  for (const [at, member] of (pool.members ?? []).entries()) {
    if (member === undefined) continue;
    const here = [...path, "members", at];
    checkTarget(here, member, providers, findings);
    if (findings.isSound([...here, "weight"])) slots += member.weight ?? DEFAULT_MEMBER_WEIGHT;
    const key = targetKey(member);
    const other = key === null ? undefined : seen.get(key);
    if (other !== undefined) {
      findings.refusePlainly(here, `must not repeat "${other}"; give it more weight instead`);
    } else if (key !== null) seen.set(key, formatPath(here));
  }
  if (slots > RING_SLOT_LIMIT) {
    findings.refusePlainly(
      [...path, "members"],
      `must have weights of at most ${RING_SLOT_LIMIT} in all, got ${slots}`,
    );
  }
}

function checkFallback(
  path: KeyPath,
  pool: PartialEntry<"pools">,
  providers: KnownProviders | null,
  findings: Findings,
): void {
  const members = new Set(
    (pool.members ?? []).map((member) => member === undefined ? null : targetKey(member)),
  );
  const seen: Seen = new Map();
  for (const [at, target] of (pool.fallback ?? []).entries()) {
    if (target === undefined) continue;
    const here = [...path, "fallback", at];
    checkTarget(here, target, providers, findings);
    const key = targetKey(target);
    if (key === null) continue;
    const other = seen.get(key);
    if (other !== undefined) findings.refusePlainly(here, `must not repeat "${other}"`);
    else seen.set(key, formatPath(here));
    if (members.has(key)) findings.warn(here, "is a member of the same pool, so it adds nothing");
  }
}

function checkTarget(
  path: KeyPath,
  target: PartialTarget,
  providers: KnownProviders | null,
  findings: Findings,
): void {
  if (target.provider === undefined || providers === null) return;
  const listed = providers.get(target.provider);
  if (listed === undefined) {
    const hint = suggest(target.provider, providers.keys());
    findings.refuse([...path, "provider"], "must be the id of a provider, or codex", target.provider, hint);
  } else if (target.model !== undefined && listed.length > 0 && !listed.includes(target.model)) {
    findings.warn([...path, "model"], `is not among the models listed for "${target.provider}"`);
  }
}

/** A space is in neither id nor model, so no two pairs share a key. */
function targetKey(target: PartialTarget): string | null {
  return target.provider === undefined || target.model === undefined
    ? null
    : `${target.provider} ${target.model}`;
}
