/**
 * Our few settings put into files that belong to somebody else, everything else in them untouched.
 *
 * Pure: text in, text out. What cannot be merged with certainty is refused, and the person merges by hand.
 */
// The std modules on npm carry no types: this is the edge where their results are narrowed.
import { parse as parseUntyped } from "@std/toml";

const parseToml = parseUntyped as (text: string) => Record<string, unknown>;

export type Merge =
  | { readonly ok: true; readonly text: string; readonly notes: readonly string[] }
  | { readonly ok: false; readonly problem: string };

const PROVIDER = "holdfast";
const OUR_TABLE = /^\s*\[\s*model_providers\s*\.\s*["']?holdfast["']?\s*\]\s*(#.*)?$/;
const BY_HAND = "its providers are written in a way that only a person can edit";
const ANY_TABLE = /^\s*\[/;

/**
 * Codex's `config.toml`: the provider's table, and `model_provider`.
 *
 * The file is edited line by line, so that comments and order stay; the result is parsed and must differ from the
 * original in our keys only.
 */
export function mergeCodexToml(text: string, provider: Readonly<Record<string, string | boolean>>): Merge {
  const before = tryParse(text);
  if (before === null) return { ok: false, problem: "it is not TOML" };
  // The parser would let a table be added to these; TOML itself, and so Codex, does not.
  if (/^\s*(?:model_providers\s*[=.]|\[\s*model_providers\s*\])/m.test(text)) {
    return { ok: false, problem: BY_HAND };
  }
  const end = /\r\n/.test(text) ? "\r\n" : "\n";
  let lines = text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
  lines = setTopLevel(lines, "model_provider", PROVIDER);
  lines = setTable(lines, provider);
  const merged = lines.join(end) + end;
  const after = tryParse(merged);
  const providers = asMapping(before["model_providers"]);
  const wanted = {
    ...before,
    model_provider: PROVIDER,
    model_providers: { ...providers, [PROVIDER]: { ...asMapping(providers[PROVIDER]), ...provider } },
  };
  if (after === null || !isSame(after, wanted)) {
    return { ok: false, problem: BY_HAND };
  }
  const notes = typeof before["profile"] === "string"
    ? ["The active profile may name another model_provider"]
    : [];
  return { ok: true, text: merged, notes };
}

function setTopLevel(lines: readonly string[], key: string, value: string): string[] {
  const line = `${key} = ${JSON.stringify(value)}`;
  const firstTable = lines.findIndex((one) => ANY_TABLE.test(one));
  const top = firstTable < 0 ? lines : lines.slice(0, firstTable);
  const at = top.findIndex((one) => new RegExp(`^\\s*${key}\\s*=`).test(one));
  if (at >= 0) return lines.with(at, line);
  if (firstTable < 0) return [...lines, line];
  // Before the blank lines and comments that belong to the first table.
  let place = firstTable;
  while (place > 0 && /^\s*(#.*)?$/.test(lines[place - 1]!)) place--;
  return [...lines.slice(0, place), line, ...(place === firstTable ? [""] : []), ...lines.slice(place)];
}

function setTable(lines: readonly string[], values: Readonly<Record<string, string | boolean>>): string[] {
  const ours = Object.entries(values).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  const at = lines.findIndex((line) => OUR_TABLE.test(line));
  if (at < 0) return [...lines, "", "[model_providers.holdfast]", ...ours];
  const next = lines.findIndex((line, index) => index > at && ANY_TABLE.test(line));
  const body = lines.slice(at + 1, next < 0 ? lines.length : next);
  const named = new RegExp(`^\\s*(?:${Object.keys(values).join("|")})\\s*=`);
  return [
    ...lines.slice(0, at + 1),
    ...ours,
    ...body.filter((line) => !named.test(line)),
    ...next < 0 ? [] : lines.slice(next),
  ];
}

/** Claude Code's `settings.json`: variables below `env`. */
export function mergeClaudeSettings(text: string, variables: Readonly<Record<string, string>>): Merge {
  let root: unknown = {};
  try {
    if (text.trim() !== "") root = JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    return { ok: false, problem: "it is not JSON" };
  }
  if (typeof root !== "object" || root === null || Array.isArray(root)) {
    return { ok: false, problem: "it holds no JSON object" };
  }
  const settings = root as Record<string, unknown>;
  const env = settings["env"] ?? {};
  if (typeof env !== "object" || env === null || Array.isArray(env)) {
    return { ok: false, problem: '"env" in it is no object' };
  }
  const merged = { ...settings, env: { ...env, ...variables } };
  const notes = [
    ...("ANTHROPIC_API_KEY" in env
      ? ['"ANTHROPIC_API_KEY" in its "env" would be sent instead: take it out']
      : []),
    ...("apiKeyHelper" in settings ? ['"apiKeyHelper" would be asked instead: take it out'] : []),
  ];
  const indent = /^\{\r?\n([ \t]+)/.exec(text)?.[1] ?? 2;
  return { ok: true, text: `${JSON.stringify(merged, null, indent)}\n`, notes };
}

/** A dotenv file: one `NAME=value` a line. */
export function mergeDotenv(text: string, variables: Readonly<Record<string, string>>): Merge {
  const lines = text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
  for (const [name, value] of Object.entries(variables)) {
    const pattern = new RegExp(`^(\\s*(?:export\\s+)?)${name}\\s*=`);
    const at = lines.findIndex((line) => pattern.test(line));
    if (at < 0) lines.push(`${name}=${value}`);
    else lines[at] = `${pattern.exec(lines[at]!)![1]}${name}=${value}`;
  }
  return { ok: true, text: `${lines.join("\n")}\n`, notes: [] };
}

function tryParse(text: string): Record<string, unknown> | null {
  try {
    return parseToml(text);
  } catch {
    return null;
  }
}

function asMapping(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
}

/** Same values, whatever the order of the keys. */
function isSame(a: unknown, b: unknown): boolean {
  return canonical(a) === canonical(b);
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => {
    if (typeof inner === "bigint") return String(inner);
    if (typeof inner !== "object" || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([x], [y]) => x < y ? -1 : 1));
  });
}
