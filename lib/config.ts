/**
 * YAML text -> {@link Config}, or every mistake at once.
 *
 * Pure: environment variables and the home folder come in as data. The parts: `config_yaml` (text to values),
 * `config_schema` (shape), `config_rules` (rules over several keys), `config_resolve` (units, paths, keys).
 */
import type { z } from "zod";
import type { PartialFile } from "./config_findings.ts";
import {
  formatMistake,
  formatPath,
  isShowableKey,
  type Mistake,
  plainMistake,
  unknownKey,
  valueMistake,
} from "./config_mistakes.ts";
import { resolveConfig } from "./config_resolve.ts";
import { checkRules } from "./config_rules.ts";
import { isOptionalAt, type KeyPath } from "./config_keys.ts";
import { CONFIG_SCHEMA } from "./config_schema.ts";
import { suggest } from "./config_suggest.ts";
import type { Config } from "./config_types.ts";
import type { ConfigEnvironment } from "./config_values.ts";
import { type DuplicateKey, readYaml } from "./config_yaml.ts";
import { isLoopbackHost } from "./core/ip_address.ts";

export { DEFAULT_CONFIG_VALUES } from "./config_defaults.ts";
export { formatMistake, type Mistake } from "./config_mistakes.ts";
export { configJsonSchema } from "./config_keys.ts";
export { describeConfig, formatConfig } from "./config_show.ts";
export { diffConfig } from "./config_diff.ts";
export type { ConfigEnvironment } from "./config_values.ts";

export type ParsedConfig =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly mistakes: readonly Mistake[] };

/** More than anybody reads at once; a list of thousands of wrong accounts says the same thing. */
const MISTAKE_LIMIT = 200;

/**
 * Parses a configuration.
 *
 * @param text  the file's text; empty means all defaults. A key without a value (`pools:`) means its default too.
 * @returns every mistake, in the order shape then rules; {@link formatMistake} words one. Never throws, and never
 *          repeats a secret: not from the text, not from the environment.
 */
export function parseConfig(text: string, environment: ConfigEnvironment): ParsedConfig {
  const reading = readYaml(text);
  if (!reading.ok) return { ok: false, mistakes: [plainMistake([], reading.problem)] };
  const root = withoutEmpties(reading.value ?? {});
  const shape = CONFIG_SCHEMA.safeParse(root);
  const issues = shape.error?.issues ?? [];
  const mistakes = dropRepeated([
    ...issues.flatMap((issue) => describeIssue(issue, root, reading.duplicates)),
    ...lostDuplicates(issues, reading.duplicates),
  ]);
  const sound = shape.success ? shape.data : withoutWrong(root, issues);
  const wrongPaths = new Set(issues.filter(isAboutValue).map((issue) => formatPath(pathOf(issue))));
  const findings = checkRules(sound as PartialFile, (path) => isBelow(path, wrongPaths), environment);
  mistakes.push(...findings.mistakes);
  const rest = Math.max(0, mistakes.length - MISTAKE_LIMIT) + countUndescribed(issues);
  if (rest > 0) {
    mistakes.splice(MISTAKE_LIMIT, Infinity, plainMistake([], `${rest} further mistakes are not listed`));
  }
  if (mistakes.length > 0 || !shape.success) return { ok: false, mistakes };
  return { ok: true, config: resolveConfig(shape.data, environment), warnings: findings.warnings };
}

/**
 * True when others than this machine can reach the port: then there must be `api-keys` or a managed user.
 *
 * The caller refuses to start, or to reload, since only it knows the users in the database.
 */
export function listensBeyondLoopback(config: Config): boolean {
  return !isLoopbackHost(config.host);
}

// ---------------------------------------------------------------- from the schema's issues to mistakes

type Issue = z.core.$ZodIssue;

function pathOf(issue: Issue): KeyPath {
  return issue.path.filter((step) => typeof step !== "symbol");
}

/** Unknown keys leave the mapping they are in as good as it was. */
function isAboutValue(issue: Issue): boolean {
  return issue.code !== "unrecognized_keys";
}

function describeIssue(issue: Issue, root: unknown, duplicates: readonly DuplicateKey[]): Mistake[] {
  const path = pathOf(issue);
  const value = valueAt(root, path);
  if (issue.code === "unrecognized_keys") {
    // Looking for what was meant takes its time: not for keys that nobody will see.
    return issue.keys.slice(0, MISTAKE_LIMIT).map((key) => {
      const inner = valueAt(value, [key]);
      const repeated = duplicates.find((duplicate) => duplicate.marker === key);
      return repeated === undefined ? unknownKey(path, key, inner) : repeatedKey(path, repeated, inner);
    });
  }
  if (value === undefined) return [plainMistake(path, "is required")];
  const meant = issue.code === "invalid_value" && typeof value === "string"
    ? suggest(value, issue.values.map(String))
    : null;
  return [valueMistake(path, wordIssue(issue, value), value, meant)];
}

