/**
 * What is wrong with a configuration, in words for the person who wrote it.
 *
 * Shows the key and its value, never the file's text, and never a value that may be a secret.
 */
import { allKeys, factsAt, type KeyPath, keysAt } from "./config_keys.ts";
import { foldWord, suggest } from "./config_suggest.ts";

export interface Mistake {
  /** `providers[1].accounts[0].api-key`; empty for the text as a whole. */
  readonly path: string;
  /** What is wrong, as it goes on after the path: `must be 0..3600 seconds`. */
  readonly problem: string;
  /** The value as people may see it, or null where there is none to show; `(hidden)` for secrets. */
  readonly got: string | null;
  /** The word that was probably meant, or null. */
  readonly suggestion: string | null;
}

export const HIDDEN = "(hidden)";
const LONGEST_SHOWN = 80;
/** A word that can be shown as a key: what a key looks like, not what a pasted token looks like. */
const SHOWABLE_KEY = /^[A-Za-z][A-Za-z0-9_.-]{0,39}$/;
/** Also behind another word: a forgotten comma makes one text of a value and the next key's. */
const KNOWN_KEY_PREFIX =
  /(?:^|[^A-Za-z0-9._-])(?:(?:sk|pk|rk|hf|gsk|ghp|xox[a-z]|bearer)[-_ ]|eyJ|AIza|(?:api-keys?|proxy-url)\s*:)/i;
/** A run longer than any model name, id or UUID, and not longer than the tokens of the providers we know. */
const TOKEN_SHAPE = /(?=[A-Za-z._-]*\d)[A-Za-z0-9._-]{40}/;

/** `Cannot parse config: "max-retry-interval" must be 0..3600 seconds, got -1` */
export function formatMistake(mistake: Mistake): string {
  const where = mistake.path === "" ? "" : `"${mistake.path}" `;
  const got = mistake.got === null ? "" : `, got ${mistake.got}`;
  const hint = mistake.suggestion === null ? "" : `; did you mean "${mistake.suggestion}"?`;
  return `Cannot parse config: ${where}${mistake.problem}${got}${hint}`;
}

/** `["providers", 1, "id"]` is `providers[1].id`. */
export function formatPath(path: KeyPath): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? step : `.${step}`;
  }
  return text;
}

/** A mistake in the value at a known key. */
export function valueMistake(
  path: KeyPath,
  problem: string,
  value: unknown,
  suggestion: string | null = null,
): Mistake {
  return { path: formatPath(path), problem, got: showValue(path, value), suggestion };
}

/** A mistake whose value says nothing further, or must not be said. */
export function plainMistake(path: KeyPath, problem: string, suggestion: string | null = null): Mistake {
  return { path: formatPath(path), problem, got: null, suggestion };
}

/** The key is not known at this place. */
export function unknownKey(parent: KeyPath, key: string, value: unknown): Mistake {
  const suggestion = suggestKey(parent, key);
  if (isShowableKey(key, value, suggestion)) {
    return plainMistake([...parent, key], "is not a known key", suggestion);
  }
  // `api-key:sk-…` without the space is one long key to YAML, and the rest of it is the secret.
  const [start] = key.split(":");
  if (start !== undefined && start !== key && keysAt(parent).includes(start)) {
    return plainMistake([...parent, start], "needs a space after its colon");
  }
  return plainMistake(parent, "has a key that is not known and may be a secret, so it is not shown");
}

/** A nearby key of the same place, else the same key where it belongs. */
function suggestKey(parent: KeyPath, key: string): string | null {
  const siblings = keysAt(parent);
  const folded = foldWord(key);
  const same = siblings.find((sibling) => foldWord(sibling) === folded);
  if (same !== undefined) return same;
  const elsewhere = allKeys().find(({ path }) => path.slice(path.lastIndexOf(".") + 1) === folded);
  return elsewhere?.path ?? suggest(key, siblings);
}

/** A bare word in braces (`{ id: a, sk-… }`) is a key without a value: shown only when it is nearly a known one. */
export function isShowableKey(key: string, value: unknown, suggestion: string | null): boolean {
  if (!SHOWABLE_KEY.test(key) || looksLikeSecret(key)) return false;
  return value !== null || suggestion !== null;
}

/** The value as it may be shown: scalars in full where the key holds plain values, else its kind. */
export function showValue(path: KeyPath, value: unknown): string {
  if (value === undefined || value === null) return "nothing";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : `a list of ${value.length}`;
  if (typeof value === "object") return "a mapping";
  const facts = factsAt(path);
  if (facts?.secret === true) return HIDDEN;
  // Where a list or a mapping belongs, any text may be a key that slipped a level.
  if (facts === null || keysAt(path).length > 0 || facts.range.endsWith("entries")) return kindOf(value);
  if (typeof value !== "string") return String(value);
  return showText(value);
}

function kindOf(value: unknown): string {
  if (typeof value === "string") return "text";
  return typeof value === "number" ? "a number" : String(value);
}

function showText(value: string): string {
  const shown = value.includes("://") ? redactUrl(value) : looksLikeSecret(value) ? HIDDEN : value;
  if (shown === HIDDEN) return HIDDEN;
  return JSON.stringify(shown.length > LONGEST_SHOWN ? `${shown.slice(0, LONGEST_SHOWN)}…` : shown);
}

/** What stands before an `@` is a password as often as it is a name, and e-mail addresses are not shown either. */
function looksLikeSecret(text: string): boolean {
  // What is never shown need not be looked at, and the pattern is not made for long texts.
  const head = text.slice(0, 2 * LONGEST_SHOWN);
  return text.includes("@") || KNOWN_KEY_PREFIX.test(head) || TOKEN_SHAPE.test(head);
}

/** The URL without user, password, query and fragment; `(hidden)` when it cannot be told apart. */
export function redactUrl(value: string): string {
  if (!URL.canParse(value)) return /[@?#]/.test(value) ? HIDDEN : value;
  const url = new URL(value);
  const user = url.username === "" && url.password === "" ? "" : `${HIDDEN}@`;
  const query = url.search === "" ? "" : `?${HIDDEN}`;
  const path = url.pathname === "/" && !value.includes("/", value.indexOf("://") + 3) ? "" : url.pathname;
  return `${url.protocol}//${user}${url.host}${path}${query}`;
}
