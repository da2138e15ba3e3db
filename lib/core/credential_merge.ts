/**
 * New tokens written into the text of a credential file, everything else in it kept.
 *
 * The file is shared with other programs (Codex CLI, Claude Code) and with people who edit it, so the text that is
 * changed is the one read just before, never one remembered from the start.
 */
import {
  ACCESS_TOKEN_KEYS,
  type CredentialFormat,
  credentialOwner,
  EXPIRY_KEYS,
  ID_TOKEN_KEYS,
  isJsonObject,
  type JsonObject,
  LAST_REFRESH_KEYS,
  parseCredentialFile,
  REFRESH_TOKEN_KEYS,
  tokenHolder,
  type TokenSet,
} from "./credential.ts";

/** Tokens of one answer; what is absent or null stays as the file has it. */
export type NewTokens = { readonly [Name in keyof TokenSet]?: TokenSet[Name] };

/**
 * @param text   the file as it is now.
 * @param nowMs  becomes `last_refresh`, in formats that have one.
 * @returns the new text, or `null` when the file holds no credential any more.
 */
export function mergeTokens(text: string, tokens: NewTokens, nowMs: number): string | null {
  const parsed = parseCredentialFile(text);
  const root = parseKeepingNumbers(text);
  if (parsed.kind !== "credential" || !isJsonObject(root)) return null;
  const { format } = parsed.record;
  const holder = tokenHolder(root, format);
  setToken(holder, ACCESS_TOKEN_KEYS, tokens.accessToken);
  setToken(holder, REFRESH_TOKEN_KEYS, tokens.refreshToken);
  setToken(holder, ID_TOKEN_KEYS, tokens.idToken);
  if (tokens.accessToken && tokens.expiresAtMs) setExpiry(root, holder, format, tokens.expiresAtMs);
  if (format !== "claude_code" && format !== "anthropic_sdk") {
    root[presentKey(root, LAST_REFRESH_KEYS) ?? LAST_REFRESH_KEYS[0]] = new Date(nowMs).toISOString();
  }
  return JSON.stringify(root, null, indentOf(text)) + (text.endsWith("\n") ? "\n" : "");
}

/** A text and when it was last written. */
export interface DatedText {
  readonly text: string;
  readonly modifiedAtMs: number;
}

/**
 * Whether the copy a crash left behind is the state its file should have had.
 *
 * It is when the file was cut in the middle of being overwritten, or when the copy was written later, for the same
 * owner, and holds other tokens. A file that somebody wrote after it (a new login) is left alone.
 */
export function isNewerState(current: DatedText, leftBehind: DatedText): boolean {
  const theirs = parseCredentialFile(current.text);
  const ours = parseCredentialFile(leftBehind.text);
  if (ours.kind !== "credential") return false;
  if (theirs.kind === "unfinished") return true;
  if (theirs.kind !== "credential" || leftBehind.modifiedAtMs < current.modifiedAtMs) return false;
  const a = theirs.record;
  const b = ours.record;
  return a.format === b.format && credentialOwner(a) === credentialOwner(b) &&
    (a.tokens.accessToken !== b.tokens.accessToken || a.tokens.refreshToken !== b.tokens.refreshToken);
}

function setToken(holder: JsonObject, keys: readonly string[], token: string | null | undefined): void {
  // Empty text is an answer that said nothing, and never replaces a token (B049).
  if (token) holder[presentKey(holder, keys) ?? keys[holderStyle(holder)]!] = token;
}

function setExpiry(
  root: JsonObject,
  holder: JsonObject,
  format: CredentialFormat,
  expiresAtMs: number,
): void {
  const place = presentKey(holder, EXPIRY_KEYS) !== null ? holder : root;
  const key = presentKey(place, EXPIRY_KEYS);
  if (key !== null) place[key] = inUnitOf(place[key], expiresAtMs);
  else if (format === "codex_flat" || format === "claude_flat") {
    root.expired = new Date(expiresAtMs).toISOString();
  } else if (format === "claude_code") holder.expiresAt = expiresAtMs;
  else if (format === "anthropic_sdk") root.expires_at = Math.floor(expiresAtMs / 1_000);
  // Codex's own file stores no expiry: its tokens carry one.
}

/** The reader of the file expects the unit it wrote. */
function inUnitOf(old: unknown, timeMs: number): string | number {
  const oldNumber = typeof old === "number"
    ? old
    : typeof old === "string" && /^\d+$/.test(old)
    ? Number(old)
    : null;
  if (oldNumber === null) return new Date(timeMs).toISOString();
  const number = oldNumber < 100_000_000_000 ? Math.floor(timeMs / 1_000) : timeMs;
  return typeof old === "string" ? String(number) : number;
}

/** 1 where the object is written in camelCase already, else 0: index into a list of spellings. */
function holderStyle(holder: JsonObject): 0 | 1 {
  return "accessToken" in holder || "refreshToken" in holder ? 1 : 0;
}

function presentKey(holder: JsonObject, keys: readonly string[]): string | null {
  return keys.find((key) => holder[key] !== undefined && holder[key] !== null) ??
    keys.find((key) => key in holder) ?? null;
}

function indentOf(text: string): string | number {
  return /^\s*\{\r?\n([ \t]+)"/.exec(text)?.[1] ?? (text.includes("\n") ? 2 : 0);
}

/** Numbers that JavaScript would round (ids of other programs) come out as they went in. */
function parseKeepingNumbers(text: string): unknown {
  const json = JSON as unknown as {
    parse(
      text: string,
      reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
    ): unknown;
    rawJSON(text: string): unknown;
  };
  try {
    return json.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text, (key, value, context) => {
      if (typeof value !== "number" || context.source === undefined || String(value) === context.source) {
        return value;
      }
      return EXPIRY_KEYS.includes(key as typeof EXPIRY_KEYS[number]) ? value : json.rawJSON(context.source);
    });
  } catch {
    return null;
  }
}