function countUndescribed(issues: readonly Issue[]): number {
  const keys = issues.map((issue) => issue.code === "unrecognized_keys" ? issue.keys.length : 0);
  return keys.reduce((sum, count) => sum + Math.max(0, count - MISTAKE_LIMIT), 0);
}

/** One value can break two parts of one rule, and a mapping shared by aliases is met twice. */
function dropRepeated(mistakes: readonly Mistake[]): Mistake[] {
  return [...new Map(mistakes.map((mistake) => [formatMistake(mistake), mistake])).values()];
}

function wordIssue(issue: Issue, value: unknown): string {
  if (typeof value === "number" && issue.code === "invalid_type" && issue.expected === "int") {
    return issue.message.replace("must be", "must be a whole number");
  }
  if (issue.code === "invalid_type" && issue.expected === "string" && typeof value !== "object") {
    return `${issue.message} (put it in quotes)`;
  }
  if (typeof value === "string" && /^\s*[-+.\d]/.test(value) && issue.code === "invalid_type") {
    return `${issue.message} (without quotes)`;
  }
  return issue.message;
}

function repeatedKey(parent: KeyPath, duplicate: DuplicateKey, value: unknown): Mistake {
  const problem = `is given more than once (line ${duplicate.line})`;
  return isShowableKey(duplicate.key, value, duplicate.key)
    ? plainMistake([...parent, duplicate.key], problem)
    : plainMistake(parent, `has a key that ${problem}`);
}

/** Repeated keys in places that are wrong as a whole, or that could not be told apart. */
function lostDuplicates(issues: readonly Issue[], duplicates: readonly DuplicateKey[]): Mistake[] {
  const met = new Set(issues.flatMap((issue) => issue.code === "unrecognized_keys" ? issue.keys : []));
  return duplicates.filter(({ marker }) => marker === null || !met.has(marker)).map(({ line }) =>
    plainMistake([], `line ${line}: a key is given more than once`)
  );
}

// ---------------------------------------------------------------- the file with its holes

/** Drops keys that have no value and may be left out: `pools:` above commented entries means no pools. */
function withoutEmpties(root: unknown): unknown {
  const empties = (CONFIG_SCHEMA.safeParse(root).error?.issues ?? []).map(pathOf).filter((path) =>
    valueAt(root, path) === null && isOptionalAt(path)
  );
  return without(root, toTree(empties));
}

/** The file with every wrong value taken out; list entries keep their places. */
function withoutWrong(root: unknown, issues: readonly Issue[]): unknown {
  const tree = toTree(issues.filter(isAboutValue).map(pathOf));
  return tree === REMOVED ? {} : without(root, tree);
}

/** Places to remove, as a tree: one walk for all of them, since a file can be wrong in thousands of places. */
type Tree = Map<string | number, Tree> | typeof REMOVED;
const REMOVED = null;

function toTree(paths: readonly KeyPath[]): Tree {
  const root: Tree = new Map();
  for (const path of paths) {
    if (path.length === 0) return REMOVED;
    let node: Map<string | number, Tree> = root;
    for (const [at, step] of path.entries()) {
      const known = node.get(step);
      if (known === REMOVED) break;
      if (at === path.length - 1) node.set(step, REMOVED);
      else {
        const next: Map<string | number, Tree> = known ?? new Map();
        node.set(step, next);
        node = next;
      }
    }
  }
  return root;
}

/** A copy, along the tree only, without what it names. Parts that an alias shares elsewhere stay as they are. */
function without(node: unknown, tree: Tree): unknown {
  if (tree === REMOVED) return undefined;
  if (tree.size === 0 || node === null || typeof node !== "object") return node;
  if (Array.isArray(node)) {
    return node.map((entry, at) => {
      const below = tree.get(at);
      return below === undefined ? entry : without(entry, below);
    });
  }
  const copy: Record<string, unknown> = { ...node };
  for (const [step, below] of tree) {
    if (below === REMOVED) delete copy[step];
    else copy[step] = without(copy[step], below);
  }
  return copy;
}

function valueAt(root: unknown, path: KeyPath): unknown {
  let node = root;
  for (const step of path) {
    if (node === null || typeof node !== "object" || !Object.hasOwn(node, step)) return undefined;
    node = (node as Record<string | number, unknown>)[step];
  }
  return node;
}

/** True when the path, or something it is part of, is among the wrong ones. */
function isBelow(path: KeyPath, wrong: ReadonlySet<string>): boolean {
  for (let length = path.length; length > 0; length--) {
    if (wrong.has(formatPath(path.slice(0, length)))) return true;
  }
  return false;
}
